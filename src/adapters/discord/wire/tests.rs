use serde_json::json;

use super::super::snowflake::Snowflake;
use super::*;

#[test]
fn an_id_is_a_string_or_a_number_and_other_values_are_not_quoted() {
    let read = |text: &str| serde_json::from_str::<Id>(text);

    assert_eq!((read("\"7\"").unwrap(), read("7").unwrap()), (id(7), id(7)));
    for odd in ["0", "\"0\"", "-7", "7.5", "\"secret\"", "null", "[]", "{}", "true"] {
        let error = read(odd).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

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
    let raw = message.raw();

    assert_eq!((raw.id, raw.content, raw.kind), (id(334_385_199_974_967_042).0, "Supa Hot", 0));
    assert_eq!((raw.origin.author.id, &*raw.origin.author.shown()), (id(53_908_099_506_183_680).0, "Mason"));
    assert!(raw.answers.is_none() && raw.forward.is_none() && raw.poll.is_none());
}

#[test]
fn a_crosspost_is_not_an_answer() {
    let crosspost = json!({
        "id": "5", "channel_id": "2", "type": 0, "flags": 2, "content": "News", "author": { "id": "7", "username": "News" },
        "webhook_id": "7", "message_reference": { "channel_id": "1", "guild_id": "3", "message_id": "4" },
    });

    let message: Message = serde_json::from_str(&crosspost.to_string()).unwrap();

    assert!(message.raw().answers.is_none());
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

fn id(number: u64) -> Id {
    Id(Snowflake::new(number).unwrap())
}
