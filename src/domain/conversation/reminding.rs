//! Reminders: when they are due, and which of them no companion acknowledges (docs/design/reminders.md).

use super::super::message::{Author, Role};
use super::super::window::Entry;
use super::*;

impl Conversation {
    pub const fn reminders(&self) -> &Reminders {
        &self.reminders
    }

    /// A person as the author of the newest message at hand.
    pub fn person(&self, person: &PersonId) -> Author {
        let theirs = |entry: &&Entry| entry.message.from.role == Role::Person && *entry.message.from.id == *person.as_str();
        let newest = self.window.entries().rfind(theirs);
        newest.map_or_else(|| Author::of_name(person.as_shared().clone()), |entry| entry.message.from.clone())
    }

    /// When a sleeping channel must wake. Reminders are due by the machine's clock, everything else by the channel's.
    pub fn wakes_at(&self) -> Option<Moment> {
        self.due_at_rest().into_iter().chain(self.reminders.next_due(|_| false)).min()
    }

    /// The announced reminders that no companion will acknowledge any more: declined, failed, or without a companion.
    pub fn unacknowledged_reminders(&self) -> impl Iterator<Item = &Reminder> {
        let is_unanswered = |(seq, _): &(Seq, &Reminder)| {
            let is_answered = self.turns.owed_replies().any(|reply| reply.messages.contains(seq));
            let is_about_to = |companion: &CompanionId, gate: &Gate| {
                gate.cursor < *seq
                    && (gate.owes_acknowledgement() || gate.is_engaged() || self.turns.is_about_to_acknowledge(companion))
            };
            !is_answered && !self.gates.iter().any(|(companion, gate)| is_about_to(companion, gate))
        };
        self.reminders.announced().filter(is_unanswered).map(|(_, reminder)| reminder)
    }
}
