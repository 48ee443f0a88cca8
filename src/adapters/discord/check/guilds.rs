//! Looks through servers: in which channels companions could speak, and what the bot lacks in the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::super::permissions::{self, Channel, Guild, Member, Need, On, Overwrite, Permissions, in_channel, in_guild, missing};
use super::super::refusals::{NO_ROOM_FOR_WEBHOOK, Refusal, code};
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::account::Application;
use super::report::State;
use super::{Checking, Line, Named, Servers, commands_path, is_out_of_reach};
use crate::domain::moment::Moment;
use crate::ports::backend::stamp;

/// A page of servers ("User Resource", "Get Current User Guilds").
const PAGE: usize = 200;
/// After so many servers in a row about which Discord told nothing, it is left alone.
const TROUBLE_ENOUGH: usize = 2;
/// Webhooks that a channel can have ("Webhook Resource", "Create Webhook").
const MOST_WEBHOOKS: usize = 15;

/// A server in the list.
#[derive(Deserialize)]
struct Joined {
    id: Snowflake,
}

/// A server.
#[derive(Deserialize)]
struct Server {
    id: Snowflake,
    #[serde(default)]
    name: String,
    owner_id: Snowflake,
    roles: Vec<Role>,
}

#[derive(Deserialize)]
struct Role {
    id: Snowflake,
    #[serde(deserialize_with = "bits")]
    permissions: Permissions,
}

/// The bot as a member.
#[derive(Deserialize)]
struct Me {
    #[serde(default)]
    roles: Vec<Snowflake>,
    #[serde(default)]
    communication_disabled_until: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    id: Snowflake,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    permission_overwrites: Option<Vec<Overwritten>>,
}

#[derive(Deserialize)]
struct Overwritten {
    id: Snowflake,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(deserialize_with = "bits")]
    allow: Permissions,
    #[serde(deserialize_with = "bits")]
    deny: Permissions,
}

#[derive(Deserialize)]
struct Hook {
    #[serde(default)]
    channel_id: Option<Snowflake>,
    #[serde(default)]
    application_id: Option<Snowflake>,
}

/// What was found in a server.
#[derive(Default)]
struct Found {
    /// Channels in which companions could speak.
    speakable: usize,
    /// Channels that the bot sees.
    seen: usize,
    /// Channels that it does not see, or may not enter.
    hidden: usize,
    /// What it lacks, and where.
    lacking: BTreeMap<Need, Vec<Named>>,
    /// Channels that have no room for its webhook.
    full: Vec<Named>,
}

impl Checking<'_> {
    /// Looks at servers.
    pub(super) async fn servers(&mut self, application: &Application, servers: &Servers) {
        let (chosen, were_named) = match servers {
            Servers::These(these) => (these.clone(), true),
            Servers::First(count) => match self.joined((*count).min(PAGE)).await {
                Some(joined) => (joined, false),
                None => return,
            },
        };
        let mut any_works = false;
        let begin = self.report.lines.len();
        let (mut failed_in_a_row, mut left) = (0, chosen.len());
        for server in chosen {
            left -= 1;
            match self.server(application, server).await {
                Ok(works) => any_works |= works,
                Err(Failed::Refused(refusal)) if is_absence(&refusal) => {
                    let click = "Open the link below, choose the server, and let the bot in with all that it asks for.";
                    self.note(Line::problem("servers", format!("the bot is not in the server {server}")).click(click));
                }
                Err(failed) => {
                    let line = super::failed_line("servers", &failed);
                    self.note(Line { said: format!("{server} cannot be looked at: {}", line.said), ..line });
                    failed_in_a_row += usize::from(is_out_of_reach(&failed));
                    if failed_in_a_row == TROUBLE_ENOUGH && left > 0 {
                        self.note(Line::warning("servers", format!("the other {left} are not looked at")));
                        return;
                    }
                    continue;
                }
            }
            failed_in_a_row = 0;
        }
        if any_works && !were_named {
            // Where companions speak somewhere, a server that keeps them out is its own business.
            for line in self.report.lines[begin..].iter_mut().filter(|line| line.about == "permissions") {
                line.state = line.state.min(State::Warning);
            }
        }
    }

    /// The first servers that the bot is in, and a line about how many there are.
    async fn joined(&mut self, first: usize) -> Option<Vec<Snowflake>> {
        let path = format!("/users/@me/guilds?limit={PAGE}");
        let joined: Vec<Joined> = match self.ask(Request::get("GET /users/@me/guilds", "", path)).await {
            Ok(joined) => joined,
            Err(failed) => {
                self.note_failed("servers", &failed);
                return None;
            }
        };
        // A short page is all there are; Discord's own count is only about right.
        let told = self.report.told.servers.filter(|_| joined.len() >= PAGE);
        let count = told.unwrap_or(joined.len() as u64);
        self.report.told.servers = Some(count);
        let looked_at = joined.len().min(first);
        self.note(match (count, told) {
            (0, _) => Line::warning("servers", "the bot is in no server yet").click("Open the link below and choose a server."),
            (_, None) => Line::good("servers", format!("the bot is in {count}; {looked_at} of them are looked at")),
            (_, Some(_)) => Line::good("servers", format!("the bot is in about {count}; {looked_at} of them are looked at")),
        });
        Some(joined.into_iter().take(first).map(|joined| joined.id).collect())
    }

    /// Looks at one server: whether companions could speak in some channel there.
    async fn server(&mut self, application: &Application, id: Snowflake) -> Result<bool, Failed> {
        let server: Server = self.ask(Request::get("GET /guilds/{guild}", id, format!("/guilds/{id}"))).await?;
        let bot = self.report.told.bot.as_ref().map_or(application.id, |bot| bot.id);
        let path = format!("/guilds/{id}/members/{bot}");
        let me: Me = self.ask(Request::get("GET /guilds/{guild}/members/{user}", id, path)).await?;
        let path = format!("/guilds/{id}/channels");
        let channels: Vec<Listed> = self.ask(Request::get("GET /guilds/{guild}/channels", id, path)).await?;
        let has_commands = self.has_commands(application, id).await?;
        let roles = server.roles.iter().map(|role| (role.id, role.permissions)).collect();
        let guild = Guild { id: server.id, owner: server.owner_id, roles: &roles };
        let timed_out_until = me.communication_disabled_until.as_deref().and_then(stamp::from_rfc3339);
        let member = Member { id: bot, roles: &me.roles, timed_out_until };
        let named = Named::new(id, &server.name);
        let hooks = match self.hooks(in_guild(&guild, &member), id).await {
            // No permission shows it.
            Err(Failed::Refused(refusal)) if refusal.code == code::TWO_FACTORS => {
                self.note(Line::problem("permissions", refusal.to_string()).of(&named));
                return Ok(false);
            }
            hooks => hooks?,
        };
        let now = self.clocks.now();
        let found = found(&guild, &member, &channels, &hooks, application.id, now);
        if timed_out_until.is_some_and(|until| now < until) {
            let click = "Open the bot's profile there > the three dots > Remove Timeout.";
            self.note(
                Line::warning("permissions", "the bot is timed out, which takes nearly all its permissions")
                    .click(click)
                    .of(&named),
            );
        }
        self.tell(&named, &found, in_guild(&guild, &member) == Permissions::ALL && guild.owner != bot);
        if !has_commands {
            let (what, click) = Need::Commands.explanation();
            self.note(Line::warning("commands", what).click(click).of(&named));
        }
        Ok(found.speakable > 0)
    }

    /// Whether Discord lets the bot register commands there.
    async fn has_commands(&mut self, application: &Application, id: Snowflake) -> Result<bool, Failed> {
        let name = "GET /applications/{application}/guilds/{guild}/commands";
        let asked = Request::get(name, application.id, commands_path(application, Some(id)));
        match self.ask::<Vec<serde::de::IgnoredAny>>(asked).await {
            Ok(_) => Ok(true),
            Err(Failed::Refused(refusal)) if refusal.status == 403 => Ok(false),
            Err(failed) => Err(failed),
        }
    }

    /// The webhooks of a server, as far as the bot may list them.
    async fn hooks(&mut self, permissions: Permissions, id: Snowflake) -> Result<Vec<Hook>, Failed> {
        if !permissions.contains(Permissions::MANAGE_WEBHOOKS) {
            return Ok(Vec::new());
        }
        let asked = Request::get("GET /guilds/{guild}/webhooks", id, format!("/guilds/{id}/webhooks"));
        match self.ask(asked).await {
            // Somebody took the permission since.
            Err(Failed::Refused(refusal)) if refusal.status == 403 && refusal.code != code::TWO_FACTORS => Ok(Vec::new()),
            other => other,
        }
    }

    fn tell(&mut self, server: &Named, found: &Found, is_administrator: bool) {
        let Found { speakable, seen, hidden, lacking, full } = found;
        let unseen = if *hidden > 0 { format!("; {hidden} more it does not see") } else { String::new() };
        let said = format!("companions can speak in {speakable} of the {seen} channels that the bot sees{unseen}");
        self.note(if *speakable > 0 {
            let needless = if is_administrator { "; it is an administrator there, which it need not be" } else { "" };
            Line::good("permissions", format!("{said}{needless}")).of(server)
        } else {
            let line = Line::problem("permissions", said).of(server);
            // With channels that it sees, the lines that follow say why.
            if *seen > 0 { line } else { line.click(Need::Listen.explanation().1) }
        });
        for (need, channels) in lacking {
            let (what, click) = need.explanation();
            self.note(Line::warning("permissions", what).click(click).of(server).in_channels(channels.clone()));
        }
        if !full.is_empty() {
            let (what, click) = NO_ROOM_FOR_WEBHOOK;
            self.note(Line::warning("webhooks", what).click(click).of(server).in_channels(full.clone()));
        }
    }
}

/// What the bot lacks in each channel in which somebody can talk.
fn found(
    guild: &Guild<'_>,
    member: &Member<'_>,
    channels: &[Listed],
    hooks: &[Hook],
    application: Snowflake,
    now: Moment,
) -> Found {
    let mut found = Found::default();
    for listed in channels.iter().filter(|listed| takes_talk(listed.kind)) {
        let overwrites: Vec<Overwrite> = listed.permission_overwrites.iter().flatten().filter_map(Overwritten::read).collect();
        let channel = Channel { overwrites: &overwrites, is_voice: is_voice(listed.kind), thread: None };
        // Whether commands are there is told once for the whole server.
        let needs = missing(in_channel(guild, member, &channel, now), &channel, true);
        // Many channels are not meant for a bot, so one that it cannot see is nothing to mend.
        if needs.iter().any(|need| matches!(need, Need::Listen | Need::Enter)) {
            found.hidden += 1;
            continue;
        }
        let named = Named::new(listed.id, listed.name.as_deref().unwrap_or_default());
        let there = || hooks.iter().filter(|hook| hook.channel_id == Some(listed.id));
        let is_full = there().count() >= MOST_WEBHOOKS && there().all(|hook| hook.application_id != Some(application));
        found.seen += 1;
        found.speakable += usize::from(!is_full && !needs.iter().any(|need| need.is_vital()));
        if is_full {
            found.full.push(named.clone());
        }
        for need in needs {
            found.lacking.entry(need).or_default().push(named.clone());
        }
    }
    found
}

impl Overwritten {
    /// None for a kind that Discord does not have yet.
    fn read(&self) -> Option<Overwrite> {
        let on = match self.kind {
            0 => On::Role(self.id),
            1 => On::Member(self.id),
            _ => return None,
        };
        Some(Overwrite { on, allow: self.allow, deny: self.deny })
    }
}

/// Text, voice, announcement, stage, forum, media ("Channels Resource", "Channel Types").
const fn takes_talk(kind: u8) -> bool {
    matches!(kind, 0 | 2 | 5 | 13 | 15 | 16)
}

const fn is_voice(kind: u8) -> bool {
    matches!(kind, 2 | 13)
}

/// Whether a refusal says that the bot is not there.
fn is_absence(refusal: &Refusal) -> bool {
    matches!(refusal.code, code::UNKNOWN_GUILD | code::MISSING_ACCESS)
}

/// Permissions are numbers in texts, since they outgrew JavaScript's.
fn bits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Permissions, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(permissions::Permissions).map_err(serde::de::Error::custom)
}
