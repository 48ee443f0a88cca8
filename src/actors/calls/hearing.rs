//! Hands to the channel what people in a call say.

use std::sync::Arc;

use super::call::{Call, unnamed};
use crate::actors::inbound::Inbound;
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::Notice;
use crate::domain::id::PersonId;
use crate::domain::moment::Moment;
use crate::domain::voice::speech::{HOP, Pulse};
use crate::domain::voice::utterance;
use crate::ports::call_room::View;
use crate::ports::inbound_events::InboundError;
use crate::ports::speech_recognition::Segment;
use crate::ports::voice_call::{CallEvents, InboundSegment};

/// A call, and the way to its channel. Cheap to clone.
#[derive(Clone)]
pub struct Hearing {
    pub call: Arc<Call>,
    inbound: Inbound,
}

impl Hearing {
    pub const fn new(call: Arc<Call>, inbound: Inbound) -> Self {
        Self { call, inbound }
    }

    pub const fn context(&self) -> &ActorContext {
        self.inbound.context()
    }

    pub const fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Tells the channel something that is not on record. It does not matter to a channel that does not run.
    pub fn notice(&self, notice: Notice) {
        self.inbound.noticed(self.call.channel(), notice);
    }

    /// Whether everything that the person says is ignored.
    pub fn is_deaf_to(&self, user: &PersonId) -> bool {
        self.call.deafness(user).0 || self.is_opted_out(user)
    }

    /// Whether the person wants to be ignored, here or in the whole guild.
    pub fn is_opted_out(&self, user: &PersonId) -> bool {
        self.call.deafness(user).1 || self.context().opt_outs.holds(&self.call.channel_ref().guild, user)
    }

    /// The language that is spoken: the name of a table of `speech.words`.
    pub fn language(&self) -> Arc<str> {
        let (memberships, settings) = (&self.context().memberships, &self.context().settings);
        memberships.language(self.call.channel()).unwrap_or_else(|| settings.speech.language.clone())
    }

    /// The names that are likely to be said: those of the companions in the room, and then of the people in the call
    /// who have not opted out.
    pub fn names(&self) -> Vec<Arc<str>> {
        let (memberships, channel) = (&self.context().memberships, self.call.channel());
        let companions = memberships.present(channel).into_keys().filter_map(|id| memberships.companion(channel, &id));
        let people = self.call.people().into_iter().filter(|person| !self.is_opted_out(&person.user));
        let people = people.filter_map(|person| self.call.author(&person.user));
        let companions = companions.flat_map(|companion| [companion.name].into_iter().chain(companion.aliases));
        companions.chain(people.map(|author| author.name)).collect()
    }

    /// A person's voice was heard.
    pub fn pulse(&self, user: &PersonId, pulse: Pulse) {
        let voiced = |from, to| Notice::Voiced { user: user.clone(), from, to };
        match pulse {
            Pulse::Started { started, until } => {
                self.call.set_talking(user, true);
                self.notice(Notice::Call(utterance::Input::Started { user: user.clone(), started }));
                self.notice(voiced(started, until));
            }
            // Only a reply counts every hop.
            Pulse::Voiced { from, to } if self.call.reply().is_some() => self.notice(voiced(from, to)),
            Pulse::Voiced { .. } => {}
            Pulse::Cut(stretch) => self.notice(voiced(stretch.ended, stretch.ended + HOP)),
            Pulse::Ended(stretch) => {
                self.call.set_talking(user, false);
                self.notice(Notice::Call(utterance::Input::Ended { user: user.clone(), ended: stretch.ended }));
            }
        }
    }

    /// Words of a person that may change.
    pub fn partial(&self, user: &PersonId, text: &Arc<str>, started: Moment) {
        let Some(from) = self.call.author(user).filter(|_| !self.is_opted_out(user)) else { return };
        let words = self.inbound.words_of_partial(self.call.channel_ref(), &from, text);
        self.call.show(&View::Caption { user: user.clone(), text: text.clone(), kind: None });
        self.notice(Notice::Partial { user: user.clone(), started, words });
    }

    /// Words of a person that do not change any more. They are on record when this returns, however long that takes.
    ///
    /// # Errors
    /// They will never be.
    pub async fn recognised(&self, user: &PersonId, provider: &'static str, segment: &Segment) -> Result<(), InboundError> {
        if self.is_opted_out(user) {
            return Ok(());
        }
        let _recording = self.call.voice(user).map(|voice| voice.recording());
        let id = format!("{}/{}", self.call.id_prefix(user), segment.id).into();
        let inbound_segment = InboundSegment {
            id,
            // Words of somebody who has left count, too.
            from: self.call.author(user).unwrap_or_else(|| unnamed(user)),
            text: segment.text.clone(),
            is_verbatim: segment.is_verbatim,
            started: segment.started,
            ended: segment.ended,
            voiced: segment.voiced,
            no_speech: segment.no_speech,
            confidence: segment.confidence,
            provider: provider.into(),
            is_last: segment.is_last,
            is_during_reply: self.call.was_replying(segment.started),
            played: self.call.played(),
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
