//! The metrics of requests to Discord.

use std::time::Duration;

use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::ChatPlatform as _;
use tertulia::settings::discord::Discord as Section;
use tertulia::telemetry::metrics::Metrics;

use super::super::counterpart::{Bucket, Counterpart, Does, On, Permissions, Rules, Scope};
use super::super::home::{Home, adapter, part, section};
use super::say;

const REQUESTS: &str = "tertulia_discord_requests_total";

fn measured(discord: &Counterpart, timeout_secs: f64) -> (Discord, Metrics) {
    let metrics = Metrics::local();
    let section = Section { request_timeout_secs: timeout_secs, ..section(discord) };
    (adapter(&section, &discord.token()).measured(metrics.instruments()), metrics)
}

#[tokio::test]
async fn requests_are_counted_by_route_and_outcome() {
    let Home { discord, general, .. } = Home::new().await;
    let (client, metrics) = measured(&discord, 1.0);
    let requests =
        |route: &str, outcome: &str| metrics.total(REQUESTS, &[("discord_route", route), ("discord_outcome", outcome)]);
    say(&client, &part(general, "one")).await;
    let execute = || On::route("execute_webhook");
    let hang = discord.spoil_next(1, execute(), Does::Hang);

    let first = client.send(&part(general, "two")).await;
    discord.lift(hang);
    for does in [Does::Status(500), Does::Status(418), Does::Cut] {
        discord.spoil_next(1, execute(), does);
        let _ = client.send(&part(general, "three")).await;
    }

    assert!(first.is_err());
    // One request for the application and one for the channel. Three for webhooks: list them, create one, post with it.
    assert_eq!((requests("account", "2xx"), requests("channel", "2xx"), requests("webhook", "2xx")), (1.0, 1.0, 3.0));
    let failed = ["timeout", "5xx", "4xx", "broken", "429"].map(|outcome| requests("webhook", outcome));
    assert_eq!(failed, [1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(metrics.total("tertulia_discord_request_duration_seconds_count", &[]), metrics.total(REQUESTS, &[]));
    assert_eq!(metrics.total("tertulia_discord_waits_total", &[]), 0.0);
}

#[tokio::test]
async fn an_unreachable_server_is_counted_apart_from_a_broken_connection() {
    let Home { discord, general, .. } = Home::new().await;
    let (client, metrics) = measured(&discord, 5.0);
    drop(discord);

    let _ = client.send(&part(general, "one")).await;

    assert_eq!(metrics.total(REQUESTS, &[("discord_outcome", "unreachable")]), 1.0);
}

#[tokio::test]
async fn waits_for_limits_and_held_back_requests_are_counted() {
    // The window must be longer than the time between two requests on a busy machine.
    let bucket = Bucket { requests: 1, window: Duration::from_secs(1) };
    let Home { discord, general, .. } =
        Home::with_rules(Rules { buckets: [("execute_webhook", bucket)].into(), ..Rules::roomy() }).await;
    let (client, metrics) = measured(&discord, 5.0);

    say(&client, &part(general, "one")).await;
    say(&client, &part(general, "two")).await;
    let waits = metrics.total("tertulia_discord_waits_total", &[]);
    let waited_seconds = metrics.total("tertulia_discord_waited_seconds_total", &[]);
    let too_many = Does::TooMany { retry_after: Duration::from_secs(60), scope: Scope::User };
    discord.spoil_next(1, On::route("execute_webhook"), too_many);
    let _ = client.send(&part(general, "three")).await;
    let _ = client.send(&part(general, "four")).await;

    assert_eq!(waits, 1.0);
    assert!(waited_seconds > 0.0, "{waited_seconds}");
    let requests = |outcome| metrics.total(REQUESTS, &[("discord_outcome", outcome)]);
    assert_eq!((requests("429"), requests("held_back")), (1.0, 1.0));
    assert_eq!(metrics.total("tertulia_discord_requests_invalid_total", &[]), 1.0);
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_invalid_requests_separately() {
    let Home { discord, guild, general, .. } = Home::new().await;
    let gone = discord.channel(guild, "gone");
    discord.deny(general, discord.bot_role(guild), Permissions::MANAGE_WEBHOOKS);
    discord.remove_channel(gone);
    let (client, metrics) = measured(&discord, 5.0);

    let _ = client.send(&part(general, "one")).await;
    let _ = client.send(&part(gone, "two")).await;
    discord.reset_token();
    let _ = client.send(&part(general, "three")).await;

    let refusals = |kind| metrics.total("tertulia_discord_refusals_total", &[("discord_refusal", kind)]);
    assert_eq!((refusals("permission"), refusals("gone"), refusals("token"), refusals("other")), (1.0, 1.0, 1.0, 0.0));
    assert_eq!(metrics.total("tertulia_discord_requests_invalid_total", &[]), 2.0);
}
