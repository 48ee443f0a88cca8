//! Follows a spoken reply: who held it back, who talked into it, and what of it was heard (docs/design/voice.md ).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Verdict;
use crate::domain::voice::segment::Kind;
use crate::journal::redaction::is_redacted;

/// A reply that was to be spoken, as far as the record is read.
pub(crate) struct SpokenReply {
    owed_at: Moment,
    /// The people who held it back.
    held_by: BTreeSet<Arc<str>>,
    /// What was said aloud since it was owed, with the numbers of the messages.
    said: Vec<(Seq, Message)>,
    /// The words that have started to be heard.
    pub(crate) words: String,
    /// It was cut: what was heard of it becomes the statement.
    is_cut: bool,
}

impl SpokenReply {
    pub(crate) const fn new(owed: &Recorded) -> Self {
        Self { owed_at: owed.at, held_by: BTreeSet::new(), said: Vec::new(), words: String::new(), is_cut: false }
    }

    /// Whether it ended early, and the statement with what was heard follows whatever happens.
    pub(crate) const fn leaves_statement(&self) -> bool {
        self.is_cut && !self.words.is_empty()
    }

    /// Notes what people said since it was owed. Returns whether somebody held it back with that.
    pub(crate) fn hear(&mut self, recorded: &Recorded) -> bool {
        if let Event::Segment(segment) = &recorded.event {
            return self.is_held_by(segment) && self.held_by.insert(segment.from.id.clone());
        }
        if let Event::Said { message, .. } = &recorded.event
            && message.speech.is_some()
            && !is_redacted(message)
        {
            self.said.push((recorded.seq, message.clone()));
        }
        false
    }

    fn is_held_by(&self, segment: &Segment) -> bool {
        self.words.is_empty() && segment.ended >= self.owed_at && matches!(segment.kind, Kind::Words | Kind::Backchannel)
    }

    /// What people said aloud meanwhile, of these messages.
    pub(crate) fn said(&self, messages: &[Seq]) -> impl Iterator<Item = &Message> {
        self.said.iter().filter(|(seq, _)| messages.contains(seq)).map(|(_, message)| message)
    }

    /// A sentence is about to be heard, or somebody talks into it. Returns whether that is worth a line: of the sentences, only the first.
    pub(crate) fn go_on(&mut self, event: &Event) -> bool {
        if let Event::SentenceStarting { sentence, text, .. } = event {
            return self.start(*sentence, text);
        }
        let Event::Interrupted { interrupted, .. } = event else { return false };
        self.is_cut |= cuts(interrupted.verdict);
        true
    }

    /// Returns whether it is the first sentence. After a restart the reply may begin again.
    fn start(&mut self, sentence: u32, text: &str) -> bool {
        let is_first = self.words.is_empty();
        if sentence == 0 {
            self.words.clear();
        }
        // A text that was deleted is empty.
        self.words.push_str(if text.is_empty() { " " } else { text });
        is_first
    }
}

/// The people in a record, by id, with the newest name of each.
#[derive(Default)]
pub(crate) struct People(BTreeMap<PersonId, Arc<str>>);

impl People {
    pub(crate) fn note(&mut self, event: &Event) {
        let segment = if let Event::Segment(segment) = event { Some(&segment.from) } else { None };
        let joined = if let Event::VoiceJoined { from } = event { Some(from) } else { None };
        for from in segment.or(joined).into_iter().filter(|from| !from.name.is_empty()) {
            self.0.insert(PersonId::from(&*from.id), from.name.clone());
        }
    }

    pub(crate) fn name(&self, id: &PersonId) -> Option<Arc<str>> {
        self.0.get(id).cloned()
    }
}

/// Whether a reply ends with this.
const fn cuts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::StopWord
        | Verdict::Addressed
        | Verdict::ManyWords
        | Verdict::TookTooLong
        | Verdict::StopPressed
        | Verdict::CallEnded
        | Verdict::PlaybackLost
        | Verdict::ServerStopping
        | Verdict::Silenced
        | Verdict::Cancelled => true,
        Verdict::Unducked
        | Verdict::PlayedOut
        | Verdict::NothingSaid
        | Verdict::Backchannel
        | Verdict::FewWords
        | Verdict::Noise => false,
    }
}
