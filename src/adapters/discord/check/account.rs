//! Checks the token and its application: which intents are enabled, and how many identifies are left.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;
use twilight_model::oauth::ApplicationFlags;

use super::super::commands::registered::{self, Status, TERTULIA};
use super::super::identify::RESERVE;
use super::super::rest::Request;
use super::super::wire::{Application, GatewayBot, SessionStartLimit, User};
use super::report::span;
use super::{Checking, Line, Named, is_out_of_reach};
use crate::settings::discord::MessageContent;

/// The limit of guilds per session. Above it, Discord refuses the session (its documentation, "Gateway", "Sharding").
const GUILDS_PER_SHARD: u64 = 2_500;
/// The check warns if the remaining identifies above `RESERVE` do not suffice for this many starts of all shards.
const STARTS_TO_SPARE: u32 = 5;
/// Discord requires this approval since June 2026 ("Getting Started with Privileged Intent Review").
const REVIEW_DUE: &str = "once 10,000 users share a server with the bot, Discord has to approve it, again every year";
const WITHOUT_CONTENT: &str = "only messages that mention the bot and direct messages have a text; companions do not notice their names or \
                               replies to them, and never speak unasked; people write \"@bot name, ...\" or use /tertulia say";
const CONTENT_CLICK: &str =
    "Developer Portal > the application > Bot > Privileged Gateway Intents > Message Content Intent > on > Save.";

impl Checking<'_> {
    /// Checks the token and its application. Returns `None` if further requests would be useless.
    pub(super) async fn account(&mut self) -> Option<Application> {
        let user: User = match self.ask(Request::get("GET /users/@me", "", "/users/@me".to_owned())).await {
            Ok(user) => user,
            // This failure does not concern the token.
            Err(failed) if is_out_of_reach(&failed) => return self.give_up("discord", &failed),
            Err(failed) => return self.give_up("token", &failed),
        };
        let application: Application = match self.ask(Request::application()).await {
            Ok(application) => application,
            Err(failed) => return self.give_up("application", &failed),
        };
        let bot = Named::new(user.id, &user.username);
        self.add_line(Line::good("token", format!("it is the token of {bot}, the bot of application {}", application.id)));
        self.report.figures.application = Some(Named::new(application.id, &application.name));
        self.report.figures.bot = Some(bot);
        self.report.figures.servers = application.approximate_guild_count;
        self.invitability(&application);
        self.intents(&application);
        Some(application)
    }

    fn give_up<T>(&mut self, about: &'static str, failed: &super::Failed) -> Option<T> {
        self.add_failed_line(about, failed);
        None
    }

    /// Checks whether others can invite the bot, and whether its slash commands reach it.
    fn invitability(&mut self, application: &Application) {
        if application.bot_require_code_grant {
            let click = "Developer Portal > the application > Bot > Requires OAuth2 Code Grant > off > Save.";
            self.add_line(
                Line::problem("invitation", "nobody can invite the bot: it requires an OAuth2 code grant").click(click),
            );
        } else if application.bot_public == Some(false) {
            self.add_line(Line::good(
                "invitation",
                "the bot's owner alone can invite it (Developer Portal > Bot > Public Bot is off)",
            ));
        }
        if !application.interactions_endpoint_url.is_empty() {
            let click = "Developer Portal > the application > General Information > Interactions Endpoint URL > clear it > Save.";
            let text = "slash commands go to another program: the application has an Interactions Endpoint URL";
            self.add_line(Line::problem("commands", text).click(click));
        }
    }

    /// Checks whether the bot may read message contents.
    fn intents(&mut self, application: &Application) {
        let is_approved = application.flags.contains(ApplicationFlags::GATEWAY_MESSAGE_CONTENT);
        self.add_line(match (self.settings.message_content, application.reads_content()) {
            (MessageContent::On | MessageContent::Auto, true) if !is_approved => {
                Line::good("intents", format!("Message Content is enabled; {REVIEW_DUE}"))
            }
            (MessageContent::On | MessageContent::Auto, true) => {
                Line::good("intents", "Message Content is enabled and approved; Discord requires a new application every year")
            }
            (MessageContent::On, false) => {
                let text = "Message Content is not enabled, and discord.message_content = \"on\": the bot would not connect";
                Line::problem("intents", text).click(CONTENT_CLICK)
            }
            (MessageContent::Auto, false) => {
                Line::warning("intents", format!("Message Content is not enabled: {WITHOUT_CONTENT}")).click(CONTENT_CLICK)
            }
            (MessageContent::Off, _) => {
                let click = "Set discord.message_content = \"auto\" if companions should read everything.";
                let text = format!("Message Content is not requested (discord.message_content = \"off\"): {WITHOUT_CONTENT}");
                Line::warning("intents", text).click(click)
            }
        });
    }

    /// Checks how many identifies are left, and how many connections Discord recommends. Returns the gateway's address.
    pub(super) async fn starts(&mut self) -> Option<String> {
        let GatewayBot { url, shards, session_start_limit: starts } = match self.ask(Request::gateway()).await {
            Ok(answer) => answer,
            Err(failed) => return self.give_up("identify", &failed),
        };
        let reset = Duration::from_millis(starts.reset_after);
        let figures = &mut self.report.figures;
        figures.shards = Some(shards);
        figures.identifies_left = Some(starts.remaining);
        figures.identifies_reset_in_secs = Some(reset.as_secs());
        figures.max_concurrency = Some(starts.max_concurrency);
        self.identifies(&starts, shards, reset);
        self.shards(shards);
        Some(url)
    }

    fn identifies(&mut self, starts: &SessionStartLimit, shards: u32, reset: Duration) {
        let needed = self.settings.shards.map_or(shards, NonZeroU32::get);
        let text = format!(
            "{} of {} identifies are left, {needed} are needed to start; all of them are available again in {}",
            starts.remaining,
            starts.total,
            span(reset)
        );
        let spare = starts.remaining.saturating_sub(RESERVE);
        let click = "Something identifies repeatedly: another program with this token, or restarts without the data folder. Stop it; \
                     resetting the token disconnects other programs.";
        self.add_line(if spare < needed {
            let text = format!("{text}; the last {RESERVE} are left to you, so the bot would not start before the reset");
            Line::problem("identify", text).click(click)
        } else if spare < needed.saturating_mul(STARTS_TO_SPARE) {
            Line::warning("identify", text).click(click)
        } else {
            Line::good("identify", text)
        });
    }

    fn shards(&mut self, recommended: u32) {
        let Some(configured) = self.settings.shards.map(NonZeroU32::get) else {
            self.add_line(Line::good("shards", format!("Discord recommends {recommended}, and the bot uses as many")));
            return;
        };
        let most = u64::from(configured) * GUILDS_PER_SHARD;
        let servers = self.report.figures.servers.unwrap_or_default();
        self.add_line(if servers > most {
            let text = format!(
                "discord.shards = {configured} is too few for about {servers} servers: a connection serves {GUILDS_PER_SHARD}"
            );
            Line::problem("shards", text).click(format!("Leave discord.shards out, or set it to {recommended}."))
        } else if configured < recommended {
            let text = format!("discord.shards = {configured}, and Discord recommends {recommended}");
            Line::warning("shards", text).click("Leave discord.shards out to follow Discord.")
        } else {
            Line::good("shards", format!("discord.shards = {configured}; Discord recommends {recommended}"))
        });
    }

    /// Checks whether the slash command is registered.
    pub(super) async fn commands(&mut self, application: &Application) {
        match self.ask::<Vec<Value>>(Request::commands(application.id)).await {
            Ok(commands) => self.add_line(match registered::status(&commands) {
                Status::Current => Line::good("commands", format!("/{TERTULIA} is registered")),
                Status::Outdated => {
                    Line::warning("commands", format!("/{TERTULIA} is registered as another version of the server defines it"))
                        .click("Start the server: it registers its own.")
                }
                Status::Missing => Line::warning("commands", format!("/{TERTULIA} is not registered yet"))
                    .click("Start the server: it registers it."),
            }),
            Err(failed) => self.add_failed_line("commands", &failed),
        }
    }
}
