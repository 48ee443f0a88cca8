//! Follows what came of a decision through the record: the round, the floor, and the statement.

use super::Subject;
use super::aloud::{People, SpokenReply};
use crate::domain::decision::Decision;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, Ticket};
use crate::domain::turn::bid::{Change, Ending, What};
use crate::story::rounds::RoundCourses;

/// What an event of the record means for a wish to speak, or after a vote.
#[derive(Clone, Copy)]
pub(super) enum Consequence {
    Change(What),
    /// A person talked before it began to speak, and held it back.
    HeldBack,
    /// It had lost the floor, and was considered again.
    Next,
}

/// The progress of a story after its decision.
pub(super) struct Course {
    pub(super) rounds: RoundCourses,
    /// The event that began the bid, and the newest number of its reply.
    began: Option<Seq>,
    reply: Option<Ticket>,
    is_yes: bool,
    /// The round is closed, or none was held.
    pub(super) is_over: bool,
    /// The companion wanted the floor, and another one got it.
    has_lost: bool,
    /// It has ended without a statement. One that was being posted may follow all the same.
    is_dropped: bool,
    /// Nothing more can follow.
    pub(super) is_complete: bool,
    /// The messages that the reply answers.
    answered: Vec<Seq>,
    /// The messages of before that people said meanwhile, and it answers, too.
    pub(super) newly_answered: Vec<Seq>,
    /// The reply that is owed, if it is to be spoken.
    pub(super) spoken: Option<SpokenReply>,
    pub(super) people: People,
}

impl Course {
    /// After this decision. `before` are the events before it.
    pub(super) fn after(decided: &Recorded, before: &[Recorded], who: &Subject) -> Self {
        let (mut rounds, mut people) = (RoundCourses::default(), People::default());
        before.iter().for_each(|earlier| people.note(&earlier.event));
        for earlier in before.iter().filter(|earlier| !has_crossed(earlier, decided)).chain([decided]) {
            rounds.follow(earlier);
        }
        let is_yes = matches!(&decided.event, Event::Decided(decided) if decided.decision == Decision::Yes);
        let bid = rounds.bids.open().iter().rfind(|bid| is_yes && bid.companion == who.id);
        Self {
            began: bid.map(|bid| bid.began),
            reply: None,
            is_yes,
            is_over: false,
            has_lost: false,
            is_dropped: is_yes && bid.is_none(),
            is_complete: false,
            answered: Vec::new(),
            newly_answered: Vec::new(),
            spoken: None,
            people,
            rounds,
        }
    }

    /// Whether the round is open, or the floor or the statement is still to come.
    pub(super) fn is_in_progress(&self) -> bool {
        !self.is_complete && !self.is_dropped && !self.has_lost
    }

    pub(super) fn follow(&mut self, recorded: &Recorded, who: &Subject) -> Option<Consequence> {
        let event = &recorded.event;
        self.people.note(event);
        let changes = self.rounds.follow(recorded);
        let continues =
            matches!(event, Event::RoundClosed(_) | Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. });
        if continues && self.is_dropped {
            (self.is_complete, self.is_over) = (true, true);
            return None;
        }
        if matches!(event, Event::RoundClosed(_)) && !self.is_over {
            (self.is_over, self.is_complete) = (true, !self.is_yes);
        }
        if self.spoken.as_mut().is_some_and(|spoken| spoken.hear(recorded)) {
            return Some(Consequence::HeldBack);
        }
        if self.has_lost && matches!(event, Event::Decided(decided) if decided.companions.contains(&who.id)) {
            self.is_complete = true;
            return Some(Consequence::Next);
        }
        let is_own = |change: &Change| {
            let is_bid = change.bid.companion == who.id && Some(change.bid.began) == self.began;
            is_bid || self.reply.is_some() && change.bid.reply == self.reply
        };
        let Change { bid, what } = changes.into_iter().find(is_own)?;
        let has_floor = self.reply.is_some();
        self.reply = bid.reply.or(self.reply);
        self.newly_answered = bid.messages.iter().filter(|seq| !self.answered.contains(seq)).copied().collect();
        self.answered = bid.messages;
        match (what, event) {
            (What::Lost, _) => self.has_lost = true,
            (What::Owed | What::TookOver, Event::ReplyOwed { modality, .. }) => {
                self.has_lost = false;
                self.spoken = (!modality.is_text()).then(|| SpokenReply::new(recorded));
            }
            (What::Speaking, Event::SentenceStarting { sentence, text, .. }) => {
                // Only the first one is worth a line.
                self.spoken.as_mut()?.start(*sentence, text).then_some(())?;
            }
            (What::Interrupted, Event::Interrupted { interrupted, .. }) => self.spoken.as_mut()?.interrupt(interrupted),
            (What::Ended(ending), _) => return self.end(ending, has_floor).then_some(Consequence::Change(what)),
            _ => {}
        }
        Some(Consequence::Change(what))
    }

    /// The bid has ended. Returns whether that is worth a line.
    fn end(&mut self, ending: Ending, has_floor: bool) -> bool {
        match ending {
            Ending::Deleted | Ending::Closed | Ending::AskedAnew | Ending::Replaced if self.has_lost => false,
            Ending::Deleted => {
                // A companion that was waiting for its turn had said nothing.
                (self.is_dropped, self.is_complete) = (true, self.is_over && !has_floor);
                true
            }
            Ending::Closed | Ending::AskedAnew | Ending::Replaced => {
                (self.is_dropped, self.is_complete) = (true, self.is_over || has_floor);
                false
            }
            // What was heard is posted all the same.
            Ending::Cleared | Ending::Left if self.leaves_statement() => true,
            _ => {
                self.is_complete = true;
                true
            }
        }
    }

    /// Whether the statement with what was heard follows whatever happens.
    pub(super) fn leaves_statement(&self) -> bool {
        self.spoken.as_ref().is_some_and(SpokenReply::leaves_statement)
    }
}

/// Whether an inbound event is on record before an event of the channel, but was handled after it.
pub(super) fn has_crossed(earlier: &Recorded, made: &Recorded) -> bool {
    earlier.event.is_inbound() && earlier.seq > made.handled && earlier.seq < made.seq
}
