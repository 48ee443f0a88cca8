//! Decides which traces are exported: a share of them, and all failed ones.
//!
//! The trace's id decides, so a trace is exported completely or not at all. A failure is known late. So spans of traces outside the share are
//! held for a while, and exported after all if one of them fails.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::recorder::FinishedSpan;

/// How many failed traces are remembered, so that their later spans are exported too.
const FAILED: usize = 1_024;

/// Selects the traces that are exported. Clones share the held spans.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// A trace is in the share if bits 1 to 63 of its id are below this.
    below: u64,
    limit: usize,
    held: Arc<Mutex<Held>>,
}

/// Spans of traces that are exported only if they fail. Spans of turns that ended well are held too, because later work, such as a judgement of
/// the statement, may still fail.
#[derive(Debug, Default)]
struct Held {
    spans: HashMap<u128, Vec<FinishedSpan>>,
    count: usize,
    /// The traces with held spans, in the order of their first span.
    oldest_first: VecDeque<u128>,
    failed: VecDeque<u128>,
}

impl Sampling {
    /// Exports all traces.
    pub fn all() -> Self {
        Self::share(1.0, 0)
    }

    /// Exports this share of all traces, from 0 to 1, and all failed ones. At most `limit` spans are held, those of the newest traces.
    pub fn share(ratio: f64, limit: usize) -> Self {
        // The same bits and the same bound as `traceidratio` in the SDKs, so that a collector that samples further agrees.
        let below = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        Self { below, limit, held: Arc::default() }
    }

    /// Whether a trace is in the share, whether it fails or not.
    pub(super) const fn keeps(&self, trace: u128) -> bool {
        (trace as u64) >> 1 < self.below
    }

    /// Accepts a finished span, and returns the spans to export now: none, this span, or this span and all held spans of its
    /// trace.
    pub(super) fn pass(&self, trace: u128, span: FinishedSpan) -> Vec<FinishedSpan> {
        if self.keeps(trace) {
            return vec![span];
        }
        self.held.lock().hold_or_release(trace, span, self.limit)
    }
}

impl Held {
    fn hold_or_release(&mut self, trace: u128, span: FinishedSpan, limit: usize) -> Vec<FinishedSpan> {
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
        let held = self.spans.entry(trace).or_default();
        if held.is_empty() {
            self.oldest_first.push_back(trace);
        }
        held.push(span);
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
    fn the_exported_share_is_the_requested_share() {
        let ids = || (0..10_000_u64).map(|n| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));

        for (ratio, expected) in [(0.0, 0), (0.25, 2_500), (1.0, 10_000)] {
            let sampling = Sampling::share(ratio, 0);
            let kept = ids().filter(|trace| sampling.keeps(*trace)).count();
            assert!(kept.abs_diff(expected) < 50, "{kept} of 10,000 at {ratio}");
        }
        assert!(Sampling::all().keeps(u128::MAX));
    }

    #[test]
    fn no_span_of_a_successful_turn_outside_the_share_is_exported() {
        let sampling = Sampling::share(0.0, 100);

        let written: usize = [child(None), child(None), root(None)].into_iter().map(|span| sampling.pass(7, span).len()).sum();

        assert_eq!(written, 0);
    }

    #[test]
    fn all_spans_of_a_failed_turn_are_exported() {
        let sampling = Sampling::share(0.0, 100);

        let written = [child(None), child(Some("timeout")), child(None), root(None)].map(|span| sampling.pass(7, span).len());

        assert_eq!(written, [0, 2, 1, 1]);
        assert_eq!(sampling.pass(8, root(None)).len(), 0, "another turn is not affected");
    }

    #[test]
    fn a_failure_after_the_turn_exports_the_turn_too() {
        let sampling = Sampling::share(0.0, 100);

        let written = [child(None), root(None), child(Some("timeout"))].map(|span| sampling.pass(7, span).len());

        assert_eq!(written, [0, 0, 3]);
    }

    #[test]
    fn a_late_failure_exports_its_turn_after_a_thousand_other_turns() {
        let sampling = Sampling::share(0.0, 16_384);

        sampling.pass(7, child(None));
        sampling.pass(7, root(None));
        for trace in 1_000..2_000 {
            sampling.pass(trace, root(None));
        }

        assert_eq!(sampling.pass(7, child(Some("timeout"))).len(), 3);
    }

    #[test]
    fn held_spans_never_exceed_the_limit() {
        let sampling = Sampling::share(0.0, 10);

        for trace in 0..1_000 {
            sampling.pass(trace, child(None));
            sampling.pass(trace, child(None));
        }
        for trace in 2_000..3_000 {
            sampling.pass(trace, root(None));
        }

        let held = sampling.held.lock();
        assert_eq!((held.count, held.spans.len(), held.oldest_first.len()), (10, 10, 10));
    }

    #[test]
    fn failed_traces_leave_only_their_ids_behind() {
        let sampling = Sampling::share(0.0, 10);

        for trace in 0..5_000 {
            sampling.pass(trace, child(None));
            sampling.pass(trace, child(Some("timeout")));
        }

        let held = sampling.held.lock();
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
