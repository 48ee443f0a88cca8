//! Checks of the token, the application, its intents, its commands, the remaining identifies and the connection.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::json;
use tertulia::adapters::discord::check::{Servers, State, invitation};
use tertulia::settings::discord::MessageContent;
use tertulia::telemetry::metrics::Metrics;

use super::super::commands::backend::SmallBackend;
use super::super::commands::{commands, platform};
use super::super::counterpart::{Command, Counterpart, Intents, Rules};
use super::super::home::{Home, snowflake};
use super::{about, assert_line, line, report_on, run_check, run_check_with};

#[tokio::test]
async fn every_line_is_good_when_everything_works() {
    let Home { discord, .. } = Home::new().await;
    register(&discord).await;

    let report = report_on(&discord, Servers::First(10), |_| {}).await;

    assert!(report.lines.iter().all(|line| line.state == State::Good), "{report}");
    let all: Vec<_> = report.lines.iter().map(|line| line.about).collect();
    assert_eq!(
        all,
        ["token", "intents", "clock", "identify", "shards", "gateway", "commands", "servers", "permissions", "latency"]
    );
    assert!(report.would_work());
    assert_line(&report, "token", State::Good, &["tertulia"]);
    assert_line(&report, "identify", State::Good, &["1000 of 1000 identifies are left, 1 are needed"]);
    assert_line(&report, "permissions", State::Good, &["Home: companions can speak in 1 of the 1 channels"]);
    assert_eq!((report.figures.servers, report.figures.shards, report.figures.identifies_left), (Some(1), Some(1), Some(1_000)));
    assert!(report.figures.hello_ms.is_some() && report.figures.answer_ms.is_some(), "{report:?}");
}

#[tokio::test]
async fn a_wrong_clock_is_reported_with_a_remedy() {
    let behind = std::time::Duration::from_secs(5_400);
    let discord = Counterpart::with_rules(Rules { behind, ..Rules::roomy() }).await;
    discord.guild("Home");

    let report = run_check(&discord).await;

    assert_line(&report, "clock", State::Warning, &["this machine's clock is 90 min ahead of Discord's", "NTP"]);
}

#[tokio::test]
async fn the_invitation_requests_only_the_needed_permissions() {
    let Home { discord, .. } = Home::new().await;

    let report = run_check(&discord).await;

    let bot = discord.look(|state| snowflake(state.world.bot()));
    let link = "scope=bot+applications.commands&permissions=275414846464";
    assert_eq!(report.invitation, Some(invitation(bot)));
    assert_eq!(invitation(bot), format!("https://discord.com/oauth2/authorize?client_id={bot}&{link}"));
    assert!(report.to_string().ends_with(&format!("to invite the bot: {}\n", invitation(bot))));
}

#[tokio::test]
async fn the_report_says_what_fails_without_message_content_and_how_to_enable_it() {
    let Home { discord, .. } = Home::new().await;
    discord.set_privileged(Intents::empty());
    let with = |content| run_check_with(&discord, Servers::First(0), move |section| section.message_content = content);

    let (auto, on, off) = (with(MessageContent::Auto).await, with(MessageContent::On).await, with(MessageContent::Off).await);

    assert_line(&auto, "intents", State::Warning, &["do not notice their names", "Message Content Intent > on"]);
    assert_line(&on, "intents", State::Problem, &["would not connect", "Message Content Intent > on"]);
    assert_line(&off, "intents", State::Warning, &["is not requested", "discord.message_content = \"auto\""]);
    assert_eq!([auto, on, off].map(|report| report.would_work()), [true, false, true]);
    discord.set_privileged(Intents::MESSAGE_CONTENT);
    assert_line(
        &run_check(&discord).await,
        "intents",
        State::Good,
        &["once 10,000 users share a server with the bot", "every year"],
    );
}

#[tokio::test]
async fn an_unregistered_command_is_a_warning_to_start_the_server() {
    let Home { discord, .. } = Home::new().await;

    assert_line(&run_check(&discord).await, "commands", State::Warning, &["/tertulia is not registered yet", "Start the server"]);
}

#[tokio::test]
async fn a_command_of_another_version_is_recognised() {
    let Home { discord, .. } = Home::new().await;
    discord.with(|state| {
        let id = state.world.new_id();
        let data = json!({ "name": "tertulia", "description": "Companions" });
        state.world.commands.push(Command { id, version: id, data });
    });

    assert_line(&run_check(&discord).await, "commands", State::Warning, &["as another version", "registers its own"]);
    register(&discord).await;

    let report = report_on(&discord, Servers::First(0), |_| {}).await;
    assert_line(&report, "commands", State::Good, &["/tertulia is registered"]);
}

#[tokio::test]
async fn an_application_that_nobody_can_invite_or_use_is_a_problem() {
    let Home { discord, .. } = Home::new().await;
    discord.with(|state| {
        state.world.application.code_grant = true;
        state.world.application.interactions_url = Some("https://example.org/interactions".to_owned());
    });

    let report = run_check(&discord).await;

    assert_line(&report, "invitation", State::Problem, &["Requires OAuth2 Code Grant > off"]);
    let commands = about(&report, "commands");
    assert!(commands[0].to_string().contains("Interactions Endpoint URL > clear it"), "{report}");
    assert!(!report.would_work());
    discord.with(|state| (state.world.application.code_grant, state.world.application.public) = (false, false));
    assert_line(&run_check(&discord).await, "invitation", State::Good, &["owner alone can invite it"]);
}

#[tokio::test]
async fn low_identifies_are_reported_before_they_run_out() {
    let rest = |left: usize| async move {
        let discord = Counterpart::with_rules(Rules { session_starts: left, ..Rules::roomy() }).await;
        let report = run_check(&discord).await;
        (line(&report, "identify").clone(), report.would_work())
    };

    let (plenty, scarce, none) = (rest(1_000).await, rest(23).await, rest(20).await);

    assert_eq!((plenty.0.state, plenty.1), (State::Good, true));
    assert_eq!((scarce.0.state, scarce.1), (State::Warning, true), "{}", scarce.0);
    assert_eq!((none.0.state, none.1), (State::Problem, false), "{}", none.0);
    assert!(
        none.0.to_string().contains("the last 20 are left to you") && none.0.to_string().contains("24 h 0 min"),
        "{}",
        none.0
    );
}

#[tokio::test]
async fn too_few_configured_shards_are_a_warning() {
    let rules = Rules { recommended_shards: Some(4), ..Rules::roomy() };
    let discord = Counterpart::with_rules(rules).await;
    let with = |shards: u32| run_check_with(&discord, Servers::First(0), move |section| section.shards = NonZeroU32::new(shards));

    let (fewer, enough) = (with(1).await, with(4).await);

    assert_line(&fewer, "shards", State::Warning, &["Discord recommends 4"]);
    assert_line(&enough, "shards", State::Good, &["Discord recommends 4"]);
    assert_line(&run_check(&discord).await, "identify", State::Good, &["4 are needed"]);
}

#[tokio::test]
async fn the_report_explains_how_to_invite_a_bot_that_is_in_no_server() {
    let discord = Counterpart::with_rules(Rules::roomy()).await;

    let report = run_check(&discord).await;

    assert_line(&report, "servers", State::Warning, &["in no server yet", "Open the link below"]);
    assert!(report.would_work());
}

/// Registers the commands as a server does, and waits until both are registered.
async fn register(discord: &Counterpart) {
    let backend = Arc::new(SmallBackend::default());
    commands(&platform(discord), &backend, &Metrics::local()).ready();
    discord
        .until("the commands", |state| {
            let written = state.journal.requests_of("create_command").filter(|request| request.outcome.is_some());
            (written.count() == 2).then_some(())
        })
        .await;
}
