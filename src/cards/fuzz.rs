//! Fuzz targets for cards and pictures. Any input is either refused with a message of one line, or gives a result of limited
//! size. The result for a card also survives an export.

use jiff::tz::TimeZone;
use serde_json::json;

use super::tests::{card_chunk, companion, full, small_png, text_chunk, zlib};
use super::{Card, Choices, MOST_MESSAGES, draft, picture, posted, preview, read, read_chat, small, write_json};
use crate::domain::text;
use crate::fuzzing::{is_bounded, is_plain_line};
use crate::settings::companion::MAX_PERSONA_BYTES;

pub fn cards() -> Vec<Vec<u8>> {
    let first = json!({ "name": "Ann", "description": "{{char}} {{random:a,b}} <START>", "first_mes": "<!-- a -->{{user}}", "talkativeness": "0.1" });
    let second = json!({ "spec": "chara_card_v2", "data": first, "character_book": null, "alternate_greetings": "x" });
    let compressed = zlib(second.to_string().as_bytes());
    vec![
        full().to_string().into_bytes(),
        first.to_string().into_bytes(),
        second.to_string().into_bytes(),
        small_png(&[card_chunk("ccv3", &full())], &[text_chunk("chara", b"!")]),
        small_png(&[], &[text_chunk("chara", second.to_string().as_bytes())]),
        small_png(&[(*b"zTXt", [b"chara\0\0", &compressed[..]].concat())], &[]),
        small_png(&[(*b"iTXt", [b"ccv3\0\x01\0\0\0", &compressed[..]].concat())], &[]),
    ]
}

pub fn card(bytes: &[u8]) {
    let card = match read(bytes) {
        Ok(card) => card,
        Err(error) => {
            assert!(is_bounded(&error.to_string(), 400) && is_plain_line(&error.to_string()), "{error}");
            return;
        }
    };
    for is_chosen in [false, true] {
        let choices = Choices { name: None, system_prompt: is_chosen, post_history_instructions: is_chosen };
        check_preview(&card, &choices);
        survives(&card, &choices);
    }
}

fn check_preview(card: &Card, choices: &Choices) {
    let preview = preview(card, choices);
    let file = draft(card, choices);
    assert_eq!(file.persona.as_deref(), Some(&*preview.persona), "the preview shows another persona");
    assert!(preview.persona.len() <= MAX_PERSONA_BYTES);
    assert!(preview.parts.iter().all(|part| part.used <= part.bytes));
    for shown in preview.greetings.iter().map(|greeting| &greeting.text).chain([&preview.persona]) {
        assert_eq!(text::first_hidden(shown), None, "a person cannot see all of {shown:?}");
    }
    assert!(preview.unused.iter().flat_map(|unused| &unused.names).all(|name| is_plain_line(name) && is_bounded(name, 41)));
}

/// A draft is a valid companion, and is the same after an export and an import.
fn survives(card: &Card, choices: &Choices) {
    let made = companion(draft(card, choices));
    let written = write_json(Some(&card.original), &made);
    let again = read(written.to_string().as_bytes()).expect("our own card");
    assert_eq!(companion(draft(&again, choices)), made, "an export changes a companion");
    assert_eq!(write_json(Some(&written), &made), written, "a second export changes the card");
}

pub fn chats() -> Vec<Vec<u8>> {
    let first = "{\"user_name\":\"Ana\",\"character_name\":\"Mira\"}\n";
    let dated =
        "{\"name\":\"Mira\",\"mes\":\"{{char}}\",\"send_date\":\"October 13, 2023 8:23pm\",\"swipes\":[\"a\"],\"swipe_id\":0}\n";
    let narrated = "{\"is_user\":true,\"mes\":\"x\",\"extra\":{\"type\":\"narrator\"},\"send_date\":1697228640000}";
    vec![[first, dated, narrated].concat().into_bytes()]
}

pub fn chat(bytes: &[u8]) {
    match read_chat(bytes, None, 100, &TimeZone::UTC) {
        Ok(chat) => {
            assert!((1..=MOST_MESSAGES).contains(&chat.messages.len()));
            for message in &chat.messages {
                assert!(
                    is_bounded(&message.text, 101) && is_bounded(&message.from.name, 64) && is_plain_line(&message.from.name)
                );
            }
        }
        Err(error) => assert!(is_bounded(&error.to_string(), 200) && is_plain_line(&error.to_string()), "{error}"),
    }
}

pub fn pictures() -> Vec<Vec<u8>> {
    let files: [&[u8]; 4] = [
        include_bytes!("tests/pictures/baseline.jpg"),
        include_bytes!("tests/pictures/progressive.jpg"),
        include_bytes!("tests/pictures/lossy.webp"),
        include_bytes!("tests/pictures/lossless.webp"),
    ];
    files.map(<[u8]>::to_vec).into_iter().chain([small_png(&[], &[]), small_png(&[card_chunk("chara", &full())], &[])]).collect()
}

pub fn check_picture(bytes: &[u8]) {
    if let Ok(taken) = posted::posted(bytes.to_vec()) {
        assert_eq!(posted::posted(taken.bytes.clone()).as_ref(), Ok(&taken), "what is taken is taken again unchanged");
        let _ = posted::still(taken.kind, taken.bytes);
    }
    match picture::check(bytes) {
        Ok(checked) => {
            assert_eq!(Some(checked.kind), picture::Kind::of(bytes));
            assert!((1..=picture::MAX_SIDE).contains(&checked.width) && (1..=picture::MAX_SIDE).contains(&checked.height));
            if let Some(small) = small::square(bytes, 2) {
                let square = picture::Picture { kind: picture::Kind::WebP, width: 2, height: 2 };
                assert_eq!(picture::check(&small), Ok(square));
            }
        }
        Err(error) => assert!(is_bounded(&error.to_string(), 200) && is_plain_line(&error.to_string()), "{error}"),
    }
}
