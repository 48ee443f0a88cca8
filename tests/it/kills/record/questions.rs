//! Rounds: who is asked, who votes, who is selected.

use std::collections::BTreeSet;

use serde_json::Value;

use super::floor::Turn;
use super::{Record, ids, list, number, numbers, text};

/// An open round.
pub(super) struct Round {
    asked: BTreeSet<String>,
    voters: BTreeSet<String>,
    /// Others were asked or spoke when it was opened.
    is_beside: bool,
}

/// A question to a companion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    ticket: u64,
    /// The message that it was asked for, and the one of its round.
    pub(super) message: u64,
    round: u64,
}

impl Record<'_> {
    pub(super) fn open_round(&mut self, event: &Value) {
        self.counts.rounds += 1;
        let message = number(event, "message");
        self.counts.turn_rounds += usize::from(self.messages.get(&message).is_some_and(|message| message.is_statement));
        if matches!(self.turn, Turn::OneOf(_)) {
            // None of them took over.
            self.turn = Turn::Nobody;
        }
        let is_anyone_engaged = self.seats.values().any(|seat| seat.asked.is_some() || seat.wish.is_some());
        let is_beside = self.is_floor_taken() || !self.rounds_open.is_empty() || self.is_being_judged || is_anyone_engaged;
        self.counts.rounds_beside += usize::from(is_beside);
        if self.streak() >= self.streak_limit {
            self.break_rule("a round is opened although the companions have spoken often enough", event);
        }
        let asked: BTreeSet<_> = ids(event, "asked").map(str::to_owned).collect();
        let mut voters = asked.clone();
        for state in list(event, "listening") {
            let from = text(state, "from");
            voters.insert(from.to_owned());
            if self.seats.get(from).map(|seat| &*seat.stage) != Some(text(state, "closing")) {
                self.break_rule("a stage was lost", event);
            }
        }
        if self.rounds_open.insert(message, Round { asked, voters, is_beside }).is_some() {
            self.break_rule("two open rounds are about the same message", event);
        }
    }

    pub(super) fn evaluated(&mut self, event: &Value) {
        let (companion, ticket, message) = (text(event, "companion"), number(event, "ticket"), number(event, "message"));
        self.new_ticket(ticket, event);
        let handled = number(event, "handled");
        let round = self.rounds_open.get(&handled).filter(|round| round.asked.contains(companion));
        if round.is_some() == self.is_alone() {
            return self.break_rule("it is asked in no round, or alone in one", event);
        }
        let is_beside = round.is_some_and(|round| round.is_beside);
        let Some(seat) = self.seats.get(companion) else { return };
        let messages = numbers(event, "messages");
        let is_called = messages.iter().any(|seq| self.messages.get(seq).is_some_and(|message| message.calls(companion)));
        let is_address = event["trigger"] == "direct_address";
        let mut broken = Vec::new();
        if is_beside && !(is_address && is_called) {
            broken.push("it is asked while others are busy, and no person addressed it");
        }
        if is_address && seat.cancelled.contains(&message) {
            broken.push("it is asked about what was cancelled");
        }
        // One that wants to speak, and waits for the votes of others, is asked anew about an address.
        let is_kept = seat.wish.is_some() && (!is_address || self.held.contains(companion));
        if seat.asked.is_some() || is_kept {
            broken.push("it is asked twice at once");
        }
        if seat.stage == "terminal" {
            broken.push("it is asked although it has ended the conversation");
        }
        if seat.unsettled != messages {
            broken.push("it is asked about other messages than the unsettled ones");
        }
        if self.is_speaking(companion) {
            broken.push("it is asked while it speaks");
        }
        broken.into_iter().for_each(|rule| self.break_rule(rule, event));
        self.seats.entry(companion.to_owned()).and_modify(|seat| {
            (seat.asked, seat.wish) = (Some(Question { ticket, message, round: handled }), None);
        });
    }

    /// A question is answered, or gets no answer: once.
    pub(super) fn answered(&mut self, companion: &str, ticket: u64, event: &Value) -> Option<Question> {
        let seat = self.seats.get_mut(companion)?;
        let question = seat.asked.take_if(|question| question.ticket == ticket);
        if question.is_none() {
            self.faults.duplicated.push(format!("{companion} was not asked {ticket}, or has answered: {event}"));
        }
        question
    }

    pub(super) fn decide(&mut self, event: &Value) {
        self.counts.guarded += usize::from(event["reason"] == "loop_guard");
        for companion in ids(event, "companions") {
            self.decisions += 1;
            let question = event["ticket"].as_u64().and_then(|ticket| self.answered(companion, ticket, event));
            let is_cancelled = event["reason"] == "cancelled";
            if let Some(question) = question
                && !self.is_alone()
                && !is_cancelled
                && event["vote"]["messageId"].as_str() != Some(&question.round.to_string())
            {
                self.break_rule("it votes in another round than it was asked in", event);
            }
            // A question about others' messages goes on.
            let is_beside = is_cancelled && question.is_none() && event["upto"] == 0 && {
                let seat = self.seats.get(companion);
                let going_on = seat.and_then(|seat| seat.asked.or(seat.wish));
                going_on.is_some_and(|going_on| numbers(event, "messages").iter().all(|seq| *seq > going_on.round))
            };
            let wish = self.seats.get_mut(companion).and_then(|seat| seat.wish.take_if(|_| is_cancelled && !is_beside));
            if is_beside {
                self.retracted(companion, event);
            } else if is_cancelled && (question.is_some() || wish.is_some()) {
                self.held.remove(companion);
                self.retracted(companion, event);
            } else if is_cancelled {
                self.check_settled_by_stop(companion, event);
            }
            if event["decision"] == "YES" {
                if question.is_none() {
                    self.break_rule("it was not asked", event);
                }
                self.seats.entry(companion.to_owned()).and_modify(|seat| seat.wish = question);
                continue;
            }
            self.settle(companion, event);
            if event["reason"] == "stale"
                && let Some(seat) = self.seats.get_mut(companion)
            {
                // A question whose messages are too old ends with them.
                seat.asked.take_if(|question| question.message <= seat.cursor);
            }
        }
    }

    /// A companion that has ended the conversation neither votes nor takes its turn, unless a person addressed it.
    pub(super) fn withdraw(&mut self, companion: &str) {
        if self.turn.is_of(companion) {
            self.turn = Turn::Nobody;
        }
        let Some(seat) = self.seats.get_mut(companion) else { return };
        let question = seat.asked.or(seat.wish);
        let is_call = |question: &Question| self.messages.get(&question.message).is_some_and(|said| said.calls(companion));
        if !question.as_ref().is_some_and(is_call) {
            (seat.asked, seat.wish) = (None, None);
        }
    }

    pub(super) fn close_round(&mut self, event: &Value) {
        let message = number(event, "message");
        let Some(Round { voters, .. }) = self.rounds_open.remove(&message) else {
            return self.break_rule("no such round was open", event);
        };
        let states: Vec<_> = list(event, "states").collect();
        let voted: BTreeSet<_> = states.iter().map(|state| text(state, "from").to_owned()).collect();
        if voted != voters || voted.len() != states.len() {
            self.faults.broken.push(format!("not each of {voters:?} voted once about {message}: {event}"));
        }
        let message_id = message.to_string();
        if states.iter().any(|state| state["messageId"] != *message_id) {
            self.break_rule("a vote of another round counts", event);
        }
        let is_wish = |companion: &str| {
            let wish = self.seats.get(companion).and_then(|seat| seat.wish);
            wish.is_some_and(|wish| wish.round == message)
        };
        let wanting = states.iter().filter(|state| state["state"] == "speak").map(|state| text(state, "from"));
        let wanting: BTreeSet<_> = wanting.collect();
        let others = list(event, "others").map(|other| text(other, "companion"));
        let candidates: Vec<_> = event["selected"].as_str().into_iter().chain(others).collect();
        let held: Vec<_> = ids(event, "held").collect();
        let named: BTreeSet<_> = candidates.iter().chain(&held).copied().collect();
        let mut broken = Vec::new();
        if named != wanting || named.len() != candidates.len() + held.len() || !named.iter().all(|one| is_wish(one)) {
            broken.push("others than those that voted to speak are selected or held");
        }
        if event["selected"].is_null() && !candidates.is_empty() {
            broken.push("nobody is selected, and some lose");
        }
        if !candidates.is_empty() && (!held.is_empty() || self.is_floor_taken() || self.is_being_judged) {
            broken.push("a speaker is selected although the floor is taken");
        }
        let is_guarded = self.streak() >= self.streak_limit;
        if !candidates.is_empty() && is_guarded {
            broken.push("a speaker is selected although the companions have spoken often enough");
        }
        // After a failure, somebody else may be about to take over.
        let may_be_taken = self.is_floor_taken() || self.is_being_judged || matches!(self.turn, Turn::OneOf(_));
        if !held.is_empty() && !may_be_taken && !is_guarded {
            broken.push("votes are held although the floor is free");
        }
        broken.into_iter().for_each(|rule| self.break_rule(rule, event));
        self.counts.held += held.len();
        self.held.extend(held.into_iter().map(str::to_owned));
        if !candidates.is_empty() {
            self.select(candidates.into_iter().map(str::to_owned).collect(), event);
        }
    }

    /// The floor is free, and all votes that were held for it are ranked.
    pub(super) fn held_selected(&mut self, event: &Value) {
        let others = list(event, "others").map(|other| text(other, "companion"));
        let candidates: Vec<_> = [text(event, "selected")].into_iter().chain(others).map(str::to_owned).collect();
        let held = std::mem::take(&mut self.held);
        if candidates.iter().cloned().collect::<BTreeSet<_>>() != held || candidates.len() != held.len() {
            self.faults.broken.push(format!("the votes of {held:?} were held: {event}"));
        }
        if self.is_floor_taken() || self.is_being_judged {
            self.break_rule("the floor is not free", event);
        }
        if self.streak() >= self.streak_limit {
            self.break_rule("a speaker is selected although the companions have spoken often enough", event);
        }
        self.select(candidates, event);
    }

    /// Held votes end when the message that they are about has settled, and when their companion withdraws.
    pub(super) fn drop_settled_votes(&mut self) {
        let seats = &mut self.seats;
        self.held.retain(|companion| {
            let Some(seat) = seats.get_mut(companion) else { return false };
            seat.wish.take_if(|wish| wish.message <= seat.cursor);
            seat.wish.is_some()
        });
    }
}
