//! Events of voice calls: joins, leaves and speech. Joins, leaves and words are journaled before the
//! channel handles them; notices and empty segments are not.

use std::sync::Arc;

use async_trait::async_trait;

use super::inbound_events::channel_key_of;
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::domain::conversation::Notice;
use crate::domain::event::{ENTERED_CALL, Event, Segment};
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::message::{Author, Modality, Role};
use crate::domain::moment::Moment;
use crate::domain::voice::echo::PlayedWords;
use crate::domain::voice::invented::is_invented;
use crate::domain::voice::segment::{Heard, Kind, kind_of};
use crate::domain::voice::utterance;
use crate::ports::inbound_events::{Acceptance, ChannelRef, InboundError, InboundMessage};
use crate::ports::speech_recognition as recognition;
use crate::ports::voice_call::{CallEvents, InboundSegment};

#[async_trait]
impl CallEvents for Inbound {
    async fn joined(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError> {
        if !is_person(&from) || !self.opens(channel_ref).await? {
            return Ok(Acceptance::Ignored);
        }
        self.accept_call_event(channel_ref, Event::VoiceJoined { from }, None).await
    }

    async fn left(&self, channel_ref: &ChannelRef, from: Author) -> Result<Acceptance, InboundError> {
        // A person in the call can always leave it, even if the channel has no companions any more.
        let guild = self.context().memberships.guild_of(&channel_ref.channel);
        if !is_person(&from) || guild.is_none_or(|guild| guild != channel_ref.guild) {
            return Ok(Acceptance::Ignored);
        }
        self.accept_call_event(channel_ref, Event::VoiceLeft { from }, None).await
    }

    async fn heard(&self, channel_ref: &ChannelRef, heard: InboundSegment) -> Result<Acceptance, InboundError> {
        let InboundSegment { from, segment, .. } = &heard;
        if !is_person(from) || self.is_ignored(channel_ref, &from.id) || !self.opens(channel_ref).await? {
            return Ok(Acceptance::Ignored);
        }
        if segment.text.trim().is_empty() {
            let user = PersonId::from(&*from.id);
            let empty = utterance::Input::Final { user, is_last: segment.is_last, segment: None };
            self.noticed(&channel_ref.channel, Notice::Call(empty));
            return Ok(Acceptance::Ignored);
        }
        let id = segment.id.clone();
        self.accept_call_event(channel_ref, self.segment_event(channel_ref, heard), Some(id)).await
    }

    fn noticed(&self, channel: &ChannelId, notice: Notice) -> bool {
        let key = ChannelActorKey(channel.clone());
        !self.is_crowded(&key) && self.context().directory.hand_over(&key, ChannelMessage::Received(Received::Voice(notice)))
    }
}

impl Inbound {
    async fn accept_call_event(
        &self,
        channel_ref: &ChannelRef,
        event: Event,
        id: Option<Arc<str>>,
    ) -> Result<Acceptance, InboundError> {
        let accepted = self.accept(&channel_key_of(channel_ref), event, id).await?;
        Ok(if accepted.is_new { Acceptance::New(accepted.seq) } else { Acceptance::Duplicate(accepted.seq) })
    }

    /// Asks a companion to greet the first person in a call (docs/design/voice.md A-77).
    ///
    /// # Errors
    /// Returns the same errors as [`CallEvents::joined`].
    pub async fn welcome(&self, channel_ref: &ChannelRef, from: &Author, id: Arc<str>) -> Result<(), InboundError> {
        if !is_person(from) || self.is_ignored(channel_ref, &from.id) || !self.opens(channel_ref).await? {
            return Ok(());
        }
        let message = InboundMessage {
            id: Some(id),
            // Own words are empty, so that the person's name in the text addresses no companion.
            own_words: Some("".into()),
            modality: Modality::Voice,
            kind: Some("voice_call".into()),
            ..InboundMessage::new(from.clone(), format!("{}{ENTERED_CALL}", from.name).into())
        };
        self.say(&channel_key_of(channel_ref), message, None).await?;
        Ok(())
    }

    /// The classification of a segment.
    pub fn kind_of_segment(&self, channel_ref: &ChannelRef, heard: &InboundSegment) -> Kind {
        let segment = &heard.segment;
        let lists = &self.word_lists(channel_ref);
        let (started, ended) = self.times_of(segment);
        // A segment that is not verbatim can be neither an echo of played words nor a backchannel.
        let (played, is_during_reply) = match segment.is_verbatim {
            true => (&heard.played, heard.is_during_reply),
            false => (&PlayedWords::default(), false),
        };
        let is_invented = match segment.is_verbatim {
            true => is_invented(&segment.text, ended.since(started), &self.context().settings.speech.noise),
            // Only `rehearsal` can answer a segment without a transcript, so such a segment is noise if any model has an endpoint.
            false => self.context().pool.settings().has_endpoint(),
        };
        let heard = Heard {
            text: &segment.text,
            started,
            ended,
            voiced: segment.voiced,
            no_speech: segment.no_speech,
            is_invented,
            is_during_reply,
            begins_with_stop: !self.stop_word(channel_ref, &segment.text, lists).is_none(),
        };
        kind_of(&heard, lists, played)
    }

    fn times_of(&self, segment: &recognition::Segment) -> (Moment, Moment) {
        let ended = segment.ended.min(self.context().clock.now());
        (segment.started.min(ended), ended)
    }

    /// The event of a segment. Its addressees and its classification are determined now.
    fn segment_event(&self, channel_ref: &ChannelRef, heard: InboundSegment) -> Event {
        let kind = self.kind_of_segment(channel_ref, &heard);
        let InboundSegment { segment, from, standing, provider, .. } = heard;
        let (mut address, mut asks_to_stop) = self.resolve_speech(channel_ref, &from, &segment.text);
        let mut stop = self.stop_word(channel_ref, &segment.text, &self.word_lists(channel_ref));
        if !segment.is_verbatim {
            (address, asks_to_stop, stop) = Default::default();
        }
        let address = address.by(standing);
        let (started, ended) = self.times_of(&segment);
        let recognition::Segment { text, confidence, is_last, .. } = segment;
        let segment = Segment { from, text, started, ended, confidence, provider, kind, address, asks_to_stop, stop, is_last };
        Event::Segment(Box::new(segment))
    }
}

/// Whether the author is a person with an id. What others do in a call is ignored.
fn is_person(from: &Author) -> bool {
    from.role == Role::Person && !from.id.is_empty()
}
