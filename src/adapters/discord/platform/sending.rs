//! Posts, edits and deletes messages. Errors of posting distinguish whether a part may have been posted.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use twilight_model::channel::message::MessageFlags;
use twilight_model::channel::message::component::{ButtonStyle, ComponentType};

use super::super::cache::WebhookTarget;
use super::super::names;
use super::super::outgoing;
use super::super::permissions::Need;
use super::super::refusals::code;
use super::super::rest::{Failed, Request};
use super::super::snowflake::{self, Snowflake};
use super::super::webhooks::Webhook;
use super::Discord;
use crate::domain::id::GuildId;
use crate::ports::chat_platform::{NotSent, Part};

/// The limit of attempts with a webhook that proves unusable, before the statement is retried later.
const WEBHOOKS_TRIED: usize = 2;
/// The limit of attempts to send a direct message with unknown outcome. After that, the caller looks it up.
const DIRECT_TRIES: u32 = 3;
/// The pause before the third attempt.
const DIRECT_PAUSE: Duration = Duration::from_secs(1);
/// After this time, a message must be looked up before it is sent again, because Discord may have forgotten its nonce.
const NONCE_HOLDS: Duration = Duration::from_secs(60);
/// Why a message cannot be edited: Discord lets only the webhook that posted it do so.
const OTHER_WEBHOOK: &str = "the message is gone, or was posted by a webhook that was deleted since; delete it in Discord";
/// The field for a companion's picture (Discord's documentation, "Webhook Resource", "Execute Webhook").
const PICTURE: &str = "avatar_url";

/// The fields used of a posted message. A response whose ids are not in the documented format is not from Discord, so the outcome of the part is
/// unknown.
#[derive(Deserialize)]
struct Posted {
    #[serde(deserialize_with = "snowflake::documented")]
    id: Snowflake,
    #[serde(deserialize_with = "snowflake::documented")]
    channel_id: Snowflake,
}

impl Discord {
    /// Posts with a companion's name and picture. An unusable webhook is replaced, because nothing was posted through it.
    pub(super) async fn send_by_webhook(
        &self,
        channel: Snowflake,
        part: &Part,
        rendered: &outgoing::Part,
    ) -> Result<Snowflake, NotSent> {
        let application = self.bot().await.map_err(failed_before_posting)?.application;
        let target = self.webhook_target(channel).await.map_err(failed_before_posting)?;
        let mut body = self.body(rendered);
        body["username"] = names::username(&part.name).into();
        if let Some(picture) = part.picture.as_deref() {
            body[PICTURE] = picture.into();
        }
        for tried in 1..=WEBHOOKS_TRIED {
            let webhook =
                self.webhooks.get_or_create(&self.rest, application, target.root).await.map_err(failed_before_posting)?;
            let posted: Posted = match self.rest.ask(Request::execute(&webhook, target.thread, body.clone())).await {
                Ok(posted) => posted,
                // After a webhook was moved to another channel, Discord does not find the thread in it.
                Err(Failed::Refused(refusal))
                    if refusal.is_webhook_gone() || (refusal.code == code::UNKNOWN_CHANNEL && tried < WEBHOOKS_TRIED) =>
                {
                    tracing::info!(%channel, webhook = %webhook.id, %refusal, "a webhook cannot be used any more; looking for another one");
                    self.webhooks.remove(target.root, webhook.id).await;
                    continue;
                }
                // If Discord rejects the picture, the statement is posted without it.
                Err(Failed::Refused(refusal))
                    if refusal.code == code::INVALID_BODY
                        && body.as_object_mut().and_then(|body| body.remove(PICTURE)).is_some() =>
                {
                    let companion = part.companion.as_str();
                    tracing::warn!(%channel, companion, %refusal, "Discord rejects the companion's picture; the statement is posted without it");
                    continue;
                }
                Err(failed) => return Err(not_sent(failed, Need::Webhooks)),
            };
            if posted.channel_id == channel {
                return Ok(posted.id);
            }
            self.delete_posted(target, &webhook, posted).await;
        }
        Err(NotSent::Later { after: None, detail: "the channel's webhooks are deleted as fast as they are created".to_owned() })
    }

    /// Deletes a statement that was posted in another channel because the webhook had been moved there.
    async fn delete_posted(&self, target: WebhookTarget, webhook: &Webhook, posted: Posted) {
        self.webhooks.remove(target.root, webhook.id).await;
        let deleted = self.rest.send(&Request::change_webhook_message(webhook, None, posted.id, None)).await;
        let (channel, found) = (target.root, posted.channel_id);
        match deleted {
            Ok(_) => {
                tracing::warn!(%channel, %found, "the webhook was moved to another channel; the message there was deleted")
            }
            Err(error) => {
                tracing::warn!(%channel, %found, %error, "the webhook was moved to another channel, and the message there could not be deleted");
            }
        }
    }

    /// Posts a text as the bot, without mentions. Texts with the same nonce are posted only once.
    ///
    /// # Errors
    /// See [`NotSent`].
    pub async fn post_as_bot(&self, channel: Snowflake, text: &str, nonce: &str) -> Result<(), NotSent> {
        let part = outgoing::Part { content: text.to_owned(), mentions: Vec::new() };
        self.send_directly(channel, &part, nonce).await.map(drop)
    }

    /// Posts a text with buttons below it: the label of each, and its custom id.
    pub async fn post_with_buttons(
        &self,
        channel: Snowflake,
        text: &str,
        buttons: &[(String, String)],
        nonce: &str,
    ) -> Result<(), NotSent> {
        let button = |(label, id): &(String, String)| json!({ "type": ComponentType::Button, "style": ButtonStyle::Secondary, "label": label, "custom_id": id });
        let buttons: Vec<_> = buttons.iter().map(button).collect();
        let buttons = json!([{ "type": ComponentType::ActionRow, "components": buttons }]);
        self.post_extended(channel, text, ("components", buttons), nonce).await
    }

    /// Posts a text with one more field.
    pub(super) async fn post_extended(
        &self,
        channel: Snowflake,
        text: &str,
        (name, value): (&str, Value),
        nonce: &str,
    ) -> Result<(), NotSent> {
        let mut body = self.body(&outgoing::Part { content: text.to_owned(), mentions: Vec::new() });
        body[name] = value;
        self.send_body_directly(channel, body, nonce).await.map(drop)
    }

    /// Posts as the bot. Discord deduplicates by nonce, which it remembers for some minutes. Therefore a part with unknown outcome is sent again at
    /// once; all attempts together take less time than that.
    pub(super) async fn send_directly(
        &self,
        channel: Snowflake,
        rendered: &outgoing::Part,
        nonce: &str,
    ) -> Result<Snowflake, NotSent> {
        self.send_body_directly(channel, self.body(rendered), nonce).await
    }

    async fn send_body_directly(&self, channel: Snowflake, mut body: Value, nonce: &str) -> Result<Snowflake, NotSent> {
        body["nonce"] = short_nonce(nonce).into();
        body["enforce_nonce"] = true.into();
        let (mut unknown, began) = (None, Instant::now());
        for tried in 1..=DIRECT_TRIES {
            let request = Request::create_message(channel, body.clone());
            match (self.rest.ask::<Posted>(request).await, unknown) {
                (Ok(posted), _) => return Ok(posted.id),
                (Err(failed @ Failed::Unknown { .. }), _) => unknown = Some(failed),
                // An earlier attempt may have arrived, so its outcome is returned.
                (Err(_), Some(earlier)) => return Err(not_sent(earlier, Need::Send)),
                (Err(failed), None) => return Err(not_sent(failed, Need::Send)),
            }
            if began.elapsed() > NONCE_HOLDS {
                break;
            }
            if tried == 2 {
                sleep(DIRECT_PAUSE).await;
            }
        }
        Err(unknown.map_or_else(|| NotSent::Refused("it was never sent".to_owned()), |failed| not_sent(failed, Need::Send)))
    }

    /// Edits a message that was posted by [`Discord::post`]. Deletes it if `text` is `None`.
    pub(super) async fn change_posted(
        &self,
        guild: &GuildId,
        channel: Snowflake,
        message: Snowflake,
        text: Option<&str>,
        notice: Option<&str>,
    ) -> Result<(), NotSent> {
        let nothing = || NotSent::Refused("nothing in the text is visible".to_owned());
        let edited = text.map(|text| self.rendered_part(channel, text, notice).ok_or_else(nothing)).transpose()?;
        let edited = edited.map(|rendered| self.body(&rendered));
        let by_bot = Request::change_message(channel, message, edited.clone());
        if Snowflake::of_direct_guild(guild).is_some() {
            return changed(self.rest.send(&by_bot).await, edited.is_none());
        }
        let application = self.bot().await.map_err(failed_before_posting)?.application;
        let found = async {
            let target = self.webhook_target(channel).await?;
            Ok((target, self.webhooks.get(&self.rest, application, target.root).await?))
        };
        let (target, webhook) = match found.await {
            // If the channel is gone, its messages are gone, too.
            Err(Failed::Refused(refusal)) if edited.is_none() && refusal.code == code::UNKNOWN_CHANNEL => return Ok(()),
            found => found.map_err(failed_before_posting)?,
        };
        if let Some(webhook) = webhook {
            let request = Request::change_webhook_message(&webhook, target.thread, message, edited.clone());
            match self.rest.send(&request).await {
                Err(Failed::Refused(refusal)) if refusal.code == code::UNKNOWN_MESSAGE => {}
                answer => return changed(answer, edited.is_none()),
            }
        }
        // An earlier webhook may have posted the message. Then the bot can only delete it, and only with the permission to manage messages.
        let deleted = if edited.is_none() { Some(self.rest.send(&by_bot).await) } else { None };
        match deleted.map(|answer| changed(answer, true)) {
            None | Some(Err(NotSent::Refused(_) | NotSent::Unpostable(_))) => Err(NotSent::Refused(OTHER_WEBHOOK.to_owned())),
            Some(answer) => answer,
        }
    }

    /// The common fields of all messages: the content, and the allowed mentions.
    fn body(&self, rendered: &outgoing::Part) -> Value {
        let allowed_mentions = json!({ "parse": [], "users": rendered.mentions, "replied_user": false });
        let mut body = json!({ "content": rendered.content, "allowed_mentions": allowed_mentions });
        if !self.embed_links {
            body["flags"] = json!(MessageFlags::SUPPRESS_EMBEDS);
        }
        body
    }
}

/// The result of an edit or a deletion. Deleting a message that is gone succeeds.
fn changed<T>(answer: Result<T, Failed>, deletes: bool) -> Result<(), NotSent> {
    match answer {
        Ok(_) => Ok(()),
        Err(Failed::Refused(refusal)) if deletes && refusal.code == code::UNKNOWN_MESSAGE => Ok(()),
        Err(failed) => Err(not_sent(failed, Need::Send)),
    }
}

/// Converts the error of a request made before posting.
fn failed_before_posting(failed: Failed) -> NotSent {
    match failed {
        // Whether the request succeeded or not, nothing was posted.
        Failed::Unknown { detail, .. } => NotSent::Later { after: None, detail },
        failed => not_sent(failed, Need::Webhooks),
    }
}

/// Converts the error of posting: the part was not posted, or its outcome is unknown.
fn not_sent(failed: Failed, need: Need) -> NotSent {
    match failed {
        Failed::NotNow { after, detail } => NotSent::Later { after, detail },
        Failed::Unknown { detail, within } => NotSent::Unknown { detail, within },
        Failed::Refused(refusal) if refusal.blocks_all_messages() => NotSent::Unpostable(refusal.explain(need)),
        Failed::Refused(refusal) => NotSent::Refused(refusal.explain(need)),
    }
}

/// Shortens a nonce to at most 25 characters, as Discord requires: the FNV-1a hash (128 bits) of the text, in base 36.
fn short_nonce(nonce: &str) -> String {
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
    fn a_nonce_is_short_stable_and_unique() {
        let nonce = |channel: u64, ticket: u64, part: u64| short_nonce(&format!("discord:{channel}#{ticket}.{part}"));

        let all: BTreeSet<String> =
            (0..20_u64).flat_map(|n| [nonce(n, 1, 0), nonce(1, n + 50, 0), nonce(1, 1, n + 50)]).collect();

        assert_eq!(all.len(), 60);
        assert!(all.iter().all(|nonce| (1..=25).contains(&nonce.len())), "{all:?}");
        assert_eq!(nonce(1_300_000_000_000_000_000, 7, 0), nonce(1_300_000_000_000_000_000, 7, 0));
    }
}
