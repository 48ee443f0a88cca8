//! Finds the author of the message that a message of another platform answers.

use crate::actors::inbound::Replied;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::names::Names;
use crate::journal::redaction::is_redacted;
use crate::ports::inbound_events::Answered;

/// The author of the answered message: from the record if the message is recorded, otherwise as reported by the platform. `None`: unknown. The
/// author of a companion's message is also unknown if it has no name, or if no companion of the guild has that name any more.
pub(super) fn replied(on_record: Option<&Recorded>, by: Option<&Answered>, names: Option<&Names>) -> Option<Replied> {
    if let Some(Recorded { seq, event: Event::Said { message, .. }, .. }) = on_record
        && (!is_redacted(message) || message.from.role == Role::Companion)
    {
        let (author, role) = (message.from.id.clone(), message.from.role);
        return Some(Replied { seq: unless_deleted(*seq, is_redacted(message)), author, role, quoted: None });
    }
    match by? {
        Answered::Ours(name) => {
            let companion = names?.owner(name.as_deref()?)?;
            Some(Replied { seq: None, author: companion.as_str().into(), role: Role::Companion, quoted: None })
        }
        Answered::Other(id, role) => Some(Replied { seq: None, author: id.clone(), role: *role, quoted: None }),
    }
}

/// A deleted message is not referenced by replies.
fn unless_deleted(seq: Seq, is_deleted: bool) -> Option<Seq> {
    (!is_deleted).then_some(seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::Author;
    use crate::samples;

    #[test]
    fn the_record_takes_precedence_over_the_platform_and_deleted_messages_are_not_referred_to() {
        let (person, companion) = (Role::Person, Role::Companion);
        let ours = |name: &str| Answered::Ours(Some(name.into()));
        let bob = Answered::Other("discord:2".into(), person);
        for (on_record, by, expected) in [
            (Some(recorded("discord:1", person, "hi")), Some(ours("Aria")), replied_to(Some(7), "discord:1", person)),
            (Some(recorded("aria", companion, "hi")), Some(bob.clone()), replied_to(Some(7), "aria", companion)),
            (Some(recorded("aria", companion, "")), None, replied_to(None, "aria", companion)),
            (Some(recorded("", person, "")), Some(bob.clone()), replied_to(None, "discord:2", person)),
            (Some(recorded("", person, "")), None, None),
            (None, Some(bob), replied_to(None, "discord:2", person)),
            (None, Some(ours("aria VALE")), replied_to(None, "aria", companion)),
            (None, Some(ours("Somebody")), None),
            (None, Some(Answered::Ours(None)), None),
            (None, None, None),
        ] {
            assert_eq!(replied(on_record.as_ref(), by.as_ref(), Some(&names())), expected, "{on_record:?} {by:?}");
        }
        assert_eq!(replied(None, Some(&ours("Aria")), None), None);
    }

    fn names() -> Names {
        Names::new([("aria".into(), vec!["Aria Vale", "Ari"])]).unwrap()
    }

    fn replied_to(seq: Option<u64>, author: &str, role: Role) -> Option<Replied> {
        Some(Replied { seq: seq.map(Seq), author: author.into(), role, quoted: None })
    }

    fn recorded(from: &str, role: Role, text: &str) -> Recorded {
        let from = Author { name: "Somebody".into(), ..samples::author(from, role) };
        samples::recorded(7, samples::said(samples::message(from, text)))
    }
}
