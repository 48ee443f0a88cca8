//! What goes wrong on the way is told for what it is, and stays where it went wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent};

use super::super::counterpart::faults::{Does, On, Scope};
use super::{client, client_with, home, part, say, snowflake};

const AN_HOUR: Duration = Duration::from_secs(3_600);

const EXECUTE: On = On { route: Some("execute_webhook"), guild: None, channel: None };

#[tokio::test]
async fn one_guild_that_is_told_to_wait_holds_up_no_other() {
    let (discord, guild, general) = home().await;
    let other = discord.channel(discord.guild("Away"), "other");
    let client = client(&discord);
    for channel in [general, other] {
        say(&client, &part(channel, "before")).await;
    }
    let too_many = Does::TooMany { retry_after: AN_HOUR, scope: Scope::User };
    discord.spoil(On { guild: Some(guild), ..EXECUTE }, too_many);

    let waits = client.send(&part(general, "x")).await;
    let asked = discord.look(|state| state.journal.requests.len());
    let still_waits = client.send(&part(general, "y")).await;

    assert!(matches!(waits, Err(NotSent::Later { after: Some(after), .. }) if after == AN_HOUR), "{waits:?}");
    assert!(matches!(still_waits, Err(NotSent::Later { after: Some(after), .. }) if after <= AN_HOUR), "{still_waits:?}");
    assert_eq!(discord.look(|state| state.journal.requests.len()), asked, "nothing leaves that has to wait");
    say(&client, &part(other, "on we go")).await;
}

#[tokio::test]
async fn a_wait_for_all_holds_up_all() {
    let (discord, _, general) = home().await;
    let other = discord.channel(discord.guild("Away"), "other");
    let client = client(&discord);
    for channel in [general, other] {
        say(&client, &part(channel, "before")).await;
    }
    discord.spoil_next(1, EXECUTE, Does::TooMany { retry_after: AN_HOUR, scope: Scope::Global });

    let first = client.send(&part(general, "x")).await;
    let asked = discord.look(|state| state.journal.requests.len());
    let second = client.send(&part(other, "x")).await;

    for waits in [first, second] {
        assert!(matches!(waits, Err(NotSent::Later { after: Some(_), .. })), "{waits:?}");
    }
    assert_eq!(discord.look(|state| state.journal.requests.len()), asked, "nothing leaves");
}

#[tokio::test]
async fn a_wait_for_all_that_the_bot_asks_holds_up_no_statement() {
    let (discord, guild, general) = home().await;
    let client = client(&discord);
    say(&client, &part(general, "before")).await;
    let typing = On { route: Some("typing"), ..On::default() };
    discord.spoil_next(1, typing, Does::TooMany { retry_after: AN_HOUR, scope: Scope::Global });

    client.typing(&snowflake(guild).guild(), &snowflake(general).channel()).await;
    let sent = client.send(&part(general, "webhooks count for the address")).await;

    assert_eq!(discord.look(|state| state.journal.limits_exceeded()), 1);
    assert!(sent.is_ok(), "{sent:?}");
}

#[tokio::test]
async fn a_short_wait_is_waited_for() {
    let (discord, _, general) = home().await;
    let client = client(&discord);
    say(&client, &part(general, "before")).await;
    discord.spoil_next(1, EXECUTE, Does::TooMany { retry_after: Duration::from_millis(50), scope: Scope::User });

    let turned_away = client.send(&part(general, "x")).await;
    say(&client, &part(general, "x")).await;

    assert!(matches!(turned_away, Err(NotSent::Later { .. })), "{turned_away:?}");
    assert_eq!(discord.look(|state| state.journal.limits_exceeded()), 1);
}

#[tokio::test]
async fn words_that_may_have_arrived_are_looked_for() {
    let (discord, _, general) = home().await;
    let client = client(&discord);
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
        let words = part(general, &format!("words {n}"));
        let before = client.newest(&words.channel, &[]);
        discord.spoil_next(1, EXECUTE, does.clone());

        let lost = client.send(&words).await;
        let found = client.find(&words, before.as_deref(), &BTreeSet::new()).await.expect("it can be read");

        assert!(matches!(lost, Err(NotSent::Unknown { .. })), "{does:?}: {lost:?}");
        let posted = discord.posts().into_iter().find(|post| post.content == *words.text);
        assert_eq!(posted.is_some(), is_posted, "{does:?}");
        assert_eq!(found.as_deref(), posted.map(|post| post.message.to_string()).as_deref(), "{does:?}");
    }
}

#[tokio::test]
async fn how_long_a_lost_request_may_still_arrive_depends_on_how_it_was_lost() {
    let (discord, _, general) = home().await;
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
async fn an_answer_that_does_not_come_in_time_leaves_it_open() {
    let (discord, _, general) = home().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 1.0);
    say(&client, &part(general, "before")).await;
    let words = part(general, "slow words");
    let before = client.newest(&words.channel, &[]);
    let fault = discord.spoil(EXECUTE, Does::HangAfterwards);

    let lost = client.send(&words).await;
    let found = client.find(&words, before.as_deref(), &BTreeSet::new()).await.expect("it can be read");

    assert!(matches!(lost, Err(NotSent::Unknown { within: Duration::ZERO, .. })), "{lost:?}");
    assert!(found.is_some());
    discord.lift(fault);
}

#[tokio::test]
async fn a_guild_that_hangs_holds_up_no_other() {
    let (discord, guild, general) = home().await;
    let other = discord.channel(discord.guild("Away"), "other");
    let client = client_with(&discord, |section| section.request_timeout_secs = 120.0);
    let fault = discord.spoil(On { guild: Some(guild), ..On::default() }, Does::Hang);
    let hanging: Vec<_> = (0..5)
        .map(|n| {
            let (client, words) = (Arc::clone(&client), part(general, &format!("hanging {n}")));
            tokio::spawn(async move { client.send(&words).await })
        })
        .collect();
    discord
        .until("a request that hangs", |state| {
            state.journal.requests.iter().find(|request| request.guild == Some(guild)).map(drop)
        })
        .await;

    for n in 0..5 {
        say(&client, &part(other, &format!("on we go {n}"))).await;
    }

    assert_eq!(discord.posts().len(), 5);
    discord.lift(fault);
    for sent in hanging {
        assert!(sent.await.expect("it ends").is_ok());
    }
    assert_eq!(discord.posts().len(), 10);
}

#[tokio::test]
async fn a_statement_that_is_given_up_on_its_way_leaves_room_for_the_next() {
    let (discord, _, general) = home().await;
    let client = client_with(&discord, |section| section.request_timeout_secs = 120.0);
    let fault = discord.spoil(EXECUTE, Does::Hang);
    let (hanging, words) = (Arc::clone(&client), part(general, "never mind"));
    // The first of its kind, for whose answer all others wait.
    let given_up = tokio::spawn(async move { hanging.send(&words).await });
    discord.until("a request that hangs", |state| state.journal.requests_of("execute_webhook").next().map(drop)).await;

    given_up.abort();
    assert!(given_up.await.is_err());
    discord.lift(fault);

    say(&client, &part(general, "after")).await;
}

#[tokio::test]
async fn a_failure_before_anything_was_posted_is_none_of_the_words() {
    let (discord, _, general) = home().await;
    let client = client(&discord);

    for route in ["application", "channel", "webhooks", "create_webhook"] {
        discord.spoil_next(1, On { route: Some(route), ..On::default() }, Does::CutAfterwards);
        let later = client.send(&part(general, "x")).await;
        assert!(matches!(later, Err(NotSent::Later { after: None, .. })), "{route}: {later:?}");
    }
    say(&client, &part(general, "x")).await;

    let (webhooks, posts) = discord.look(|state| (state.world.webhooks.len(), state.journal.posts.len()));
    assert_eq!((webhooks, posts), (1, 1), "the webhook whose making nobody heard of is found again");
}
