//! Handles stop phrases by which people retract messages that a companion is being asked about, or wants to answer (docs/design/speaking.md S-18).

use super::super::event::Decided;
use super::super::gate::{Check, Waiting};
use super::super::message::{Message, Role};
use super::super::round::listening;
use super::super::window::Entry;
use super::advance::AnswerRecord;
use super::replanning::Stopped;
use super::*;

impl Conversation {
    /// Applies the decision of a companion not to answer, because messages were retracted. `asked` is the message that triggered its question, and
    /// the newest one that the question covered. If some of the covered messages are by others, the companion is asked about these. A question about
    /// others' messages goes on.
    pub(super) fn apply_retracted(&mut self, companion: &CompanionId, decided: &Decided, asked: Option<(Seq, Seq)>) {
        let Some(gate) = self.gates.get(companion) else { return };
        let (stage, considered) = (gate.stage, gate.considered());
        let phrase = decided.messages.last().copied().unwrap_or_default();
        if phrase > self.position.handled {
            let stopped = self.announced.stopped.take().filter(|(message, _)| *message == phrase);
            let mut companions = stopped.map(|(_, companions)| companions).unwrap_or_default();
            companions.insert(companion.clone());
            self.announced.stopped = Some((phrase, companions));
            self.announced.retracted_alone.extend((!decided.settles_by_cursor()).then(|| companion.clone()));
        }
        if !decided.settles_by_cursor() {
            self.window.decline_alone(&decided.messages, companion);
        }
        let Some(asked) = asked else {
            return self.wait_for_address(companion, |seq| Some(seq) > considered);
        };
        if !decided.settles_by_cursor() {
            self.ask_about_the_rest(companion, decided, asked);
        }
        let is_called = self.is_called(companion);
        for round in &mut self.turns.rounds {
            round.overrule(listening(companion, round.message, is_called, stage));
        }
    }

    /// Whether a person retracted an address that had to wait because something else was in progress. It is retracted if the newest unsettled message
    /// is that person's stop phrase, and all others are that person's, too.
    pub(super) fn is_taken_back(&self, companion: &CompanionId, waiting: Waiting) -> bool {
        let mut unsettled = self.buffer(companion);
        let Some(newest) = unsettled.next_back().filter(|newest| newest.seq > waiting.message) else { return false };
        let phrase = &newest.message;
        let is_own = |message: &Message| message.is_by_author_of(phrase) && !message.address.is_elsewhere(companion);
        waiting.trigger == Trigger::DirectAddress
            && phrase.asks_to_stop
            && phrase.from.role == Role::Person
            && !phrase.address.is_elsewhere(companion)
            && unsettled.all(|entry| is_own(&entry.message))
    }

    fn ask_about_the_rest(&mut self, companion: &CompanionId, decided: &Decided, asked: (Seq, Seq)) {
        let (message, considered) = asked;
        let newest = self.buffer(companion).rfind(|entry| entry.seq <= considered).map(|entry| entry.seq);
        let rest = |trigger, message| Waiting { trigger, message, check: Check::Unsettled, urgent: false };
        let address = self.newest_address(companion, |seq| seq <= considered);
        let rest = if decided.trigger != Trigger::DirectAddress {
            newest.map(|newest| rest(decided.trigger, newest))
        } else if !decided.messages.contains(&message) {
            // The person who addressed it still waits for an answer.
            Some(Waiting { urgent: address.is_some_and(|address| address.urgent), ..rest(Trigger::DirectAddress, message) })
        } else {
            // The message that addressed it was retracted. An earlier address had merged with that one.
            address.or_else(|| newest.map(|newest| rest(Trigger::Lull, newest)))
        };
        let is_retracted = |waiting: Waiting| decided.messages.contains(&waiting.message);
        if self.gates.get(companion).and_then(|gate| gate.waiting).is_some_and(is_retracted) {
            self.wait_for_address(companion, |seq| seq > considered);
        }
        if let (Some(rest), Some(gate)) = (rest, self.gates.get_mut(companion)) {
            gate.fire(rest);
        }
    }
}

impl Step<'_, '_> {
    /// Ends the questions about messages of a stop phrase's author, and drops a YES to one. What the author said after a question was asked about
    /// others' messages settles, and that question goes on. Must be called before the message is applied.
    pub(super) fn retract_questions(&mut self, seq: Seq, message: &Message) -> Vec<Stopped> {
        if !message.asks_to_stop || message.from.role != Role::Person {
            return Vec::new();
        }
        let engaged = self.state.gates.companions_where(|gate| gate.is_engaged() && !gate.is_silent());
        engaged.into_iter().filter_map(|companion| self.retract_question(&companion, seq, message)).collect()
    }

    /// If all unsettled messages are by the author, the companion settles everything. Otherwise it declines only the author's messages.
    fn retract_question(&mut self, companion: &CompanionId, seq: Seq, message: &Message) -> Option<Stopped> {
        let gate = self.state.gates.get(companion)?;
        let asked = gate.evaluation.map(|asked| (asked.trigger, asked.upto, Some(asked.ticket), asked.turn));
        let wanted = || gate.wish.as_ref().map(|wish| (wish.trigger, wish.upto, None, wish.turn));
        let (trigger, considered, ticket, turn) = asked.or_else(wanted)?;
        let is_own = |entry: &&Entry| entry.message.is_by_author_of(message) && !entry.message.address.is_elsewhere(companion);
        let before = self.state.buffer(companion).filter(|entry| entry.seq < seq);
        let (own, others): (Vec<_>, Vec<_>) = before.partition(is_own);
        let is_considered = own.first()?.seq <= considered;
        if !trigger.needs_a_message() || message.address.is_elsewhere(companion) {
            return None;
        }
        let is_address = |entry: &&Entry| entry.message.address.includes(companion);
        let (trigger, ticket, turn) = match is_considered {
            true => (trigger, ticket, turn),
            false if own.iter().any(is_address) => (Trigger::DirectAddress, None, None),
            false => (Trigger::Lull, None, None),
        };
        let upto = if others.is_empty() && is_considered { seq } else { Seq::NONE };
        let answered: Vec<_> = own.iter().map(|entry| entry.seq).collect();
        let answered_record = AnswerRecord { ticket, ..AnswerRecord::default() };
        let mut record = self.decided(companion, trigger, Decision::No, Reason::Cancelled, Seq::NONE, answered_record);
        (record.messages, record.upto) = (answered.iter().copied().chain([seq]).collect(), upto);
        self.turn_without_question = turn;
        self.record(Event::Decided(record));
        self.turn_without_question = None;
        self.out.extend(ticket.map(|ticket| Output::Cancel { ticket }));
        Some(Stopped { companion: companion.clone(), ticket: None, trigger, answered, others: Vec::new(), turn })
    }
}
