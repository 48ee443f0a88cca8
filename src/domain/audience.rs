//! The audience of a message: the companions that it addresses, or everyone.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::id::CompanionId;
use super::message::{Message, Role};
use super::window::Entry;

/// The companions that a message concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// Whether the message concerns everyone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    everybody: bool,
    /// The companions that it concerns in particular, even if it concerns everyone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    companions: BTreeSet<CompanionId>,
}

impl Audience {
    /// The audience of a statement, from the messages that it answers: their audiences, and their authors that are companions.
    ///
    /// A statement that answers no message concerns everyone.
    pub fn of_answer<'a>(snapshot: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut audience = Self::default();
        let mut is_empty = true;
        for entry in snapshot {
            is_empty = false;
            audience.join(entry.audience());
            if entry.message.from.role == Role::Companion {
                audience.companions.insert(CompanionId::from(&*entry.message.from.id));
            }
        }
        audience.everybody |= is_empty;
        audience
    }

    /// Whether `companion` belongs to the audience.
    pub fn includes(&self, companion: &CompanionId) -> bool {
        self.everybody || self.companions.contains(companion)
    }

    fn of_address(message: &Message) -> Option<Self> {
        let address = &message.address;
        let is_addressed = address.others || !address.companions.is_empty();
        is_addressed.then(|| Self { everybody: false, companions: address.companions.iter().cloned().collect() })
    }

    fn join(&mut self, other: Self) {
        self.everybody |= other.everybody;
        self.companions.extend(other.companions);
    }
}

impl Entry {
    /// The audience: the companions that the message addresses, which is none if it addresses only others. If it addresses no one, a statement has
    /// the audience computed from the messages that it answers, and any other message concerns everyone.
    pub fn audience(&self) -> Audience {
        let everybody = || Audience { everybody: true, companions: BTreeSet::new() };
        Audience::of_address(&self.message).or_else(|| self.answers.as_deref().cloned()).unwrap_or_else(everybody)
    }
}

#[cfg(test)]
mod tests {
    use crate::samples;

    use super::super::id::Seq;
    use super::super::message::Address;
    use super::super::moment::Moment;
    use super::*;

    #[test]
    fn a_message_that_addresses_nobody_concerns_everybody() {
        assert!(entry("ana", Role::Person, &[], false).audience().includes(&"aria".into()));
    }

    #[test]
    fn an_address_concerns_only_the_companions_that_it_names() {
        let to_ben = entry("ana", Role::Person, &["ben"], false).audience();
        let to_a_person = entry("ana", Role::Person, &[], true).audience();

        assert!(to_ben.includes(&"ben".into()) && !to_ben.includes(&"aria".into()));
        assert!(!to_a_person.includes(&"aria".into()));
    }

    #[test]
    fn a_statement_has_the_audience_of_the_messages_that_it_answers() {
        let to_ben = entry("ana", Role::Person, &["ben"], false);
        let answer = answering("ben", &[to_ben]);
        let reply_to_the_answer = answering("cleo", std::slice::from_ref(&answer));

        assert!(!answer.audience().includes(&"aria".into()));
        assert!(answer.audience().includes(&"ben".into()));
        assert!(!reply_to_the_answer.audience().includes(&"aria".into()));
        assert!(answering("ben", &[entry("ana", Role::Person, &[], false)]).audience().includes(&"aria".into()));
        assert!(answering("ben", &[]).audience().includes(&"aria".into()));
    }

    #[test]
    fn an_answer_concerns_the_author_of_the_answered_statement() {
        let own = answering("aria", &[entry("ana", Role::Person, &["aria"], false)]);
        let answer = answering("ben", &[own]);

        assert!(answer.audience().includes(&"aria".into()));
        assert!(!answer.audience().includes(&"cleo".into()));
    }

    fn answering(by: &str, snapshot: &[Entry]) -> Entry {
        Entry { answers: Some(Box::new(Audience::of_answer(snapshot))), ..entry(by, Role::Companion, &[], false) }
    }

    fn entry(by: &str, role: Role, to: &[&str], others: bool) -> Entry {
        let address = Address { companions: to.iter().map(|id| CompanionId::from(*id)).collect(), others, ..Address::default() };
        let message = Message { address, ..samples::message(samples::author(by, role), "words") };
        Entry::new(Seq(1), Moment::ZERO, message.into())
    }
}
