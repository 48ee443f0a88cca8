//! Which sessions receive which events.

use serde_json::json;

use super::super::{Intents, Permissions};
use super::client::{INTENTS, Rest, Socket, home};
use crate::discord::home::Home;

#[tokio::test]
async fn a_message_event_has_all_fields() {
    let Home { discord, guild, general, ana, bot } = Home::new().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    let first = discord.say(ana, general, "first");
    socket.event("MESSAGE_CREATE").await;

    let attachment = json!({ "id": "1", "filename": "a.txt", "size": 1, "url": "https://x", "proxy_url": "https://x" });
    let reply = discord.say_with(ana, general, &format!("<@{bot}> look"), |message| {
        message.reply_to(first, Some(guild));
        message.attachments.push(attachment.clone());
    });

    let event = socket.event("MESSAGE_CREATE").await;
    assert_eq!((&event["id"], &event["guild_id"], &event["channel_id"]), (&json!(reply), &json!(guild), &json!(general)));
    assert_eq!((&event["type"], &event["attachments"]), (&json!(19), &json!([attachment])));
    assert_eq!((&event["author"]["username"], &event["member"]["roles"]), (&json!("ana"), &json!([])));
    assert_eq!((&event["mentions"][0]["id"], &event["mentions"][0]["member"]["nick"]), (&json!(bot), &json!(null)));
    assert_eq!(event["referenced_message"]["content"], "first");
    discord.delete(general, first);
    discord.edit(general, reply, "look!");
    let edited = socket.event("MESSAGE_UPDATE").await;
    assert_eq!((&edited["content"], &edited["referenced_message"]), (&json!("look!"), &json!(null)));
    assert!(edited["edited_timestamp"].is_string());
    let link = discord.say(ana, general, "https://example.org");
    discord.unfold(general, link, json!({ "type": "link", "title": "An example" }));
    let unfolded = socket.event("MESSAGE_UPDATE").await;
    assert_eq!((&unfolded["embeds"][0]["title"], &unfolded["edited_timestamp"]), (&json!("An example"), &json!(null)));
}

#[tokio::test]
async fn without_the_content_intent_only_messages_that_concern_the_bot_have_text() {
    let Home { discord, general, ana, bot, .. } = Home::new().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS & !Intents::MESSAGE_CONTENT).await;
    let rest = Rest::new(&discord);
    let own = rest.say(general, "mine").await.id();

    discord.say(ana, general, "to nobody");
    discord.say(ana, general, &format!("<@{bot}> to you"));
    discord.reply(ana, general, own, "quietly to you", false);
    discord.reply(ana, general, own, "aloud to you", true);
    discord.direct(ana, "between us");

    let mut texts = Vec::new();
    for _ in 0..6 {
        let event = socket.event("MESSAGE_CREATE").await;
        assert_eq!(event["embeds"], json!([]));
        texts.push(event["content"].as_str().expect("text").to_owned());
    }
    assert_eq!(texts, ["mine", "", &format!("<@{bot}> to you"), "", "aloud to you", "between us"]);
    // The content that REST shows depends only on the portal.
    assert_eq!(rest.get(&format!("/channels/{general}/messages?limit=1")).await.body[0]["content"], "aloud to you");
    discord.set_privileged(Intents::empty());
    let path = format!("/channels/{general}/messages?limit=2");
    assert_eq!(rest.get(&path).await.body[1]["content"], "");
}

#[tokio::test]
async fn only_events_of_the_requested_intents_are_sent() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    discord.set_privileged(Intents::GUILD_MEMBERS);
    let (mut guilds, _) = Socket::ready(&discord, Intents::GUILDS).await;
    discord.with(|state| state.gateway.keys.clear());
    let (mut typing, _) = Socket::ready(&discord, Intents::GUILD_MESSAGE_TYPING | Intents::DIRECT_MESSAGE_TYPING).await;
    discord.with(|state| state.gateway.keys.clear());
    let (mut members, _) = Socket::ready(&discord, Intents::GUILD_MEMBERS).await;
    discord.with(|state| state.gateway.keys.clear());
    let (mut direct, _) = Socket::ready(&discord, Intents::DIRECT_MESSAGES).await;

    discord.say(ana, general, "hi");
    discord.type_in(ana, general);
    let bo = discord.member(guild, "Bo");
    discord.with(|state| state.remove_member(guild, bo));
    discord.direct(ana, "psst");
    discord.foreign_webhook(general, "hook");
    let other = discord.channel(guild, "other");

    assert_eq!(guilds.names_until("CHANNEL_CREATE").await, ["GUILD_CREATE", "CHANNEL_CREATE"]);
    assert_eq!(typing.names_until("TYPING_START").await, ["TYPING_START"]);
    assert_eq!(members.names_until("GUILD_MEMBER_REMOVE").await, ["GUILD_MEMBER_ADD", "GUILD_MEMBER_REMOVE"]);
    assert_eq!(direct.event("MESSAGE_CREATE").await["guild_id"], json!(null));
    assert_ne!(other, general);
}

#[tokio::test]
async fn direct_messages_go_to_the_first_shard() {
    let Home { discord, ana, .. } = Home::new().await;
    discord.with(|state| state.rules.max_concurrency = 2);
    for shard in [1, 0] {
        let mut socket = Socket::open(&discord).await;
        socket.identify(&discord.token(), INTENTS, json!([shard, 2])).await;
        socket.event("READY").await;
    }

    let (_, message) = discord.direct(ana, "psst");

    let shards: Vec<(u64, u64)> = discord.look(|state| {
        let sent = state.journal.deliveries.iter().filter(|delivery| delivery.message == Some(message));
        sent.map(|delivery| delivery.shard).collect()
    });
    assert_eq!(shards, [(0, 2)]);
}

#[tokio::test]
async fn channels_that_the_bot_cannot_view_are_hidden() {
    let Home { discord, guild, general, ana, bot } = Home::new().await;
    let secret = discord.channel(guild, "secret");
    let thread = discord.thread(secret, "aside", ana);
    discord.deny(secret, bot, Permissions::VIEW_CHANNEL);
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    let made = socket.event("GUILD_CREATE").await;
    let names: Vec<_> = made["channels"].as_array().expect("channels").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["general", "___hidden___"]);
    assert_eq!((&made["channels"][1]["flags"], &made["threads"]), (&json!(1 << 17), &json!([])));
    let rest = Rest::new(&discord);
    assert_eq!(rest.get(&format!("/guilds/{guild}/channels")).await.body.as_array().map(Vec::len), Some(1));

    discord.say(ana, secret, "not for the bot");
    discord.say(ana, general, "for the bot");
    assert_eq!(socket.event("MESSAGE_CREATE").await["content"], "for the bot");

    discord.allow(secret, bot, Permissions::VIEW_CHANNEL);
    assert_eq!(socket.event("CHANNEL_UPDATE").await["name"], "secret");
    let synced = socket.event("THREAD_LIST_SYNC").await;
    assert_eq!((&synced["channel_ids"], &synced["threads"][0]["id"]), (&json!([secret]), &json!(thread)));
    discord.deny(secret, bot, Permissions::VIEW_CHANNEL);
    assert_eq!(socket.event("CHANNEL_UPDATE").await["name"], "___hidden___");
}

#[tokio::test]
async fn outages_joins_and_removals_are_distinguishable() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    socket.event("GUILD_CREATE").await;

    discord.set_outage(guild, true);
    assert_eq!(socket.event("GUILD_DELETE").await, json!({ "id": guild, "unavailable": true }));
    discord.with(|state| state.change_guild(guild, |guild| "Unheard".clone_into(&mut guild.name)));
    discord.set_outage(guild, false);
    let back = socket.op().await;
    assert_eq!((&back["t"], &back["d"]["name"]), (&json!("GUILD_CREATE"), &json!("Unheard")));
    discord.expel_bot(guild);
    assert_eq!(socket.event("GUILD_DELETE").await, json!({ "id": guild }));
    discord.say(ana, general, "about the bot");
    discord.invite_bot(guild, Permissions::SEND_MESSAGES);
    assert_eq!(socket.op().await["t"], "GUILD_CREATE", "no event was sent in between");
    assert_eq!(discord.shard_of(guild), Some(0));
}

#[tokio::test]
async fn removing_a_channel_removes_its_threads_messages_and_webhooks() {
    let (Home { discord, general, ana, .. }, rest) = home().await;
    let (webhook, path) = rest.webhook(general, "companions").await;
    let thread = discord.thread(general, "aside", ana);
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;

    discord.remove_channel(general);

    assert_eq!(socket.event("CHANNEL_DELETE").await["id"], json!(general));
    assert_eq!(rest.say(general, "?").await.refusal(), (404, 10003));
    assert_eq!(rest.say(thread, "?").await.refusal(), (404, 10003));
    assert_eq!(rest.post(&path, json!({ "content": "?" })).await.refusal(), (404, 10015));
    assert!(discord.look(|state| !state.world.webhooks.contains_key(&webhook)));
}

#[tokio::test]
async fn a_person_needs_the_permission_to_speak() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    discord.deny(general, guild, Permissions::SEND_MESSAGES);
    let discord = std::sync::Arc::new(discord);

    let speaks = tokio::spawn({
        let discord = std::sync::Arc::clone(&discord);
        async move { discord.say(ana, general, "hi") }
    });
    assert!(speaks.await.is_err(), "Ana may not speak there");
    let speaker = discord.role(guild, "Speakers", Permissions::empty());
    discord.allow(general, speaker, Permissions::SEND_MESSAGES);
    discord.give_role(guild, ana, speaker);
    discord.say(ana, general, "hi");
}

#[tokio::test]
async fn a_forwarded_message_carries_a_snapshot() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let other = discord.channel(guild, "other");
    let first = discord.say(ana, general, "news");
    let (mut open, _) = Socket::ready(&discord, INTENTS).await;
    discord.with(|state| state.gateway.keys.clear());
    let (mut bare, _) = Socket::ready(&discord, INTENTS & !Intents::MESSAGE_CONTENT).await;

    discord.forward(ana, general, first, other);

    let event = open.event("MESSAGE_CREATE").await;
    assert_eq!((&event["type"], &event["content"]), (&json!(0), &json!("")));
    assert_eq!((&event["message_reference"]["type"], &event["message_reference"]["message_id"]), (&json!(1), &json!(first)));
    assert_eq!(event["message_snapshots"][0]["message"]["content"], "news");
    assert_eq!(bare.event("MESSAGE_CREATE").await["message_snapshots"][0]["message"]["content"], "");
}

#[tokio::test]
async fn an_event_can_be_delivered_more_than_once() {
    let Home { discord, general, ana, .. } = Home::new().await;
    let (mut socket, _) = Socket::ready(&discord, INTENTS).await;
    let message = discord.say(ana, general, "hello");

    discord.repeat(general, message);

    let first = socket.event("MESSAGE_CREATE").await;
    let sequence = socket.sequence;
    assert_eq!(socket.event("MESSAGE_CREATE").await, first);
    assert_eq!(socket.sequence, sequence + 1);
    assert_eq!(
        discord.look(|state| state.journal.deliveries.iter().filter(|delivery| delivery.message == Some(message)).count()),
        2
    );
}
