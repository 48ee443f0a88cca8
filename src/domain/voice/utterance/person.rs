//! The state of one person in a call.

use serde::{Deserialize, Serialize};

use super::super::super::moment::Moment;
use super::super::speech::HOP;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Person {
    pub(super) presence: Presence,
    pub(super) talk: Talk,
    pub(super) finals: Finals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Presence {
    Here,
    /// The socket is lost. The person counts as present until `until`.
    Lost {
        until: Moment,
    },
    /// The person has left, but finals are outstanding.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Talk {
    /// Silent. `ended` is the end of the last talk, if there was one.
    Silent { ended: Option<Moment> },
    /// Between onset and offset.
    Talking {
        /// When the newest word arrived, or the onset.
        word_at: Moment,
        /// Whether a word has arrived since the onset.
        has_words: bool,
        ear: Ear,
        /// The end of the last segment that completed an utterance.
        final_until: Moment,
    },
    /// Talking without words for so long that it counts as noise since `ended`.
    Noise { ended: Moment, ear: Ear },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ear {
    /// Our own detector. It also finds the offset.
    Detector,
    /// The recogniser. Its final is the offset.
    Recogniser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finals {
    /// All finals have arrived.
    In,
    /// Finals are outstanding since the onset.
    Awaited,
    /// Finals were requested from the recogniser. They are awaited until `until`.
    Finalized { until: Moment },
}

impl Person {
    /// A person in the call, silent.
    pub(super) fn here() -> Self {
        Self { presence: Presence::Here, talk: Talk::Silent { ended: None }, finals: Finals::In }
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence != Presence::Gone
    }

    pub(super) fn is_talking(&self) -> bool {
        matches!(self.talk, Talk::Talking { .. })
    }

    /// Whether the person talks, and at least one word was recognised.
    pub(super) fn says_words(&self) -> bool {
        matches!(self.talk, Talk::Talking { has_words: true, .. })
    }

    /// The source of the onset of the person's current voice, noise included.
    pub(super) fn ear(&self) -> Option<Ear> {
        match self.talk {
            Talk::Silent { .. } => None,
            Talk::Talking { ear, .. } | Talk::Noise { ear, .. } => Some(ear),
        }
    }

    /// Ends the talk. If a final has already covered the audio up to the last voiced hop, it is the outstanding one (docs/design/voice.md A-10).
    pub(super) fn end_talk(&mut self, ended: Moment) {
        if let Talk::Talking { final_until, .. } = self.talk
            && final_until + HOP >= ended
        {
            self.finals = Finals::In;
        }
        self.talk = Talk::Silent { ended: Some(ended) };
    }

    pub(super) fn ended(&self) -> Option<Moment> {
        match self.talk {
            Talk::Silent { ended } => ended,
            Talk::Noise { ended, .. } => Some(ended),
            Talk::Talking { .. } => None,
        }
    }
}
