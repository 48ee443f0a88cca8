//! What is known of one person in a call.

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
    /// The socket is lost. It may come back until then.
    Lost {
        until: Moment,
    },
    /// The person has left, and finals are outstanding.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Talk {
    /// Silent, since the end of the last talk if there was one.
    Silent { ended: Option<Moment> },
    /// Between onset and offset.
    Talking {
        /// When the newest word came, or the onset.
        word_at: Moment,
        /// Whether a word came since the onset.
        has_words: bool,
        ear: Ear,
        /// The end of what the recogniser has returned as an utterance.
        final_until: Moment,
    },
    /// The same, but without words for so long that it counts as noise since `ended`.
    Noise { ended: Moment, ear: Ear },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ear {
    /// The own detector. It finds the offset too.
    Detector,
    /// The recogniser. Its final is the offset.
    Recogniser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finals {
    /// All are here.
    In,
    /// Some are outstanding since the onset.
    Awaited,
    /// The same, and the recogniser was asked for them. They are waited for until then.
    Finalized { until: Moment },
}

impl Person {
    /// A person who is in the call and silent.
    pub(super) fn here() -> Self {
        Self { presence: Presence::Here, talk: Talk::Silent { ended: None }, finals: Finals::In }
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence != Presence::Gone
    }

    pub(super) fn is_talking(&self) -> bool {
        matches!(self.talk, Talk::Talking { .. })
    }

    /// Whether the person talks, and a word of it was recognised.
    pub(super) fn says_words(&self) -> bool {
        matches!(self.talk, Talk::Talking { has_words: true, .. })
    }

    /// Who found the onset of what the person says, noise included.
    pub(super) fn ear(&self) -> Option<Ear> {
        match self.talk {
            Talk::Silent { .. } => None,
            Talk::Talking { ear, .. } | Talk::Noise { ear, .. } => Some(ear),
        }
    }

    /// Ends the talk. A final that came already and reaches the last voiced hop is the one that was outstanding (docs/design/voice.md A-10).
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
