//! Goes on after a restart: in new traces, each of which follows the one that is on record.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::turn::{Append, Flight, Open, Turn};
use super::{Kit, Traces, is_backing_off};
use crate::domain::conversation::Conversation;
use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
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
            open.errors = record.unanswered_since(round.message);
            for recorded in earlier.iter().chain(events) {
                let Event::Decided(decided) = &recorded.event else { continue };
                let Some(vote) = decided.vote.as_ref().filter(|vote| vote.message_id == round.message_id()) else { continue };
                open.answers += 1;
                let is_wanted = conversation.gate(&vote.from).is_some_and(|gate| gate.wish.is_some());
                if is_wanted && decided.decision == Decision::Yes {
                    let counts = (decided.message_count, decided.check_count, decided.threshold);
                    let since = decided.ticket.and_then(|ticket| record.asked_at(ticket)).unwrap_or(recorded.at);
                    let flight = Flight { counts, ..Flight::new(open.turn.clone(), decided.trigger, since) };
                    open.wishes.push((decided.clone(), flight, recorded.at));
                }
            }
            self.round = Some(Box::new(open));
        }
        for (companion, evaluation) in conversation.open_questions() {
            let its_own = || turn(evaluation.message, evaluation.trigger, record.of(evaluation.ticket));
            let asked = self.round.as_ref().map_or_else(its_own, |round| round.turn.clone());
            let gate = conversation.gate(companion);
            let check_count = gate.map_or(0, |gate| gate.check_count);
            let counts = (evaluation.message_count, check_count, gate.and_then(|gate| gate.next_interjection_at));
            let flight = Flight { counts, ..Flight::new(asked, evaluation.trigger, now) };
            self.flights.insert(evaluation.ticket, Box::new(flight));
        }
        let of_round = record.of_round();
        self.selected = conversation.turn().map(|next| turn(next.selection.opened, next.candidate.trigger, of_round));
        if let Some(floor) = conversation.floor() {
            let owed = turn(floor.selection.opened, floor.trigger, record.of(floor.ticket));
            self.flights.insert(floor.ticket, Box::new(Flight::new(owed, floor.trigger, now)));
        }
        self.posted = record.of_statement().map(|trace| Turn { trace, ..turn(Seq::NONE, Trigger::Turn, None) });
        if let Some((ticket, message)) = conversation.open_judgement() {
            let judged = turn(message, Trigger::Turn, record.of(ticket));
            self.flights.insert(ticket, Box::new(Flight::new(judged.clone(), Trigger::Turn, now)));
            self.posted = Some(judged.clone());
            self.judged_again = Some(Box::new(judged));
        }
        self.unanswered = record.unanswered();
        self.unanswered.retain(|companion, _| is_backing_off(conversation, companion));
        for recorded in unhandled(events) {
            // When it was committed is not on record.
            self.appends.remember(Append { seq: recorded.seq, taken: recorded.at, committed: recorded.at });
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

    /// When a question was put.
    fn asked_at(&self, ticket: Ticket) -> Option<Moment> {
        self.newest_first.iter().find(|recorded| is_of(&recorded.event, ticket)).map(|recorded| recorded.at)
    }

    /// Whose newest question got no answer, and was not settled since: its trace, and the message that it was about.
    fn unanswered(&self) -> BTreeMap<CompanionId, (TurnTrace, Seq)> {
        let (mut asked, mut unanswered) = (BTreeMap::new(), BTreeMap::new());
        for recorded in self.newest_first.iter().rev() {
            match &recorded.event {
                Event::Evaluated(Evaluated { companion, ticket, message, .. }) => {
                    unanswered.remove(companion);
                    asked.extend(self.of(*ticket).map(|trace| (*ticket, (trace, *message))));
                }
                Event::Unanswered { companion, ticket, .. } => {
                    unanswered.extend(asked.remove(ticket).map(|question| (companion.clone(), question)));
                }
                Event::Decided(decided) => unanswered.retain(|companion, (_, message)| {
                    !(decided.companions.contains(companion) && decided.messages.contains(message))
                }),
                _ => {}
            }
        }
        unanswered
    }

    /// Why each question got no answer, since a round was opened.
    fn unanswered_since(&self, round: Seq) -> Vec<Arc<str>> {
        let is_opening = |event: &Event| matches!(event, Event::RoundOpened(opened) if opened.message == round);
        let since = self.newest_first.iter().take_while(|recorded| !is_opening(&recorded.event));
        let mut errors: Vec<_> = since
            .filter_map(|recorded| match &recorded.event {
                Event::Unanswered { error, .. } => Some(error.clone()),
                _ => None,
            })
            .collect();
        errors.reverse();
        errors
    }

    /// The trace of the newest round; where no round was held, of the newest decision.
    fn of_round(&self) -> Option<TurnTrace> {
        self.find(|event| {
            matches!(event, Event::RoundOpened(_) | Event::Evaluated(_) | Event::Decided(Decided { call: Some(_), .. }))
        })
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
        found.filter_map(|recorded| recorded.turn.map(|turn| TurnTrace::new(turn.0))).next()
    }
}

/// What was said since the snapshot and not handled yet, such as what woke the channel: oldest first.
fn unhandled(events: &[Recorded]) -> impl Iterator<Item = &Recorded> {
    let made = events.iter().filter(|recorded| !recorded.event.is_heard());
    let handled = made.map(|recorded| recorded.handled).max().unwrap_or(Seq::NONE);
    let is_news = move |recorded: &&Recorded| recorded.seq > handled && matches!(recorded.event, Event::Said { reply: None, .. });
    events.iter().filter(is_news)
}

fn is_of(event: &Event, number: Ticket) -> bool {
    match event {
        Event::Evaluated(evaluated) => evaluated.ticket == number,
        Event::ReplyOwed { ticket, .. } | Event::RepetitionAsked { ticket, .. } => *ticket == number,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::RoundOpened;

    #[test]
    fn votes_that_did_not_come_before_a_restart_are_missing_after_it() {
        let asked_before = unanswered("unreachable");
        let opened = Event::RoundOpened(RoundOpened {
            message: Seq(7),
            deadline: Moment::ZERO,
            asked: vec!["mira".into(), "bruno".into()],
            listening: Vec::new(),
        });
        let events = [asked_before, opened, unanswered("timeout"), unanswered("refused")].map(recorded);
        let record = Record { newest_first: events.iter().rev().collect() };

        let missing = record.unanswered_since(Seq(7));

        assert_eq!(missing, ["timeout".into(), "refused".into()] as [Arc<str>; 2]);
    }

    fn unanswered(error: &str) -> Event {
        let (companion, trigger, back_off) = ("mira".into(), Trigger::Turn, std::time::Duration::ZERO);
        Event::Unanswered { companion, ticket: Ticket(1), trigger, error: error.into(), back_off }
    }

    fn recorded(event: Event) -> Recorded {
        Recorded { seq: Seq(8), at: Moment::ZERO, handled: Seq(7), turn: None, event }
    }
}
