//! Manages one webhook per channel. It is created when first needed, and found again by the id of the owning application.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::Mutex as AsyncMutex;

use super::rest::{Failed, Request, Rest};
use super::snowflake::Snowflake;

/// The webhook's name in the channel's settings. Companions post under their own names.
const NAME: &str = "tertulia";

/// A webhook with its token.
#[derive(Clone)]
pub struct Webhook {
    pub id: Snowflake,
    pub token: SecretString,
}

/// The cached webhooks, by channel.
#[derive(Default)]
pub struct Webhooks(Mutex<BTreeMap<Snowflake, Arc<Entry>>>);

#[derive(Default)]
struct Entry {
    webhook: AsyncMutex<Option<Webhook>>,
    /// Whether Discord reported a change since the webhook was fetched.
    is_stale: AtomicBool,
}

/// A webhook in Discord's response.
#[derive(Deserialize)]
struct Listed {
    id: Snowflake,
    application_id: Option<Snowflake>,
    token: Option<SecretString>,
}

impl Webhooks {
    /// Returns the webhook of a channel (not of a thread): the cached one, or else our application's oldest one there, or else a new one.
    ///
    /// Calls for the same channel run one after the other, so that concurrent first calls create only one webhook.
    ///
    /// # Errors
    /// Returns an error if Discord refuses to list or create webhooks in the channel. After `Unknown`, a webhook may have been created; the next
    /// call finds it.
    pub async fn get_or_create(&self, rest: &Rest, application: Snowflake, channel: Snowflake) -> Result<Webhook, Failed> {
        let entry = self.entry(channel);
        let mut cached = entry.webhook.lock().await;
        if let Some(webhook) = entry.find(&mut cached, rest, application, channel).await? {
            return Ok(webhook);
        }
        let created: Listed = rest.ask(Request::create_webhook(channel, NAME)).await?;
        let webhook = created.usable().ok_or_else(|| {
            let detail = "Discord created a webhook without a token".to_owned();
            Failed::Unknown { detail, within: Duration::ZERO }
        })?;
        Ok(cached.insert(webhook).clone())
    }

    /// Returns the webhook of a channel, if it exists. Creates none.
    ///
    /// # Errors
    /// Returns an error if Discord refuses to list webhooks in the channel.
    pub async fn get(&self, rest: &Rest, application: Snowflake, channel: Snowflake) -> Result<Option<Webhook>, Failed> {
        let entry = self.entry(channel);
        let mut cached = entry.webhook.lock().await;
        entry.find(&mut cached, rest, application, channel).await
    }

    /// The id of a channel's webhook, if it is cached.
    pub async fn cached_id(&self, channel: Snowflake) -> Option<Snowflake> {
        self.entry(channel).webhook.lock().await.as_ref().map(|webhook| webhook.id)
    }

    /// Removes a webhook from the cache, because it is no longer usable.
    pub async fn remove(&self, channel: Snowflake, webhook: Snowflake) {
        let entry = self.entry(channel);
        let mut cached = entry.webhook.lock().await;
        // Another task may have cached a new one meanwhile.
        if cached.as_ref().is_some_and(|cached| cached.id == webhook) {
            *cached = None;
        }
    }

    /// Marks a channel's webhook as stale, because Discord reported a change. It is fetched again when next needed. The entry and its lock stay, so
    /// that a call in progress and a later one cannot create two webhooks.
    pub fn invalidate(&self, channel: Snowflake) {
        if let Some(entry) = self.0.lock().get(&channel) {
            entry.is_stale.store(true, Ordering::Relaxed);
        }
    }

    /// Removes a deleted channel.
    pub fn remove_channel(&self, channel: Snowflake) {
        self.0.lock().remove(&channel);
    }

    fn entry(&self, channel: Snowflake) -> Arc<Entry> {
        Arc::clone(self.0.lock().entry(channel).or_default())
    }
}

impl Entry {
    /// Returns the cached webhook, or else our application's oldest one in the channel.
    async fn find(
        &self,
        cached: &mut Option<Webhook>,
        rest: &Rest,
        application: Snowflake,
        channel: Snowflake,
    ) -> Result<Option<Webhook>, Failed> {
        if self.is_stale.swap(false, Ordering::Relaxed) {
            *cached = None;
        }
        if cached.is_none() {
            let listed: Vec<Listed> = rest.ask(Request::webhooks(channel)).await?;
            let own = listed.into_iter().filter(|listed| listed.application_id == Some(application));
            *cached = own.filter_map(Listed::usable).min_by_key(|webhook| webhook.id);
        }
        Ok(cached.clone())
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
