//! Decides when a conversation ends: closing stages, the number of turns, and repetition (docs/design/closing.md C-1 to C-21).

use super::super::gate::{Check, Evaluation, Waiting};
use super::super::message::{Message, Role};
use super::super::{repetition, window};
use super::apply::cancel_lull;
use super::*;
use crate::policy::repetition::Judge;

impl Conversation {
    /// Whether a question of this companion, in flight or answered with YES, is about a human's address.
    fn is_asked_by_person(&self, companion: &CompanionId) -> bool {
        let Some(gate) = self.gates.get(companion) else { return false };
        // A question after a long silence is about no message, even if there are messages before it.
        let asked = gate.evaluation.map(|evaluation| (evaluation.trigger, evaluation.message));
        let about = asked.or(gate.wish.as_ref().map(|wish| (wish.trigger, wish.message)));
        let about = about.filter(|(trigger, _)| trigger.needs_a_message()).map(|(_, message)| message);
        about.and_then(|about| self.window.get(about)).is_some_and(|entry| is_call(&entry.message, companion))
    }

    /// Removes the names of other people from these messages.
    pub(super) fn forget_named(&mut self, statements: &[Seq]) {
        self.window.forget_named(statements);
        for statement in self.closing.recent_statements.iter_mut().filter(|statement| statements.contains(&statement.seq)) {
            Arc::make_mut(&mut statement.message).forget_named();
        }
    }

    /// Starts a new episode. Earlier statements, detections and forced stages do not count any more.
    pub(super) fn begin_episode(&mut self) {
        for gate in self.gates.values_mut() {
            gate.turns = 0;
        }
        self.restart_counts();
    }

    /// Starts the statement count anew when the conversation begins or is opened again.
    fn restart_counts(&mut self) {
        (self.closing.tally.turns, self.closing.tally.opened) = (0, self.position.handled);
        self.restart_repetition();
    }

    /// Discards earlier statements and detections.
    pub(super) fn restart_repetition(&mut self) {
        (self.closing.tally.detections, self.closing.tally.is_asked_for) = (0, false);
        self.closing.recent_statements.clear();
        self.lift_minimum_stages();
    }

    fn lift_minimum_stages(&mut self) {
        self.closing.tally.forced = Stage::None;
        self.closing.tally.is_next_allowed = false;
        for gate in self.gates.values_mut() {
            gate.minimum_stage = Stage::None;
        }
    }

    /// Counts a posted statement. `forced` is the stage that repetition had forced when its call began. The speaker's minimum stage ends.
    pub(super) fn count_turn(&mut self, speaker: &CompanionId, forced: Stage, is_of_before: bool) {
        self.closing.tally.turns += u32::from(!is_of_before);
        self.closing.tally.is_next_allowed |= forced == self.closing.tally.forced;
        if let Some(gate) = self.gates.get_mut(speaker) {
            gate.turns += u32::from(!is_of_before);
            gate.minimum_stage = Stage::None;
        }
    }

    pub(super) fn apply_stage(&mut self, companion: &CompanionId, to: Stage, cause: Cause, notes: &mut Vec<Output>) {
        let Some(gate) = self.gates.get_mut(companion) else { return };
        let is_opened = gate.is_closed() && to != Stage::Terminal;
        gate.stage = to;
        gate.heard_closed = 0;
        match cause {
            Cause::MaxTurns => gate.minimum_stage = to,
            Cause::State => gate.minimum_stage = gate.minimum_stage.min(to),
            Cause::Repetition | Cause::DirectAddress | Cause::Event | Cause::ReopenAfter | Cause::NewEpisode => {}
        }
        if is_opened {
            gate.turns = 0;
            self.restart_counts();
        }
        if to == Stage::Terminal {
            self.withdraw(companion, notes);
        }
    }

    /// Ends the question, the wish and the turn of a companion that became terminal. A statement whose call has begun continues. A question about a
    /// human's address continues, too, because that address opens the companion again.
    fn withdraw(&mut self, companion: &CompanionId, notes: &mut Vec<Output>) {
        let lost_turn = self.turns.selected.take_if(|turn| turn.candidate.companion == *companion);
        if let Some(spoken) = self.turns.posted.as_mut().filter(|spoken| spoken.companion == *companion) {
            spoken.is_farewell = false;
        }
        let is_asked_by_person = self.is_asked_by_person(companion);
        let newest_call = self.buffer(companion).rfind(|entry| is_call(&entry.message, companion)).map(|entry| entry.seq);
        if lost_turn.as_ref().is_some_and(|turn| turn.candidate.trigger.acknowledges_events()) {
            self.restore_event(companion);
        }
        let Some(gate) = self.gates.get_mut(companion) else { return };
        // A silence has no messages, so no decision declines it.
        gate.waiting.take_if(|waiting| !waiting.trigger.needs_a_message());
        gate.silence_at = None;
        cancel_lull(companion, gate, notes);
        if let Some(message) = newest_call.filter(|_| lost_turn.is_some()) {
            // If the companion is opened again, it is asked again.
            gate.fire(Waiting { trigger: Trigger::DirectAddress, message, check: Check::Unsettled, urgent: true });
        }
        if is_asked_by_person || !gate.is_engaged() {
            return;
        }
        gate.wish = None;
        if let Some(evaluation) = gate.evaluation.take() {
            notes.push(Output::Cancel { ticket: evaluation.ticket });
        }
        self.submit_listening_for(std::iter::once(companion));
    }

    pub(super) fn apply_judged(&mut self, score: f64, detections: u32, forced: Stage, exempt: &[CompanionId]) {
        self.closing.tally.detections = detections;
        self.closing.tally.repetition = (score * 1000.0).round() as u32;
        self.turns.judge(Judgement::Given);
        if forced.is_none() {
            self.lift_minimum_stages();
            return;
        }
        if forced != self.closing.tally.forced {
            self.closing.tally.is_next_allowed = false;
        }
        self.closing.tally.forced = forced;
        for (_, gate) in self.gates.iter_mut().filter(|(companion, _)| !exempt.contains(companion)) {
            gate.minimum_stage = gate.minimum_stage.max(forced);
        }
    }

    /// The vote with a stage that is not below the companion's minimum. The minimum does not apply if the companion wants to answer a person.
    pub(super) fn at_least_minimum(&self, companion: &CompanionId, evaluation: &Evaluation, vote: &Vote) -> Vote {
        let answers_person = || self.window.answers_person(evaluation.trigger, &self.considered(companion, evaluation));
        let is_free = vote.verdict == Verdict::Yes && answers_person();
        let minimum = self.gates.get(companion).filter(|_| !is_free).map_or(Stage::None, |gate| gate.minimum_stage);
        Vote { closing: vote.closing.max(minimum), ..vote.clone() }
    }
}

impl Step<'_, '_> {
    /// Whether the last statement that `max_turns` allows is being written late. Until it is posted or has failed, no other companion is asked or
    /// selected.
    pub(super) fn awaits_last_statement(&self) -> bool {
        !self.state.turns.late.is_empty() && has_reached(self.world.rules.turn_taking.max_turns, self.state.turns_count())
    }

    /// Changes the stage of a companion, if it differs. See [`change_stages`](Self::change_stages).
    pub(super) fn change_stage(&mut self, companion: &CompanionId, to: Stage, cause: Cause, opened: Seq) {
        self.change_stages(vec![companion.clone()], to, cause, opened);
    }

    /// Changes the stage of companions where it differs: first all stages, then their consequences. A companion that becomes terminal settles all its
    /// unsettled messages. If a human addressed it after the round opened, its question is about a human's address, or it must acknowledge an event,
    /// it is opened again at once instead.
    pub(super) fn change_stages(&mut self, companions: Vec<CompanionId>, to: Stage, cause: Cause, opened: Seq) {
        let mut changed = Vec::new();
        for companion in companions {
            if let Some(from) = self.state.gates.get(&companion).map(|gate| gate.stage).filter(|from| *from != to) {
                self.record(Event::StageChanged { companion: companion.clone(), from, to, cause });
                changed.push(companion);
            }
        }
        for companion in changed.into_iter().filter(|_| to == Stage::Terminal) {
            let calls = |entry: &window::Entry| entry.seq > opened && is_call(&entry.message, &companion);
            let is_called = self.state.is_asked_by_person(&companion) || self.state.buffer(&companion).any(calls);
            if is_called || self.state.gates.get(&companion).is_some_and(Gate::owes_acknowledgement) {
                let (from, to) = (Stage::Terminal, Stage::None);
                let cause = if is_called { Cause::DirectAddress } else { Cause::Event };
                self.record(Event::StageChanged { companion, from, to, cause });
            } else if self.state.buffer(&companion).next().is_some() {
                self.settle_all(vec![companion], Reason::Closed);
            }
        }
    }

    /// Begins the call for a statement. If it is the last statement that `max_turns` of the channel or of its speaker allows, the stage of its
    /// speaker becomes closing, so that it says goodbye.
    pub(super) fn begin_statement(&mut self, companion: &CompanionId) {
        let Some(gate) = self.state.gates.get(companion).filter(|gate| gate.stage < Stage::Closing) else { return };
        // A statement that was selected before the conversation was opened again does not count. If a late statement counts, it is the last one.
        let counts =
            self.state.turns.floor.as_ref().is_none_or(|floor| floor.selection.selected_at >= self.state.closing.tally.opened);
        let is_last = counts && self.state.closing.tally.turns == self.state.turns_count();
        if is_last && has_reached(self.world.rules.turn_taking.max_turns, self.state.closing.tally.turns + 1)
            || counts && has_reached(own_max_turns(companion, self.world), gate.turns + 1)
        {
            self.change_stage(companion, Stage::Closing, Cause::MaxTurns, self.state.position.handled);
        }
    }

    /// The companions that become terminal after a statement by `speaker`, and the cause.
    fn ended_by(&self, speaker: &CompanionId, is_farewell: bool) -> (Vec<CompanionId>, Cause) {
        if has_reached(self.world.rules.turn_taking.max_turns, self.state.closing.tally.turns) {
            return (self.state.gates.keys().cloned().collect(), Cause::MaxTurns);
        }
        let turns = self.state.gates.get(speaker).map_or(0, |gate| gate.turns);
        if has_reached(own_max_turns(speaker, self.world), turns) {
            return (vec![speaker.clone()], Cause::MaxTurns);
        }
        (Vec::from_iter(is_farewell.then(|| speaker.clone())), Cause::State)
    }

    /// Assesses a posted statement: ends the conversation for the companions whose last statement it was, and judges the last statements for
    /// repetition.
    pub(super) fn assess_statement(&mut self) {
        let Some(PostedStatement { companion, opened, message, judgement, is_farewell, is_unjudged, .. }) =
            self.state.turns.posted.clone()
        else {
            return;
        };
        if matches!(judgement, Judgement::Asked(_) | Judgement::Given) {
            return;
        }
        let (ended, cause) = self.ended_by(&companion, is_farewell);
        self.change_stages(ended, Stage::Terminal, cause, opened);
        if is_unjudged
            || !self.world.rules.repetition.enabled
            || self.state.closing.recent_texts().len() < repetition::LEAST_STATEMENTS
        {
            return;
        }
        // While the token budget is used up, only the lexical judge runs.
        let judge = self
            .world
            .exhausted_token_budget(self.state.position.clock)
            .map_or(self.world.rules.repetition.judge, |_| Judge::Lexical);
        let score = if judge == Judge::Model { 0.0 } else { self.state.closing.repeated().score };
        if judge == Judge::Model || judge == Judge::Both && score > repetition::THRESHOLD {
            self.record(Event::RepetitionAsked { ticket: Ticket(self.state.position.tickets.0 + 1), message });
        } else {
            self.record_judgement(message, opened, score, None);
        }
    }

    /// Makes companions terminal that join after the last statement that `max_turns` allows. This also applies if all others have left.
    pub(super) fn close_newcomers(&mut self) {
        let has_ended = has_reached(self.world.rules.turn_taking.max_turns, self.state.closing.tally.turns);
        let have_others_left = || self.state.gates.values().all(|gate| gate.turns == 0);
        if has_ended && (self.state.gates.values().any(Gate::is_closed) || have_others_left()) {
            let newcomers = self.state.gates.companions_where(|gate| !gate.is_closed());
            self.change_stages(newcomers, Stage::Terminal, Cause::MaxTurns, self.state.position.handled);
        }
    }

    /// Accepts the score of the side model. Returns whether a judgement was pending.
    pub(super) fn judge(&mut self, ticket: Ticket, score: f64, mut call: Option<Box<Call>>) -> bool {
        let is_awaited = |spoken: &&PostedStatement| spoken.judgement == Judgement::Asked(ticket);
        let Some(PostedStatement { message, opened, is_spoilt, .. }) = self.state.turns.posted.as_ref().filter(is_awaited) else {
            return false;
        };
        let (message, opened) = (*message, *opened);
        // Text about a message that was deleted in the meantime is not stored.
        if let Some(call) = call.as_mut().filter(|_| *is_spoilt) {
            call.answer = Arc::from("");
        }
        self.world.count_tokens(call.as_deref(), self.state.position.clock);
        self.record_judgement(message, opened, score, call);
        true
    }

    fn record_judgement(&mut self, message: Seq, opened: Seq, score: f64, call: Option<Box<Call>>) {
        // The conversation may have reopened during the judgement. Then the earlier statements do not count.
        let is_detection = score > repetition::THRESHOLD && !self.state.closing.recent_statements.is_empty();
        let detections = if is_detection { self.state.closing.tally.detections.saturating_add(1) } else { 0 };
        let is_by_model = self.state.turns.is_being_judged();
        let most = if self.state.closing.did_person_interrupt(is_by_model) { Stage::Closing } else { Stage::Terminal };
        let last = self.state.closing.tally.forced;
        // A statement must follow the last forced stage before the next one is forced, so that the companion says goodbye.
        let is_next_allowed = last.is_none() || self.state.closing.tally.is_next_allowed || detections == 0;
        let forced = if is_next_allowed { Stage::forced_by(detections).min(last.next()).min(most) } else { last };
        let is_exempt = |companion: &&CompanionId| self.world.policies.get(*companion).is_some_and(|policy| !policy.repetition);
        let (exempt, judged): (Vec<_>, Vec<_>) = self.state.gates.keys().partition(is_exempt);
        let exempt: Vec<_> = exempt.into_iter().filter(|_| !forced.is_none()).cloned().collect();
        let is_behind = |companion: &&CompanionId| self.state.gates[companion].stage < forced;
        let behind = judged.into_iter().filter(is_behind).cloned().collect();
        self.record(Event::RepetitionJudged { message, score, detections, forced, exempt, call });
        self.change_stages(behind, forced, Cause::Repetition, opened);
    }
}

/// Whether this message is by a human and addresses this companion.
pub(super) fn is_call(message: &Message, companion: &CompanionId) -> bool {
    message.from.role == Role::Person && !message.is_event() && message.address.includes(companion)
}

/// Whether this number of statements reaches a limit.
fn has_reached(most: Option<u32>, turns: u32) -> bool {
    most.is_some_and(|most| turns >= most)
}

fn own_max_turns(companion: &CompanionId, world: &World<'_>) -> Option<u32> {
    world.policies.get(companion).and_then(|policy| policy.max_turns)
}

/// The cause for which a message resets the stage of a companion to none. None: it does not.
pub(super) fn reopening_cause(
    companion: &CompanionId,
    gate: &Gate,
    message: &Message,
    begins_episode: bool,
    rules: Rules<'_>,
) -> Option<Cause> {
    if gate.stage != Stage::None && begins_episode {
        return Some(Cause::NewEpisode);
    }
    if !gate.is_closed() || message.from.role != Role::Person {
        return None;
    }
    if message.address.includes(companion) {
        return Some(Cause::DirectAddress);
    }
    (gate.heard_closed + 1 >= rules.closing.reopen_after).then_some(Cause::ReopenAfter)
}
