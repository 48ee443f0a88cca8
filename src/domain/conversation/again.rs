//! Replace this answer: a user requests another statement in place of the newest one (docs/design/speaking.md S-17).

use super::parts::is_zero;
use super::*;
use crate::named::named;

/// The newest message of a channel, if it is a statement, with the messages that a replacement answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Replaceable {
    companion: CompanionId,
    statement: Seq,
    trigger: Trigger,
    messages: Vec<Seq>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Seq>,
    /// The number of statements that it replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u32,
    /// A user requested a replacement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_due: bool,
    /// That user wants it extended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
}

impl Replaceable {
    pub(super) fn new(statement: Seq, floor: &OwedReply) -> Box<Self> {
        let OwedReply { companion, trigger, messages, message, tries, .. } = floor;
        let (companion, messages) = (companion.clone(), messages.clone());
        Box::new(Self {
            companion,
            statement,
            trigger: *trigger,
            messages,
            message: *message,
            tries: *tries,
            is_due: false,
            continues: false,
        })
    }

    /// The state after messages were deleted. `again`: a replacement was requested, before which older versions deleted the statement. None if the
    /// statement was deleted without such a request.
    pub(super) fn without(mut self: Box<Self>, deleted: &[Seq], again: bool, continues: bool) -> Option<Box<Self>> {
        self.messages.retain(|seq| !deleted.contains(seq));
        self.message.take_if(|seq| deleted.contains(seq));
        let is_deleted = deleted.contains(&self.statement);
        self.is_due |= again && (is_deleted || deleted.is_empty());
        self.continues |= again && continues;
        (!is_deleted || self.is_due).then_some(self)
    }
}

/// The statement that an owed reply replaces.
#[derive(Clone, Copy)]
pub(super) struct Again {
    pub(super) statement: Seq,
    pub(super) continues: bool,
}

named! {
    /// Why a message cannot be replaced, by the key of the text for users, which says what to do instead.
    pub enum NotAgain {
        /// It is not the newest message of the channel, or not a statement.
        NotNewest = "refusals.not_newest",
        /// All messages that it answers were deleted.
        NothingToAnswer = "refusals.nothing_to_answer",
        /// The companion left, is paused, or has ended the conversation.
        Silent = "refusals.silent",
        /// An external program plays the companion.
        External = "refusals.played_by_program",
        /// A companion is being asked or makes a statement.
        Busy = "refusals.about_to_answer",
    }
}

impl Conversation {
    /// Checks whether a user may request a replacement of this statement.
    ///
    /// # Errors
    /// Returns the reason if it cannot be replaced: it is not the newest statement, there is nothing to answer, the companion is silent or external,
    /// or the conversation is busy.
    pub fn check_again(&self, statement: Seq) -> Result<(), NotAgain> {
        let newest = self.replaceable.as_deref().filter(|newest| newest.statement == statement && !newest.is_due);
        let newest = newest.ok_or(NotAgain::NotNewest)?;
        self.check_replaceable(newest)?;
        if self.is_busy() || !self.turns.late.is_empty() { Err(NotAgain::Busy) } else { Ok(()) }
    }

    /// Whether this statement is the newest message, so that another version of it may stand.
    pub fn is_newest_statement(&self, statement: Seq) -> bool {
        self.replaceable.as_ref().is_some_and(|newest| newest.statement == statement)
    }

    /// The messages that this statement answers, if it is the newest message.
    pub fn answered_by(&self, statement: Seq) -> &[Seq] {
        let newest = self.replaceable.as_deref().filter(|newest| newest.statement == statement);
        newest.map_or(&[], |newest| &newest.messages)
    }

    fn check_replaceable(&self, newest: &Replaceable) -> Result<(), NotAgain> {
        let gate = self.gates.get(&newest.companion).filter(|gate| !gate.is_silent()).ok_or(NotAgain::Silent)?;
        if gate.external {
            return Err(NotAgain::External);
        }
        if newest.messages.is_empty() && newest.trigger.needs_a_message() {
            return Err(NotAgain::NothingToAnswer);
        }
        Ok(())
    }

    /// The number of the newest message, if it is a statement of this companion.
    pub fn replaceable_of(&self, companion: &CompanionId) -> Option<Seq> {
        self.replaceable.as_ref().filter(|newest| newest.companion == *companion).map(|newest| newest.statement)
    }

    /// Begins a requested replacement. Returns the number of statements that the new one replaces.
    pub(super) fn begin_replacement(&mut self) -> u32 {
        let Some(newest) = &mut self.replaceable else { return 0 };
        (newest.is_due, newest.continues) = (false, false);
        newest.tries.saturating_add(1)
    }

    /// Subtracts a replaced statement from the counters.
    pub(super) fn uncount_replaced(&mut self, companion: &CompanionId) {
        self.closing.tally.streak = self.closing.tally.streak.saturating_sub(1);
        self.closing.tally.turns = self.closing.tally.turns.saturating_sub(1);
        if let Some(gate) = self.gates.get_mut(companion) {
            gate.turns = gate.turns.saturating_sub(1);
        }
    }
}

impl Step<'_, '_> {
    /// Starts a requested replacement of the newest statement once the floor is free. The companion answers the same messages again, together with
    /// all its unsettled messages.
    pub(super) fn answer_again(&mut self) {
        let Some(newest) = self.state.replaceable.as_deref().filter(|newest| newest.is_due) else { return };
        if self.state.is_busy() || self.state.check_replaceable(newest).is_err() {
            return;
        }
        let companion = newest.companion.clone();
        let (trigger, message) = (newest.trigger, newest.message);
        let again = Again { statement: newest.statement, continues: newest.continues };
        let mut messages = newest.messages.clone();
        messages.extend(self.state.window.unsettled(&companion, &self.state.gates[&companion], self.state.position.handled));
        let candidate = Candidate { companion, trigger, why: None, message, is_farewell: false };
        self.owe_reply(&candidate, messages, Some(again));
    }
}
