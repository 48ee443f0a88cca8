//! The messages of a channel that somebody still has to read: one window for all its companions.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::audience::Audience;
use super::id::{CompanionId, Seq};
use super::message::Message;
use super::moment::Moment;

/// Settled messages that a prompt still shows (the five most recent turns, docs/design/gate.md G-2).
pub const RECENT_TURNS: usize = 5;

/// Room for so many more messages stays when a window becomes smaller.
const ROOM_KEPT: usize = 4;
/// Room is made for so many more at the least when it is full.
const ROOM_MADE: usize = 4;

/// A message in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// When it was said.
    pub at: Moment,
    /// What was said. Whoever words a prompt of it shares it, and the room that a window has for more messages stays small.
    pub message: Arc<Message>,
    /// Of a statement: whom what it answers concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Box<Audience>>,
    /// The companions that declined it by itself: it addresses them over the budget of its author (`gate.addresses_per_minute`).
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub declined_by: Box<[CompanionId]>,
}

impl Entry {
    pub(super) fn new(seq: Seq, at: Moment, message: Arc<Message>) -> Self {
        Self { seq, at, message, answers: None, declined_by: Box::default() }
    }

    /// Whether a companion considers this message, until it is settled: others said it, and it was not declined by itself.
    pub fn concerns_gate_of(&self, companion: &CompanionId) -> bool {
        !self.message.is_by(companion) && !self.declined_by.contains(companion)
    }
}

/// The newest messages of a channel: all that is unsettled for anybody, and a few before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    entries: VecDeque<Entry>,
}

impl Window {
    pub(super) fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.entries.capacity() {
            // Doubled, half of it would stay empty in most rooms.
            self.entries.reserve_exact((self.entries.len() / 4).max(ROOM_MADE));
        }
        self.entries.push_back(entry);
    }

    pub(super) fn edit(&mut self, seq: Seq, text: &Arc<str>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) {
            Arc::make_mut(&mut entry.message).text = text.clone();
        }
    }

    pub(super) fn delete(&mut self, gone: &[Seq]) {
        self.entries.retain(|entry| !gone.contains(&entry.seq));
    }

    pub(super) fn replace(&mut self, seq: Seq, message: &Message) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) {
            entry.message = Arc::new(message.clone());
        }
    }

    /// Notes which companions decline a message by itself.
    pub(super) fn decline(&mut self, seq: Seq, companions: Vec<CompanionId>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) {
            entry.declined_by = companions.into();
        }
    }

    /// Drops the declined messages that nobody needs.
    pub(super) fn drop_declined(&mut self, is_needed: impl Fn(&Entry) -> bool) {
        self.entries.retain(|entry| entry.declined_by.is_empty() || is_needed(entry));
    }

    /// Lets go of what stands below a number. True: something did.
    pub(super) fn let_go(&mut self, below: Seq) -> bool {
        let gone = self.entries.partition_point(|entry| entry.seq < below);
        self.entries.drain(..gone).next().is_some()
    }

    /// Forgets what everybody has settled, but for the most recent turns.
    pub(super) fn trim(&mut self, settled: Seq) {
        while self.entries.get(RECENT_TURNS).is_some_and(|entry| entry.seq <= settled) {
            self.entries.pop_front();
        }
        // Room that a burst has left is given back, with some to spare for the next messages.
        if self.entries.capacity() > 2 * (self.entries.len() + ROOM_KEPT) {
            self.entries.shrink_to(self.entries.len() + ROOM_KEPT);
        }
    }

    /// The entries after this number, oldest first.
    pub fn after(&self, cursor: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.range(self.entries.partition_point(|entry| entry.seq <= cursor)..)
    }

    /// The channel's messages by others after a companion's cursor, without those that it declined by themselves: its buffer.
    pub fn buffer<'a>(&'a self, companion: &'a CompanionId, cursor: Seq) -> impl DoubleEndedIterator<Item = &'a Entry> {
        self.after(cursor).filter(|entry| entry.concerns_gate_of(companion))
    }

    /// The newest entry of a buffer.
    pub fn newest(&self, companion: &CompanionId, cursor: Seq) -> Option<&Entry> {
        self.entries.iter().rev().take_while(|entry| entry.seq > cursor).find(|entry| entry.concerns_gate_of(companion))
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many entries follow this number: an upper bound for every buffer there.
    pub fn count_after(&self, cursor: Seq) -> usize {
        self.entries.len() - self.entries.partition_point(|entry| entry.seq <= cursor)
    }

    /// The most recent turns up to this number, oldest first.
    pub fn recent(&self, cursor: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        let settled = self.entries.partition_point(|entry| entry.seq <= cursor);
        self.entries.range(settled.saturating_sub(RECENT_TURNS)..settled)
    }

    /// The message of this number, while it is in the window.
    pub fn get(&self, seq: Seq) -> Option<&Entry> {
        let place = self.entries.partition_point(|entry| entry.seq < seq);
        self.entries.get(place).filter(|entry| entry.seq == seq)
    }

    /// The texts of the newest messages, so many at most, oldest first.
    pub fn newest_texts(&self, most: usize) -> Vec<&str> {
        let first = self.entries.len().saturating_sub(most);
        self.entries.range(first..).map(|entry| &*entry.message.text).collect()
    }

    /// All that is in the window, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::{Address, Author, Modality, Role};

    #[test]
    fn a_window_has_room_for_what_it_holds_and_little_more() {
        let mut window = Window::default();
        let room = |window: &Window| window.entries.capacity() - window.entries.len();

        (1..=100).for_each(|seq| window.push(entry(seq)));
        assert!(room(&window) <= 25, "room for {} more", room(&window));

        window.trim(Seq(100));
        assert_eq!(window.len(), RECENT_TURNS);
        assert!(room(&window) <= 2 * ROOM_KEPT, "room for {} more", room(&window));
    }

    fn entry(seq: u64) -> Entry {
        let from = Author { id: "ana".into(), name: "Ana".into(), role: Role::Person };
        let (text, modality, address) = ("Yes".into(), Modality::Text, Address::default());
        let message = Message { id: None, from, text, modality, lull_endpoint: false, address }.into();
        Entry::new(Seq(seq), Moment::ZERO, message)
    }
}
