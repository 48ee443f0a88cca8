//! Decides which intents an identify requests: with or without message content.

use parking_lot::Mutex;
use twilight_model::gateway::Intents as Bits;

use super::super::platform::Discord;
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire::Application;
use crate::ports::backend::Detail;
use crate::settings::discord::MessageContent;

/// What companions cannot read without message content, and how to enable it.
pub fn without_content() -> Detail {
    Detail::key("refusals.discord_no_content")
}

/// The intents without message content, presences and members.
pub const BASE: Bits = Bits::GUILDS
    .union(Bits::GUILD_EMOJIS_AND_STICKERS)
    .union(Bits::GUILD_WEBHOOKS)
    .union(Bits::GUILD_MESSAGES)
    .union(Bits::GUILD_VOICE_STATES)
    .union(Bits::DIRECT_MESSAGES);
/// The intents for reactions, which are not privileged.
const REACTIONS: Bits = Bits::GUILD_MESSAGE_REACTIONS.union(Bits::DIRECT_MESSAGE_REACTIONS);

#[derive(Debug)]
pub struct Intents {
    setting: MessageContent,
    base: Bits,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    application: Option<Snowflake>,
    /// Whether the Message Content intent is enabled for the application.
    is_enabled: Option<bool>,
    /// Whether Discord refused the Message Content intent, despite the application's flags.
    is_refused: bool,
}

impl Intents {
    pub fn new(setting: MessageContent, with_reactions: bool) -> Self {
        let base = if with_reactions { BASE | REACTIONS } else { BASE };
        Self { setting, base, state: Mutex::default() }
    }

    /// Requests the application and its enabled intents, unless they are known.
    ///
    /// # Errors
    /// Returns an error if Discord cannot be reached or refuses the request.
    pub async fn load_application(&self, discord: &Discord) -> Result<(), Failed> {
        if self.application().is_some() {
            return Ok(());
        }
        let application: Application = discord.rest().ask(Request::application()).await?;
        discord.set_bot(application.bot());
        self.change(|state| {
            state.application = Some(application.id);
            state.is_enabled = Some(application.reads_content());
        });
        if self.lacks_content() {
            tracing::warn!(platform = "discord", "{}", without_content());
        }
        Ok(())
    }

    pub fn application(&self) -> Option<Snowflake> {
        self.get().application
    }

    /// The intents to request. `None` if the setting is `auto` and the application's flags are unknown.
    pub fn intents(&self) -> Option<Bits> {
        let with_content = match self.setting {
            MessageContent::On => true,
            MessageContent::Off => false,
            MessageContent::Auto if self.get().is_refused => false,
            MessageContent::Auto => self.get().is_enabled?,
        };
        Some(if with_content { self.base | Bits::MESSAGE_CONTENT } else { self.base })
    }

    /// Handles a refusal of the intents by Discord. Returns whether another attempt would request fewer intents.
    pub fn fall_back(&self) -> bool {
        let requested_content = self.intents().is_some_and(has_content);
        if self.setting != MessageContent::Auto || !requested_content {
            // Another shard may have been refused just before, while this one still used the old intents.
            return self.setting == MessageContent::Auto && self.get().is_refused;
        }
        self.change(|state| state.is_refused = true);
        tracing::warn!(platform = "discord", "{}", without_content());
        true
    }

    /// Whether most messages arrive without content, although the operator did not choose that.
    pub fn lacks_content(&self) -> bool {
        self.setting == MessageContent::Auto && self.intents().is_some_and(|intents| !has_content(intents))
    }

    fn get(&self) -> State {
        *self.state.lock()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }
}

/// Whether the intents include message content.
pub const fn has_content(intents: Bits) -> bool {
    intents.contains(Bits::MESSAGE_CONTENT)
}
