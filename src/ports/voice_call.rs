//! Voice calls: events from a call to its channel ([`CallEvents`]), and commands from the channel to its call ([`VoiceCalls`]).
//!
//! Finals, joins and leaves are journaled before they are handled, like every inbound event. Voice activity and partial results are not journaled.

use std::sync::Arc;

use async_trait::async_trait;

use super::inbound_events::{Acceptance, ChannelRef, InboundError};
use super::speech_recognition::Segment;
pub use crate::domain::call::CallEffect;
use crate::domain::conversation::Notice;
use crate::domain::id::ChannelId;
use crate::domain::message::{Author, Standing};
use crate::domain::voice::echo::PlayedWords;

/// A final recognition result of a person's speech.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundSegment {
    /// Its id must be unique in the channel, for example the recogniser's stream and the position in it. A segment with a known id is a duplicate. A
    /// segment without words is not journaled. Times in the future count as now.
    pub segment: Segment,
    pub from: Author,
    /// Whether the speaker may address companions.
    pub standing: Standing,
    /// The recogniser, as in the span attribute `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// Whether it was said during a spoken reply, or while one was being prepared.
    pub is_during_reply: bool,
    /// The words that were played in the call recently.
    pub played: PlayedWords,
}

/// The server's interface for a platform that connects calls. Only people are reported: speech of bots is ignored.
///
/// A platform reports the events of one person in order, one at a time. After a restart of the server it reports the state of the call again: with
/// [`joined`](Self::joined) the people in it, with [`left`](Self::left) the people no longer in it, and the opt-outs.
#[async_trait]
pub trait CallEvents: Send + Sync + 'static {
    /// Accepts that a person has entered the call. The event is journaled when this returns. For a person who is in the call already, it changes
    /// nothing.
    ///
    /// # Errors
    /// Returns an error if the event was not accepted, or if the outcome is unknown. Report it again.
    async fn joined(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError>;

    /// Accepts that a person has left the call.
    ///
    /// # Errors
    /// As [`joined`](Self::joined).
    async fn left(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError>;

    /// Accepts a final result. Speech of people who have opted out is ignored.
    ///
    /// # Errors
    /// As [`joined`](Self::joined). Report it again with the same id.
    async fn heard(&self, channel_ref: &ChannelRef, segment: InboundSegment) -> Result<Acceptance, InboundError>;

    /// Reports events that are not journaled: onsets, offsets, partial and empty final results, mutes, opt-outs, and lost sockets. Returns false if
    /// the notice was dropped, because the channel does not run or its queue is full.
    fn noticed(&self, channel: &ChannelId, notice: Notice) -> bool;
}

/// The interface through which a channel controls its call.
pub trait VoiceCalls: Send + Sync + 'static {
    /// Carries out an effect in the call of a channel. Does nothing if the channel has no call. Must not block.
    fn carry_out(&self, channel: &ChannelId, effect: CallEffect);
}

/// Calls that record their effects, and may forward them.
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

        /// Forwards all later effects to this sender.
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
