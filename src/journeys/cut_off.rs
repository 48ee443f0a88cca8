//! A spoken statement that was cut off: what is shown of it, and what is erased.

use serde_json::{Value, json};

use super::retaining::left_of;
use super::world::{World, room};
use crate::actors::inbound::Inbound;
use crate::domain::id::Seq;
use crate::domain::message::{Cut, Message, Modality, Role};
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::messages::Edit;
use crate::samples::{author, lobby, message, person, said};

/// A room in which Ana has cut Aria off, and the number of the statement.
async fn cut_off() -> (World, Seq) {
    let world = World::with_lobby().await;
    let cut = Cut { full: "The tide turns at noon, with zebras.".into(), by: Some(person("Ana")) };
    let aria = author("aria", Role::Companion);
    let message = Message { modality: Modality::Voice, cut: Some(cut.into()), ..message(aria, "The tide turns") };
    let accepted = Inbound::new(world.context.clone()).accept(&lobby(), said(message), None).await.unwrap();
    world.say_with("lobby", json!({ "from": "Ben", "text": "hello" })).await;
    (world, accepted.seq)
}

/// The first message of the history.
async fn shown(world: &World) -> Value {
    serde_json::to_value(&world.try_history("lobby").await.unwrap().messages[0]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_nobody_heard_is_shown_beside_what_was_heard() {
    let (world, _) = cut_off().await;

    let cut = json!({ "full": "The tide turns at noon, with zebras.", "by": "Ana" });
    let (shown, seen) = (shown(&world).await, world.recorded("lobby", "message").await);
    assert_eq!((&shown["text"], &shown["cut"]), (&json!("The tide turns"), &cut));
    assert_eq!((&seen[0]["cut"], &seen[1]["cut"]), (&cut, &Value::Null));
    assert!(world.export("lobby", ExportForm::Json).await.join("\n").contains("zebras"));
}

#[tokio::test(start_paused = true)]
async fn a_statement_forgets_who_cut_it_off() {
    let (world, _) = cut_off().await;

    world.forget("Ana", false).await.unwrap();
    world.pass(2_000.0).await;

    let shown = shown(&world).await;
    assert_eq!(shown["cut"], json!({ "full": "The tide turns at noon, with zebras." }));
    assert_eq!(left_of("Ana", &world).await, 0, "not in the index, nor in a later snapshot");
    assert!(left_of("zebras", &world).await > 0);
    let forgotten = world.recorded("lobby", "deleted").await;
    assert_eq!((&forgotten[0]["messages"], &forgotten[0]["unnamed"], forgotten.len()), (&json!([]), &json!([shown["seq"]]), 1));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_or_edited_statement_loses_what_nobody_heard() {
    let (world, seq) = cut_off().await;
    world.backend.messages.edit(&room("lobby"), seq, Edit { text: "The tide".into() }).await.unwrap();
    world.pass(2_000.0).await;
    assert_eq!((&shown(&world).await["text"], left_of("zebras", &world).await), (&json!("The tide"), 0));

    let (world, seq) = cut_off().await;
    world.backend.messages.delete(&room("lobby"), seq).await.unwrap();
    world.pass(2_000.0).await;
    assert_eq!([left_of("zebras", &world).await, left_of("Ana", &world).await], [0, 0]);
}
