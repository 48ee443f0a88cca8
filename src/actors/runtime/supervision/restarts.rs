//! Decides whether and when a child that died is restarted. Time and randomness are arguments.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How often children are restarted, and how soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The delay before the second restart in a row. The first comes at once, and each further one doubles the delay.
    pub first_delay: Duration,
    /// The longest delay, without jitter.
    pub longest_delay: Duration,
    /// How many restarts in a row one child gets. Its next death is escalated.
    pub child_limit: u32,
    /// How many restarts all children together get within `window`. The next death is escalated.
    pub total_limit: u32,
    /// After this uptime, a child's restarts are counted from zero again. Deaths that are older than this do not count towards the total.
    pub window: Duration,
}

/// What to do after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Restart it at this moment; `now` for the first restart in a row.
    RestartAt(Instant),
    /// Do not restart it: a limit is exceeded, and the supervisor's own supervisor decides.
    Escalate(Excess),
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// One child died too often in a row.
    Child,
    /// The children together died too often within the window.
    Total,
}

/// The deaths of one supervisor's children. It stores nothing about children that never died.
#[derive(Debug)]
pub struct Restarts<K> {
    policy: RestartPolicy,
    failing: BTreeMap<K, FailureRecord>,
    deaths: VecDeque<Instant>,
}

#[derive(Debug, Default)]
struct FailureRecord {
    in_row: u32,
    /// How often it has also ended because it lost a dependency.
    dependencies_lost: u32,
    up_since: Option<Instant>,
}

impl<K: Ord + Clone> Restarts<K> {
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, failing: BTreeMap::new(), deaths: VecDeque::new() }
    }

    /// The child started: its uptime counts from now on.
    pub fn started(&mut self, child: &K, now: Instant) {
        if let Some(failure) = self.failing.get_mut(child) {
            failure.up_since = Some(now);
        }
    }

    /// The child died, or did not start. `fraction` (0.0 to 1.0) is the jitter: up to half of the delay is added.
    pub fn died(&mut self, child: &K, now: Instant, fraction: f64) -> Verdict {
        self.forget_recovered(now);
        self.deaths.push_back(now);
        let failure = self.failing.entry(child.clone()).or_default();
        failure.in_row = failure.in_row.saturating_add(1);
        failure.up_since = None;
        if failure.in_row > self.policy.child_limit {
            return Verdict::Escalate(Excess::Child);
        }
        if self.deaths.len() > self.policy.total_limit as usize {
            return Verdict::Escalate(Excess::Total);
        }
        Verdict::RestartAt(now + spread(self.policy.delay(failure.in_row.saturating_add(failure.dependencies_lost)), fraction))
    }

    /// The child ended because it lost a dependency, which does not count towards any limit. Returns when it is restarted.
    pub fn dependency_lost(&mut self, child: &K, now: Instant, fraction: f64) -> Instant {
        self.forget_recovered(now);
        let failure = self.failing.entry(child.clone()).or_default();
        failure.dependencies_lost = failure.dependencies_lost.saturating_add(1);
        failure.up_since = None;
        now + spread(self.policy.delay(failure.in_row.saturating_add(failure.dependencies_lost)), fraction)
    }

    /// The child is no longer wanted, or will not be restarted.
    pub fn forget(&mut self, child: &K) {
        self.failing.remove(child);
    }

    fn forget_recovered(&mut self, now: Instant) {
        let window = self.policy.window;
        self.failing.retain(|_, failure| failure.up_since.is_none_or(|since| now.duration_since(since) < window));
        // No more deaths than the limit are stored: a supervisor that continues after an escalation must not make this grow.
        while self.deaths.len() > self.policy.total_limit as usize
            || self.deaths.front().is_some_and(|death| now.duration_since(*death) >= window)
        {
            self.deaths.pop_front();
        }
    }
}

impl RestartPolicy {
    /// The delay before the nth restart in a row, counted from 1, without jitter.
    pub fn delay(&self, in_row: u32) -> Duration {
        match in_row.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => 2_u32
                .checked_pow(doublings)
                .and_then(|factor| self.first_delay.checked_mul(factor))
                .unwrap_or(Duration::MAX)
                .min(self.longest_delay),
        }
    }
}

fn spread(delay: Duration, fraction: f64) -> Duration {
    delay + delay.mul_f64(fraction.clamp(0.0, 1.0) / 2.0)
}
