//! What a card is read from, what is mended on the way, and what is refused.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;
use crate::{Form, MAX_CARD_BYTES, MAX_JSON_BYTES, NotACard, NotRead, picture};

fn v1() -> Value {
    json!({ "name": "Ann", "description": "keeps a lighthouse", "personality": "", "scenario": "", "first_mes": "Ahoy.", "mes_example": "" })
}

#[test]
fn every_version_is_read() {
    let second = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": v1() });

    let cards = [v1(), second, full()].map(|card| read_json(&card));

    assert_eq!(cards.clone().map(|card| card.form), [Form::V1, Form::V2, Form::V3]);
    assert_eq!(cards.clone().map(|card| card.shown_name()), ["Ann", "Ann", "Nyx"]);
    assert!(cards.iter().all(|card| salvaged(card).is_empty()));
}

#[test]
fn a_card_is_found_in_every_kind_of_text_wherever_it_stands() {
    let text = base64_of(&full());
    let compressed = zlib(&text);
    let chunks = [
        text_chunk("chara", &text),
        text_chunk("Chara", &text),
        (*b"zTXt", [b"ccv3\0\0", &compressed[..]].concat()),
        (*b"iTXt", [b"chara\0\0\0en\0title\0", &text[..]].concat()),
        (*b"iTXt", [b"ccv3\0\x01\0\0\0", &compressed[..]].concat()),
    ];

    for chunk in chunks {
        for png in [small_png(std::slice::from_ref(&chunk), &[]), small_png(&[], std::slice::from_ref(&chunk))] {
            let card = read(&png).expect("it is found");

            assert_eq!((card.shown_name().as_str(), salvaged(&card)), ("Nyx", Vec::new()));
            assert_eq!(card.picture.as_deref(), Some(&*small_png(&[], &[])), "the picture has no texts");
        }
    }
}

#[test]
fn the_third_version_is_preferred_and_the_second_taken_if_it_cannot_be_read() {
    let [old, new] = ["old", "new"].map(|name| full_with("/data/nickname", json!(name)));
    let both = small_png(&[card_chunk("chara", &old), card_chunk("ccv3", &new)], &[]);
    let broken = small_png(&[card_chunk("chara", &old), text_chunk("ccv3", b"!!")], &[]);
    let stale = small_png(&[text_chunk("chara", b"!!"), card_chunk("chara", &new)], &[]);

    let [both, broken, stale] = [both, broken, stale].map(|png| read(&png).expect("one can be read"));

    assert_eq!((both.nickname.as_str(), salvaged(&both)), ("new", Vec::new()));
    assert_eq!((broken.nickname.as_str(), salvaged(&broken)), ("old", vec![(SalvageKind::UnreadableChunk, "", 1)]));
    assert_eq!((stale.nickname.as_str(), salvaged(&stale)), ("new", vec![(SalvageKind::UnreadableChunk, "", 1)]));
}

#[test]
fn text_around_the_json_is_mended() {
    let text = full_with("/data/personality", json!("???>>>~~~ünï")).to_string();
    let lines = STANDARD.encode(&text).into_bytes().chunks(76).collect::<Vec<_>>().join(&b"\r\n"[..]);
    let marked = ["\u{feff}", &text].concat();
    // Latin-1, as PIL writes what it is given as a text.
    let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(c).expect("Latin-1")).collect();
    let cases = [
        (lines, SalvageKind::LooseBase64),
        (URL_SAFE_NO_PAD.encode(&text).into_bytes(), SalvageKind::LooseBase64),
        ([STANDARD.encode(&text).trim_end_matches('=').as_bytes(), b"\0"].concat(), SalvageKind::LooseBase64),
        (STANDARD.encode(&marked).into_bytes(), SalvageKind::ByteOrderMark),
        (STANDARD.encode(&latin1).into_bytes(), SalvageKind::NotUtf8),
        (text.clone().into_bytes(), SalvageKind::PlainJson),
    ];

    for (written, kind) in cases {
        let card = read(&small_png(&[text_chunk("chara", &written)], &[])).expect("it is mended");

        assert_eq!((card.personality.as_str(), salvaged(&card)), ("???>>>~~~ünï", vec![(kind, "", 1)]));
    }
    let alone = read(marked.as_bytes()).expect("it is mended");
    assert_eq!(salvaged(&alone), [(SalvageKind::ByteOrderMark, "", 1)]);
}

#[test]
fn a_damaged_png_gives_its_card_as_long_as_that_is_whole() {
    let whole = small_png(&[card_chunk("chara", &full())], &[]);
    let after_text = whole.len() - 12 - 20;
    let text_begins = 8 + 25 + 8;
    let mut wrong = whole.clone();
    wrong[text_begins + 6 + base64_of(&full()).len()] ^= 1;

    let cut = read(&whole[..after_text]).expect("the text is whole");
    let wrong = read(&wrong).expect("only the checksum is wrong");

    assert_eq!(salvaged(&cut), [(SalvageKind::CutOff, "", 1)]);
    assert_eq!(salvaged(&wrong), [(SalvageKind::WrongChecksum, "", 1)]);
    for end in [20, text_begins + 4, text_begins + 40, text_begins + 1_000] {
        assert_eq!(read(&whole[..end]), Err(NotACard::CutOff), "{end}");
    }
}

#[test]
fn fields_of_other_types_are_mended_and_counted() {
    // A book that is null, and greetings that are a number in a text, were written by large sites.
    let cases = [
        ("/data/character_book", json!(null), vec![(SalvageKind::Null, "character_book", 1)]),
        ("/data/alternate_greetings", json!("1687194031049"), vec![(SalvageKind::TextForList, "alternate_greetings", 1)]),
        (
            "/data/alternate_greetings",
            json!(["Hey.", "", " ", null]),
            vec![(SalvageKind::Null, "alternate_greetings", 1), (SalvageKind::EmptyEntry, "alternate_greetings", 3)],
        ),
        ("/data/tags", json!(null), vec![(SalvageKind::Null, "tags", 1)]),
        ("/data/scenario", json!(null), vec![(SalvageKind::Null, "scenario", 1)]),
        ("/data/character_version", json!(1.5), vec![(SalvageKind::NumberForText, "character_version", 1)]),
        ("/data/nickname", json!(7), vec![(SalvageKind::NumberForText, "nickname", 1)]),
        ("/data/personality", json!(["calm", "kind"]), vec![(SalvageKind::ListForText, "personality", 1)]),
        ("/data/personality", json!({ "mood": "calm" }), vec![(SalvageKind::ListForText, "personality", 1)]),
        ("/data/nickname", json!("N".repeat(90)), vec![(SalvageKind::ChangedName, "name", 1)]),
        ("/data/nickname", json!("N\u{202e}yx"), vec![(SalvageKind::ChangedName, "name", 1)]),
    ];

    for (path, value, expected) in cases {
        assert_eq!(salvaged(&read_json(&full_with(path, value))), expected, "{path}");
    }
    let card = read_json(&full_with("/data/personality", json!(["calm", "kind"])));
    assert_eq!(card.personality, "calm\nkind");
}

#[test]
fn what_only_stands_beside_data_is_found() {
    let mut card = full_with("/data/description", json!(""));
    let book = card["data"].as_object_mut().unwrap().remove("character_book").unwrap();
    card["character_book"] = book;
    card["description"] = json!("beside");
    card["personality"] = json!("a copy that another program left");

    let card = read_json(&card);

    let entries = card.book.as_ref().map(|read| read.book.entries.len());
    assert_eq!((card.description.as_str(), card.personality.as_str(), entries), ("beside", "calm", Some(1)));
    assert_eq!(salvaged(&card), [(SalvageKind::BesideData, "character_book", 1), (SalvageKind::BesideData, "description", 1)]);
}

#[test]
fn the_keys_of_pygmalion_are_understood() {
    let card = read_json(&json!({ "char_name": "Ann", "char_persona": "keeps a lighthouse", "char_greeting": "Ahoy." }));

    assert_eq!((card.name.as_str(), card.description.as_str(), card.first_mes.as_str()), ("Ann", "keeps a lighthouse", "Ahoy."));
    assert_eq!(salvaged(&card).len(), 3);
}

#[test]
fn json_of_other_programs_is_understood() {
    let cases = [
        json!({ "name": "Ann", "context": "keeps a lighthouse", "greeting": "Ahoy." }),
        json!({
            "kind": "character", "name": "Ann", "description": "made in May", "greeting": "Ahoy.",
            "persona": { "kind": "text", "attributes": { "text": ["keeps a lighthouse"] } },
        }),
        json!({ "node": { "definition": { "name": "Ann", "description": "keeps a lighthouse", "first_mes": "Ahoy." } } }),
        json!({ "character": { "name": "Ann", "description": "keeps a lighthouse", "greeting": "Ahoy." } }),
    ];
    let attributes =
        json!({ "name": "Ann", "persona": { "kind": "sbf", "attributes": { "likes": ["rain", "rye"], "work": ["baker"] } } });

    for case in cases {
        let card = read_json(&case);

        assert_eq!((&*card.name, &*card.description, &*card.first_mes), ("Ann", "keeps a lighthouse", "Ahoy."));
    }
    assert_eq!(read_json(&attributes).description, "likes: rain, rye\nwork: baker");
}

#[test]
fn json_with_what_it_does_not_allow_is_read() {
    let card = full();
    let with = |from: &str, to: &str| card.to_string().replacen(from, to, 1).into_bytes();
    let cases = [
        with("1700000000", "NaN"),
        with("1700000000", "-Infinity"),
        with("is late.", "is late \\ud83d."),
        with("is late.", "is late \\ud83d\\u0041 \\\\ud83d NaN, }"),
        with("\"kept\"", "\"kept\" , \n"),
        Value::String(card.to_string()).to_string().into_bytes(),
    ];
    let marked: Vec<u8> = std::iter::once('\u{feff}')
        .chain(card.to_string().chars())
        .collect::<String>()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let uri = [b"data:application/json;base64,", &base64_of(&card)[..]].concat();

    for written in cases {
        let card = read(&written).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&written)));

        assert_eq!((&*card.nickname, salvaged(&card)), ("Nyx", vec![(SalvageKind::LooseJson, "", 1)]));
    }
    assert_eq!(salvaged(&read(&marked).expect("it is UTF-16")), [(SalvageKind::NotUtf8, "", 1)]);
    assert_eq!(salvaged(&read(&small_png(&[text_chunk("chara", &uri)], &[])).expect("it is base64")), []);
}

#[test]
fn a_card_without_a_name_leaves_it_to_a_person() {
    let mut card = full_with("/data/name", json!("\u{200b} "));
    card["data"]["nickname"] = json!("");

    let card = read_json(&card);
    let [none, chosen] = [None, Some("Vera".to_owned())].map(|name| draft(&card, &Choices { name, ..Choices::default() }));

    assert_eq!(salvaged(&card), [(SalvageKind::NoName, "name", 1)]);
    assert_eq!((none.name, chosen.name.as_deref()), (None, Some("Vera")));
    assert!(none.persona.unwrap().starts_with("the character watches"));
    assert!(chosen.persona.unwrap().starts_with("Vera watches"));
}

#[test]
fn what_is_no_card_is_told_by_what_it_is() {
    let webp = b"RIFF\x10\0\0\0WEBPVP8 ....";
    let cases: [(&[u8], NotACard, &str); 10] = [
        (b" \n", NotACard::Empty, "export the character again"),
        (&small_png(&[], &[]), NotACard::NoCharacter, "export it as a character card"),
        (b"PK\x03\x04card.json", NotACard::Other { what: NotRead::Archive }, "as PNG or JSON"),
        (webp, NotACard::Other { what: NotRead::WebP }, "is no PNG"),
        (b"\xff\xd8\xff\xe0..", NotACard::Other { what: NotRead::Jpeg }, "is no PNG"),
        (b"GIF89a..", NotACard::Other { what: NotRead::Gif }, "is no PNG"),
        (b"[]", NotACard::Other { what: NotRead::OtherJson }, "has no character"),
        (br#"{"entries":{}}"#, NotACard::Other { what: NotRead::Lorebook }, "export the character itself"),
        (br#"{"data":{"name":null},"temperature":1}"#, NotACard::Other { what: NotRead::OtherJson }, "has no character"),
        (b"<html>", NotACard::Other { what: NotRead::Other }, "neither a PNG nor JSON"),
    ];

    for (bytes, expected, way_out) in cases {
        let error = read(bytes).expect_err("it is no card");

        assert_eq!(error, expected);
        assert!(error.to_string().contains(way_out), "{error}");
    }
    let broken = read(b"{\"name\": \"A\" 1}").expect_err("it is not JSON");
    assert_eq!(
        broken.to_string(),
        "this file is not JSON (expected `,` or `}` at line 1 column 14): export the character again as PNG or JSON"
    );
    let broken = read(&small_png(&[text_chunk("chara", b"e30")], &[])).expect_err("an empty object");
    assert_eq!(broken, NotACard::Other { what: NotRead::OtherJson });
}

#[test]
fn what_would_fill_memory_or_time_is_refused() {
    let bomb = zlib(&vec![b'A'; 64 << 20]);
    let bombs = vec![(*b"zTXt", [b"chara\0\0", &bomb[..]].concat()); 8];
    let deep = ["{\"name\":\"A\",\"x\":", &"[".repeat(100_000), &"]".repeat(100_000), "}"].concat();
    let long = json!({ "name": "A", "description": "a".repeat(MAX_JSON_BYTES) }).to_string();
    let crowd: Vec<Chunk> = vec![(*b"tEXt", b"chara\0!".to_vec()); 50_000];

    assert_eq!(read(&small_png(&bombs, &[])), Err(NotACard::TextTooLong { most: MAX_JSON_BYTES }));
    let error = read(deep.as_bytes()).expect_err("it is too deep").to_string();
    assert!(error.contains("recursion limit exceeded"), "{error}");
    assert_eq!(read(long.as_bytes()), Err(NotACard::TextTooLong { most: MAX_JSON_BYTES }));
    assert_eq!(
        read(&small_png(&[text_chunk("chara", &STANDARD.encode(&long).into_bytes())], &[])),
        Err(NotACard::TextTooLong { most: MAX_JSON_BYTES })
    );
    assert_eq!(
        read(&vec![b' '; MAX_CARD_BYTES + 1]),
        Err(NotACard::TooLarge { bytes: MAX_CARD_BYTES + 1, most: MAX_CARD_BYTES })
    );
    assert!(matches!(read(&small_png(&crowd, &[])), Err(NotACard::Unreadable { .. })));
}

#[test]
fn the_picture_of_a_card_may_be_broken_without_harm_to_its_character() {
    let png = png_of(&[header(2, 2), card_chunk("chara", &full()), (*b"IDAT", b"no zlib".to_vec()), (*b"IEND", Vec::new())]);

    let card = read(&png).expect("the character is whole");

    assert_eq!(picture::check(card.picture.as_deref().unwrap()), Err(picture::NotAPicture::Damaged { kind: picture::Kind::Png }));
}
