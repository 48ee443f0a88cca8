//! Tracks a spoken reply: who held it back, who interrupted it, and which part was played (docs/design/voice.md ).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Verdict;
use crate::domain::voice::segment::Kind;
use crate::journal::redaction::is_redacted;

/// A reply that is to be spoken, as of the events read so far.
pub(crate) struct SpokenReply {
    owed_at: Moment,
    /// The people whose speech held it back.
    held_by: BTreeSet<Arc<str>>,
    /// The spoken messages since the reply was owed, with their sequence numbers.
    said: Vec<(Seq, Message)>,
    /// The text of the sentences whose playback has started.
    pub(crate) words: String,
    /// Whether the reply was cut, so that the played part becomes the statement.
    is_cut: bool,
}

impl SpokenReply {
    pub(crate) const fn new(owed: &Recorded) -> Self {
        Self { owed_at: owed.at, held_by: BTreeSet::new(), said: Vec::new(), words: String::new(), is_cut: false }
    }

    /// Whether the reply was cut after playback began. Its statement follows whatever happens.
    pub(crate) const fn leaves_statement(&self) -> bool {
        self.is_cut && !self.words.is_empty()
    }

    /// Records people's speech since the reply was owed. Returns whether a person newly held it back.
    pub(crate) fn record_speech(&mut self, recorded: &Recorded) -> bool {
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

    /// Which of these messages people spoke since the reply was owed.
    pub(crate) fn said(&self, messages: &[Seq]) -> impl Iterator<Item = &Message> {
        self.said.iter().filter(|(seq, _)| messages.contains(seq)).map(|(_, message)| message)
    }

    /// Handles the start of a sentence or an interruption. Returns whether the story has a line for it; only the first sentence
    /// has one.
    pub(crate) fn go_on(&mut self, event: &Event) -> bool {
        if let Event::SentenceStarting { sentence, text, .. } = event {
            return self.start(*sentence, text);
        }
        let Event::Interrupted { interrupted, .. } = event else { return false };
        self.is_cut |= cuts(interrupted.verdict);
        true
    }

    /// Returns whether this is the first sentence. After a restart, the reply may begin again.
    fn start(&mut self, sentence: u32, text: &str) -> bool {
        let is_first = self.words.is_empty();
        if sentence == 0 {
            self.words.clear();
        }
        // The text of a deleted sentence is empty.
        self.words.push_str(if text.is_empty() { " " } else { text });
        is_first
    }
}

/// The people in the record, by id, with the newest name of each.
#[derive(Default)]
pub(crate) struct People {
    names: BTreeMap<PersonId, Arc<str>>,
    /// The tools of the calls so far, by the number of the call.
    tools: BTreeMap<Ticket, Arc<str>>,
}

impl People {
    pub(crate) fn record_person(&mut self, event: &Event) {
        if let Event::ToolCalled(called) = event {
            self.tools.insert(called.call, called.tool.clone());
        }
        let segment = if let Event::Segment(segment) = event { Some(&segment.from) } else { None };
        let joined = if let Event::VoiceJoined { from } = event { Some(from) } else { None };
        for from in segment.or(joined).into_iter().filter(|from| !from.name.is_empty()) {
            self.names.insert(PersonId::from(&*from.id), from.name.clone());
        }
    }

    pub(crate) fn name(&self, id: &PersonId) -> Option<Arc<str>> {
        self.names.get(id).cloned()
    }

    pub(crate) fn tool(&self, call: Ticket) -> Option<Arc<str>> {
        self.tools.get(&call).cloned()
    }
}

/// Whether this verdict ends the reply.
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
