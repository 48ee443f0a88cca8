//! Checks servers: in which channels companions could speak, and which permissions are missing in the others.

use std::collections::BTreeMap;

use serde::Deserialize;
use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;

use super::super::commands::registered::CHANNEL_TYPES;
use super::super::permissions::{Need, Place, in_channel, in_guild, is_voice, missing};
use super::super::refusals::{NO_ROOM_FOR_WEBHOOK, code};
use super::super::rest::{Failed, Request};
use super::super::snowflake::Snowflake;
use super::super::wire::{Application, Server, ServerChannel, ServerMember, WithId};
use super::report::State;
use super::{Checking, Line, Named, Servers, is_out_of_reach};

/// The number of servers per page ("User Resource", "Get Current User Guilds").
const PAGE: usize = 200;
/// After this many servers in a row for which Discord was out of reach, the others are not checked.
const MOST_FAILED_SERVERS: usize = 2;
/// The limit of webhooks in a channel ("Webhook Resource", "Create Webhook").
const MOST_WEBHOOKS: usize = 15;

#[derive(Deserialize)]
struct Webhook {
    channel_id: Option<Snowflake>,
    application_id: Option<Snowflake>,
}

#[derive(Default)]
struct Findings {
    /// Channels in which companions could speak.
    speakable: usize,
    /// Channels that the bot can see.
    seen: usize,
    /// Channels that the bot cannot see or enter.
    hidden: usize,
    /// The missing permissions, each with the channels where it is missing.
    lacking: BTreeMap<Need, Vec<Named>>,
    /// Channels with too many webhooks for the bot to create one.
    full: Vec<Named>,
}

impl Checking<'_> {
    pub(super) async fn servers(&mut self, application: &Application, servers: &Servers) {
        let (chosen, were_named) = match servers {
            Servers::These(these) => (these.clone(), true),
            Servers::First(count) => match self.joined((*count).min(PAGE)).await {
                Some(joined) => (joined, false),
                None => return,
            },
        };
        let (mut any_works, checked) = (false, chosen.len());
        let begin = self.report.lines.len();
        let (mut failed_in_a_row, mut left) = (0, chosen.len());
        for server in chosen {
            left -= 1;
            match self.server(application, server).await {
                Ok(works) => any_works |= works,
                Err(Failed::Refused(refusal)) if refusal.means_not_a_member() => {
                    let click = "Open the link below, choose the server, and allow all permissions that the bot requests.";
                    self.add_line(Line::problem("servers", format!("the bot is not in the server {server}")).click(click));
                }
                Err(failed) => {
                    let line = super::failed_line("servers", &failed);
                    self.add_line(Line { said: format!("{server} cannot be checked: {}", line.said), ..line });
                    failed_in_a_row += usize::from(is_out_of_reach(&failed));
                    if failed_in_a_row == MOST_FAILED_SERVERS && left > 0 {
                        self.add_line(Line::warning("servers", format!("the other {left} are not checked")));
                        return;
                    }
                    continue;
                }
            }
            failed_in_a_row = 0;
        }
        self.unknown_calls(checked);
        if any_works && !were_named {
            // If companions can speak in one server, missing permissions in other servers may be intended, so they are only
            // warnings.
            for line in self.report.lines[begin..].iter_mut().filter(|line| line.about == "permissions") {
                line.state = line.state.min(State::Warning);
            }
        }
    }

    /// The first servers that the bot is in. Also reports how many there are.
    async fn joined(&mut self, first: usize) -> Option<Vec<Snowflake>> {
        let path = format!("/users/@me/guilds?limit={PAGE}");
        let joined: Vec<WithId> = match self.ask(Request::get("GET /users/@me/guilds", "", path)).await {
            Ok(joined) => joined,
            Err(failed) => {
                self.add_failed_line("servers", &failed);
                return None;
            }
        };
        // A page that is not full lists all servers. Discord's own count is approximate.
        let approximate = self.report.figures.servers.filter(|_| joined.len() >= PAGE);
        let count = approximate.unwrap_or(joined.len() as u64);
        self.report.figures.servers = Some(count);
        let checked = joined.len().min(first);
        self.add_line(match (count, approximate) {
            (0, _) => Line::warning("servers", "the bot is in no server yet").click("Open the link below and choose a server."),
            (_, None) => Line::good("servers", format!("the bot is in {count}; {checked} of them are checked")),
            (_, Some(_)) => Line::good("servers", format!("the bot is in about {count}; {checked} of them are checked")),
        });
        Some(joined.into_iter().take(first).map(|joined| joined.id).collect())
    }

    /// Checks one server. Returns whether companions could speak in at least one of its channels.
    async fn server(&mut self, application: &Application, id: Snowflake) -> Result<bool, Failed> {
        let server: Server = self.ask(Request::guild(id)).await?;
        let bot = self.report.figures.bot.as_ref().map_or(application.id, |bot| bot.id);
        let member: ServerMember = self.ask(Request::member(id, bot)).await?;
        let channels: Vec<ServerChannel> = self.ask(Request::guild_channels(id)).await?;
        let has_commands = self.has_commands(application, id).await?;
        let in_server = in_guild(&server, bot, &member);
        let named = Named::new(id, &server.name);
        let webhooks = match self.webhooks(in_server, id).await {
            // This requirement does not show in the permissions.
            Err(Failed::Refused(refusal)) if refusal.code == code::TWO_FACTORS => {
                self.add_line(Line::problem("permissions", refusal.to_string()).of(&named));
                return Ok(false);
            }
            webhooks => webhooks?,
        };
        let now = self.clocks.now();
        let permissions = |channel: &ServerChannel| in_channel(&server, bot, &member, channel, now);
        let findings = examine(permissions, &channels, &webhooks, application.id);
        self.calls(&named, &channels, permissions);
        if member.is_timed_out(now) {
            let click = "Open the bot's profile there > the three dots > Remove Timeout.";
            self.add_line(
                Line::warning("permissions", "the bot is timed out, which takes nearly all its permissions")
                    .click(click)
                    .of(&named),
            );
        }
        self.note_permissions(&named, &findings, in_server == Permissions::all() && server.owner_id != bot);
        if !has_commands {
            let (problem, click) = Need::Commands.explanation();
            self.add_line(Line::warning("commands", problem).click(click).of(&named));
        }
        Ok(findings.speakable > 0)
    }

    /// Whether the bot may register commands in the server.
    async fn has_commands(&mut self, application: &Application, id: Snowflake) -> Result<bool, Failed> {
        let name = "GET /applications/{application}/guilds/{guild}/commands";
        let path = format!("/applications/{}/guilds/{id}/commands", application.id);
        let request = Request::get(name, application.id, path);
        match self.ask::<Vec<serde::de::IgnoredAny>>(request).await {
            Ok(_) => Ok(true),
            Err(Failed::Refused(refusal)) if refusal.status == 403 => Ok(false),
            Err(failed) => Err(failed),
        }
    }

    /// The webhooks of a server. Empty if the bot may not list them.
    async fn webhooks(&mut self, permissions: Permissions, id: Snowflake) -> Result<Vec<Webhook>, Failed> {
        if !permissions.contains(Permissions::MANAGE_WEBHOOKS) {
            return Ok(Vec::new());
        }
        let request = Request::get("GET /guilds/{guild}/webhooks", id, format!("/guilds/{id}/webhooks"));
        match self.ask(request).await {
            // The permission was removed meanwhile.
            Err(Failed::Refused(refusal)) if refusal.status == 403 && refusal.code != code::TWO_FACTORS => Ok(Vec::new()),
            other => other,
        }
    }

    fn note_permissions(&mut self, server: &Named, findings: &Findings, is_administrator: bool) {
        let Findings { speakable, seen, hidden, lacking, full } = findings;
        let unseen = if *hidden > 0 { format!("; {hidden} more it does not see") } else { String::new() };
        let text = format!("companions can speak in {speakable} of the {seen} channels that the bot sees{unseen}");
        self.add_line(if *speakable > 0 {
            let needless = if is_administrator { "; it is an administrator there, which is not necessary" } else { "" };
            Line::good("permissions", format!("{text}{needless}")).of(server)
        } else {
            let line = Line::problem("permissions", text).of(server);
            // If the bot can see some channels, the next lines explain why companions cannot speak there.
            if *seen > 0 { line } else { line.click(Need::Listen.explanation().1) }
        });
        for (need, channels) in lacking {
            let (problem, click) = need.explanation();
            self.add_line(Line::warning("permissions", problem).click(click).of(server).in_channels(channels.clone()));
        }
        if !full.is_empty() {
            let (problem, click) = NO_ROOM_FOR_WEBHOOK;
            self.add_line(Line::warning("webhooks", problem).click(click).of(server).in_channels(full.clone()));
        }
    }
}

/// Finds missing permissions in each channel for text messages.
fn examine(
    permissions: impl Fn(&ServerChannel) -> Permissions,
    channels: &[ServerChannel],
    webhooks: &[Webhook],
    application: Snowflake,
) -> Findings {
    let mut findings = Findings::default();
    for listed in channels.iter().filter(|listed| can_hold_messages(listed.kind)) {
        let place = if is_voice(listed.kind) { Place::Voice } else { Place::Text };
        let needs = missing(permissions(listed), place);
        // Many channels are not meant for a bot, so not seeing one is not a problem.
        if needs.iter().any(|need| matches!(need, Need::Listen | Need::Enter)) {
            findings.hidden += 1;
            continue;
        }
        let named = Named::new(listed.id, listed.name.as_deref().unwrap_or_default());
        let webhooks = || webhooks.iter().filter(|webhook| webhook.channel_id == Some(listed.id));
        let is_full =
            webhooks().count() >= MOST_WEBHOOKS && webhooks().all(|webhook| webhook.application_id != Some(application));
        findings.seen += 1;
        findings.speakable += usize::from(!is_full && !needs.iter().any(|need| need.is_vital()));
        if is_full {
            findings.full.push(named.clone());
        }
        for need in needs {
            findings.lacking.entry(need).or_default().push(named.clone());
        }
    }
    findings
}

/// Whether people can write messages in the channel or its posts.
fn can_hold_messages(kind: ChannelType) -> bool {
    CHANNEL_TYPES.contains(&kind) && !kind.is_thread()
}
