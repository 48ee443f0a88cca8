//! A person at risk gets no answer from companions, but is shown where to find help (docs/design/safety.md N-8 to N-10).

use super::super::gate::Evaluation;
use super::super::message::Role;
use super::super::risk::{Sign, sign};
use super::super::window::Entry;
use super::*;

/// The maximum number of messages of people at risk that are remembered.
const MOST_KNOWN: usize = 64;

impl Conversation {
    /// Whether the author of an unsettled message of this companion, up to this message, may be at risk.
    pub fn may_be_at_risk(&self, companion: &CompanionId, upto: Seq) -> bool {
        self.signs(companion, upto).next().is_some()
    }

    /// The unsettled messages of people that show a sign of risk, the newest first.
    fn signs<'a>(&'a self, companion: &'a CompanionId, upto: Seq) -> impl Iterator<Item = (&'a Entry, Sign)> {
        let entries = self.buffer(companion).rev().filter(move |entry| entry.seq <= upto);
        let of_people = entries.filter(|entry| entry.message.from.role == Role::Person && !entry.message.is_event());
        of_people.filter_map(|entry| Some((entry, sign(&entry.message.text)?)))
    }

    /// The message of a person known to be at risk that this companion would answer, if it was triggered by `message`. If the trigger is an address
    /// or an event, only `message` counts.
    pub(super) fn known_at_risk(&self, companion: &CompanionId, trigger: Trigger, message: Seq) -> Option<Seq> {
        self.at_risk_among(trigger, message, self.buffer(companion).map(|entry| entry.seq))
    }

    /// Like [`known_at_risk`](Self::known_at_risk), for a statement that answers these messages.
    pub(super) fn at_risk_among(
        &self,
        trigger: Trigger,
        message: Seq,
        answered: impl DoubleEndedIterator<Item = Seq>,
    ) -> Option<Seq> {
        let is_known = |seq: &Seq| self.at_risk.contains(seq);
        let among = || answered.rev().find(is_known).filter(|_| !trigger.is_call());
        Some(message).filter(is_known).or_else(among)
    }

    /// Whether the newest message of a person is known to be by somebody at risk, or shows a clear sign of it.
    pub(super) fn is_newest_at_risk(&self) -> bool {
        let newest = self.closing.tally.newest_human;
        let is_clear = |entry: &Entry| sign(&entry.message.text) == Some(Sign::Clear);
        self.at_risk.contains(&newest) || self.window.get(newest).is_some_and(is_clear)
    }

    pub(super) fn note_at_risk(&mut self, message: Seq) {
        self.at_risk.insert(message);
        if self.at_risk.len() > MOST_KNOWN {
            self.at_risk.pop_first();
        }
    }

    /// The author of a message. None if the message was deleted or is not by a person.
    pub fn author_of(&self, message: Seq) -> Option<PersonId> {
        let from = &self.window.get(message)?.message.from;
        (from.role == Role::Person && !from.id.is_empty()).then(|| PersonId::from(&*from.id))
    }
}

impl Step<'_, '_> {
    /// The message of a person at risk that a question is about. The vote decides. If the vote says nothing about risk, only clear signs count.
    /// `vote` is None if no model answered.
    pub(super) fn at_risk(&self, companion: &CompanionId, evaluation: &Evaluation, vote: Option<&Vote>) -> Option<Seq> {
        if !self.world.rules.helps_at_risk {
            return None;
        }
        let found = || {
            let wants = vote.is_none_or(|vote| vote.verdict == Verdict::Yes);
            let is_found = |(entry, sign): &(&Entry, Sign)| {
                (wants || !entry.message.address.companions.is_empty())
                    && vote.and_then(|vote| vote.risk).unwrap_or(*sign == Sign::Clear)
            };
            self.state.signs(companion, evaluation.upto).find(is_found).map(|(entry, _)| entry.seq)
        };
        self.state.known_at_risk(companion, evaluation.trigger, evaluation.message).or_else(found)
    }
}
