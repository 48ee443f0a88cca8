//! `tertulia discord check`: checks before the start whether Discord would work with these settings.

mod answers;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use super::check::use_connection;
use super::client::block_on;
use super::command_io::{print, print_json, run_with_settings_as};
use super::failure::Failure;
use super::visible;
use crate::adapters::discord::check::{Report, Servers, check};
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::system::SystemClock;
use crate::settings::Loaded;
use crate::settings::Sources;

const EXAMPLES: &str = "\
Examples:
  tertulia discord check                              the token, its intents, the connection, the first 10 servers
  tertulia discord check --server 81384788765712384   one server, with each channel in which companions could not speak
  tertulia discord check --servers 0                  no servers
  tertulia discord check --answers                    what Discord asks when it reviews a bot, answered from the settings
  tertulia discord check --json | jq '.lines[] | select(.state != \"good\")'

The token is read from TERTULIA__DISCORD__TOKEN or from discord.token_file. You can run this while the server runs: it connects without \
identifying, and changes nothing.

Exit codes:
  0  Discord would work
  1  it would not: each problem names what to change
  2  wrong usage or wrong settings, such as a missing token";

#[derive(Clone, Debug, Subcommand)]
pub enum Discord {
    /// Check whether Discord would work, and name what to change where it would not
    Check(Check),
}

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Check the server (guild) with this id; can be given several times
    #[arg(long, value_name = "ID", conflicts_with = "servers")]
    pub server: Vec<Snowflake>,

    /// Check at most this many of the bot's servers, 0 to 200
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=200))]
    pub servers: u8,

    /// Print what Discord asks when it reviews or verifies a bot, answered from the settings in force; asks nobody, and needs no token
    #[arg(long, conflicts_with_all = ["server", "servers"])]
    pub answers: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the check. The exit code says whether Discord would work.
pub fn run(sources: &Sources, command: Discord) -> ExitCode {
    let Discord::Check(options) = command;
    let json = options.json;
    run_with_settings_as(sources, json, |mut loaded| {
        if options.answers {
            use_connection(&mut loaded).map_err(|problem| Failure::Usage(problem.to_string()))?;
            return show_answers(&loaded, json);
        }
        let report = checked(&loaded, options).inspect_err(|failure| {
            if json {
                // The failure is reported even if this output fails.
                let _ = print_json(&format!(
                    "{:#}",
                    json!({ "ok": false, "problems": [{ "place": null, "line": null, "message": failure.to_string() }] })
                ));
            }
        })?;
        show(&report, json)
    })
}

fn checked(loaded: &Loaded, options: Check) -> Result<Report, Failure> {
    let settings = &loaded.settings.discord;
    let usage = |problem: &dyn std::fmt::Display| Failure::Usage(format!("discord.{problem}"));
    let token = settings.token().map_err(|problem| usage(&problem))?.ok_or_else(no_token)?;
    let servers = if options.server.is_empty() { Servers::First(options.servers.into()) } else { Servers::These(options.server) };
    block_on(async { check(settings, token, &servers, Arc::new(SystemClock)).await.map_err(|problem| usage(&problem)) })
}

fn show(report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        print_json(&format!("{:#}", as_json(report)?))?
    } else {
        print(&visible::lines(&as_text(report)))?
    }
    match report.problems() {
        0 => Ok(()),
        1 => Err(Failure::Failed("Discord would not work: 1 problem".to_owned())),
        count => Err(Failure::Failed(format!("Discord would not work: {count} problems"))),
    }
}

fn show_answers(loaded: &Loaded, json: bool) -> Result<(), Failure> {
    let answers = answers::answers(loaded);
    if json {
        return print_json(&format!("{:#}", json!({ "ok": true, "answers": answers })));
    }
    let text: Vec<_> = answers.iter().map(|answers::Answer { question, answer }| format!("{question}\n  {answer}")).collect();
    print(&visible::lines(&format!("{}\n\nCheck each answer, and complete it: you sign them.", text.join("\n\n"))))
}

fn no_token() -> Failure {
    Failure::Usage(
        "no token is set: set TERTULIA__DISCORD__TOKEN to it, or discord.token_file to a file that contains it (Developer Portal > the \
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
