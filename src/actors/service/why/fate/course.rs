//! Follows one message through the record, event by event. It is pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;

/// What happened to the message for one companion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// No event that was read settles it.
    Open,
    /// The companion said it itself.
    Own,
    /// It settled with a NO.
    Silent(Recorded, Box<Decided>),
    /// It settled with a reply that was owed. `ending` says how that ended, once it did.
    Owed { owed: Recorded, yes: Option<Seq>, ending: Option<Box<Recorded>> },
    /// The message was deleted first.
    Deleted(Recorded),
    /// The room was cleared first.
    Cleared(Recorded),
    /// The companion left first.
    Left(Recorded),
    /// The companion joined afterwards.
    CameLater(Recorded),
}

/// The course of one message.
pub(super) struct Course {
    message: Seq,
    /// Only the given companions are followed.
    is_closed: bool,
    fates: BTreeMap<CompanionId, Fate>,
    /// The newest question to each companion about the message, and the YES to it.
    asked: BTreeMap<CompanionId, (Ticket, Option<Seq>)>,
    /// The newest YES of each companion.
    yes: BTreeMap<CompanionId, Seq>,
    changes: Vec<Recorded>,
    /// The messages that were deleted since.
    deleted: BTreeSet<Seq>,
}

impl Course {
    /// Follows this message for these companions. Unless `is_one` is set, other companions in the record are followed as well.
    pub(super) fn new(message: &Recorded, companions: BTreeSet<CompanionId>, is_one: bool) -> Self {
        let own = if let Event::Said { message, .. } = &message.event
            && message.from.role == Role::Companion
        {
            Some(CompanionId::from(&*message.from.id))
        } else {
            None
        };
        let fate = |id: &CompanionId| if own.as_ref() == Some(id) { Fate::Own } else { Fate::Open };
        let fates = companions.into_iter().map(|id| (id.clone(), fate(&id))).collect();
        Self {
            message: message.seq,
            is_closed: is_one,
            fates,
            asked: BTreeMap::new(),
            yes: BTreeMap::new(),
            changes: Vec::new(),
            deleted: BTreeSet::new(),
        }
    }

    pub(super) fn companions(&self) -> impl Iterator<Item = &CompanionId> {
        self.fates.keys()
    }

    pub(super) fn fate(&self, companion: &CompanionId) -> &Fate {
        self.fates.get(companion).unwrap_or(&Fate::Open)
    }

    /// Whether a companion was asked about the message, and its YES to that, if any.
    pub(super) fn asked(&self, companion: &CompanionId) -> Option<Option<Seq>> {
        self.asked.get(companion).map(|(_, yes)| *yes)
    }

    /// The newest YES of a companion after the message.
    pub(super) fn newest_yes(&self, companion: &CompanionId) -> Option<Seq> {
        self.yes.get(companion).copied()
    }

    /// The edits and the deletion of the message.
    pub(super) fn changes(&self) -> &[Recorded] {
        &self.changes
    }

    /// Whether everybody's fate is known.
    pub(super) fn is_over(&self) -> bool {
        self.fates.values().all(|fate| !matches!(fate, Fate::Open | Fate::Owed { ending: None, .. }))
    }

    /// Takes the next event after the message.
    pub(super) fn follow(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Edited { message, .. } if *message == self.message => self.changes.push(recorded.clone()),
            Event::Deleted { messages, .. } => {
                self.deleted.extend(messages);
                if messages.contains(&self.message) {
                    self.changes.push(recorded.clone());
                    self.end_all(&Fate::Deleted(recorded.clone()));
                }
                self.end_owed_about_nothing(recorded);
            }
            Event::Cleared => {
                self.end_all(&Fate::Cleared(recorded.clone()));
                self.end_owed(|_, _| true, recorded);
            }
            Event::Left { companion } => {
                self.end(companion, Fate::Left(recorded.clone()));
                self.end_owed(|whose, _| whose == companion, recorded);
            }
            Event::Joined { companion, .. } => self.end(companion, Fate::CameLater(recorded.clone())),
            Event::Evaluated(Evaluated { companion, ticket, messages, .. }) if messages.contains(&self.message) => {
                self.asked.insert(companion.clone(), (*ticket, None));
            }
            Event::Decided(decided) => {
                for companion in &decided.companions {
                    if decided.decision == Decision::Yes {
                        self.yes.insert(companion.clone(), recorded.seq);
                        if let Some((_, yes)) =
                            self.asked.get_mut(companion).filter(|(ticket, _)| decided.ticket == Some(*ticket))
                        {
                            *yes = Some(recorded.seq);
                        }
                    } else if decided.messages.contains(&self.message) {
                        self.settle(companion, Fate::Silent(recorded.clone(), Box::new(decided.clone())));
                    }
                }
            }
            Event::ReplyOwed { companion, messages, .. } if messages.contains(&self.message) => {
                let yes = self.yes.get(companion).copied();
                self.settle(companion, Fate::Owed { owed: recorded.clone(), yes, ending: None });
                // The channel may have handled an earlier deletion only after this event.
                if let Some(deletion) = self.changes.iter().rfind(|change| matches!(change.event, Event::Deleted { .. })).cloned()
                {
                    self.end_owed_about_nothing(&deletion);
                }
            }
            Event::Replanned { companion, ticket, messages, .. } | Event::ReplyExtended { companion, ticket, messages, .. } => {
                self.replanned(recorded, companion, *ticket, messages)
            }
            Event::Said { reply: Some(ticket), .. }
            | Event::ReplyFailed { ticket, .. }
            | Event::Cancelled { ticket: Some(ticket), .. } => {
                self.end_owed(|_, owed| owed == *ticket, recorded);
            }
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Paused { .. }
            | Event::VoiceJoined { .. }
            | Event::VoiceLeft { .. }
            | Event::Segment(_)
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::SilenceFired { .. }
            | Event::VoiceQuiet { .. }
            | Event::EventsDeferred { .. }
            | Event::EventsReleased
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::Evaluated(_)
            | Event::Unanswered { .. }
            | Event::StageChanged { .. }
            | Event::RoundClosed(_)
            | Event::RepetitionAsked { .. }
            | Event::SentenceStarting { .. }
            | Event::SentencePlayed { .. }
            | Event::Interrupted { .. }
            | Event::Replanning { .. }
            | Event::Cancelled { .. }
            | Event::FloorExpired { .. }
            | Event::FloorTaken { .. }
            | Event::HeldSelected { .. }
            | Event::RepetitionJudged { .. }
            | Event::ReplyOwed { .. }
            | Event::Summarised { .. } => {}
        }
    }

    /// A reply was begun again under another number, and may answer the message now.
    fn replanned(&mut self, recorded: &Recorded, companion: &CompanionId, stopped: Ticket, messages: &[Seq]) {
        if let Some(Fate::Owed { owed, ending: None, .. }) = self.fates.get_mut(companion)
            && let Event::ReplyOwed { ticket, .. }
            | Event::Replanned { next: ticket, .. }
            | Event::ReplyExtended { next: ticket, .. } = &owed.event
            && *ticket == stopped
        {
            *owed = recorded.clone();
        } else if messages.contains(&self.message) {
            let yes = self.yes.get(companion).copied();
            self.settle(companion, Fate::Owed { owed: recorded.clone(), yes, ending: None });
        }
    }

    /// Settles the message. This takes precedence over an event that ended the wait before, because the channel made its decision before it handled
    /// that event.
    fn settle(&mut self, companion: &CompanionId, fate: Fate) {
        if self.is_closed && !self.fates.contains_key(companion) {
            return;
        }
        let current = self.fates.entry(companion.clone()).or_insert(Fate::Open);
        if !matches!(current, Fate::Silent(..) | Fate::Owed { .. } | Fate::Own) {
            *current = fate;
        }
    }

    fn end(&mut self, companion: &CompanionId, fate: Fate) {
        let is_new = !self.is_closed && !self.fates.contains_key(companion) && matches!(fate, Fate::Left(_));
        if is_new {
            // The companion was there before it left.
            self.fates.insert(companion.clone(), Fate::Open);
        }
        if let Some(open) = self.fates.get_mut(companion).filter(|current| **current == Fate::Open) {
            *open = fate;
        }
    }

    fn end_all(&mut self, fate: &Fate) {
        for open in self.fates.values_mut().filter(|current| **current == Fate::Open) {
            *open = fate.clone();
        }
    }

    fn end_owed(&mut self, is_match: impl Fn(&CompanionId, Ticket) -> bool, recorded: &Recorded) {
        // A statement may have been posted although all messages that it answers were deleted, or what was heard of it was posted when the room was
        // cleared or the companion left.
        let is_said = matches!(recorded.event, Event::Said { .. });
        let may_follow = |end: &Event| is_said && matches!(end, Event::Deleted { .. } | Event::Cleared | Event::Left { .. });
        for (companion, fate) in &mut self.fates {
            if let Fate::Owed { owed, ending, .. } = fate
                && ending.as_ref().is_none_or(|previous| may_follow(&previous.event))
                && let Event::ReplyOwed { ticket, .. }
                | Event::Replanned { next: ticket, .. }
                | Event::ReplyExtended { next: ticket, .. } = &owed.event
                && is_match(companion, *ticket)
            {
                *ending = Some(Box::new(recorded.clone()));
            }
        }
    }

    /// Ends replies whose messages have all been deleted.
    fn end_owed_about_nothing(&mut self, deletion: &Recorded) {
        for fate in self.fates.values_mut() {
            if let Fate::Owed { owed, ending: ending @ None, .. } = fate
                && let Event::ReplyOwed { messages, .. }
                | Event::Replanned { messages, .. }
                | Event::ReplyExtended { messages, .. } = &owed.event
                && messages.iter().all(|seq| self.deleted.contains(seq))
            {
                *ending = Some(Box::new(deletion.clone()));
            }
        }
    }
}

/// Whether this is a YES of this companion.
pub(super) fn is_yes(recorded: &Recorded, companion: &CompanionId) -> bool {
    matches!(&recorded.event, Event::Decided(decided) if decided.decision == Decision::Yes && decided.companions.contains(companion))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::{Author, Message};
    use crate::domain::moment::Moment;
    use crate::domain::trigger::Trigger;

    #[test]
    fn a_message_settles_with_the_first_decision_that_names_it() {
        let mut course = course();

        course.follow(&no(8, &["aria"], &[6]));
        assert_eq!(course.fate(&"aria".into()), &Fate::Open);
        course.follow(&no(9, &["aria", "ben"], &[6, 7]));
        course.follow(&no(10, &["aria"], &[7]));

        for companion in ["aria", "ben"] {
            assert!(matches!(course.fate(&companion.into()), Fate::Silent(settled, _) if settled.seq == Seq(9)), "{companion}");
        }
        assert!(course.is_over());
    }

    #[test]
    fn a_decision_made_before_the_room_was_cleared_counts_even_if_recorded_after_it() {
        let mut course = course();

        course.follow(&recorded(8, Event::Cleared));
        course.follow(&no(9, &["aria"], &[7]));

        assert!(matches!(course.fate(&"aria".into()), Fate::Silent(..)));
        assert!(matches!(course.fate(&"ben".into()), Fate::Cleared(_)));
    }

    #[test]
    fn a_reply_owed_ends_with_its_statement_its_failure_or_a_clear() {
        let owed = || {
            let mut course = course();
            course.follow(&yes(8, "ben"));
            course.follow(&owed("ben", 9, 4));
            course
        };
        let (mut said, mut failed, mut cleared) = (owed(), owed(), owed());
        let failure = |ticket| Event::ReplyFailed {
            companion: "ben".into(),
            ticket: Ticket(ticket),
            trigger: Trigger::DirectAddress,
            error: "timeout".into(),
        };

        said.follow(&recorded(10, statement("ben", 3)));
        assert!(matches!(said.fate(&"ben".into()), Fate::Owed { ending: None, yes: Some(Seq(8)), .. }));
        said.follow(&recorded(11, statement("ben", 4)));
        failed.follow(&recorded(10, failure(4)));
        cleared.follow(&recorded(10, Event::Cleared));

        for (course, seq) in [(said, 11), (failed, 10), (cleared, 10)] {
            let fate = course.fate(&"ben".into());
            assert!(matches!(fate, Fate::Owed { ending: Some(ending), .. } if ending.seq == Seq(seq)), "{fate:?}");
        }
    }

    #[test]
    fn a_reply_owed_ends_when_all_its_messages_are_deleted_unless_it_was_posted_in_spite_of_that() {
        let deletion = |seq, gone: &[u64]| recorded(seq, Event::deleted(gone.iter().copied().map(Seq).collect()));
        let mut dropped = course();
        dropped.follow(&yes(8, "ben"));
        dropped.follow(&owed("ben", 9, 4));
        let mut crossing = course();
        crossing.follow(&deletion(8, &[6, 7]));
        crossing.follow(&owed("ben", 9, 4));

        dropped.follow(&deletion(10, &[7]));
        let is_over_with_one = !matches!(dropped.fate(&"ben".into()), Fate::Owed { ending: None, .. });
        dropped.follow(&deletion(11, &[6]));

        assert!(!is_over_with_one);
        for (course, end) in [(&dropped, 11), (&crossing, 8)] {
            let fate = course.fate(&"ben".into());
            assert!(matches!(fate, Fate::Owed { ending: Some(ending), .. } if ending.seq == Seq(end)), "{fate:?}");
        }
        dropped.follow(&recorded(12, statement("ben", 4)));
        let fate = dropped.fate(&"ben".into());
        assert!(matches!(fate, Fate::Owed { ending: Some(ending), .. } if ending.seq == Seq(12)), "{fate:?}");
    }

    #[test]
    fn a_companion_that_was_asked_about_a_message_is_known_with_its_yes() {
        let mut course = course();
        course.follow(&yes(8, "aria"));
        course.follow(&asked(9, "aria", &[7]));
        course.follow(&asked(10, "ben", &[6]));
        let before = course.asked(&"aria".into());

        course.follow(&recorded(11, Event::deleted(vec![Seq(7)])));
        course.follow(&yes_to(12, "aria", 9));
        course.follow(&yes_to(13, "aria", 11));

        assert_eq!((before, course.asked(&"aria".into())), (Some(None), Some(Some(Seq(12)))));
        assert_eq!(course.asked(&"ben".into()), None);
        assert!(matches!(course.fate(&"aria".into()), Fate::Deleted(_)));
    }

    #[test]
    fn a_companion_that_left_is_followed_unless_only_one_is_requested() {
        let mut one = Course::new(&message(), BTreeSet::from(["aria".into()]), true);
        let mut all = course();
        for course in [&mut one, &mut all] {
            course.follow(&no(8, &["aria", "zed"], &[7]));
            course.follow(&recorded(9, Event::Left { companion: "cleo".into() }));
            course.follow(&recorded(10, Event::Joined { companion: "newcomer".into(), external: false }));
        }

        let followed = |course: &Course| course.companions().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(followed(&one), ["aria"]);
        assert_eq!(followed(&all), ["aria", "ben", "cleo", "zed"]);
    }

    fn course() -> Course {
        Course::new(&message(), BTreeSet::from(["aria".into(), "ben".into()]), false)
    }

    fn message() -> Recorded {
        recorded(7, said("ana", Role::Person, None))
    }

    fn statement(by: &str, ticket: u64) -> Event {
        said(by, Role::Companion, Some(Ticket(ticket)))
    }

    fn said(by: &str, role: Role, reply: Option<Ticket>) -> Event {
        let message = Message {
            asks_to_stop: false,
            speech: None,
            cut: None,
            id: None,
            from: Author { id: by.into(), name: by.into(), role },
            text: "words".into(),
            modality: Default::default(),
            lull_endpoint: false,
            kind: None,
            address: Default::default(),
        };
        Event::Said { message, reply_to: None, reply, said_at: None }
    }

    fn owed(by: &str, seq: u64, ticket: u64) -> Recorded {
        let owed = Event::ReplyOwed {
            expires_at: None,
            companion: by.into(),
            ticket: Ticket(ticket),
            trigger: Trigger::DirectAddress,
            messages: vec![Seq(6), Seq(7)],
            upto: Seq(7),
            next_interjection_at: 9,
            due_at: None,
            is_farewell: false,
            again: None,
            is_unjudged: false,
            message: None,
            modality: Default::default(),
        };
        recorded(seq, owed)
    }

    fn asked(seq: u64, companion: &str, messages: &[u64]) -> Recorded {
        let evaluated = Evaluated {
            due_at: None,
            companion: companion.into(),
            ticket: Ticket(seq),
            trigger: Trigger::Lull,
            message: Seq(7),
            messages: messages.iter().copied().map(Seq).collect(),
            upto: Seq(7),
            message_count: 1,
            check_count: 0,
            threshold: None,
        };
        recorded(seq, Event::Evaluated(evaluated))
    }

    fn yes(seq: u64, companion: &str) -> Recorded {
        recorded(seq, decided(&[companion], &[], Decision::Yes))
    }

    fn yes_to(seq: u64, companion: &str, ticket: u64) -> Recorded {
        let mut recorded = yes(seq, companion);
        if let Event::Decided(decided) = &mut recorded.event {
            decided.ticket = Some(Ticket(ticket));
        }
        recorded
    }

    fn no(seq: u64, companions: &[&str], messages: &[u64]) -> Recorded {
        recorded(seq, decided(companions, messages, Decision::No))
    }

    fn decided(companions: &[&str], messages: &[u64], decision: Decision) -> Event {
        let decided = json!({
            "event": "decided",
            "companions": companions,
            "trigger": "lull",
            "decision": decision,
            "reason": "model_no",
            "messages": messages,
            "upto": 0,
            "message_count": 1,
            "check_count": 0,
        });
        serde_json::from_value(decided).unwrap()
    }

    fn recorded(seq: u64, event: Event) -> Recorded {
        Recorded { seq: Seq(seq), at: Moment::ZERO, handled: Seq(seq), turn: None, event }
    }
}
