//! Messages over REST: refusals, notifications and history.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::{Id, Kind, Mentions, Permissions};
use super::client::{INTENTS, Socket, home};
use crate::discord::home::Home;

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|message| message["content"].as_str().expect("text")).collect()
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let (Home { discord, general, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let long = "ä".repeat(2_001);

    for (body, code) in [
        (json!({}), 50006),
        (json!({ "content": "" }), 50006),
        (json!({ "content": " \n " }), 50006),
        (json!({ "content": long }), 50035),
        (json!({ "content": 5 }), 50035),
        (json!({ "embeds": vec![json!({ "title": "x" }); 11] }), 50035),
        (json!({ "embeds": [{ "description": "x".repeat(6_001) }] }), 50035),
        (json!({ "content": "x", "nonce": "x".repeat(26) }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["all"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["users"], "users": ["1"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "users": vec!["1"; 101] } }), 50035),
        (json!({ "content": "x", "message_reference": { "message_id": "1" } }), 50035),
        (json!({ "content": "x", "message_reference": { "message_id": "1", "channel_id": "2" } }), 50035),
    ] {
        assert_eq!(rest.post(&path, body.clone()).await.refusal(), (400, code), "{body}");
    }
    let refused = rest.post(&path, json!({ "content": long })).await;
    assert_eq!(refused.body["errors"]["content"]["_errors"][0]["code"], "BASE_TYPE_MAX_LENGTH");
    assert_eq!(rest.post(&path, json!({ "content": "ä".repeat(2_000) })).await.status, 200);
    // A feature that the test double lacks is refused with 501, and fails a test that does not expect this.
    let forward = json!({ "message_reference": { "type": 1, "message_id": "1", "channel_id": general }, "content": "x" });
    assert_eq!(rest.post(&path, forward).await.status, 501);
    assert_eq!(discord.with(|state| std::mem::take(&mut state.journal.unsupported)).len(), 1);
}

#[tokio::test]
async fn a_repeated_nonce_returns_the_first_message() {
    let (Home { discord, guild, general, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    let first = rest.post(&path, json!({ "content": "once", "nonce": "n1", "enforce_nonce": true })).await;
    let again = rest.post(&path, json!({ "content": "once", "nonce": "n1", "enforce_nonce": true })).await;
    let elsewhere = format!("/channels/{}/messages", discord.channel(guild, "other"));
    let other = rest.post(&elsewhere, json!({ "content": "once", "nonce": "n1", "enforce_nonce": true })).await;
    let unenforced = rest.post(&path, json!({ "content": "once", "nonce": "n1" })).await;

    assert_eq!((first.status, again.id(), other.id()), (200, first.id(), first.id()));
    assert_ne!(unenforced.id(), first.id());
    let event = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&event["id"], &event["nonce"]), (&first.body["id"], &json!("n1")));
    assert_eq!(rest.get(&path).await.body[0]["nonce"], json!(null));
    assert_eq!(discord.look(|state| state.journal.repeated_nonces), 2);
    assert_eq!(discord.look(|state| state.journal.duplicates()), [(general, "once".to_owned(), 2)]);
    discord.with(|state| state.rules.nonce_window = std::time::Duration::ZERO);
    let later = rest.post(&path, json!({ "content": "once", "nonce": "n1", "enforce_nonce": true })).await;
    assert_ne!(later.id(), first.id());
}

#[tokio::test]
async fn a_reply_needs_a_message_and_the_permission_to_read_history() {
    let (Home { discord, guild, general, ana, bot, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let asked = discord.say(ana, general, "Mira?");
    let reply = |to: Id, more: Value| {
        let mut reference = json!({ "message_id": to });
        if let Some(more) = more.as_object() {
            reference.as_object_mut().expect("an object").extend(more.clone());
        }
        json!({ "content": "yes", "message_reference": reference })
    };

    let posted = rest.post(&path, reply(asked, json!({}))).await;
    assert_eq!((&posted.body["type"], &posted.body["mentions"][0]["id"]), (&json!(19), &json!(ana)));
    assert_eq!(posted.body["referenced_message"]["id"], json!(asked));
    let mut quiet = reply(asked, json!({}));
    quiet["allowed_mentions"] = json!({ "parse": [] });
    assert_eq!(rest.post(&path, quiet).await.body["mentions"], json!([]));
    discord.delete(general, asked);
    let gone = rest.post(&path, reply(asked, json!({}))).await;
    assert_eq!(gone.body["errors"]["message_reference"]["_errors"][0]["code"], "REPLIES_UNKNOWN_MESSAGE");
    let anyway = rest.post(&path, reply(asked, json!({ "fail_if_not_exists": false }))).await;
    assert_eq!((anyway.status, &anyway.body["type"]), (200, &json!(0)));
    discord.deny(general, bot, Permissions::READ_MESSAGE_HISTORY);
    assert_eq!(rest.post(&path, reply(asked, json!({}))).await.refusal(), (400, 160_002));
    assert_eq!(rest.get(&path).await.body, json!([]), "and no history is read");
    assert_eq!(rest.get(&format!("{path}/{}", posted.id())).await.refusal(), (403, 50013));
    assert_eq!(discord.posts().last().map(|post| post.channel), Some(general));
    assert!(discord.look(|state| state.world.guilds.contains_key(&guild)));
}

#[tokio::test]
async fn allowed_mentions_limit_who_is_notified() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let (bo, role) = (discord.member(guild, "Bo"), discord.role(guild, "Friends", Permissions::empty()));
    let content = format!("<@{ana}> <@!{bo}> <@&{role}> @everyone");
    let notified = async |allowed: Value| {
        let mut body = json!({ "content": content });
        if !allowed.is_null() {
            body["allowed_mentions"] = allowed;
        }
        rest.post(&path, body).await;
        discord.posts().last().map(|post| post.mentions.clone()).expect("a post")
    };
    let only = |users: &[Id], roles: &[Id], everyone| Mentions { users: users.to_vec(), roles: roles.to_vec(), everyone };

    assert_eq!(notified(Value::Null).await, only(&[ana, bo], &[role], false), "everyone needs a permission");
    assert_eq!(notified(json!({ "parse": [] })).await, Mentions::default());
    assert_eq!(notified(json!({ "parse": ["roles"], "users": [bo] })).await, only(&[bo], &[role], false));
    let loud = discord.role(guild, "Loud", Permissions::MENTION_EVERYONE);
    discord.give_role(guild, discord.bot(), loud);
    assert_eq!(notified(json!({ "parse": ["everyone"] })).await, only(&[], &[], true));
}

#[tokio::test]
async fn history_is_read_newest_first_before_after_and_around_a_message() {
    let (Home { discord, general, ana, .. }, rest) = home().await;
    let ids: Vec<Id> = (0..5).map(|number| discord.say(ana, general, &number.to_string())).collect();
    let path = format!("/channels/{general}/messages");
    let read = async |query: &str| rest.get(&format!("{path}?{query}")).await.body;

    assert_eq!(texts(&rest.get(&path).await.body), ["4", "3", "2", "1", "0"]);
    assert_eq!(texts(&read(&format!("before={}&limit=2", ids[3])).await), ["2", "1"]);
    assert_eq!(texts(&read(&format!("after={}&limit=2", ids[0])).await), ["2", "1"], "those closest to it");
    assert_eq!(texts(&read(&format!("around={}&limit=3", ids[2])).await), ["3", "2", "1"]);
    assert_eq!(texts(&read("after=0&limit=1").await), ["0"]);
    for wrong in [format!("before={0}&after={0}", ids[0]), "limit=0".to_owned(), "limit=101".to_owned(), "after=x".to_owned()] {
        assert_eq!(rest.get(&format!("{path}?{wrong}")).await.refusal(), (400, 50035), "{wrong}");
    }
}

#[tokio::test]
async fn messages_are_edited_by_their_author_and_deleted_with_the_permission() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let (own, hers) = (rest.say(general, "mine").await.id(), discord.say(ana, general, "hers"));

    let edited = rest.ask(Method::PATCH, &format!("{path}/{own}"), json!({ "content": "still mine" })).await;
    assert_eq!((&edited.body["content"], edited.body["edited_timestamp"].is_string()), (&json!("still mine"), true));
    let empty = rest.ask(Method::PATCH, &format!("{path}/{own}"), json!({ "content": "" })).await;
    assert_eq!(empty.refusal(), (400, 50006));
    let other = rest.ask(Method::PATCH, &format!("{path}/{hers}"), json!({ "content": "x" })).await;
    assert_eq!(other.refusal(), (403, 50005));
    assert_eq!(rest.delete(&format!("{path}/{hers}")).await.refusal(), (403, 50013));
    assert_eq!(rest.delete(&format!("{path}/{own}")).await.status, 204);
    assert_eq!(rest.delete(&format!("{path}/{own}")).await.refusal(), (404, 10008));
    let bulk = format!("{path}/bulk-delete");
    let moderator = discord.role(guild, "Moderators", Permissions::MANAGE_MESSAGES);
    discord.give_role(guild, discord.bot(), moderator);
    assert_eq!(rest.post(&bulk, json!({ "messages": [hers] })).await.refusal(), (400, 50016));
    assert_eq!(rest.post(&bulk, json!({ "messages": [hers, "175928847299117063"] })).await.refusal(), (400, 50034));
    let more = discord.say(ana, general, "more");
    assert_eq!(rest.post(&bulk, json!({ "messages": [hers, more] })).await.status, 204);
    assert_eq!(rest.get(&path).await.body, json!([]));
}

#[tokio::test]
async fn not_every_channel_takes_messages() {
    let (Home { discord, guild, .. }, rest) = home().await;
    let new_channel = |kind| discord.channel_of(guild, kind, "there");

    assert_eq!(rest.say(new_channel(Kind::Category), "x").await.refusal(), (400, 50008));
    assert_eq!(rest.say(new_channel(Kind::Forum), "x").await.refusal(), (400, 40058));
    assert_eq!(rest.say(new_channel(Kind::Voice), "x").await.status, 200);
    assert_eq!(rest.say(new_channel(Kind::Announcement), "x").await.status, 200);
    assert_eq!(rest.say(Id(5), "x").await.refusal(), (404, 10003));
    let typed = new_channel(Kind::Text);
    assert_eq!(rest.post(&format!("/channels/{typed}/typing"), Value::Null).await.status, 204);
    assert_eq!(discord.look(|state| state.journal.typing[0].1), typed);
}

#[tokio::test]
async fn direct_messages_need_a_shared_guild_and_a_recipient_who_accepts_them() {
    let (Home { discord, guild, ana, .. }, rest) = home().await;
    let open = async |person: Value| rest.post("/users/@me/channels", json!({ "recipient_id": person })).await;

    let channel = open(json!(ana)).await;
    assert_eq!((channel.status, &channel.body["recipients"][0]["id"]), (200, &json!(ana)));
    assert_eq!(open(json!(ana)).await.id(), channel.id());
    assert_eq!(rest.say(channel.id(), "psst").await.status, 200);
    assert_eq!(discord.direct(ana, "yes?").0, channel.id());
    discord.close_directs(ana);
    assert_eq!(rest.say(channel.id(), "psst").await.refusal(), (403, 50007));
    let stranger = open(json!(discord.person("Stranger"))).await.id();
    assert_eq!(rest.say(stranger, "hello").await.refusal(), (403, 50278));
    assert_eq!(open(json!("5")).await.refusal(), (400, 50033));
    let other = discord.foreign_bot("Robot");
    discord.join(guild, other);
    assert_eq!(open(json!(other)).await.refusal(), (400, 50007));
    assert_eq!(open(Value::Null).await.refusal(), (400, 50035));
}
