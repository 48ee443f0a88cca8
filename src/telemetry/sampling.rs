//! Decides which traces are exported: a share of them, and all that failed.
//!
//! It is decided by the trace's id, so everything of one trace goes together. That a turn failed is known late; so the spans of one that
//! would be left out are held for a while, and go after all if one of them failed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::recorder::FinishedSpan;

/// So many traces that failed are remembered, for what still belongs to them.
const FAILED: usize = 1_024;

/// Which traces are exported. Cloned, it holds the same spans.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Ids whose lower 63 bits are below are kept.
    below: u64,
    limit: usize,
    held: Arc<Mutex<Held>>,
}

/// Spans of traces that are left out unless they fail. Those of a turn that ended well are held on to like others: what comes after it,
/// such as a judgement of its statement, may still fail.
#[derive(Debug, Default)]
struct Held {
    spans: HashMap<u128, Vec<FinishedSpan>>,
    count: usize,
    /// The traces that spans are held of, in the order of their first span.
    oldest_first: VecDeque<u128>,
    failed: VecDeque<u128>,
}

impl Sampling {
    /// Everything is kept.
    pub fn all() -> Self {
        Self::share(1.0, 0)
    }

    /// This share of all traces is kept, from 0 to 1, and all that failed; so many spans at most are held meanwhile, those of the newest
    /// traces.
    pub fn share(ratio: f64, limit: usize) -> Self {
        // The same bits, and the same bound, as the SDKs' own `traceidratio`: a collector that thins out further agrees with it.
        let below = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        Self { below, limit, held: Arc::default() }
    }

    /// Whether a trace belongs to the share, whatever becomes of it.
    pub(super) const fn keeps(&self, trace: u128) -> bool {
        (trace as u64) >> 1 < self.below
    }

    /// What is to be written now, given that this span of this trace is over: nothing, the span, or all that was held of its trace too.
    pub(super) fn pass(&self, trace: u128, span: FinishedSpan) -> Vec<FinishedSpan> {
        if self.keeps(trace) {
            return vec![span];
        }
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take(trace, span, self.limit)
    }
}

impl Held {
    fn take(&mut self, trace: u128, span: FinishedSpan, limit: usize) -> Vec<FinishedSpan> {
        if self.failed.contains(&trace) {
            return vec![span];
        }
        if span.error.is_some() {
            if self.failed.len() == FAILED {
                self.failed.pop_front();
            }
            self.failed.push_back(trace);
            let mut all = self.forget(trace);
            if !all.is_empty() {
                self.oldest_first.retain(|held| *held != trace);
            }
            all.push(span);
            return all;
        }
        let known = self.spans.entry(trace).or_default();
        if known.is_empty() {
            self.oldest_first.push_back(trace);
        }
        known.push(span);
        self.count += 1;
        while self.count > limit
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.forget(oldest);
        }
        Vec::new()
    }

    fn forget(&mut self, trace: u128) -> Vec<FinishedSpan> {
        let spans = self.spans.remove(&trace).unwrap_or_default();
        self.count -= spans.len();
        spans
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::SpanKind;

    use super::super::recorder::Place;
    use super::super::trace::TurnTrace;
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn the_share_that_is_kept_is_the_share_that_was_asked_for() {
        let ids = || (0..10_000_u64).map(|n| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));

        for (ratio, expected) in [(0.0, 0), (0.25, 2_500), (1.0, 10_000)] {
            let sampling = Sampling::share(ratio, 0);
            let kept = ids().filter(|trace| sampling.keeps(*trace)).count();
            assert!(kept.abs_diff(expected) < 50, "{kept} of 10,000 at {ratio}");
        }
        assert!(Sampling::all().keeps(u128::MAX));
    }

    #[test]
    fn a_turn_that_ends_well_is_left_out_whole() {
        let sampling = Sampling::share(0.0, 100);

        let written: usize = [child(None), child(None), root(None)].into_iter().map(|span| sampling.pass(7, span).len()).sum();

        assert_eq!(written, 0);
    }

    #[test]
    fn a_turn_with_a_failure_is_written_whole() {
        let sampling = Sampling::share(0.0, 100);

        let written = [child(None), child(Some("timeout")), child(None), root(None)].map(|span| sampling.pass(7, span).len());

        assert_eq!(written, [0, 2, 1, 1]);
        assert_eq!(sampling.pass(8, root(None)).len(), 0, "another turn is not concerned");
    }

    #[test]
    fn what_fails_after_its_turn_brings_the_turn_along() {
        let sampling = Sampling::share(0.0, 100);

        let written = [child(None), root(None), child(Some("timeout"))].map(|span| sampling.pass(7, span).len());

        assert_eq!(written, [0, 0, 3]);
    }

    #[test]
    fn what_fails_late_brings_its_turn_along_however_many_ended_meanwhile() {
        let sampling = Sampling::share(0.0, 16_384);

        sampling.pass(7, child(None));
        sampling.pass(7, root(None));
        for trace in 1_000..2_000 {
            sampling.pass(trace, root(None));
        }

        assert_eq!(sampling.pass(7, child(Some("timeout"))).len(), 3);
    }

    #[test]
    fn no_more_is_held_than_the_limit_allows() {
        let sampling = Sampling::share(0.0, 10);

        for trace in 0..1_000 {
            sampling.pass(trace, child(None));
            sampling.pass(trace, child(None));
        }
        for trace in 2_000..3_000 {
            sampling.pass(trace, root(None));
        }

        let held = sampling.held.lock().unwrap();
        assert_eq!((held.count, held.spans.len(), held.oldest_first.len()), (10, 10, 10));
    }

    #[test]
    fn failures_leave_nothing_behind_but_their_names() {
        let sampling = Sampling::share(0.0, 10);

        for trace in 0..5_000 {
            sampling.pass(trace, child(None));
            sampling.pass(trace, child(Some("timeout")));
        }

        let held = sampling.held.lock().unwrap();
        assert_eq!((held.count, held.spans.len(), held.oldest_first.len(), held.failed.len()), (0, 0, 0, FAILED));
    }

    fn child(error: Option<&'static str>) -> FinishedSpan {
        span(Place::Under(TurnTrace::new(7).root()), error)
    }

    fn root(error: Option<&'static str>) -> FinishedSpan {
        span(Place::Root(TurnTrace::new(7)), error)
    }

    fn span(place: Place, error: Option<&'static str>) -> FinishedSpan {
        FinishedSpan {
            name: "x".into(),
            kind: SpanKind::Internal,
            place,
            started: Moment::ZERO,
            ended: Moment::ZERO,
            attributes: Vec::new(),
            error: error.map(Into::into),
            links: Vec::new(),
        }
    }
}
