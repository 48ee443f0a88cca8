//! Handles messages that arrive while a statement is being made: the statement is restarted (docs/design/speaking.md S-14) or cancelled (S-15).

use super::super::gate::Waiting;
use super::super::message::{Message, Role};
use super::super::risk::sign;
use super::super::window::Entry;
use super::advance::AnswerRecord;
use super::*;
use crate::policy::reply::REPLAN_PAUSE;

/// Something that a stop phrase cancels: a reply, the turn of a selected companion, a question or its YES.
pub(super) struct Stopped {
    pub(super) companion: CompanionId,
    /// The number of the reply. None if the companion was selected, asked, or wanted to speak.
    pub(super) ticket: Option<Ticket>,
    pub(super) trigger: Trigger,
    /// The messages that the statement would have answered.
    pub(super) answered: Vec<Seq>,
    /// The other candidates of its selection.
    pub(super) others: Vec<Candidate>,
    pub(super) turn: Option<TurnId>,
}

impl Conversation {
    pub(super) fn apply_replanned(&mut self, event: &Event, notes: &mut Vec<Output>) {
        let Some(owed) = event.owed() else { return };
        self.position.tickets = self.position.tickets.max(owed.ticket);
        if let Some(stopped) = owed.replaces {
            self.calls.replan(stopped, owed.ticket);
        }
        if !self.turns.begin_attempt(&owed) {
            return;
        }
        if let Some(gate) = self.gates.get_mut(owed.companion) {
            gate.message_counter = 0;
            gate.waiting = None;
        }
        self.settle_by_reply(event, notes);
    }

    /// The messages before `before` that a selected companion would answer: those until its selection, and later ones by the same authors.
    fn answered_by_selected(&self, turn: &Selected, before: Seq) -> Vec<Seq> {
        let (companion, selected_at) = (&turn.candidate.companion, turn.selection.selected_at);
        let unsettled = self.buffer(companion).filter(|entry| entry.seq < before);
        let (mut answered, later): (Vec<_>, Vec<_>) = unsettled.partition(|entry| entry.seq <= selected_at);
        let asked: Vec<_> = answered.iter().map(|entry| entry.seq).collect();
        let is_more = |entry: &&Entry| {
            let is_words = !entry.message.is_event() && !entry.message.address.is_elsewhere(companion);
            is_words && self.window.answers_author(&asked, &entry.message)
        };
        answered.extend(later.into_iter().filter(is_more));
        answered.into_iter().map(|entry| entry.seq).collect()
    }

    /// Ends a spoken reply that was stopped before anything was heard. The candidates that lost the floor to it get no turn.
    pub(super) fn drop_interrupted(&mut self, ticket: Ticket) {
        self.by_hand.stop();
        if let Some(OwedReply { selection, messages, companion, .. }) = self.turns.take_owed(ticket) {
            self.drop_losers(&companion, selection, &messages);
        }
    }

    /// Drops the triggers of the candidates that lost a cancelled floor. Triggers after the selection remain.
    fn drop_losers(&mut self, companion: &CompanionId, Selection { others, selected_at, .. }: Selection, answered: &[Seq]) {
        let is_answered = |waiting: &mut Waiting| answered.contains(&waiting.message);
        if let Some(gate) = self.gates.get_mut(companion) {
            // Messages that a reply answers have settled. Messages that a selected companion would have answered have not.
            gate.cancelled.extend(answered.iter().filter(|seq| **seq > gate.cursor));
            if gate.waiting.take_if(is_answered).is_some() {
                // An address that had merged with the dropped trigger takes its place, unless a stop phrase cancelled that address.
                self.wait_for_address(companion, |_| true);
            }
        }
        for Candidate { companion: other, .. } in others {
            let Some(gate) = self.gates.get_mut(&other) else { continue };
            if gate.waiting.take_if(|waiting| waiting.message <= selected_at && is_answered(waiting)).is_some() {
                // An event, which is stronger, may have merged with an address that came after the selection.
                self.wait_for_address(&other, |seq| seq > selected_at);
            }
        }
    }

    pub(super) fn apply_cancelled(&mut self, companion: &CompanionId, ticket: Option<Ticket>, message: Option<Seq>) {
        self.by_hand.stop();
        let stopped = match ticket {
            Some(ticket) => self.turns.take_owed(ticket).map(|floor| (floor.selection, floor.messages)),
            None => self.turns.selected.take_if(|turn| turn.candidate.companion == *companion).map(|turn| {
                let answered = self.answered_by_selected(&turn, message.unwrap_or(self.position.handled));
                (turn.selection, answered)
            }),
        };
        // The Stop button ends only this reply. Other companions that wanted to speak are asked again.
        let Some(message) = message else { return };
        let (selection, answered) = stopped.unwrap_or_default();
        self.drop_losers(companion, selection, &answered);
        if message > self.position.handled {
            // An announcement for another phrase, which was never handled, is discarded.
            let stopped = self.announced.stopped.take().filter(|(phrase, _)| *phrase == message);
            let mut companions = stopped.map(|(_, companions)| companions).unwrap_or_default();
            companions.insert(companion.clone());
            self.announced.stopped = Some((message, companions));
        } else {
            // In journals of older versions, the phrase was applied before the restart, and replaced an earlier address.
            let address =
                self.newest_address(companion, |seq| seq < message).filter(|waiting| !answered.contains(&waiting.message));
            for (other, gate) in self.gates.iter_mut() {
                gate.cancelled.extend((other == companion).then_some(message));
                let is_addressed = self.window.get(message).is_some_and(|entry| entry.message.address.includes(other));
                if (other == companion || !is_addressed) && gate.waiting.take_if(|waiting| waiting.message == message).is_some() {
                    gate.waiting = address.filter(|_| other == companion);
                }
            }
        }
    }

    /// The companion with the floor, the selected one and late ones, where the stop phrase concerns them and came after the messages that they
    /// answer.
    fn stopped_by(&self, seq: Seq, message: &Message) -> Vec<Stopped> {
        if !message.asks_to_stop || message.from.role != Role::Person {
            return Vec::new();
        }
        let owed = self.turns.owed_replies().filter(|floor| !floor.is_posting && floor.upto < seq).map(|floor| Stopped {
            companion: floor.companion.clone(),
            ticket: Some(floor.ticket),
            trigger: floor.trigger,
            answered: floor.messages.clone(),
            others: floor.selection.others.clone(),
            turn: floor.selection.turn,
        });
        let selected = self.turns.selected.as_deref().filter(|turn| turn.selection.selected_at < seq).map(|turn| Stopped {
            companion: turn.candidate.companion.clone(),
            ticket: None,
            trigger: turn.candidate.trigger,
            answered: self.answered_by_selected(turn, seq),
            others: turn.selection.others.clone(),
            turn: turn.selection.turn,
        });
        owed.chain(selected).filter(|stopped| self.concerns(message, &stopped.companion, &stopped.answered)).collect()
    }

    /// The companions for which a stop phrase settles with everything before it: those that would have answered, the other candidates, and those that
    /// were not addressed. For a companion with other unsettled messages, the phrase is part of the next decision.
    fn settled_by_stop(&self, stopped: &[Stopped], seq: Seq, message: &Message) -> Vec<CompanionId> {
        if stopped.is_empty() {
            return Vec::new();
        }
        let answered: BTreeSet<Seq> = stopped.iter().flat_map(|one| one.answered.iter().copied()).collect();
        let settles = |companion: &CompanionId| {
            let would_have_spoken = stopped
                .iter()
                .any(|one| one.companion == *companion || one.others.iter().any(|other| other.companion == *companion));
            // An earlier message that this companion has settled triggers no question.
            let is_addressed = || message.address.includes(companion) || self.is_called(companion);
            let is_idle = self.gates.get(companion).is_some_and(|gate| !gate.is_engaged() && !gate.is_silent());
            let owes_another = || {
                let is_stopped = |floor: &OwedReply| stopped.iter().any(|one| one.ticket == Some(floor.ticket));
                let is_selected = self.turns.is_selected(companion);
                is_selected || self.turns.owed_replies().any(|floor| floor.companion == *companion && !is_stopped(floor))
            };
            let has_nothing_else = || self.buffer(companion).all(|entry| entry.seq == seq || answered.contains(&entry.seq));
            is_idle && (would_have_spoken || !is_addressed()) && !owes_another() && has_nothing_else()
        };
        self.gates.keys().filter(|companion| settles(companion)).cloned().collect()
    }

    /// Whether a message addresses a companion that answers these messages, or is by the author of one of them and addresses no other companion or
    /// person.
    fn concerns(&self, message: &Message, companion: &CompanionId, answered: &[Seq]) -> bool {
        let by_answered = || !message.address.is_elsewhere(companion) && self.window.answers_author(answered, message);
        message.address.includes(companion) || by_answered()
    }

    /// Whether a message adds to the messages that a statement answers. It does if it addresses the speaker. It also does if its author wrote all of
    /// these messages that people wrote, and it addresses no other companion or person.
    fn adds_to(&self, message: &Message, floor: &OwedReply) -> bool {
        let entries = || floor.messages.iter().filter_map(|seq| self.window.get(*seq));
        let is_written = |entry: &&Entry| entry.message.from.role == Role::Person && !entry.message.is_event();
        let is_by_one = || entries().filter(is_written).all(|entry| entry.message.from.id == message.from.id);
        let by_answered = || self.window.answers_author(&floor.messages, message) && is_by_one();
        message.address.includes(&floor.companion) || !message.address.is_elsewhere(&floor.companion) && by_answered()
    }
}

impl Step<'_, '_> {
    /// Schedules a restart of statements if this message adds to the messages that they answer. The restart waits for a short pause in the
    /// conversation.
    pub(super) fn replan_for_message(&mut self, seq: Seq, message: &Message, said_at: Moment) {
        let is_person = message.from.role == Role::Person && !message.asks_to_stop && !message.is_event();
        // A companion must be asked about a message whose author may be at risk.
        let may_be_at_risk = || self.world.rules.helps_at_risk && sign(&message.text).is_some();
        if !is_person || may_be_at_risk() {
            return;
        }
        // A message that is too old gets no answer.
        let is_too_late = |floor: &OwedReply| {
            let is_address = message.address.includes(&floor.companion);
            super::inbound::is_too_late(self.state.position.clock, said_at, is_address, &self.world.rules)
        };
        let is_affected = |floor: &&OwedReply| floor.upto < seq && self.state.adds_to(message, floor) && !is_too_late(floor);
        let affected: Vec<_> = self.state.turns.owed_replies().filter(is_affected).map(|floor| floor.ticket).collect();
        // The word analysis is the most expensive check, so it comes last.
        if !affected.is_empty() && !self.world.rules.words.is_backchannel(&message.text) {
            affected.into_iter().for_each(|ticket| self.stop_attempt(ticket, seq, said_at));
        }
    }

    /// Schedules a restart of statements because messages that they answer were edited or deleted.
    pub(super) fn replan_for_change(&mut self, seq: Seq, answers: &[Ticket]) {
        for ticket in answers {
            self.stop_attempt(*ticket, seq, self.state.position.clock);
        }
    }

    /// Stops the attempt in progress if it may be restarted. If it is stopped already, its pause becomes longer.
    fn stop_attempt(&mut self, ticket: Ticket, message: Seq, said_at: Moment) {
        // Speech during a spoken reply extends it (docs/design/voice.md A-23). A typed message waits.
        let is_written = |floor: &&OwedReply| !floor.is_posting && !self.is_aloud(floor);
        let Some(floor) = self.state.turns.owed_reply(ticket).filter(is_written) else { return };
        let is_external = self.state.gates.get(&floor.companion).is_none_or(|gate| gate.external);
        if is_external || floor.replans >= self.world.rules.reply.max_replans {
            return;
        }
        let until = said_at + REPLAN_PAUSE;
        if floor.replan_at.is_none_or(|at| at < until) {
            let (companion, ticket) = (floor.companion.clone(), floor.ticket);
            self.record(Event::Replanning { companion, ticket, message, until });
        }
    }

    /// Starts the next attempts that are due. Each also answers all messages that are unsettled by now.
    pub(super) fn replan_due(&mut self) {
        let is_due = |floor: &&OwedReply| !floor.is_posting && floor.replan_at.is_some_and(|at| self.is_due(at));
        for ticket in self.state.turns.owed_replies().filter(is_due).map(|floor| floor.ticket).collect::<Vec<_>>() {
            let Some(floor) = self.state.turns.owed_reply(ticket) else { continue };
            let Some(gate) = self.state.gates.get(&floor.companion) else { continue };
            let mut messages = floor.messages.clone();
            messages.extend(self.state.window.unsettled(&floor.companion, gate, self.state.position.handled));
            let replanned = Event::Replanned {
                companion: floor.companion.clone(),
                ticket,
                next: Ticket(self.state.position.tickets.0 + 1),
                trigger: floor.trigger,
                messages,
                upto: self.state.position.handled,
            };
            self.record(replanned);
        }
    }

    /// Cancels the replies, turns and questions that a stop phrase concerns. Must be called before the message is applied.
    pub(super) fn stop_replies(&mut self, seq: Seq, message: &Message) -> Stops {
        let stopped = self.state.stopped_by(seq, message);
        for one in &stopped {
            let Stopped { companion, ticket, trigger, .. } = one;
            let owed = ticket.and_then(|ticket| self.state.turns.owed_reply(ticket));
            if self.catches_up && owed.is_some_and(|floor| !floor.heard().trim().is_empty()) {
                self.close_heard_reply();
                continue;
            }
            if let Some(ticket) = owed.filter(|floor| self.is_aloud(floor)).map(|floor| floor.ticket) {
                // The process restart interrupted this reply before anything was heard of it.
                if self.catches_up {
                    self.fail_reply(ticket, INTERRUPTED.into());
                } else {
                    self.tell_reply(interruption::Input::StopPressed);
                }
                continue;
            }
            let cancelled =
                Event::Cancelled { companion: companion.clone(), ticket: *ticket, trigger: *trigger, message: Some(seq) };
            self.record(cancelled);
        }
        let stopped = stopped.into_iter().chain(self.retract_questions(seq, message)).collect();
        Stops { stopped, settled: Vec::new() }
    }

    /// Cancels the reply of one companion after a user pressed Stop (docs/design/speaking.md S-16).
    pub(super) fn stop_reply_of(&mut self, companion: &CompanionId) {
        let Some(floor) = self.state.turns.stoppable_reply(companion) else { return };
        let (ticket, trigger) = (floor.ticket, floor.trigger);
        if self.state.voice.is_aloud(ticket) {
            return self.tell_reply(interruption::Input::StopPressed);
        }
        let cancelled = Event::Cancelled { companion: companion.clone(), ticket: Some(ticket), trigger, message: None };
        self.record(cancelled);
    }

    /// Determines the companions for which the phrase settles. Must be called before the message is applied, and after full buffers have settled
    /// their oldest messages.
    pub(super) fn note_settled(&self, stops: &mut Stops, seq: Seq, message: &Message) {
        stops.settled = self.state.settled_by_stop(&stops.stopped, seq, message);
    }

    /// Journals that the phrase and the messages that the cancelled replies would have answered settle without a question.
    pub(super) fn settle_stopped(&mut self, stops: Stops, seq: Seq, message: &Message) {
        if stops.settled.is_empty() {
            return;
        }
        self.turn_without_question = stops.stopped.first().and_then(|one| one.turn);
        for companion in stops.settled {
            let trigger = if message.address.includes(&companion) { Trigger::DirectAddress } else { Trigger::Lull };
            let is_left = |gate: &Gate| !gate.is_silent() && !self.state.window.unsettled(&companion, gate, seq).is_empty();
            if self.state.gates.get(&companion).is_some_and(is_left) {
                self.decline(&companion, trigger, Reason::Cancelled, seq, AnswerRecord::default());
            }
        }
        self.turn_without_question = None;
    }
}

/// The consequences of a stop phrase once its message is applied.
#[derive(Default)]
pub(super) struct Stops {
    stopped: Vec<Stopped>,
    /// The companions for which the message settles.
    settled: Vec<CompanionId>,
}

impl Stops {
    /// Whether the phrase cancelled anything, and addresses only companions that it stopped.
    pub(super) fn are_all(&self, message: &Message) -> bool {
        let is_stopped = |companion: &CompanionId| self.stopped.iter().any(|one| one.companion == *companion);
        !self.stopped.is_empty() && message.address.companions.iter().all(is_stopped)
    }
}
