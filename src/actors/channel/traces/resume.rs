//! Goes on after a restart: in new traces, each of which follows the one that is on record.

use super::turn::{Flight, Open, Turn};
use super::{Kit, Traces};
use crate::domain::conversation::Conversation;
use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
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
        kit: &Kit,
    ) {
        let record = Record { newest_first: events.iter().rev().chain(earlier.iter().rev()).collect() };
        let turn = |message, trigger, follows| Turn { message, trigger, follows, ..Turn::new(now, kit) };
        if let Some(round) = conversation.round() {
            let mut open = Open::new(turn(round.message, Trigger::Lull, record.of_round()), now);
            for (_, evaluation) in conversation.open_questions() {
                open.turn.trigger = open.turn.trigger.max(evaluation.trigger);
            }
            for recorded in earlier.iter().chain(events) {
                let Event::Decided(decided) = &recorded.event else { continue };
                let Some(vote) = decided.vote.as_ref().filter(|vote| vote.message_id == round.message_id()) else { continue };
                open.answers += 1;
                let is_wanted = conversation.gate(&vote.from).is_some_and(|gate| gate.wish.is_some());
                if is_wanted && decided.decision == Decision::Yes {
                    let counts = (decided.message_count, decided.check_count, decided.threshold);
                    let flight = Flight { counts, ..Flight::new(open.turn.clone(), decided.trigger, recorded.at) };
                    open.wishes.push((decided.clone(), flight, recorded.at));
                }
            }
            self.round = Some(open);
        }
        for (companion, evaluation) in conversation.open_questions() {
            let its_own = || turn(evaluation.message, evaluation.trigger, record.of(evaluation.ticket));
            let asked = self.round.as_ref().map_or_else(its_own, |round| round.turn.clone());
            let gate = conversation.gate(companion);
            let check_count = gate.map_or(0, |gate| gate.check_count);
            let counts = (evaluation.message_count, check_count, gate.and_then(|gate| gate.next_interjection_at));
            self.flights.insert(evaluation.ticket, Flight { counts, ..Flight::new(asked, evaluation.trigger, now) });
        }
        for view in conversation.companions().filter(|view| view.gate.back_off.is_some()) {
            let trace = record.of_unanswered(view.companion);
            self.unanswered.extend(trace.map(|trace| (view.companion.clone(), trace)));
        }
        let of_round = record.of_round();
        self.selected = conversation.turn().map(|next| turn(next.selection.opened, next.candidate.trigger, of_round));
        if let Some(floor) = conversation.floor() {
            let owed = turn(floor.selection.opened, floor.trigger, record.of(floor.ticket));
            self.flights.insert(floor.ticket, Flight::new(owed, floor.trigger, now));
        }
        self.posted = record.of_statement().map(|trace| Turn { trace, ..turn(Seq::NONE, Trigger::Turn, None) });
        if let Some((ticket, message)) = conversation.open_judgement() {
            let judged = turn(message, Trigger::Turn, record.of(ticket));
            self.flights.insert(ticket, Flight::new(judged.clone(), Trigger::Turn, now));
            self.posted = Some(judged.clone());
            self.judged_again = Some(judged);
        }
    }
}

/// What is on record of traces.
struct Record<'a> {
    newest_first: Vec<&'a Recorded>,
}

impl Record<'_> {
    /// The trace of a question or reply.
    fn of(&self, ticket: Ticket) -> Option<TurnTrace> {
        self.find(|event| is_of(event, ticket))
    }

    /// The trace of the newest round; where no round was held, of the newest decision.
    fn of_round(&self) -> Option<TurnTrace> {
        self.find(|event| {
            matches!(event, Event::RoundOpened(_) | Event::Evaluated(_) | Event::Decided(Decided { call: Some(_), .. }))
        })
    }

    /// The trace of the newest question of this companion, if it got no answer.
    fn of_unanswered(&self, companion: &CompanionId) -> Option<TurnTrace> {
        let mut newest = self.newest_first.iter().filter_map(|recorded| match &recorded.event {
            Event::Evaluated(evaluated) if evaluated.companion == *companion => Some(None),
            Event::Unanswered { companion: of, ticket, .. } if of == companion => Some(Some(*ticket)),
            _ => None,
        });
        self.of(newest.next()??)
    }

    /// The trace of the newest statement, if nothing was asked since.
    fn of_statement(&self) -> Option<TurnTrace> {
        let newest = |recorded: &&&Recorded| matches!(recorded.event, Event::Said { reply: Some(_), .. } | Event::Evaluated(_));
        match self.newest_first.iter().find(newest)?.event {
            Event::Said { reply: Some(ticket), .. } => self.of(ticket),
            _ => None,
        }
    }

    fn find(&self, is_it: impl Fn(&Event) -> bool) -> Option<TurnTrace> {
        let found = self.newest_first.iter().filter(|recorded| is_it(&recorded.event));
        found.filter_map(|recorded| recorded.event.trace()?.parse().ok()).next()
    }
}

fn is_of(event: &Event, number: Ticket) -> bool {
    match event {
        Event::Evaluated(evaluated) => evaluated.ticket == number,
        Event::ReplyOwed { ticket, .. } | Event::RepetitionAsked { ticket, .. } => *ticket == number,
        _ => false,
    }
}
