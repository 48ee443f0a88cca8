//! Voice calls: what a platform that connects calls tells the core ([`CallEvents`]), and what the core has it do ([`VoiceCalls`]).
//!
//! What is said and who is there is on record before it is handled, like every inbound event. Speech pulses and partial results are not on record.

use std::sync::Arc;

use async_trait::async_trait;

use super::inbound_events::{Acceptance, ChannelRef, InboundError};
use super::speech_recognition::Segment;
use crate::domain::conversation::{Aloud, Notice};
use crate::domain::id::{ChannelId, PersonId, Ticket, TurnId};
use crate::domain::message::Author;
use crate::domain::voice::echo::PlayedWords;

/// What a person said, as a recogniser returned it: a final result.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundSegment {
    /// Its id is unique in the channel, such as the recogniser's stream and the position in it. A segment with the same id is a duplicate. One without words is
    /// not put on record. A moment in the future counts as now.
    pub segment: Segment,
    pub from: Author,
    /// The recogniser, as in the span attribute `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// Whether it was said during a spoken reply, or while one was being prepared.
    pub is_during_reply: bool,
    /// What was played in the call lately.
    pub played: PlayedWords,
}

/// The core, as a platform that connects calls sees it. Only people are heard: what bots do in a call is ignored.
///
/// A platform reports what happens to one person in its order, one at a time. After a restart of the server it reports again who is in the call
/// ([`joined`](Self::joined) for those who are there, [`left`](Self::left) for those who are not any more), and who wants to be ignored.
#[async_trait]
pub trait CallEvents: Send + Sync + 'static {
    /// Accepts that a person has entered the call. It is on record when this returns. Who is in the call already stays there.
    ///
    /// # Errors
    /// It was not accepted, or nobody knows whether it was. Report it again.
    async fn joined(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError>;

    /// Accepts that a person has left the call.
    ///
    /// # Errors
    /// As [`joined`](Self::joined).
    async fn left(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError>;

    /// Accepts a final result. What people say who have opted out is ignored.
    ///
    /// # Errors
    /// As [`joined`](Self::joined), with the same id.
    async fn heard(&self, channel_ref: &ChannelRef, segment: InboundSegment) -> Result<Acceptance, InboundError>;

    /// Reports what is not on record: onsets, offsets, partial and empty final results, `Finalize` that was sent, people who are muted, ignored, or
    /// have lost their socket. False: the channel does not run, or too much waits there, and it was dropped.
    fn noticed(&self, channel: &ChannelId, notice: Notice) -> bool;
}

/// Something to do in a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEffect {
    /// Tell the recogniser of this person to finish its segment.
    Finalize { user: PersonId },
    /// Show that nobody waits for this person, who counts as noise until the next offset or word (docs/design/voice.md A-5).
    CountsAsNoise { user: PersonId },
    /// The channel has restarted, or was told that the call has ([`Notice::PlayerRestarted`]): stop what is played, and forget what was prepared. What is
    /// left to do for a reply follows. Tell again who wants to be ignored in this call alone, whether the companions are
    /// [silenced](Notice::Silenced), and who of these people has no connection.
    Restarted {
        /// The people who are in the call on record.
        people: Vec<PersonId>,
    },
    /// Something to do for a reply that is spoken. What is to be done for a reply that has ended is ignored.
    ///
    /// For a reply the call tells ([`Notice::Reply`]): each sentence before its audio, in order; `FirstAudio` once, when the first audio is there;
    /// from `Speak` on, `Audio` and `Whole` of each sentence, which is played from its `Start` on; `Played` about every 100 ms and after `Pause`; and
    /// `Finished` after all audio, or without any if none can be made. A sentence without first audio for `voice.first_audio_timeout_secs`, or without
    /// more of it for `voice.stall_timeout_secs`, is a `Stall`. After `Ended` or `Prepare` it reports nothing more about earlier commands.
    Reply {
        ticket: Ticket,
        /// The turn in whose trace the work for it belongs, if that is known.
        turn: Option<TurnId>,
        aloud: Aloud,
    },
}

/// The platforms that connect calls.
pub trait VoiceCalls: Send + Sync + 'static {
    /// Carries out an effect in the call of a channel. If the channel has no call any more, nothing happens. Must not block.
    fn carry_out(&self, channel: &ChannelId, effect: CallEffect);
}

/// Calls that remember what they should do, and may pass it on.
#[cfg(test)]
pub(crate) mod fake {

    use parking_lot::Mutex;
    use tokio::sync::mpsc::UnboundedSender;

    use super::{CallEffect, ChannelId, VoiceCalls};

    #[derive(Debug, Default)]
    pub(crate) struct FakeCalls {
        carried_out: Mutex<Vec<(ChannelId, CallEffect)>>,
        player: Mutex<Option<UnboundedSender<(ChannelId, CallEffect)>>>,
    }

    impl FakeCalls {
        /// The effects so far, oldest first.
        pub(crate) fn carried_out(&self) -> Vec<(ChannelId, CallEffect)> {
            self.carried_out.lock().clone()
        }

        /// From now on this one carries out the effects.
        pub(crate) fn play_by(&self, player: UnboundedSender<(ChannelId, CallEffect)>) {
            *self.player.lock() = Some(player);
        }
    }

    impl VoiceCalls for FakeCalls {
        fn carry_out(&self, channel: &ChannelId, effect: CallEffect) {
            if let Some(player) = &*self.player.lock() {
                drop(player.send((channel.clone(), effect.clone())));
            }
            self.carried_out.lock().push((channel.clone(), effect));
        }
    }
}
