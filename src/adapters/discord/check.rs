//! Checks whether Discord would work, without opening a session. Reports what works, what does not, and how to fix it.
//!
//! The check never identifies, so it does not use up the daily limit of identifies. It changes nothing on Discord.

mod account;
mod calls;
mod connection;
mod guilds;
mod report;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

use super::clock::{self, Clocks};
use super::permissions;
use super::rest::{Failed, Request, Rest};
use super::snowflake::Snowflake;
use crate::ports::clock::Clock;
use crate::ports::lease::Unlimited;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;

pub use self::report::{Figures, Line, Named, Report, State};

/// The scopes of the invitation ("OAuth2", "Bot Users"; "Application Commands", "Authorizing Your Application").
const SCOPES: &str = "bot+applications.commands";
/// Above this, slash commands may miss Discord's limit of three seconds, which includes the network in both directions and our
/// own work.
const SLOW: Duration = Duration::from_millis(1_000);
/// Advice if Discord cannot be reached.
const REACH: &str =
    "Look at this machine's network, its DNS and its firewall, and at HTTPS_PROXY and discord.api_url if you set them.";
/// Advice if Discord itself fails.
const TRY_LATER: &str = "Try again in some minutes; https://discordstatus.com shows Discord's outages.";

/// Which servers to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// The first servers that the bot is in, up to this number, at most 200.
    First(usize),
    These(Vec<Snowflake>),
}

/// Runs all checks and returns the report.
///
/// Each request takes at most `request_timeout_secs`. If the bot's account or application cannot be read, no further requests are
/// made. After two servers in a row without a usable answer from Discord, the others are not checked.
///
/// # Errors
/// Returns an error if the address or the token in the settings is invalid.
pub async fn check(
    settings: &Settings,
    token: SecretString,
    servers: &Servers,
    clock: Arc<dyn Clock>,
) -> Result<Report, Problem> {
    let clocks = Arc::new(Clocks::new(clock));
    let rest = Rest::new(settings, token, Arc::clone(&clocks), Arc::new(Unlimited))?;
    let mut checking =
        Checking { rest, settings, clocks, report: Report::default(), took: Vec::new(), found_calls: BTreeSet::new() };
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

/// The invitation link for an application's bot. It requests exactly the permissions that the bot needs.
pub fn invitation(application: Snowflake) -> String {
    let permissions = permissions::invitation().bits();
    format!("https://discord.com/oauth2/authorize?client_id={application}&scope={SCOPES}&permissions={permissions}")
}

struct Checking<'a> {
    rest: Rest,
    settings: &'a Settings,
    clocks: Arc<Clocks>,
    report: Report,
    /// The duration of each successful request.
    took: Vec<Duration>,
    /// The channels of `discord.voice_channels` that were found.
    found_calls: BTreeSet<Snowflake>,
}

impl Checking<'_> {
    /// Sends a request, and measures how long the answer takes.
    async fn ask<T: serde::de::DeserializeOwned>(&mut self, request: Request) -> Result<T, Failed> {
        let began = Instant::now();
        let answer = self.rest.ask(request).await;
        if answer.is_ok() {
            self.took.push(began.elapsed());
        }
        answer
    }

    fn add_line(&mut self, line: Line) {
        self.report.lines.push(line);
    }

    /// Adds a line for a request that failed.
    fn add_failed_line(&mut self, about: &'static str, failed: &Failed) {
        self.add_line(failed_line(about, failed));
    }

    /// Checks how this machine's clock differs from Discord's.
    fn clock(&mut self) {
        let difference = self.clocks.difference();
        self.add_line(match difference {
            clock::Difference::NONE => Line::good("clock", difference.description()),
            _ => {
                let text = format!("{}; the age of messages is measured by Discord's clock", difference.description());
                Line::warning("clock", text).click(clock::CLICK)
            }
        });
    }

    /// Checks how long answers take. If there are several, the first one is excluded, because it includes connecting.
    fn latency(&mut self) {
        let first = self.took.first().copied().unwrap_or_default();
        let mut later = self.took.split_off(self.took.len().min(1));
        later.sort();
        let typical = later.get(later.len() / 2).copied().unwrap_or(first);
        let (connected_ms, answered_ms) = (millis(first), millis(typical));
        self.report.figures.answer_ms = Some(answered_ms);
        let text = format!("Discord's answers take {answered_ms} ms, the first one with its connection {connected_ms} ms");
        self.add_line(if typical < SLOW {
            Line::good("latency", text)
        } else {
            let click = "Run the server nearer to Discord, or check what is between them: the network, a proxy.";
            Line::warning("latency", format!("{text}; slash commands must be answered within 3,000 ms")).click(click)
        });
    }
}

fn failed_line(about: &'static str, failed: &Failed) -> Line {
    let text = failed.to_string();
    match failed {
        Failed::NotNow { after: Some(after), .. } => {
            Line::problem(about, text).click(format!("Leave Discord alone for {}, then try again.", report::span(*after)))
        }
        Failed::NotNow { after: None, .. } => Line::problem(about, text).click(REACH),
        Failed::Unknown { .. } => Line::problem(about, text).click(TRY_LATER),
        // The text of a refusal contains its fix.
        Failed::Refused(_) => Line::problem(about, text),
    }
}

/// Whether other requests would fail now, too.
fn is_out_of_reach(failed: &Failed) -> bool {
    !matches!(failed, Failed::Refused(_))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
