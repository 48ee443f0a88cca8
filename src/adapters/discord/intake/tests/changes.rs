//! Edits and deletions.

use serde_json::json;

use super::world::{Call, GENERAL, HOME, OTHER, World, message, with};

#[tokio::test]
async fn an_update_that_is_not_an_edit_changes_nothing() {
    let at = "2026-01-01T00:01:00.000000+00:00";
    for (what, update) in [
        ("a link that unfolds", with(message(50, GENERAL, "hi"), json!({ "embeds": [{ "type": "link" }] }))),
        ("a part", json!({ "id": "50", "channel_id": GENERAL, "guild_id": HOME, "edited_timestamp": at })),
        (
            "a part with words",
            json!({ "id": "50", "channel_id": GENERAL, "guild_id": HOME, "edited_timestamp": at, "content": "x" }),
        ),
        ("in a channel without companions", with(message(50, OTHER, "hi"), json!({ "edited_timestamp": at }))),
        (
            "of ours",
            with(
                message(50, GENERAL, "hi"),
                json!({ "edited_timestamp": at, "author": super::world::user(super::world::BOT, "T") }),
            ),
        ),
    ] {
        let mut world = World::new().await;

        world.kept("MESSAGE_UPDATE", update).await;

        assert_eq!(world.core.calls(), [], "{what}");
    }
}

#[tokio::test]
async fn messages_can_be_deleted_after_all_companions_left() {
    let mut world = World::new().await;
    world.core.with_members.lock().clear();

    world.kept("MESSAGE_DELETE", json!({ "id": "50", "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string() })).await;

    assert!(matches!(&world.core.calls()[..], [Call::Deleted(..)]));
}
