//! Whose message something answers that was said on a platform that is not ours.

use crate::actors::inbound::Replied;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::names::Names;
use crate::journal::redaction::is_redacted;
use crate::ports::inbound_events::Answered;

/// Whose message is answered: by the record, where the message is on it, and else by what the platform tells. None: nobody's in particular.
/// A message of ours whose name no companion of the guild bears any more is nobody's; so is one that bore none.
pub(super) fn replied(on_record: Option<&Recorded>, by: Option<&Answered>, names: Option<&Names>) -> Option<Replied> {
    if let Some(Recorded { seq, event: Event::Said { message, .. }, .. }) = on_record
        && (!is_redacted(message) || message.from.role == Role::Companion)
    {
        let (author, role) = (message.from.id.clone(), message.from.role);
        return Some(Replied { seq: still_to_be_read(*seq, is_redacted(message)), author, role });
    }
    match by? {
        Answered::Ours(name) => {
            let companion = names?.owner(name.as_deref()?)?;
            Some(Replied { seq: None, author: companion.as_str().into(), role: Role::Companion })
        }
        Answered::Other(id, role) => Some(Replied { seq: None, author: id.clone(), role: *role }),
    }
}

/// Nothing leads to what was taken back.
fn still_to_be_read(seq: Seq, is_gone: bool) -> Option<Seq> {
    (!is_gone).then_some(seq)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::message::{Address, Author, Message, Modality};
    use crate::domain::moment::Moment;

    #[test]
    fn the_record_counts_more_than_what_the_platform_tells_and_what_is_gone_leads_to_nobody() {
        let (person, companion) = (Role::Person, Role::Companion);
        let told = |name: &str| Answered::Ours(Some(name.into()));
        let bob = Answered::Other("discord:2".into(), person);
        for (on_record, by, expected) in [
            (Some(said("discord:1", person, "hi")), Some(told("Aria")), replied_to(Some(7), "discord:1", person)),
            (Some(said("aria", companion, "hi")), Some(bob.clone()), replied_to(Some(7), "aria", companion)),
            (Some(said("aria", companion, "")), None, replied_to(None, "aria", companion)),
            (Some(said("", person, "")), Some(bob.clone()), replied_to(None, "discord:2", person)),
            (Some(said("", person, "")), None, None),
            (None, Some(bob), replied_to(None, "discord:2", person)),
            (None, Some(told("aria VALE")), replied_to(None, "aria", companion)),
            (None, Some(told("Somebody")), None),
            (None, Some(Answered::Ours(None)), None),
            (None, None, None),
        ] {
            assert_eq!(replied(on_record.as_ref(), by.as_ref(), Some(&names())), expected, "{on_record:?} {by:?}");
        }
        assert_eq!(replied(None, Some(&told("Aria")), None), None);
    }

    fn names() -> Names {
        Names::new([("aria".into(), vec!["Aria Vale", "Ari"])]).unwrap()
    }

    fn replied_to(seq: Option<u64>, author: &str, role: Role) -> Option<Replied> {
        Some(Replied { seq: seq.map(Seq), author: author.into(), role })
    }

    fn said(from: &str, role: Role, text: &str) -> Recorded {
        let message = Message {
            id: Some("1".into()),
            from: Author { id: from.into(), name: Arc::from("whoever"), role },
            text: text.into(),
            modality: Modality::Text,
            lull_endpoint: false,
            address: Address::default(),
        };
        let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
        Recorded { seq: Seq(7), at: Moment::ZERO, handled: Seq(7), turn: None, event }
    }
}
