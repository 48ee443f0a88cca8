//! Looks whether Discord would work, without a session: what is good, what is not, and what to click.
//!
//! Nothing identifies, so nothing of the day's identifies is spent; nothing on Discord is changed.

mod account;
mod connection;
mod guilds;
mod report;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

use self::account::Application;
use super::clock::{self, Clocks};
use super::permissions::Permissions;
use super::rest::{Failed, Request, Rest};
use super::snowflake::Snowflake;
use crate::ports::clock::Clock;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;

pub use self::report::{Line, Named, Report, State, Told};

/// What a bot asks for when it is invited ("OAuth2", "Bot Users"; "Application Commands", "Authorizing Your Application").
const SCOPES: &str = "bot+applications.commands";
/// Answers to slash commands have three seconds, both ways and our own work included.
const SLOW: Duration = Duration::from_millis(1_000);
/// What helps whoever does not reach Discord.
const REACH: &str =
    "Look at this machine's network, its DNS and its firewall, and at HTTPS_PROXY and discord.api_url if you set them.";
/// What helps when Discord itself is in trouble.
const TRY_LATER: &str = "Try again in some minutes; https://discordstatus.com tells of Discord's troubles.";

/// Which servers are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// The first of those that the bot is in: so many, 200 at most.
    First(usize),
    /// These.
    These(Vec<Snowflake>),
}

/// Looks at everything, and tells what was found.
///
/// Every request takes as long as `request_timeout_secs` allows at most; where Discord cannot be reached no more are made.
///
/// # Errors
/// The address or the token of the settings cannot be used.
pub async fn check(
    settings: &Settings,
    token: SecretString,
    servers: &Servers,
    clock: Arc<dyn Clock>,
) -> Result<Report, Problem> {
    let clocks = Arc::new(Clocks::new(clock));
    let rest = Rest::new(settings, token, Arc::clone(&clocks))?;
    let mut checking = Checking { rest, settings, clocks, report: Report::default(), took: Vec::new() };
    if let Some(application) = checking.account().await {
        checking.report.invitation = Some(invitation(application.id));
        checking.clock();
        checking.connection().await;
        checking.commands(&application).await;
        checking.servers(&application, servers).await;
        checking.latency();
    }
    Ok(checking.report)
}

/// The link that invites an application's bot, with what it needs and nothing else.
pub fn invitation(application: Snowflake) -> String {
    let permissions = Permissions::INVITATION.0;
    format!("https://discord.com/oauth2/authorize?client_id={application}&scope={SCOPES}&permissions={permissions}")
}

/// A check under way.
struct Checking<'a> {
    rest: Rest,
    settings: &'a Settings,
    clocks: Arc<Clocks>,
    report: Report,
    /// How long each answer took.
    took: Vec<Duration>,
}

impl Checking<'_> {
    /// Asks, and takes the time.
    async fn ask<T: serde::de::DeserializeOwned>(&mut self, request: Request) -> Result<T, Failed> {
        let began = Instant::now();
        let answer = self.rest.ask(request).await;
        if answer.is_ok() {
            self.took.push(began.elapsed());
        }
        answer
    }

    /// Notes a line.
    fn note(&mut self, line: Line) {
        self.report.lines.push(line);
    }

    /// Notes that something could not be asked for.
    fn note_failed(&mut self, about: &'static str, failed: &Failed) {
        self.note(failed_line(about, failed));
    }

    /// How this machine's clock differs from Discord's.
    fn clock(&mut self) {
        let difference = self.clocks.difference();
        self.note(match difference {
            clock::Difference::None => Line::good("clock", difference.told()),
            _ => Line::warning("clock", format!("{}; messages are judged by Discord's", difference.told())).click(clock::CLICK),
        });
    }

    /// How long answers take. The first one is left out where there are more: it had to connect.
    fn latency(&mut self) {
        let first = self.took.first().copied().unwrap_or_default();
        let mut later = self.took.split_off(self.took.len().min(1));
        later.sort();
        let typical = later.get(later.len() / 2).copied().unwrap_or(first);
        let (connected_ms, answered_ms) = (millis(first), millis(typical));
        self.report.told.answer_ms = Some(answered_ms);
        let said = format!("Discord's answers take {answered_ms} ms, the first one with its connection {connected_ms} ms");
        self.note(if typical < SLOW {
            Line::good("latency", said)
        } else {
            let click = "Run the server nearer to Discord, or look at what lies between: its network, a proxy.";
            Line::warning("latency", format!("{said}; slash commands have to be answered within 3,000 ms")).click(click)
        });
    }
}

/// A request that failed, in plain words.
fn failed_line(about: &'static str, failed: &Failed) -> Line {
    let said = failed.to_string();
    match failed {
        Failed::NotNow { after: Some(after), .. } => {
            Line::problem(about, said).click(format!("Leave Discord alone for {}, then try again.", report::span(*after)))
        }
        Failed::NotNow { after: None, .. } => Line::problem(about, said).click(REACH),
        Failed::Unknown { .. } => Line::problem(about, said).click(TRY_LATER),
        // What to click is in the words.
        Failed::Refused(_) => Line::problem(about, said),
    }
}

/// Whether nothing is to be had from Discord at the moment, whatever is asked.
fn is_out_of_reach(failed: &Failed) -> bool {
    !matches!(failed, Failed::Refused(_))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An application's own commands, wherever they are.
fn commands_path(application: &Application, guild: Option<Snowflake>) -> String {
    let place = guild.map(|guild| format!("/guilds/{guild}")).unwrap_or_default();
    format!("/applications/{}{place}/commands", application.id)
}
