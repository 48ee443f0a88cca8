//! The index of persons: in which stretches of a journal somebody said something.
//!
//! An entry for each message would be as much to write as the message is. So there is one for each stretch of numbers, written when somebody
//! is first heard in it; which of its messages are theirs the stretch itself tells.

use std::sync::Arc;

use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::message::Role;

/// So many numbers are a stretch.
pub const STRETCH: u64 = 256;

/// So many people of a stretch are kept in mind. Whoever is not is put on record again.
const KEPT_IN_MIND: usize = 16;

/// The first number of the stretch that an event lies in.
pub const fn stretch(seq: Seq) -> Seq {
    Seq(seq.0 - seq.0 % STRETCH)
}

/// The first number after the stretch that an event lies in.
pub const fn after_stretch(seq: Seq) -> Seq {
    Seq(stretch(seq).0.saturating_add(STRETCH))
}

/// The id of whoever said this, if it is a message of somebody who is no companion, and its words were not taken out.
pub fn speaker(event: &Event) -> Option<&Arc<str>> {
    let Event::Said { message, .. } = event else { return None };
    (message.from.role != Role::Companion && !message.from.id.is_empty()).then_some(&message.from.id)
}

/// Who is in the index for the newest stretch of a journal, as far as that is kept in mind. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    stretch: Seq,
    people: Option<Arc<[Arc<str>]>>,
}

impl Listed {
    /// Adds whoever says the event of this number. False: they are in the index already.
    pub fn add(&mut self, person: &Arc<str>, seq: Seq) -> bool {
        let known = self.people.as_deref().filter(|_| self.stretch == stretch(seq)).unwrap_or_default();
        if known.contains(person) {
            return false;
        }
        let kept = if known.len() < KEPT_IN_MIND { known } else { &[] };
        self.people = Some(kept.iter().chain([person]).cloned().collect());
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
        let mut listed = Listed::default();

        let added = [(&ana, 1), (&ben, 2), (&ana, 255), (&ben, 256), (&ana, 257), (&ben, 258)];
        let added = added.map(|(person, seq)| listed.add(person, Seq(seq)));

        assert_eq!(added, [true, true, false, true, true, false]);
    }

    #[test]
    fn however_many_talk_few_are_kept_in_mind() {
        let mut listed = Listed::default();
        for number in 0..200 {
            assert!(listed.add(&Arc::from(format!("p{number}")), Seq(1)));
            assert!(listed.people.as_ref().is_some_and(|people| people.len() <= KEPT_IN_MIND));
        }
        assert!(listed.add(&"p0".into(), Seq(1)), "who is not kept in mind is put on record again");
    }
}
