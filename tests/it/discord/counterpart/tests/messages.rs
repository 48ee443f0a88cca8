//! Messages over REST: refusals, notifications and history.

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
        (json!({ "content": "x", "nonce": "x".repeat(26) }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["all"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["users"], "users": ["1"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "users": vec!["1"; 101] } }), 50035),
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
    let (Home { discord, general, ana, bot, .. }, rest) = home().await;
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
    discord.deny(general, bot, Permissions::READ_MESSAGE_HISTORY);
    assert_eq!(rest.get(&path).await.body, json!([]), "the list is empty without the permission");
    assert_eq!(rest.get(&format!("{path}/{}", ids[0])).await.refusal(), (403, 50013));
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
    let (Home { discord, ana, .. }, rest) = home().await;
    let (channel, _) = discord.direct(ana, "psst");

    assert_eq!(rest.get(&format!("/channels/{channel}")).await.body["recipients"][0]["id"], json!(ana));
    assert_eq!(rest.say(channel, "yes?").await.status, 200);
    assert_eq!(discord.direct(ana, "Well?").0, channel);
    discord.close_directs(ana);
    assert_eq!(rest.say(channel, "psst").await.refusal(), (403, 50007));
    let (stranger, _) = discord.direct(discord.person("Stranger"), "hi");
    assert_eq!(rest.say(stranger, "hello").await.refusal(), (403, 50278));
}
