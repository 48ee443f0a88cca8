//! Checks that a fault explains every failed reply. Once faults are over, every reply must be made.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::faults::{Fault, FaultKind};
use super::super::life::Props;
use super::super::plan::EXTERNAL;
use super::super::platform::UNPOSTABLE_FOR;
use super::super::stage::{Stage, lock};
use super::super::store::Committed;
use crate::domain::conversation::{CLOSED, DELETED, INTERRUPTED, UNVOICED};
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Ticket};
use crate::journal::channel_key::ChannelKey;

/// Twice the longest time that a circuit breaker stays open: 10 s by default, and up to 30 s if the endpoint asks for a pause.
const BREAKER_OPEN_FOR: Duration = Duration::from_secs(60);
/// A failed reply. Faults between `since` and `until` can explain it, and some kinds of faults before.
struct Failure<'a> {
    channel_key: &'a ChannelKey,
    companion: &'a CompanionId,
    error: &'a str,
    since: Duration,
    until: Duration,
    /// The time from when it was owed until it failed, by the wall clock.
    waited: Duration,
    /// The number of other replies that were owed in that time.
    rivals: u64,
}

/// The span in which each reply was owed, by the time of the run. A late statement is owed besides that of the companion with the floor. Any other
/// reply without an end on record is owed until the next one of its channel.
fn owed_times(committed: &[Committed]) -> Vec<(Duration, Duration)> {
    let (mut times, mut open) =
        (Vec::<(Duration, Duration)>::new(), BTreeMap::<&ChannelKey, BTreeMap<Ticket, (usize, bool)>>::new());
    for Committed { at, channel_key, recorded, .. } in committed {
        let open = open.entry(channel_key).or_default();
        match &recorded.event {
            Event::ReplyOwed { ticket, .. } => {
                for (_, (index, _)) in open.extract_if(.., |_, (_, is_late)| !*is_late) {
                    times[index].1 = *at;
                }
                times.push((*at, Duration::MAX));
                open.insert(*ticket, (times.len() - 1, false));
            }
            Event::Replanned { ticket, next, .. } | Event::ReplyExtended { ticket, next, .. } => {
                let owed = open.remove(ticket);
                open.extend(owed.map(|owed| (*next, owed)));
            }
            Event::FloorExpired { ticket, .. } => {
                open.entry(*ticket).and_modify(|(_, is_late)| *is_late = true);
            }
            Event::ReplyFailed { ticket, .. }
            | Event::Cancelled { ticket: Some(ticket), .. }
            | Event::Said { reply: Some(ticket), .. } => {
                if let Some((index, _)) = open.remove(ticket) {
                    times[index].1 = *at;
                }
            }
            _ => {}
        }
    }
    times
}

/// Checks that every failed reply has an explanation.
pub(super) fn check(props: &Props) {
    let stage = &props.stage;
    let faults = stage.notes().faults.clone();
    let lives = stage.notes().lives.clone();
    let committed = lock(&props.store.committed);
    let times = owed_times(&committed);
    let mut owed = BTreeMap::new();
    for entry in committed.iter() {
        match &entry.recorded.event {
            // Each attempt of a reply has the whole time limit.
            Event::ReplyOwed { ticket, .. }
            | Event::Replanned { next: ticket, .. }
            | Event::ReplyExtended { next: ticket, .. } => {
                drop(owed.insert((entry.channel_key.clone(), *ticket), entry.clone()));
            }
            Event::ReplyFailed { ticket, companion, error, .. } => {
                let Some(Committed { at, life, recorded, .. }) = owed.remove(&(entry.channel_key.clone(), *ticket)) else {
                    continue;
                };
                // A restarted process makes the reply again. Faults of earlier lives do not count.
                let since = if life == entry.life { at } else { lives[entry.life as usize - 1] };
                if let Event::ReplyOwed { messages, .. } | Event::Replanned { messages, .. } = &recorded.event
                    && **error == *DELETED
                {
                    if !messages.is_empty() {
                        stage.violate(format!(
                            "{}: {companion} owed {ticket} to {messages:?}, of which none was deleted",
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
        let has_failed = |what: &FaultKind| matches!(what, FaultKind::Failed { code, guild, companion } if *code == self.error && is_its(guild, companion));
        let is_platforms = |what: &FaultKind| matches!(what, FaultKind::Platform(guild) if *guild == self.channel_key.guild);
        let is_making = |what: &FaultKind| matches!(what, FaultKind::Killed("reply or delivery"));
        let has_call = stage.plan.has_call(self.channel_key.guild.as_str());
        match self.error {
            // No reply times out before the shortest limit in the settings of any life.
            "timeout" if self.companion.as_str() == EXTERNAL => {
                self.waited.as_secs_f64() >= stage.plan.rules.external_patience.least
            }
            "timeout" => {
                let least = Duration::from_secs_f64(stage.plan.rules.main_timeouts.least);
                let is_slow = |what: &FaultKind| match what {
                    FaultKind::Called(takes) => *takes > least / 8,
                    FaultKind::Killed(sort) => *sort == "pool",
                    FaultKind::Failed { .. } => true,
                    _ => false,
                };
                // It may have waited for the call of another reply.
                self.until - self.since >= least && within(BREAKER_OPEN_FOR).any(is_slow)
            }
            "empty" | "only_thoughts" | "no_statement" => {
                meanwhile.any(|what| matches!(what, FaultKind::Wordless { guild, companion } if is_its(guild, companion)))
            }
            "refused" => meanwhile.any(has_failed),
            // If a post was refused lately, no statement is written.
            "unpostable" => within(UNPOSTABLE_FOR).any(is_platforms),
            "post_refused" | "undelivered" => meanwhile.any(is_platforms),
            "unreachable" => {
                // A spoken answer was lost after its first sentence, for whatever reason.
                let is_lost = |what: &FaultKind| has_call && matches!(what, FaultKind::Failed { .. } | FaultKind::Called(_));
                meanwhile.any(|what| has_failed(what) || is_making(what) || is_lost(what))
            }
            // The pool sheds a call only if other calls fill the queue.
            "overloaded" => self.rivals >= stage.plan.rules.least_queue || meanwhile.any(has_failed),
            // The check of rooms verifies which companion is silent.
            CLOSED => true,
            // The check of calls verifies what was heard, and who interrupted it.
            INTERRUPTED | UNVOICED => has_call,
            // A call that hung may have begun one timeout before its failure opened the breaker.
            "circuit_open" => {
                let longest = Duration::from_secs_f64(stage.plan.rules.main_timeouts.most);
                within(BREAKER_OPEN_FOR + longest).any(|what| matches!(what, FaultKind::Failed { .. } | FaultKind::Called(_)))
            }
            "absent" => {
                let is_gone =
                    |what: &FaultKind| matches!(what, FaultKind::CompanionSet(cast) if !cast.contains(&self.companion.as_str()));
                // The companion may have been removed at any earlier time.
                within(self.since).any(is_gone)
            }
            _ => false,
        }
    }
}
