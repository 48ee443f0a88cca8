//! What is measured of requests, as an operator reads it.

use std::time::Duration;

use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::ChatPlatform as _;
use tertulia::telemetry::metrics::Metrics;

use super::super::counterpart::Counterpart;
use super::super::counterpart::channels::Overwrite;
use super::super::counterpart::faults::{Does, On, Scope};
use super::super::counterpart::permissions::MANAGE_WEBHOOKS;
use super::super::counterpart::rules::{Bucket, Rules};
use super::{adapter, home, part, say};

const REQUESTS: &str = "tertulia_discord_requests_total";

fn measured(discord: &Counterpart, timeout_secs: f64) -> (Discord, Metrics) {
    let metrics = Metrics::local();
    let client = adapter(&discord.token(), &discord.api_url(), |section| section.request_timeout_secs = timeout_secs);
    (client.measured(metrics.instruments()), metrics)
}

#[tokio::test]
async fn requests_count_by_what_they_are_for_and_what_came_of_them() {
    let (discord, _, general) = home().await;
    let (client, metrics) = measured(&discord, 1.0);
    let of = |route: &str, outcome: &str| metrics.total(REQUESTS, &[("discord_route", route), ("discord_outcome", outcome)]);
    say(&client, &part(general, "one")).await;
    let execute = || On { route: Some("execute_webhook"), ..On::default() };
    let hang = discord.spoil_next(1, execute(), Does::Hang);

    let first = client.send(&part(general, "two")).await;
    discord.lift(hang);
    for does in [Does::Status(500), Does::Status(418), Does::Cut] {
        discord.spoil_next(1, execute(), does);
        let _ = client.send(&part(general, "three")).await;
    }

    assert!(first.is_err());
    // The application, the channel, its webhooks twice: listed, and one made.
    assert_eq!((of("account", "2xx"), of("channel", "2xx"), of("webhook", "2xx")), (1.0, 1.0, 3.0));
    let failed = ["timeout", "5xx", "4xx", "broken", "429"].map(|outcome| of("webhook", outcome));
    assert_eq!(failed, [1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(metrics.total("tertulia_discord_request_duration_seconds_count", &[]), metrics.total(REQUESTS, &[]));
    assert_eq!(metrics.total("tertulia_discord_waits_total", &[]), 0.0);
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_a_broken_connection() {
    let (discord, _, general) = home().await;
    let (client, metrics) = measured(&discord, 5.0);
    drop(discord);

    let _ = client.send(&part(general, "one")).await;

    assert_eq!(metrics.total(REQUESTS, &[("discord_outcome", "unreachable")]), 1.0);
}

#[tokio::test]
async fn waits_for_limits_and_what_they_hold_back_count() {
    // Longer than two requests take to follow each other on a busy machine.
    let bucket = Bucket { requests: 1, window: Duration::from_secs(1) };
    let discord = Counterpart::with_rules(Rules { buckets: [("execute_webhook", bucket)].into(), ..Rules::roomy() }).await;
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    let (client, metrics) = measured(&discord, 5.0);

    say(&client, &part(general, "one")).await;
    say(&client, &part(general, "two")).await;
    let waited =
        (metrics.total("tertulia_discord_waits_total", &[]), metrics.total("tertulia_discord_waited_seconds_total", &[]));
    let too_many = Does::TooMany { retry_after: Duration::from_secs(60), scope: Scope::User };
    discord.spoil_next(1, On { route: Some("execute_webhook"), ..On::default() }, too_many);
    let _ = client.send(&part(general, "three")).await;
    let _ = client.send(&part(general, "four")).await;

    assert_eq!(waited.0, 1.0);
    assert!(waited.1 > 0.0, "{waited:?}");
    let of = |outcome| metrics.total(REQUESTS, &[("discord_outcome", outcome)]);
    assert_eq!((of("429"), of("held_back")), (1.0, 1.0));
    assert_eq!(metrics.total("tertulia_discord_requests_invalid_total", &[]), 1.0);
}

#[tokio::test]
async fn refusals_count_by_why_and_those_that_discord_holds_against_us_apart() {
    let (discord, guild, general) = home().await;
    let role = discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0]);
    let gone = discord.channel(guild, "gone");
    discord.overwrite(general, Overwrite::role(role, 0, MANAGE_WEBHOOKS));
    discord.remove_channel(gone);
    let (client, metrics) = measured(&discord, 5.0);

    let _ = client.send(&part(general, "one")).await;
    let _ = client.send(&part(gone, "two")).await;
    discord.reset_token();
    let _ = client.send(&part(general, "three")).await;

    let of = |kind| metrics.total("tertulia_discord_refusals_total", &[("discord_refusal", kind)]);
    assert_eq!((of("permission"), of("gone"), of("token"), of("other")), (1.0, 1.0, 1.0, 0.0));
    assert_eq!(metrics.total("tertulia_discord_requests_invalid_total", &[]), 2.0);
}
