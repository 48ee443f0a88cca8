//! Rate limits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::super::{Bucket, Counterpart, Does, On, Rules, Scope};
use super::client::Rest;
use crate::discord::home::Home;

/// Rules whose windows do not end while a test runs.
fn slow() -> Rules {
    let bucket = |requests| Bucket { requests, window: Duration::from_secs(600) };
    Rules {
        buckets: BTreeMap::from([("create_message", bucket(2)), ("execute_webhook", bucket(1))]),
        bucket: bucket(1_000),
        global_window: Duration::from_secs(600),
        global_requests: 1_000,
        ..Rules::quick()
    }
}

#[tokio::test]
async fn a_bucket_reports_what_remains_and_refuses_the_excess() {
    let discord = Counterpart::with_rules(slow()).await;
    let guild = discord.guild("Home");
    let (one, two) = (discord.channel(guild, "one"), discord.channel(guild, "two"));
    let rest = Rest::new(&discord);

    let first = rest.say(one, "1").await;
    let second = rest.say(one, "2").await;
    let third = rest.say(one, "3").await;

    let remaining =
        |response: &super::client::RestResponse| (response.status, response.header("x-ratelimit-remaining").to_owned());
    assert_eq!([&first, &second, &third].map(remaining), [(200, "1".to_owned()), (200, "0".to_owned()), (429, "0".to_owned())]);
    assert_eq!((first.header("x-ratelimit-limit"), third.header("x-ratelimit-scope")), ("2", "user"));
    let reset: f64 = first.header("x-ratelimit-reset-after").parse().expect("seconds");
    assert!((590.0..=600.0).contains(&reset), "{reset}");
    assert_eq!(
        (&third.body["global"], third.body["retry_after"].as_f64().map(|after| after > 590.0)),
        (&json!(false), Some(true))
    );
    assert!(third.header("retry-after").parse::<u64>().is_ok_and(|after| after >= 590));
    // Another channel has a bucket of its own; the bucket's name says nothing of the channel.
    let other = rest.say(two, "1").await;
    assert_eq!((other.status, other.header("x-ratelimit-bucket")), (200, first.header("x-ratelimit-bucket")));
    assert_eq!(rest.get(&format!("/channels/{one}")).await.status, 200);
    assert_eq!(discord.look(|state| state.journal.limits_exceeded()), 1);
    assert_eq!(discord.posts().len(), 3, "a refused message is not posted");
}

#[tokio::test]
async fn a_bucket_is_reset_when_its_window_ends() {
    let Home { discord, general, .. } = Home::with_rules(slow()).await;
    let rest = Rest::new(&discord);
    for text in ["1", "2"] {
        rest.say(general, text).await;
    }

    discord.with(|state| state.rules.buckets.insert("create_message", Bucket { requests: 1, window: Duration::ZERO }));

    assert_eq!(rest.say(general, "3").await.status, 200);
}

#[tokio::test]
async fn each_webhook_has_its_own_bucket() {
    let Home { discord, general, .. } = Home::with_rules(slow()).await;
    let rest = Rest::new(&discord);
    let ((_, one), (_, two)) = (rest.webhook(general, "one").await, rest.webhook(general, "two").await);
    let hello = json!({ "content": "hello" });

    let statuses = [&one, &one, &two];
    let mut seen = Vec::new();
    for path in statuses {
        seen.push(rest.post(path, hello.clone()).await.status);
    }

    assert_eq!(seen, [204, 429, 204]);
}

#[tokio::test]
async fn a_bot_may_make_fifty_requests_a_second_over_all_routes() {
    let discord = Counterpart::with_rules(Rules { global_requests: 50, ..slow() }).await;
    let rest = Rest::new(&discord);
    for _ in 0..50 {
        assert_eq!(rest.get("/users/@me").await.status, 200);
    }

    let more = rest.get("/applications/@me").await;

    assert_eq!((more.status, &more.body["global"]), (429, &json!(true)));
    assert_eq!((more.header("x-ratelimit-global"), more.header("x-ratelimit-scope")), ("true", "global"));
    // Requests without the bot's token are counted by address.
    let mut open = Rest::new(&discord);
    open.token.clear();
    assert_eq!(open.get("/webhooks/5/token/messages/5").await.refusal(), (404, 10015));
}

#[tokio::test]
async fn interactions_do_not_count_towards_the_global_limit() {
    let discord = Counterpart::with_rules(Rules { global_requests: 1, ..slow() }).await;
    let rest = Rest::new(&discord);
    rest.get("/users/@me").await;
    let application = discord.bot();

    let answered = rest.get(&format!("/webhooks/{application}/token/messages/@original")).await;

    assert_eq!(answered.refusal(), (401, 50027));
    assert_eq!(rest.get("/users/@me").await.status, 429);
}

#[tokio::test]
async fn too_many_invalid_requests_ban_the_address() {
    let rules = Rules { invalid_requests: 4, ..slow() };
    let discord = Counterpart::with_rules(rules).await;
    let guild = discord.guild_without_bot("Elsewhere");
    let (rest, mut stranger) = (Rest::new(&discord), Rest::new(&discord));
    stranger.token = "wrong".to_owned();

    discord.spoil_next(1, On::default(), Does::TooMany { retry_after: Duration::from_secs(1), scope: Scope::Shared });
    assert_eq!(rest.get("/users/@me").await.status, 429);
    assert_eq!(rest.get("/channels/5").await.status, 404);
    assert_eq!(discord.look(|state| state.limits.invalid_requests()), 0, "neither counts");
    for _ in 0..2 {
        assert_eq!(stranger.get("/users/@me").await.status, 401);
        assert_eq!(rest.get(&format!("/guilds/{guild}")).await.status, 403);
    }

    let banned = rest.get("/users/@me").await;
    assert_eq!((banned.status, banned.body.as_str(), banned.header("x-ratelimit-scope")), (429, Some("error code: 1015"), ""));
    assert_eq!(discord.look(|state| state.journal.bans), 1);
}

#[tokio::test]
async fn a_test_can_inject_an_exceeded_limit() {
    let discord = Counterpart::with_rules(slow()).await;
    let (home, away) = (discord.guild("Home"), discord.guild("Away"));
    let (here, there) = (discord.channel(home, "here"), discord.channel(away, "there"));
    let rest = Rest::new(&discord);
    let limited = On { guild: Some(home), ..On::default() };

    discord.spoil_next(1, limited, Does::TooMany { retry_after: Duration::from_millis(1_500), scope: Scope::User });

    assert_eq!(rest.say(there, "x").await.status, 200);
    let refused = rest.say(here, "x").await;
    assert_eq!((refused.status, refused.body["retry_after"].as_f64(), refused.header("retry-after")), (429, Some(1.5), "2"));
    assert_eq!(rest.say(here, "x").await.status, 200);
}
