use serde_json::json;

use super::super::snowflake::Snowflake;
use super::*;

#[test]
fn an_id_is_a_text_or_a_number_and_what_stands_there_instead_is_not_quoted() {
    let read = |text: &str| serde_json::from_str::<Id>(text);

    assert_eq!((read("\"7\"").unwrap(), read("7").unwrap()), (id(7), id(7)));
    for odd in ["0", "\"0\"", "-7", "7.5", "\"secret\"", "null", "[]", "{}", "true"] {
        let error = read(odd).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn the_message_of_the_documentation_is_read() {
    // Discord's documentation, "Messages Resource", "Example Message", with what belongs around it.
    let message = json!({
        "reactions": [{ "count": 1, "count_details": { "burst": 0, "normal": 1 }, "me": false, "me_burst": false,
                        "emoji": { "id": null, "name": "🔥" }, "burst_colors": [] }],
        "attachments": [], "tts": false, "embeds": [], "timestamp": "2017-07-11T17:27:07.299000+00:00",
        "mention_everyone": false, "id": "334385199974967042", "pinned": false, "edited_timestamp": null,
        "author": { "username": "Mason", "discriminator": "9999", "id": "53908099506183680", "avatar": "a_bab14f271d565501444b2ca3be944b25" },
        "mention_roles": [], "content": "Supa Hot", "channel_id": "290926798999357250", "mentions": [], "type": 0,
    });

    let message: Message = serde_json::from_str(&message.to_string()).unwrap();
    let told = message.raw();

    assert_eq!((told.id, told.content, told.kind), (id(334_385_199_974_967_042).0, "Supa Hot", 0));
    assert_eq!((told.origin.author.id, &*told.origin.author.shown()), (id(53_908_099_506_183_680).0, "Mason"));
    assert!(told.answers.is_none() && told.forward.is_none() && told.poll.is_none());
}

#[test]
fn a_crosspost_refers_to_a_message_and_answers_none() {
    let crosspost = json!({
        "id": "5", "channel_id": "2", "type": 0, "flags": 2, "content": "News", "author": { "id": "7", "username": "News" },
        "webhook_id": "7", "message_reference": { "channel_id": "1", "guild_id": "3", "message_id": "4" },
    });

    let message: Message = serde_json::from_str(&crosspost.to_string()).unwrap();

    assert!(message.raw().answers.is_none());
}

#[test]
fn an_edit_has_its_time_its_words_and_its_author() {
    let is_edit = |value: serde_json::Value| serde_json::from_str::<Update>(&value.to_string()).unwrap().is_edit();
    let (at, author) = ("2026-01-01T00:00:00+00:00", json!({ "id": "7" }));

    assert!(is_edit(json!({ "edited_timestamp": at, "content": "", "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": null, "content": "x", "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": at, "author": author })));
    assert!(!is_edit(json!({ "edited_timestamp": at, "content": "x" })));
}

#[test]
fn only_a_guild_that_is_said_to_be_gone_is() {
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
fn what_cannot_be_read_in_a_list_is_left_out_of_it() {
    let guild = json!({ "id": 1, "name": 7, "roles": [{ "id": "2", "name": null }, { "name": "x" }, 5], "channels": "none", "threads": null });

    let guild: Guild = serde_json::from_str(&guild.to_string()).unwrap();

    assert_eq!((guild.name, guild.roles.len(), guild.channels.len(), guild.threads.len()), (None, 1, 0, 0));
}

fn id(number: u64) -> Id {
    Id(Snowflake::new(number).unwrap())
}
