//! One step of a conversation: handles an input and makes all decisions that follow from it.
//!
//! A step reads the [`Conversation`] and changes its journaled state only by [`record`](Step::record). [`handle`](Step::handle),
//! [`pass_time`](Step::pass_time) and [`follow_up`](Step::follow_up) define the order of the rules. A step first closes rounds, replies and turns
//! that have ended, then gives the floor, and asks companions last.

use super::super::message::Role;
use super::turns::assign_first_turn;
use super::*;

/// The number of outputs of most steps: a cancelled and an armed timer, or a question, or a decision and its consequences.
const USUAL_OUTPUTS: usize = 4;

pub(super) struct Step<'s, 'w> {
    pub(super) state: &'s mut Conversation,
    pub(super) world: &'s mut World<'w>,
    /// The outputs so far, in order.
    pub(super) out: Vec<Output>,
    /// The input is `Woken`, so all deadlines at this moment are due.
    pub(super) by_deadline: bool,
    /// The input was journaled before a restart. The live state of the voice call is not restored yet.
    pub(super) catches_up: bool,
    /// A statement was posted, and judged if necessary, so the round that it opens is due.
    pub(super) after_statement: bool,
    /// Companions whose back-offs are known to have ended.
    pub(super) ended_back_offs: Vec<CompanionId>,
    /// The turn that began in this step and has no question yet.
    pub(super) turn_without_question: Option<TurnId>,
    /// The turn of the question that a single companion answered in this step.
    pub(super) answered_turn: Option<TurnId>,
    /// The first turn that began in this step.
    pub(super) oldest_started: Option<TurnId>,
}

/// Which deadlines are due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Deadlines before this moment.
    Before,
    /// Deadlines at this moment, too.
    Now,
}

impl<'s, 'w> Step<'s, 'w> {
    pub(super) fn new(state: &'s mut Conversation, world: &'s mut World<'w>) -> Self {
        Self {
            state,
            world,
            out: Vec::with_capacity(USUAL_OUTPUTS),
            by_deadline: false,
            catches_up: false,
            after_statement: false,
            ended_back_offs: Vec::new(),
            turn_without_question: None,
            answered_turn: None,
            oldest_started: None,
        }
    }
}

impl Step<'_, '_> {
    pub(super) fn handle(mut self, now: Moment, input: Input) -> Vec<Output> {
        let before = self.state.position.clock;
        let inbound_at = input.inbound_at();
        self.by_deadline = matches!(input, Input::Woken);
        self.pass_time(inbound_at.unwrap_or(now));
        self.note_ended_back_offs();
        if let Input::Inbound(recorded) = &input {
            self.after_statement = matches!(&recorded.event, Event::Said { message, .. } if message.from.role == Role::Companion);
        } else if inbound_at.is_none() {
            // A round's deadlines come before those of companions at the same moment.
            self.begin_turn_due();
            self.close_rounds();
        }
        match input {
            Input::Inbound(recorded) => self.handle_inbound(*recorded),
            Input::HandedOver(batch) => self.handle_hand_over(batch),
            Input::Voice(notice) => self.handle_notice(notice),
            Input::Answered { ticket, vote, call } => self.on_answer(ticket, vote, call),
            Input::Voted(state) => self.accept_vote(state),
            Input::Judged { ticket, score, call } => self.after_statement = self.judge(ticket, score, call),
            Input::Unanswered { ticket, error } => self.on_unanswered(ticket, error),
            Input::SentenceWritten { ticket, text } => self.speak_sentence(ticket, text),
            Input::Written { ticket, text } => {
                if let Some(text) = self.speak(ticket, text) {
                    self.state.accept_text(ticket, text, &mut self.out);
                }
            }
            Input::ReplyFailed { ticket, error } => {
                // The failure of a stopped attempt is ignored.
                let is_stopped = self.state.turns.owed_reply(ticket).is_some_and(|floor| floor.replan_at.is_some());
                if !self.end_lost_answer(ticket) && !is_stopped {
                    self.fail_reply(ticket, error);
                }
            }
            Input::CallsWanted(wanted) => self.want_calls(wanted),
            Input::CallConfirmed { call, by, is_confirmed } => self.confirm_call(call, by, is_confirmed),
            Input::CallEnded { call, answer, effects } => self.end_call(call, answer, effects),
            Input::StopPressed { companion } => self.stop_reply_of(&companion),
            Input::Summarised { upto, messages, text } => self.accept_summary(upto, messages, text),
            Input::NotesTaken(notes) => self.accept_notes(notes),
            Input::Remind(reminder) => self.record(Event::ReminderSet(reminder)),
            Input::Filtered(finding) => self.record(Event::Filtered(finding)),
            Input::ModelsReplaced => self.ended_back_offs = self.state.gates.companions_where(Gate::is_backing_off),
            Input::Woken => self.fire_due(Due::Now),
        }
        self.follow_up();
        self.end(before, 0, inbound_at.is_some())
    }

    /// Handles an inbound event that was journaled before a restart.
    pub(super) fn catch_up(mut self, recorded: Recorded) -> Vec<Output> {
        let before = self.state.position.clock;
        self.catches_up = true;
        self.pass_time(recorded.at);
        if !matches!(&recorded.event, Event::Said { message, .. } if message.asks_to_stop) {
            self.close_heard_reply();
        }
        self.handle_inbound(recorded);
        self.end(before, 0, true)
    }

    /// Continues after a restart.
    pub(super) fn resume(mut self, now: Moment) -> Vec<Output> {
        let (before, caught_up) = (self.state.position.clock, self.out.len());
        self.by_deadline = true;
        self.state.voice.live = self.state.voice.call.restored(self.state.position.clock.max(now));
        self.pass_time(now);
        self.extend_deadlines();
        self.settle_backchannel();
        self.resume_aloud();
        self.settle_what_became_stale();
        self.end_lost_calls();
        self.fire_due(Due::Now);
        self.after_statement = self.state.turns.posted.is_some();
        self.follow_up();
        self.end(before, caught_up, false)
    }

    /// Advances the clock. Ends the back-offs and fires the timers that were due before `at`, however late the step runs. Deadlines at `at` itself
    /// come after the inbound events of that moment.
    fn pass_time(&mut self, at: Moment) {
        self.state.position.clock = self.state.position.clock.max(at);
        // If the settings changed with the restart, the journal may open companions again.
        self.record_reopened();
        let now = self.state.position.clock;
        let ended_back_offs = self.state.gates.companions_where(|gate| gate.retry_at().is_some_and(|until| until < now));
        self.end_back_offs(&ended_back_offs);
        self.fire_due(Due::Before);
    }

    /// Fires the timers of the voice call, of lulls, of silences and of deferred events.
    fn fire_due(&mut self, due: Due) {
        self.advance_voice(due);
        self.fire_lulls(due);
        self.fire_silences(due);
        self.release_events(due);
    }

    /// Makes all further decisions that are possible now.
    fn follow_up(&mut self) {
        #[cfg(any(test, feature = "samples"))]
        poison::check_unsettled(self.state);
        // Close rounds, replies and turns that have ended.
        self.settle_silenced();
        self.end_overdue_questions();
        self.close_rounds();
        self.fail_late_words();
        self.replan_due();
        self.expire_floor();
        self.begin_turn_at_once();
        if self.after_statement {
            self.assess_statement();
            // Companions that became terminal withdrew their States.
            self.close_rounds();
        }
        self.close_newcomers();
        // Give the floor.
        self.answer_again();
        self.speak_by_hand();
        self.use_free_floor();
        // Ask companions, in the order of ids.
        let left_out = self.speaker_left_out();
        self.draw_first_intervals();
        self.note_ended_back_offs();
        let mut ended_back_offs = std::mem::take(&mut self.ended_back_offs);
        ended_back_offs.sort();
        ended_back_offs.dedup();
        ended_back_offs.retain(|companion| self.state.gates.contains_key(companion));
        self.end_back_offs(&ended_back_offs);
        self.acknowledge_events();
        self.ask_waiting(left_out);
        self.await_voice_lull();
        self.refresh_summary();
        self.take_notes();
    }

    /// Journals an event and applies it.
    pub(super) fn record(&mut self, event: Event) {
        let turn = self.turn_of(&event);
        let index = self.out.len();
        self.state.apply(self.state.position.clock, Seq::NONE, turn, &event, self.world, &mut self.out);
        self.out.insert(
            index,
            Output::Made(Box::new(Made { at: self.state.position.clock, handled: self.state.position.handled, turn, event })),
        );
    }

    /// Whether a deadline is due. A deadline at the current moment is due only after the other events of that moment.
    pub(super) fn is_due(&self, deadline: Moment) -> bool {
        deadline < self.state.position.clock || deadline == self.state.position.clock && self.by_deadline
    }

    /// Finishes the step. Only events move the clock: if there is none among the outputs from `first` on, the clock is reset to `before`.
    fn end(mut self, before: Moment, first: usize, is_inbound: bool) -> Vec<Output> {
        if !is_inbound && !self.out[first..].iter().any(|output| matches!(output, Output::Made(_))) {
            self.state.position.clock = before;
        }
        self.state.drop_orphaned_reply(&mut self.out);
        self.state.voice.live.update_deadline(&self.state.gates, self.world);
        if let Some(turn) = self.oldest_started {
            assign_first_turn(turn, &mut self.out);
        }
        self.world.ledger.promise_statements(self.world.channel, self.state.turns.expected_statements());
        self.out
    }
}
