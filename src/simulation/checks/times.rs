//! Checks deadlines by the time at which events were really on disk: rounds close, and questions end.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::life::Props;
use super::super::stage::{GuildQuarantine, Stage, lock};
use super::super::store::Committed;
use crate::actors::runtime::guild::RESTARTS;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::journal::channel_key::ChannelKey;

/// The time that the store and the scheduler may add to a deadline.
const SLACK: Duration = Duration::from_secs(12);

/// A writer that cannot write dies, and each restart is later. This is the longest wait after the disk has space again, including jitter.
const LONGEST_WAY_BACK: Duration = Duration::from_secs(45);

/// Calculates how late an event is, without the time in which something delayed it.
pub(super) struct Lateness {
    disturbed: Vec<Duration>,
    quarantines: Vec<GuildQuarantine>,
    full: Option<(Duration, Duration)>,
}

impl Lateness {
    pub(super) fn of(stage: &Stage) -> Self {
        let mut disturbed = stage.notes().disturbed.clone();
        disturbed.extend(stage.rng.panicked());
        let mut quarantines = stage.notes().quarantines.clone();
        let lives = stage.notes().lives.clone();
        for quarantine in &mut quarantines {
            let next_life = lives.iter().find(|started| **started > quarantine.seen_at);
            quarantine.until = next_life.map_or(quarantine.until, |started| quarantine.until.min(*started));
        }
        Self { disturbed, quarantines, full: stage.plan.full }
    }

    pub(super) fn is_late(&self, channel_key: &ChannelKey, from: Duration, to: Duration, most: Duration) -> bool {
        self.undisturbed(channel_key, from, to) > most + SLACK
    }

    /// The time from the last disturbance in this span to its end. The whole span if there was none.
    pub(super) fn undisturbed(&self, channel_key: &ChannelKey, from: Duration, to: Duration) -> Duration {
        let is_within = |at: &Duration| (from..=to).contains(at);
        let quarantines = self.quarantines.iter().filter(|quarantine| quarantine.guild == channel_key.guild.as_str());
        let released = quarantines.filter(|quarantine| quarantine.seen_at <= to).map(|quarantine| quarantine.until.min(to));
        // An actor that was killed before may still be away.
        let began_anew = self.disturbed.iter().filter(|at| **at <= to).map(|at| back(&self.disturbed, *at));
        let full = self.full.filter(|(since, until)| *since <= to && from <= *until).map(|(_, until)| until + LONGEST_WAY_BACK);
        let last = began_anew.chain(released.filter(is_within)).chain(full).max().unwrap_or(from).max(from);
        to.saturating_sub(last)
    }
}

/// A round ends by its deadline, a question by the pool's deadline plus a margin. A restarted actor has the time again.
pub(super) fn check(props: &Props) {
    let stage = &props.stage;
    let rules = &stage.plan.rules;
    let lateness = Lateness::of(stage);
    let patience = Duration::from_secs_f64(rules.state_timeout);
    // The pool's own deadline plus the five seconds that a channel waits longer, or the round's.
    let question = patience.max(Duration::from_secs_f64(rules.side_timeout + 5.0));
    let is_late =
        |channel_key: &ChannelKey, from: Duration, to: Duration, most: Duration| lateness.is_late(channel_key, from, to, most);
    let mut rounds = BTreeMap::<(ChannelKey, Seq), Duration>::new();
    let mut questions = BTreeMap::<(ChannelKey, Ticket), Duration>::new();
    let committed = lock(&props.store.committed).clone();
    // Where messages kill, channels restart all the time.
    let is_checked = |entry: &&Committed| !stage.plan.is_poisoned(entry.channel_key.guild.as_str());
    for Committed { at, channel_key, recorded, .. } in committed.iter().filter(is_checked) {
        match &recorded.event {
            Event::RoundOpened(opened) => drop(rounds.insert((channel_key.clone(), opened.message), *at)),
            Event::RoundClosed(closed) => {
                if let Some(since) = rounds.remove(&(channel_key.clone(), closed.message))
                    && is_late(channel_key, since, *at, patience)
                {
                    let held = (*at - since).as_secs_f64();
                    stage.violate(format!("{channel_key}: the round about {} was open for {held:.1} s", closed.message));
                }
            }
            Event::Evaluated(evaluated) => drop(questions.insert((channel_key.clone(), evaluated.ticket), *at)),
            Event::Decided(decided) => {
                if let Some(ticket) = decided.ticket
                    && let Some(since) = questions.remove(&(channel_key.clone(), ticket))
                    && is_late(channel_key, since, *at, question)
                {
                    stage.violate(format!("{channel_key}: question {ticket} took {:.1} s", (*at - since).as_secs_f64()));
                }
            }
            Event::Unanswered { ticket, .. } => {
                if let Some(since) = questions.remove(&(channel_key.clone(), *ticket))
                    && is_late(channel_key, since, *at, question)
                {
                    stage.violate(format!(
                        "{channel_key}: question {ticket} was given up after {:.1} s",
                        (*at - since).as_secs_f64()
                    ));
                }
            }
            _ => {}
        }
    }
}

/// The latest return of an actor that was killed at this moment. It restarts later each time it is killed in a row.
fn back(disturbed: &[Duration], at: Duration) -> Duration {
    let in_row = disturbed.iter().filter(|other| **other <= at && at - **other < RESTARTS.window).count();
    at + RESTARTS.delay(u32::try_from(in_row).unwrap_or(u32::MAX)).mul_f64(1.5)
}
