//! Decides what becomes of a guild whose actors die too often: restarted as a whole once, then kept away for a while. And what is told of those
//! who are kept away.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::messages::guilds::Quarantined;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;

#[cfg(test)]
mod tests;

/// A reason is kept up to so many characters: it is shown in a list.
const LONGEST_REASON: usize = 300;

/// How long guilds are kept away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinePolicy {
    /// How long the first time; each further time doubles it.
    pub first: Duration,
    /// How long at most.
    pub longest: Duration,
    /// After so long without trouble a guild's past is forgotten.
    pub forget_after: Duration,
}

/// What follows when a guild passes its limit of restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Start the guild again, with everything in it.
    RestartWhole,
    /// Do not start it before this moment, or before an operator releases it.
    KeepAway {
        /// When the quarantine ends by itself.
        until: Moment,
    },
}

/// All guilds in quarantine, and those with a recent past. Everything else costs nothing.
#[derive(Debug)]
pub struct Quarantine {
    policy: QuarantinePolicy,
    guilds: BTreeMap<GuildId, Past>,
}

#[derive(Debug)]
struct Past {
    times: u32,
    /// When the last trouble was over: the restart as a whole, or the quarantine's end.
    last: Moment,
    now: Option<Quarantined>,
}

impl Quarantine {
    pub fn new(policy: QuarantinePolicy) -> Self {
        Self { policy, guilds: BTreeMap::new() }
    }

    /// The guild passed its limit of restarts.
    pub fn over_limit(&mut self, guild: &GuildId, reason: &str, now: Moment) -> Ruling {
        self.forget_quiet(now);
        let Some(past) = self.guilds.get_mut(guild) else {
            self.guilds.insert(guild.clone(), Past { times: 0, last: now, now: None });
            return Ruling::RestartWhole;
        };
        if let Some(already) = &past.now {
            return Ruling::KeepAway { until: already.until };
        }
        past.times = past.times.saturating_add(1);
        let until = now + self.policy.duration(past.times);
        past.last = until;
        past.now = Some(Quarantined { guild: guild.clone(), reason: shown(reason), since: now, until, times: past.times });
        Ruling::KeepAway { until }
    }

    /// The guilds whose quarantine is over at this moment, each once: they may be started again.
    pub fn take_due(&mut self, now: Moment) -> Vec<GuildId> {
        let mut due = Vec::new();
        for (guild, past) in &mut self.guilds {
            if past.now.as_ref().is_some_and(|entry| entry.until <= now) {
                past.now = None;
                due.push(guild.clone());
            }
        }
        due
    }

    /// When the next quarantine ends.
    pub fn next_end(&self) -> Option<Moment> {
        self.list().map(|entry| entry.until).min()
    }

    /// An operator lets the guild go; its past is forgotten. The entry, if it was in quarantine: it may be started again.
    pub fn release(&mut self, guild: &GuildId) -> Option<Quarantined> {
        self.get(guild)?;
        self.guilds.remove(guild)?.now
    }

    /// The guild's entry, if it is in quarantine. It stays until it is taken or released, also past its end.
    pub fn get(&self, guild: &GuildId) -> Option<&Quarantined> {
        self.guilds.get(guild)?.now.as_ref()
    }

    /// All guilds in quarantine, by id.
    pub fn list(&self) -> impl Iterator<Item = &Quarantined> {
        self.guilds.values().filter_map(|past| past.now.as_ref())
    }

    fn forget_quiet(&mut self, now: Moment) {
        let quiet = self.policy.forget_after;
        self.guilds.retain(|_, past| past.now.is_some() || now.since(past.last) < quiet);
    }
}

/// As much of a reason as is shown.
pub fn shown(reason: &str) -> String {
    reason.chars().take(LONGEST_REASON).collect()
}

impl QuarantinePolicy {
    /// How long the quarantine of this number in a row lasts, from 1.
    fn duration(&self, times: u32) -> Duration {
        let doubled = 2_u32.checked_pow(times.saturating_sub(1)).and_then(|factor| self.first.checked_mul(factor));
        doubled.unwrap_or(Duration::MAX).min(self.longest)
    }
}
