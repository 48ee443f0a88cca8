//! The inputs and effects of collecting what people say into messages.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId};
use super::super::super::moment::Moment;
use super::super::segment::Segment;
use super::HandOver;

/// What happened in the call. Onsets are the beginning of the first voiced hop, offsets the end of the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A person entered the call, or the person's socket is back.
    Joined { user: PersonId },
    /// A person left the call.
    Left { user: PersonId },
    /// The connection of a person was lost.
    SocketLost { user: PersonId },
    /// A person was muted.
    Muted { user: PersonId },
    /// A person wants to be ignored from now on.
    OptedOut { user: PersonId },
    /// A person is no longer ignored.
    OptedIn { user: PersonId },
    /// The own detector found an onset.
    Started { user: PersonId, started: Moment },
    /// The recogniser found an onset. Only for people without a detector of our own.
    RecogniserStarted { user: PersonId },
    /// The own detector found an offset.
    Ended { user: PersonId, ended: Moment },
    /// A partial result has words.
    Partial { user: PersonId },
    /// The recogniser returned a final result, with which it has returned all of the utterance (Deepgram: `speech_final` or `from_finalize`) or not.
    /// Without a segment, it is empty.
    Final { user: PersonId, is_last: bool, segment: Option<Segment> },
    /// A spoken reply has its recogniser finish the segment (docs/design/voice.md A-13).
    Finalized { user: PersonId },
    /// A companion has finished a spoken reply, or was cut. The people are the author of the message that it answered, and who cut it.
    Replied { companion: CompanionId, people: BTreeSet<PersonId>, last_frame: Moment },
    /// After a round, voice messages are still unsettled (docs/design/voice.md A-12).
    LeftUnsettled,
    /// The call is over.
    CallEnded,
}

/// What the caller must do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Tell the recogniser of this person to finish its segment.
    Finalize { user: PersonId },
    /// Journal these messages, and handle them as one input.
    HandOver(HandOver),
    /// The voice lull has ended without new messages for these companions. If any voice message is unsettled, journal `VoiceQuiet` and fire `lull`.
    Quiet { companions: Vec<CompanionId> },
    /// The person talks without words, and counts as noise until the next offset or word.
    CountsAsNoise { user: PersonId },
    /// The person's socket was lost for too long: the person has left.
    Left { user: PersonId },
    /// Redact all segments of this person that were not handed over.
    Redact { user: PersonId },
}
