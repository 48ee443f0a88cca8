//! Tests of cards and pictures, on cards that are made here.

mod exports;
pub mod generated;
mod lorebooks;
mod pictures;
mod postings;
mod previews;
mod salvages;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compress, Compression, FlushCompress};
use serde_json::{Value, json};

use super::png::put;
use super::{Card, Choices, Preview, SalvageKind, draft, preview, read};
use crate::settings::companion::{Companion, CompanionDefaults, CompanionFile, Interjection};

/// A chunk of a PNG.
pub type Chunk = ([u8; 4], Vec<u8>);

pub(super) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::with_capacity(bytes.len() + 1_024);
    let status = Compress::new(Compression::fast(), true).compress_vec(bytes, &mut compressed, FlushCompress::Finish);
    assert_eq!(status.expect("it compresses"), flate2::Status::StreamEnd);
    compressed
}

pub fn png_of(chunks: &[Chunk]) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in chunks {
        put(&mut png, kind, data);
    }
    png
}

/// The header of a PNG with 8 bits for each of red, green and blue.
pub(super) fn header(width: u32, height: u32) -> Chunk {
    (*b"IHDR", [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat())
}

/// A picture of two by two pixels, with further chunks before or after its pixels.
pub fn small_png(before: &[Chunk], after: &[Chunk]) -> Vec<u8> {
    let pixels = (*b"IDAT", zlib(&[0, 9, 9, 9, 8, 8, 8, 0, 7, 7, 7, 6, 6, 6]));
    png_of(&[&[header(2, 2)], before, &[pixels], after, &[(*b"IEND", Vec::new())]].concat())
}

pub fn text_chunk(keyword: &str, text: &[u8]) -> Chunk {
    (*b"tEXt", [keyword.as_bytes(), b"\0", text].concat())
}

pub(super) fn base64_of(card: &Value) -> Vec<u8> {
    STANDARD.encode(card.to_string()).into_bytes()
}

pub fn card_chunk(keyword: &str, card: &Value) -> Chunk {
    text_chunk(keyword, &base64_of(card))
}

/// A card of the third version with something in every field.
pub fn full() -> Value {
    json!({
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "data": {
            "name": "Nyx of the Long Night",
            "nickname": "Nyx",
            "description": "{{char}} watches the stars, and knows {{user}}.",
            "personality": "calm",
            "scenario": "It is night.",
            "first_mes": "*{{char}} nods at {{user}}.* {{user}} is late.",
            "mes_example": "<START>\n{{user}}: hi\n{{char}}: hello\n<start>\n<USER>: bye\n<BOT>: so soon?",
            "creator_notes": "Best with a patient model.",
            "system_prompt": "{{original}}\nWrite as {{char}}.",
            "post_history_instructions": "Stay {{char}}.",
            "alternate_greetings": ["Hey."],
            "group_only_greetings": ["Hello, all of you."],
            "tags": ["stars"],
            "creator": "somebody",
            "character_version": "1.1",
            "character_book": {
                "name": "lore",
                "extensions": {},
                "entries": [{ "keys": ["sun"], "content": "bright", "extensions": { "x": 1 }, "enabled": true, "insertion_order": 1, "position": 4 }],
            },
            "extensions": { "depth_prompt": { "depth": "", "prompt": "x" }, "talkativeness": "0.7" },
            "assets": [
                { "type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png" },
                { "type": "background", "uri": "https://example.org/a.png", "name": "main", "ext": "png" },
                { "type": "emotion", "uri": "data:image/png;base64,AAAA", "name": "sad", "ext": "png" },
            ],
            "creation_date": 1_700_000_000,
            "x_inside": { "a": [1, 2.5, null] },
        },
        "x_outside": "kept",
    })
}

/// The full card with another value at a path.
pub(super) fn full_with(path: &str, value: Value) -> Value {
    let mut card = full();
    *card.pointer_mut(path).expect("the path is there") = value;
    card
}

pub(super) fn read_json(card: &Value) -> Card {
    read(card.to_string().as_bytes()).expect("it is a card")
}

pub(super) fn preview_of(card: &Value) -> Preview {
    preview(&read_json(card), &Choices::default())
}

/// What was salvaged, with field and count.
pub(super) fn salvaged(card: &Card) -> Vec<(SalvageKind, &'static str, usize)> {
    card.salvages.list().into_iter().map(|salvage| (salvage.kind, salvage.field.unwrap_or_default(), salvage.count)).collect()
}

pub(super) fn companion(file: CompanionFile) -> Companion {
    let defaults = CompanionDefaults {
        chattiness: "calm".into(),
        interjection: Interjection::Average,
        text_lull_timeout: 10.0,
        voice_lull_timeout: 5.0,
        quiet_hours: crate::settings::companion::QuietHours::Never,
        repetition: true,
        persona: "You are you.".into(),
    };
    Companion::from_file(file, Some("nyx"), &defaults).expect("a draft has no problems")
}

pub(super) fn companion_of(card: &Card) -> Companion {
    companion(draft(card, &Choices::default()))
}
