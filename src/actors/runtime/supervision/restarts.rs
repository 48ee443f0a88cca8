//! Decides whether and when a child that died is started again; time and chance come in as arguments.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How often children are started again, and how soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The delay before the second restart in a row; the first comes at once, each further one doubles it.
    pub first_delay: Duration,
    /// The longest delay, jitter aside.
    pub longest_delay: Duration,
    /// So many restarts in a row one child gets; its next death is too many.
    pub child_limit: u32,
    /// So many restarts all children together get within `window`; the next death is too many.
    pub total_limit: u32,
    /// A child that was up for so long begins anew; older deaths leave the sum.
    pub window: Duration,
}

/// What follows from a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again at this moment; `now` for the first restart in a row.
    RestartAt(Instant),
    /// Do not start it again: the limit is passed, and whoever supervises the supervisor decides.
    Escalate(Excess),
}

/// Which limit was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// One child died too often in a row.
    Child,
    /// The children together died too often within the window.
    Total,
}

/// The deaths of one supervisor's children. Holds nothing about children that never died.
#[derive(Debug)]
pub struct Restarts<K> {
    policy: RestartPolicy,
    troubled: BTreeMap<K, Trouble>,
    deaths: VecDeque<Instant>,
}

#[derive(Debug, Default)]
struct Trouble {
    in_row: u32,
    /// How often it was taken along since.
    along: u32,
    up_since: Option<Instant>,
}

impl<K: Ord + Clone> Restarts<K> {
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, troubled: BTreeMap::new(), deaths: VecDeque::new() }
    }

    /// The child is up: from here its uptime counts.
    pub fn started(&mut self, child: &K, now: Instant) {
        if let Some(trouble) = self.troubled.get_mut(child) {
            trouble.up_since = Some(now);
        }
    }

    /// The child died, or did not come up. `fraction` (0.0 to 1.0) spreads the delay: up to half of it is added.
    pub fn died(&mut self, child: &K, now: Instant, fraction: f64) -> Verdict {
        self.forget_recovered(now);
        self.deaths.push_back(now);
        let trouble = self.troubled.entry(child.clone()).or_default();
        trouble.in_row = trouble.in_row.saturating_add(1);
        trouble.up_since = None;
        if trouble.in_row > self.policy.child_limit {
            return Verdict::Escalate(Excess::Child);
        }
        if self.deaths.len() > self.policy.total_limit as usize {
            return Verdict::Escalate(Excess::Total);
        }
        Verdict::RestartAt(now + spread(self.policy.delay(trouble.in_row.saturating_add(trouble.along)), fraction))
    }

    /// The child ended because something else did, which counts towards no limit: when it is started again.
    pub fn dependency_lost(&mut self, child: &K, now: Instant, fraction: f64) -> Instant {
        self.forget_recovered(now);
        let trouble = self.troubled.entry(child.clone()).or_default();
        trouble.along = trouble.along.saturating_add(1);
        trouble.up_since = None;
        now + spread(self.policy.delay(trouble.in_row.saturating_add(trouble.along)), fraction)
    }

    /// The child is no longer wanted, or is given up.
    pub fn forget(&mut self, child: &K) {
        self.troubled.remove(child);
    }

    /// Restarts of this child in a row.
    pub fn in_row(&self, child: &K) -> u32 {
        self.troubled.get(child).map_or(0, |trouble| trouble.in_row)
    }

    fn forget_recovered(&mut self, now: Instant) {
        let window = self.policy.window;
        self.troubled.retain(|_, trouble| trouble.up_since.is_none_or(|since| now.duration_since(since) < window));
        // No more than the limit is kept: a supervisor that goes on after an escalation must not make this grow.
        while self.deaths.len() > self.policy.total_limit as usize
            || self.deaths.front().is_some_and(|death| now.duration_since(*death) >= window)
        {
            self.deaths.pop_front();
        }
    }
}

impl RestartPolicy {
    /// The delay before the restart of this number in a row, from 1, without jitter.
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
