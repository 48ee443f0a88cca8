//! Malformed events cause no panic, their receipts are stored, and later events are handed over.

use std::num::NonZeroU32;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::super::dispatch::Fate;
use super::world::{ANA, BOB, GENERAL, HOME, World, fate, home, id, message, ready, user, with};
use crate::fuzzing::{Bytes, inputs};
use crate::ports::gateway::Shard;

const ROUNDS: usize = 240;

#[tokio::test]
async fn no_event_ends_the_intake() {
    let mut world = World::unready(Shard { number: 0, of: NonZeroU32::MIN });
    world.core.with_members.lock().insert(id(GENERAL).channel());
    world.kept("READY", ready(&[HOME])).await;
    // The same in every run.
    let mut runner = TestRunner::deterministic();

    for (round, (kind, sample)) in samples().into_iter().enumerate() {
        let changed = inputs(vec![sample.to_string().into_bytes()]);
        for _ in 0..ROUNDS {
            let Bytes(changed) = changed.new_tree(&mut runner).unwrap().current();
            if let Ok(data) = serde_json::from_slice::<Box<RawValue>>(&changed) {
                let receiver = world.send_raw(kind, data.get()).await;
                assert_eq!(fate(receiver).await, Fate::Kept, "{kind} {data}");
            }
        }
        world.kept("GUILD_CREATE", home()).await;
        let text = format!("still there {round}");
        world.kept("MESSAGE_CREATE", message(1_000_000 + round as u64, GENERAL, &text)).await;
        assert_eq!(world.core.texts(GENERAL).last(), Some(&text));
    }
}

#[tokio::test]
async fn data_that_is_not_an_object_is_ignored() {
    let mut world = World::new().await;
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));

    for (kind, _) in samples() {
        for data in ["null", "7", "\"x\"", "[]", "[1,2,3]", "{}", "true", &deep, "{\"id\":\"1\",\"id\":\"2\"}", "\"\\ud800\""] {
            let receiver = world.send_raw(kind, data).await;
            assert_eq!(fate(receiver).await, Fate::Kept, "{kind} {data:.20}");
        }
    }

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "hi")).await;
    assert_eq!(world.core.texts(GENERAL), ["hi"]);
}

fn samples() -> Vec<(&'static str, Value)> {
    let place = json!({ "id": "50", "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string() });
    let thread = json!({ "id": "400", "guild_id": HOME.to_string(), "parent_id": GENERAL.to_string(), "type": 11, "name": "aside",
                         "last_message_id": null, "flags": 0, "thread_metadata": { "archived": false } });
    let rich = with(
        message(50, GENERAL, "hi <@301> <#201> <@&902> <:wave:5> <t:1:R>"),
        json!({
            "type": 19,
            "edited_timestamp": "2026-01-01T00:01:00.000000+00:00",
            "webhook_id": null,
            "mentions": [with(user(BOB, "Bob"), json!({ "member": { "nick": "Bobby" } }))],
            "mention_roles": ["902"],
            "attachments": [{ "id": "1", "filename": "a.ogg", "duration_secs": 3.5, "size": 5, "content_type": "audio/ogg" }],
            "sticker_items": [{ "id": "1", "name": "Wave" }],
            "poll": { "question": { "text": "?" }, "answers": [{ "poll_media": { "text": "yes" } }] },
            "message_reference": { "type": 0, "message_id": "40" },
            "referenced_message": with(message(40, GENERAL, "before"), json!({ "author": user(ANA, "Ana") })),
            "message_snapshots": [{ "message": { "content": "<@301>", "mentions": [user(BOB, "Bob")], "attachments": [] } }],
        }),
    );
    let full = with(
        home(),
        json!({ "emojis": [{ "id": "40", "name": "wave", "animated": false, "available": true }], "threads": [thread.clone()] }),
    );
    vec![
        ("READY", ready(&[HOME])),
        ("GUILD_CREATE", full.clone()),
        ("GUILD_UPDATE", full),
        ("GUILD_DELETE", json!({ "id": HOME.to_string(), "unavailable": true })),
        ("CHANNEL_UPDATE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string(), "type": 0, "name": "general" })),
        ("CHANNEL_DELETE", json!({ "id": "499", "guild_id": HOME.to_string(), "type": 0 })),
        ("THREAD_CREATE", thread.clone()),
        ("THREAD_UPDATE", thread.clone()),
        ("THREAD_DELETE", json!({ "id": "400", "guild_id": HOME.to_string() })),
        ("THREAD_LIST_SYNC", json!({ "guild_id": HOME.to_string(), "channel_ids": [GENERAL.to_string()], "threads": [thread] })),
        ("GUILD_ROLE_CREATE", json!({ "guild_id": HOME.to_string(), "role": { "id": "30", "name": "mods", "tags": {} } })),
        ("GUILD_ROLE_DELETE", json!({ "guild_id": HOME.to_string(), "role_id": "30" })),
        ("GUILD_EMOJIS_UPDATE", json!({ "guild_id": HOME.to_string(), "emojis": [{ "id": "40", "name": "wave" }] })),
        ("WEBHOOKS_UPDATE", json!({ "guild_id": HOME.to_string(), "channel_id": GENERAL.to_string() })),
        ("MESSAGE_CREATE", rich.clone()),
        ("MESSAGE_UPDATE", rich),
        ("MESSAGE_DELETE", place),
        ("MESSAGE_DELETE_BULK", json!({ "ids": ["50", "51"], "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string() })),
        ("INTERACTION_CREATE", json!({ "id": "1" })),
    ]
}
