//! `tertulia discord check`: what it says of a Discord that works, and of each that does not.

mod account;
mod failing;
mod process;
mod servers;

use std::sync::Arc;

use tertulia::adapters::discord::check::{Line, Report, Servers, State, check};
use tertulia::adapters::discord::snowflake::Snowflake;
use tertulia::adapters::system::SystemClock;
use tertulia::settings::Settings;
use tertulia::settings::discord::Discord as Section;

use super::counterpart::Counterpart;
use super::counterpart::id::Id;
use super::counterpart::rules::Rules;

/// A Discord with one guild and one channel, where all is well.
async fn home() -> (Counterpart, Id, Id) {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    (discord, guild, general)
}

/// Looks at the first servers.
async fn checked(discord: &Counterpart) -> Report {
    checked_with(discord, Servers::First(10), |_| {}).await
}

/// Looks at these servers, with other settings.
async fn checked_with(discord: &Counterpart, servers: Servers, change: impl FnOnce(&mut Section)) -> Report {
    let report = looked_at(discord, servers, change).await;
    // Nobody but the check has asked for anything: nothing was written.
    let written = discord.look(|state| state.journal.requests.iter().filter(|request| request.method != "GET").count());
    assert_eq!(written, 0);
    report
}

/// The same of a Discord in which others wrote something before.
async fn looked_at(discord: &Counterpart, servers: Servers, change: impl FnOnce(&mut Section)) -> Report {
    let token = discord.token();
    let report = check(&section(&discord.api_url(), change), token.as_str().into(), &servers, Arc::new(SystemClock)).await;
    let report = report.expect("the settings are good");
    let told = format!("{report} {report:?} {}", serde_json::to_string(&report).expect("JSON"));
    assert!(!told.contains(&token), "{told}");
    // Whatever was looked at, no session was begun.
    assert_eq!(discord.look(|state| state.gateway.starts.len()), 0);
    report
}

/// The section as it ships but for the address.
fn section(api_url: &str, change: impl FnOnce(&mut Section)) -> Section {
    let defaults = Settings::defaults().expect("the defaults");
    let mut section: Section = defaults["discord"].clone().try_into().expect("the section");
    section.api_url = format!("{api_url}/api");
    change(&mut section);
    section
}

/// The lines about something.
fn about<'a>(report: &'a Report, about: &str) -> Vec<&'a Line> {
    report.lines.iter().filter(|line| line.about == about).collect()
}

/// The one line about something.
fn line<'a>(report: &'a Report, what: &str) -> &'a Line {
    match about(report, what)[..] {
        [line] => line,
        ref lines => panic!("not one line about {what}: {lines:?} in\n{report}"),
    }
}

/// Whether the one line about something stands so, and says these words or has them to click.
fn assert_line(report: &Report, what: &str, state: State, words: &[&str]) {
    let line = line(report, what);
    assert_eq!(line.state, state, "{line}");
    for word in words {
        assert!(line.to_string().contains(word), "no {word:?} in {line}");
    }
}

fn snowflake(id: Id) -> Snowflake {
    Snowflake::new(id.0).expect("an id")
}
