//! Fuzzes hostile input from Discord: frames, events, messages, markup, names, interactions, limits and refusals.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;

pub use super::commands::fuzz::{interaction, interactions};
use super::gateway::fuzz as gateway;
use super::identify::IdentifyHistory;
use super::incoming::{Incoming, Sender, classify};
use super::limits::{Account, Ask, Limits, Route};
use super::markup::pieces;
use super::names;
use super::outgoing::{Emoji, Mentionables, render as parts_of};
use super::refusals::Refusal;
use super::rest;
use super::snowflake::{Snowflake, id};
use super::wire;
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::fuzzing::{is_bounded, is_plain_line, text, texts};

const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
const BOT: u64 = 900;
const APPLICATION: u64 = 901;
const ANA: u64 = 1_001;

pub fn frames() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"op":0,"s":7,"t":"MESSAGE_CREATE","d":{"id":"50"}}"#,
        r#"{"op":10,"d":{"heartbeat_interval":41250}}"#,
        r#"{"op":9,"d":true}"#,
        r#"{"op":0,"s":1,"t":"READY","d":{"session_id":"abc","resume_gateway_url":"wss://gateway-x.discord.gg","user":{"id":"900"},"application":{"id":"901"}}}"#,
        r#"{"op":7,"d":null}"#,
        r#"{"url":"wss://gateway.discord.gg","shards":9,"session_start_limit":{"total":1000,"remaining":999,"reset_after":14400000,"max_concurrency":1}}"#,
        r#"{"id":"abc","resume_url":"wss://gateway-x.discord.gg","accepted":7,"shards":1,"application":"901","intents":5}"#,
    ])
}

pub fn frame(bytes: &[u8]) {
    gateway::frame(&text(bytes));
}

pub fn events() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"id":"100","name":"Home","joined_at":"2026-01-01T00:00:00.000000+00:00","owner_id":"1","roles":[{"id":"30","name":"mods","permissions":"8","tags":{"bot_id":"900"}}],"channels":[{"id":"200","type":0,"name":"general","last_message_id":"50","permission_overwrites":[{"id":"30","type":0,"allow":"1024","deny":"0"}]}],"threads":[{"id":"400","parent_id":"200","type":11,"name":"aside","thread_metadata":{"archived":false}}],"emojis":[{"id":"40","name":"wave","animated":false,"available":true}],"members":[]}"#,
        r#"{"user":{"id":"900"},"application":{"id":"901"},"guilds":[{"id":"100","unavailable":true}]}"#,
        r#"{"id":"100","unavailable":true}"#,
        r#"{"guild_id":"100","role":{"id":"30","name":"mods","permissions":"0"},"role_id":"30","channel_id":"200","channel_ids":["200"],"threads":[],"ids":["50","51"],"emojis":[]}"#,
        r#"[{"at":5,"shard":0}]"#,
    ])
}

pub fn event(bytes: &[u8]) {
    read::<wire::Ready>(bytes, |ready| _ = (ready.bot(), ready.guilds().map(Iterator::count)));
    read::<wire::Guild>(bytes, |guild| _ = guild.joined_at());
    read::<wire::GuildDeleted>(bytes, |gone| _ = gone.is_outage());
    read::<wire::Channel>(bytes, |channel| {
        let _ = (
            channel.is_thread(),
            channel.is_direct(),
            channel.is_locked(),
            channel.is_archived(),
            channel.parent(),
            channel.newest(),
        );
        assert!(channel.name().is_none_or(|name| is_plain_line(&name) && is_bounded(&name, 101)));
    });
    read::<wire::ChannelDeleted>(bytes, |_| {});
    read::<wire::Threads>(bytes, |_| {});
    read::<wire::RoleChanged>(bytes, |changed| _ = changed.role.bot());
    read::<wire::RoleDeleted>(bytes, |_| {});
    read::<wire::Emojis>(bytes, |_| {});
    read::<wire::WebhooksChanged>(bytes, |_| {});
    read::<wire::MessageLocation>(bytes, |_| {});
    read::<wire::MessagesDeleted>(bytes, |_| {});
    read::<wire::MessageDeleted>(bytes, |_| {});
    read::<wire::Reaction>(bytes, |reaction| {
        assert!(reaction.emoji().is_none_or(|emoji| is_plain_line(&emoji) && is_bounded(&emoji, 100)));
        let _ = reaction.is_by_bot();
    });
    read::<IdentifyHistory>(bytes, |history| {
        assert_eq!(&serde_json::from_str::<IdentifyHistory>(&serde_json::to_string(history).unwrap()).unwrap(), history)
    });
    read::<Snowflake>(bytes, |id| {
        assert_eq!(id.to_string().parse(), Ok(*id));
        assert_eq!(Snowflake::of_channel(&id.channel()), Some(*id));
        assert!(id.shard(NonZeroU32::new(7).unwrap()) < 7);
    });
}

fn read<T: DeserializeOwned>(bytes: &[u8], look: impl Fn(&T)) {
    match serde_json::from_slice::<T>(bytes) {
        Ok(read) => look(&read),
        Err(error) => assert!(is_bounded(&error.to_string(), 66_000)),
    }
}

pub fn messages() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"id":"50","channel_id":"200","type":0,"content":"hi <@1001> <@&30> <:wave:31> <t:5:R>","author":{"id":"1002","username":"bob","global_name":"Bob"},"mentions":[{"id":"1001","username":"ana","member":{"nick":"Ana"}}],"attachments":[{"id":"1","filename":"a.ogg","duration_secs":3.5,"size":5,"content_type":"audio/ogg"}]}"#,
        r#"{"id":"51","type":19,"flags":0,"edited_timestamp":"2026-01-01T00:01:00.000000+00:00","content":"","author":{"id":"7","username":"hook","bot":true},"webhook_id":"7","application_id":"901","message_reference":{"type":1,"message_id":"40"},"message_snapshots":[{"message":{"content":"<@1001> said","mentions":[{"id":"1001","username":"ana"}],"attachments":[]}}],"referenced_message":{"author":{"id":"900","username":"us","bot":true}},"poll":{"question":{"text":"?"},"answers":[{"poll_media":{"text":"yes"}}]},"sticker_items":[{"name":"Wave"}]}"#,
    ])
}

pub fn message(bytes: &[u8]) {
    read::<wire::Update>(bytes, |update| _ = update.is_edit());
    let Ok(message) = serde_json::from_slice::<wire::Message>(bytes) else { return };
    let us = wire::Bot { user: id(BOT), application: id(APPLICATION) };

    match classify(&message, us, &()) {
        Incoming::Message(inbound_message) => {
            // The author and role must match the message's origin.
            assert_eq!(inbound_message.id.as_deref(), Some(&*message.id.to_string()));
            let author = message.author.id;
            assert_ne!(inbound_message.from.role, Role::Companion, "another author passes for a companion");
            assert!(message.webhook_id.is_none() || inbound_message.from.role == Role::Bot, "a webhook passes for a person");
            assert!(
                Snowflake::of_person(&inbound_message.from.id).is_some_and(|by| by == author || message.webhook_id == Some(by)),
                "the author is another"
            );
            assert_ne!(author, id(BOT), "our own message is inbound");
            assert!(
                is_plain_line(&inbound_message.from.name) && is_bounded(&inbound_message.from.name, 81),
                "{:?}",
                inbound_message.from.name
            );
            assert!(
                !inbound_message.text.trim().is_empty() && is_bounded(&inbound_message.text, 12_000),
                "{} bytes of text",
                inbound_message.text.len()
            );
            assert!(
                inbound_message.text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')),
                "{:?}",
                inbound_message.text
            );
            let users: BTreeSet<String> = message.mentions.iter().map(|user| user.id.person().as_str().to_owned()).collect();
            let is_marked =
                |mention: &str| Snowflake::of_person(mention).is_some_and(|id| message.content().contains(&id.to_string()));
            let is_known = |mention: &str| users.contains(mention) || is_marked(mention);
            assert!(
                inbound_message.mentions.iter().all(|mention| is_known(mention)),
                "{:?} are not mentioned",
                inbound_message.mentions
            );
        }
        Incoming::Ours(_) => {
            let origin = message.origin();
            let is_ours = origin.author.id == id(BOT) || origin.application == Some(id(APPLICATION));
            assert!(is_ours, "another author passes for us");
        }
        Incoming::Ignored(_) => {}
    }
    if let Some((_, Some(replied))) = message.answers()
        && let Sender::Other(author) = super::incoming::sender(&replied.origin(), us)
    {
        assert_ne!(author.role, Role::Companion);
    }
}

pub fn contents() -> Vec<Vec<u8>> {
    texts(&[
        "hi <@1001>, see <#20> and <https://a.b/c> `<@1>` \\<@2> <t:5:R> :wave: https://a.b/(c)",
        "Clyde the Discord bot\u{200d}👩‍🚀 e\u{301}\u{301}\u{301} @everyone",
        "```\ncode\n``` ||spoiler|| **bold**",
    ])
}

pub fn markup(bytes: &[u8]) {
    let text = text(bytes);
    let whole: String = pieces(&text).map(|piece| piece.text().to_owned()).collect();
    assert!(whole == text, "text is lost");
    assert!(pieces(&text).all(|piece| !piece.text().is_empty()), "a piece is empty");
}

pub fn names(bytes: &[u8]) {
    let text = text(bytes);
    let plain = names::plain(&text);
    assert!(is_bounded(&plain, 80) && is_plain_line(&plain) && plain.trim() == plain, "{plain:?}");
    assert!(names::plain(&plain) == plain, "{plain:?} changes when it is made plain again");
    let shown = names::shown([&*text], id(ANA));
    assert!(!shown.is_empty() && is_bounded(&shown, 80));
    let username = names::username(&text);
    assert!(!username.is_empty() && is_bounded(&username, 80) && username.trim() == username, "{username:?}");
    let lower = username.to_lowercase();
    assert!(
        !["clyde", "discord"].iter().any(|word| lower.contains(word)) && !["everyone", "here"].contains(&&*lower),
        "{username:?}"
    );
    assert!(!username.contains(['@', '#', ':', '`']));
    assert!(names::username(&username) == username, "{username:?} changes when it is made a username again");
}

pub fn said(bytes: &[u8]) {
    let text = text(bytes);
    let text: String = text.chars().take(20_000).collect();
    let mentionables = Mentionables {
        people: vec![(id(ANA), "Ana".into()), (id(1_002), "Bob".into())],
        emojis: [Emoji { id: id(31), name: "wave".into(), animated: false }].into(),
    };

    let parts = parts_of(&text, &mentionables);

    let mut mentioned = BTreeSet::new();
    for part in &parts {
        assert!(
            !part.content.is_empty() && is_bounded(&part.content, 2_000) && part.content.trim() == part.content,
            "{:?}",
            part.content
        );
        assert!(part.mentions.iter().all(|user| mentioned.insert(*user)), "somebody is mentioned twice");
        let low = part.content.to_lowercase();
        assert!(!low.contains("@everyone") && !low.contains("@here"), "everybody is mentioned: {:?}", part.content);
        assert!(!mentions_role(&part.content), "a role is mentioned: {:?}", part.content);
    }
    assert!(
        mentioned.iter().all(|user| mentionables.people.iter().any(|(present, _)| present == user)),
        "somebody is mentioned who is not present"
    );
    assert!(parts.len() <= 12 + text.len() / 100, "{} parts of {} bytes", parts.len(), text.len());
}

/// Whether a text mentions a role: `<@&5>`. Discord accepts no other form.
fn mentions_role(content: &str) -> bool {
    content.split("<@&").skip(1).any(|after| {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < after.len() && rest.starts_with('>')
    })
}

pub fn heads() -> Vec<Vec<u8>> {
    texts(&[
        "200\nx-ratelimit-bucket: abc\nx-ratelimit-remaining: 4\nx-ratelimit-reset-after: 1.5",
        "429\nretry-after: 65.057\nx-ratelimit-scope: global\n\n{\"message\":\"slow down\",\"retry_after\":65.057,\"global\":true}\u{1f}404\n\n{}",
        "429\nretry-after: 7\nx-ratelimit-bucket: abc\nx-ratelimit-scope: shared\nx-ratelimit-remaining: 0\u{1f}200\nx-ratelimit-remaining: 0\nx-ratelimit-reset-after: 99999999",
    ])
}

/// Applies responses one after the other. Asserts that waits are bounded and that every wait ends.
pub fn limits(bytes: &[u8]) {
    let all = text(bytes);
    let mut limits = Limits::default();
    let route = Route { name: "GET /x", resource: "1".to_owned(), account: Account::Bot };
    let mut now = Moment::from_micros(1_000_000);
    for answer in all.split('\u{1f}').take(200) {
        for _ in 0..100 {
            match limits.ask(&route, now) {
                Ask::Go => break,
                Ask::WaitUntil(until) => {
                    assert!(until > now, "it waits for a moment in the past");
                    assert!(until.since(now) <= LONGEST_WAIT + Duration::from_secs(1), "it waits for {:?}", until.since(now));
                    now = until;
                }
                Ask::AwaitAnswer => panic!("it waits for an answer that arrived"),
            }
        }
        let limits_of_answer =
            rest::limits_of(status(answer), &headers(answer), answer.split_once("\n\n").map_or("", |(_, body)| body).as_bytes());
        assert!(limits_of_answer.wait().is_none_or(|wait| wait <= LONGEST_WAIT), "the wait is {:?}", limits_of_answer.wait());
        limits.answered(&route, &limits_of_answer, now);
        let _ = limits.caution(now);
    }
}

fn status(answer: &str) -> u16 {
    answer.lines().next().and_then(|line| line.trim().parse().ok()).filter(|status| (100..1_000).contains(status)).unwrap_or(200)
}

fn headers(answer: &str) -> HeaderMap {
    let head = answer.split("\n\n").next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (name, value) in head.lines().skip(1).take(20).filter_map(|line| line.split_once(':')) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.trim())) {
            headers.insert(name, value);
        }
    }
    headers
}

pub fn refusals() -> Vec<Vec<u8>> {
    texts(&[
        "403\n{\"code\":50013,\"message\":\"Missing Permissions\"}",
        "400\n{\"code\":0,\"message\":\"\\u001b[31m\"}",
        "401\n",
    ])
}

pub fn refusal(bytes: &[u8]) {
    let all = text(bytes);
    let body = all.split_once('\n').map_or("", |(_, body)| body);
    let Ok(error) = serde_json::from_str::<rest::ErrorBody>(body) else { return };

    let refusal = Refusal::new(status(&all), error.code, &error.message);

    let message = refusal.to_string();
    assert!(is_bounded(&message, 1_000), "a refusal of {} bytes", message.len());
    assert!(!refusal.kind().is_empty());
}
