//! A Discord that is unreachable, refuses, hangs or sends malformed answers. Each leads to one clear line.

use std::sync::Arc;
use std::time::Duration;

use tertulia::adapters::discord::check::{Servers, State, check};
use tertulia::adapters::system::SystemClock;

use super::super::counterpart::{Connects, Does, On, Scope};
use super::super::home::{Home, section, section_at};
use super::{about, assert_line, line, run_check, run_check_with};

#[tokio::test]
async fn an_unreachable_discord_is_reported_in_one_line() {
    let Home { discord, .. } = Home::new().await;
    let (token, api_url) = (discord.token(), discord.api_url());
    drop(discord);

    let report = check(&section_at(&api_url), token.into(), &Servers::First(10), Arc::new(SystemClock)).await.expect("a report");

    assert_eq!(report.lines.len(), 1);
    assert_line(&report, "discord", State::Problem, &["Discord cannot be reached", "its DNS and its firewall"]);
    assert_eq!(report.invitation, None);
}

#[tokio::test]
async fn a_token_that_was_reset_is_reported_in_one_line() {
    let Home { discord, .. } = Home::new().await;
    let old = discord.token();
    let new = discord.reset_token();

    let report =
        check(&section(&discord), old.clone().into(), &Servers::First(10), Arc::new(SystemClock)).await.expect("a report");

    assert_eq!(report.lines.len(), 1);
    assert_line(&report, "token", State::Problem, &["refuses the bot's token", "Reset Token"]);
    assert!(!report.to_string().contains(&old) && !report.to_string().contains(&new));
}

#[tokio::test]
async fn every_failed_request_is_reported_with_a_remedy() {
    let wait = Does::TooMany { retry_after: Duration::from_secs(90), scope: Scope::User };
    for route in ["user", "application", "gateway", "commands", "guilds", "guild", "guild_member", "guild_channels", "webhooks"] {
        for (does, expected) in [
            (Does::Status(500), "Discord answered 500"),
            (Does::Status(503), "discordstatus.com"),
            (Does::Status(418), "(Discord said 418"),
            (wait.clone(), "Leave Discord alone for 1 min"),
            (Does::Garbled, "cannot be read"),
            (Does::Cut, "the connection to Discord broke"),
        ] {
            let Home { discord, .. } = Home::new().await;
            discord.spoil(On::route(route), does.clone());

            let report = run_check(&discord).await;

            assert!(!report.would_work(), "{route} {does:?}: {report}");
            let is_reported = report.lines.iter().any(|line| line.state == State::Problem && line.to_string().contains(expected));
            assert!(is_reported, "{route} {does:?}: no {expected:?} in\n{report}");
        }
    }
}

#[tokio::test]
async fn a_hanging_request_times_out() {
    for route in ["user", "gateway", "guild_channels"] {
        let Home { discord, .. } = Home::new().await;
        discord.spoil(On::route(route), Does::Hang);

        let report = run_check_with(&discord, Servers::First(10), |section| section.request_timeout_secs = 1.0).await;

        assert!(report.to_string().contains("no answer within 1 s"), "{route}: {report}");
    }
}

#[tokio::test]
async fn an_unusable_gateway_is_a_problem() {
    for (connects, expected) in [
        (Connects::Refused, "no connection to 127.0.0.1"),
        (Connects::Hanging, "127.0.0.1 sent nothing within 1 s"),
        (Connects::Mute, "127.0.0.1 sent nothing within 1 s"),
    ] {
        let Home { discord, .. } = Home::new().await;
        discord.set_connects(connects);

        let report = run_check_with(&discord, Servers::First(0), |section| section.request_timeout_secs = 1.0).await;

        assert_line(&report, "gateway", State::Problem, &[expected, "port 443"]);
    }
}

#[tokio::test]
async fn the_configured_gateway_is_the_one_that_is_tried() {
    let Home { discord, .. } = Home::new().await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");

    let elsewhere =
        run_check_with(&discord, Servers::First(0), |section| section.gateway_url = Some(format!("ws://{free}"))).await;
    discord.with(|state| state.gateway_url = "ws://example.org".to_owned());
    let unencrypted = run_check(&discord).await;

    assert_line(&elsewhere, "gateway", State::Problem, &["no connection to 127.0.0.1"]);
    assert_line(&unencrypted, "gateway", State::Problem, &["names no gateway that can be used"]);
}

#[tokio::test]
async fn an_error_in_one_server_is_reported_and_the_check_continues_unless_discord_is_down() {
    let Home { discord, guild, .. } = Home::new().await;
    let other = discord.guild("Other");
    discord.channel(other, "general");
    discord.spoil(On { guild: Some(guild), route: Some("guild_channels"), ..On::default() }, Does::Status(418));

    let refused = run_check(&discord).await;
    discord.spoil(On { guild: Some(guild), ..On::default() }, Does::Status(500));
    let broken = run_check(&discord).await;
    discord.spoil(On { guild: Some(other), ..On::default() }, Does::Status(500));
    discord.guild("A third");
    let out_of_reach = run_check(&discord).await;

    assert_eq!(about(&refused, "servers").len(), 2, "{refused}");
    assert_eq!(line(&refused, "permissions").server.as_ref().map(|server| server.name.as_str()), Some("Other"));
    assert_eq!(about(&broken, "permissions").len(), 1, "{broken}");
    assert_eq!(about(&out_of_reach, "permissions").len(), 0, "{out_of_reach}");
    assert!(out_of_reach.to_string().contains("the other 1 are not checked"), "{out_of_reach}");
}
