//! The rolling summary of a channel: its range, its due time, and the effect of deletions (docs/design/gate.md G-31).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::id::Seq;
use super::super::prompt::tokens;
use super::super::window::Entry;

/// The estimated tokens of a message besides its text: role, name and number.
const FRAME_TOKENS: u64 = 20;

/// When the rolling summary is due.
#[derive(Clone, Copy, Debug)]
pub struct SummaryLimits {
    /// The number of messages after the summary's end and before the five newest settled ones.
    pub messages: u64,
    /// The estimated tokens of these messages. More would not fit into a statement's prompt.
    pub tokens: u64,
}

/// The rolling summary of the messages before the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The text of the summary, if there is one.
    pub text: Option<Arc<str>>,
    /// The newest event that it covers. If there is no text, prompts show nothing up to this event (`clear`).
    pub upto: Seq,
    /// The number of messages that left the window since, up to `counted`.
    pub behind: u64,
    counted: Seq,
    /// The estimated tokens of the messages in `behind`.
    #[serde(default)]
    tokens: u64,
    /// The number of messages that the text covers.
    #[serde(default)]
    covered: u64,
    /// The newest `clear`, or the end of a text that expired after it. Nothing up to this event is summarised.
    #[serde(default)]
    from: Seq,
    /// The newest beginning of a new conversation. Prompts show no messages up to this event, but the text.
    #[serde(default, skip_serializing_if = "is_none")]
    anew: Seq,
    /// The newest event that a removed text covered. A deletion removed the text. The summary is made again up to this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remade_upto: Option<Seq>,
    #[serde(skip)]
    is_being_written: bool,
    /// A message was deleted that the summary in progress may contain.
    #[serde(skip)]
    is_spoilt: bool,
    /// After a failed attempt, the next one waits until `behind` reaches this value.
    #[serde(skip)]
    retry_behind: u64,
}

impl Summary {
    /// Counts a message that leaves the window.
    pub(super) fn count(&mut self, entry: &Entry) {
        if entry.seq > self.counted {
            self.behind += 1;
            self.tokens += tokens(&entry.message.text) as u64 + FRAME_TOKENS;
            self.counted = entry.seq;
        }
    }

    /// The newest `clear`, the end of a text that expired after it, or the newest beginning of a new conversation. Prompts show no messages up to
    /// this event.
    pub fn begins_after(&self) -> Seq {
        self.from.max(self.anew)
    }

    /// The newest `clear`, or the end of a text that expired after it. The text covers nothing up to this event, and notes from before it are not used.
    pub fn covers_after(&self) -> Seq {
        self.from
    }

    /// Whether a new conversation began after the newest `clear`.
    pub fn is_anew(&self) -> bool {
        self.anew > self.from
    }

    /// The range to summarise next, if a summary is due: the events after the first number, up to the second.
    pub(super) fn due(&self, limits: SummaryLimits) -> Option<(Seq, Seq)> {
        let is_due = self.behind >= limits.messages || self.tokens > limits.tokens || self.remade_upto.is_some();
        let may_begin = !self.is_being_written && self.behind >= self.retry_behind && self.counted > self.upto;
        (is_due && may_begin).then_some((self.upto, self.counted))
    }

    pub(super) fn begin(&mut self) {
        self.is_being_written = true;
    }

    /// Ends an attempt. Returns whether its text may be used. It may not if a message was deleted that it may contain.
    pub(super) fn end(&mut self, has_text: bool, limits: Option<SummaryLimits>) -> bool {
        self.is_being_written = false;
        if !has_text {
            // The next attempt waits until as many messages have left the window again.
            self.retry_behind = self.behind + limits.map_or(0, |limits| limits.messages);
        }
        has_text && !std::mem::take(&mut self.is_spoilt)
    }

    /// Applies a new summary that covers `messages` more messages, up to this event.
    pub(super) fn apply(&mut self, upto: Seq, text: &Arc<str>, messages: u64) {
        let covered = if upto >= self.counted { self.behind } else { messages.min(self.behind) };
        self.tokens -= self.tokens * covered / self.behind.max(1);
        self.behind -= covered;
        self.covered += covered;
        (self.upto, self.text) = (upto, Some(text.clone()));
        self.remade_upto = self.remade_upto.filter(|remade_upto| *remade_upto > upto);
        (self.is_being_written, self.is_spoilt, self.retry_behind) = (false, false, 0);
    }

    /// Handles deletions. Removes a text that may contain a deleted message; it is made again from the journal.
    pub(super) fn delete(&mut self, deleted: &[Seq]) {
        if deleted.iter().any(|seq| *seq <= self.upto) {
            self.remove_text();
        }
        self.is_spoilt |= self.is_being_written;
    }

    /// Applies the redaction of the stored text that covers up to this event.
    pub(super) fn redact(&mut self, upto: Seq, text: &str) {
        if upto == self.upto && text.is_empty() {
            self.remove_text();
        }
    }

    fn remove_text(&mut self) {
        if self.text.take().is_some() {
            self.remade_upto = Some(self.upto);
            self.behind += std::mem::take(&mut self.covered);
            (self.upto, self.retry_behind) = (self.from, 0);
        }
    }

    /// Handles a clear at this event. Prompts show nothing before it.
    pub(super) fn clear(&mut self, seq: Seq) {
        *self = Self { upto: seq, counted: seq, from: seq, ..Self::default() };
    }

    /// Handles the beginning of a new conversation at this event. What is not summarised yet is summarised now.
    pub(super) fn begin_anew(&mut self, seq: Seq) {
        self.anew = seq;
        if self.counted > self.upto {
            (self.remade_upto, self.retry_behind) = (Some(self.counted), 0);
        }
    }

    /// Removes a text that covers only expired events, which are below this number. Returns whether it was removed.
    pub(super) fn expire(&mut self, below: Seq) -> bool {
        let is_expired = self.upto < below && self.text.take().is_some();
        if is_expired {
            (self.from, self.covered) = (self.upto, 0);
        }
        is_expired
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(seq: &Seq) -> bool {
    *seq == Seq::NONE
}

#[cfg(test)]
mod tests {
    use super::super::super::moment::Moment;
    use super::*;
    use crate::samples::{message, person};

    const LIMITS: SummaryLimits = SummaryLimits { messages: 3, tokens: 1_000 };

    #[test]
    fn it_is_due_after_a_number_of_messages_or_tokens() {
        let mut summary = Summary::default();
        for seq in 1..=2 {
            summary.count(&entry(seq, "hi"));
        }
        assert_eq!(summary.due(LIMITS), None);

        summary.count(&entry(3, "hi"));
        assert_eq!(summary.due(LIMITS), Some((Seq(0), Seq(3))));

        let mut summary = Summary::default();
        summary.count(&entry(1, &"x".repeat(5_000)));
        assert_eq!(summary.due(LIMITS), Some((Seq(0), Seq(1))));
    }

    #[test]
    fn a_piece_leaves_the_rest_behind_and_the_last_piece_nothing() {
        let mut summary = counted(4);

        summary.apply(Seq(3), &"One to three.".into(), 3);
        assert_eq!((summary.behind, summary.upto), (1, Seq(3)));

        summary.apply(Seq(4), &"One to four.".into(), 9);
        assert_eq!((summary.behind, summary.tokens), (0, 0));
        assert_eq!(summary.due(LIMITS), None);
    }

    #[test]
    fn a_summary_that_covers_a_deleted_message_is_made_again_from_the_beginning() {
        let mut summary = counted(4);
        summary.apply(Seq(4), &"All.".into(), 4);

        summary.delete(&[Seq(2)]);

        assert_eq!((summary.text.clone(), summary.behind), (None, 4));
        assert_eq!(summary.due(SummaryLimits { messages: 100, tokens: 1_000 }), Some((Seq(0), Seq(4))));
        summary.apply(Seq(4), &"The rest.".into(), 3);
        assert_eq!(summary.due(SummaryLimits { messages: 100, tokens: 1_000 }), None);
    }

    #[test]
    fn after_a_failure_it_waits_for_as_many_messages_again() {
        let mut summary = counted(3);
        summary.begin();
        assert!(!summary.end(false, Some(LIMITS)));
        assert_eq!(summary.due(LIMITS), None);

        (4..=6).for_each(|seq| summary.count(&entry(seq, "hi")));

        assert_eq!(summary.due(LIMITS), Some((Seq(0), Seq(6))));
    }

    #[test]
    fn nothing_before_a_clear_is_summarised() {
        let mut summary = counted(3);
        summary.apply(Seq(3), &"Before.".into(), 3);

        summary.clear(Seq(9));
        (10..=12).for_each(|seq| summary.count(&entry(seq, "hi")));

        assert_eq!((summary.text.as_deref(), summary.due(LIMITS)), (None, Some((Seq(9), Seq(12)))));
    }

    #[test]
    fn a_new_conversation_keeps_the_summary_and_adds_the_rest_to_it() {
        let mut summary = counted(3);
        summary.apply(Seq(3), &"Before.".into(), 3);
        summary.count(&entry(4, "hi"));

        summary.begin_anew(Seq(9));

        assert_eq!((summary.text.as_deref(), summary.due(LIMITS)), (Some("Before."), Some((Seq(3), Seq(4)))));
        assert_eq!((summary.begins_after(), summary.covers_after()), (Seq(9), Seq(0)));
        summary.clear(Seq(12));
        assert_eq!((summary.text.as_deref(), summary.is_anew()), (None, false));
    }

    fn counted(messages: u64) -> Summary {
        let mut summary = Summary::default();
        (1..=messages).for_each(|seq| summary.count(&entry(seq, "hi")));
        summary
    }

    fn entry(seq: u64, text: &str) -> Entry {
        Entry::new(Seq(seq), Moment::ZERO, message(person("ana"), text).into())
    }
}
