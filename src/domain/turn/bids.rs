//! Tracks the bids of a channel through its journal, in the order in which the channel handled the events. The journal may begin anywhere, and events
//! of older versions have no turn.
//!
//! After every event the bids match those of the conversation, which a property test checks (`conversation/check_bids.rs`). There are two exceptions
//! that only the gates know. After a failed reply, the conversation selects the next companion whose trigger has not settled; here that companion is
//! known only once its reply is owed. A message may also leave a companion's buffer without an event.
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

/// How many messages of bots that address companions are remembered.
const MOST_OF_BOTS: usize = 64;

/// The bids in progress.
#[derive(Clone, Debug, Default)]
pub struct Bids {
    /// Oldest first.
    open: Vec<Bid>,
    /// The newest messages by bots that address companions.
    of_bots: BTreeSet<Seq>,
    /// The changes by the current event.
    changes: Vec<Change>,
}

impl Bids {
    /// The bids in progress, oldest first.
    pub fn open(&self) -> &[Bid] {
        &self.open
    }

    /// Applies the next event. Returns its changes, in order.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events change no bid")]
    pub fn apply(&mut self, recorded: &Recorded) -> Vec<Change> {
        match &recorded.event {
            Event::Said { message, reply: None, .. }
                if message.from.role == Role::Bot && !message.address.companions.is_empty() =>
            {
                self.of_bots.insert(recorded.seq);
                if self.of_bots.len() > MOST_OF_BOTS {
                    self.of_bots.pop_first();
                }
            }
            Event::Said { message, reply: Some(ticket), .. } => {
                self.end_reply(recorded, &CompanionId::from(&*message.from.id), *ticket, Ending::Posted);
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
            Event::Cleared { .. } => self.end(Ending::Cleared, |_| true),
            Event::StageChanged { companion, to: Stage::Terminal, .. } => {
                // A question about an address by a person opens the conversation again.
                let withdraws = |bid: &Bid| bid.phase == Phase::Selected || bid.phase < Phase::Selected && !bid.is_called;
                self.end(Ending::Closed, |bid| bid.companion == *companion && withdraws(bid));
            }
            Event::Evaluated(evaluated) => {
                // A companion that owes a statement is not asked. If the journal contains such a question, it does not contain the end of the old
                // bid.
                self.end(Ending::AskedAnew, |bid| bid.companion == evaluated.companion);
                self.open.push(Bid {
                    message: Some(evaluated.message).filter(|_| evaluated.trigger.needs_a_message()),
                    messages: evaluated.messages.clone(),
                    upto: evaluated.upto,
                    question: Some(evaluated.ticket),
                    is_called: evaluated.trigger == Trigger::DirectAddress && !self.of_bots.contains(&evaluated.message),
                    ..new(recorded, &evaluated.companion, evaluated.trigger)
                });
                self.set(self.open.len() - 1, What::Now(Phase::Asked), recorded);
            }
            Event::Decided(decided) => self.decided(recorded, decided),
            Event::Unanswered { ticket, .. } => {
                self.end(Ending::Unanswered, |bid| bid.phase == Phase::Asked && bid.question == Some(*ticket))
            }
            Event::RoundClosed(RoundClosed { held, selected, others, .. }) => {
                held.iter().for_each(|companion| self.lead(recorded, companion, Phase::Held));
                self.select(recorded, selected.as_ref(), others.iter().map(|other| &other.companion));
            }
            Event::HeldSelected { selected, others } => {
                self.select(recorded, Some(selected), others.iter().map(|other| &other.companion));
            }
            Event::ReplyOwed { companion, ticket, trigger, message, .. } => {
                self.owed(recorded, companion, *ticket, *trigger, *message);
            }
            Event::Replanned { companion, ticket, .. } | Event::ReplyExtended { companion, ticket, .. } => {
                self.go_on(recorded, companion, *ticket, What::BegunAgain(*ticket));
            }
            Event::Replanning { companion, ticket, .. } => self.go_on(recorded, companion, *ticket, What::Now(Phase::Replanning)),
            Event::SentenceStarting { companion, ticket, .. } => {
                self.go_on(recorded, companion, *ticket, What::Now(Phase::Speaking))
            }
            Event::SentencePlayed { companion, ticket, dropped: true, .. } => {
                self.go_on(recorded, companion, *ticket, What::Stalled);
            }
            Event::Interrupted { companion, ticket, .. } => self.go_on(recorded, companion, *ticket, What::Interrupted),
            Event::FloorExpired { companion, ticket } => self.go_on(recorded, companion, *ticket, What::Late),
            Event::FloorTaken { companion, ticket } => self.go_on(recorded, companion, *ticket, What::FloorTaken),
            Event::Cancelled { companion, ticket: None, .. } => {
                self.end(Ending::Cancelled, |bid| bid.phase == Phase::Selected && bid.companion == *companion);
            }
            Event::Cancelled { companion, ticket: Some(ticket), .. } => {
                self.end_reply(recorded, companion, *ticket, Ending::Cancelled);
            }
            Event::ReplyFailed { companion, ticket, .. } => self.end_reply(recorded, companion, *ticket, Ending::Failed),
            _ => {}
        }
        self.end(Ending::Settled, |bid| {
            bid.phase == Phase::Held
                && (!bid.trigger.needs_a_message() || bid.message.is_some_and(|message| message <= bid.settled))
        });
        std::mem::take(&mut self.changes)
    }

    fn decided(&mut self, recorded: &Recorded, decided: &Decided) {
        if let Some(settled) = decided.settled() {
            let declines = |bid: &Bid| match bid.phase {
                Phase::Asked => bid.question == decided.ticket,
                Phase::Wants | Phase::Held => decided.retracts(bid.upto),
                Phase::Lost | Phase::Selected | Phase::Writing | Phase::Replanning | Phase::Speaking => false,
            };
            self.end(Ending::Declined, |bid| decided.companions.contains(&bid.companion) && declines(bid));
            self.settle(settled);
            let is_stale = decided.reason == Reason::Stale;
            self.end(Ending::Settled, |bid| is_stale && bid.phase == Phase::Asked && bid.upto <= bid.settled);
            return;
        }
        let phase = if decided.reason == Reason::Event {
            self.end_selection();
            Phase::Selected
        } else if decided.vote.is_none() && self.open.iter().any(|bid| bid.phase >= Phase::Selected) {
            // The companion was asked outside a round. Another companion that joined since may speak or write late.
            Phase::Held
        } else {
            Phase::Wants
        };
        for companion in &decided.companions {
            let is_it = |bid: &Bid| bid.companion == *companion && bid.phase == Phase::Asked;
            let index =
                self.index(is_it, || Bid { messages: decided.messages.clone(), ..new(recorded, companion, decided.trigger) });
            self.open[index].trigger = decided.trigger;
            self.set(index, What::Now(phase), recorded);
        }
    }

    /// Removes settled messages from the bids of these companions. A bid with an owed reply keeps them, because the reply answers them.
    fn settle(&mut self, settled: Settled<'_>) {
        let is_settled = |seq: &Seq| *seq <= settled.upto || settled.messages.contains(seq);
        for bid in self.open.iter_mut().filter(|bid| bid.reply.is_none() && settled.companions.contains(&bid.companion)) {
            bid.messages.retain(|seq| !is_settled(seq));
            bid.settled = bid.settled.max(settled.upto);
        }
    }

    /// Applies the selection of a companion. The others that wanted to speak lose.
    fn select<'a>(&mut self, recorded: &Recorded, selected: Option<&CompanionId>, others: impl Iterator<Item = &'a CompanionId>) {
        let Some(selected) = selected else { return };
        self.end_selection();
        self.lead(recorded, selected, Phase::Selected);
        others.for_each(|companion| self.lead(recorded, companion, Phase::Lost));
    }

    /// Ends the previous selection before a companion is selected.
    fn end_selection(&mut self) {
        self.end(Ending::Replaced, |bid| matches!(bid.phase, Phase::Lost | Phase::Selected));
    }

    /// Changes the phase of a companion that wants to speak.
    fn lead(&mut self, recorded: &Recorded, companion: &CompanionId, phase: Phase) {
        let is_it = |bid: &Bid| bid.companion == *companion && bid.phase < Phase::Lost;
        let index = self.index(is_it, || new(recorded, companion, Trigger::Lull));
        self.set(index, What::Now(phase), recorded);
    }

    fn owed(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, trigger: Trigger, message: Option<Seq>) {
        let is_it = |bid: &Bid| bid.companion == *companion && bid.reply.is_none();
        let index = self.index(is_it, || Bid { message, ..new(recorded, companion, trigger) });
        self.open[index].take_over(recorded.event.owed());
        self.set(index, if self.open[index].phase == Phase::Lost { What::TookOver } else { What::Owed }, recorded);
        // Only one companion has the floor.
        self.end(Ending::Replaced, |bid| {
            bid.phase == Phase::Selected || bid.reply.is_some_and(|reply| reply != ticket) && !bid.is_late
        });
    }

    /// Applies a change to an owed reply.
    fn go_on(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, what: What) {
        let index = self.reply(recorded, companion, ticket);
        self.open[index].take_over(recorded.event.owed());
        self.set(index, what, recorded);
    }

    fn end_reply(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, ending: Ending) {
        self.reply(recorded, companion, ticket);
        self.end(ending, |bid| bid.reply == Some(ticket));
    }

    /// The index of the bid with this reply.
    fn reply(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket) -> usize {
        let unknown = || Bid { reply: Some(ticket), phase: Phase::Writing, ..new(recorded, companion, Trigger::Lull) };
        self.index(|bid| bid.reply == Some(ticket), unknown)
    }

    /// The index of a bid. Adds the bid if it is unknown.
    fn index(&mut self, is_it: impl Fn(&Bid) -> bool, unknown: impl FnOnce() -> Bid) -> usize {
        self.open.iter().position(is_it).unwrap_or_else(|| {
            self.open.push(unknown());
            self.open.len() - 1
        })
    }

    fn set(&mut self, index: usize, what: What, recorded: &Recorded) {
        let bid = &mut self.open[index];
        match what {
            What::Now(phase) => bid.phase = phase,
            What::Owed | What::TookOver | What::BegunAgain(_) => bid.phase = Phase::Writing,
            What::Late | What::FloorTaken => bid.is_late = what == What::Late,
            What::Stalled | What::Interrupted | What::Ended(_) => {}
        }
        if matches!(what, What::Now(Phase::Selected) | What::TookOver) || what == What::Owed && bid.selected_at.is_none() {
            bid.selected_at = Some(recorded.handled);
        }
        self.changes.push(Change { bid: bid.clone(), what });
    }

    fn end(&mut self, ending: Ending, has_ended: impl Fn(&Bid) -> bool) {
        let ended = self.open.extract_if(.., |bid| has_ended(bid));
        self.changes.extend(ended.map(|bid| Change { bid, what: What::Ended(ending) }));
    }
}

impl Bid {
    fn take_over(&mut self, owed: Option<Owed<'_>>) {
        if let Some(owed) = owed {
            (self.reply, self.messages, self.upto) = (Some(owed.ticket), owed.messages.to_vec(), owed.upto);
        }
    }
}

/// A bid with only the data of this event.
fn new(recorded: &Recorded, companion: &CompanionId, trigger: Trigger) -> Bid {
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
        phase: Phase::Asked,
        is_late: false,
        selected_at: None,
        settled: Seq::NONE,
        is_called: false,
    }
}
