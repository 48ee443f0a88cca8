//! Decides which companions are asked. As soon as no question is in flight, a waiting trigger is decided without a call, or becomes a question
//! (docs/design/gate.md G-16).

use super::super::event::Evaluated;
use super::super::gate::Waiting;
use super::super::message::{Message, Role};
use super::super::policy::gate::PreGate;
use super::super::relevance::{Estimate, Heard};
use super::super::window::Entry;
use super::advance::AnswerRecord;
use super::ending::is_call;
use super::step::Due;
use super::*;

/// Further facts about the companions in a round.
pub(super) struct Attendance {
    /// The last speaker, if its statement opens the round and it has no waiting trigger of its own. It does not take part.
    pub(super) left_out: Option<CompanionId>,
    /// The companions that an unsettled message addresses.
    pub(super) called: BTreeSet<CompanionId>,
}

impl Conversation {
    /// Whether a companion is asked although another one speaks or is being asked. It is if a person has just addressed it and it has nothing in
    /// progress.
    fn is_asked_at_once(&self, companion: &CompanionId, gate: &Gate, waiting: Waiting) -> bool {
        let has_floor =
            self.turns.floor.as_ref().is_some_and(|floor| floor.companion == *companion) || self.turns.is_selected(companion);
        // The message may have settled because the buffer was full.
        let is_addressed = || self.buffer(companion).any(|entry| is_call(&entry.message, companion));
        // A companion that wants to speak and waits for the votes of others is asked again. A round is identified by its message.
        waiting.urgent
            && is_addressed()
            && gate.evaluation.is_none()
            && !self.turns.held.contains_key(companion)
            && !has_floor
            && self.gates.holds_rounds()
            && self.turns.round(self.position.handled).is_none()
    }
}

impl Step<'_, '_> {
    /// The last speaker, if its statement opens the round and it has no waiting trigger of its own.
    pub(super) fn speaker_left_out(&self) -> Option<CompanionId> {
        let speaker = self.state.turns.posted.as_ref().filter(|_| self.after_statement).map(|spoken| &spoken.companion);
        speaker.filter(|speaker| self.state.gates.get(speaker).is_none_or(|gate| gate.waiting.is_none())).cloned()
    }

    pub(super) fn draw_first_intervals(&mut self) {
        for companion in &self.state.gates.companions_where(Gate::lacks_interval) {
            self.draw_first_interval(companion);
        }
    }

    /// Adds the companions whose back-off has ended, because its deadline was handled or a person's address cuts it short.
    pub(super) fn note_ended_back_offs(&mut self) {
        let is_due = |gate: &Gate| gate.retry_at().is_some_and(|until| self.is_due(until));
        let ended = self.state.gates.companions_where(|gate| gate.is_back_off_cut_short() || is_due(gate));
        self.ended_back_offs.extend(ended);
    }

    fn draw_first_interval(&mut self, companion: &CompanionId) {
        let gate = &self.state.gates[companion];
        let Some(policy) = self.world.policies.get(companion).filter(|_| gate.lacks_interval()) else { return };
        let next_interjection_at = policy.interval(0, (self.world.jitter)());
        self.record(Event::JitterDrawn { companion: companion.clone(), next_interjection_at });
    }

    /// Ends all these back-offs at once, so that repeated questions come before new lull timers. Then settles the messages that became stale in the
    /// meantime.
    pub(super) fn end_back_offs(&mut self, ended_back_offs: &[CompanionId]) {
        self.record_ended_back_offs(ended_back_offs);
        for companion in ended_back_offs {
            self.settle_stale(companion, None);
        }
    }

    pub(super) fn record_ended_back_offs(&mut self, ended_back_offs: &[CompanionId]) {
        let is_running = |companion: &&CompanionId| self.state.gates.get(companion).is_some_and(Gate::is_backing_off);
        let companions: Vec<_> = ended_back_offs.iter().filter(is_running).cloned().collect();
        if !companions.is_empty() {
            self.record(Event::BackOffEnded { companions });
        }
    }

    /// Whether a companion may be asked when its trigger fires.
    pub(super) fn is_ready(&self, companion: &CompanionId, gate: &Gate) -> bool {
        !gate.is_silent()
            && !gate.is_backing_off()
            && !self.state.turns.is_late(companion)
            && self.world.policies.contains_key(companion)
    }

    /// Settles messages older than `gate.stale_after_secs`, up to the first address that no question has covered yet. With `patience`, addresses
    /// older than `patience` settle, too.
    pub(super) fn settle_stale(&mut self, companion: &CompanionId, patience: Option<Duration>) {
        let gate = &self.state.gates[companion];
        let age = |at: Moment| self.state.position.clock.since(at);
        let stale = self
            .state
            .window
            .buffer(companion, gate.cursor)
            .take_while(|entry| {
                // A statement that names a companion is a `turn` trigger for it, not an address.
                let is_address = if entry.message.is_event() {
                    gate.owes_acknowledgement()
                } else {
                    entry.message.from.role != Role::Companion && entry.message.address.includes(companion)
                };
                let is_untried = entry.seq > gate.tried && is_address;
                let may_be_answered = is_untried && patience.is_none_or(|patience| age(entry.at) < patience);
                age(entry.at) > self.world.rules.gate.stale_after() && !may_be_answered
            })
            .last()
            .map(|entry| entry.seq);
        if let Some(upto) = stale {
            // A lull that ends at the same moment may be about some of these messages.
            self.fire_lulls(Due::Now);
            self.settle_unasked(companion, Reason::Stale, upto);
        }
    }

    /// Handles a waiting trigger if no question is in flight. Decides it without a call, or returns it for a question that is already counted in the
    /// budget.
    pub(super) fn proceed(&mut self, companion: &CompanionId) -> Option<Waiting> {
        loop {
            let gate = &self.state.gates[companion];
            // Events are acknowledged without a question.
            let waiting = gate.waiting.filter(|waiting| !waiting.trigger.acknowledges_events())?;
            let may_ask = !self.state.is_busy() || self.state.is_asked_at_once(companion, gate, waiting);
            if !may_ask || !self.is_ready(companion, gate) || self.awaits_last_statement() {
                return None;
            }
            if waiting.trigger == Trigger::Interjection && self.state.voice.holds_interjections()
                || waiting.trigger == Trigger::Turn && self.state.voice.holds_turns()
            {
                return None;
            }
            let Some((reason, answered)) = self.decide_without_call(companion, waiting) else { return Some(waiting) };
            if self.state.gates[companion].wish.is_some() {
                // Its earlier vote remains valid.
                return None;
            }
            self.decline(companion, waiting.trigger, reason, self.state.position.handled, answered);
        }
    }

    /// The reason to decide without a call. `None`: the companion must be asked, and the question is already counted.
    fn decide_without_call(&mut self, companion: &CompanionId, waiting: Waiting) -> Option<(Reason, AnswerRecord)> {
        let for_reason = |reason| Some((reason, AnswerRecord::default()));
        if self.state.is_taken_back(companion, waiting) {
            return for_reason(Reason::Cancelled);
        }
        if let Some(message) = self.state.known_at_risk(companion, waiting.trigger, waiting.message) {
            return Some((Reason::Risk, AnswerRecord { at_risk: Some(message), ..AnswerRecord::default() }));
        }
        if !waiting.trigger.is_call() && self.lacks_initiative(companion) {
            return for_reason(Reason::NoInitiative);
        }
        if self.is_guarded() {
            return for_reason(Reason::LoopGuard);
        }
        let skips = self.world.rules.gate.skip_when_other_addressed;
        let is_restricted = |entry: &Entry| !entry.message.address.standing.is_free();
        let is_for_others = waiting.trigger == Trigger::Lull
            && self
                .state
                .buffer(companion)
                .all(|entry| is_restricted(entry) || skips && entry.message.address.is_elsewhere(companion))
            || skips
                && waiting.trigger == Trigger::Turn
                && self.state.buffer(companion).all(|entry| !entry.audience().includes(companion));
        if is_for_others {
            let by_role = self.state.buffer(companion).any(is_restricted);
            return Some((Reason::OtherAddressed, AnswerRecord { by_role, ..AnswerRecord::default() }));
        }
        if self.world.is_unpostable {
            return for_reason(Reason::Unpostable);
        }
        let may_skip = matches!(waiting.trigger, Trigger::Lull | Trigger::Interjection | Trigger::Turn);
        if let Some(estimate) = self.is_irrelevant(companion).filter(|_| may_skip) {
            return Some((Reason::Irrelevant, AnswerRecord { relevance: Some(Box::new(estimate)), ..AnswerRecord::default() }));
        }
        let guild_budget = self.world.exhausted_statement_budget(self.state.position.clock);
        let used_up = if waiting.trigger.is_call() {
            guild_budget
        } else {
            let (ledger, now) = (&mut self.world.ledger, self.state.position.clock);
            ledger.take_evaluation(self.world.channel, companion, now, self.world.rules.gate, guild_budget).err()
        }?;
        Some((Reason::Budget, AnswerRecord { used_up: Some(used_up), ..AnswerRecord::default() }))
    }

    /// Whether a companion speaks only when spoken to at the moment, and no unsettled message addresses it.
    fn lacks_initiative(&self, companion: &CompanionId) -> bool {
        let Rules { quiet_hours, zone, .. } = self.world.rules;
        let Some(policy) = self.world.policies.get(companion) else { return false };
        let is_quiet = |hours: QuietHours| hours.include(self.state.position.clock, zone);
        let cancelled = &self.state.gates[companion].cancelled;
        let calls = |entry: &Entry| entry.message.address.includes(companion) && !cancelled.contains(&entry.seq);
        policy.quiet_hours.into_iter().chain([quiet_hours]).any(is_quiet) && !self.state.buffer(companion).any(calls)
    }

    /// The estimate that the companion is unlikely to answer any of its unsettled messages. None: this is no reason against asking it.
    fn is_irrelevant(&self, companion: &CompanionId) -> Option<Estimate> {
        let rules = self.world.rules.gate;
        let gate = self.state.gates.get(companion).filter(|_| rules.pre_gate == PreGate::Skip)?;
        let relevance = gate.relevance.as_ref().filter(|relevance| !relevance.has_one_person())?;
        let unsettled: Vec<_> = self.state.window.buffer(companion, gate.cursor).map(|entry| &*entry.message).collect();
        let follows_own = relevance.since_own().is_some_and(|since| usize::from(since) <= unsettled.len());
        let is_owed = |message: &&Message| message.is_event() || message.address.includes(companion);
        if follows_own || unsettled.iter().any(is_owed) {
            return None;
        }
        let features = unsettled.iter().map(|message| relevance.features(&Heard::of(companion, message)));
        let best = features.max_by(|one, other| one.logit().total_cmp(&other.logit()))?;
        let (logit, threshold) = (best.logit(), rules.pre_gate_threshold as f32);
        (logit < threshold).then(|| Estimate { logit, threshold, features: best.named() })
    }

    /// Asks the companions whose triggers fired together: in a round, or without one if there is only one companion.
    pub(super) fn ask(&mut self, asked: Vec<(CompanionId, Waiting)>, attendance: &Attendance) {
        if asked.is_empty() {
            return;
        }
        if self.state.gates.holds_rounds() {
            self.open_round(asked.iter().map(|(companion, _)| companion.clone()).collect(), attendance);
        }
        for (companion, waiting) in asked {
            let gate = &self.state.gates[&companion];
            let messages = self.state.window.unsettled(&companion, gate, self.state.position.handled);
            let is_alone_and_spoken = !self.state.gates.holds_rounds() && self.state.window.is_spoken(waiting.message);
            let evaluated = Evaluated {
                due_at: is_alone_and_spoken.then(|| self.state.position.clock + self.world.rules.voice.decision_timeout()),
                ticket: Ticket(self.state.position.tickets.0 + 1),
                trigger: waiting.trigger,
                message: waiting.message,
                upto: messages.last().copied().unwrap_or(gate.cursor),
                messages,
                message_count: gate.message_counter,
                check_count: gate.check_count,
                threshold: gate.next_interjection_at,
                companion,
            };
            self.record(Event::Evaluated(evaluated));
        }
    }
}
