//! Webhooks over REST.

use serde_json::{Value, json};

use super::super::{Author, Intents, Permissions};
use super::client::{INTENTS, Socket, home};
use crate::discord::home::Home;

#[tokio::test]
async fn a_webhook_posts_under_its_own_name_and_picture() {
    let (Home { discord, general, .. }, rest) = home().await;
    let (webhook, path) = rest.webhook(general, "companions").await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    let body = json!({ "content": "Hello", "username": "Mira", "avatar_url": "https://example.org/mira.png" });
    let posted = rest.post(&format!("{path}?wait=true"), body).await;
    let plain = rest.post(&path, json!({ "content": "Again" })).await;

    assert_eq!((posted.status, plain.status), (200, 204));
    assert_eq!((&posted.body["author"]["username"], &posted.body["author"]["bot"]), (&json!("Mira"), &json!(true)));
    assert_eq!(posted.body["author"]["avatar"].as_str().map(str::len), Some(32));
    assert_eq!((&posted.body["webhook_id"], &posted.body["author"]["id"]), (&json!(webhook), &json!(webhook)));
    let event = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&event["webhook_id"], &event["member"]), (&json!(webhook), &json!(null)));
    assert_eq!(socket.event("MESSAGE_CREATE").await["author"]["username"], "companions");
    let by: Vec<Author> = discord.posts_in(general, 2).await.into_iter().map(|post| post.author).collect();
    assert!(matches!(&by[0], Author::Webhook { username, .. } if username == "Mira"));
}

#[tokio::test]
async fn invalid_names_pictures_and_texts_are_refused() {
    let (Home { discord: _discord, general, .. }, rest) = home().await;
    let (_, path) = rest.webhook(general, "companions").await;
    let long = "x".repeat(81);

    for name in ["Clyde", "my DISCORD", "", "   ", &long] {
        let body = json!({ "content": "x", "username": name });
        assert_eq!(rest.post(&path, body).await.refusal(), (400, 50035), "{name:?}");
        let made = rest.post(&format!("/channels/{general}/webhooks"), json!({ "name": name })).await;
        assert_eq!(made.refusal(), (400, 50035), "{name:?}");
    }
    for body in [json!({ "content": "x", "avatar_url": "ftp://x" }), json!({ "content": "x".repeat(2_001) })] {
        assert_eq!(rest.post(&path, body).await.refusal(), (400, 50035));
    }
    assert_eq!(rest.post(&path, json!({ "username": "Mira" })).await.refusal(), (400, 50006));
    assert_eq!(rest.post(&path, json!({ "content": "x", "username": "  Mira   Hill " })).await.status, 204);
}

#[tokio::test]
async fn a_webhook_notifies_users_but_roles_and_everyone_only_if_allowed() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let (_, path) = rest.webhook(general, "companions").await;
    let role = discord.role(guild, "Friends", Permissions::empty());
    let content = format!("<@{ana}> <@&{role}> @everyone");

    rest.post(&path, json!({ "content": content })).await;
    rest.post(&path, json!({ "content": content, "allowed_mentions": { "parse": [] } })).await;
    rest.post(&path, json!({ "content": content, "allowed_mentions": { "parse": ["everyone", "roles"] } })).await;

    let mentions: Vec<_> = discord.posts().into_iter().map(|post| post.mentions).collect();
    assert_eq!((mentions[0].users.as_slice(), mentions[0].roles.len(), mentions[0].everyone), (&[ana][..], 0, false));
    assert_eq!(mentions[1], super::super::messages::Mentions::default());
    assert_eq!((mentions[2].users.len(), mentions[2].roles.as_slice(), mentions[2].everyone), (0, &[role][..], true));
}

#[tokio::test]
async fn a_channel_has_fifteen_webhooks_at_most() {
    let (Home { discord, general, .. }, rest) = home().await;
    for number in 0..14 {
        rest.webhook(general, &format!("number {number}")).await;
    }
    discord.foreign_webhook(general, "foreign");

    let made = rest.post(&format!("/channels/{general}/webhooks"), json!({ "name": "one more" })).await;
    assert_eq!(made.refusal(), (400, 30007));
    let listed = rest.get(&format!("/channels/{general}/webhooks")).await.body;
    assert_eq!(listed.as_array().map(Vec::len), Some(15));
    assert_eq!(listed.as_array().and_then(|list| list.last()).map(|one| &one["application_id"]), Some(&Value::Null));
}

#[tokio::test]
async fn webhooks_need_a_permission_and_a_suitable_channel() {
    let (Home { discord, guild, general, ana, bot, .. }, rest) = home().await;
    let (_, path) = rest.webhook(general, "companions").await;
    discord.deny(general, bot, Permissions::MANAGE_WEBHOOKS);
    let of_channel = format!("/channels/{general}/webhooks");

    assert_eq!(rest.get(&of_channel).await.refusal(), (403, 50013));
    assert_eq!(rest.post(&of_channel, json!({ "name": "x" })).await.refusal(), (403, 50013));
    discord.deny(general, bot, Permissions::VIEW_CHANNEL);
    assert_eq!(rest.get(&of_channel).await.refusal(), (403, 50001));
    assert_eq!(rest.post(&path, json!({ "content": "x" })).await.status, 204, "its token is enough");
    let thread = discord.thread(discord.channel(guild, "other"), "aside", ana);
    assert_eq!(rest.post(&format!("/channels/{thread}/webhooks"), json!({ "name": "x" })).await.refusal(), (400, 50024));
}

#[tokio::test]
async fn a_webhook_works_by_its_token_until_it_is_deleted() {
    let (Home { discord, general, .. }, mut rest) = home().await;
    let (webhook, path) = rest.webhook(general, "companions").await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    rest.token.clear();

    let posted = rest.post(&format!("{path}?wait=true"), json!({ "content": "x" })).await.id();
    let of_message = format!("{path}/messages/{posted}");
    assert_eq!(rest.get(&of_message).await.body["content"], "x");
    assert_eq!(rest.delete(&of_message).await.status, 204);
    assert_eq!(rest.get(&of_message).await.refusal(), (404, 10008));
    let wrong = format!("/webhooks/{webhook}/wrong");
    assert_eq!(rest.post(&wrong, json!({ "content": "x" })).await.refusal(), (401, 50027));
    discord.remove_webhook(webhook);
    assert_eq!(rest.post(&path, json!({ "content": "x" })).await.refusal(), (404, 10015));
    assert_eq!(socket.event("WEBHOOKS_UPDATE").await["channel_id"], json!(general));
}

#[tokio::test]
async fn messages_of_foreign_webhooks_do_not_belong_to_the_application() {
    let Home { discord, general, .. } = Home::new().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS & !Intents::MESSAGE_CONTENT).await;

    let foreign = discord.foreign_webhook(general, "foreign");
    discord.say_by_webhook(foreign, "Somebody", "news");

    let event = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&event["content"], &event["application_id"]), (&json!(""), &Value::Null));
    assert!(discord.posts().is_empty());
}

#[tokio::test]
async fn without_the_content_intent_only_the_webhooks_token_shows_its_messages() {
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS & !Intents::MESSAGE_CONTENT).await;
    discord.set_privileged(Intents::empty());
    let (_, path) = rest.webhook(general, "companions").await;

    let posted = rest.post(&format!("{path}?wait=true"), json!({ "content": "Hello", "username": "Mira" })).await;
    let id = posted.id();
    discord.reply(ana, general, id, "Hello yourself", true);
    discord.reply(ana, general, id, &format!("<@{bot}> mira, hello"), true);

    assert_eq!(posted.body["content"], "Hello");
    let texts =
        [socket.event("MESSAGE_CREATE").await, socket.event("MESSAGE_CREATE").await, socket.event("MESSAGE_CREATE").await];
    assert_eq!(texts.map(|event| event["content"].clone()), [json!(""), json!(""), json!(format!("<@{bot}> mira, hello"))]);
    let listed = rest.get(&format!("/channels/{general}/messages")).await.body;
    assert_eq!((&listed[2]["content"], &listed[1]["referenced_message"]["content"]), (&json!(""), &json!("")));
    assert_eq!(rest.get(&format!("/channels/{general}/messages/{id}")).await.body["content"], "");
    assert_eq!(rest.get(&format!("{path}/messages/{id}")).await.body["content"], "Hello");
}
