//! Decides which companions are asked. A waiting trigger is decided without a call, or becomes a question, once no question is in flight
//! (docs/design/gate.md G-16).

use super::super::budget::UsedUp;
use super::super::event::Evaluated;
use super::super::gate::{Check, Waiting};
use super::super::message::Role;
use super::advance::{AnswerRecord, Due};
use super::ending::is_call;
use super::*;

/// Further facts about the companions in a round.
pub(super) struct Attendance {
    /// The last speaker, if its statement opens the round and it has no waiting trigger of its own. It does not take part.
    pub(super) left_out: Option<CompanionId>,
    /// The companions that an unsettled message addresses.
    pub(super) called: BTreeSet<CompanionId>,
}

impl Conversation {
    pub(super) fn draw_first_interval(&mut self, companion: &CompanionId, step: &mut Step<'_, '_>) {
        let gate = &self.gates[companion];
        let Some(policy) = step.world.policies.get(companion).filter(|_| gate.lacks_interval()) else { return };
        let next_interjection_at = policy.interval(0, (step.world.jitter)());
        self.record(Event::JitterDrawn { companion: companion.clone(), next_interjection_at }, step);
    }

    /// Adds the companions whose back-off has ended: its deadline was handled, or a human's address cuts it short.
    pub(super) fn collect_ended_back_offs(&self, occasion: Occasion, ended_back_offs: &mut Vec<CompanionId>) {
        let is_due = |gate: &Gate| gate.retry_at().is_some_and(|until| self.is_due(until, occasion));
        let has_ended = |gate: &Gate| gate.is_back_off_cut_short() || is_due(gate);
        for (companion, _) in self.gates.iter().filter(|(_, gate)| has_ended(gate)) {
            ended_back_offs.push(companion.clone());
        }
    }

    /// Ends back-offs, all at once, so that questions that are asked again come before new lull timers. Then settles the messages that became stale
    /// in the meantime.
    pub(super) fn end_back_offs(&mut self, ended_back_offs: &[CompanionId], step: &mut Step<'_, '_>) {
        self.record_ended_back_offs(ended_back_offs, step);
        for companion in ended_back_offs {
            self.settle_stale(companion, None, step);
        }
    }

    pub(super) fn record_ended_back_offs(&mut self, ended_back_offs: &[CompanionId], step: &mut Step<'_, '_>) {
        let is_running = |companion: &&CompanionId| self.gates.get(companion).is_some_and(Gate::is_backing_off);
        let companions: Vec<_> = ended_back_offs.iter().filter(is_running).cloned().collect();
        if !companions.is_empty() {
            self.record(Event::BackOffEnded { companions }, step);
        }
    }

    /// Whether a companion may be asked when its trigger fires.
    pub(super) fn is_ready(&self, companion: &CompanionId, gate: &Gate, world: &World<'_>) -> bool {
        !gate.is_silent() && !gate.is_backing_off() && !self.turns.is_late(companion) && world.policies.contains_key(companion)
    }

    /// Whether a companion is asked although another one speaks or is asked: a person has just addressed it, and it has nothing in progress itself.
    fn is_asked_at_once(&self, companion: &CompanionId, gate: &Gate, waiting: Waiting) -> bool {
        let has_floor =
            self.turns.floor.as_ref().is_some_and(|floor| floor.companion == *companion) || self.turns.is_selected(companion);
        // The address may have settled, because the buffer was full.
        let is_addressed = || self.buffer(companion).any(|entry| is_call(&entry.message, companion));
        // One that wants to speak and waits for the votes of others is asked anew. A round is known by its message.
        waiting.urgent
            && is_addressed()
            && gate.evaluation.is_none()
            && !self.turns.held.contains_key(companion)
            && !has_floor
            && self.holds_rounds()
            && self.turns.round(self.handled).is_none()
    }

    /// Settles messages older than `gate.stale_after_secs`, up to the first address that no question was about yet. With `patience`, an address older
    /// than that settles, too.
    pub(super) fn settle_stale(&mut self, companion: &CompanionId, patience: Option<Duration>, step: &mut Step<'_, '_>) {
        let gate = &self.gates[companion];
        let age = |at: Moment| self.clock.since(at);
        let stale = self
            .window
            .buffer(companion, gate.cursor)
            .take_while(|entry| {
                // A statement that names a companion is a turn for it, not an address.
                let is_address = if entry.message.is_event() {
                    gate.owes_acknowledgement()
                } else {
                    entry.message.from.role != Role::Companion && entry.message.address.includes(companion)
                };
                let is_untried = entry.seq > gate.tried && is_address;
                let may_be_answered = is_untried && patience.is_none_or(|patience| age(entry.at) < patience);
                age(entry.at) > step.world.rules.gate.stale_after() && !may_be_answered
            })
            .last()
            .map(|entry| entry.seq);
        if let Some(upto) = stale {
            // A lull that ends at the same moment may be about some of these messages.
            self.fire_lulls(Due::Now, step);
            self.settle_unasked(companion, Reason::Stale, upto, step);
        }
    }

    /// Handles a waiting trigger, if no question is in flight. It is decided without a call, or returned to be asked. Then it is already counted as
    /// asked.
    pub(super) fn proceed(&mut self, companion: &CompanionId, step: &mut Step<'_, '_>) -> Option<Waiting> {
        loop {
            let gate = &self.gates[companion];
            // Events are acknowledged without a question.
            let waiting = gate.waiting.filter(|waiting| waiting.trigger != Trigger::Event)?;
            let may_ask = !self.is_busy() || self.is_asked_at_once(companion, gate, waiting);
            if !may_ask || !self.is_ready(companion, gate, step.world) || self.awaits_last_statement(step.world) {
                return None;
            }
            if waiting.trigger == Trigger::Interjection && self.holds_interjections()
                || waiting.trigger == Trigger::Turn && self.holds_turns()
            {
                return None;
            }
            let Some((reason, used_up)) = self.decide_without_call(companion, waiting, step.world) else { return Some(waiting) };
            if self.gates[companion].wish.is_some() {
                // Its vote stands.
                return None;
            }
            let answered = AnswerRecord { used_up, ..AnswerRecord::default() };
            self.decline(companion, waiting.trigger, reason, self.handled, answered, step);
        }
    }

    /// The reason to decide without a call. `None`: the companion must be asked, and the question is already counted.
    fn decide_without_call(
        &self,
        companion: &CompanionId,
        waiting: Waiting,
        world: &mut World<'_>,
    ) -> Option<(Reason, Option<UsedUp>)> {
        if self.streak() >= world.rules.turn_taking.max_companion_streak {
            return Some((Reason::LoopGuard, None));
        }
        let is_for_others = match waiting.trigger {
            _ if !world.rules.gate.skip_when_other_addressed => false,
            Trigger::Lull => self.buffer(companion).all(|entry| entry.message.address.is_elsewhere(companion)),
            Trigger::Turn => self.buffer(companion).all(|entry| !entry.audience().includes(companion)),
            Trigger::Silence | Trigger::Interjection | Trigger::DirectAddress | Trigger::Event => false,
        };
        if is_for_others {
            return Some((Reason::OtherAddressed, None));
        }
        if world.is_unpostable {
            return Some((Reason::Unpostable, None));
        }
        let guild_budget = world.exhausted_statement_budget(self.clock);
        let used_up = match waiting.trigger {
            Trigger::DirectAddress | Trigger::Event => guild_budget,
            _ => world.ledger.take_evaluation(world.channel, companion, self.clock, world.rules.gate, guild_budget).err(),
        }?;
        Some((Reason::Budget, Some(used_up)))
    }

    /// Adds every other companion that takes part in the round and has unsettled messages, as if after a lull.
    pub(super) fn add_listeners(
        &self,
        asked: &mut Vec<(CompanionId, Waiting)>,
        left_out: Option<&CompanionId>,
        world: &World<'_>,
    ) {
        for (companion, gate) in self.gates.iter() {
            let takes_part =
                left_out != Some(companion) && !gate.owes_acknowledgement() && asked.iter().all(|(other, _)| other != companion);
            let newest = self.window.newest(companion, gate.cursor).map(|entry| entry.seq);
            if let Some(message) = newest.filter(|_| takes_part && self.is_ready(companion, gate, world)) {
                let waiting = Waiting { trigger: Trigger::Lull, message, check: Check::Unsettled, urgent: false };
                asked.push((companion.clone(), waiting));
            }
        }
        asked.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    /// Asks the companions whose triggers fired together: in a round, or without one if a companion is alone.
    pub(super) fn ask(&mut self, asked: Vec<(CompanionId, Waiting)>, attendance: &Attendance, step: &mut Step<'_, '_>) {
        if asked.is_empty() {
            return;
        }
        if self.holds_rounds() {
            self.open_round(asked.iter().map(|(companion, _)| companion.clone()).collect(), attendance, step);
        }
        for (companion, waiting) in asked {
            let gate = &self.gates[&companion];
            let messages = self.unsettled(&companion, gate, self.handled);
            let is_alone_and_spoken = !self.holds_rounds() && self.is_spoken(waiting.message);
            let evaluated = Evaluated {
                due_at: is_alone_and_spoken.then(|| self.clock + step.world.rules.voice.decision_timeout()),
                ticket: Ticket(self.tickets.0 + 1),
                trigger: waiting.trigger,
                message: waiting.message,
                upto: messages.last().copied().unwrap_or(gate.cursor),
                messages,
                message_count: gate.message_counter,
                check_count: gate.check_count,
                threshold: gate.next_interjection_at,
                companion,
            };
            self.record(Event::Evaluated(evaluated), step);
        }
    }
}
