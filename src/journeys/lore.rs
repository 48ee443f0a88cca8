//! Lorebooks: entries whose keys were just said are in a statement's prompt and on record (docs/design/memory.md K-20 to K-23).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::recalling::asked;
use super::world::{World, of_json};
use crate::backend::lore::forget_companion;
use crate::ports::backend::Refused;
use crate::ports::backend::lore_service::BookView;

const LOBBY: &str = "lobby";
const MILL: &str = "The mill burned down in 1911.";

async fn world() -> World {
    let world = World::with_lobby().await;
    world.main.answers([Ok("So they say.")]);
    world
}

/// A book with an entry about the mill, and a constant one.
async fn shelve(world: &World, owners: Value) -> BookView {
    let mut book = json!({
        "name": "Valley",
        "entries": [
            { "name": "Mill", "keys": ["mill", "/(?=x)y/"], "content": MILL },
            { "name": "Place", "constant": true, "insertion_order": 1, "content": "{{char}} lives in the valley.{{// note}}" },
        ],
    });
    book.as_object_mut().unwrap().extend(owners.as_object().unwrap().clone());
    world.backend.lore.create_book(of_json(book)).await.unwrap()
}

async fn lore_on_record(world: &World) -> Vec<Arc<str>> {
    world.try_history(LOBBY).await.unwrap().messages.pop().unwrap().lore
}

#[tokio::test(start_paused = true)]
async fn what_a_key_calls_is_in_the_prompt_on_record_and_told_also_after_a_restart() {
    let world = world().await;
    let book = shelve(&world, json!({ "rooms": [LOBBY] })).await;
    assert_eq!((book.unusable.len(), &*book.unusable[0].entry), (1, "Mill"));

    let world = world.crash().await;
    world.context.lore.load(BTreeMap::new(), &*world.context.store).await.unwrap();
    world.main.answers([Ok("So they say.")]);
    let prompt = asked(&world, "Ari, is there a MILL here?").await;

    let lore = &prompt[prompt.find("<lore>").expect(&prompt)..];
    assert!(lore.find("Aria lives in the valley.\n\n") < lore.find(MILL), "{lore}");
    assert_eq!(lore_on_record(&world).await, ["Valley: Mill".into(), "Valley: Place".into()] as [Arc<str>; 2]);
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    assert!(why.story.iter().any(|line| line.text.contains("Valley: Mill and Valley: Place")), "{:?}", why.story);
    asked(&world, "Ari, what about tomorrow?").await;
    asked(&world, "Ari, and the day after?").await;
    assert!(!asked(&world, "Ari, and the week after that?").await.contains(MILL), "the mill was said too long ago");
    assert_eq!(lore_on_record(&world).await, ["Valley: Place".into()] as [Arc<str>; 1]);
}

#[tokio::test(start_paused = true)]
async fn a_book_counts_for_its_companions_and_rooms_and_not_after_they_are_gone() {
    let world = world().await;
    let ofaria = shelve(&world, json!({ "companions": ["aria"] })).await;
    assert!(asked(&world, "Ari, where is the mill?").await.contains(MILL));
    forget_companion(&world.context, &"aria".into()).await;
    assert!(!asked(&world, "Ari, and now the mill?").await.contains(MILL));
    assert!(world.backend.lore.book(&ofaria.id).await.unwrap().book.companions.is_empty());

    let of_room = shelve(&world, json!({ "rooms": [LOBBY] })).await;
    assert!(asked(&world, "Ari, the mill?").await.contains(MILL));
    world.delete_room(LOBBY).await;
    world.open(LOBBY, &["aria"]).await;
    assert!(!asked(&world, "Ari, is there a mill?").await.contains(MILL), "another room of the same id");
    assert!(world.backend.lore.book(&of_room.id).await.unwrap().book.rooms.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_needs_the_newest_revision_and_owners_that_exist() {
    let world = world().await;
    let book = shelve(&world, json!({ "rooms": [LOBBY] })).await;
    let lore = &world.backend.lore;
    let change = |revision: &str, rooms: Value, content: &str| {
        let entries = json!([{ "keys": ["mill"], "content": content }]);
        of_json(json!({ "revision": revision, "book": { "name": "Valley", "entries": entries, "rooms": rooms } }))
    };

    let changed = lore.change_book(&book.id, change(&book.revision.0, json!([LOBBY]), "It stands.")).await.unwrap();

    assert!(asked(&world, "Ari, the mill?").await.contains("It stands."));
    let refused = [
        lore.change_book(&book.id, change(&book.revision.0, json!([]), "x")).await,
        lore.change_book(&book.id, change(&changed.revision.0, json!(["nowhere"]), "x")).await,
        lore.change_book(&book.id, change(&changed.revision.0, json!([]), &"x".repeat(20_000))).await,
        lore.change_book("none", change(&changed.revision.0, json!([]), "x")).await,
    ];
    assert!(
        matches!(
            refused,
            [Err(Refused::Conflict(_)), Err(Refused::Invalid { .. }), Err(Refused::Invalid { .. }), Err(Refused::NotFound(_))]
        ),
        "{refused:?}"
    );
    lore.delete_book(&book.id, changed.revision).await.unwrap();
    assert!(lore.books().await.unwrap().books.is_empty());
    assert!(!asked(&world, "Ari, the old mill?").await.contains("It stands."));
}
