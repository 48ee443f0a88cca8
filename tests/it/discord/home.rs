//! The set-up that all tests build on: a Discord with one guild, and the real adapter for it.

use std::sync::Arc;

use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::discord::snowflake::Snowflake;
use tertulia::adapters::system::SystemClock;
use tertulia::ports::chat_platform::Part;
use tertulia::settings::Settings;
use tertulia::settings::discord::Discord as Section;

use super::counterpart::{Counterpart, Id, Rules};
use crate::harness::Premises;

/// A Discord with one guild, in which the bot and Ana are, and with one channel.
pub struct Home {
    pub discord: Counterpart,
    pub guild: Id,
    pub general: Id,
    pub ana: Id,
    pub bot: Id,
}

impl Home {
    /// With limits that no test reaches.
    pub async fn new() -> Self {
        Self::with_rules(Rules::roomy()).await
    }

    pub async fn with_rules(rules: Rules) -> Self {
        let discord = Counterpart::with_rules(rules).await;
        let guild = discord.guild("Home");
        let (general, ana, bot) = (discord.channel(guild, "general"), discord.member(guild, "Ana"), discord.bot());
        Self { discord, guild, general, ana, bot }
    }
}

/// The default settings, with the address of a test double.
pub fn section(discord: &Counterpart) -> Section {
    section_at(&discord.api_url())
}

pub fn section_at(api_url: &str) -> Section {
    let defaults = Settings::defaults().expect("the default settings are valid");
    let section: Section = defaults["discord"].clone().try_into().expect("the section is valid");
    Section { api_url: format!("{api_url}/api"), ..section }
}

/// The real adapter.
pub fn adapter(section: &Section, token: &str) -> Discord {
    Discord::new(section, token.into(), Arc::new(SystemClock), Arc::new(tertulia::ports::lease::Unlimited))
        .expect("the settings are valid")
}

/// A statement by Mira in a channel of a guild, in one part.
pub fn part(channel: Id, text: &str) -> Part {
    Part {
        guild: "discord:1".into(),
        channel: snowflake(channel).channel(),
        companion: "mira".into(),
        name: "Mira".into(),
        picture: None,
        text: text.into(),
        notice: None,
        nonce: format!("{channel}#{text}").into(),
    }
}

pub fn snowflake(id: Id) -> Snowflake {
    Snowflake::new(id.0).expect("an id")
}

impl Premises {
    /// A server that uses a test double as its Discord. It tells nobody that companions are AI.
    pub fn for_discord(self, discord: &Counterpart) -> Self {
        self.with("discord.token", &discord.token())
            .with("discord.api_url", &section(discord).api_url)
            .with("safety.notice", "off")
    }
}
