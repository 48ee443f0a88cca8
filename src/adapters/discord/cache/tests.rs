use serde_json::{Value, json};

use super::super::outgoing::Emoji;
use super::super::snowflake::id;
use super::incoming::NameLookup as _;
use super::*;

const HOME: u64 = 100;
const BOT: u64 = 9;

#[test]
fn an_older_message_does_not_replace_the_newest() {
    let (cache, channel) = (Cache::default(), id(1));

    cache.message_seen(channel, id(20));
    cache.message_seen(channel, id(10));

    assert_eq!(cache.newest(channel), Some(id(20)));
    assert_eq!(cache.newest(id(2)), None);
}

#[test]
fn a_thread_uses_its_parents_webhook() {
    let cache = Cache::default();

    assert_eq!(cache.webhook_target(id(1)), None);
    cache.set_parent(id(1), None);
    cache.set_parent(id(2), Some(id(1)));

    assert_eq!(cache.webhook_target(id(1)), Some(WebhookTarget { root: id(1), thread: None }));
    assert_eq!(cache.webhook_target(id(2)), Some(WebhookTarget { root: id(1), thread: Some(id(2)) }));
    cache.remove_channel(id(2));
    assert_eq!(cache.webhook_target(id(2)), None);
}

#[test]
fn channels_have_titles_for_people() {
    let cache = home();
    cache.update_channel(None, &channel(&json!({ "id": "5", "type": 1, "recipients": [{ "id": "7", "username": "ana" }] })));

    let title = |channel: u64| cache.title(&id(channel).channel());

    assert_eq!(title(1).as_deref(), Some("#general · Home"));
    assert_eq!(title(3).as_deref(), Some("Summer · #plans · Home"));
    assert_eq!(title(5).as_deref(), Some("direct message with ana"));
    assert_eq!((title(4), title(6)), (None, None));
}

#[test]
fn a_thread_has_the_topic_of_its_channel_and_a_title_of_its_own() {
    let cache = home();
    cache.update_channel(None, &channel(&json!({ "id": "2", "type": 15, "name": "plans", "topic": "Where\nto go" })));

    let topics = [1, 2, 3, 4].map(|channel| cache.topic(&id(channel).channel()));

    assert_eq!(topics, [None, Some("Where to go".to_owned()), Some("Where to go".to_owned()), None]);
    assert_eq!([1, 2, 3].map(|thread| cache.thread_title(id(thread))), [None, None, Some("Summer".to_owned())]);
}

#[test]
fn hidden_channels_have_no_name_and_no_newest_message() {
    let cache = home();

    assert_eq!(cache.names(Some(id(HOME))).channel(id(4)), None);
    assert_eq!(cache.newest(id(4)), None);
}

#[test]
fn a_forum_has_no_newest_message() {
    let cache = home();

    assert_eq!((cache.newest(id(1)), cache.newest(id(2)), cache.newest(id(3))), (Some(id(50)), None, Some(id(60))));
}

#[test]
fn names_of_one_guild_are_unknown_in_another() {
    let cache = home();
    cache.person_spoke(Some(id(HOME)), id(1), id(7), "Ana");

    let (here, there, direct) = (cache.names(Some(id(HOME))), cache.names(Some(id(101))), cache.names(None));

    assert_eq!((here.channel(id(1)), here.role(id(30))), (Some("general".to_owned()), Some("mods".to_owned())));
    assert_eq!(here.person(id(7)).as_deref(), Some("Ana"));
    for other in [there, direct] {
        assert_eq!((other.channel(id(1)), other.role(id(30)), other.person(id(7))), (None, None, None));
    }
}

#[test]
fn the_bots_own_role_is_the_one_with_its_id() {
    let cache = home();
    let role = |value: Value| -> wire::Role { serde_json::from_str(&value.to_string()).unwrap() };

    assert_eq!(cache.own_role(id(HOME)), Some(id(31)));
    cache.remove_role(id(HOME), id(31));
    assert_eq!(cache.own_role(id(HOME)), None);
    cache.update_role(
        id(HOME),
        &role(json!({ "id": "33", "name": "Tertulia", "tags": { "bot_id": BOT.to_string() } })),
        Some(id(BOT)),
    );
    assert_eq!(cache.own_role(id(HOME)), Some(id(33)));
}

#[test]
fn the_latest_speakers_may_be_mentioned() {
    let cache = home();

    for user in 1_000..1_040 {
        cache.person_spoke(Some(id(HOME)), id(1), id(user), &format!("Person {user}"));
    }
    cache.person_spoke(Some(id(HOME)), id(1), id(1_020), "Renamed");
    let mentionables = cache.mentionables(id(1));

    assert_eq!(mentionables.people.len(), MAX_PEOPLE);
    assert_eq!(mentionables.people.last(), Some(&(id(1_020), "Renamed".into())));
    assert!(!mentionables.people.iter().any(|(user, _)| *user == id(1_000)));
    assert_eq!(*mentionables.emojis, [Emoji { id: id(40), name: "wave".into(), animated: true }]);
    assert_eq!(cache.mentionables(id(2)).people, []);
}

#[test]
fn a_removed_guild_leaves_the_cache_with_its_channels() {
    let cache = home();

    let gone = cache.remove_guild(id(HOME));

    assert_eq!(gone, [id(1), id(2), id(3), id(4)]);
    assert!(!cache.has_guild(id(HOME)) && !cache.has_channel(id(1)));
}

#[test]
fn a_channel_is_public_if_everybody_can_read_it_and_its_past() {
    let cache = home();
    let everyone =
        |permissions: u64| json!({ "id": HOME.to_string(), "name": "@everyone", "permissions": permissions.to_string() });
    let overwrite = |id: u64, allow: u64, deny: u64| json!({ "id": id.to_string(), "type": 0, "allow": allow.to_string(), "deny": deny.to_string() });
    let (view, history, connect) = (1 << 10, 1 << 16, 1 << 20);
    let is_public = |object: Value, permissions: u64| {
        let mut object = object;
        object["id"] = json!("20");
        if object.get("permission_overwrites").is_none() && object["type"] != 11 {
            object["permission_overwrites"] = json!([]);
        }
        cache.update_channel(Some(id(HOME)), &channel(&json!({ "id": "10", "type": 0, "permission_overwrites": [] })));
        cache.update_channel(
            Some(id(HOME)),
            &channel(&json!({ "id": "11", "type": 0, "nsfw": true, "permission_overwrites": [] })),
        );
        cache.update_channel(Some(id(HOME)), &channel(&object));
        cache.update_role(id(HOME), &serde_json::from_str(&everyone(permissions).to_string()).unwrap(), None);
        cache.is_public(&id(20).channel())
    };

    assert!(!cache.is_public(&id(1).channel()), "what everybody may do is not known");
    for (object, permissions, expected) in [
        (json!({ "type": 0 }), view | history, true),
        (json!({ "type": 0 }), 1 << 3, true),
        (json!({ "type": 0 }), view, false),
        (json!({ "type": 0, "nsfw": true }), view | history, false),
        (json!({ "type": 0, "permission_overwrites": [overwrite(HOME, 0, view)] }), view | history, false),
        (json!({ "type": 0, "permission_overwrites": [overwrite(HOME, view | history, 0)] }), 0, true),
        (json!({ "type": 0, "permission_overwrites": [overwrite(30, view | history, 0)] }), 0, false),
        (json!({ "type": 2 }), view | history, false),
        (json!({ "type": 2 }), view | history | connect, true),
        (json!({ "type": 11, "parent_id": "10" }), view | history, true),
        (json!({ "type": 11, "parent_id": "11" }), view | history, false),
        (json!({ "type": 11, "parent_id": "99" }), view | history, false),
        (json!({ "type": 0, "permission_overwrites": "?" }), view | history, false),
        (json!({ "type": 77 }), view | history, false),
        (json!({ "type": 12, "parent_id": "10" }), view | history, false),
        (json!({ "type": 1 }), view | history, false),
        (json!({ "type": 0, "flags": 1 << 17 }), view | history, false),
    ] {
        assert_eq!(is_public(object.clone(), permissions), expected, "{object}, {permissions}");
    }
    let opened = json!({ "id": "12", "type": 0, "permission_overwrites": [overwrite(HOME, view | history, 0)] });
    cache.update_channel(Some(id(HOME)), &channel(&opened));
    assert!(is_public(json!({ "type": 11, "parent_id": "12" }), 0), "a thread of a channel that is opened by an overwrite");
    assert!(is_public(json!({ "type": 0 }), view | history));
    cache.guild_unknown(id(HOME));
    assert!(!cache.is_public(&id(20).channel()));
}

/// A guild with two channels, a forum with a post, and a channel that is hidden from the bot.
fn home() -> Cache {
    let cache = Cache::default();
    let guild = json!({
        "id": HOME.to_string(),
        "name": "Ho\u{202e}me",
        "roles": [{ "id": "31", "name": "Tertulia", "tags": { "bot_id": BOT.to_string() } }, { "id": "30", "name": "mods" }],
        "emojis": [{ "id": "40", "name": "wave", "animated": true }, { "id": "41", "name": "old", "available": false }, 7],
        "channels": [
            { "id": "1", "type": 0, "name": "general", "last_message_id": "50" },
            { "id": "2", "type": 15, "name": "plans", "last_message_id": "3" },
            { "id": "4", "type": 0, "name": "___hidden___", "last_message_id": "50", "flags": 1 << 17 },
        ],
        "threads": [{ "id": "3", "type": 11, "parent_id": "2", "name": "Summer", "last_message_id": "60" }],
    });
    let guild: wire::Guild = serde_json::from_str(&guild.to_string()).unwrap();
    cache.update_guild(&guild, Some(id(BOT)));
    for reported in guild.channels.iter().chain(&guild.threads) {
        cache.update_channel(Some(id(HOME)), reported);
    }
    cache
}

fn channel(value: &Value) -> wire::Channel {
    serde_json::from_str(&value.to_string()).unwrap()
}
