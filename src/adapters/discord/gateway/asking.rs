//! What an identify asks for: which events, with or without the text of messages.

use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use super::super::platform::{Bot, Discord};
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use crate::settings::discord::MessageContent;

/// What does not work without the intent, for the operator.
pub const DEAF: &str = "the Message Content intent is not enabled, so companions read only what mentions the bot or is said to it directly; \
     what people say to each other, replies to companions, and companions' names without a mention, they cannot see: turn it on at the Bot page of the developer \
     portal (Privileged Gateway Intents) and restart, or set discord.message_content = \"off\" to have it so";

/// What is asked for without the text of all messages: guilds, their emojis, webhooks and messages, and direct messages; no presences, no
/// members (Discord's documentation, "Gateway", "List of Intents").
pub const WITHOUT: u64 = 1 << 0 | 1 << 3 | 1 << 5 | 1 << 9 | 1 << 12;
/// The text of all messages.
pub const MESSAGE_CONTENT: u64 = 1 << 15;
/// The same with it.
pub const WITH_CONTENT: u64 = WITHOUT | MESSAGE_CONTENT;

/// "Gateway Message Content" and "Gateway Message Content Limited" (Discord's documentation, "Application Resource", "Application Flags").
const CONTENT_FLAGS: u64 = 1 << 18 | 1 << 19;

/// Whether the text of all messages is asked for.
#[derive(Debug)]
pub struct Asking {
    setting: MessageContent,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    application: Option<Snowflake>,
    /// Whether the application has the intent enabled.
    is_enabled: Option<bool>,
    /// Discord refused it, whatever the application says of itself.
    is_refused: bool,
}

#[derive(Deserialize)]
struct Application {
    id: Snowflake,
    #[serde(default)]
    flags: u64,
    #[serde(default)]
    bot: Option<User>,
}

#[derive(Deserialize)]
struct User {
    id: Snowflake,
}

impl Asking {
    /// As the setting has it.
    pub fn new(setting: MessageContent) -> Self {
        Self { setting, known: Mutex::default() }
    }

    /// Asks Discord which application this is, and what it has enabled. Once it is known nothing is asked.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn learn(&self, discord: &Discord) -> Result<(), Failed> {
        if self.application().is_some() {
            return Ok(());
        }
        let told: Application = discord.rest().ask(Request::application()).await?;
        discord.set_bot(Bot { application: told.id, user: told.bot.map_or(told.id, |user| user.id) });
        self.change(|known| {
            known.application = Some(told.id);
            known.is_enabled = Some(told.flags & CONTENT_FLAGS != 0);
        });
        if self.is_deaf() {
            tracing::warn!(platform = "discord", "{DEAF}");
        }
        Ok(())
    }

    /// Which application this is, if that is known.
    pub fn application(&self) -> Option<Snowflake> {
        self.get().application
    }

    /// What is asked for. None: with `auto` nothing is known of the application yet.
    pub fn intents(&self) -> Option<u64> {
        let with_content = match self.setting {
            MessageContent::On => true,
            MessageContent::Off => false,
            MessageContent::Auto if self.get().is_refused => false,
            MessageContent::Auto => self.get().is_enabled?,
        };
        Some(if with_content { WITH_CONTENT } else { WITHOUT })
    }

    /// Discord refused what was asked for. Whether there is something less to ask for.
    pub fn asks_for_less(&self) -> bool {
        let asked = self.intents().is_some_and(has_content);
        if self.setting != MessageContent::Auto || !asked {
            // Another shard was refused a moment ago, while this one asked still.
            return self.setting == MessageContent::Auto && self.get().is_refused;
        }
        self.change(|known| known.is_refused = true);
        tracing::warn!(platform = "discord", "{DEAF}");
        true
    }

    /// Whether the text of most messages cannot be read though nobody wanted that.
    pub fn is_deaf(&self) -> bool {
        self.setting == MessageContent::Auto && self.intents().is_some_and(|intents| !has_content(intents))
    }

    fn get(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Whether these ask for the text of all messages.
pub const fn has_content(intents: u64) -> bool {
    intents & MESSAGE_CONTENT != 0
}
