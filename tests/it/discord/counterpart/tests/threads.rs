//! Threads and forum posts over REST.

use serde_json::json;

use super::super::{Kind, Permissions};
use super::client::{INTENTS, Socket, home};
use crate::discord::home::Home;

#[tokio::test]
async fn speaking_in_a_thread_needs_its_own_permission() {
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
    let thread = discord.thread(general, "aside", ana);

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
    let thread = discord.thread(general, "aside", ana);
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
async fn a_webhook_in_a_forum_needs_a_post() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let forum = discord.channel_of(guild, Kind::Forum, "plans");
    let post = discord.open_post(ana, forum, "Summer", "Where to?");
    let (_, webhook) = rest.webhook(forum, "companions").await;
    let (_, elsewhere) = rest.webhook(general, "companions").await;
    let say = async |path: &str| rest.post(path, json!({ "content": "hello" })).await.refusal();

    assert_eq!(say(&webhook).await, (400, 220_001));
    assert_eq!(say(&format!("{elsewhere}?thread_id={post}")).await, (404, 10003));
    assert_eq!(say(&format!("{webhook}?thread_id={post}")).await.0, 204);
    assert_eq!(discord.post_in(post).await.content, "hello");
    assert_eq!(rest.get(&format!("/channels/{forum}")).await.body["last_message_id"], json!(post));
}

#[tokio::test]
async fn a_session_begins_with_the_active_threads() {
    let (Home { discord, general, ana, .. }, rest) = home().await;
    let joined = discord.thread(general, "joined", ana);
    let archived = discord.thread(general, "archived", ana);
    // Whoever speaks in a thread joins it.
    rest.say(joined, "hello").await;
    discord.with(|state| state.change_thread(archived, |thread| thread.archived = true));

    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    let threads = socket.event("GUILD_CREATE").await["threads"].clone();
    assert_eq!((&threads[0]["id"], threads.as_array().map(Vec::len)), (&json!(joined), Some(1)));
    let member = threads[0]["member"].as_object().expect("a membership");
    assert_eq!(member.keys().collect::<Vec<_>>(), ["flags", "join_timestamp"]);
}
