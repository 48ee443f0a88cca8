//! Character cards are previewed, become companions, and are exported again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use tertulia_cards::tests::generated::generated;
use tertulia_cards::tests::{card_chunk, full, small_png};

impl World {
    async fn import(&self, card: impl Into<Vec<u8>>) -> (u16, Value) {
        let card = card.into();
        let (status, previewed) = self.post_raw("/api/cards", card.clone()).await;
        assert_eq!(status, 200, "{previewed}");
        self.post("/api/companions", json!({ "companion": previewed["companion"], "card": STANDARD.encode(card) })).await
    }

    async fn export(&self, path: &str) -> (u16, String, Vec<u8>) {
        let response = self.request(Method::GET, path).send().await.unwrap();
        let status = response.status().as_u16();
        let name = response.headers().get("content-disposition").map(|name| name.to_str().unwrap().to_owned());
        (status, name.unwrap_or_default(), response.bytes().await.unwrap().to_vec())
    }
}

#[tokio::test]
async fn cards_of_all_forms_and_faults_lose_nothing_from_preview_to_export() {
    let world = World::new().await;
    // The tests of cards read all of them.
    for card in generated().take(50) {
        let previewed = world.post_raw("/api/cards", card.bytes.clone()).await.1;
        let made = world.import(card.bytes.clone()).await.1;
        let path = format!("/api/companions/{}/card", made["id"].as_str().unwrap());
        let exported = world.export(&path).await.2;
        let again = world.post_raw("/api/cards", exported.clone()).await.1;

        assert_eq!(card.lost_in(&serde_json::from_slice(&exported).unwrap()), [""; 0], "{}", card.described);
        assert_eq!(again["preview"]["greetings"], previewed["preview"]["greetings"], "{}", card.described);
        for (field, value) in previewed["companion"].as_object().unwrap() {
            assert_eq!(&again["companion"][field], value, "{}: {field}", card.described);
        }
        assert_eq!(again["preview"]["salvaged"], json!([]), "{}", card.described);
    }
}

#[tokio::test]
async fn a_preview_says_what_importing_would_write_and_keeps_nothing() {
    let world = World::new().await;
    let card = small_png(&[card_chunk("ccv3", &full())], &[]);
    let png = |path: &'static str| {
        world.answer(Method::POST, path, |request| request.header("content-type", "image/png").body(card.clone()))
    };

    let plain = png("/api/cards").await.1;
    let chosen = png("/api/cards?name=Vera&system_prompt=true&post_history_instructions=true").await.1;

    assert_eq!((&plain["companion"]["name"], &plain["has_picture"]), (&json!("Nyx"), &json!(true)));
    assert_eq!(plain["companion"]["greetings"].as_array().unwrap().len(), 3);
    assert!(!plain["companion"]["persona"].as_str().unwrap().contains("Stay Nyx"));
    assert_eq!(chosen["companion"]["name"], "Vera");
    assert!(chosen["companion"]["persona"].as_str().unwrap().ends_with("Stay Vera."));
    assert_eq!(chosen["preview"]["persona"], chosen["companion"]["persona"]);
    assert_eq!(world.get("/api/companions/nyx").await.0, 404);
    let unknown = [png("/api/cards?nick=x").await.0, png("/api/cards?system_prompt=perhaps").await.0];
    assert_eq!(unknown, [400, 400]);
}

#[tokio::test]
async fn a_file_that_is_no_card_is_refused_with_the_reason() {
    let world = World::new().await;
    let whole = small_png(&[card_chunk("ccv3", &full())], &[]);
    for (file, status, code) in [
        (Vec::new(), 422, "empty"),
        (small_png(&[], &[]), 422, "no_character"),
        (whole[..100].to_vec(), 422, "cut_off"),
        (b"<html><body>Log in to download</body></html>".to_vec(), 422, "other"),
        (b"\xff\xd8\xff\xe0 a jpeg".to_vec(), 422, "other"),
        (b"PK\x03\x04 a charx".to_vec(), 422, "other"),
        (br#"{"entries": {}}"#.to_vec(), 422, "other"),
        (br#"{"name": "Ann""#.to_vec(), 422, "not_json"),
        ((r#"{"name":"#.to_owned() + &"[".repeat(200_000)).into_bytes(), 422, "not_json"),
        (vec![b' '; (4 << 20) + 1], 413, "text_too_long"),
    ] {
        let (refused, problem) = world.post_raw("/api/cards", file).await;
        assert_eq!((refused, problem["why"]["code"].as_str()), (status, Some(code)), "{problem}");
    }
    let (status, problem) = world.post_raw("/api/cards", vec![0; (8 << 20) + 1]).await;
    assert_eq!((status, &problem["why"]), (413, &json!({ "code": "too_large", "bytes": (8 << 20) + 1, "most": 8 << 20 })));
    let form = world.request(Method::POST, "/api/cards").header("content-type", "multipart/form-data; boundary=x").body("--x");
    assert_eq!(answer(form.send().await.unwrap()).await.0, 415);
}

#[tokio::test]
async fn an_edit_is_in_the_export_and_a_large_book_that_only_the_card_has_stays() {
    let world = World::new().await;
    let entry = json!({ "keys": ["sun"], "content": "bright ".repeat(400_000) });
    let mut card = full();
    card["data"]["character_book"]["entries"] = json!([entry]);
    let mut made = world.import(card.to_string()).await.1;
    made["companion"]["persona"] = json!("You are new.");
    let greetings = made["companion"]["greetings"].as_array_mut().unwrap();
    greetings.insert(0, json!("New."));
    let change = json!({ "revision": made["revision"], "companion": made["companion"] });

    let changed = world.send(Method::PUT, "/api/companions/nyx", change).await.0;
    let exported = world.get("/api/companions/nyx/card").await.1;

    assert_eq!(
        (changed, &exported["data"]["description"], &exported["first_mes"]),
        (200, &json!("You are new."), &json!("New."))
    );
    assert_eq!(exported["data"]["alternate_greetings"], json!([card["data"]["first_mes"], "Hey."]));
    assert!(exported["data"]["character_book"] == card["data"]["character_book"], "the book is another");
    assert_eq!(exported["data"]["x_inside"], card["data"]["x_inside"]);
}

#[tokio::test]
async fn a_companion_with_a_name_in_any_script_can_be_downloaded() {
    let world = World::new().await;
    let picture = STANDARD.encode(small_png(&[], &[]));
    for name in ["夜", "Großmutter Hilde", "О́льга", "👩\u{200d}🚀 Ida", "\"a\"; b"] {
        let made = world.post("/api/companions", json!({ "companion": { "name": name }, "picture": picture })).await;
        for form in ["json", "png"] {
            let (status, name, _) =
                world.export(&format!("/api/companions/{}/card?as={form}", made.1["id"].as_str().unwrap())).await;

            assert_eq!((made.0, status), (201, 200), "{name}");
            assert!(name.is_ascii() && name.ends_with(&format!(".{form}")), "{name}");
        }
    }
}

#[tokio::test]
async fn a_png_has_the_companions_picture_and_needs_one() {
    let world = World::new().await;
    let jpeg = STANDARD.encode(include_bytes!("../../../cards/tests/pictures/baseline.jpg"));
    world.import(small_png(&[card_chunk("chara", &full())], &[])).await;
    world.post("/api/companions", json!({ "companion": { "name": "Bare" } })).await;
    world.post("/api/companions", json!({ "companion": { "name": "Jay" }, "picture": jpeg })).await;
    let picture = STANDARD.encode(small_png(&[], &[]));
    world.post("/api/companions", json!({ "companion": { "name": "Pia" }, "picture": picture })).await;

    let (status, name, png) = world.export("/api/companions/pia/card?as=png").await;

    assert_eq!((status, name.as_str()), (200, "attachment; filename=\"pia.png\"; filename*=UTF-8''Pia.png"));
    assert_eq!(world.post_raw("/api/cards", png).await.1["companion"]["name"], "Pia");
    for (path, refused) in [("bare", 409), ("jay", 409), ("nobody", 404)] {
        assert_eq!(world.get(&format!("/api/companions/{path}/card?as=png")).await.0, refused, "{path}");
    }
    assert_eq!(world.get("/api/companions/bare/card?as=svg").await.0, 400);
    assert_eq!(world.get("/api/companions/bare/card").await.1["data"]["name"], "Bare");
}
