//! Voice calls: what a call tells its channel ([`CallEvents`]), and what the channel has done in its call ([`VoiceCalls`]).
//!
//! What is said and who is there is on record before it is handled, like every inbound event. Speech pulses and partial results are not on record.

use std::sync::Arc;

use async_trait::async_trait;

use super::inbound_events::{Acceptance, ChannelRef, InboundError};
use super::speech_recognition::Segment;
pub use crate::domain::call::CallEffect;
use crate::domain::conversation::Notice;
use crate::domain::id::ChannelId;
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

    /// Reports what is not on record: onsets, offsets, partial and empty final results, people who are muted, ignored, or
    /// have lost their socket. False: the channel does not run, or too much waits there, and it was dropped.
    fn noticed(&self, channel: &ChannelId, notice: Notice) -> bool;
}

/// The calls, as a channel reaches them.
pub trait VoiceCalls: Send + Sync + 'static {
    /// Carries out an effect in the call of a channel. If the channel has no call any more, nothing happens. Must not block.
    fn carry_out(&self, channel: &ChannelId, effect: CallEffect);
}

/// Calls that remember what they should do, and may pass it on.
#[cfg(any(test, feature = "samples"))]
pub mod fake {

    use parking_lot::Mutex;
    use tokio::sync::mpsc::UnboundedSender;

    use super::{CallEffect, ChannelId, VoiceCalls};

    #[derive(Debug, Default)]
    pub struct FakeCalls {
        carried_out: Mutex<Vec<(ChannelId, CallEffect)>>,
        player: Mutex<Option<UnboundedSender<(ChannelId, CallEffect)>>>,
    }

    impl FakeCalls {
        /// The effects so far, oldest first.
        pub fn carried_out(&self) -> Vec<(ChannelId, CallEffect)> {
            self.carried_out.lock().clone()
        }

        /// From now on this one carries out the effects.
        pub fn play_by(&self, player: UnboundedSender<(ChannelId, CallEffect)>) {
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
