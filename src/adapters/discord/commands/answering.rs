//! Answers interactions: within three seconds, or that the answer is to come, and then that.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::Desk;
use super::interaction::Handle;
use super::words::fitted;
use crate::adapters::discord::outgoing::SUPPRESS_EMBEDS;
use crate::adapters::discord::rest::{Failed, Request};
use crate::adapters::discord::snowflake::Snowflake;

/// Discord waits three seconds for the first answer (Discord's documentation, "Receiving and Responding", "Responding to an Interaction");
/// what reaches it later does nothing.
const WAITS: Duration = Duration::from_millis(2_900);
/// A request that takes longer is made again: the second one is told if the first arrived.
const TRY: Duration = Duration::from_millis(900);
/// Between two requests that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// An answer that was to come is tried so often. Nobody waits for it by the second.
const LATER_TRIES: u32 = 5;
/// For so long Discord takes the answer that was to come (Discord's documentation, "Receiving and Responding", "Followup Messages").
const TAKEN_FOR: Duration = Duration::from_secs(15 * 60);

/// Discord's code for an interaction that was answered before.
const ALREADY_ANSWERED: u32 = 40_060;
/// Only whoever asked sees the answer.
const EPHEMERAL: u32 = 1 << 6;
const MESSAGE: u8 = 4;
const MESSAGE_TO_COME: u8 = 5;
const CHOICES: u8 = 8;
/// Discord's documentation, "Component Reference", "Component Types".
const ACTION_ROW: u8 = 1;
const STRING_SELECT: u8 = 3;
/// The message of an answer is asked for so often.
const LOOKS: u32 = 3;

/// One of the companions to choose from: what is shown, what is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub name: String,
    pub value: String,
}

/// The message that an answer is.
#[derive(Deserialize)]
struct Original {
    id: Snowflake,
}

/// What became of a first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// They see it.
    Yes,
    /// Somebody else has answered: another process, or this one before it was started anew.
    Answered,
    /// They do not, and never will.
    No,
}

/// A message that only they see.
pub(super) fn message(text: &str) -> Value {
    json!({ "type": MESSAGE, "data": { "content": fitted(text), "flags": EPHEMERAL, "allowed_mentions": { "parse": [] } } })
}

/// A message that is to come.
pub(super) fn to_come() -> Value {
    json!({ "type": MESSAGE_TO_COME, "data": { "flags": EPHEMERAL } })
}

/// A message that is to come and that everybody in the channel sees.
pub(super) fn to_come_for_all() -> Value {
    json!({ "type": MESSAGE_TO_COME })
}

/// A message that only they see, with a list to choose one from.
pub(super) fn list(text: &str, name: &str, choices: &[Choice]) -> Value {
    let options: Vec<_> = choices.iter().map(|choice| json!({ "label": choice.name, "value": choice.value })).collect();
    let list = json!({ "type": STRING_SELECT, "custom_id": name, "options": options });
    let mut message = message(text);
    message["data"]["components"] = json!([{ "type": ACTION_ROW, "components": [list] }]);
    message
}

pub(super) fn choices(choices: &[Choice]) -> Value {
    let choices: Vec<_> = choices.iter().map(|choice| json!({ "name": choice.name, "value": choice.value })).collect();
    json!({ "type": CHOICES, "data": { "choices": choices } })
}

impl Desk {
    /// Gives the first answer to what was asked at this moment.
    pub(super) async fn answer(&self, handle: &Handle, body: &Value, since: Instant) -> Reached {
        let by = since + WAITS;
        let mut has_tried = false;
        while Instant::now() < by {
            let request = Request::answer(handle.id, &handle.token, body.clone());
            let tried = timeout_at(by.min(Instant::now() + TRY), self.discord.rest().send(&request)).await;
            let why = match tried {
                Ok(Ok(_)) => return Reached::Yes,
                Ok(Err(Failed::Refused(refusal))) if refusal.code == ALREADY_ANSWERED => {
                    return if has_tried { Reached::Yes } else { Reached::Answered };
                }
                Ok(Err(Failed::Refused(refusal))) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "an answer to a command came too late or was refused");
                    return Reached::No;
                }
                Ok(Err(Failed::NotNow { after, detail })) => {
                    // It did not arrive.
                    let after = after.unwrap_or(PAUSE).max(PAUSE);
                    if Instant::now() + after >= by {
                        tracing::debug!(interaction = %handle.id, %detail, "a command cannot be answered in time");
                        return Reached::No;
                    }
                    sleep(after).await;
                    continue;
                }
                Ok(Err(Failed::Unknown { detail, .. })) => detail,
                Err(_) => "no answer in time".to_owned(),
            };
            tracing::debug!(interaction = %handle.id, %why, "a command is answered again, since nobody knows whether the answer arrived");
            has_tried = true;
            sleep(PAUSE).await;
        }
        Reached::No
    }

    /// The id of the message that an answer is to become; none: that cannot be found out.
    pub(super) async fn message_of(&self, handle: &Handle) -> Option<Snowflake> {
        for tried in 1..=LOOKS {
            let request = Request::original_answer(handle.application, handle.id, &handle.token);
            match self.discord.rest().ask::<Original>(request).await {
                Ok(original) => return Some(original.id),
                Err(Failed::Refused(refusal)) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "the message of an answer is not there");
                    return None;
                }
                Err(Failed::NotNow { after, .. }) => sleep(after.unwrap_or_default().max(PAUSE * tried)).await,
                Err(Failed::Unknown { .. }) => sleep(PAUSE * tried).await,
            }
        }
        None
    }

    /// Gives the answer that was to come. True if they see it.
    pub(super) async fn answer_at_last(&self, handle: &Handle, text: &str) -> bool {
        // Links that somebody else wrote do not unfold under the bot's name.
        let body = json!({ "content": fitted(text), "allowed_mentions": { "parse": [] }, "flags": SUPPRESS_EMBEDS });
        for tried in 1..=LATER_TRIES {
            let request = Request::edit_answer(handle.application, handle.id, &handle.token, body.clone());
            // The same words twice are the same answer.
            let after = match self.discord.rest().send(&request).await {
                Ok(_) => return true,
                Err(Failed::Refused(refusal)) => {
                    tracing::debug!(interaction = %handle.id, %refusal, "an answer that was to come was refused");
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
        tracing::warn!(interaction = %handle.id, "an answer that was to come could not be given; whoever asked still waits for it");
        false
    }
}
