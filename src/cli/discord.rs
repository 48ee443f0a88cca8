//! `tertulia discord check`: whether Discord would work with these settings, before the server is started.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use super::asking::{ask_with, print, print_json};
use super::client::block_on;
use super::failure::Failure;
use super::visible;
use crate::adapters::discord::check::{Report, Servers, check};
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::system::SystemClock;
use crate::settings::Loaded;
use crate::settings::Sources;

const EXAMPLES: &str = "\
Examples:
  tertulia discord check                              the token, what it may read, the connection, the first 10 servers
  tertulia discord check --server 81384788765712384   one server, with each channel that companions could not speak in
  tertulia discord check --servers 0                  no servers
  tertulia discord check --json | jq '.lines[] | select(.state != \"good\")'

The token comes from TERTULIA__DISCORD__TOKEN, or from discord.token_file. It may run beside the server: it connects without identifying, and \
changes nothing.

Exit codes:
  0  it would work
  1  it would not: each problem says what to click
  2  wrong usage or wrong settings, a missing token among them";

/// What can be asked about Discord.
#[derive(Clone, Debug, Subcommand)]
pub enum Discord {
    /// Look whether Discord would work, and say what to click where it would not
    Check(Check),
}

/// Which servers are looked at, and how it is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Look at this server (guild), by its id; may be given several times
    #[arg(long, value_name = "ID", conflicts_with = "servers")]
    pub server: Vec<Snowflake>,

    /// Look at so many of the servers that the bot is in: 0 to 200
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=200))]
    pub servers: u8,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Looks, and says with the exit code whether it would work.
pub fn run(sources: &Sources, asked: Discord) -> ExitCode {
    let Discord::Check(asked) = asked;
    ask_with(sources, |loaded| look(&loaded, asked))
}

fn look(loaded: &Loaded, asked: Check) -> Result<(), Failure> {
    let settings = &loaded.settings.discord;
    let usage = |problem: &dyn std::fmt::Display| Failure::Usage(format!("discord.{problem}"));
    let token = settings.token().map_err(|problem| usage(&problem))?.ok_or_else(no_token)?;
    let servers = if asked.server.is_empty() { Servers::First(asked.servers.into()) } else { Servers::These(asked.server) };
    let report =
        block_on(async { check(settings, token, &servers, Arc::new(SystemClock)).await.map_err(|problem| usage(&problem)) })?;
    if asked.json {
        print_json(&format!("{:#}", as_json(&report)?))?
    } else {
        print(&visible::lines(&as_text(&report)))?
    }
    match report.problems() {
        0 => Ok(()),
        1 => Err(Failure::Failed("Discord would not work: there is a problem".to_owned())),
        count => Err(Failure::Failed(format!("Discord would not work: there are {count} problems"))),
    }
}

fn no_token() -> Failure {
    Failure::Usage(
        "there is no token: set TERTULIA__DISCORD__TOKEN to it, or discord.token_file to a file that holds it (Developer Portal > the \
         application > Bot > Reset Token)"
            .to_owned(),
    )
}

fn as_text(report: &Report) -> String {
    let verdict = if report.would_work() { "\nDiscord would work" } else { "" };
    format!("{report}{verdict}").trim_end().to_owned()
}

fn as_json(report: &Report) -> Result<serde_json::Value, Failure> {
    let mut object =
        serde_json::to_value(report).map_err(|error| Failure::Failed(format!("the report cannot be written: {error}")))?;
    object["ok"] = json!(report.would_work());
    Ok(object)
}
