//! Injected faults.

use std::time::Duration;

use serde_json::Value;

use super::super::{Does, On};
use super::client::{Rest, home};
use crate::discord::home::Home;

#[tokio::test]
async fn a_broken_discord_answers_with_html_pages() {
    let (Home { discord, general, .. }, rest) = home().await;
    discord.spoil_next(2, On::route("create_message"), Does::Status(502));

    for _ in 0..2 {
        let broken = rest.say(general, "x").await;
        assert_eq!((broken.status, broken.header("content-type")), (502, "text/html"));
        assert!(broken.body.as_str().is_some_and(|body| body.starts_with("<html>")));
    }

    assert_eq!(rest.say(general, "x").await.status, 200);
    assert_eq!(discord.posts().len(), 1);
}

#[tokio::test]
async fn a_connection_can_be_cut_before_or_after_the_request_is_handled() {
    let (Home { discord, general, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let cut = async |does| {
        discord.spoil_next(1, On { channel: Some(general), ..On::default() }, does);
        rest.try_ask(reqwest::Method::POST, &path, serde_json::json!({ "content": "x" })).await.is_err()
    };

    assert!(cut(Does::Cut).await);
    assert_eq!(discord.posts().len(), 0);
    assert!(cut(Does::CutAfterwards).await);
    assert_eq!(discord.posts().len(), 1, "it was posted, and the client does not know");
    let outcomes: Vec<Option<u16>> = discord.look(|state| {
        state.journal.requests_of("create_message").map(|request| Some(request.outcome.as_ref()?.status)).collect()
    });
    assert_eq!(outcomes, [None, Some(200)]);
}

#[tokio::test]
async fn one_guild_can_hang_while_others_work() {
    let (Home { discord, guild, general, .. }, rest) = home().await;
    let other = discord.channel(discord.guild("Away"), "other");

    for (does, posted) in [(Does::Hang, 0), (Does::HangAfterwards, 2)] {
        let fault = discord.spoil(On { guild: Some(guild), ..On::default() }, does);
        let hanging = tokio::spawn({
            let rest = Rest::new(&discord);
            async move { rest.say(general, "x").await.status }
        });
        discord.until("the request", |state| state.journal.requests.last()?.channel.filter(|channel| *channel == general)).await;

        assert_eq!(rest.say(other, "x").await.status, 200);
        assert_eq!(discord.posts().iter().filter(|post| post.channel == general).count() * 2, posted);
        discord.lift(fault);
        assert_eq!(hanging.await.expect("the task ends"), 200);
        discord.with(|state| state.journal.posts.clear());
    }
}

#[tokio::test]
async fn answers_can_be_slow_or_malformed() {
    let (Home { discord, .. }, rest) = home().await;

    discord.spoil_next(1, On::default(), Does::Slow(Duration::from_millis(30)));
    assert_eq!(rest.get("/users/@me").await.status, 200);
    let took = discord.look(|state| state.journal.requests[0].outcome.as_ref().map(|outcome| outcome.took));
    assert!(took.is_some_and(|took| took >= Duration::from_millis(30)));
    discord.spoil_next(1, On::default(), Does::Garbled);
    let garbled = rest.get("/users/@me").await;
    assert!(matches!(&garbled.body, Value::String(half) if half.starts_with('{')), "{garbled:?}");
}
