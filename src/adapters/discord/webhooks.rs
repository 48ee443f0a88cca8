//! One webhook per channel, made when it is first needed and found again by our application's id.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::Mutex as Turn;

use super::rest::{Failed, Request, Rest};
use super::snowflake::Snowflake;

/// What it is called in the channel's settings; companions speak under their own names.
const NAME: &str = "tertulia";

/// A webhook that can be spoken through.
#[derive(Clone)]
pub struct Webhook {
    /// Its id.
    pub id: Snowflake,
    /// What it can be used with.
    pub token: SecretString,
}

/// The webhooks that are known, by channel.
#[derive(Default)]
pub struct Webhooks(Mutex<BTreeMap<Snowflake, Arc<Place>>>);

/// What is known of a channel's webhook.
#[derive(Default)]
struct Place {
    known: Turn<Option<Webhook>>,
    /// Something changed since it was found.
    is_stale: AtomicBool,
}

/// A webhook, as Discord lists it.
#[derive(Deserialize)]
struct Listed {
    id: Snowflake,
    #[serde(default)]
    application_id: Option<Snowflake>,
    #[serde(default)]
    token: Option<SecretString>,
}

impl Webhooks {
    /// The webhook of a channel (not of a thread): the known one, else the oldest that our application made there, else a new one.
    ///
    /// One asker at a time per channel, so that several first ones make only one.
    ///
    /// # Errors
    /// Discord does not list or make webhooks there. `Unknown`: one may have been made, and is found the next time.
    pub async fn of(&self, rest: &Rest, application: Snowflake, channel: Snowflake) -> Result<Webhook, Failed> {
        let place = self.place(channel);
        let mut known = place.known.lock().await;
        if let Some(webhook) = place.find(&mut known, rest, application, channel).await? {
            return Ok(webhook);
        }
        let made: Listed = rest.ask(Request::create_webhook(channel, NAME)).await?;
        let webhook = made.usable().ok_or_else(|| {
            let detail = "Discord made a webhook and gave no token for it".to_owned();
            Failed::Unknown { detail, within: Duration::ZERO }
        })?;
        Ok(known.insert(webhook).clone())
    }

    /// The webhook of a channel, if there is one already: none is made.
    ///
    /// # Errors
    /// Discord does not list webhooks there.
    pub async fn existing(&self, rest: &Rest, application: Snowflake, channel: Snowflake) -> Result<Option<Webhook>, Failed> {
        let place = self.place(channel);
        let mut known = place.known.lock().await;
        place.find(&mut known, rest, application, channel).await
    }

    /// The id of a channel's webhook, if it is known.
    pub async fn known(&self, channel: Snowflake) -> Option<Snowflake> {
        self.place(channel).known.lock().await.as_ref().map(|webhook| webhook.id)
    }

    /// A webhook is not to be used any more.
    pub async fn drop_one(&self, channel: Snowflake, webhook: Snowflake) {
        let place = self.place(channel);
        let mut known = place.known.lock().await;
        // Somebody else may have found a new one meanwhile.
        if known.as_ref().is_some_and(|known| known.id == webhook) {
            *known = None;
        }
    }

    /// Something changed about the webhooks of a channel: they are looked for again. Whoever does so already has the turn still, so that
    /// nobody makes a second one beside it.
    pub fn changed(&self, channel: Snowflake) {
        if let Some(place) = self.lock().get(&channel) {
            place.is_stale.store(true, Ordering::Relaxed);
        }
    }

    /// A channel is gone.
    pub fn forget(&self, channel: Snowflake) {
        self.lock().remove(&channel);
    }

    fn place(&self, channel: Snowflake) -> Arc<Place> {
        Arc::clone(self.lock().entry(channel).or_default())
    }

    // Nothing in there is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Snowflake, Arc<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The known one, else the oldest that our application made there.
    async fn find(
        &self,
        known: &mut Option<Webhook>,
        rest: &Rest,
        application: Snowflake,
        channel: Snowflake,
    ) -> Result<Option<Webhook>, Failed> {
        if self.is_stale.swap(false, Ordering::Relaxed) {
            *known = None;
        }
        if known.is_none() {
            let listed: Vec<Listed> = rest.ask(Request::webhooks(channel)).await?;
            let own = listed.into_iter().filter(|listed| listed.application_id == Some(application));
            *known = own.filter_map(Listed::usable).min_by_key(|webhook| webhook.id);
        }
        Ok(known.clone())
    }
}

impl Listed {
    fn usable(self) -> Option<Webhook> {
        Some(Webhook { id: self.id, token: self.token? })
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.id)
    }
}
