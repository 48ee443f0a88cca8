//! Threads and forum posts over REST.

use serde_json::{Value, json};

use super::super::{Id, Kind, Permissions};
use super::client::{INTENTS, Socket, home};
use crate::discord::home::Home;

#[tokio::test]
async fn speaking_in_a_thread_needs_its_own_permission() {
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);

    discord.deny(general, bot, Permissions::SEND_MESSAGES);
    assert_eq!(rest.say(thread, "here").await.status, 200);
    assert_eq!(rest.say(general, "there").await.refusal(), (403, 50013));
    discord.deny(general, bot, Permissions::SEND_MESSAGES_IN_THREADS);
    assert_eq!(rest.say(thread, "here").await.refusal(), (403, 50013));
    assert_eq!(rest.say(general, "there").await.status, 200);
}

#[tokio::test]
async fn a_message_unarchives_a_thread_unless_it_is_locked() {
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    let (_, webhook) = rest.webhook(general, "companions").await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    let archive = || discord.with(|state| state.change_thread(thread, |thread| thread.archived = true));

    archive();
    assert_eq!(socket.event("THREAD_UPDATE").await["thread_metadata"]["archived"], true);
    rest.say(thread, "still here").await;
    assert_eq!(socket.event("THREAD_UPDATE").await["thread_metadata"]["archived"], false);
    archive();
    rest.post(&format!("{webhook}?thread_id={thread}"), json!({ "content": "me too" })).await;
    assert_eq!(socket.event("THREAD_UPDATE").await["thread_metadata"]["archived"], true);
    assert_eq!(socket.event("THREAD_UPDATE").await["thread_metadata"]["archived"], false);
    discord.with(|state| state.change_thread(thread, |thread| thread.locked = true));
    discord.allow(general, bot, Permissions::MANAGE_THREADS);
    assert_eq!(rest.say(thread, "moderated").await.status, 200, "the permission to manage threads is enough");
    discord.deny(general, bot, Permissions::MANAGE_THREADS);
    assert_eq!(rest.say(thread, "not any more").await.refusal(), (400, 160_005));
}

#[tokio::test]
async fn a_private_thread_is_visible_to_its_members() {
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
    discord.deny(general, bot, Permissions::MANAGE_THREADS);
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    let secret = discord.thread(general, Kind::PrivateThread, "secret", ana);
    discord.say(ana, secret, "between us");
    assert_eq!(rest.get(&format!("/channels/{secret}")).await.refusal(), (403, 50001));

    discord.with(|state| state.join_thread(secret, bot));

    let joined = socket.event("THREAD_CREATE").await;
    assert_eq!((&joined["id"], &joined["member"]["user_id"]), (&json!(secret), &json!(bot)));
    discord.say(ana, secret, "the three of us");
    assert_eq!(socket.event("MESSAGE_CREATE").await["content"], "the three of us");
    assert_eq!(rest.say(secret, "hello").await.status, 200);
}

#[tokio::test]
async fn threads_are_started_joined_and_listed() {
    let (Home { discord, guild, general, ana, bot, .. }, rest) = home().await;
    let message = discord.say(ana, general, "a topic");
    discord.allow(general, bot, Permissions::CREATE_PUBLIC_THREADS | Permissions::CREATE_PRIVATE_THREADS);
    let from = format!("/channels/{general}/messages/{message}/threads");

    let started = rest.post(&from, json!({ "name": "the topic", "auto_archive_duration": 60 })).await;
    assert_eq!((started.status, started.id(), &started.body["owner_id"]), (201, message, &json!(bot)));
    assert_eq!(rest.get(&format!("/channels/{general}/messages/{message}")).await.body["thread"]["id"], json!(message));
    let starter = rest.get(&format!("/channels/{message}/messages")).await.body[0].clone();
    assert_eq!((&starter["type"], &starter["referenced_message"]["content"]), (&json!(21), &json!("a topic")));
    assert_eq!(rest.post(&from, json!({ "name": "again" })).await.refusal(), (400, 160_004));
    let plain = format!("/channels/{general}/threads");
    assert_eq!(rest.post(&plain, json!({ "name": "", "type": 11 })).await.refusal(), (400, 50035));
    assert_eq!(rest.post(&plain, json!({ "name": "x", "type": 10 })).await.refusal(), (400, 50024));
    assert_eq!(rest.post(&plain, json!({ "name": "x", "auto_archive_duration": 5 })).await.refusal(), (400, 50035));
    let private = rest.post(&plain, json!({ "name": "us" })).await;
    assert_eq!((private.status, &private.body["type"]), (201, &json!(12)));
    let hers = discord.thread(general, Kind::PublicThread, "hers", ana);
    let join = |thread: Id| format!("/channels/{thread}/thread-members/@me");
    assert_eq!(rest.ask(reqwest::Method::PUT, &join(hers), Value::Null).await.status, 204);
    assert_eq!(rest.ask(reqwest::Method::PUT, &join(general), Value::Null).await.refusal(), (400, 50024));
    let listed = rest.get(&format!("/guilds/{guild}/threads/active")).await.body;
    assert_eq!((listed["threads"].as_array().map(Vec::len), listed["members"].as_array().map(Vec::len)), (Some(3), Some(3)));
    discord.with(|state| state.change_thread(hers, |thread| thread.archived = true));
    let archived = rest.get(&format!("{plain}/archived/public")).await.body;
    assert_eq!(archived["threads"][0]["id"], json!(hers));
    assert_eq!(rest.ask(reqwest::Method::PUT, &join(hers), Value::Null).await.refusal(), (400, 50083));
}

#[tokio::test]
async fn a_webhook_in_a_forum_names_its_post() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let forum = discord.channel_of(guild, Kind::Forum, "plans");
    let post = discord.open_post(ana, forum, "Summer", "Where to?");
    let (_, webhook) = rest.webhook(forum, "companions").await;
    let (_, elsewhere) = rest.webhook(general, "companions").await;
    let say = async |path: String, body: Value| rest.post(&path, body).await.refusal();
    let hello = json!({ "content": "hello" });
    let named = json!({ "content": "hello", "thread_name": "Winter" });

    assert_eq!(say(webhook.clone(), hello.clone()).await, (400, 220_001));
    assert_eq!(say(format!("{webhook}?thread_id={post}"), named.clone()).await, (400, 220_002));
    assert_eq!(say(elsewhere.clone(), named.clone()).await, (400, 220_003));
    assert_eq!(say(format!("{elsewhere}?thread_id={post}"), hello.clone()).await, (404, 10003));
    assert_eq!(say(format!("{webhook}?thread_id={post}"), hello.clone()).await.0, 204);
    assert_eq!(discord.post_in(post).await.content, "hello");
    let opened = rest.post(&format!("{webhook}?wait=true"), named).await;
    assert_ne!(opened.body["channel_id"], json!(forum), "{opened:?}");
    let own = rest.post(&format!("/channels/{forum}/threads"), json!({ "name": "Autumn", "message": hello })).await;
    assert_eq!((own.status, &own.body["message"]["content"]), (201, &json!("hello")));
    assert_eq!(rest.get(&format!("/channels/{forum}")).await.body["last_message_id"], own.body["id"]);
}

#[tokio::test]
async fn a_session_begins_with_the_active_threads() {
    let Home { discord, general, ana, bot, .. } = Home::new().await;
    let joined = discord.thread(general, Kind::PublicThread, "joined", ana);
    let archived = discord.thread(general, Kind::PublicThread, "archived", ana);
    discord.with(|state| {
        state.join_thread(joined, bot);
        state.change_thread(archived, |thread| thread.archived = true);
    });

    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    let threads = socket.event("GUILD_CREATE").await["threads"].clone();
    assert_eq!((&threads[0]["id"], threads.as_array().map(Vec::len)), (&json!(joined), Some(1)));
    let member = threads[0]["member"].as_object().expect("a membership");
    assert_eq!(member.keys().collect::<Vec<_>>(), ["flags", "join_timestamp"]);
}
