//! The series that the events on record determine.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::life::Props;
use super::super::super::stage::lock;
use super::super::super::store::Committed;
use super::expected::{Expected, POSTED};
use super::witness::Witness;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Event, RoundClosed, order_of_handling};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::round::{is_tied, message_id};
use crate::domain::trigger::Trigger;
use crate::domain::vote::Stance;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::room::platform_in;
use crate::telemetry::instruments::{error_label, platform_label};

pub(super) fn expect(props: &Props, witness: &Witness, expected: &mut Expected) {
    let committed = lock(&props.store.committed);
    by_writer(&committed, witness, expected);
    let mut rooms: BTreeMap<&ChannelKey, BTreeMap<Seq, &Committed>> = BTreeMap::new();
    for entry in committed.iter() {
        rooms.entry(&entry.channel_key).or_default().insert(entry.recorded.seq, entry);
    }
    for (channel_key, entries) in rooms {
        let mut handled: Vec<_> = entries.values().map(|entry| entry.recorded.clone()).collect();
        order_of_handling(&mut handled);
        let mut room = Room {
            channel_key,
            witness,
            expected,
            rounds: BTreeMap::new(),
            held: BTreeMap::new(),
            asked_of_model: None,
            owed: BTreeMap::new(),
            handled_in: u64::MAX,
        };
        for (index, recorded) in handled.iter().enumerate() {
            // What was on record at a restart is handled in a later life, with the events that were made after it.
            let made = handled[index..].iter().find(|later| !later.event.is_inbound());
            room.handled_in = made.map_or(u64::MAX, |made| entries[&made.seq].life);
            room.read(entries[&recorded.seq]);
        }
        if let (Some(last), held) = (handled.last(), std::mem::take(&mut room.held)) {
            held.into_values().for_each(|wish| room.count_dropped_wish(entries[&last.seq], wish));
        }
    }
}

/// The writer counts its events when they are committed.
fn by_writer(committed: &[Committed], witness: &Witness, expected: &mut Expected) {
    let (mut batches, mut guarded) = (BTreeSet::new(), BTreeSet::new());
    for entry in committed.iter().filter(|entry| witness.is_of(entry)) {
        let is_certain = witness.has_writer_counted(entry.at, entry.in_flight);
        expected.count("tertulia_journal_events_total{}", 1, is_certain);
        if batches.insert(entry.in_flight.batch) {
            expected.count("tertulia_journal_append_duration_seconds_count{}", 1, is_certain);
        }
        match &entry.recorded.event {
            Event::Said { message, reply, .. } => {
                let role = match message.from.role {
                    _ if message.is_event() => "event",
                    Role::Person => "user",
                    Role::Companion => "companion",
                    Role::Bot => "bot",
                };
                let platform = platform_label(platform_in(&entry.channel_key.channel));
                expected.count(format!("tertulia_messages_total{{message_role={role},platform={platform}}}"), 1, is_certain);
                // On a platform without ids of its own, journaling a statement posts it.
                if reply.is_some() && platform == "console" {
                    expected.count("tertulia_platform_sends_total{platform=console,send_outcome=posted}", 1, is_certain);
                    expected.count("tertulia_platform_send_duration_seconds_count{platform=console}", 1, is_certain);
                }
            }
            Event::Evaluated(evaluated) => {
                expected.count(format!("tertulia_evaluations_total{{decision_trigger={}}}", evaluated.trigger), 1, is_certain);
            }
            Event::Decided(decided) if decided.reason == Reason::LoopGuard && guarded.insert(entry.in_flight.batch) => {
                expected.count("tertulia_loop_guard_trips_total{}", 1, is_certain);
            }
            _ => {}
        }
    }
}

/// What a channel counts once its events are committed.
struct Room<'a> {
    channel_key: &'a ChannelKey,
    witness: &'a Witness,
    expected: &'a mut Expected,
    /// The open rounds, by their message.
    rounds: BTreeMap<Seq, Round<'a>>,
    /// Wishes that wait for the floor.
    held: BTreeMap<&'a CompanionId, Wish<'a>>,
    /// The newest statement whose repetition a model was asked to judge.
    asked_of_model: Option<(Seq, &'a Committed)>,
    /// The owed replies, and whether no inbound event since may have dropped them.
    owed: BTreeMap<Ticket, bool>,
    /// The life in which the event that is being read is handled.
    handled_in: u64,
}

type Wish<'a> = (&'a Committed, &'a Decided);

#[derive(Default)]
struct Round<'a> {
    asked: Vec<CompanionId>,
    /// Wishes to speak are counted when the round ends, which may be in another life.
    wishes: Vec<Wish<'a>>,
    /// Companions that did not answer.
    missing: Vec<&'a Committed>,
}

impl<'a> Room<'a> {
    fn read(&mut self, entry: &'a Committed) {
        let event = &entry.recorded.event;
        if event.is_inbound() && !matches!(event, Event::Said { .. }) {
            self.owed.values_mut().for_each(|is_certain| *is_certain = false);
        }
        match &entry.recorded.event {
            Event::RoundOpened(opened) => {
                let round = Round { asked: opened.asked.clone(), ..Round::default() };
                self.rounds.insert(opened.message, round);
            }
            Event::RoundClosed(closed) => self.closed(entry, closed),
            Event::HeldSelected { selected, others } => {
                for (companion, wish) in std::mem::take(&mut self.held) {
                    if companion == selected {
                        self.count_wish(entry, wish, "won");
                    } else if others.iter().any(|other| other.companion == *companion) {
                        self.count_wish(entry, wish, "lost");
                    } else {
                        self.count_dropped_wish(entry, wish);
                    }
                }
            }
            // A round that is cleared has no end on record.
            Event::Cleared { .. } => {
                for wish in std::mem::take(&mut self.rounds).into_values().flat_map(|round| round.wishes) {
                    if self.handled_in == entry.life {
                        self.count_wish(entry, wish, "none");
                    } else {
                        self.count_dropped_wish(entry, wish);
                    }
                }
                for wish in std::mem::take(&mut self.held).into_values() {
                    self.count_dropped_wish(entry, wish);
                }
            }
            Event::Evaluated(evaluated) => {
                let dropped = self.held.remove(&evaluated.companion);
                dropped.into_iter().for_each(|wish| self.count_dropped_wish(entry, wish));
                // A companion that is asked again while its round is open loses its earlier wish.
                let is_its = |wish: &mut Wish<'_>| wish.1.companions.contains(&evaluated.companion);
                let wishes = self.rounds.values_mut().flat_map(|round| round.wishes.extract_if(.., is_its)).collect::<Vec<_>>();
                wishes.into_iter().for_each(|wish| self.count_wish(entry, wish, "none"));
            }
            Event::Decided(decided) => self.decided(entry, decided),
            Event::Unanswered { companion, trigger, error, .. } => {
                let error = error_label(error);
                self.count(
                    entry,
                    format!("tertulia_evaluations_unanswered_total{{decision_trigger={trigger},error_type={error}}}"),
                    1,
                );
                self.count_duration(entry, *trigger, 1);
                let round = self.rounds.values_mut().rev().find(|round| round.asked.contains(companion));
                round.into_iter().for_each(|round| round.missing.push(entry));
            }
            Event::ReplyOwed { ticket, .. } => {
                self.owed.insert(*ticket, true);
            }
            // The attempt that was stopped counts as a failed one.
            Event::Replanned { ticket, next, .. } | Event::ReplyExtended { ticket, next, .. } => {
                let is_certain = self.owed.remove(ticket).unwrap_or_default();
                self.owed.insert(*next, is_certain);
                self.count_stopped(entry, "replanned");
            }
            Event::Cancelled { ticket: Some(ticket), .. } => {
                self.owed.remove(ticket);
                self.count_stopped(entry, "cancelled");
            }
            Event::Said { reply: Some(ticket), .. } => {
                let is_certain = self.owed.remove(ticket).unwrap_or_default();
                if self.witness.is_of(entry) {
                    let is_certain = is_certain && self.witness.has_channel_counted(self.channel_key, entry.at, entry.in_flight);
                    self.expected.count(POSTED, 1, is_certain);
                }
            }
            Event::ReplyFailed { ticket, error, .. } => {
                self.owed.remove(ticket);
                self.count(entry, format!("tertulia_statements_failed_total{{error_type={}}}", error_label(error)), 1);
            }
            Event::StageChanged { to, cause, .. } => {
                self.count(entry, format!("tertulia_closing_transitions_total{{closing_cause={cause},closing_to={to}}}"), 1);
            }
            Event::RepetitionAsked { message, .. } => self.asked_of_model = Some((*message, entry)),
            Event::RepetitionJudged { message, detections, call, .. } => {
                let asked = self.asked_of_model.filter(|(asked, _)| asked == message).map(|(_, asked)| asked);
                let (found, is_by_model) = (*detections > 0, call.is_some() || asked.is_some());
                // A channel that asks again after a restart ends the turn of the statement once more.
                let is_same = |asked: &Committed| {
                    asked.life == entry.life && self.witness.survived(self.channel_key, asked.in_flight.since, entry.at)
                };
                if asked.is_some_and(|asked| !is_same(asked)) && self.witness.is_of(entry) {
                    self.expected.count(POSTED, 1, false);
                }
                let judge = if is_by_model { "model" } else { "lexical" };
                self.count(
                    entry,
                    format!("tertulia_repetition_judgements_total{{repetition_found={found},repetition_judge={judge}}}"),
                    1,
                );
                self.count(entry, "tertulia_repetition_score_ratio_count{}".to_owned(), 1);
            }
            _ => {}
        }
    }

    fn decided(&mut self, entry: &'a Committed, decided: &'a Decided) {
        let is_wish = decided.ticket.is_some() && decided.decision == Decision::Yes;
        let vote = decided.vote.as_ref().filter(|_| is_wish);
        if let Some(round) = vote.and_then(|vote| self.rounds.iter_mut().find(|(seq, _)| message_id(**seq) == vote.message_id)) {
            round.1.wishes.push((entry, decided));
            return;
        }
        let times = decided.companions.len() as u64;
        self.count(entry, series_of(decided), times);
        if decided.ticket.is_some() {
            self.count_duration(entry, decided.trigger, times);
        }
    }

    fn closed(&mut self, entry: &'a Committed, closed: &RoundClosed) {
        let Round { wishes, missing, .. } = self.rounds.remove(&closed.message).unwrap_or_default();
        let outcome = if closed.selected.is_some() { "selected" } else { "nobody" };
        self.count(entry, format!("tertulia_rounds_total{{round_outcome={outcome}}}"), 1);
        self.count(entry, "tertulia_round_duration_seconds_count{}".to_owned(), 1);
        let speak = closed.states.iter().filter(|state| state.state == Stance::Speak).count();
        self.count(entry, "tertulia_round_votes_total{decision_state=speak}".to_owned(), speak as u64);
        self.count(entry, "tertulia_round_votes_total{decision_state=listen}".to_owned(), (closed.states.len() - speak) as u64);
        let is_tied = closed.selected.as_ref().is_some_and(|selected| is_tied(&closed.states, selected));
        self.count(entry, "tertulia_round_ties_total{}".to_owned(), u64::from(is_tied));
        self.count(entry, "tertulia_round_missing_votes_total{}".to_owned(), missing.len() as u64);
        for (wish, decided) in wishes {
            if let Some(companion) = decided.companions.first().filter(|companion| closed.held.contains(companion)) {
                self.held.insert(companion, (wish, decided));
                continue;
            }
            let has_lost = |companion: &CompanionId| closed.others.iter().any(|other| other.companion == *companion);
            let floor = match decided.companions.first() {
                Some(companion) if closed.selected.as_ref() == Some(companion) => "won",
                Some(companion) if has_lost(companion) => "lost",
                _ => "none",
            };
            self.count_wish(entry, (wish, decided), floor);
        }
    }

    /// A wish to speak, counted at the end of its round. A restored channel forgets a wish that is no longer wanted.
    fn count_wish(&mut self, end: &Committed, (wish, decided): Wish<'_>, floor: &str) {
        if !self.witness.is_of(end) {
            return;
        }
        let is_same = wish.life == end.life && self.witness.survived(self.channel_key, wish.in_flight.since, end.at);
        let is_wanted = floor != "none";
        let is_certain = self.witness.has_channel_counted(self.channel_key, end.at, end.in_flight) && (is_same || is_wanted);
        self.expected.count(series_of(decided), 1, is_certain);
        self.expected.count(format!("tertulia_round_wishes_total{{decision_floor={floor}}}"), 1, is_certain);
        if decided.ticket.is_some() {
            self.expected.count(duration_of(decided.trigger), 1, is_certain);
        }
    }

    /// A held wish that was dropped, in any life from its own to that of `end`.
    fn count_dropped_wish(&mut self, end: &Committed, (wish, decided): Wish<'_>) {
        if (wish.life..=end.life.max(self.handled_in)).contains(&self.witness.life) {
            self.expected.count(series_of(decided), 1, false);
            self.expected.count("tertulia_round_wishes_total{decision_floor=none}", 1, false);
            self.expected.count(duration_of(decided.trigger), 1, false);
        }
    }

    /// A stopped attempt counts as a failed statement.
    fn count_stopped(&mut self, entry: &Committed, error: &str) {
        if self.witness.is_of(entry) {
            let series = format!("tertulia_statements_failed_total{{error_type={}}}", error_label(error));
            let is_certain = self.witness.has_channel_counted(self.channel_key, entry.at, entry.in_flight);
            self.expected.count(series, 1, is_certain);
        }
    }

    fn count_duration(&mut self, entry: &Committed, trigger: Trigger, times: u64) {
        self.count(entry, duration_of(trigger), times);
    }

    fn count(&mut self, entry: &Committed, series: String, times: u64) {
        if self.witness.is_of(entry) {
            self.expected.count(series, times, self.witness.has_channel_counted(self.channel_key, entry.at, entry.in_flight));
        }
    }
}

fn duration_of(trigger: Trigger) -> String {
    format!("tertulia_decision_duration_seconds_count{{decision_trigger={trigger}}}")
}

fn series_of(decided: &Decided) -> String {
    let Decided { decision, reason, trigger, .. } = decided;
    format!("tertulia_decisions_total{{decision={decision},decision_reason={reason},decision_trigger={trigger}}}")
}
