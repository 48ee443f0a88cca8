//! Events that must be acknowledged: selects the companion that acknowledges them, and the time (docs/design/gate.md G-33 to G-36).

use super::super::budget::MINUTE;
use super::super::event::Decided;
use super::super::gate::{Check, Waiting};
use super::super::message::Message;
use super::super::window::Entry;
use super::advance::AnswerRecord;
use super::apply::cancel_lull;
use super::ending::is_call;
use super::step::Due;
use super::*;

/// The state of the budget for acknowledgements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Acknowledgements {
    /// When a companion was last selected to acknowledge events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selected_at: Option<Moment>,
    /// Events wait until this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deferred_until: Option<Moment>,
    /// Events had to wait, so the next statement acknowledges all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    are_merged: bool,
}

impl Acknowledgements {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn defer(&mut self, until: Moment) {
        self.deferred_until = Some(until);
        self.are_merged = true;
    }

    /// The budget allows the next statement. If no event is waiting, later events are not merged.
    pub(super) fn free(&mut self, is_any_owed: bool) {
        self.deferred_until = None;
        self.are_merged &= is_any_owed;
    }

    /// Ends the wait. Returns whether events had to wait.
    pub(super) fn release(&mut self) -> bool {
        self.deferred_until = None;
        std::mem::take(&mut self.are_merged)
    }

    /// When the next statement may acknowledge events. None: now. Allows at most `most` statements per minute, evenly spread.
    fn free_at(&self, now: Moment, most: u32) -> Option<Moment> {
        self.selected_at.map(|selected_at| selected_at + MINUTE / most.max(1)).filter(|free_at| *free_at > now)
    }
}

impl Conversation {
    /// Applies an event that must be acknowledged. It counts as no message and fires only the trigger of the companion that must acknowledge it.
    pub(super) fn apply_event(&mut self, entry: Entry, world: &World<'_>, notes: &mut Vec<Output>) {
        let seq = entry.seq;
        for (companion, gate) in self.gates.iter_mut() {
            cancel_lull(companion, gate, notes);
        }
        self.push(entry, world);
        self.restart_silence(false, world);
        self.fire_event(seq, notes);
    }

    /// Fires the trigger of the companion that must acknowledge an event in the window. If the companion has ended the conversation, it is opened
    /// again.
    pub(super) fn fire_event(&mut self, seq: Seq, notes: &mut Vec<Output>) {
        let Some(message) = self.window.get(seq).map(|entry| entry.message.clone()) else { return };
        let Some(companion) = self.acknowledger_of(&message) else { return };
        // A companion that has already settled the event, for example while paused, would never answer this trigger.
        let Some(gate) = self.gates.get_mut(&companion).filter(|gate| gate.cursor < seq) else { return };
        let from = gate.stage;
        // A paused companion declines the event as soon as it is handled.
        gate.fire(Waiting { trigger: Trigger::Event, message: seq, check: Check::Unsettled, urgent: true });
        if gate.is_closed() && !gate.paused {
            self.apply_stage(&companion, Stage::None, Cause::Event, notes);
            self.closing.opened_again.insert(companion, (from, Cause::Event));
        }
    }

    /// The companion that must acknowledge an event. If the event names companions, it is one of these. Among several, the choice goes by these
    /// criteria in order: the companion is not paused, is about to acknowledge another event, is not speaking, spoke least recently, has the smallest
    /// id.
    fn acknowledger_of(&self, event: &Message) -> Option<CompanionId> {
        let names_any = self.gates.keys().any(|companion| event.address.includes(companion));
        let may_be_chosen = |companion: &CompanionId| !names_any || event.address.includes(companion);
        let order = |(companion, gate): &(&CompanionId, &Gate)| {
            let is_about_to = gate.owes_acknowledgement() || self.turns.is_about_to_acknowledge(companion);
            let is_speaking = self.turns.owed_replies().any(|floor| floor.companion == **companion);
            (gate.paused, !is_about_to, is_speaking, self.spoke.get(*companion).copied())
        };
        let candidates = self.gates.iter().filter(|(companion, _)| may_be_chosen(companion));
        candidates.min_by_key(order).map(|(companion, _)| companion.clone())
    }

    /// Fires the event trigger again for a companion that lost its turn before it acknowledged the events.
    pub(super) fn restore_event(&mut self, companion: &CompanionId) {
        let newest = self.buffer(companion).rfind(|entry| entry.message.is_event()).map(|entry| entry.seq);
        if let (Some(message), Some(gate)) = (newest, self.gates.get_mut(companion)) {
            gate.fire(Waiting { trigger: Trigger::Event, message, check: Check::Unsettled, urgent: true });
        }
    }

    /// Until when events wait because `gate.acknowledgements_per_minute` is used up.
    pub fn events_deferred_until(&self) -> Option<Moment> {
        self.acknowledgements.deferred_until
    }

    /// Applies the selection of a companion that acknowledges events. If events had to wait, its statement also acknowledges the events of other
    /// companions.
    pub(super) fn apply_acknowledging(&mut self, decided: &Decided, turn: Option<TurnId>) {
        self.acknowledgements.selected_at = Some(self.position.clock);
        let covers_all = self.acknowledgements.release();
        let mut covered = self.gates.companions_where(|gate| covers_all && gate.owes_acknowledgement());
        // The statement does not acknowledge events that the selected companion has settled.
        let settled = decided.companions.iter().filter_map(|companion| self.gates.get(companion)).map(|gate| gate.cursor).max();
        let is_covered = |companion: &CompanionId| {
            let oldest = self.buffer(companion).find(|entry| entry.message.is_event()).map(|entry| entry.seq);
            oldest > settled && !decided.companions.contains(companion)
        };
        covered.retain(is_covered);
        for companion in &covered {
            self.forget_event_of(companion);
        }
        for companion in &decided.companions {
            if let Some(gate) = self.gates.get_mut(companion) {
                gate.waiting = None;
            }
        }
        let Some(companion) = decided.companions.first().cloned() else { return };
        let candidate = Candidate { companion, trigger: Trigger::Event, why: None, message: None, is_farewell: false };
        let selection =
            Selection { opened: self.position.handled, selected_at: self.position.handled, turn, ..Selection::default() };
        self.turns.select(Selected { candidate, selection, speak_at: decided.speak_at });
    }

    /// Drops the event trigger of a companion. If it was addressed as well, that address becomes its trigger.
    pub(super) fn forget_event_of(&mut self, companion: &CompanionId) {
        self.wait_for_address(companion, |_| true);
    }

    /// Selects the next event to acknowledge after events were deleted or their companion left: the newest remaining one that no companion has
    /// settled. `orphaned` are the cursors of the companions that had to acknowledge them.
    pub(super) fn fire_remaining_events(&mut self, orphaned: &[Seq], notes: &mut Vec<Output>) {
        let is_heard = |gate: &&Gate| !gate.is_silent();
        let settled = self.gates.values().filter(is_heard).map(|gate| gate.cursor).max().unwrap_or_default();
        for cursor in orphaned {
            let remaining = self.window.after(settled.max(*cursor)).rfind(|entry| entry.message.is_event());
            if let Some(seq) = remaining.map(|entry| entry.seq) {
                self.fire_event(seq, notes);
            }
        }
    }

    fn is_called_by_person(&self, companion: &CompanionId) -> bool {
        self.buffer(companion).any(|entry| is_call(&entry.message, companion))
    }
}

impl Step<'_, '_> {
    /// Selects companions that must acknowledge events, without a question, while the floor is free. Over `gate.acknowledgements_per_minute`, events
    /// wait, unless a person has addressed the companion as well.
    pub(super) fn acknowledge_events(&mut self) {
        while let Some((companion, is_called)) = self.next_acknowledger() {
            self.world.ledger.promise_statements(self.world.channel, self.state.turns.expected_statements());
            let reason = if self.world.is_unpostable { Some((Reason::Unpostable, None)) } else { None };
            let used_up = || {
                self.world.exhausted_statement_budget(self.state.position.clock).map(|used_up| (Reason::Budget, Some(used_up)))
            };
            if let Some((reason, used_up)) = reason.or_else(used_up) {
                let answered = AnswerRecord { used_up, ..AnswerRecord::default() };
                self.decline(&companion, Trigger::Event, reason, self.state.position.handled, answered);
                continue;
            }
            if !is_called && self.are_events_deferred() {
                return;
            }
            let mut yes =
                self.decided(&companion, Trigger::Event, Decision::Yes, Reason::Event, Seq::NONE, AnswerRecord::default());
            yes.messages = self.state.window.unsettled(&companion, &self.state.gates[&companion], self.state.position.handled);
            // A spoken reply has its own delay.
            let is_spoken = !self.state.gates[&companion].external
                && !self.modality_of_reply(self.state.window.newest_event(&yes.messages)).is_text();
            yes.speak_at = (self.state.gates.holds_rounds() && !is_spoken)
                .then(|| self.state.position.clock + self.world.rules.turn_taking.turn_delay());
            self.record(Event::Decided(yes));
            self.begin_turn_at_once();
        }
    }

    /// The companion that acknowledges events next, and whether a person has addressed it as well.
    fn next_acknowledger(&self) -> Option<(CompanionId, bool)> {
        if self.state.turns.is_floor_taken() || self.state.turns.is_being_judged() || self.awaits_last_statement() {
            return None;
        }
        // A companion with a question in flight answers it first. Its statement may acknowledge the event.
        let is_next = |(companion, gate): &(&CompanionId, &Gate)| {
            gate.owes_acknowledgement() && !gate.is_engaged() && self.is_ready(companion, gate)
        };
        let next =
            self.state.gates.iter().filter(is_next).map(|(companion, _)| (self.state.is_called_by_person(companion), companion));
        let next = next.min_by_key(|(is_called, companion)| (!is_called, self.state.spoke.get(*companion).copied()))?;
        Some((next.1.clone(), next.0))
    }

    /// Whether events must wait. If the budget has just been used up, journals until when they wait.
    fn are_events_deferred(&mut self) -> bool {
        if self.state.acknowledgements.deferred_until.is_some() {
            return true;
        }
        let free_at =
            self.state.acknowledgements.free_at(self.state.position.clock, self.world.rules.gate.acknowledgements_per_minute);
        if let Some(until) = free_at {
            self.record(Event::EventsDeferred { until });
        }
        free_at.is_some()
    }

    /// Journals the end of the events' wait, if it is due.
    pub(super) fn release_events(&mut self, due: Due) {
        let now = self.state.position.clock;
        let is_due = |until: Moment| until < now || until == now && due == Due::Now;
        if self.state.acknowledgements.deferred_until.is_some_and(is_due) {
            self.record(Event::EventsReleased);
        }
    }
}
