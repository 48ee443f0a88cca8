//! The floor: exactly one companion has it, and nothing is said without it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Record, at, number, numbers, text};

/// The most attempts after the first.
const MOST_REPLANS: usize = 2;

/// A reply that is owed, with the floor or late.
pub(super) struct Reply {
    pub(super) companion: String,
    /// The number of its present attempt.
    pub(super) ticket: u64,
    /// The messages that it answers, and the newest event that settled with it.
    pub(super) messages: BTreeSet<u64>,
    pub(super) upto: u64,
    /// The event at which its companion was selected.
    pub(super) selected_at: u64,
    /// Those who may take over if it fails.
    pub(super) others: Vec<String>,
    expires_at: Option<u64>,
    /// When the next attempt begins. Until then, nothing is being made.
    again_at: Option<u64>,
    replans: usize,
}

/// Who speaks next.
pub(super) enum Turn {
    Nobody,
    /// This companion was selected. If it fails, the others may take over.
    Of {
        companion: String,
        others: Vec<String>,
        selected_at: u64,
    },
    /// A reply failed. One of these takes over now, or nobody.
    OneOf(Vec<String>),
}

impl Turn {
    pub(super) fn is_of(&self, other: &str) -> bool {
        matches!(self, Self::Of { companion, .. } if companion == other)
    }
}

impl Record<'_> {
    /// Whether a companion has the floor, or was selected.
    pub(super) fn is_floor_taken(&self) -> bool {
        self.floor.is_some() || matches!(self.turn, Turn::Of { .. })
    }

    /// Whether a companion has the floor, was selected or writes late.
    pub(super) fn is_speaking(&self, companion: &str) -> bool {
        self.turn.is_of(companion) || self.floor.iter().chain(&self.late).any(|reply| reply.companion == companion)
    }

    /// The number of statements in a row. Late ones count from their selection.
    pub(super) fn streak(&self) -> u64 {
        let late = self.late.iter().filter(|late| late.selected_at >= self.newest_of_person);
        self.streak + late.count() as u64
    }

    /// The first of these is selected, and the others lose.
    pub(super) fn select(&mut self, mut candidates: Vec<String>, event: &Value) {
        for candidate in &candidates {
            self.seats.entry(candidate.clone()).and_modify(|seat| seat.wish = None);
        }
        let companion = candidates.remove(0);
        if self.is_speaking(&companion) {
            self.break_rule("it is selected while it speaks", event);
        }
        self.turn = Turn::Of { companion, others: candidates, selected_at: number(event, "handled") };
    }

    pub(super) fn reply_owed(&mut self, event: &Value) {
        let (companion, ticket) = (text(event, "companion").to_owned(), number(event, "ticket"));
        let (others, selected_at) = match std::mem::replace(&mut self.turn, Turn::Nobody) {
            Turn::Of { companion: selected, others, selected_at } if selected == companion => (others, selected_at),
            // Nobody takes the place of the one that takes over.
            Turn::OneOf(candidates) if candidates.contains(&companion) => (Vec::new(), number(event, "handled")),
            // Nobody else could be selected.
            Turn::Nobody if self.is_alone() && self.seats.get_mut(&companion).is_some_and(|seat| seat.wish.take().is_some()) => {
                (Vec::new(), number(event, "handled"))
            }
            _ => {
                self.faults.duplicated.push(format!("nobody selected {companion}, or it has spoken already: {event}"));
                (Vec::new(), 0)
            }
        };
        if self.floor.is_some() || self.is_speaking(&companion) {
            self.break_rule("the floor is not free, or it writes late", event);
        }
        self.new_ticket(ticket, event);
        self.counts.owed += 1;
        let messages = numbers(event, "messages");
        if self.seats.get(&companion).is_none_or(|seat| seat.unsettled != messages || seat.stage == "terminal") {
            self.break_rule("it answers other messages than the unsettled ones, or has ended the conversation", event);
        }
        self.settle(&companion, event);
        let upto = number(event, "upto");
        let expires_at = event["expires_at"].as_u64();
        if expires_at.is_none() != self.is_alone() {
            self.break_rule("it may have the floor for ever, or loses it to nobody", event);
        }
        self.floor =
            Some(Reply { companion, ticket, messages, upto, selected_at, others, expires_at, again_at: None, replans: 0 });
    }

    /// The companion with the floor, if it makes this attempt.
    fn speaking(&mut self, event: &Value) -> Option<&mut Reply> {
        let (companion, ticket) = (text(event, "companion"), number(event, "ticket"));
        if self.floor.as_ref().is_none_or(|reply| reply.companion != companion || reply.ticket != ticket) {
            self.break_rule("it does not have the floor", event);
            return None;
        }
        self.floor.as_mut()
    }

    /// The companion that makes this attempt, late or not.
    fn making(&mut self, event: &Value) -> Option<&mut Reply> {
        let (companion, ticket) = (text(event, "companion"), number(event, "ticket"));
        let index = self.late.iter().position(|reply| reply.companion == companion && reply.ticket == ticket);
        match index {
            Some(index) => self.late.get_mut(index),
            None => self.speaking(event),
        }
    }

    /// A companion says something. It must have the floor, and this must be the attempt in progress.
    pub(super) fn statement(&mut self, companion: &str, event: &Value) {
        self.counts.statements += 1;
        let floor = self.floor.take();
        let is_its = |reply: &Reply| reply.companion == companion && event["reply"] == reply.ticket && reply.again_at.is_none();
        match floor.filter(is_its) {
            Some(reply) => {
                self.streak += u64::from(reply.selected_at >= self.newest_of_person);
                self.answer_with(&reply.messages, Ok(number(event, "seq")));
            }
            None => self.faults.duplicated.push(format!("{companion} does not have the floor with this attempt: {event}")),
        }
        if self.streak > self.streak_limit {
            self.faults.broken.push(format!("{} statements in a row: {event}", self.streak));
        }
    }

    /// A reply to these messages has a result.
    pub(super) fn answer_with(&mut self, messages: &BTreeSet<u64>, result: Result<u64, String>) {
        self.answers.extend(messages.iter().map(|seq| (*seq, result.clone())));
    }

    pub(super) fn floor_expired(&mut self, event: &Value) {
        self.counts.late += 1;
        let at = at(event);
        let Some(reply) = self.speaking(event) else { return };
        if reply.again_at.is_some() || reply.expires_at.is_none_or(|expires_at| at < expires_at) {
            self.break_rule("its time is not over", event);
        }
        self.late.extend(self.floor.take());
    }

    /// A late text is complete.
    pub(super) fn floor_taken(&mut self, event: &Value) {
        if matches!(self.turn, Turn::OneOf(_)) {
            self.turn = Turn::Nobody;
        }
        if self.is_floor_taken() || self.is_being_judged {
            self.break_rule("the floor is not free", event);
        }
        match self.take_late(event) {
            // Nobody takes its place.
            Some(reply) => self.floor = Some(Reply { others: Vec::new(), ..reply }),
            None => self.break_rule("it does not write late", event),
        }
    }

    pub(super) fn take_late(&mut self, event: &Value) -> Option<Reply> {
        let (companion, ticket) = (text(event, "companion"), number(event, "ticket"));
        let index = self.late.iter().position(|reply| reply.companion == companion && reply.ticket == ticket)?;
        Some(self.late.remove(index))
    }

    pub(super) fn reply_failed(&mut self, event: &Value) {
        let is_closed = event["error"] == "closed";
        self.counts.failed += usize::from(!is_closed);
        self.counts.closed += usize::from(is_closed);
        let result = Err(text(event, "error").to_owned());
        if let Some(late) = self.take_late(event) {
            self.answer_with(&late.messages, result);
            let has_ended = self.seats.get(&late.companion).is_some_and(|seat| seat.stage == "terminal");
            if has_ended != is_closed {
                self.break_rule("a late reply is dropped if its companion has ended the conversation, and only then", event);
            }
            return;
        }
        if is_closed {
            self.break_rule("only a late reply is dropped", event);
        }
        match self.speaking(event) {
            Some(reply) if reply.again_at.is_some() => self.break_rule("a stopped attempt fails", event),
            Some(reply) => {
                let messages = reply.messages.clone();
                self.answer_with(&messages, result);
                let others = self.floor.take().map(|reply| reply.others).unwrap_or_default();
                self.turn = if others.is_empty() { Turn::Nobody } else { Turn::OneOf(others) };
            }
            None => self.faults.duplicated.push(format!("it owes no such reply: {event}")),
        }
    }

    /// More was said. The attempt is stopped, and the next one waits.
    pub(super) fn replanning(&mut self, event: &Value) {
        let (message, until) = (number(event, "message"), number(event, "until"));
        let Some(reply) = self.making(event) else { return };
        let is_longer = reply.again_at.is_none_or(|before| before < until);
        let may_begin_again = reply.replans < MOST_REPLANS && is_longer && message > reply.upto;
        reply.again_at = Some(until);
        let (companion, messages) = (reply.companion.clone(), reply.messages.clone());
        let is_stop = self.messages.get(&message).is_none_or(|message| message.asks_to_stop);
        if !may_begin_again || is_stop || !self.concerns(message, &companion, &messages) {
            self.break_rule("there is no reason to begin again", event);
        }
    }

    /// The next attempt begins, under a number of its own. It answers all that is unsettled, too; what it answered before is settled already.
    pub(super) fn replanned(&mut self, event: &Value) {
        self.counts.begun_again += 1;
        let (at, next, upto) = (at(event), number(event, "next"), number(event, "upto"));
        self.new_ticket(next, event);
        let Some(reply) = self.making(event) else { return };
        let is_due = reply.again_at.take().is_some_and(|again_at| again_at <= at);
        let before = reply.messages.clone();
        let messages = numbers(event, "messages");
        (reply.ticket, reply.messages, reply.upto, reply.replans) = (next, messages.clone(), upto, reply.replans + 1);
        if !is_due {
            self.break_rule("the next attempt begins too early", event);
        }
        let Some(seat) = self.seats.get_mut(text(event, "companion")) else { return };
        let unsettled = std::mem::take(&mut seat.unsettled);
        seat.cursor = seat.cursor.max(upto);
        if messages != before.union(&unsettled).copied().collect() || !before.is_disjoint(&unsettled) {
            self.faults.broken.push(format!("it must answer {before:?} and {unsettled:?}: {event}"));
        }
    }
}
