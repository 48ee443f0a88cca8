//! Replies that were not made: each for a fault that explains it. Once faults are over there is none, so that every reply is made.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::faults::{Fault, What};
use super::super::life::Props;
use super::super::plan::EXTERNAL;
use super::super::platform::UNPOSTABLE_FOR;
use super::super::stage::{Stage, lock};
use super::super::store::Committed;
use crate::domain::conversation::DELETED;
use crate::domain::event::Event;
use crate::domain::id::CompanionId;
use crate::journal::channel_key::ChannelKey;

/// An endpoint that failed is left alone for a while, twice as long as it asked for or as it is left alone by itself.
const TROUBLE_LASTS: Duration = Duration::from_secs(60);
/// A reply that was not made, and since when it could have been.
struct Failure<'a> {
    channel_key: &'a ChannelKey,
    companion: &'a CompanionId,
    error: &'a str,
    since: Duration,
    until: Duration,
    /// From when it was owed to when it was given up, by the wall clock of its channel.
    waited: Duration,
    /// How many others were owed at some time of that.
    rivals: u64,
}

/// When each reply was owed, by the process's clock. A channel owes one at a time: one that never ended on record was dropped by the next.
fn owed_times(committed: &[Committed]) -> Vec<(Duration, Duration)> {
    let (mut times, mut open) = (Vec::new(), BTreeMap::new());
    for Committed { at, channel_key, recorded, .. } in committed {
        let over = match &recorded.event {
            Event::ReplyOwed { ticket, .. } => {
                times.push((*at, Duration::MAX));
                open.insert(channel_key, (*ticket, times.len() - 1))
            }
            Event::ReplyFailed { ticket, .. } | Event::Said { reply: Some(ticket), .. } => {
                open.get(channel_key).filter(|(owed, _)| owed == ticket).copied()
            }
            _ => None,
        };
        if let Some((_, over)) = over.filter(|(_, over)| times[*over].1 == Duration::MAX) {
            times[over].1 = *at;
        }
    }
    times
}

/// Every reply that failed had a reason to.
pub(super) fn check(props: &Props) {
    let stage = &props.stage;
    let faults = stage.notes().faults.clone();
    let lives = stage.notes().lives.clone();
    let committed = lock(&props.store.committed);
    let times = owed_times(&committed);
    let mut owed = BTreeMap::new();
    for entry in committed.iter() {
        match &entry.recorded.event {
            Event::ReplyOwed { ticket, .. } => drop(owed.insert((entry.channel_key.clone(), *ticket), entry.clone())),
            Event::ReplyFailed { ticket, companion, error, .. } => {
                let Some(Committed { at, life, recorded, .. }) = owed.remove(&(entry.channel_key.clone(), *ticket)) else {
                    continue;
                };
                // A process that begins anew makes it anew: what kept those before it from making it counts no more.
                let since = if life == entry.life { at } else { lives[entry.life as usize - 1] };
                if let Event::ReplyOwed { messages, .. } = &recorded.event
                    && **error == *DELETED
                {
                    if !messages.is_empty() {
                        stage.violate(format!(
                            "{}: {companion} owed {ticket} to {messages:?}, of which nothing was taken back",
                            entry.channel_key
                        ));
                    }
                    continue;
                }
                let waited = entry.recorded.at.since(recorded.at);
                let meanwhile = times.iter().filter(|(from, to)| *from <= entry.at && *to >= since).count() as u64;
                let rivals = meanwhile.saturating_sub(1);
                let failure =
                    Failure { channel_key: &entry.channel_key, companion, error, since, until: entry.at, waited, rivals };
                if !failure.is_explained(&faults, stage) {
                    stage.violate(format!(
                        "{}: {companion} owed {ticket} and failed with {error} after {:.1} s for no reason",
                        entry.channel_key,
                        (entry.at - since).as_secs_f64()
                    ));
                }
            }
            _ => {}
        }
    }
}

impl Failure<'_> {
    fn is_explained(&self, faults: &[Fault], stage: &Stage) -> bool {
        let within = |before: Duration| {
            faults
                .iter()
                .filter(move |fault| (self.since.saturating_sub(before)..=self.until).contains(&fault.at))
                .map(|fault| &fault.what)
        };
        let mut meanwhile = within(Duration::ZERO);
        let is_its = |guild: &crate::domain::id::GuildId, companion: &Option<CompanionId>| {
            *guild == self.channel_key.guild && companion.as_ref().is_none_or(|companion| companion == self.companion)
        };
        let has_failed = |what: &What| matches!(what, What::Failed { code, guild, companion } if *code == self.error && is_its(guild, companion));
        let is_platforms = |what: &What| matches!(what, What::Platform(guild) if *guild == self.channel_key.guild);
        let is_making = |what: &What| matches!(what, What::Killed("reply or delivery"));
        match self.error {
            // Nobody waits for less.
            "timeout" if self.companion.as_str() == EXTERNAL => {
                self.waited.as_secs_f64() >= stage.plan.rules.external_patience.least
            }
            "timeout" => {
                let least = Duration::from_secs_f64(stage.plan.rules.main_timeouts.least);
                let is_slow = |what: &What| match what {
                    What::Called(takes) => *takes > least / 8,
                    What::Killed(sort) => *sort == "pool",
                    What::Failed { .. } => true,
                    _ => false,
                };
                // It may have waited for somebody else's call.
                self.until - self.since >= least && within(TROUBLE_LASTS).any(is_slow)
            }
            "empty" => meanwhile.any(|what| matches!(what, What::Wordless { guild, companion } if is_its(guild, companion))),
            // Where nothing could be posted lately, no words are written.
            "refused" => meanwhile.any(has_failed) || within(UNPOSTABLE_FOR).any(is_platforms),
            "unreachable" => meanwhile.any(|what| has_failed(what) || is_platforms(what) || is_making(what)),
            // Who is shed finds a queue that is full of others.
            "overloaded" => self.rivals >= stage.plan.rules.least_queue || meanwhile.any(has_failed),
            "left_alone" => within(TROUBLE_LASTS).any(|what| matches!(what, What::Failed { .. } | What::Called(_))),
            "absent" => {
                let is_gone = |what: &What| matches!(what, What::CompanionSet(cast) if !cast.contains(&self.companion.as_str()));
                // It may have been so before.
                within(self.since).any(is_gone)
            }
            _ => false,
        }
    }
}
