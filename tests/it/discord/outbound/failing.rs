//! Failed requests: each is reported as what it is, and delays no other guild.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent};

use super::super::counterpart::{Does, On, Scope};
use super::super::home::{Home, part, snowflake};
use super::{Scene, client_with, say};

const AN_HOUR: Duration = Duration::from_secs(3_600);

const EXECUTE: On = On { route: Some("execute_webhook"), guild: None, channel: None };

#[tokio::test]
async fn a_rate_limited_guild_delays_no_other_guild() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let other = discord.channel(discord.guild("Away"), "other");
    for channel in [general, other] {
        say(&client, &part(channel, "before")).await;
    }
    let too_many = Does::TooMany { retry_after: AN_HOUR, scope: Scope::User };
    discord.spoil(On { guild: Some(guild), ..EXECUTE }, too_many);

    let first = client.send(&part(general, "x")).await;
    let requests = discord.look(|state| state.journal.requests.len());
    let second = client.send(&part(general, "y")).await;

    assert!(matches!(first, Err(NotSent::Later { after: Some(after), .. }) if after == AN_HOUR), "{first:?}");
    assert!(matches!(second, Err(NotSent::Later { after: Some(after), .. }) if after <= AN_HOUR), "{second:?}");
    assert_eq!(discord.look(|state| state.journal.requests.len()), requests, "the second statement sends no request");
    say(&client, &part(other, "no wait here")).await;
}

#[tokio::test]
async fn a_global_rate_limit_delays_every_guild() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    let other = discord.channel(discord.guild("Away"), "other");
    for channel in [general, other] {
        say(&client, &part(channel, "before")).await;
    }
    discord.spoil_next(1, EXECUTE, Does::TooMany { retry_after: AN_HOUR, scope: Scope::Global });

    let first = client.send(&part(general, "x")).await;
    let requests = discord.look(|state| state.journal.requests.len());
    let second = client.send(&part(other, "x")).await;

    for sent in [first, second] {
        assert!(matches!(sent, Err(NotSent::Later { after: Some(_), .. })), "{sent:?}");
    }
    assert_eq!(discord.look(|state| state.journal.requests.len()), requests, "the second statement sends no request");
}

#[tokio::test]
async fn a_global_rate_limit_of_the_bot_delays_no_webhook_post() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    say(&client, &part(general, "before")).await;
    let typing = On::route("typing");
    discord.spoil_next(1, typing, Does::TooMany { retry_after: AN_HOUR, scope: Scope::Global });

    client.typing(&snowflake(guild).guild(), &snowflake(general).channel()).await;
    let sent = client.send(&part(general, "webhooks count for the address")).await;

    assert_eq!(discord.look(|state| state.journal.limits_exceeded()), 1);
    assert!(sent.is_ok(), "{sent:?}");
}

#[tokio::test]
async fn a_part_with_unknown_outcome_can_be_looked_up() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    for (n, (does, is_posted)) in [
        (Does::Status(500), false),
        (Does::Status(503), false),
        (Does::Cut, false),
        (Does::CutAfterwards, true),
        (Does::Garbled, true),
    ]
    .into_iter()
    .enumerate()
    {
        let part = part(general, &format!("words {n}"));
        let before = client.newest(&part.channel, &[]);
        discord.spoil_next(1, EXECUTE, does.clone());

        let lost = client.send(&part).await;
        let found = client.find(&part, before.as_deref(), &BTreeSet::new()).await.expect("the history can be read");

        assert!(matches!(lost, Err(NotSent::Unknown { .. })), "{does:?}: {lost:?}");
        let posted = discord.posts().into_iter().find(|post| post.content == *part.text);
        assert_eq!(posted.is_some(), is_posted, "{does:?}");
        assert_eq!(found.as_deref(), posted.map(|post| post.message.to_string()).as_deref(), "{does:?}");
    }
}

#[tokio::test]
async fn the_time_in_which_a_lost_request_can_still_arrive_depends_on_the_failure() {
    let Home { discord, general, .. } = Home::new().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 15.0);
    say(&client, &part(general, "before")).await;
    for (does, least, most) in [(Does::Status(502), 0, 5), (Does::Cut, 10, 15), (Does::Garbled, 0, 0)] {
        discord.spoil_next(1, EXECUTE, does.clone());

        let lost = client.send(&part(general, "x")).await;

        let Err(NotSent::Unknown { within, .. }) = lost else { panic!("{does:?}: {lost:?}") };
        assert!((Duration::from_secs(least)..=Duration::from_secs(most)).contains(&within), "{does:?}: {within:?}");
    }
}

#[tokio::test]
async fn after_a_timeout_the_outcome_is_unknown_and_the_posted_part_is_found() {
    let Home { discord, general, .. } = Home::new().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 1.0);
    say(&client, &part(general, "before")).await;
    let part = part(general, "slow words");
    let before = client.newest(&part.channel, &[]);
    let fault = discord.spoil(EXECUTE, Does::HangAfterwards);

    let lost = client.send(&part).await;
    let found = client.find(&part, before.as_deref(), &BTreeSet::new()).await.expect("the history can be read");

    assert!(matches!(lost, Err(NotSent::Unknown { within: Duration::ZERO, .. })), "{lost:?}");
    assert!(found.is_some());
    discord.lift(fault);
}

#[tokio::test]
async fn a_guild_whose_requests_hang_delays_no_other_guild() {
    let Home { discord, guild, general, .. } = Home::new().await;
    let other = discord.channel(discord.guild("Away"), "other");
    let client = client_with(&discord, |section| section.request_timeout_secs = 120.0);
    let fault = discord.spoil(On { guild: Some(guild), ..On::default() }, Does::Hang);
    let hanging: Vec<_> = (0..5)
        .map(|n| {
            let (client, part) = (Arc::clone(&client), part(general, &format!("hanging {n}")));
            tokio::spawn(async move { client.send(&part).await })
        })
        .collect();
    discord
        .until("a request that hangs", |state| {
            state.journal.requests.iter().find(|request| request.guild == Some(guild)).map(drop)
        })
        .await;

    for n in 0..5 {
        say(&client, &part(other, &format!("no wait here {n}"))).await;
    }

    assert_eq!(discord.posts().len(), 5);
    discord.lift(fault);
    for sent in hanging {
        assert!(sent.await.expect("the send ends").is_ok());
    }
    assert_eq!(discord.posts().len(), 10);
}

#[tokio::test]
async fn a_cancelled_send_does_not_block_the_next_one() {
    let Home { discord, general, .. } = Home::new().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 120.0);
    let fault = discord.spoil(EXECUTE, Does::Hang);
    let (cancelled_client, cancelled_part) = (Arc::clone(&client), part(general, "never mind"));
    // The first request of its route. All others wait for its response, which contains the limits.
    let cancelled = tokio::spawn(async move { cancelled_client.send(&cancelled_part).await });
    discord.wait_for("a request that hangs", |state| state.journal.requests_of("execute_webhook").next().is_some()).await;

    cancelled.abort();
    assert!(cancelled.await.is_err());
    discord.lift(fault);

    say(&client, &part(general, "after")).await;
}

#[tokio::test]
async fn a_failure_before_posting_means_that_the_part_can_be_sent_later() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;

    for route in ["application", "channel", "webhooks", "create_webhook"] {
        discord.spoil_next(1, On::route(route), Does::CutAfterwards);
        let later = client.send(&part(general, "x")).await;
        assert!(matches!(later, Err(NotSent::Later { after: None, .. })), "{route}: {later:?}");
    }
    say(&client, &part(general, "x")).await;

    let (webhooks, posts) = discord.look(|state| (state.world.webhooks.len(), state.journal.posts.len()));
    assert_eq!((webhooks, posts), (1, 1), "the webhook whose creation was not confirmed is found again");
}
