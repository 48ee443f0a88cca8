//! The index of persons: the stretches of a journal that contain messages of a person.
//!
//! An entry for each message would double the writes. So there is one entry for each person and stretch of numbers, written with
//! the person's first message in it. To find the person's messages, the stretch itself is read.

use std::sync::Arc;

use crate::domain::event::Event;
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{Author, Role};

/// The length of a stretch, in event numbers.
pub const STRETCH: u64 = 256;

/// How many people of a stretch are cached. For other people, the entry is written again.
const CACHED_PEOPLE: usize = 16;

/// The first number of the stretch that contains an event.
pub const fn stretch(seq: Seq) -> Seq {
    Seq(seq.0 - seq.0 % STRETCH)
}

/// The first number after the stretch that contains an event.
pub const fn after_stretch(seq: Seq) -> Seq {
    Seq(stretch(seq).0.saturating_add(STRETCH))
}

/// The ids of the people that an event names, unless it was redacted:
///
/// * the author of a message or a segment of speech
/// * a person who enters or leaves a voice call, interrupts a companion, reacts to a statement, or chooses who speaks next
/// * the person who interrupted a companion's statement, or who is quoted by a message
/// * the cause of a call of a tool, and the person who confirmed it
/// * the recipients of an AI disclosure
/// * the person who set a reminder
pub fn speakers(event: &Event) -> impl Iterator<Item = &Arc<str>> {
    let (from, named) = match event {
        Event::Said { message, .. } => (Some(&message.from), message.named()),
        Event::Segment(segment) => (Some(&segment.from), None),
        Event::VoiceJoined { from } | Event::VoiceLeft { from } => (Some(from), None),
        _ => (None, None),
    };
    let acted_by = match event {
        Event::Interrupted { interrupted, .. } => interrupted.who.as_ref().map(PersonId::as_shared),
        Event::Chosen { by, .. } => by.as_ref().map(PersonId::as_shared),
        Event::ToolCalled(called) => called.cause.as_ref().map(|cause| cause.person.as_shared()),
        Event::ToolConfirmed(confirmed) => confirmed.by.as_ref().map(PersonId::as_shared),
        Event::Reacted { by, .. } => Some(by.as_shared()).filter(|by| !by.is_empty()),
        Event::ReminderSet(reminder) => Some(&reminder.of.id).filter(|id| !id.is_empty()),
        _ => None,
    };
    let told = match event {
        Event::Disclosed(disclosed) => disclosed.owed.people.as_slice(),
        _ => &[],
    };
    let is_person = |from: &&Author| from.role != Role::Companion && !from.id.is_empty();
    from.into_iter()
        .chain(named)
        .filter(is_person)
        .map(|from| &from.id)
        .chain(acted_by)
        .chain(told.iter().map(PersonId::as_shared))
}

/// A bounded cache of the people who are in the index for the newest stretch of a journal. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct IndexedPeople {
    stretch: Seq,
    people: Option<Arc<[Arc<str>]>>,
}

impl IndexedPeople {
    /// Adds a person named in the event with this number. False: the person is in the index already.
    pub fn add(&mut self, person: &Arc<str>, seq: Seq) -> bool {
        let cached = self.people.as_deref().filter(|_| self.stretch == stretch(seq)).unwrap_or_default();
        if cached.contains(person) {
            return false;
        }
        let previous = if cached.len() < CACHED_PEOPLE { cached } else { &[] };
        self.people = Some(previous.iter().chain([person]).cloned().collect());
        self.stretch = stretch(seq);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_begins_where_the_one_before_it_ends() {
        for (seq, first, next) in [(0, 0, 256), (1, 0, 256), (255, 0, 256), (256, 256, 512), (700, 512, 768)] {
            assert_eq!((stretch(Seq(seq)), after_stretch(Seq(seq))), (Seq(first), Seq(next)), "{seq}");
        }
        assert_eq!(after_stretch(Seq(u64::MAX)), Seq(u64::MAX));
    }

    #[test]
    fn each_person_is_added_once_in_a_stretch() {
        let (ana, ben): (Arc<str>, Arc<str>) = ("ana".into(), "ben".into());
        let mut indexed = IndexedPeople::default();

        let added = [(&ana, 1), (&ben, 2), (&ana, 255), (&ben, 256), (&ana, 257), (&ben, 258)];
        let added = added.map(|(person, seq)| indexed.add(person, Seq(seq)));

        assert_eq!(added, [true, true, false, true, true, false]);
    }

    #[test]
    fn the_number_of_cached_people_is_bounded() {
        let mut indexed = IndexedPeople::default();
        for number in 0..200 {
            assert!(indexed.add(&Arc::from(format!("p{number}")), Seq(1)));
            assert!(indexed.people.as_ref().is_some_and(|people| people.len() <= CACHED_PEOPLE));
        }
        assert!(indexed.add(&"p0".into(), Seq(1)), "a person who is not cached is written again");
    }
}
