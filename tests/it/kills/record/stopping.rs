//! What stop phrases cancel, and what settles by that.

use std::collections::BTreeSet;

use serde_json::Value;

use super::floor::Turn;
use super::{Record, number, numbers, text};

/// What a stop phrase cancelled.
pub(super) struct Cancel {
    companion: String,
    /// The messages that it would have answered, and the others of its selection.
    answered: BTreeSet<u64>,
    others: Vec<String>,
}

impl Record<'_> {
    /// Whether a person's message is about a companion that answers these messages: it addresses the companion, or its author wrote one of them and
    /// addresses nobody else.
    pub(super) fn concerns(&self, message: u64, companion: &str, answered: &BTreeSet<u64>) -> bool {
        let Some(message) = self.messages.get(&message).filter(|message| !message.is_statement) else { return false };
        let is_elsewhere = message.others || !message.addressed.is_empty();
        let wrote = |seq: &u64| self.messages.get(seq).is_some_and(|other| !other.is_statement && other.from == message.from);
        message.calls(companion) || !is_elsewhere && answered.iter().any(wrote)
    }

    /// A reply or a selected companion is cancelled: nothing is said, and nobody takes over.
    pub(super) fn cancelled(&mut self, event: &Value) {
        let (companion, phrase) = (text(event, "companion").to_owned(), number(event, "message"));
        let (answered, others, upto, selected_at) = if event["ticket"].is_null() {
            self.counts.cancelled_turns += 1;
            let Turn::Of { others, selected_at, .. } = self.take_turn(&companion) else {
                return self.break_rule("it was not selected", event);
            };
            (self.answered_by_selected(&companion, selected_at, phrase), others, selected_at, selected_at)
        } else {
            self.counts.cancelled += 1;
            let ticket = number(event, "ticket");
            let floor = self.floor.take_if(|reply| reply.companion == companion && reply.ticket == ticket);
            let Some(reply) = floor.or_else(|| self.take_late(event)) else {
                return self.break_rule("it owes no such reply", event);
            };
            self.answer_with(&reply.messages, Err("cancelled".to_owned()));
            (reply.messages, reply.others, reply.upto, reply.selected_at)
        };
        let asks_to_stop = self.messages.get(&phrase).is_some_and(|message| message.asks_to_stop);
        if phrase <= upto || !asks_to_stop || !self.concerns(phrase, &companion, &answered) {
            self.break_rule("nobody asks it to stop", event);
        }
        // No trigger that lost this floor follows. What came later, or what a companion was asked about since in another round, did not lose it: an
        // address that had merged with such a question waits in its place.
        for other in &others {
            let Some(seat) = self.seats.get_mut(other) else { continue };
            if seat.asked.or(seat.wish).is_none() {
                seat.cancelled.extend(answered.range(..=selected_at));
            }
        }
        self.seats.entry(companion.clone()).and_modify(|seat| seat.cancelled.extend(answered.iter().chain([&phrase])));
        self.cancels.entry(phrase).or_default().push(Cancel { companion, answered, others });
    }

    /// The author of what a companion is asked about, or wants to answer, takes it back.
    pub(super) fn retracted(&mut self, companion: &str, event: &Value) {
        self.counts.retracted += 1;
        let mut answered = numbers(event, "messages");
        let phrase = answered.pop_last().unwrap_or_default();
        let asks_to_stop = self.messages.get(&phrase).is_some_and(|message| message.asks_to_stop);
        if !asks_to_stop || !self.concerns(phrase, companion, &answered) {
            self.break_rule("nobody takes that back", event);
        }
        self.cancels.entry(phrase).or_default().push(Cancel { companion: companion.to_owned(), answered, others: Vec::new() });
    }

    /// What a selected companion would answer before a message: everything until it was selected, and what the same people said since.
    fn answered_by_selected(&self, companion: &str, selected_at: u64, before: u64) -> BTreeSet<u64> {
        let Some(seat) = self.seats.get(companion) else { return BTreeSet::new() };
        let (asked, later): (BTreeSet<_>, BTreeSet<_>) = seat.unsettled.range(..before).partition(|seq| **seq <= selected_at);
        let is_elsewhere = |seq: &u64| {
            self.messages
                .get(seq)
                .is_none_or(|message| (message.others || !message.addressed.is_empty()) && !message.addressed.contains(companion))
        };
        let author = |seq: &u64| self.messages.get(seq).filter(|message| !message.is_statement).map(|message| &message.from);
        let authors: BTreeSet<_> = asked.iter().filter_map(author).collect();
        let is_more = |seq: &u64| !is_elsewhere(seq) && author(seq).is_some_and(|author| authors.contains(author));
        let more: Vec<_> = later.into_iter().filter(is_more).collect();
        asked.into_iter().chain(more).collect()
    }

    fn take_turn(&mut self, companion: &str) -> Turn {
        if self.turn.is_of(companion) { std::mem::replace(&mut self.turn, Turn::Nobody) } else { Turn::Nobody }
    }

    /// Whether this is about an address that had to wait, and that its author took back.
    fn is_taken_back(&self, companion: &str, event: &Value) -> bool {
        let said: Option<Vec<_>> = numbers(event, "messages").iter().map(|seq| self.messages.get(seq)).collect();
        let said = said.unwrap_or_default();
        let Some((phrase, before)) = said.split_last() else { return false };
        phrase.asks_to_stop
            && event["trigger"] == "direct_address"
            && before.iter().any(|message| message.addressed.contains(companion))
            && said.iter().all(|message| !message.is_statement && message.from == phrase.from)
    }

    /// A stop phrase settles with what it cancelled and nothing else, for those who would have spoken and for those who were not addressed.
    pub(super) fn check_settled_by_stop(&mut self, companion: &str, event: &Value) {
        let phrase = number(event, "upto");
        let cancels = self.cancels.get(&phrase).map(Vec::as_slice).unwrap_or_default();
        let is_cancelled = |seq: &u64| *seq == phrase || cancels.iter().any(|cancel| cancel.answered.contains(seq));
        let calls = |seq: &u64| self.messages.get(seq).is_some_and(|message| message.addressed.contains(companion));
        let would_have_spoken =
            cancels.iter().any(|cancel| cancel.companion == companion || cancel.others.iter().any(|other| other == companion));
        let is_addressed = calls(&phrase) || numbers(event, "messages").iter().any(calls);
        let trigger = if calls(&phrase) { "direct_address" } else { "lull" };
        let is_its = !cancels.is_empty() && (would_have_spoken || !is_addressed);
        if self.is_taken_back(companion, event) {
            return;
        }
        if !is_its || !numbers(event, "messages").iter().all(is_cancelled) || event["trigger"] != trigger {
            self.break_rule("the stop phrase does not settle this", event);
        }
    }
}
