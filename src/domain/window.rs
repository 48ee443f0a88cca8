//! The window of a channel: the messages that its companions still need. All companions share it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attachment::Caption;
use super::audience::Audience;
use super::gate::Gate;
use super::id::{CompanionId, Seq};
use super::message::{Message, Role};
use super::moment::Moment;
use super::prompt::Said;
use super::trigger::Trigger;

/// The number of settled messages that a prompt still shows (docs/design/gate.md G-2).
pub const RECENT_TURNS: usize = 5;

/// Spare capacity that stays when a window shrinks, in messages.
const SPARE_CAPACITY: usize = 4;
/// The minimum growth of a full window, in messages.
const MIN_GROWTH: usize = 4;

/// A message in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: Seq,
    /// The time at which it was said.
    pub at: Moment,
    /// The message. Prompts share it through the `Arc`, which also keeps the spare capacity of a window small.
    pub message: Arc<Message>,
    /// The number of the message that it replies to, if that one is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Seq>,
    /// For a statement, the audience of the messages that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Box<Audience>>,
    /// The companions that declined only this message: it addresses them over the budget of its author
    /// (`gate.addresses_per_minute`), its author withdrew it, or it is backchannel.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub declined_by: Box<[CompanionId]>,
}

impl Entry {
    pub(super) fn new(seq: Seq, at: Moment, message: Arc<Message>) -> Self {
        Self { seq, at, message, reply_to: None, answers: None, declined_by: Box::default() }
    }

    /// The message in the form for prompts.
    pub fn said(&self) -> Said {
        Said { reply_to: self.reply_to, ..Said::new(self.seq, self.at, self.message.clone()) }
    }

    /// Whether a companion considers this message until it is settled: it is not the author, and did not decline the message
    /// individually.
    pub fn concerns_gate_of(&self, companion: &CompanionId) -> bool {
        !self.message.is_by(companion) && !self.declined_by.contains(companion)
    }
}

/// The newest messages of a channel: every message that is unsettled for any companion, and a few earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    entries: VecDeque<Entry>,
}

impl Window {
    pub(super) fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.entries.capacity() {
            // Doubling the capacity would leave half of it unused in most rooms.
            self.entries.reserve_exact((self.entries.len() / 4).max(MIN_GROWTH));
        }
        self.entries.push_back(entry);
    }

    pub(super) fn edit(&mut self, seq: Seq, text: &Arc<str>, captions: &[Caption]) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) {
            Arc::make_mut(&mut entry.message).edit(text.clone(), captions);
        }
    }

    /// Removes the names of other people from these messages.
    pub(super) fn forget_named(&mut self, statements: &[Seq]) {
        for entry in self.entries.iter_mut().filter(|entry| statements.contains(&entry.seq)) {
            Arc::make_mut(&mut entry.message).forget_named();
        }
    }

    pub(super) fn delete(&mut self, deleted: &[Seq]) {
        self.entries.retain(|entry| !deleted.contains(&entry.seq));
    }

    pub(super) fn replace(&mut self, seq: Seq, message: &Message) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) {
            entry.message = Arc::new(message.clone());
        }
    }

    /// Records that a companion declines these messages individually.
    pub(super) fn decline_alone(&mut self, messages: &[Seq], companion: &CompanionId) {
        for entry in self.entries.iter_mut().filter(|entry| messages.contains(&entry.seq) && entry.concerns_gate_of(companion)) {
            entry.declined_by = entry.declined_by.iter().chain([companion]).cloned().collect();
        }
    }

    /// Drops the individually declined messages that no companion needs.
    pub(super) fn drop_declined(&mut self, is_needed: impl Fn(&Entry) -> bool) {
        self.entries.retain(|entry| entry.declined_by.is_empty() || is_needed(entry));
    }

    /// Drops the messages below a number. Returns whether there were any.
    pub(super) fn drop_below(&mut self, below: Seq) -> bool {
        let dropped = self.entries.partition_point(|entry| entry.seq < below);
        self.entries.drain(..dropped).next().is_some()
    }

    /// Drops the messages that every companion has settled, except the most recent ones. `dropped` is called with each, oldest
    /// first.
    pub(super) fn trim(&mut self, settled: Seq, mut dropped: impl FnMut(&Entry)) {
        while self.entries.get(RECENT_TURNS).is_some_and(|entry| entry.seq <= settled) {
            self.entries.pop_front().iter().for_each(&mut dropped);
        }
        // Frees the capacity left by a burst, except for some spare messages.
        if self.entries.capacity() > 2 * (self.entries.len() + SPARE_CAPACITY) {
            self.entries.shrink_to(self.entries.len() + SPARE_CAPACITY);
        }
    }

    /// The entries after this number, oldest first.
    pub fn after(&self, cursor: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.range(self.entries.partition_point(|entry| entry.seq <= cursor)..)
    }

    /// The buffer of a companion: the messages by others after its cursor, without those that it declined individually.
    pub fn buffer<'a>(&'a self, companion: &'a CompanionId, cursor: Seq) -> impl DoubleEndedIterator<Item = &'a Entry> {
        self.after(cursor).filter(|entry| entry.concerns_gate_of(companion))
    }

    /// The newest entry of a companion's buffer.
    pub fn newest(&self, companion: &CompanionId, cursor: Seq) -> Option<&Entry> {
        self.entries.iter().rev().take_while(|entry| entry.seq > cursor).find(|entry| entry.concerns_gate_of(companion))
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of entries after `cursor`: an upper bound for every buffer from there.
    pub fn count_after(&self, cursor: Seq) -> usize {
        self.entries.len() - self.entries.partition_point(|entry| entry.seq <= cursor)
    }

    /// The last five messages up to `cursor`, oldest first.
    pub fn recent(&self, cursor: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        let settled = self.entries.partition_point(|entry| entry.seq <= cursor);
        self.entries.range(settled.saturating_sub(RECENT_TURNS)..settled)
    }

    /// The entry with this number. `None` if it is not in the window.
    pub fn get(&self, seq: Seq) -> Option<&Entry> {
        let place = self.entries.partition_point(|entry| entry.seq < seq);
        self.entries.get(place).filter(|entry| entry.seq == seq)
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Whether the author of `message` also wrote one of these.
    pub(crate) fn answers_author(&self, answered: &[Seq], message: &Message) -> bool {
        answered.iter().filter_map(|seq| self.get(*seq)).any(|entry| entry.message.is_by_author_of(message))
    }

    /// The numbers of a companion's unsettled messages, up to `upto`.
    pub(crate) fn unsettled(&self, companion: &CompanionId, gate: &Gate, upto: Seq) -> Vec<Seq> {
        let after = self.after(gate.cursor);
        let mut unsettled = Vec::with_capacity(after.size_hint().0);
        for entry in after.take_while(|entry| entry.seq <= upto) {
            if entry.concerns_gate_of(companion) {
                unsettled.push(entry.seq);
            }
        }
        unsettled
    }

    /// Whether a statement with this trigger answers a person. Such a statement does not continue a conversation among
    /// companions.
    pub(crate) fn answers_person(&self, trigger: Trigger, messages: &[Seq]) -> bool {
        let is_by_person = |entry: &Entry| entry.message.from.role == Role::Person && !entry.message.is_event();
        trigger != Trigger::Turn && messages.iter().filter_map(|seq| self.get(*seq)).any(is_by_person)
    }

    /// The newest event among these messages.
    pub(crate) fn newest_event(&self, messages: &[Seq]) -> Option<Seq> {
        let is_event = |seq: &&Seq| self.get(**seq).is_some_and(|entry| entry.message.kind.is_some());
        messages.iter().rfind(is_event).copied()
    }

    /// Whether this message was spoken in the call, by a person or a companion, or is an event of the call.
    pub fn is_spoken(&self, message: Seq) -> bool {
        let was_heard =
            |message: &Message| message.speech.is_some() || message.kind.is_some() || message.from.role == Role::Companion;
        self.get(message).is_some_and(|entry| !entry.message.modality.is_text() && was_heard(&entry.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{message, person};

    #[test]
    fn a_window_has_little_spare_capacity() {
        let mut window = Window::default();
        let room = |window: &Window| window.entries.capacity() - window.entries.len();

        (1..=100).for_each(|seq| window.push(entry(seq)));
        assert!(room(&window) <= 25, "room for {} more", room(&window));

        window.trim(Seq(100), |_| {});
        assert_eq!(window.len(), RECENT_TURNS);
        assert!(room(&window) <= 2 * SPARE_CAPACITY, "room for {} more", room(&window));
    }

    fn entry(seq: u64) -> Entry {
        Entry::new(Seq(seq), Moment::ZERO, message(person("ana"), "Yes").into())
    }
}
