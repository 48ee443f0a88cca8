//! Goes on after a restart: in new traces, each of which follows the first of its turn.

use super::turn::{Append, OpenTurn, PendingCall, Round, Turn};
use super::{ActorContext, Traces};
use crate::domain::conversation::Conversation;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, TurnId};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::telemetry::trace::TurnTrace;

impl Traces {
    /// What goes on after a restart, as far as the record tells. `earlier` is of before the snapshot, and no part of the fold.
    pub(in crate::actors::channel) fn resume(
        &mut self,
        conversation: &Conversation,
        earlier: &[Recorded],
        events: &[Recorded],
        now: Moment,
        context: &ActorContext,
    ) {
        // What was to be told of these events was told before.
        let told = &mut Vec::new();
        for recorded in earlier.iter().chain(events) {
            self.heard(recorded, recorded.at);
            self.take(&recorded.event, recorded.turn, recorded.at, context, told);
        }
        self.end_turns(conversation, now, told);
        self.know_what_goes_on(conversation, now, context);
        for open in self.turns.values_mut() {
            open.turn = open.turn.goes_on_in_a_new_trace(now, context);
            for (_, call, _) in open.round.iter_mut().flat_map(|round| &mut round.wishes) {
                call.turn = open.turn.clone();
            }
            open.round.iter_mut().for_each(|round| round.since = now);
        }
        for call in self.flights.values_mut() {
            let open = self.turns.get(&call.turn.id);
            let turn = open.map_or_else(|| call.turn.goes_on_in_a_new_trace(now, context), |open| open.turn.clone());
            **call = PendingCall { counts: call.counts, ..PendingCall::new(turn, call.trigger, now) };
        }
        if let Some((posted, _)) = &mut self.posted
            && let Some(judged_again) = self.turns.get(&posted.id)
        {
            *posted = judged_again.turn.clone();
        }
        self.appends = Default::default();
        for recorded in unhandled(events) {
            // When it was committed is not on record.
            self.appends.remember(Append { seq: recorded.seq, taken: recorded.at, committed: recorded.at });
        }
    }

    /// What began before all that was read, and what is judged anew though its turn is over.
    fn know_what_goes_on(&mut self, conversation: &Conversation, now: Moment, context: &ActorContext) {
        let turn = |id: Option<TurnId>, message: Seq, trigger: Trigger| Turn { message, trigger, ..Turn::new(id, now, context) };
        let mut parts = Vec::new();
        if let Some(round) = conversation.round() {
            parts.push((turn(round.turn, round.message, Trigger::Lull), None, true));
        }
        for (companion, evaluation) in conversation.open_questions() {
            let gate = conversation.gate(companion);
            let check_count = gate.map_or(0, |gate| gate.check_count);
            let counts = (evaluation.message_count, check_count, gate.and_then(|gate| gate.next_interjection_at));
            let asked = turn(evaluation.turn, evaluation.message, evaluation.trigger);
            parts.push((asked, Some((evaluation.ticket, evaluation.trigger, counts)), false));
        }
        if let Some(next) = conversation.turn() {
            parts.push((turn(next.selection.turn, next.selection.opened, next.candidate.trigger), None, false));
        }
        if let Some(floor) = conversation.floor() {
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
                self.flights.entry(ticket).or_insert_with(call);
            }
        }
        if let Some((ticket, message)) = conversation.open_judgement() {
            let call = self.flights.entry(ticket).or_insert_with(|| {
                Box::new(PendingCall::new(turn(conversation.judged_turn(), message, Trigger::Turn), Trigger::Turn, now))
            });
            let judged = call.turn.clone();
            self.posted = Some((judged.clone(), message));
            self.turns.insert(judged.id, Box::new(OpenTurn::new(judged)));
        }
    }
}

impl Turn {
    fn goes_on_in_a_new_trace(&self, now: Moment, context: &ActorContext) -> Self {
        let Self { id, trigger, message, .. } = *self;
        let trace = TurnTrace::new(context.rng.id());
        Self { id, trigger, message, trace, follows: Some(TurnTrace::of_turn(id)), ..Self::new(Some(id), now, context) }
    }
}

/// What was said since the snapshot and not handled yet, such as what woke the channel: oldest first.
fn unhandled(events: &[Recorded]) -> impl Iterator<Item = &Recorded> {
    let made = events.iter().filter(|recorded| !recorded.event.is_inbound());
    let handled = made.map(|recorded| recorded.handled).max().unwrap_or(Seq::NONE);
    let is_news = move |recorded: &&Recorded| recorded.seq > handled && matches!(recorded.event, Event::Said { reply: None, .. });
    events.iter().filter(is_news)
}
