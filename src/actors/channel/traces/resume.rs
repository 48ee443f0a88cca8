//! Continues the turns in progress after a restart, in new traces that link to the first trace of the turn.

use super::turn::{OpenTurn, PendingCall, Round, Turn, utterance};
use super::{ActorContext, At, Traces};
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::telemetry::messages::Append;
use crate::telemetry::trace::TurnTrace;

impl Traces {
    /// Restores the turns in progress from the journal. `earlier` are events from before the snapshot, which are not folded.
    pub(in crate::actors::channel) fn resume(
        &mut self,
        conversation: &Conversation,
        earlier: &[Recorded],
        events: &[Recorded],
        now: Moment,
        context: &ActorContext,
    ) {
        // The records of these events were emitted before the restart, so they are dropped.
        let discarded = &mut Vec::new();
        for recorded in earlier.iter().chain(events) {
            self.receive(recorded, recorded.at);
            self.apply_event(&recorded.event, At { turn: recorded.turn, now: recorded.at, context }, discarded);
        }
        self.end_turns(conversation, now, discarded);
        self.add_missing_turns(conversation, now, context);
        for open in self.turns.values_mut() {
            open.turn = open.turn.continued_in_a_new_trace(now, context);
            open.votes.iter_mut().for_each(|(_, call, _)| call.turn = open.turn.clone());
            open.round.iter_mut().for_each(|round| round.since = now);
        }
        for call in self.pending_calls.values_mut() {
            let open = self.turns.get(&call.turn.id);
            let turn = open.map_or_else(|| call.turn.continued_in_a_new_trace(now, context), |open| open.turn.clone());
            let (counts, playback) = (call.counts, call.playback.take());
            **call = PendingCall { counts, playback, ..PendingCall::new(turn, call.trigger, now) };
        }
        if let Some((posted, _)) = &mut self.posted
            && let Some(open_turn) = self.turns.get(&posted.id)
        {
            *posted = open_turn.turn.clone();
        }
        self.appends = Default::default();
        for recorded in unhandled(events) {
            // The journal does not contain the time of the commit.
            let utterance = utterance([recorded]);
            self.appends.remember(Append { seq: recorded.seq, taken: recorded.at, committed: recorded.at, utterance });
        }
    }

    /// Adds the turns that started before the events that were read, and the finished turn whose statement is still being judged.
    fn add_missing_turns(&mut self, conversation: &Conversation, now: Moment, context: &ActorContext) {
        let turn = |id: Option<TurnId>, message: Seq, trigger: Trigger| Turn { message, trigger, ..Turn::new(id, now, context) };
        let mut parts = Vec::new();
        for round in conversation.turns().rounds() {
            parts.push((turn(round.turn, round.message, Trigger::Lull), None, true));
        }
        for (companion, evaluation) in conversation.open_questions() {
            let gate = conversation.gate(companion);
            let check_count = gate.map_or(0, |gate| gate.check_count);
            let counts = (evaluation.message_count, check_count, gate.and_then(|gate| gate.next_interjection_at));
            let asked = turn(evaluation.turn, evaluation.message, evaluation.trigger);
            parts.push((asked, Some((evaluation.ticket, evaluation.trigger, counts)), false));
        }
        if let Some(next) = conversation.turns().selected() {
            parts.push((turn(next.selection.turn, next.selection.opened, next.candidate.trigger), None, false));
        }
        for floor in conversation.turns().owed_replies() {
            let owed = turn(floor.selection.turn, floor.selection.opened, floor.trigger);
            parts.push((owed, Some((floor.ticket, floor.trigger, (0, 0, None))), false));
        }
        for (turn, in_flight, is_round) in parts {
            let trigger = turn.trigger;
            let open = self.turns.entry(turn.id).or_insert_with(|| Box::new(OpenTurn::new(turn)));
            open.turn.trigger = open.turn.trigger.max(trigger);
            if is_round && open.round.is_none() {
                open.round = Some(Round::new(now));
            }
            let turn = open.turn.clone();
            if let Some((ticket, trigger, counts)) = in_flight {
                let call = || Box::new(PendingCall { counts, ..PendingCall::new(turn, trigger, now) });
                self.pending_calls.entry(ticket).or_insert_with(call);
            }
        }
        if let Some((ticket, message)) = conversation.turns().open_judgement() {
            let call = self.pending_calls.entry(ticket).or_insert_with(|| {
                Box::new(PendingCall::new(turn(conversation.turns().judged_turn(), message, Trigger::Turn), Trigger::Turn, now))
            });
            let judged = call.turn.clone();
            self.posted = Some((judged.clone(), message));
            self.turns.insert(judged.id, Box::new(OpenTurn::new(judged)));
        }
    }
}

impl Turn {
    fn continued_in_a_new_trace(&self, now: Moment, context: &ActorContext) -> Self {
        let Self { id, trigger, message, .. } = *self;
        let trace = TurnTrace::new(context.rng.id());
        Self { id, trigger, message, trace, follows: Some(TurnTrace::of_turn(id)), ..Self::new(Some(id), now, context) }
    }
}

/// The messages since the snapshot that were not handled, such as the one that woke the channel. Oldest first.
fn unhandled(events: &[Recorded]) -> impl Iterator<Item = &Recorded> {
    let made = events.iter().filter(|recorded| !recorded.event.is_inbound());
    let handled = made.map(|recorded| recorded.handled).max().unwrap_or(Seq::NONE);
    let is_news = move |recorded: &&Recorded| recorded.seq > handled && matches!(recorded.event, Event::Said { reply: None, .. });
    events.iter().filter(is_news)
}
