//! The way in: what a platform heard is resolved, accepted by the scribe, and only then handled.

use std::sync::Arc;

use super::kit::Kit;
use super::places::ScribePlace;
use super::scribe::{Accept, Accepted, Lost, Refused, Reply, ScribeMessage};
use crate::domain::address::{self, Heard};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::message::{Author, Message, Modality, Role};
use crate::journal::place::Place;

/// What a platform heard.
#[derive(Clone, Debug)]
pub struct Utterance {
    /// The platform's id of it, or the sender's own; the same again is the same message.
    pub id: Option<Arc<str>>,
    /// Who said it.
    pub from: Author,
    /// The words.
    pub text: Arc<str>,
    /// Typed or spoken.
    pub modality: Modality,
    /// A voice utterance that ends a lull.
    pub lull_endpoint: bool,
    /// Whom it mentions, by id or by a companion's name.
    pub mentions: Vec<Arc<str>>,
    /// The message that it answers, its author's id and role.
    pub reply_to: Option<(Seq, Arc<str>, Role)>,
    /// Whether it was said in a direct message.
    pub direct: bool,
}

/// The way in. Cheap to clone.
#[derive(Clone)]
pub struct Inbound {
    kit: Kit,
}

impl Inbound {
    /// The way into this system.
    pub fn new(kit: Kit) -> Self {
        Self { kit }
    }

    /// Accepts what was said: it is committed when this returns. None: it is not taken in at all (`gate.foreign_bots`).
    ///
    /// # Errors
    /// It was not accepted, or nobody knows whether it was; say it again with the same id.
    pub async fn say(&self, place: &Place, utterance: Utterance) -> Result<Option<Accepted>, Refused> {
        let Some(event) = self.said(place, &utterance) else { return Ok(None) };
        self.accept(place, event, utterance.id).await.map(Some)
    }

    /// Accepts any event from outside.
    ///
    /// # Errors
    /// As [`say`](Self::say).
    pub async fn accept(&self, place: &Place, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        let Some(scribe) = self.kit.directory.find(&ScribePlace()) else {
            return Err(Lost::Unavailable("the scribe is being restarted".into()).into());
        };
        let (reply, accepted) = Reply::awaited();
        let accept = Accept { place: place.clone(), at: None, event, id, reply };
        if scribe.cast(ScribeMessage::Accept(accept)).is_err() {
            return Err(Lost::Unavailable("the scribe is being restarted".into()).into());
        }
        accepted.await.unwrap_or(Err(Lost::Unknown.into()))
    }

    fn said(&self, place: &Place, utterance: &Utterance) -> Option<Event> {
        let residents = &self.kit.residents;
        let is_companion = |id: &str| residents.lives_in(&place.guild, id);
        let names = residents.names(&place.guild);
        let meant = |mention| names.as_deref().map_or(mention, |names| address::meant(names, mention));
        let mentions: Vec<&str> = utterance.mentions.iter().map(|mention| meant(&**mention)).collect();
        let present = if utterance.direct { residents.get(&place.channel) } else { None };
        let present: Vec<_> = present.into_iter().flat_map(|residence| residence.companions).collect();
        let heard = Heard {
            speaker: &utterance.from,
            text: &utterance.text,
            mentions: &mentions,
            reply_to: utterance.reply_to.as_ref().map(|(_, author, role)| (&**author, *role)),
            direct_to: &present,
        };
        if !address::admits(self.kit.settings.gate.foreign_bots, is_companion, &heard) {
            return None;
        }
        let address = names.as_deref().map(|names| address::resolve(names, is_companion, &heard)).unwrap_or_default();
        let message = Message {
            id: utterance.id.clone(),
            from: utterance.from.clone(),
            text: utterance.text.clone(),
            modality: utterance.modality,
            lull_endpoint: utterance.lull_endpoint,
            address,
        };
        Some(Event::Said { message, reply_to: utterance.reply_to.as_ref().map(|(seq, ..)| *seq), reply: None, said_at: None })
    }
}
