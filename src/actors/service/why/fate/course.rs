//! Follows one message through the record: pure, event by event.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;

/// What became of the message for one companion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// Nothing on record settles it, as far as it was read.
    Open,
    /// It said this itself.
    Own,
    /// It settled with a NO.
    Silent(Recorded, Box<Decided>),
    /// It settled with a statement that was owed; how that ended, once it did.
    Owed { owed: Recorded, yes: Option<Seq>, ending: Option<Box<Recorded>> },
    /// It was taken back first.
    Deleted(Recorded),
    /// What was going on was dropped first.
    Cleared(Recorded),
    /// The companion left first.
    Left(Recorded),
    /// The companion came afterwards.
    CameLater(Recorded),
}

/// The way of one message.
pub(super) struct Course {
    message: Seq,
    /// Only those who are asked for are followed.
    is_closed: bool,
    fates: BTreeMap<CompanionId, Fate>,
    /// The newest question to each that the message is part of, and the YES to it.
    asked: BTreeMap<CompanionId, (Ticket, Option<Seq>)>,
    /// The newest YES of each.
    yes: BTreeMap<CompanionId, Seq>,
    changes: Vec<Recorded>,
    /// What was taken back since.
    gone: BTreeSet<Seq>,
}

impl Course {
    /// Follows this message for these companions, and if they are not all (`is_one`), for whoever turns up besides.
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
            gone: BTreeSet::new(),
        }
    }

    pub(super) fn companions(&self) -> impl Iterator<Item = &CompanionId> {
        self.fates.keys()
    }

    pub(super) fn fate(&self, companion: &CompanionId) -> &Fate {
        self.fates.get(companion).unwrap_or(&Fate::Open)
    }

    /// Whether a companion was asked about the message; and its YES to that, if there is one.
    pub(super) fn asked(&self, companion: &CompanionId) -> Option<Option<Seq>> {
        self.asked.get(companion).map(|(_, yes)| *yes)
    }

    /// The newest YES of a companion after the message.
    pub(super) fn newest_yes(&self, companion: &CompanionId) -> Option<Seq> {
        self.yes.get(companion).copied()
    }

    /// Edits of the message, and that it was taken back.
    pub(super) fn changes(&self) -> &[Recorded] {
        &self.changes
    }

    /// Whether everybody's fate is known.
    pub(super) fn is_over(&self) -> bool {
        self.fates.values().all(|fate| !matches!(fate, Fate::Open | Fate::Owed { ending: None, .. }))
    }

    /// Takes in the next event after the message.
    pub(super) fn follow(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Edited { message, .. } if *message == self.message => self.changes.push(recorded.clone()),
            Event::Deleted { messages } => {
                self.gone.extend(messages);
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
                // The channel may have handled what was taken back before only after this.
                if let Some(taken_back) =
                    self.changes.iter().rfind(|change| matches!(change.event, Event::Deleted { .. })).cloned()
                {
                    self.end_owed_about_nothing(&taken_back);
                }
            }
            Event::Said { reply: Some(ticket), .. } | Event::ReplyFailed { ticket, .. } => {
                self.end_owed(|_, owed| owed == *ticket, recorded);
            }
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Paused { .. }
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::Evaluated(_)
            | Event::Unanswered { .. }
            | Event::StageChanged { .. }
            | Event::RoundClosed(_)
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. }
            | Event::ReplyOwed { .. }
            | Event::Summarised { .. } => {}
        }
    }

    /// What the channel made before it handled what ended the wait counts all the same.
    fn settle(&mut self, companion: &CompanionId, fate: Fate) {
        if self.is_closed && !self.fates.contains_key(companion) {
            return;
        }
        let known = self.fates.entry(companion.clone()).or_insert(Fate::Open);
        if !matches!(known, Fate::Silent(..) | Fate::Owed { .. } | Fate::Own) {
            *known = fate;
        }
    }

    fn end(&mut self, companion: &CompanionId, fate: Fate) {
        let is_new = !self.is_closed && !self.fates.contains_key(companion) && matches!(fate, Fate::Left(_));
        if is_new {
            // It was there, though it is not any more.
            self.fates.insert(companion.clone(), Fate::Open);
        }
        if let Some(known) = self.fates.get_mut(companion).filter(|known| **known == Fate::Open) {
            *known = fate;
        }
    }

    fn end_all(&mut self, fate: &Fate) {
        for known in self.fates.values_mut().filter(|known| **known == Fate::Open) {
            *known = fate.clone();
        }
    }

    fn end_owed(&mut self, is_it: impl Fn(&CompanionId, Ticket) -> bool, recorded: &Recorded) {
        // What was on its way when all was taken back may still have been said.
        let is_said = matches!(recorded.event, Event::Said { .. });
        for (companion, fate) in &mut self.fates {
            if let Fate::Owed { owed, ending, .. } = fate
                && ending.as_ref().is_none_or(|known| is_said && matches!(known.event, Event::Deleted { .. }))
                && let Event::ReplyOwed { ticket, .. } = &owed.event
                && is_it(companion, *ticket)
            {
                *ending = Some(Box::new(recorded.clone()));
            }
        }
    }

    /// A reply goes with the last of the messages that it answers.
    fn end_owed_about_nothing(&mut self, taken_back: &Recorded) {
        for fate in self.fates.values_mut() {
            if let Fate::Owed { owed, ending: ending @ None, .. } = fate
                && let Event::ReplyOwed { messages, .. } = &owed.event
                && messages.iter().all(|seq| self.gone.contains(seq))
            {
                *ending = Some(Box::new(taken_back.clone()));
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
    fn what_was_decided_before_the_room_was_cleared_counts_though_it_is_on_record_after_it() {
        let mut course = course();

        course.follow(&recorded(8, Event::Cleared));
        course.follow(&no(9, &["aria"], &[7]));

        assert!(matches!(course.fate(&"aria".into()), Fate::Silent(..)));
        assert!(matches!(course.fate(&"ben".into()), Fate::Cleared(_)));
    }

    #[test]
    fn a_reply_owed_is_over_once_it_is_said_failed_or_dropped() {
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
    fn a_reply_owed_is_over_with_the_last_message_that_it_answers_unless_it_was_said_all_the_same() {
        let taken_back = |seq, gone: &[u64]| recorded(seq, Event::Deleted { messages: gone.iter().copied().map(Seq).collect() });
        let mut dropped = course();
        dropped.follow(&yes(8, "ben"));
        dropped.follow(&owed("ben", 9, 4));
        let mut crossing = course();
        crossing.follow(&taken_back(8, &[6, 7]));
        crossing.follow(&owed("ben", 9, 4));

        dropped.follow(&taken_back(10, &[7]));
        let is_over_with_one = !matches!(dropped.fate(&"ben".into()), Fate::Owed { ending: None, .. });
        dropped.follow(&taken_back(11, &[6]));

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
    fn who_was_asked_about_a_message_is_known_with_the_yes_to_that() {
        let mut course = course();
        course.follow(&yes(8, "aria"));
        course.follow(&asked(9, "aria", &[7]));
        course.follow(&asked(10, "ben", &[6]));
        let before = course.asked(&"aria".into());

        course.follow(&recorded(11, Event::Deleted { messages: vec![Seq(7)] }));
        course.follow(&yes_to(12, "aria", 9));
        course.follow(&yes_to(13, "aria", 11));

        assert_eq!((before, course.asked(&"aria".into())), (Some(None), Some(Some(Seq(12)))));
        assert_eq!(course.asked(&"ben".into()), None);
        assert!(matches!(course.fate(&"aria".into()), Fate::Deleted(_)));
    }

    #[test]
    fn whoever_was_there_and_left_is_followed_unless_one_alone_is_asked_for() {
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
            id: None,
            from: Author { id: by.into(), name: by.into(), role },
            text: "words".into(),
            modality: Default::default(),
            lull_endpoint: false,
            address: Default::default(),
        };
        Event::Said { message, reply_to: None, reply, said_at: None }
    }

    fn owed(by: &str, seq: u64, ticket: u64) -> Recorded {
        let owed = Event::ReplyOwed {
            companion: by.into(),
            ticket: Ticket(ticket),
            trigger: Trigger::DirectAddress,
            messages: vec![Seq(6), Seq(7)],
            upto: Seq(7),
            next_interjection_at: 9,
            due_at: None,
        };
        recorded(seq, owed)
    }

    fn asked(seq: u64, companion: &str, messages: &[u64]) -> Recorded {
        let evaluated = Evaluated {
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
