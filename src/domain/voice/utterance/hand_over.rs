//! Turns buffered segments into messages: one for each uninterrupted run of one speaker (docs/design/voice.md A-6).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::super::id::{CompanionId, PersonId, Seq};
use super::super::super::moment::Moment;
use super::super::segment::{Kind, Segment};
use super::Utterances;

/// Messages from buffered segments: one journal batch, and one input of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    pub cause: Cause,
    /// The messages, by start time. There is at least one.
    pub messages: Vec<Spoken>,
    /// Whether a person still talks. If so, an interjection that these messages trigger waits for the next end of the voice lull
    /// (docs/design/voice.md A-11).
    pub somebody_talks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// The voice lull has ended for these companions, by id.
    LullEnded { companions: Vec<CompanionId> },
    /// The last person has left the call. Lists all companions in the call, by id.
    Deserted { companions: Vec<CompanionId> },
    /// Early: the speaker addressed a companion.
    Addressed { by: PersonId },
    /// Early: the speaker and the companion are alone in the call.
    OneToOne { by: PersonId, companion: CompanionId },
    /// Early: the companion has just answered the speaker.
    FollowUp { by: PersonId, companion: CompanionId },
    /// The words extend a reply in preparation.
    Extension,
}

/// A spoken message: one run of segments of one person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoken {
    pub from: PersonId,
    /// The texts of the segments, joined by one space.
    pub text: Arc<str>,
    pub started: Moment,
    pub ended: Moment,
    /// The event numbers of the segments, by start time.
    pub segments: Vec<Seq>,
    /// Whether it is only backchannel. Backchannel passes no row of the gate, does not count, and is settled at once.
    pub is_backchannel: bool,
}

impl HandOver {
    /// The message that ends a lull, and the companions whose lull ends (docs/design/voice.md ). It is the newest message that is not
    /// backchannel.
    pub fn endpoint(&self) -> Option<(&Spoken, &[CompanionId])> {
        let companions = match &self.cause {
            Cause::LullEnded { companions } | Cause::Deserted { companions } => companions,
            Cause::OneToOne { companion, .. } | Cause::FollowUp { companion, .. } => std::slice::from_ref(companion),
            Cause::Addressed { .. } | Cause::Extension => return None,
        };
        self.messages.iter().rev().find(|message| !message.is_backchannel).map(|message| (message, companions))
    }
}

impl Utterances {
    pub(super) fn hand_over(&mut self, cause: Cause) -> HandOver {
        let messages = runs(std::mem::take(&mut self.buffer));
        HandOver { cause, messages, somebody_talks: self.somebody_talks() }
    }
}

/// Makes one message of each contiguous run of a speaker's segments, by start time. Segments with equal start times keep the order of the journal.
fn runs(mut segments: Vec<Segment>) -> Vec<Spoken> {
    segments.sort_by_key(|segment| (segment.started, segment.seq));
    segments.chunk_by(|one, next| one.from == next.from).filter_map(run).collect()
}

fn run(segments: &[Segment]) -> Option<Spoken> {
    let first = segments.first()?;
    let texts: Vec<_> = segments.iter().map(|segment| segment.text.trim()).collect();
    Some(Spoken {
        from: first.from.clone(),
        text: texts.join(" ").into(),
        started: first.started,
        ended: segments.iter().map(|segment| segment.ended).fold(first.started, Moment::max),
        segments: segments.iter().map(|segment| segment.seq).collect(),
        is_backchannel: segments.iter().all(|segment| segment.kind == Kind::Backchannel),
    })
}
