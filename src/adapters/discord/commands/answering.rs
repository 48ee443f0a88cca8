//! Sends answers to interactions: within three seconds, or as a deferred response with a later answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use twilight_model::channel::message::component::{ButtonStyle, ComponentType};
use twilight_model::channel::message::{AllowedMentions, MessageFlags};
use twilight_model::http::interaction::InteractionResponseType::{
    self, ApplicationCommandAutocompleteResult, ChannelMessageWithSource, DeferredChannelMessageWithSource,
    DeferredUpdateMessage, Modal, UpdateMessage,
};

use super::interaction::Handle;
use super::text::Text;
use super::words::fitted;
use super::{Answer, CommandHandler};
use crate::rest::{Failed, Request};
use crate::snowflake::Snowflake;
use crate::wire::WithId;

/// The time limit of the first answer. Discord waits three seconds (Discord's documentation, "Receiving and Responding", "Responding to an
/// Interaction"); a later answer has no effect.
const WAITS: Duration = Duration::from_millis(2_900);
/// The timeout of a request. After it, the request is repeated; Discord's answer then shows whether the first request arrived.
const TRY: Duration = Duration::from_millis(900);
/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts to send a deferred answer, for which time is less critical.
const LATER_TRIES: u32 = 5;
/// How long Discord accepts a deferred answer (Discord's documentation, "Receiving and Responding", "Followup Messages").
const TAKEN_FOR: Duration = Duration::from_secs(15 * 60);

/// Discord's error code for an interaction that was already answered.
const ALREADY_ANSWERED: u32 = 40_060;
/// Attempts to look up the message of an answer.
const LOOKS: u32 = 3;

/// A companion to choose from: `name` is shown, `value` is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub name: String,
    pub value: String,
}

/// The result of a first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstAnswer {
    /// The user sees the answer.
    Arrived,
    /// Another process answered, or this program did before it was restarted.
    AlreadyAnswered,
    /// Discord refused the answer, or has not confirmed it in time.
    Lost,
}

/// A message that only the user of the command sees.
pub(super) fn message(text: &Text, language: &str) -> Value {
    let (flags, nobody) = (MessageFlags::EPHEMERAL, AllowedMentions::default());
    let text = fitted(&text.in_language(language));
    response(ChannelMessageWithSource, &json!({ "content": text, "flags": flags, "allowed_mentions": nobody }))
}

/// The message of an answer, with its embeds, buttons and menus. It may replace the message with the button or menu that was used; refusals do not.
pub(super) fn of(answer: &Answer, handle: &Handle, replaces: bool) -> Value {
    if let Answer::Form { form, .. } = answer {
        return response(Modal, form);
    }
    let mut message = message(answer.text(), &handle.language);
    if replaces && matches!(answer, Answer::Rich { .. }) {
        message["type"] = json!(UpdateMessage);
    }
    message["data"]["components"] = components(answer, handle);
    message["data"]["embeds"] = json!(embeds(answer));
    message
}

fn embeds(answer: &Answer) -> &[Value] {
    if let Answer::Rich { embeds, .. } = answer { embeds } else { &[] }
}

fn components(answer: &Answer, handle: &Handle) -> Value {
    if let Answer::Rich { components, .. } = answer {
        return json!(components);
    }
    let Answer::Question { button, id, .. } = answer else { return json!([]) };
    let (id, label) = (format!("{id}{}", handle.id), button.in_language(&handle.language));
    let button = json!({ "type": ComponentType::Button, "style": ButtonStyle::Danger, "label": label, "custom_id": id });
    json!([{ "type": ComponentType::ActionRow, "components": [button] }])
}

/// A deferred response that only the user of the command sees. It may replace the message with the button or menu that was used.
pub(super) fn deferred(replaces: bool) -> Value {
    if replaces {
        return json!({ "type": DeferredUpdateMessage });
    }
    response(DeferredChannelMessageWithSource, &json!({ "flags": MessageFlags::EPHEMERAL }))
}

/// A deferred response that all people in the channel see.
pub(super) fn deferred_for_all() -> Value {
    json!({ "type": DeferredChannelMessageWithSource })
}

/// A message that only the user of the command sees, with a list to choose from.
pub(super) fn list(text: &Text, language: &str, name: &str, choices: &[Choice]) -> Value {
    let options: Vec<_> = choices.iter().map(|choice| json!({ "label": choice.name, "value": choice.value })).collect();
    let list = json!({ "type": ComponentType::TextSelectMenu, "custom_id": name, "options": options });
    let mut message = message(text, language);
    message["data"]["components"] = json!([{ "type": ComponentType::ActionRow, "components": [list] }]);
    message
}

pub(super) fn choices(choices: &[Choice]) -> Value {
    let choices: Vec<_> = choices.iter().map(|choice| json!({ "name": choice.name, "value": choice.value })).collect();
    response(ApplicationCommandAutocompleteResult, &json!({ "choices": choices }))
}

fn response(kind: InteractionResponseType, data: &Value) -> Value {
    json!({ "type": kind, "data": data })
}

impl CommandHandler {
    /// Sends the first answer to an interaction that arrived at `since`.
    pub(super) async fn answer(&self, handle: &Handle, body: &Value, since: Instant) -> FirstAnswer {
        let by = since + WAITS;
        let mut has_tried = false;
        while Instant::now() < by {
            let request = Request::answer(handle.id, &handle.token, body.clone());
            let tried = timeout_at(by.min(Instant::now() + TRY), self.discord.rest().send(&request)).await;
            let why = match tried {
                Ok(Ok(_)) => return FirstAnswer::Arrived,
                Ok(Err(Failed::Refused(refusal))) if refusal.code == ALREADY_ANSWERED => {
                    return if has_tried { FirstAnswer::Arrived } else { FirstAnswer::AlreadyAnswered };
                }
                Ok(Err(Failed::Refused(refusal))) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "an answer to a command came too late or was refused");
                    return FirstAnswer::Lost;
                }
                Ok(Err(Failed::NotNow { after, detail })) => {
                    // The request was not processed.
                    let after = after.unwrap_or(PAUSE).max(PAUSE);
                    if Instant::now() + after >= by {
                        tracing::debug!(interaction = %handle.id, %detail, "a command cannot be answered in time");
                        return FirstAnswer::Lost;
                    }
                    sleep(after).await;
                    continue;
                }
                Ok(Err(Failed::Unknown { detail, .. })) => detail,
                Err(_) => "no answer in time".to_owned(),
            };
            tracing::debug!(interaction = %handle.id, %why, "a command is answered again, because it is unknown whether the answer arrived");
            has_tried = true;
            sleep(PAUSE).await;
        }
        FirstAnswer::Lost
    }

    /// The id of the message that a deferred response becomes. `None` if the lookup fails.
    pub(super) async fn message_of(&self, handle: &Handle) -> Option<Snowflake> {
        for tried in 1..=LOOKS {
            let request = Request::original_answer(handle.application, handle.id, &handle.token);
            match self.discord.rest().ask::<WithId>(request).await {
                Ok(original) => return Some(original.id),
                Err(Failed::Refused(refusal)) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "the message of an answer does not exist");
                    return None;
                }
                Err(Failed::NotNow { after, .. }) => sleep(after.unwrap_or_default().max(PAUSE * tried)).await,
                Err(Failed::Unknown { .. }) => sleep(PAUSE * tried).await,
            }
        }
        None
    }

    /// Sends the answer after a deferred response. Returns whether it arrived. A refusal that `replaces` a menu leaves its buttons and lists.
    pub(super) async fn edit_answer(&self, handle: &Handle, answer: &Answer, language: &str, replaces: bool) -> bool {
        let text = answer.text().in_language(language);
        // Links in text by other people get no preview under the bot's name.
        let embeds = embeds(answer);
        let flags = if embeds.is_empty() { MessageFlags::SUPPRESS_EMBEDS } else { MessageFlags::empty() };
        let mut body = json!({ "content": fitted(&text), "allowed_mentions": AllowedMentions::default(), "flags": flags });
        if !replaces || matches!(answer, Answer::Rich { .. }) {
            body["components"] = components(answer, handle);
        }
        if !embeds.is_empty() {
            body["embeds"] = json!(embeds);
        }
        for tried in 1..=LATER_TRIES {
            let request = Request::edit_answer(handle.application, handle.id, &handle.token, body.clone(), answer.file());
            // The request is idempotent: it sets the text of the same message.
            let after = match self.discord.rest().send(&request).await {
                Ok(_) => return true,
                Err(Failed::Refused(refusal)) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "a deferred answer was refused");
                    return false;
                }
                Err(Failed::NotNow { after, .. }) => after.unwrap_or_default(),
                Err(Failed::Unknown { .. }) => Duration::ZERO,
            };
            let wait = after.max(PAUSE * 10 * tried);
            if self.discord.now().since(handle.id.time()).saturating_add(wait) > TAKEN_FOR {
                break;
            }
            sleep(wait).await;
        }
        tracing::warn!(interaction = %handle.id, "a deferred answer could not be sent; the person still waits for it");
        false
    }
}
