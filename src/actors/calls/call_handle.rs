//! A call, with access to its actors and its channel.

use std::sync::Arc;

use super::call::SharedCall;
use crate::actors::inbound::Inbound;
use crate::actors::messages::voice_call::{CallMessage, RecognitionMessage, VoiceUserMessage};
use crate::actors::runtime::actor_keys::{RecognitionKey, VoiceCallKey, VoiceUserKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::ActorKey;
use crate::domain::call::playback::Patience;
use crate::domain::call::{Effect, Input, View, World};
use crate::domain::conversation::Notice;
use crate::domain::id::{CompanionId, PersonId};
use crate::domain::message::Standing;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::ports::inbound_events::InboundError;
use crate::ports::speech_recognition::Segment;
use crate::ports::voice_call::{CallEvents, InboundSegment};
use crate::settings::speech::BUILT_IN;

/// A call, with access to its actors and its channel. Cheap to clone.
#[derive(Clone)]
pub struct CallHandle {
    pub call: Arc<SharedCall>,
    inbound: Inbound,
}

impl CallHandle {
    pub const fn new(call: Arc<SharedCall>, inbound: Inbound) -> Self {
        Self { call, inbound }
    }

    pub const fn context(&self) -> &ActorContext {
        self.inbound.context()
    }

    pub const fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Handles an input, and sends the effects that need the call's actor to it.
    pub fn report(&self, input: Input) {
        let left = self.handle(input);
        if !left.is_empty() {
            // An actor that is being restarted reads the state of the call instead.
            self.cast(&VoiceCallKey(self.call.channel().clone()), CallMessage::CarryOut(left));
        }
    }

    /// Handles an input. Returns the effects that only the call's actor can carry out.
    pub fn handle(&self, input: Input) -> Vec<Effect> {
        let (context, voice) = (self.context(), &self.context().settings.voice);
        let world = World {
            now: self.call.now(),
            at: context.clock.now(),
            patience: Patience { first_audio: voice.first_audio_timeout(), more: voice.stall_timeout() },
            is_opted_out: &|user| context.opt_outs.holds(&self.call.channel_ref().guild, user),
            is_used_up: &|companion| self.is_used_up(companion),
        };
        self.call.handle(input, &world, |effect| self.carry_out(effect))
    }

    fn carry_out(&self, effect: Effect) -> Option<Effect> {
        let channel = || self.call.channel().clone();
        match effect {
            Effect::Notice(notice) => _ = self.inbound.noticed(self.call.channel(), notice),
            Effect::StopSpeech(user) => self.cast(&VoiceUserKey(channel(), user), VoiceUserMessage::Stop),
            Effect::Finalize(user) => self.cast(&RecognitionKey(channel(), user), RecognitionMessage::Finalize),
            Effect::ForgetWords(user) => self.cast(&RecognitionKey(channel(), user), RecognitionMessage::Forget),
            effect => return Some(effect),
        }
        None
    }

    /// Sends a message to an actor of the call. Ignored if the actor is being restarted: it then reads the state of the call.
    pub fn cast<K: ActorKey>(&self, key: &K, message: K::Message) {
        if let Some(actor) = self.context().directory.find(key) {
            let _ = actor.cast(message);
        }
    }

    /// Whether the guild has used up today's allowance of the companion's speech synthesis service.
    fn is_used_up(&self, companion: &CompanionId) -> bool {
        let context = self.context();
        let settings = context.memberships.companion(self.call.channel(), companion);
        let provider = context.speech.synthesis().of(settings.and_then(|companion| companion.voice.provider).as_deref());
        let (in_force, guild, now) = (context.in_force(), &self.call.channel_ref().guild, context.clock.now());
        provider.service().provider() != BUILT_IN
            && context.calls.allowances().is_used_up(&in_force.speech, guild, Service::SpeechSynthesis, now)
    }

    pub fn is_deaf_to(&self, user: &PersonId) -> bool {
        self.call.read(|call| call.deafness(user)).0 || self.is_opted_out(user)
    }

    /// Whether the person has opted out, in this call or in the whole guild.
    pub fn is_opted_out(&self, user: &PersonId) -> bool {
        self.call.read(|call| call.deafness(user)).1 || self.context().opt_outs.holds(&self.call.channel_ref().guild, user)
    }

    async fn standing(&self, user: &PersonId) -> Standing {
        match self.call.link() {
            Some(link) => link.connection().standing(user).await,
            None => Standing::Free,
        }
    }

    /// The language of the call: the name of a table of `speech.words`.
    pub fn language(&self) -> Arc<str> {
        let (memberships, settings) = (&self.context().memberships, self.context().in_force());
        memberships.language(self.call.channel()).unwrap_or_else(|| settings.speech.language.clone())
    }

    /// Names that are likely to be said: first those of the companions in the room, then those of the people in the call who have
    /// not opted out.
    pub fn names(&self) -> Vec<Arc<str>> {
        let people = self.call.read(|call| call.people().collect::<Vec<_>>());
        let people = people.into_iter().filter(|person| !self.is_opted_out(&person.user));
        let people = people.map(|person| self.call.author_or_unnamed(&person.user).name);
        self.context().memberships.said_names(self.call.channel()).into_iter().chain(people).collect()
    }

    pub fn partial(&self, user: &PersonId, text: &Arc<str>, started: Moment) {
        let author = self.call.read(|call| call.author(user));
        let Some(from) = author.filter(|_| !self.is_opted_out(user)) else { return };
        let words = self.inbound.words_of_partial(self.call.channel_ref(), &from, text);
        self.call.show(&View::Caption { user: user.clone(), text: text.clone(), kind: None });
        self.inbound.noticed(self.call.channel(), Notice::Partial { user: user.clone(), started, words });
    }

    /// Journals a final result of a person's speech, and shows it. Retries until the store accepts it, however long that takes.
    ///
    /// # Errors
    /// Returns an error if the store can never accept it.
    pub async fn recognised(&self, user: &PersonId, provider: &'static str, segment: &Segment) -> Result<(), InboundError> {
        if self.is_opted_out(user) {
            return Ok(());
        }
        let _journaling = Journaling::new(self.call.clone(), user.clone());
        let (is_during_reply, played) = self.call.read(|call| (call.was_replying(segment.started), call.played().clone()));
        let inbound_segment = InboundSegment {
            segment: Segment { id: format!("{}/{}", self.call.id_prefix(user), segment.id).into(), ..segment.clone() },
            from: self.call.author_or_unnamed(user),
            standing: self.standing(user).await,
            provider: provider.into(),
            is_during_reply,
            played,
        };
        loop {
            match self.inbound.heard(self.call.channel_ref(), inbound_segment.clone()).await {
                Ok(_) => break,
                Err(InboundError::Later { after, .. }) => tokio::time::sleep(after).await,
                Err(error @ InboundError::Broken(_)) => return Err(error),
            }
        }
        if !segment.text.trim().is_empty() {
            let kind = self.inbound.kind_of_segment(self.call.channel_ref(), &inbound_segment);
            self.call.show(&View::Caption { user: user.clone(), text: segment.text.clone(), kind: Some(kind) });
        }
        Ok(())
    }
}

/// Marks that a segment of a person is being journaled. The mark is removed when this is dropped.
pub struct Journaling {
    call: Arc<SharedCall>,
    user: PersonId,
}

impl Journaling {
    pub fn new(call: Arc<SharedCall>, user: PersonId) -> Self {
        call.buffer(&user, |buffer| buffer.journaling += 1);
        Self { call, user }
    }
}

impl Drop for Journaling {
    fn drop(&mut self) {
        self.call.buffer(&self.user, |buffer| buffer.journaling = buffer.journaling.saturating_sub(1));
    }
}
