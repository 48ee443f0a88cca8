use serde_json::json;
use twilight_model::channel::message::MessageType;

use super::super::snowflake::id;
use super::*;

#[test]
fn the_documentations_example_message_is_parsed() {
    // Discord's documentation, "Messages Resource", "Example Message", with the fields of an event added.
    let message = json!({
        "reactions": [{ "count": 1, "count_details": { "burst": 0, "normal": 1 }, "me": false, "me_burst": false,
                        "emoji": { "id": null, "name": "🔥" }, "burst_colors": [] }],
        "attachments": [], "tts": false, "embeds": [], "timestamp": "2017-07-11T17:27:07.299000+00:00",
        "mention_everyone": false, "id": "334385199974967042", "pinned": false, "edited_timestamp": null,
        "author": { "username": "Mason", "discriminator": "9999", "id": "53908099506183680", "avatar": "a_bab14f271d565501444b2ca3be944b25" },
        "mention_roles": [], "content": "Supa Hot", "channel_id": "290926798999357250", "mentions": [], "type": 0,
    });

    let message: Message = serde_json::from_str(&message.to_string()).unwrap();

    let (kind, author) = (MessageType::Regular, message.origin().author);
    assert_eq!((message.id, message.content(), message.kind), (id(334_385_199_974_967_042), "Supa Hot", kind));
    assert_eq!((author.id, &*author.shown(None)), (id(53_908_099_506_183_680), "Mason"));
    assert!(message.answers().is_none() && message.forward().is_none() && message.poll.is_none());
}

#[test]
fn a_crosspost_is_not_an_answer() {
    let crosspost = json!({
        "id": "5", "channel_id": "2", "type": 0, "flags": 2, "content": "News", "author": { "id": "7", "username": "News" },
        "webhook_id": "7", "message_reference": { "channel_id": "1", "guild_id": "3", "message_id": "4" },
    });

    let message: Message = serde_json::from_str(&crosspost.to_string()).unwrap();

    assert!(message.answers().is_none());
}

#[test]
fn an_edit_has_a_time_content_and_an_author() {
    let is_edit = |value: serde_json::Value| serde_json::from_str::<Update>(&value.to_string()).unwrap().is_edit();
    let (at, author) = ("2026-01-01T00:00:00+00:00", json!({ "id": "7" }));

    assert!(is_edit(json!({ "edited_timestamp": at, "content": "", "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": null, "content": "x", "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": at, "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": at, "content": "x" })));
}

#[test]
fn only_an_explicit_removal_counts_as_removal() {
    for (gone, is_outage) in [
        (json!({ "id": "1" }), false),
        (json!({ "id": "1", "unavailable": false }), false),
        (json!({ "id": "1", "unavailable": null }), false),
        (json!({ "id": "1", "unavailable": true }), true),
        (json!({ "id": "1", "unavailable": "yes" }), true),
        (json!({ "id": "1", "unavailable": { "a": [1] } }), true),
    ] {
        let read: GuildDeleted = serde_json::from_str(&gone.to_string()).unwrap();

        assert_eq!(read.is_outage(), is_outage, "{gone}");
    }
}

#[test]
fn unreadable_items_of_a_list_are_skipped() {
    let guild = json!({ "id": 1, "name": 7, "roles": [{ "id": "2", "name": null }, { "name": "x" }, 5], "channels": "none", "threads": null });

    let guild: Guild = serde_json::from_str(&guild.to_string()).unwrap();

    assert_eq!((guild.name, guild.roles.len(), guild.channels.len(), guild.threads.len()), (None, 1, 0, 0));
}
