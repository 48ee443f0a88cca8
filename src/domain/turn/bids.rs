//! Follows the bids of a channel through its record, in the order in which the channel handled the events. The record may begin anywhere, and events
//! of older versions name no turn.
//!
//! After every event the bids are those of the conversation, which a property checks (`conversation/tests/bids.rs`). Two things only the gates know.
//! When a reply fails, the conversation selects the next companion whose trigger has not settled; here it is known once its reply is owed. And
//! a message may leave a companion's buffer without an event.
#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;

use super::super::closing::Stage;
use super::super::decision::Reason;
use super::super::event::{Decided, Event, Recorded, RoundClosed};
use super::super::id::{CompanionId, Seq, Ticket};
use super::super::message::Role;
use super::super::settlement::{Owed, Settled, are_all_deleted};
use super::super::trigger::Trigger;
use super::bid::{Bid, Change, Ending, Phase, What};

/// How many messages of bots are remembered that address companions.
const MOST_OF_BOTS: usize = 64;

/// The bids in progress.
#[derive(Clone, Debug, Default)]
pub struct Bids {
    /// Oldest first.
    open: Vec<Bid>,
    /// The newest messages by bots that address companions.
    of_bots: BTreeSet<Seq>,
    /// What the event changes.
    changes: Vec<Change>,
}

impl Bids {
    /// The bids in progress, oldest first.
    pub fn open(&self) -> &[Bid] {
        &self.open
    }

    /// Applies the next event. Returns what it changes, in order.
    pub fn apply(&mut self, recorded: &Recorded) -> Vec<Change> {
        match &recorded.event {
            Event::Said { message, reply: None, .. } => {
                if message.from.role == Role::Bot && !message.address.companions.is_empty() {
                    self.of_bots.insert(recorded.seq);
                    if self.of_bots.len() > MOST_OF_BOTS {
                        self.of_bots.pop_first();
                    }
                }
            }
            Event::Said { message, reply: Some(ticket), .. } => {
                let companion = CompanionId::from(&*message.from.id);
                self.reply(recorded, &companion, *ticket);
                self.end(Ending::Posted, |bid| bid.reply == Some(*ticket));
            }
            Event::Deleted { messages, .. } => {
                self.end(Ending::Deleted, |bid| bid.phase != Phase::Asked && are_all_deleted(&bid.messages, messages));
                for bid in &mut self.open {
                    bid.messages.retain(|seq| !messages.contains(seq));
                    bid.is_called &= bid.message.is_none_or(|message| !messages.contains(&message));
                }
            }
            Event::Left { companion } => self.end(Ending::Left, |bid| bid.companion == *companion && !bid.is_late),
            Event::Paused { companion, paused: true } => {
                let is_target = |bid: &Bid| companion.as_ref().is_none_or(|companion| bid.companion == *companion);
                self.end(Ending::Paused, |bid| bid.phase <= Phase::Selected && is_target(bid));
            }
            Event::Cleared => self.end(Ending::Cleared, |_| true),
            Event::StageChanged { companion, to: Stage::Terminal, .. } => {
                // A question about an address by a person opens the conversation again.
                let withdraws = |bid: &Bid| bid.phase == Phase::Selected || bid.phase < Phase::Selected && !bid.is_called;
                self.end(Ending::Closed, |bid| bid.companion == *companion && withdraws(bid));
            }
            Event::Evaluated(evaluated) => {
                // One that owes a statement is not asked. If it is, the record does not say how that ended.
                self.end(Ending::AskedAnew, |bid| bid.companion == evaluated.companion);
                let is_called = evaluated.trigger == Trigger::DirectAddress && !self.of_bots.contains(&evaluated.message);
                let bid = Bid {
                    message: Some(evaluated.message).filter(|_| evaluated.trigger != Trigger::Silence),
                    messages: evaluated.messages.clone(),
                    upto: evaluated.upto,
                    question: Some(evaluated.ticket),
                    is_called,
                    ..new(recorded, &evaluated.companion, evaluated.trigger, Phase::Asked)
                };
                self.open.push(bid.clone());
                self.changes.push(Change { bid, what: What::Asked });
            }
            Event::Decided(decided) => self.decided(recorded, decided),
            Event::Unanswered { ticket, .. } => self.end(Ending::Unanswered, |bid| bid.is_open_question(*ticket)),
            Event::RoundClosed(RoundClosed { held, selected, others, .. }) => {
                held.iter().for_each(|companion| self.lead(recorded, companion, Phase::Held, What::Held));
                self.select(recorded, selected.as_ref(), others.iter().map(|other| &other.companion));
            }
            Event::HeldSelected { selected, others } => {
                self.select(recorded, Some(selected), others.iter().map(|other| &other.companion));
            }
            Event::ReplyOwed { companion, ticket, trigger, message, .. } => {
                self.owed(recorded, companion, *ticket, *trigger, *message);
            }
            Event::Replanned { companion, ticket, .. } | Event::ReplyExtended { companion, ticket, .. } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, Phase::Writing, What::BegunAgain(*ticket), |bid| {
                    bid.take_over(recorded.event.owed());
                });
            }
            Event::Replanning { companion, ticket, .. } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, Phase::Replanning, What::Replanning, |_| {});
            }
            Event::SentenceStarting { companion, ticket, .. } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, Phase::Speaking, What::Speaking, |_| {});
            }
            Event::SentencePlayed { companion, ticket, dropped: true, .. } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, self.open[index].phase, What::Stalled, |_| {});
            }
            Event::Interrupted { companion, ticket, .. } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, self.open[index].phase, What::Interrupted, |_| {});
            }
            Event::FloorExpired { companion, ticket } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, self.open[index].phase, What::Late, |bid| bid.is_late = true);
            }
            Event::FloorTaken { companion, ticket } => {
                let index = self.reply(recorded, companion, *ticket);
                self.set(index, self.open[index].phase, What::FloorTaken, |bid| bid.is_late = false);
            }
            Event::Cancelled { companion, ticket: None, .. } => {
                self.end(Ending::Cancelled, |bid| bid.phase == Phase::Selected && bid.companion == *companion);
            }
            Event::Cancelled { companion, ticket: Some(ticket), .. } => {
                self.reply(recorded, companion, *ticket);
                self.end(Ending::Cancelled, |bid| bid.reply == Some(*ticket));
            }
            Event::ReplyFailed { companion, ticket, .. } => {
                self.reply(recorded, companion, *ticket);
                self.end(Ending::Failed, |bid| bid.reply == Some(*ticket));
            }
            Event::Edited { .. }
            | Event::Joined { .. }
            | Event::Paused { .. }
            | Event::CaughtUp { .. }
            | Event::VoiceJoined { .. }
            | Event::VoiceLeft { .. }
            | Event::Segment(_)
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::VoiceQuiet { .. }
            | Event::SilenceFired { .. }
            | Event::EventsDeferred { .. }
            | Event::EventsReleased
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::StageChanged { .. }
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. }
            | Event::SentencePlayed { .. }
            | Event::Summarised { .. } => {}
        }
        self.end(Ending::Settled, |bid| {
            bid.phase == Phase::Held
                && (bid.trigger == Trigger::Silence || bid.message.is_some_and(|message| message <= bid.settled))
        });
        std::mem::take(&mut self.changes)
    }

    fn decided(&mut self, recorded: &Recorded, decided: &Decided) {
        if let Some(settled) = decided.settled() {
            let is_cancelled = decided.reason == Reason::Cancelled;
            self.end(Ending::Declined, |bid| {
                let wanted = || is_cancelled && bid.phase < Phase::Lost && bid.question != decided.ticket;
                decided.companions.contains(&bid.companion)
                    && (decided.ticket.is_some_and(|ticket| bid.is_open_question(ticket))
                        || wanted() && bid.phase != Phase::Asked)
            });
            self.settle(settled);
            let is_stale = decided.reason == Reason::Stale;
            self.end(Ending::Settled, |bid| is_stale && bid.phase == Phase::Asked && bid.upto <= bid.settled);
            return;
        }
        let (phase, what) = match decided.reason {
            Reason::Event => (Phase::Selected, What::Selected),
            // It was asked alone, and another companion that joined since may speak or write late.
            _ if decided.vote.is_none() && self.open.iter().any(|bid| bid.phase >= Phase::Selected) => (Phase::Held, What::Held),
            _ => (Phase::Wants, What::Wants),
        };
        for companion in &decided.companions {
            let is_it = |bid: &Bid| bid.companion == *companion && bid.phase == Phase::Asked;
            let index = self.open.iter().position(is_it).unwrap_or_else(|| {
                let bid = Bid { messages: decided.messages.clone(), ..new(recorded, companion, decided.trigger, phase) };
                self.add(bid)
            });
            self.set(index, phase, what, |bid| bid.trigger = decided.trigger);
        }
    }

    /// What the companions have settled, their bids are not about any more. What a companion answers with a reply, that is about.
    fn settle(&mut self, settled: Settled<'_>) {
        let is_settled = |seq: &Seq| *seq <= settled.upto || settled.messages.contains(seq);
        for bid in self.open.iter_mut().filter(|bid| bid.reply.is_none() && settled.companions.contains(&bid.companion)) {
            bid.messages.retain(|seq| !is_settled(seq));
            bid.settled = bid.settled.max(settled.upto);
        }
    }

    /// One companion is selected, and others that wanted to speak are not.
    fn select<'a>(&mut self, recorded: &Recorded, selected: Option<&CompanionId>, others: impl Iterator<Item = &'a CompanionId>) {
        let Some(selected) = selected else { return };
        self.end(Ending::Replaced, |bid| matches!(bid.phase, Phase::Lost | Phase::Selected));
        self.lead(recorded, selected, Phase::Selected, What::Selected);
        others.for_each(|companion| self.lead(recorded, companion, Phase::Lost, What::Lost));
    }

    /// Leads the bid of a companion that wants to speak to another phase.
    fn lead(&mut self, recorded: &Recorded, companion: &CompanionId, phase: Phase, what: What) {
        let is_it = |bid: &Bid| bid.companion == *companion && bid.phase < Phase::Lost;
        let index = self.open.iter().position(is_it);
        let index = index.unwrap_or_else(|| self.add(new(recorded, companion, Trigger::Lull, phase)));
        self.set(index, phase, what, |_| {});
    }

    fn owed(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, trigger: Trigger, message: Option<Seq>) {
        let bid_in =
            |phases: &[Phase]| self.open.iter().rposition(|bid| bid.companion == *companion && phases.contains(&bid.phase));
        let index =
            bid_in(&[Phase::Selected]).or_else(|| bid_in(&[Phase::Wants, Phase::Held])).or_else(|| bid_in(&[Phase::Lost]));
        let index = index.unwrap_or_else(|| self.add(Bid { message, ..new(recorded, companion, trigger, Phase::Writing) }));
        let what = if self.open[index].phase == Phase::Lost { What::TookOver } else { What::Owed };
        self.set(index, Phase::Writing, what, |bid| {
            bid.reply = Some(ticket);
            bid.take_over(recorded.event.owed());
        });
        // Only one companion has the floor.
        self.end(Ending::Replaced, |bid| {
            bid.phase == Phase::Selected || bid.reply.is_some_and(|reply| reply != ticket) && !bid.is_late
        });
    }

    /// The index of the bid with this reply. It is added if it is not known.
    fn reply(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket) -> usize {
        let index = self.open.iter().position(|bid| bid.reply == Some(ticket));
        index.unwrap_or_else(|| self.add(Bid { reply: Some(ticket), ..new(recorded, companion, Trigger::Lull, Phase::Writing) }))
    }

    fn add(&mut self, bid: Bid) -> usize {
        self.open.push(bid);
        self.open.len() - 1
    }

    fn set(&mut self, index: usize, phase: Phase, what: What, change: impl FnOnce(&mut Bid)) {
        let bid = &mut self.open[index];
        bid.phase = phase;
        change(bid);
        self.changes.push(Change { bid: bid.clone(), what });
    }

    fn end(&mut self, ending: Ending, has_ended: impl Fn(&Bid) -> bool) {
        let ended = self.open.extract_if(.., |bid| has_ended(bid));
        self.changes.extend(ended.map(|bid| Change { bid, what: What::Ended(ending) }));
    }
}

impl Bid {
    fn is_open_question(&self, ticket: Ticket) -> bool {
        self.phase == Phase::Asked && self.question == Some(ticket)
    }

    fn take_over(&mut self, owed: Option<Owed<'_>>) {
        if let Some(owed) = owed {
            (self.reply, self.messages, self.upto) = (Some(owed.ticket), owed.messages.to_vec(), owed.upto);
        }
    }
}

/// A bid of which nothing is known but this event.
fn new(recorded: &Recorded, companion: &CompanionId, trigger: Trigger, phase: Phase) -> Bid {
    Bid {
        companion: companion.clone(),
        began: recorded.seq,
        turn: recorded.turn,
        trigger,
        message: None,
        messages: Vec::new(),
        upto: Seq::NONE,
        question: None,
        reply: None,
        phase,
        is_late: false,
        settled: Seq::NONE,
        is_called: false,
    }
}
