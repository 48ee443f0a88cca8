//! Posts a part, and says whether it may have been posted if it is not known.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::super::cache::WebhookTarget;
use super::super::names;
use super::super::outgoing::{self, SUPPRESS_EMBEDS};
use super::super::permissions::Need;
use super::super::refusals::code;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::webhooks::Webhook;
use super::Discord;
use crate::ports::chat_platform::{NotSent, Part};

/// A webhook that is gone is replaced so often before a statement waits.
const WEBHOOKS_TRIED: usize = 2;
/// A direct message of which it is not known whether it arrived is sent so often in all, before it is looked for.
const DIRECT_TRIES: u32 = 3;
/// The pause before it is sent the third time.
const DIRECT_PAUSE: Duration = Duration::from_secs(1);
/// After so long it is not sent again before it was looked for: Discord may have forgotten its nonce by then.
const NONCE_HOLDS: Duration = Duration::from_secs(60);
/// What a picture is called in a request (Discord's documentation, "Webhook Resource", "Execute Webhook").
const PICTURE: &str = "avatar_url";

/// What is read of a message that was posted.
#[derive(Deserialize)]
struct Posted {
    id: Snowflake,
    channel_id: Snowflake,
}

impl Discord {
    /// Posts under a companion's name, with its picture. A webhook that is gone is replaced, since nothing was posted through it.
    pub(super) async fn send_by_webhook(
        &self,
        channel: Snowflake,
        part: &Part,
        words: &outgoing::Part,
    ) -> Result<Snowflake, NotSent> {
        let application = self.bot().await.map_err(before)?.application;
        let place = self.place(channel).await.map_err(before)?;
        let mut body = self.body(words);
        body.insert("username".to_owned(), names::username(&part.name).into());
        body.extend(part.picture.as_deref().map(|picture| (PICTURE.to_owned(), picture.into())));
        for tried in 1..=WEBHOOKS_TRIED {
            let webhook = self.webhooks.of(&self.rest, application, place.root).await.map_err(before)?;
            let posted: Posted = match self.rest.ask(Request::execute(&webhook, place.thread, Value::Object(body.clone()))).await
            {
                Ok(posted) => posted,
                // A thread is not there either for a webhook that somebody moved to another channel.
                Err(Failed::Refused(refusal))
                    if refusal.ends_webhook() || (refusal.code == code::UNKNOWN_CHANNEL && tried < WEBHOOKS_TRIED) =>
                {
                    tracing::info!(%channel, webhook = %webhook.id, %refusal, "a webhook cannot be used any more; it is looked for again");
                    self.webhooks.drop_one(place.root, webhook.id).await;
                    continue;
                }
                // A picture that Discord does not take is no reason to be silent.
                Err(Failed::Refused(refusal)) if refusal.code == code::INVALID_BODY && body.remove(PICTURE).is_some() => {
                    tracing::warn!(%channel, companion = part.companion.as_str(), %refusal, "the companion's words are posted without its picture");
                    continue;
                }
                Err(failed) => return Err(after(failed, Need::Webhooks)),
            };
            if posted.channel_id == channel {
                return Ok(posted.id);
            }
            self.delete_posted(place, &webhook, posted).await;
        }
        Err(NotSent::Later { after: None, detail: "the channel's webhooks go as fast as they are made".to_owned() })
    }

    /// Somebody moved the webhook to another channel, where the words do not belong.
    async fn delete_posted(&self, place: WebhookTarget, webhook: &Webhook, posted: Posted) {
        self.webhooks.drop_one(place.root, webhook.id).await;
        let deleted = self.rest.tell(&Request::delete_message(webhook, posted.id)).await;
        let (channel, found) = (place.root, posted.channel_id);
        match deleted {
            Ok(_) => {
                tracing::warn!(%channel, %found, "the webhook was moved to another channel; what it posted there was taken back")
            }
            Err(error) => {
                tracing::warn!(%channel, %found, %error, "the webhook was moved to another channel, and what it posted there stays");
            }
        }
    }

    /// Posts as the bot. The same part twice is one message, as long as Discord remembers its nonce: some minutes. So one that may have
    /// arrived is sent again at once; all attempts together take less than that.
    pub(super) async fn send_directly(
        &self,
        channel: Snowflake,
        words: &outgoing::Part,
        nonce: &str,
    ) -> Result<Snowflake, NotSent> {
        let mut body = self.body(words);
        body.insert("nonce".to_owned(), short(nonce).into());
        body.insert("enforce_nonce".to_owned(), true.into());
        let (mut unknown, began) = (None, Instant::now());
        for tried in 1..=DIRECT_TRIES {
            let request = Request::create_message(channel, Value::Object(body.clone()));
            match (self.rest.ask::<Posted>(request).await, unknown) {
                (Ok(posted), _) => return Ok(posted.id),
                (Err(failed @ Failed::Unknown { .. }), _) => unknown = Some(failed),
                // An earlier attempt may have arrived, whatever this one came to.
                (Err(_), Some(earlier)) => return Err(after(earlier, Need::Send)),
                (Err(failed), None) => return Err(after(failed, Need::Send)),
            }
            if began.elapsed() > NONCE_HOLDS {
                break;
            }
            if tried == 2 {
                sleep(DIRECT_PAUSE).await;
            }
        }
        Err(unknown.map_or_else(|| NotSent::Refused("it was never sent".to_owned()), |failed| after(failed, Need::Send)))
    }

    /// What every message has: its content, and whom it may call.
    fn body(&self, words: &outgoing::Part) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("content".to_owned(), words.content.as_str().into());
        body.insert("allowed_mentions".to_owned(), json!({ "parse": [], "users": words.calls, "replied_user": false }));
        if !self.embed_links {
            body.insert("flags".to_owned(), SUPPRESS_EMBEDS.into());
        }
        body
    }
}

/// Why a part was not sent, if what went wrong was before it.
fn before(failed: Failed) -> NotSent {
    match failed {
        // Whatever it did, it posted nothing.
        Failed::Unknown { detail, .. } => NotSent::Later { after: None, detail },
        failed => after(failed, Need::Webhooks),
    }
}

/// Why a part was not sent, or may not have been.
fn after(failed: Failed, need: Need) -> NotSent {
    match failed {
        Failed::NotNow { after, detail } => NotSent::Later { after, detail },
        Failed::Unknown { detail, within } => NotSent::Unknown { detail, within },
        Failed::Refused(refusal) if refusal.bars_all_words() => NotSent::Unpostable(refusal.lacking(need)),
        Failed::Refused(refusal) => NotSent::Refused(refusal.lacking(need)),
    }
}

/// A nonce as Discord takes it, of 25 characters at most: the number of a text (FNV-1a of 128 bits) in base 36.
fn short(nonce: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut number = nonce.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    let mut short = String::new();
    while number > 0 {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        short.extend(char::from_digit(digit, 36));
        number /= 36;
    }
    short
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_nonce_is_short_enough_always_the_same_and_nobody_elses() {
        let of = |channel: u64, ticket: u64, part: u64| short(&format!("discord:{channel}#{ticket}.{part}"));

        let all: BTreeSet<String> = (0..20_u64).flat_map(|n| [of(n, 1, 0), of(1, n + 50, 0), of(1, 1, n + 50)]).collect();

        assert_eq!(all.len(), 60);
        assert!(all.iter().all(|nonce| (1..=25).contains(&nonce.len())), "{all:?}");
        assert_eq!(of(1_300_000_000_000_000_000, 7, 0), of(1_300_000_000_000_000_000, 7, 0));
    }
}
