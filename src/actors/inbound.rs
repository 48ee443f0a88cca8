//! Accepts inbound events: resolves the addressed companions, and lets the writer commit the event. The event is handled only
//! after the commit.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::messages::writer::{Accept, Accepted, Refused, Request};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::{ask, writer_ref};
use crate::domain::address::{self, Incoming};
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Address, Author, Message, Modality, Quoted, Role};
use crate::domain::stop_phrase::is_stop_phrase;
use crate::domain::voice::interruption::{Stop, Words};
use crate::domain::voice::segment::Kind;
use crate::domain::voice::words::WordLists;
use crate::journal::channel_key::ChannelKey;
use crate::ports::inbound_events::{ChannelRef, InboundMessage};

/// How many accepted events of a channel can wait to be handled. At this limit, nothing is accepted for the channel until it has
/// caught up.
const MAX_WAITING: usize = 4_096;

/// The retry delay in the answer when a channel is at that limit.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A message that is accepted this much later than it was sent carries the time when it was sent.
const LATE: Duration = Duration::from_secs(2);

/// The message that another message answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replied {
    /// Its sequence number, if it is in the journal.
    pub seq: Option<Seq>,
    pub author: Arc<str>,
    pub role: Role,
    /// Its beginning, if it is not in the journal.
    pub quoted: Option<Quoted>,
}

/// Accepts inbound events. Cheap to clone.
#[derive(Clone)]
pub struct Inbound {
    pub(super) context: ActorContext,
}

impl Inbound {
    pub fn new(context: ActorContext) -> Self {
        Self { context }
    }

    /// Accepts a message. `replied` is the message that it answers, if any. The message is committed when this returns. `None`:
    /// the message is ignored because of `gate.foreign_bots`.
    ///
    /// # Errors
    /// Returns an error if the message was not accepted, or if it is unknown whether it was. Send it again with the same id.
    pub async fn say(
        &self,
        channel_key: &ChannelKey,
        message: InboundMessage,
        replied: Option<Replied>,
    ) -> Result<Option<Accepted>, Refused> {
        let id = message.id.clone();
        let Some(event) = self.message_event(channel_key, message, replied) else { return Ok(None) };
        self.accept(channel_key, event, id).await.map(Some)
    }

    /// Accepts any inbound event.
    ///
    /// # Errors
    /// The same as for [`say`](Self::say).
    pub async fn accept(&self, channel_key: &ChannelKey, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        if self.is_crowded(&ChannelActorKey(channel_key.channel.clone())) {
            return Err(Refused::Busy { retry_after: RETRY_AFTER });
        }
        let channel_key = channel_key.clone();
        ask(&writer_ref(&self.context)?, |reply| Request::Accept(Accept { channel_key, at: None, event, id, reply })).await
    }

    /// Whether the channel has too many accepted events that are not handled yet.
    pub fn is_crowded(&self, channel: &ChannelActorKey) -> bool {
        self.context.directory.waiting(channel) >= MAX_WAITING
    }

    pub const fn context(&self) -> &ActorContext {
        &self.context
    }

    /// Returns the companions that an utterance addresses, and whether the utterance is a stop phrase. Aliases that apply only to
    /// speech are included.
    pub fn resolve_speech(&self, channel_ref: &ChannelRef, speaker: &Author, text: &str) -> (Address, bool) {
        let (memberships, guild) = (&self.context.memberships, &channel_ref.guild);
        let names = memberships.names(guild);
        let sounds = memberships.sounds(&channel_ref.channel);
        let is_companion = |id: &str| memberships.is_in_guild(guild, id);
        let incoming = Incoming { sounds: sounds.as_ref(), is_spoken: true, ..Incoming::new(speaker, text) };
        let address = names.as_deref().map(|names| address::resolve(names, is_companion, &incoming)).unwrap_or_default();
        let names = names.as_deref().into_iter().chain(&sounds);
        (address, is_stop_phrase(text, names, self.context.settings.reply.all_stop_phrases()))
    }

    /// Classifies the words of a partial transcript.
    pub fn words_of_partial(&self, channel_ref: &ChannelRef, speaker: &Author, text: &str) -> Words {
        let (address, _) = self.resolve_speech(channel_ref, speaker, text);
        Words::of(text, Kind::Words, address.companions, self.word_lists(channel_ref), self.is_name(channel_ref))
    }

    /// The word lists for the language of a channel.
    pub fn word_lists(&self, channel_ref: &ChannelRef) -> &WordLists {
        let language = self.context.memberships.language(&channel_ref.channel);
        self.context.settings.speech.word_lists(language.as_deref())
    }

    /// Whether an utterance begins with a stop word.
    pub fn stop_word(&self, channel_ref: &ChannelRef, text: &str, lists: &WordLists) -> Stop {
        Stop::of(text, lists, self.is_name(channel_ref))
    }

    /// Whether a spoken word is the name of a companion.
    fn is_name(&self, channel_ref: &ChannelRef) -> impl Fn(&str) -> bool + use<> {
        let names = self.context.memberships.names(&channel_ref.guild);
        let sounds = self.context.memberships.sounds(&channel_ref.channel);
        move |name| names.as_deref().into_iter().chain(&sounds).any(|names| names.owner(name).is_some())
    }

    fn message_event(&self, channel_key: &ChannelKey, inbound: InboundMessage, replied: Option<Replied>) -> Option<Event> {
        let memberships = &self.context.memberships;
        let is_companion = |id: &str| memberships.is_in_guild(&channel_key.guild, id);
        let names = memberships.names(&channel_key.guild);
        let resolved = |mention| names.as_deref().map_or(mention, |names| address::resolve_mention(names, mention));
        let mentions: Vec<&str> = inbound.mentions.iter().map(|mention| resolved(&**mention)).collect();
        let present: Vec<CompanionId> =
            if inbound.to_all { memberships.present(&channel_key.channel).into_keys().collect() } else { Vec::new() };
        let addressing = Incoming {
            mentions: &mentions,
            reply_to: replied.as_ref().map(|replied| (&*replied.author, replied.role)),
            to_all_of: &present,
            is_spoken: inbound.modality == Modality::Voice,
            names_narrow: !channel_key.guild.is_direct(),
            ..Incoming::new(&inbound.from, inbound.own_words.as_ref().unwrap_or(&inbound.text))
        };
        if !address::admits(self.context.settings.gate.foreign_bots, is_companion, &addressing) {
            return None;
        }
        let address = names.as_deref().map(|names| address::resolve(names, is_companion, &addressing)).unwrap_or_default();
        let address = address.by(inbound.standing);
        let said_at = inbound.said_at.filter(|said_at| self.context.clock.now().since(*said_at) > LATE);
        let asks_to_stop = inbound.kind.is_none()
            && inbound.from.role == Role::Person
            && is_stop_phrase(addressing.text, names.as_deref(), self.context.settings.reply.all_stop_phrases());
        let InboundMessage { id, from, text, modality, lull_endpoint, kind, .. } = inbound;
        let message = Message { id, modality, lull_endpoint, asks_to_stop, address, kind, ..Message::new(from, text) };
        let (reply_to, quoted) = replied.map(|replied| (replied.seq, replied.quoted)).unwrap_or_default();
        let message = Message { quoted: quoted.map(Box::new), ..message };
        Some(Event::Said { message, reply_to, reply: None, said_at })
    }
}
