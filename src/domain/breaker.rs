//! The circuit breaker: decides whether an endpoint that keeps failing gets no calls for a while.

use std::time::Duration;

use crate::moment::Moment;

/// The state of an endpoint's circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// No call passes before this moment.
    Open(Moment),
    /// One probe call may test whether the endpoint answers again.
    HalfOpen,
}

/// The evidence of one completed call about its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint answered, possibly with a refusal.
    Alive,
    /// The endpoint failed in a way that may be temporary, and asked for this pause, if any.
    Failing(Option<Duration>),
    /// The call is no evidence, because it was cancelled or ended too early.
    Unknown,
}

/// The circuit breaker of one endpoint.
#[derive(Clone, Debug)]
pub struct Breaker {
    failures_to_open: u32,
    cool_down: Duration,
    failures: u32,
    open_until: Option<Moment>,
    probing: bool,
    answered: Option<Moment>,
}

impl Breaker {
    /// A breaker that opens after this many failures in a row, for this long.
    pub fn new(failures_to_open: u32, cool_down: Duration) -> Self {
        let failures_to_open = failures_to_open.max(1);
        Self { failures_to_open, cool_down, failures: 0, open_until: None, probing: false, answered: None }
    }

    /// The state at this moment.
    pub fn state(&self, now: Moment) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open(until),
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// Whether a call was answered at this moment or later.
    pub fn has_answered_since(&self, since: Moment) -> bool {
        self.answered.is_some_and(|answered| answered >= since)
    }

    /// Whether a call may start now.
    pub fn allows_call(&self, now: Moment) -> bool {
        match self.state(now) {
            BreakerState::Closed => true,
            BreakerState::HalfOpen => !self.probing,
            BreakerState::Open(_) => false,
        }
    }

    /// Records the start of a call. Returns whether it is the probe of a half-open breaker.
    pub fn started(&mut self, now: Moment) -> bool {
        let probe = self.state(now) == BreakerState::HalfOpen;
        self.probing |= probe;
        probe
    }

    /// Records the end of a call. Returns whether the breaker opened because of it.
    ///
    /// Calls that were running when the breaker opened do not prolong the open state. Only an answer, to the probe or to another
    /// call, closes it.
    pub fn ended(&mut self, now: Moment, probe: bool, verdict: Verdict) -> bool {
        if probe {
            self.probing = false;
        }
        match verdict {
            Verdict::Unknown => false,
            Verdict::Alive => {
                self.failures = 0;
                self.open_until = None;
                self.answered = Some(now);
                false
            }
            Verdict::Failing(requested_pause) => {
                self.failures = self.failures.saturating_add(1);
                let was_open = self.open_until.is_some();
                if self.failures < self.failures_to_open || (was_open && !probe) {
                    return false;
                }
                self.open_until = Some(now + self.cool_down.max(requested_pause.unwrap_or_default()));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOL_DOWN: Duration = Duration::from_secs(10);

    fn at(secs: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(secs)
    }

    fn failing(breaker: &mut Breaker, now: Moment) -> bool {
        let probe = breaker.started(now);
        breaker.ended(now, probe, Verdict::Failing(None))
    }

    #[test]
    fn the_breaker_opens_at_the_last_failure_in_a_row() {
        let mut breaker = Breaker::new(3, COOL_DOWN);

        let opened = [failing(&mut breaker, at(1)), failing(&mut breaker, at(2)), failing(&mut breaker, at(3))];

        assert_eq!(opened, [false, false, true]);
        assert_eq!(breaker.state(at(12)), BreakerState::Open(at(13)));
        assert!(!breaker.allows_call(at(12)));
    }

    #[test]
    fn an_answer_in_between_starts_the_count_again() {
        let mut breaker = Breaker::new(2, COOL_DOWN);

        failing(&mut breaker, at(1));
        breaker.ended(at(2), false, Verdict::Alive);
        let opened = failing(&mut breaker, at(3));

        assert!(!opened);
        assert!(breaker.allows_call(at(3)));
    }

    #[test]
    fn half_open_lets_exactly_one_call_pass() {
        let mut breaker = Breaker::new(1, COOL_DOWN);
        failing(&mut breaker, at(0));

        let first = breaker.allows_call(at(10));
        let probe = breaker.started(at(10));
        let second = breaker.allows_call(at(10));

        assert!(first && probe && !second);
    }

    #[test]
    fn a_failed_probe_opens_the_breaker_again_at_once() {
        let mut breaker = Breaker::new(3, COOL_DOWN);
        (0..3).for_each(|_| assert!(breaker.allows_call(at(0)) && failing(&mut breaker, at(0)) != breaker.allows_call(at(0))));

        let opened = failing(&mut breaker, at(10));

        assert!(opened);
        assert_eq!(breaker.state(at(11)), BreakerState::Open(at(20)));
    }

    #[test]
    fn an_answered_probe_closes_the_breaker() {
        let mut breaker = Breaker::new(1, COOL_DOWN);
        failing(&mut breaker, at(0));

        let probe = breaker.started(at(10));
        breaker.ended(at(11), probe, Verdict::Alive);

        assert_eq!(breaker.state(at(11)), BreakerState::Closed);
    }

    #[test]
    fn after_a_cancelled_probe_another_call_can_probe() {
        let mut breaker = Breaker::new(1, COOL_DOWN);
        failing(&mut breaker, at(0));

        let probe = breaker.started(at(10));
        breaker.ended(at(10), probe, Verdict::Unknown);

        assert!(breaker.allows_call(at(10)));
    }

    #[test]
    fn a_longer_retry_after_prolongs_the_cool_down() {
        let mut breaker = Breaker::new(1, COOL_DOWN);

        breaker.ended(at(0), false, Verdict::Failing(Some(Duration::from_secs(60))));

        assert_eq!(breaker.state(at(59)), BreakerState::Open(at(60)));
    }
}
