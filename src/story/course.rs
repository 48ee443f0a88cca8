//! Follows the consequences of a decision through the record: the round, the floor, and the statement.

use super::Subject;
use super::aloud::{People, SpokenReply};
use super::rounds::RoundCourses;
use crate::domain::decision::Decision;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, Ticket};
use crate::domain::turn::bid::{Change, Ending, Phase, What};

/// The consequence of an event for a companion that wants to speak or has voted.
#[derive(Clone, Copy)]
pub(crate) enum Consequence {
    Change(What),
    /// A person talked before the reply began to be spoken, and held it back.
    HeldBack,
    /// The companion lost the floor and has decided again.
    Next,
}

/// The progress of a story after its decision.
pub(crate) struct Course {
    pub(crate) rounds: RoundCourses,
    /// The event with which the bid began, and the newest ticket of its reply.
    began: Option<Seq>,
    reply: Option<Ticket>,
    is_yes: bool,
    /// The round is closed, or there was none.
    pub(crate) is_over: bool,
    /// The companion wanted the floor, and another one got it.
    has_lost: bool,
    /// The bid ended without a statement. A statement that was being posted may still follow.
    is_dropped: bool,
    /// No further line can follow.
    pub(crate) is_complete: bool,
    /// The messages that the reply answers.
    answered: Vec<Seq>,
    /// The messages that the last change added to those.
    pub(crate) newly_answered: Vec<Seq>,
    /// The reply that is owed, if it is spoken.
    pub(crate) spoken: Option<SpokenReply>,
    pub(crate) people: People,
}

impl Course {
    /// Begins after this decision. `before` are the earlier events.
    pub(crate) fn after(decided: &Recorded, before: &[Recorded], who: &Subject) -> Self {
        let (mut rounds, mut people) = (RoundCourses::default(), People::default());
        before.iter().for_each(|earlier| people.record_person(&earlier.event));
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

    /// Whether the round is open, or the floor or the statement is still pending.
    pub(crate) fn is_in_progress(&self) -> bool {
        !self.is_complete && !self.is_dropped && !self.has_lost
    }

    pub(crate) fn follow(&mut self, recorded: &Recorded, who: &Subject) -> Option<Consequence> {
        let event = &recorded.event;
        self.people.record_person(event);
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
        if self.spoken.as_mut().is_some_and(|spoken| spoken.record_speech(recorded)) {
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
        let is_told = match what {
            What::Owed | What::TookOver => {
                self.has_lost = false;
                let is_spoken = matches!(event, Event::ReplyOwed { modality, .. } if !modality.is_text());
                self.spoken = is_spoken.then(|| SpokenReply::new(recorded));
                true
            }
            What::Now(Phase::Lost) => {
                self.has_lost = true;
                true
            }
            What::Now(Phase::Speaking) | What::Interrupted => self.spoken.as_mut().is_some_and(|spoken| spoken.go_on(event)),
            What::Ended(ending) => self.end(ending, has_floor),
            What::Now(_) | What::BegunAgain(_) | What::Late | What::FloorTaken | What::Stalled => true,
        };
        is_told.then_some(Consequence::Change(what))
    }

    /// Handles the end of the bid. Returns whether the story has a line for it.
    fn end(&mut self, ending: Ending, has_floor: bool) -> bool {
        match ending {
            Ending::Deleted | Ending::Closed | Ending::AskedAnew | Ending::Replaced if self.has_lost => false,
            Ending::Deleted => {
                // A companion that waited for the floor has not begun a statement.
                (self.is_dropped, self.is_complete) = (true, self.is_over && !has_floor);
                true
            }
            Ending::Closed | Ending::AskedAnew | Ending::Replaced => {
                (self.is_dropped, self.is_complete) = (true, self.is_over || has_floor);
                false
            }
            // The played part is posted anyway.
            Ending::Cleared | Ending::Left if self.leaves_statement() => true,
            Ending::Declined
            | Ending::Unanswered
            | Ending::Posted
            | Ending::Failed
            | Ending::Cancelled
            | Ending::Cleared
            | Ending::Left
            | Ending::Paused
            | Ending::Settled => {
                self.is_complete = true;
                true
            }
        }
    }

    /// Whether the played part of the reply will be posted as its statement.
    pub(crate) fn leaves_statement(&self) -> bool {
        self.spoken.as_ref().is_some_and(SpokenReply::leaves_statement)
    }
}

/// Whether an inbound event was recorded before an event of the channel, but handled after it.
pub(crate) fn has_crossed(earlier: &Recorded, made: &Recorded) -> bool {
    earlier.event.is_inbound() && earlier.seq > made.handled && earlier.seq < made.seq
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::event::samples::{decided, evaluated, recorded, reply_owed, said};

    #[test]
    fn a_vote_that_settles_while_it_waits_for_the_floor_ends_there() {
        let (mut course, who) = aria(json!({ "vote": state() }));

        let held = json!({ "event": "round_closed", "message": 1, "states": [state()], "held": ["aria"] });
        assert!(matches!(course.follow(&recorded(4, held), &who), Some(Consequence::Change(What::Now(Phase::Held)))));
        assert!(course.is_in_progress());
        let guarded = decided(&["aria"], "NO", &[1], json!({ "reason": "loop_guard", "upto": 1 }));
        let settled = course.follow(&recorded(5, guarded), &who);

        assert!(matches!(settled, Some(Consequence::Change(What::Ended(Ending::Settled)))));
        assert!(course.is_complete);
    }

    #[test]
    fn a_statement_may_follow_after_all_its_messages_were_deleted() {
        let (mut course, who) = aria(json!({}));
        course.follow(&recorded(4, reply_owed("aria", 9, &[1])), &who);

        course.follow(&recorded(5, json!({ "event": "deleted", "messages": [1] })), &who);
        assert!(!course.is_in_progress() && !course.is_complete);
        let posted = course.follow(&recorded(6, said("aria", "companion", Some(9))), &who);

        assert!(matches!(posted, Some(Consequence::Change(What::Ended(Ending::Posted)))));
        assert!(course.is_complete);
    }

    /// The course after a YES of Aria to message 1.
    fn aria(more: Value) -> (Course, Subject) {
        let who = crate::story::samples::aria();
        let before = [recorded(1, said("ana", "user", None)), recorded(2, evaluated("aria", 1, &[1]))];
        let mut yes = decided(&["aria"], "YES", &[], json!({ "reason": "model_yes", "ticket": 1 }));
        yes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (Course::after(&recorded(3, yes), &before, &who), who)
    }

    fn state() -> Value {
        json!({ "from": "aria", "messageId": "1", "state": "speak", "importance": 5.0, "selected": false, "closing": "none" })
    }
}
