//! `tertulia discord check`: its report for a Discord that works, and for each kind of broken Discord.

mod account;
mod calls;
mod failing;
mod process;
mod servers;

use std::sync::Arc;

use tertulia::adapters::discord::check::{Line, Report, Servers, State, check};
use tertulia::adapters::system::SystemClock;
use tertulia::settings::discord::Discord as Section;

use super::counterpart::Counterpart;
use super::home::section;

/// Checks up to ten servers.
async fn run_check(discord: &Counterpart) -> Report {
    run_check_with(discord, Servers::First(10), |_| {}).await
}

/// Checks these servers with changed settings, and asserts that the check wrote nothing.
async fn run_check_with(discord: &Counterpart, servers: Servers, change: impl FnOnce(&mut Section)) -> Report {
    let report = report_on(discord, servers, change).await;
    // Only the check made requests.
    let written = discord.look(|state| state.journal.requests.iter().filter(|request| request.method != "GET").count());
    assert_eq!(written, 0);
    report
}

/// The same for a Discord in which others have written something before.
async fn report_on(discord: &Counterpart, servers: Servers, change: impl FnOnce(&mut Section)) -> Report {
    let (token, mut section) = (discord.token(), section(discord));
    change(&mut section);
    let report = check(&section, token.as_str().into(), &servers, Arc::new(SystemClock)).await;
    let report = report.expect("the settings are good");
    let output = format!("{report} {report:?} {}", serde_json::to_string(&report).expect("JSON"));
    assert!(!output.contains(&token), "{output}");
    // A check never starts a session.
    assert_eq!(discord.look(|state| state.gateway.starts.len()), 0);
    report
}

fn about<'a>(report: &'a Report, about: &str) -> Vec<&'a Line> {
    report.lines.iter().filter(|line| line.about == about).collect()
}

/// The only line about a subject. Panics if there are none or several.
fn line<'a>(report: &'a Report, what: &str) -> &'a Line {
    match about(report, what)[..] {
        [line] => line,
        ref lines => panic!("not one line about {what}: {lines:?} in\n{report}"),
    }
}

/// Asserts that the only line about a subject has this state and contains these words.
fn assert_line(report: &Report, what: &str, state: State, words: &[&str]) {
    let line = line(report, what);
    assert_eq!(line.state, state, "{line}");
    for word in words {
        assert!(line.to_string().contains(word), "no {word:?} in {line}");
    }
}
