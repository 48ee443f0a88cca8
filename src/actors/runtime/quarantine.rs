//! Decides what happens to a guild whose actors die too often: it is restarted as a whole once, then quarantined.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::messages::guilds::Quarantined;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::domain::text::first;

#[cfg(test)]
mod tests;

/// A reason is cut after this many characters, because it is shown in a list.
const LONGEST_REASON: usize = 300;

/// How long guilds are quarantined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinePolicy {
    /// The first duration. Each further quarantine doubles it.
    pub first: Duration,
    pub longest: Duration,
    /// After this long without a failure, a guild's history is dropped.
    pub forget_after: Duration,
}

/// What to do with a guild that exceeded its restart limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Start the guild again, with everything in it.
    RestartWhole,
    /// Do not start it before this moment, or before an operator releases it.
    Quarantine { until: Moment },
}

/// The guilds in quarantine, and those that failed recently. Other guilds have no entry.
#[derive(Debug)]
pub struct Quarantine {
    policy: QuarantinePolicy,
    guilds: BTreeMap<GuildId, History>,
}

#[derive(Debug)]
struct History {
    times: u32,
    /// When the guild last failed: the restart as a whole, or the end of the quarantine.
    last: Moment,
    current: Option<Quarantined>,
}

impl Quarantine {
    pub fn new(policy: QuarantinePolicy) -> Self {
        Self { policy, guilds: BTreeMap::new() }
    }

    /// The guild exceeded its restart limit.
    pub fn over_limit(&mut self, guild: &GuildId, reason: &str, now: Moment) -> Ruling {
        self.forget_healthy(now);
        let Some(history) = self.guilds.get_mut(guild) else {
            self.guilds.insert(guild.clone(), History { times: 0, last: now, current: None });
            return Ruling::RestartWhole;
        };
        if let Some(already) = &history.current {
            return Ruling::Quarantine { until: already.until };
        }
        history.times = history.times.saturating_add(1);
        let until = now + self.policy.duration(history.times);
        history.last = until;
        history.current =
            Some(Quarantined { guild: guild.clone(), reason: shown(reason), since: now, until, times: history.times });
        Ruling::Quarantine { until }
    }

    /// The guilds whose quarantine is over at this moment, each returned once. They may be started again.
    pub fn take_due(&mut self, now: Moment) -> Vec<GuildId> {
        let mut due = Vec::new();
        for (guild, history) in &mut self.guilds {
            if history.current.as_ref().is_some_and(|entry| entry.until <= now) {
                history.current = None;
                due.push(guild.clone());
            }
        }
        due
    }

    /// An operator releases the guild, and its history is dropped. Returns the entry if it was in quarantine. It may be started again.
    pub fn release(&mut self, guild: &GuildId) -> Option<Quarantined> {
        self.get(guild)?;
        self.guilds.remove(guild)?.current
    }

    /// The guild's entry, if it is in quarantine. It remains after the end of the quarantine until it is taken or released.
    pub fn get(&self, guild: &GuildId) -> Option<&Quarantined> {
        self.guilds.get(guild)?.current.as_ref()
    }

    /// All guilds in quarantine, by id.
    pub fn list(&self) -> impl Iterator<Item = &Quarantined> {
        self.guilds.values().filter_map(|history| history.current.as_ref())
    }

    fn forget_healthy(&mut self, now: Moment) {
        let quiet = self.policy.forget_after;
        self.guilds.retain(|_, history| history.current.is_some() || now.since(history.last) < quiet);
    }
}

/// The part of a reason that is shown.
pub fn shown(reason: &str) -> String {
    first(reason, LONGEST_REASON).to_owned()
}

impl QuarantinePolicy {
    /// The duration of the nth quarantine in a row, counted from 1.
    fn duration(&self, times: u32) -> Duration {
        let doubled = 2_u32.checked_pow(times.saturating_sub(1)).and_then(|factor| self.first.checked_mul(factor));
        doubled.unwrap_or(Duration::MAX).min(self.longest)
    }
}
