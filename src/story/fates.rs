//! Follows one message through the record, in the order in which the channel handled the events. This module is pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::event::{Event, Recorded, order_of_handling};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::turn::bid::{Bid, Change, Ending, Phase, What};
use crate::domain::turn::bids::Bids;

/// The outcome of the message for one companion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fate {
    /// No event read so far settles the message.
    Open,
    /// The companion is the author.
    Own,
    /// This decision settled the message.
    Silent(Box<Recorded>),
    /// A reply that was owed settled the message. `ending` is the event that ended the reply.
    Owed { owed: Box<Recorded>, reply: Ticket, yes: Option<Seq>, ending: Option<Box<Recorded>> },
    /// Before the message was settled, it was deleted, the room was cleared, or the companion left or joined.
    Lost(Box<Recorded>),
}

impl Fate {
    fn of_settled(recorded: &Recorded, yes: Option<Seq>) -> Self {
        let Some(owed) = recorded.event.owed() else { return Self::Silent(Box::new(recorded.clone())) };
        Self::Owed { owed: Box::new(recorded.clone()), reply: owed.ticket, yes, ending: None }
    }

    /// Whether the outcome is final.
    fn is_known(&self) -> bool {
        !matches!(self, Self::Open | Self::Owed { ending: None, .. })
    }
}

/// The outcome of one message for each companion.
#[derive(Default)]
pub(crate) struct Fates {
    message: Seq,
    /// The companion that wrote the message, if any.
    author: Option<CompanionId>,
    /// Whether only the given companions are followed.
    is_closed: bool,
    fates: BTreeMap<CompanionId, Fate>,
    bids: Bids,
    /// For each companion, the newest question about the message, and the YES to it.
    asked: BTreeMap<CompanionId, (Seq, Option<Seq>)>,
    /// The newest YES of each companion.
    yes: BTreeMap<CompanionId, Seq>,
    changes: Vec<Recorded>,
    /// Events that were read, but may have been handled after later ones.
    unordered: Vec<Recorded>,
}

impl Fates {
    /// Follows this message for these companions. Unless `is_one`, other companions in the record are added.
    pub(crate) fn new(message: &Recorded, companions: BTreeSet<CompanionId>, is_one: bool) -> Self {
        let from = if let Event::Said { message, .. } = &message.event { Some(&message.from) } else { None };
        let author = from.filter(|from| from.role == Role::Companion).map(|from| CompanionId::from(&*from.id));
        let mut all = Self { message: message.seq, author, is_closed: is_one, ..Self::default() };
        companions.into_iter().for_each(|companion| all.add(companion));
        all
    }

    fn add(&mut self, companion: CompanionId) {
        let fate = if self.author.as_ref() == Some(&companion) { Fate::Own } else { Fate::Open };
        self.fates.entry(companion).or_insert(fate);
    }

    pub(crate) fn companions(&self) -> impl Iterator<Item = &CompanionId> {
        self.fates.keys()
    }

    pub(crate) fn fate(&self, companion: &CompanionId) -> &Fate {
        self.fates.get(companion).unwrap_or(&Fate::Open)
    }

    /// `None` if the companion was not asked about the message, otherwise its YES, if any.
    pub(crate) fn asked(&self, companion: &CompanionId) -> Option<Option<Seq>> {
        self.asked.get(companion).map(|(_, yes)| *yes)
    }

    /// The newest YES of a companion after the message.
    pub(crate) fn newest_yes(&self, companion: &CompanionId) -> Option<Seq> {
        self.yes.get(companion).copied()
    }

    /// The edits and the deletion of the message.
    pub(crate) fn changes(&self) -> &[Recorded] {
        &self.changes
    }

    /// Whether the outcome for every companion is final.
    pub(crate) fn is_over(&self) -> bool {
        self.fates.values().all(Fate::is_known)
    }

    /// Reads the next events of the record. `are_last`: no others follow.
    pub(crate) fn read(&mut self, events: Vec<Recorded>, are_last: bool) {
        self.unordered.extend(events);
        order_of_handling(&mut self.unordered);
        // The channel may not have handled inbound events that are newer than its own newest event.
        let newest_made = self.unordered.iter().rposition(|recorded| !recorded.event.is_inbound());
        let handled = if are_last { self.unordered.len() } else { newest_made.map_or(0, |newest| newest + 1) };
        for recorded in self.unordered.drain(..handled).collect::<Vec<_>>() {
            self.follow(&recorded);
        }
    }

    fn follow(&mut self, recorded: &Recorded) {
        let is_edit = matches!(&recorded.event, Event::Edited { message, .. } if *message == self.message);
        let is_deletion = matches!(&recorded.event, Event::Deleted { messages, .. } if messages.contains(&self.message));
        self.changes.extend((is_edit || is_deletion).then(|| recorded.clone()));
        // The companion was present before it left.
        if let Event::Left { companion } = &recorded.event
            && !self.is_closed
        {
            self.add(companion.clone());
        }
        for Change { bid, what } in self.bids.apply(recorded) {
            self.change(&bid, what, recorded);
        }
        let settled = recorded.event.settled().filter(|settled| settled.messages.contains(&self.message));
        for companion in settled.iter().flat_map(|settled| settled.companions) {
            if !self.is_closed {
                self.add(companion.clone());
            }
            let yes = self.newest_yes(companion);
            if let Some(fate) = self.fates.get_mut(companion).filter(|fate| **fate == Fate::Open) {
                *fate = Fate::of_settled(recorded, yes);
            }
        }
        for (companion, fate) in self.fates.iter_mut().filter(|(_, fate)| **fate == Fate::Open) {
            let is_new = matches!(&recorded.event, Event::Joined { companion: who, .. } if who == companion);
            if is_deletion || is_new || recorded.event.cancels(companion) {
                *fate = Fate::Lost(Box::new(recorded.clone()));
            }
        }
    }

    fn change(&mut self, Bid { companion, began, messages, reply: of, .. }: &Bid, what: What, recorded: &Recorded) {
        if what == What::Now(Phase::Asked) && messages.contains(&self.message) {
            self.asked.insert(companion.clone(), (*began, None));
        } else if matches!(what, What::Now(_)) && matches!(recorded.event, Event::Decided(_)) {
            self.yes.insert(companion.clone(), recorded.seq);
            let asked = self.asked.get_mut(companion).filter(|(asked, _)| asked == began);
            asked.into_iter().for_each(|(_, yes)| *yes = Some(recorded.seq));
        }
        let Some(Fate::Owed { owed, reply, ending, .. }) = self.fates.get_mut(companion) else { return };
        if what == What::BegunAgain(*reply) && ending.is_none() {
            (**owed, *reply) = (recorded.clone(), of.unwrap_or(*reply));
        } else if let What::Ended(how) = what
            && *of == Some(*reply)
            // A statement may follow another ending.
            && (ending.is_none() || how == Ending::Posted)
        {
            *ending = Some(Box::new(recorded.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::event::samples::{decided, evaluated, recorded, reply_owed, said};

    #[test]
    fn a_message_settles_with_the_first_decision_that_names_it() {
        let fates = read([no(8, &["aria"], &[6]), no(9, &["aria", "ben"], &[6, 7]), no(10, &["aria"], &[7])]);

        for companion in ["aria", "ben"] {
            assert!(matches!(fates.fate(&companion.into()), Fate::Silent(settled) if settled.seq == Seq(9)), "{companion}");
        }
        assert!(fates.is_over());
        assert_eq!(read([no(8, &["aria"], &[6])]).fate(&"aria".into()), &Fate::Open);
    }

    #[test]
    fn a_decision_made_before_the_room_was_cleared_counts_even_if_recorded_after_it() {
        let fates = read([recorded(8, json!({ "event": "cleared" })), Recorded { handled: Seq(7), ..no(9, &["aria"], &[7]) }]);

        assert!(matches!(fates.fate(&"aria".into()), Fate::Silent(_)));
        assert!(matches!(fates.fate(&"ben".into()), Fate::Lost(cleared) if cleared.seq == Seq(8)));
    }

    #[test]
    fn a_reply_owed_ends_with_its_statement_its_failure_a_clear_or_the_deletion_of_all_its_messages() {
        let failure = json!({ "event": "reply_failed", "companion": "ben", "ticket": 4, "trigger": "lull", "error": "timeout" });
        let left = json!({ "event": "left", "companion": "ben" });
        let (said, stop) =
            (statement(11, 4), json!({ "event": "cancelled", "companion": "ben", "ticket": 4, "trigger": "lull" }));

        for (events, end) in [
            (vec![statement(10, 3)], None),
            (vec![statement(10, 3), said.clone()], Some(11)),
            (vec![recorded(10, failure)], Some(10)),
            (vec![recorded(10, json!({ "event": "cleared" }))], Some(10)),
            (vec![recorded(10, left)], Some(10)),
            (vec![recorded(10, stop)], Some(10)),
            (vec![deletion(10, &[7])], None),
            (vec![deletion(10, &[7]), deletion(12, &[6])], Some(12)),
            // It was posted in spite of that.
            (vec![deletion(10, &[6, 7]), said], Some(11)),
        ] {
            let fates = read([yes(8, "ben", None), owed(9)].into_iter().chain(events));

            let fate = fates.fate(&"ben".into());
            assert!(matches!(fate, Fate::Owed { yes: Some(Seq(8)), .. }), "{fate:?}");
            let Fate::Owed { ending, .. } = fate else { return };
            assert_eq!(ending.as_ref().map(|ending| ending.seq.0), end, "{fate:?}");
        }
    }

    #[test]
    fn a_deletion_that_was_handled_after_the_reply_was_owed_ends_it() {
        let fates = read([deletion(8, &[6, 7]), Recorded { handled: Seq(7), ..owed(9) }]);

        let fate = fates.fate(&"ben".into());
        assert!(matches!(fate, Fate::Owed { ending: Some(ending), .. } if ending.seq == Seq(8)), "{fate:?}");
    }

    #[test]
    fn a_companion_that_has_left_has_still_said_its_message() {
        let mut fates = Fates::new(&statement(6, 1), BTreeSet::new(), false);

        fates.read(vec![recorded(7, json!({ "event": "left", "companion": "ben" }))], true);

        assert_eq!(fates.fate(&"ben".into()), &Fate::Own);
    }

    #[test]
    fn a_companion_that_was_asked_about_a_message_is_known_with_its_yes() {
        let asked = [yes(8, "aria", None), asked(9, "aria", &[7]), asked(10, "ben", &[6])];
        let answered = [deletion(11, &[7]), yes(12, "aria", Some(9)), yes(13, "aria", Some(11))];
        let before = read(asked.clone());
        let after = read(asked.into_iter().chain(answered));

        assert_eq!((before.asked(&"aria".into()), after.asked(&"aria".into())), (Some(None), Some(Some(Seq(12)))));
        assert_eq!(after.asked(&"ben".into()), None);
        assert!(matches!(after.fate(&"aria".into()), Fate::Lost(deleted) if deleted.seq == Seq(11)));
    }

    #[test]
    fn a_companion_that_left_is_followed_unless_only_one_is_requested() {
        let followed = |companions: &[&str], is_one| {
            let mut fates = Fates::new(&message(), companions.iter().map(|id| CompanionId::from(*id)).collect(), is_one);
            let left = recorded(9, json!({ "event": "left", "companion": "cleo" }));
            let joined = recorded(10, json!({ "event": "joined", "companion": "newcomer" }));
            fates.read(vec![no(8, &["aria", "zed"], &[7]), left, joined], true);
            fates.companions().map(ToString::to_string).collect::<Vec<_>>()
        };

        assert_eq!(followed(&["aria"], true), ["aria"]);
        assert_eq!(followed(&["aria", "ben"], false), ["aria", "ben", "cleo", "zed"]);
    }

    #[test]
    fn events_are_followed_as_they_were_handled_wherever_pages_end() {
        let mut fates = Fates::new(&message(), BTreeSet::from(["aria".into()]), true);

        fates.read(vec![recorded(8, json!({ "event": "cleared" }))], false);
        let before = fates.fate(&"aria".into()).clone();
        fates.read(vec![Recorded { handled: Seq(7), ..no(9, &["aria"], &[7]) }], false);

        assert_eq!(before, Fate::Open);
        assert!(matches!(fates.fate(&"aria".into()), Fate::Silent(_)));
    }

    fn read(events: impl IntoIterator<Item = Recorded>) -> Fates {
        let mut fates = Fates::new(&message(), BTreeSet::from(["aria".into(), "ben".into()]), false);
        fates.read(events.into_iter().collect(), true);
        fates
    }

    fn message() -> Recorded {
        recorded(7, said("ana", "user", None))
    }

    fn statement(seq: u64, ticket: u64) -> Recorded {
        recorded(seq, said("ben", "companion", Some(ticket)))
    }

    fn deletion(seq: u64, messages: &[u64]) -> Recorded {
        recorded(seq, json!({ "event": "deleted", "messages": messages }))
    }

    fn owed(seq: u64) -> Recorded {
        recorded(seq, reply_owed("ben", 4, &[6, 7]))
    }

    fn asked(seq: u64, companion: &str, messages: &[u64]) -> Recorded {
        recorded(seq, evaluated(companion, seq, messages))
    }

    fn yes(seq: u64, companion: &str, ticket: Option<u64>) -> Recorded {
        recorded(seq, decided(&[companion], "YES", &[], json!({ "ticket": ticket })))
    }

    fn no(seq: u64, companions: &[&str], messages: &[u64]) -> Recorded {
        recorded(seq, decided(companions, "NO", messages, json!({})))
    }
}
