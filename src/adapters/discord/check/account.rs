//! Whose the token is, what its application may read, and how often it may still identify.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::super::commands::registered::{self, Standing, TERTULIA};
use super::super::identify::RESERVE;
use super::super::rest::Request;
use super::super::snowflake::Snowflake;
use super::report::span;
use super::{Checking, Line, Named, commands_path, is_out_of_reach};
use crate::settings::discord::MessageContent;

/// Discord's documentation, "Application Resource", "Application Flags".
const MESSAGE_CONTENT: u64 = 1 << 18;
/// The same for an application that Discord has not reviewed.
const MESSAGE_CONTENT_LIMITED: u64 = 1 << 19;
/// A session of more guilds is refused ("Gateway", "Sharding").
const GUILDS_PER_SHARD: u64 = 2_500;
/// Fewer identifies than so many starts of all shards are worth a word.
const STARTS_TO_SPARE: u32 = 5;
/// Since June 2026 ("Getting Started with Privileged Intent Review").
const REVIEW_DUE: &str = "once 10,000 users share a server with the bot, Discord has to approve it, every year anew";
const WITHOUT_CONTENT: &str = "only messages that mention the bot and direct messages have a text; companions do not hear their names or \
                               replies to them, and never speak by themselves; people write \"@bot name, ...\" or use /tertulia say";
const CONTENT_CLICK: &str =
    "Developer Portal > the application > Bot > Privileged Gateway Intents > Message Content Intent > on > Save.";

/// The bot's user, as far as it is looked at.
#[derive(Deserialize)]
struct User {
    id: Snowflake,
    #[serde(default)]
    username: String,
}

/// The application, as far as it is looked at.
#[derive(Deserialize)]
pub(super) struct Application {
    pub id: Snowflake,
    #[serde(default)]
    name: String,
    #[serde(default)]
    flags: u64,
    #[serde(default)]
    pub bot_public: Option<bool>,
    #[serde(default)]
    bot_require_code_grant: bool,
    #[serde(default)]
    interactions_endpoint_url: Option<String>,
    #[serde(default)]
    pub approximate_guild_count: Option<u64>,
}

/// What `GET /gateway/bot` tells.
#[derive(Deserialize)]
struct GatewayBot {
    url: String,
    shards: u32,
    session_start_limit: Starts,
}

#[derive(Deserialize)]
struct Starts {
    total: u32,
    remaining: u32,
    /// In milliseconds.
    reset_after: u64,
    max_concurrency: u32,
}

impl Checking<'_> {
    /// Looks at the token and its application; none: there is no use in asking more.
    pub(super) async fn account(&mut self) -> Option<Application> {
        let user: User = match self.ask(Request::get("GET /users/@me", "", "/users/@me".to_owned())).await {
            Ok(user) => user,
            // Of the token nothing was said.
            Err(failed) if is_out_of_reach(&failed) => return self.give_up("discord", &failed),
            Err(failed) => return self.give_up("token", &failed),
        };
        let application: Application = match self.ask(Request::application()).await {
            Ok(application) => application,
            Err(failed) => return self.give_up("application", &failed),
        };
        let bot = Named::new(user.id, &user.username);
        self.note(Line::good("token", format!("it is the token of {bot}, the bot of application {}", application.id)));
        self.report.told.application = Some(Named::new(application.id, &application.name));
        self.report.told.bot = Some(bot);
        self.report.told.servers = application.approximate_guild_count;
        self.invitability(&application);
        self.intents(&application);
        Some(application)
    }

    fn give_up<T>(&mut self, about: &'static str, failed: &super::Failed) -> Option<T> {
        self.note_failed(about, failed);
        None
    }

    /// Whether whoever follows the invitation gets the bot.
    fn invitability(&mut self, application: &Application) {
        if application.bot_require_code_grant {
            let click = "Developer Portal > the application > Bot > Requires OAuth2 Code Grant > off > Save.";
            self.note(Line::problem("invitation", "nobody can invite the bot: it requires an OAuth2 code grant").click(click));
        } else if application.bot_public == Some(false) {
            self.note(Line::good(
                "invitation",
                "the bot's owner alone can invite it (Developer Portal > Bot > Public Bot is off)",
            ));
        }
        if application.interactions_endpoint_url.as_deref().is_some_and(|url| !url.is_empty()) {
            let click = "Developer Portal > the application > General Information > Interactions Endpoint URL > clear it > Save.";
            let said = "slash commands go to another program: the application has an Interactions Endpoint URL";
            self.note(Line::problem("commands", said).click(click));
        }
    }

    /// Whether it may read what it asks for.
    fn intents(&mut self, application: &Application) {
        let is_enabled = application.flags & (MESSAGE_CONTENT | MESSAGE_CONTENT_LIMITED) != 0;
        self.note(match (self.settings.message_content, is_enabled) {
            (MessageContent::On | MessageContent::Auto, true) if application.flags & MESSAGE_CONTENT == 0 => {
                Line::good("intents", format!("Message Content is enabled; {REVIEW_DUE}"))
            }
            (MessageContent::On | MessageContent::Auto, true) => {
                Line::good("intents", "Message Content is enabled and approved; Discord asks for a new application every year")
            }
            (MessageContent::On, false) => {
                let said = "Message Content is not enabled, and discord.message_content = \"on\": the bot would not connect";
                Line::problem("intents", said).click(CONTENT_CLICK)
            }
            (MessageContent::Auto, false) => {
                Line::warning("intents", format!("Message Content is not enabled: {WITHOUT_CONTENT}")).click(CONTENT_CLICK)
            }
            (MessageContent::Off, _) => {
                let click = "Set discord.message_content = \"auto\" if companions should hear everything.";
                let said = format!("Message Content is not asked for (discord.message_content = \"off\"): {WITHOUT_CONTENT}");
                Line::warning("intents", said).click(click)
            }
        });
    }

    /// How often it may identify still, and with how many connections: where the gateway is.
    pub(super) async fn starts(&mut self) -> Option<String> {
        let asked = Request::get("GET /gateway/bot", "", "/gateway/bot".to_owned());
        let GatewayBot { url, shards, session_start_limit: starts } = match self.ask(asked).await {
            Ok(told) => told,
            Err(failed) => return self.give_up("identify", &failed),
        };
        let reset = Duration::from_millis(starts.reset_after);
        let told = &mut self.report.told;
        told.shards = Some(shards);
        told.identifies_left = Some(starts.remaining);
        told.identifies_reset_in_secs = Some(reset.as_secs());
        told.max_concurrency = Some(starts.max_concurrency);
        self.identifies(&starts, shards, reset);
        self.shards(shards);
        Some(url)
    }

    fn identifies(&mut self, starts: &Starts, shards: u32, reset: Duration) {
        let needed = self.settings.shards.map_or(shards, NonZeroU32::get);
        let said = format!(
            "{} of {} identifies are left, {needed} are needed to start; there are all of them again in {}",
            starts.remaining,
            starts.total,
            span(reset)
        );
        let spare = starts.remaining.saturating_sub(RESERVE);
        let click = "Something identifies again and again: another program with this token, or restarts without the data folder. End that; \
                     resetting the token ends the others.";
        self.note(if spare < needed {
            let said = format!("{said}; the last {RESERVE} are left to you, so the bot would not come up before");
            Line::problem("identify", said).click(click)
        } else if spare < needed.saturating_mul(STARTS_TO_SPARE) {
            Line::warning("identify", said).click(click)
        } else {
            Line::good("identify", said)
        });
    }

    fn shards(&mut self, recommended: u32) {
        let Some(set) = self.settings.shards.map(NonZeroU32::get) else {
            self.note(Line::good("shards", format!("Discord recommends {recommended}, and so many there will be")));
            return;
        };
        let most = u64::from(set) * GUILDS_PER_SHARD;
        let servers = self.report.told.servers.unwrap_or_default();
        self.note(if servers > most {
            let said =
                format!("discord.shards = {set} is too few for about {servers} servers: a connection serves {GUILDS_PER_SHARD}");
            Line::problem("shards", said).click(format!("Leave discord.shards out, or set it to {recommended}."))
        } else if set < recommended {
            let said = format!("discord.shards = {set}, and Discord recommends {recommended}");
            Line::warning("shards", said).click("Leave discord.shards out to follow Discord.")
        } else {
            Line::good("shards", format!("discord.shards = {set}; Discord recommends {recommended}"))
        });
    }

    /// Whether the slash command is there.
    pub(super) async fn commands(&mut self, application: &Application) {
        let asked = Request::get("GET /applications/{application}/commands", "", commands_path(application, None));
        match self.ask::<Vec<Value>>(asked).await {
            Ok(commands) => self.note(match registered::standing(&commands) {
                Standing::AsItShouldBe => Line::good("commands", format!("/{TERTULIA} is registered")),
                Standing::Outdated => {
                    Line::warning("commands", format!("/{TERTULIA} is registered as another version of the server has it"))
                        .click("Start the server: it registers its own.")
                }
                Standing::Missing => Line::warning("commands", format!("/{TERTULIA} is not registered yet"))
                    .click("Start the server: it registers it."),
            }),
            Err(failed) => self.note_failed("commands", &failed),
        }
    }
}
