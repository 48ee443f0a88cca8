//! The inputs and effects of collecting speech into messages.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId};
use super::super::super::moment::Moment;
use super::super::segment::Segment;
use super::HandOver;

/// An event in the call. An onset is the beginning of the first voiced hop, an offset the end of the last one.
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
    /// A person opted out.
    OptedOut { user: PersonId },
    /// A person opted in again.
    OptedIn { user: PersonId },
    /// Our own detector found an onset.
    Started { user: PersonId, started: Moment },
    /// The recogniser found an onset. Only for people without a detector of our own.
    RecogniserStarted { user: PersonId },
    /// Our own detector found an offset.
    Ended { user: PersonId, ended: Moment },
    /// A partial result has words.
    Partial { user: PersonId },
    /// The recogniser returned a final result. `is_last` says whether that completes the utterance (Deepgram: `speech_final` or `from_finalize`).
    /// `segment` is `None` if the result is empty.
    Final { user: PersonId, is_last: bool, segment: Option<Segment> },
    /// A spoken reply asked the person's recogniser to finish the segment (docs/design/voice.md A-13).
    Finalized { user: PersonId },
    /// A companion's spoken reply has ended or was cut. `people` are the author of the answered message, and the person who cut the reply.
    Replied { companion: CompanionId, people: BTreeSet<PersonId>, last_frame: Moment },
    /// After a round, voice messages are still unsettled (docs/design/voice.md A-12).
    LeftUnsettled,
    /// The call is over.
    CallEnded,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Ask this person's recogniser to finish its segment.
    Finalize { user: PersonId },
    /// Journal these messages, and handle them as one input.
    HandOver(HandOver),
    /// The voice lull has ended for these companions without new messages. If any voice message is unsettled, journal `VoiceQuiet` and fire `lull`.
    Quiet { companions: Vec<CompanionId> },
    /// The person talks without words, and counts as noise until the next offset or word.
    CountsAsNoise { user: PersonId },
    /// The person's socket was lost for too long: the person has left.
    Left { user: PersonId },
    /// Redact all segments of this person that were not handed over.
    Redact { user: PersonId },
}
