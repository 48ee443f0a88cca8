//! The way in: what was heard is resolved, accepted by the writer, and only then handled.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Accept, Accepted, Refused, WriteError, WriterMessage};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::send_to_writer;
use crate::domain::address::{self, Heard};
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Author, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;

/// So much of what was accepted for a channel may wait for it; with more, nothing is accepted for it until it has caught up.
const MOST_WAITING: usize = 4_096;

/// When to try again then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What is accepted so much later than it was said says when it was said.
const LATE: Duration = Duration::from_secs(2);

/// What somebody says.
#[derive(Clone, Debug)]
pub struct Speech {
    /// The platform's id of it, or the sender's own; the same again is the same message.
    pub id: Option<Arc<str>>,
    /// Who says it.
    pub from: Author,
    /// What a model reads.
    pub text: Arc<str>,
    /// What they really wrote, where that is not the text: names are looked for in this alone.
    pub own_words: Option<Arc<str>>,
    /// Typed or spoken.
    pub modality: Modality,
    /// A voice utterance that ends a lull.
    pub lull_endpoint: bool,
    /// Whom it mentions, by id or by a companion's name.
    pub mentions: Vec<Arc<str>>,
    /// What it answers.
    pub reply_to: Option<Replied>,
    /// It addresses all companions that are there, as in a direct message; outside of those, only the ones that it names, if it names any.
    pub to_all: bool,
    /// When it was said, where that is known better than by when it comes here.
    pub said_at: Option<Moment>,
}

/// A message that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replied {
    /// Its number, where it is on record.
    pub seq: Option<Seq>,
    /// Its author's id.
    pub author: Arc<str>,
    /// What its author is.
    pub role: Role,
}

/// The way in. Cheap to clone.
#[derive(Clone)]
pub struct Inbound {
    pub(super) context: ActorContext,
}

impl Inbound {
    /// The way into this system.
    pub fn new(context: ActorContext) -> Self {
        Self { context }
    }

    /// Accepts what is said: it is committed when this returns. None: it is not taken in at all (`gate.foreign_bots`).
    ///
    /// # Errors
    /// It was not accepted, or nobody knows whether it was; say it again with the same id.
    pub async fn say(&self, channel_key: &ChannelKey, speech: Speech) -> Result<Option<Accepted>, Refused> {
        let id = speech.id.clone();
        let Some(event) = self.said(channel_key, speech) else { return Ok(None) };
        self.accept(channel_key, event, id).await.map(Some)
    }

    /// Accepts any event from outside.
    ///
    /// # Errors
    /// As [`say`](Self::say).
    pub async fn accept(&self, channel_key: &ChannelKey, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        if self.context.directory.waiting(&ChannelActorKey(channel_key.channel.clone())) >= MOST_WAITING {
            return Err(Refused::Busy { retry_after: RETRY_AFTER });
        }
        let (reply, accepted) = Reply::awaited();
        let accept = Accept { channel_key: channel_key.clone(), at: None, event, id, reply };
        send_to_writer(&self.context, WriterMessage::Accept(accept))?;
        accepted.await.unwrap_or(Err(WriteError::Unknown.into()))
    }

    fn said(&self, channel_key: &ChannelKey, speech: Speech) -> Option<Event> {
        let memberships = &self.context.memberships;
        let is_companion = |id: &str| memberships.is_in_guild(&channel_key.guild, id);
        let names = memberships.names(&channel_key.guild);
        let meant = |mention| names.as_deref().map_or(mention, |names| address::meant(names, mention));
        let mentions: Vec<&str> = speech.mentions.iter().map(|mention| meant(&**mention)).collect();
        let present: Vec<CompanionId> =
            if speech.to_all { memberships.present(&channel_key.channel).into_keys().collect() } else { Vec::new() };
        let heard = Heard {
            speaker: &speech.from,
            text: speech.own_words.as_ref().unwrap_or(&speech.text),
            mentions: &mentions,
            reply_to: speech.reply_to.as_ref().map(|replied| (&*replied.author, replied.role)),
            to_all_of: &present,
        };
        if !address::admits(self.context.settings.gate.foreign_bots, is_companion, &heard) {
            return None;
        }
        let address = names.as_deref().map(|names| {
            let named = address::resolve(names, is_companion, &Heard { to_all_of: &[], ..heard });
            // In a guild the account that companions share carries a message to those whom it names.
            let is_for_some = !channel_key.guild.is_direct() && present.iter().any(|companion| named.includes(companion));
            if present.is_empty() || is_for_some { named } else { address::resolve(names, is_companion, &heard) }
        });
        let address = address.unwrap_or_default();
        let said_at = speech.said_at.filter(|said_at| self.context.clock.now().since(*said_at) > LATE);
        let Speech { id, from, text, modality, lull_endpoint, reply_to, .. } = speech;
        let message = Message { id, from, text, modality, lull_endpoint, address };
        Some(Event::Said { message, reply_to: reply_to.and_then(|replied| replied.seq), reply: None, said_at })
    }
}
