//! Follows what came of a decision through the record: the round, the floor, and the statement.

use std::sync::Arc;
use std::time::Duration;

use super::Subject;
use super::aloud::{People, SpokenReply};
use crate::domain::event::{Event, Outvoted, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::Message;
use crate::domain::settlement::PendingReply;

/// What an event of the record means for a wish to speak, or after a vote.
pub(super) enum Consequence {
    /// The event says it by itself.
    Event,
    /// The statement was made. `heard`: the words that had started to be heard, if it was to be spoken.
    Statement {
        heard: Option<String>,
    },
    /// The companion waits until another one has spoken.
    Held,
    /// It waits so long before it speaks.
    Delayed(Duration),
    FloorLost {
        next_interjection_at: Option<u64>,
    },
    /// It speaks because the companion that was selected before it made no statement.
    TookOver,
    /// What people said before it began to speak is answered, too.
    Extended(Vec<Message>),
    /// This person talked into it, or stopped it.
    Interrupted(Option<Arc<str>>),
    /// It left, or the room was cleared, and a statement with what was heard follows all the same.
    Moved,
}

/// The progress of a story after its decision.
pub(super) struct Course {
    is_yes: bool,
    /// The round is closed, or none was held.
    pub(super) is_over: bool,
    /// The companion wanted the floor, and another one got it.
    has_lost: bool,
    /// What the companion wants to say, or owes. It is about no message after a NO.
    reply: PendingReply,
    /// The reply that is owed, if it is to be spoken.
    spoken: Option<SpokenReply>,
    people: People,
    /// All messages that it was about were deleted.
    is_dropped: bool,
    /// Nothing more can follow.
    pub(super) is_complete: bool,
}

impl Course {
    /// After a NO, nothing needs to be answered. Messages that were deleted before a YES need no answer either.
    pub(super) fn about(messages: &[Seq], is_yes: bool, who: &Subject, decided: &Recorded, before: &[Recorded]) -> Self {
        let handled = || before.iter().filter(|earlier| !has_crossed(earlier, decided));
        let is_gone = |seq: &Seq| {
            handled().any(|earlier| matches!(&earlier.event, Event::Deleted { messages, .. } if messages.contains(seq)))
        };
        let messages = messages.iter().filter(|seq| is_yes && !is_gone(seq)).copied().collect();
        let mut people = People::default();
        before.iter().for_each(|earlier| people.note(&earlier.event));
        let reply = PendingReply { companion: who.id.clone(), ticket: None, messages };
        Self { is_yes, is_over: false, has_lost: false, reply, spoken: None, people, is_dropped: false, is_complete: false }
    }

    /// Whether the round is open, or the floor or the statement is still to come.
    pub(super) fn is_in_progress(&self) -> bool {
        !self.is_complete && !self.is_dropped && !self.has_lost
    }

    pub(super) fn follow(&mut self, recorded: &Recorded, who: &Subject) -> Option<Consequence> {
        let event = &recorded.event;
        self.people.note(event);
        if self.spoken.as_mut().is_some_and(|spoken| spoken.hear(recorded)) {
            return Some(Consequence::Event);
        }
        let has_floor = self.reply.ticket.is_some();
        let is_about_another = event.reply().is_some_and(|ticket| self.reply.ticket != Some(ticket));
        if is_about_another || self.is_dropped && !matches!(event, Event::Said { .. }) {
            // The statement may have been posted in spite of the deletion. The conversation continues without it.
            let continues =
                matches!(event, Event::RoundClosed(_) | Event::RoundOpened(_) | Event::Evaluated(_) | Event::ReplyOwed { .. });
            self.is_complete |= self.is_dropped && continues;
            self.is_over |= self.is_complete;
            return None;
        }
        let before = self.reply.messages.clone();
        let is_ended = self.reply.follow(event);
        match event {
            Event::Said { reply: Some(_), .. } => {
                self.is_complete = true;
                Some(Consequence::Statement { heard: self.spoken.as_ref().map(|spoken| spoken.words.clone()) })
            }
            // The companion speaks again, and the record does not say how this statement ended.
            Event::ReplyOwed { companion, .. } if has_floor && *companion == who.id => {
                self.is_complete = true;
                None
            }
            Event::ReplyOwed { companion, modality, .. } if *companion == who.id => {
                self.spoken = (!modality.is_text()).then(|| SpokenReply::new(recorded));
                let takes_over = std::mem::take(&mut self.has_lost);
                Some(if takes_over { Consequence::TookOver } else { Consequence::Event })
            }
            Event::Deleted { .. } if is_ended && !self.has_lost => {
                self.is_dropped = true;
                // A companion that was waiting for its turn had said nothing.
                self.is_complete = self.is_over && !has_floor;
                Some(Consequence::Event)
            }
            Event::RoundClosed(closed) if !self.is_over => {
                self.is_over = true;
                self.is_complete = !self.is_yes;
                if closed.held.contains(&who.id) {
                    Some(Consequence::Held)
                } else if closed.selected.as_ref() == Some(&who.id) {
                    let delay = closed.speak_at.map(|at| at.since(recorded.at)).filter(|delay| !delay.is_zero());
                    delay.map(Consequence::Delayed)
                } else {
                    self.lose_floor(&closed.others, who)
                }
            }
            Event::HeldSelected { selected, others } if *selected != who.id && !has_floor => self.lose_floor(others, who),
            Event::ReplyExtended { messages, .. } => {
                self.spoken.as_ref().map(|spoken| Consequence::Extended(spoken.taken_in(messages, &before)))
            }
            Event::SentenceStarting { sentence, text, .. } => {
                self.spoken.as_mut()?.start(*sentence, text).then_some(Consequence::Event)
            }
            Event::Interrupted { interrupted, .. } => {
                self.spoken.as_mut()?.interrupt(interrupted);
                Some(Consequence::Interrupted(interrupted.who.as_ref().and_then(|who| self.people.name(who))))
            }
            Event::Replanning { .. }
            | Event::Replanned { .. }
            | Event::SentencePlayed { dropped: true, .. }
            | Event::FloorExpired { .. }
            | Event::FloorTaken { .. } => Some(Consequence::Event),
            Event::Decided(decided) if self.has_lost && decided.companions.contains(&who.id) => {
                self.is_complete = true;
                Some(Consequence::Event)
            }
            // It is asked again: the wish is gone, or belongs to that round's story.
            Event::Evaluated(evaluated) if evaluated.companion == who.id && !has_floor && self.is_over && !self.has_lost => {
                self.is_complete = true;
                None
            }
            // What was heard is posted all the same.
            Event::Cleared | Event::Left { .. } if self.spoken.as_ref().is_some_and(SpokenReply::leaves_statement) => {
                Some(Consequence::Moved)
            }
            event if self.is_stopped_by(event, is_ended, who) => {
                self.is_complete = true;
                Some(Consequence::Event)
            }
            _ => None,
        }
    }

    /// Whether nothing will be said because of this event.
    fn is_stopped_by(&self, event: &Event, is_ended: bool, who: &Subject) -> bool {
        match event {
            Event::ReplyFailed { .. } | Event::Cleared => true,
            Event::Cancelled { .. } | Event::Left { .. } => is_ended,
            event => self.reply.ticket.is_none() && event.pauses(&who.id),
        }
    }

    /// Another companion was selected. Says what that means, if this one wanted to speak.
    fn lose_floor(&mut self, others: &[Outvoted], who: &Subject) -> Option<Consequence> {
        let lost = others.iter().find(|other| other.companion == who.id)?;
        self.has_lost = true;
        Some(Consequence::FloorLost { next_interjection_at: lost.next_interjection_at })
    }
}

/// Whether an inbound event is on record before an event of the channel, but was handled after it.
pub(super) fn has_crossed(earlier: &Recorded, made: &Recorded) -> bool {
    earlier.event.is_inbound() && earlier.seq > made.handled && earlier.seq < made.seq
}
