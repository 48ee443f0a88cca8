//! Selects the next speaker: opens rounds, takes votes, selects a companion and gives it the floor (docs/design/turn-taking.md T-10).

use super::super::event::{Outvoted, RoundClosed, RoundOpened};
use super::super::gate::Wish;
use super::super::round::{Round, listening};
use super::super::vote::Stance;
use super::advance::AnswerRecord;
use super::asking::Attendance;
use super::*;

impl Conversation {
    /// Submits a listening State for a companion that was asked in a round and will not answer.
    pub(super) fn submit_listening(&mut self, companion: &CompanionId) {
        let Some(stage) = self.gates.get(companion).map(|gate| gate.stage) else { return };
        let is_called = self.is_called(companion);
        if let Some(round) = self.turns.rounds.iter_mut().find(|round| round.awaits(companion)) {
            round.submit(listening(companion, round.message, is_called, stage));
        }
    }

    /// Submits listening States for companions that do not vote or do not wish to speak any more.
    pub(super) fn submit_listening_for<'a>(&mut self, companions: impl Iterator<Item = &'a CompanionId>) {
        for companion in companions {
            let Some(stage) = self.gates.get(companion).map(|gate| gate.stage) else { continue };
            let is_called = self.is_called(companion);
            for round in &mut self.turns.rounds {
                round.overrule(listening(companion, round.message, is_called, stage));
            }
        }
    }

    /// Whether an unsettled message addresses this companion.
    pub(super) fn is_called(&self, companion: &CompanionId) -> bool {
        self.buffer(companion).any(|entry| entry.message.address.includes(companion))
    }

    pub(super) fn apply_round_opened(&mut self, opened: &RoundOpened, turn: Option<TurnId>) {
        let mut round = Round::new(opened.message, self.position.clock, opened.deadline, &opened.listening, &opened.asked);
        round.turn = turn;
        self.turns.open_round(round);
    }

    pub(super) fn apply_round_closed(&mut self, closed: &RoundClosed) {
        let turn = self.turns.close_round(closed);
        self.by_hand.note_votes(&closed.states);
        if closed.held.is_empty() {
            self.begin_turn(closed.selected.as_ref(), &closed.others, closed.message, turn, closed.speak_at);
        }
    }

    /// Applies a selection: the selected companion gets its turn, and the others lose.
    pub(super) fn begin_turn(
        &mut self,
        selected: Option<&CompanionId>,
        outvoted: &[Outvoted],
        opened: Seq,
        turn: Option<TurnId>,
        speak_at: Option<Moment>,
    ) {
        let winner = selected.and_then(|companion| self.candidate(companion));
        let others = outvoted.iter().filter_map(|other| self.candidate(&other.companion)).collect();
        for other in outvoted {
            if let Some(gate) = self.gates.get_mut(&other.companion) {
                let is_deleted = |wish: &Wish| wish.trigger.needs_a_message() && self.window.get(wish.message).is_none();
                // The other unsettled messages wait for a lull.
                gate.wish.take_if(|wish| is_deleted(wish));
                gate.outvoted(other.next_interjection_at);
            }
        }
        if let Some(candidate) = winner {
            if let Some(gate) = self.gates.get_mut(&candidate.companion) {
                gate.wish = None;
            }
            let selection = Selection { opened, selected_at: self.position.handled, others, is_replacement: false, turn };
            self.turns.select(Selected { candidate, selection, speak_at });
        }
    }

    fn candidate(&self, companion: &CompanionId) -> Option<Candidate> {
        let wish = self.gates.get(companion)?.wish.as_ref()?;
        let (companion, why) = (companion.clone(), wish.why.clone());
        let message = (wish.message != Seq::NONE).then_some(wish.message);
        Some(Candidate { companion, trigger: wish.trigger, why, message, is_farewell: false })
    }

    /// Applies the failure of a statement. The next candidate takes the floor without a delay.
    pub(super) fn apply_reply_failed(&mut self, ticket: Ticket, error: &str) {
        if error == INTERRUPTED {
            return self.drop_interrupted(ticket);
        }
        if self.turns.floor.as_ref().is_none_or(|floor| floor.ticket != ticket) {
            // The failure of a late reply promotes no other candidate.
            self.turns.take_owed(ticket);
            return;
        }
        let Some(floor) = self.turns.floor.take() else { return };
        let can_speak = |candidate: &Candidate| {
            let gate = self.gates.get(&candidate.companion);
            // A candidate whose trigger has settled in the meantime has no reason to speak. A candidate that is asked again waits for that decision.
            gate.is_some_and(|gate| !gate.is_silent() && !gate.is_engaged() && gate.waiting.is_some())
        };
        let Selection { opened, others, is_replacement, turn, .. } = floor.selection;
        let mut others = others.into_iter().filter(|_| !floor.was_late && !is_replacement);
        self.turns.selected = others.find(can_speak).map(|candidate| {
            let (selected_at, others) = (self.position.handled, others.collect());
            let selection = Selection { opened, selected_at, others, is_replacement: true, turn };
            Box::new(Selected { candidate, selection, speak_at: None })
        });
    }

    /// The companions that an unsettled message addresses.
    pub(super) fn called(&self) -> BTreeSet<CompanionId> {
        self.gates.keys().filter(|companion| self.is_called(companion)).cloned().collect()
    }
}

impl Step<'_, '_> {
    /// Opens a round. Every companion takes part except the last speaker, if its statement opens the round.
    pub(super) fn open_round(&mut self, asked: Vec<CompanionId>, attendance: &Attendance) {
        let listens = |companion: &CompanionId| attendance.left_out.as_ref() != Some(companion) && !asked.contains(companion);
        let listeners = self.state.gates.iter().filter(|(companion, _)| listens(companion));
        let listening = listeners
            .map(|(companion, gate)| {
                listening(companion, self.state.position.handled, attendance.called.contains(companion), gate.stage)
            })
            .collect();
        let is_spoken = |companion: &CompanionId| {
            let waiting = self.state.gates.get(companion).and_then(|gate| gate.waiting);
            waiting.is_some_and(|waiting| self.state.window.is_spoken(waiting.message))
        };
        let timeout = match asked.iter().any(is_spoken) {
            true => self.world.rules.voice.decision_timeout(),
            false => self.world.rules.turn_taking.state_timeout(),
        };
        let opened =
            RoundOpened { message: self.state.position.handled, deadline: self.state.position.clock + timeout, asked, listening };
        self.record(Event::RoundOpened(opened));
    }

    /// Decides from a companion's vote whether it wants to speak. Its stage takes effect after that.
    pub(super) fn conclude_vote(&mut self, companion: &CompanionId, vote: &Vote, reason: Reason, mut answered: AnswerRecord) {
        let Some(round) = self.state.turns.round_awaiting(companion) else { return };
        let Some(evaluation) = self.state.gates.get(companion).and_then(|gate| gate.evaluation) else { return };
        let opened = round.message;
        let vote = &self.state.at_least_minimum(companion, &evaluation, vote);
        let wants = vote.verdict == Verdict::Yes;
        if wants && vote.closing != Stage::Terminal {
            // If another companion of the round wants to speak, one of them will make the statement that is already promised.
            answered.used_up = if round.has_wishes() {
                self.world.exhausted_token_budget(self.state.position.clock)
            } else {
                self.world.exhausted_statement_budget(self.state.position.clock)
            };
        }
        let reason = if vote.closing == Stage::Terminal {
            Reason::Closed
        } else if answered.used_up.is_some() {
            Reason::Budget
        } else {
            reason
        };
        let speaks = wants && !matches!(reason, Reason::Closed | Reason::Budget);
        let voted = State::voted(vote, companion.clone(), round.message_id(), self.state.is_called(companion));
        answered.vote = Some(State { state: if speaks { Stance::Speak } else { Stance::Listen }, ..voted });
        if speaks {
            self.agree(companion, evaluation.trigger, reason, answered);
        } else {
            self.decline(companion, evaluation.trigger, reason, evaluation.upto, answered);
        }
        self.change_stage(companion, vote.closing, Cause::State, opened);
    }

    /// Handles the vote of an external companion. A vote that no round waits for is ignored.
    pub(super) fn accept_vote(&mut self, state: State) {
        let is_awaited = self.state.turns.round_awaiting(&state.from).is_some_and(|round| round.message_id() == state.message_id);
        let Some(gate) = self.state.gates.get(&state.from).filter(|gate| gate.external && is_awaited) else { return };
        let Some(evaluation) = gate.evaluation else { return };
        let vote = Vote {
            verdict: if state.state == Stance::Speak { Verdict::Yes } else { Verdict::No },
            why: None,
            importance: state.importance,
            selected: state.selected,
            closing: state.closing,
            mood: state.mood,
            risk: None,
        };
        let answered = AnswerRecord { ticket: Some(evaluation.ticket), mood: state.mood, ..AnswerRecord::default() };
        self.conclude(state.from, &evaluation, &vote, Reason::External, answered);
    }

    /// Closes the rounds whose States have all arrived, or whose deadline is due.
    pub(super) fn close_rounds(&mut self) {
        for message in self.state.turns.rounds.iter().map(|round| round.message).collect::<Vec<_>>() {
            self.close_round(message);
        }
    }

    /// Closes a round once all States have arrived, or its deadline is due. At the deadline, questions without a State count as unanswered. While the
    /// floor is taken, or a model judges a statement, the votes of companions that want to speak are held.
    fn close_round(&mut self, message: Seq) {
        let Some(round) = self.state.turns.round(message) else { return };
        if self.is_due(round.deadline) {
            for companion in round.missing().cloned().collect::<Vec<_>>() {
                if let Some(evaluation) = self.state.gates.get(&companion).and_then(|gate| gate.evaluation) {
                    self.on_unanswered(evaluation.ticket, "timeout".into());
                    self.out.push(Output::Cancel { ticket: evaluation.ticket });
                } else if let Some(round) = self.state.turns.rounds.iter_mut().find(|round| round.message == message) {
                    // The companion was not asked. If events were lost, a round may name a companion that never joined.
                    round.withdraw(&companion);
                }
            }
        }
        if self.by_deadline && self.state.turns.round(message).is_some_and(|round| round.missing().next().is_none()) {
            // Back-offs that end at the same moment end with the round, so that repeated questions come before new lull timers.
            let now = self.state.position.clock;
            let ended_back_offs = self.state.gates.companions_where(|gate| gate.retry_at().is_some_and(|until| until <= now));
            self.record_ended_back_offs(&ended_back_offs);
        }
        let Some(round) = self.state.turns.round(message).filter(|round| round.missing().next().is_none()) else { return };
        let ranking = round.ranking(|companion| self.state.spoke.get(companion).copied()).into_iter();
        let mut ranking = ranking.filter(|companion| self.state.gates.contains_key(companion));
        // While the loop guard applies, votes are held. They are selected once the floor is free and the loop guard allows it.
        let is_guarded = self.is_guarded();
        let must_wait = self.state.by_hand.is_waiting()
            || self.state.turns.is_floor_taken()
            || self.state.turns.is_being_judged()
            || self.awaits_last_statement();
        let (selected, held) =
            if must_wait || is_guarded { (None, ranking.by_ref().collect()) } else { (ranking.next(), Vec::new()) };
        let message_of = |companion: &CompanionId| self.state.gates.get(companion)?.wish.as_ref().map(|wish| wish.message);
        let is_spoken = selected.as_ref().is_some_and(|one| {
            let is_external = self.state.gates.get(one).is_some_and(|gate| gate.external);
            !is_external && !self.modality_of_reply(message_of(one)).is_text()
        });
        let closed = RoundClosed {
            message: round.message,
            states: round.states().cloned().collect(),
            others: self.outvoted(ranking),
            // A spoken reply is prepared at once, and waits for its delay before playback.
            speak_at: selected
                .as_ref()
                .filter(|_| !is_spoken)
                .map(|_| self.state.position.clock + self.world.rules.turn_taking.turn_delay()),
            selected,
            held,
        };
        self.record(Event::RoundClosed(closed));
    }

    /// Gives the floor to the selected companion after its delay.
    pub(super) fn begin_turn_due(&mut self) {
        let is_due = |turn: &&Selected| turn.speak_at.is_some_and(|at| self.is_due(at));
        if let Some(candidate) = self.state.turns.selected.as_deref().filter(is_due).map(|turn| turn.candidate.clone()) {
            self.give_floor(&candidate);
        }
    }

    /// Gives the floor without a delay to a selected companion that has no delay, such as the replacement after a failed reply.
    pub(super) fn begin_turn_at_once(&mut self) {
        while let Some(candidate) =
            self.state.turns.selected.as_ref().filter(|turn| turn.speak_at.is_none()).map(|turn| turn.candidate.clone())
        {
            self.give_floor(&candidate);
        }
    }

    /// Fails the reply of an external companion whose text did not arrive in time.
    pub(super) fn fail_late_words(&mut self) {
        let is_due = |floor: &&OwedReply| !floor.is_posting && floor.due_at.is_some_and(|at| self.is_due(at));
        if let Some(ticket) = self.state.turns.floor.as_deref().filter(is_due).map(|floor| floor.ticket) {
            self.fail_reply(ticket, "timeout".into());
        }
    }

    /// Extends deadlines after a restart: those of open rounds, of an external companion with the floor, and of questions. Each gets its whole time
    /// again.
    pub(super) fn extend_deadlines(&mut self) {
        let turn_taking = self.world.rules.turn_taking;
        let round = self
            .state
            .turns
            .rounds
            .iter()
            .map(|round| round.deadline)
            .max()
            .map(|last| last.max(self.state.position.clock + turn_taking.state_timeout()));
        let is_waited_for = self.state.turns.floor.as_ref().is_some_and(|floor| floor.due_at.is_some());
        let floor = is_waited_for.then(|| self.state.position.clock + turn_taking.external_statement_timeout());
        let is_timed = |gate: &Gate| gate.evaluation.is_some_and(|evaluation| evaluation.due_at.is_some());
        let questions = self
            .state
            .gates
            .values()
            .any(is_timed)
            .then(|| self.state.position.clock + self.world.rules.voice.decision_timeout());
        if round.is_some() || floor.is_some() || questions.is_some() {
            self.record(Event::DeadlinesExtended { round, floor, questions });
        }
    }
}
