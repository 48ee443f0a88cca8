//! A hundred cards of all forms and faults, made from a seed: each is read, told in a preview, exported, and read again without loss.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, json};

use super::exports::lost;
use super::*;
use crate::{write_json, write_png};

/// Where a card is.
#[derive(Clone, Copy, Debug)]
enum Container {
    Json,
    Before,
    After,
    Compressed,
    International,
    Twice,
}

const CONTAINERS: [Container; 6] =
    [Container::Json, Container::Before, Container::After, Container::Compressed, Container::International, Container::Twice];

/// What is wrong with a card.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    NullBook,
    GreetingsAsText,
    EmptyGreeting,
    NumberAsText,
    ListAsText,
    NullText,
    Absent,
    BesideData,
    ByteOrderMark,
    LineBreaks,
    WrongChecksum,
    CutOff,
}

const FAULTS: [Fault; 12] = [
    Fault::NullBook,
    Fault::GreetingsAsText,
    Fault::EmptyGreeting,
    Fault::NumberAsText,
    Fault::ListAsText,
    Fault::NullText,
    Fault::Absent,
    Fault::BesideData,
    Fault::ByteOrderMark,
    Fault::LineBreaks,
    Fault::WrongChecksum,
    Fault::CutOff,
];

/// A generated card.
pub struct Generated {
    pub described: String,
    written: Value,
    /// The paths that cannot be the same afterwards.
    broken: Vec<String>,
    faults: Vec<Fault>,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Generated {
    /// The paths of values that another card lacks, and should not.
    pub fn lost_in(&self, other: &Value) -> Vec<String> {
        let mut paths = Vec::new();
        lost(&self.written, Some(other), "", &mut paths);
        paths.retain(|path| path != "/spec" && path != "/spec_version" && !self.broken.contains(path));
        paths
    }
}

pub fn generated() -> impl Iterator<Item = Generated> {
    let mut rng = StdRng::seed_from_u64(56);
    (0..100).map(move |number| {
        let form = number % 3;
        let container = CONTAINERS[number % CONTAINERS.len()];
        let faults: Vec<Fault> = (0..rng.random_range(0..4)).map(|_| *FAULTS.choose(&mut rng).expect("faults")).collect();
        let described = format!("card {number}, version {}, {container:?}, {faults:?}", form + 1);
        let mut broken = Vec::new();
        let made = card(form, &mut rng);
        let written = faults.iter().fold(made, |card, fault| with_fault(card, *fault, &mut broken));
        let bytes = contained(&written, container, &faults);
        Generated { described, written, broken, faults, bytes }
    })
}

#[test]
fn a_hundred_cards_of_all_forms_and_faults_lose_nothing() {
    let mut kinds = std::collections::BTreeSet::new();
    for generated in generated() {
        let Generated { described, faults, bytes, .. } = &generated;

        let read = read(bytes).unwrap_or_else(|error| panic!("{described}: {error}"));
        kinds.extend(salvaged(&read).into_iter().map(|(kind, ..)| kind));
        let companion = companion_of(&read);
        let preview = preview(&read, &Choices::default());
        assert_eq!((preview.name.as_str(), preview.persona.as_str()), (&*companion.name, &*companion.persona), "{described}");
        assert!(!companion.persona.contains("notes for people"), "{described}");
        let greetings = preview.greetings.iter().map(|greeting| greeting.text.as_str());
        assert!(greetings.eq(companion.greetings.iter().map(|greeting| &**greeting)), "{described}");

        let exported = write_json(Some(&read.original), &companion);
        assert_eq!(generated.lost_in(&exported), [""; 0], "{described}");

        let picture = read.picture.clone().filter(|_| !faults.contains(&Fault::CutOff)).unwrap_or_else(|| small_png(&[], &[]));
        let again = super::read(&write_png(&picture, Some(&read.original), &companion).expect("a PNG")).expect("our own card");
        assert_eq!((salvaged(&again), &again.original), (Vec::new(), &exported), "{described}");
        assert_eq!(companion_of(&again), Companion { ..companion }, "{described}");
        assert_eq!(
            Card { traits: read.traits.clone(), ..again.clone() },
            Card { form: again.form, original: again.original, picture: again.picture, salvages: again.salvages, ..read },
            "{described}"
        );
    }
    assert!(kinds.len() >= 9, "too few faults were met: {kinds:?}");
}

fn words(rng: &mut StdRng) -> String {
    const WORDS: [&str; 12] = [
        "{{char}}",
        "{{user}}",
        "ünïcödé",
        "星",
        "🌟",
        "\"quoted\"",
        "calm",
        "likes tea",
        "{{random:a,b}}",
        "<START>",
        "\n",
        "\\n",
    ];
    let count = rng.random_range(1..20);
    (0..count).map(|_| *WORDS.choose(rng).expect("words")).collect::<Vec<_>>().join(" ")
}

/// A card without faults, of one of the three versions.
fn card(form: usize, rng: &mut StdRng) -> Value {
    let mut data = Map::new();
    for field in ["description", "personality", "scenario", "first_mes", "mes_example"] {
        data.insert(field.to_owned(), json!(words(rng)));
    }
    data.insert("name".to_owned(), json!(["Ann", "Großmutter Hilde", "夜 Nyx", "O'Neill"].choose(rng).expect("names")));
    if form == 0 {
        data.insert("create_date".to_owned(), json!("2023-5-4 @12h 1m"));
        return Value::Object(data);
    }
    for field in ["system_prompt", "post_history_instructions", "creator", "character_version"] {
        data.insert(field.to_owned(), json!(words(rng)));
    }
    data.insert("creator_notes".to_owned(), json!("notes for people"));
    data.insert("tags".to_owned(), json!([words(rng)]));
    data.insert("alternate_greetings".to_owned(), json!([words(rng), words(rng)]));
    data.insert("extensions".to_owned(), json!({ "other": { "depth": rng.random_range(0..9) }, "world": words(rng) }));
    if rng.random_bool(0.5) {
        data.insert(
            "character_book".to_owned(),
            json!({ "entries": [{ "keys": [words(rng)], "content": words(rng), "position": 4 }], "x": 1.25 }),
        );
    }
    if form == 1 {
        return json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": data, "fav": false });
    }
    data.insert("group_only_greetings".to_owned(), json!([words(rng)]));
    data.insert("nickname".to_owned(), json!("Nyx"));
    data.insert(
        "assets".to_owned(),
        json!([{ "type": "icon", "uri": "https://example.org/a.png", "name": "main", "ext": "png" }]),
    );
    data.insert("source".to_owned(), json!(["https://example.org"]));
    json!({ "spec": "chara_card_v3", "spec_version": "3.0", "data": data, "x_outside": [words(rng)] })
}

/// Puts a fault into a card. The paths that cannot be the same afterwards are added to `broken`.
fn with_fault(mut card: Value, fault: Fault, broken: &mut Vec<String>) -> Value {
    let is_first = card.get("data").is_none();
    let path = |field: &str| if is_first { format!("/{field}") } else { format!("/data/{field}") };
    let mut set = |field: &str, value: Value| {
        let data = if is_first { &mut card } else { &mut card["data"] };
        data[field] = value;
        broken.push(path(field));
    };
    match fault {
        Fault::NullBook => set("character_book", json!(null)),
        Fault::GreetingsAsText => set("alternate_greetings", json!("1687194031049")),
        Fault::EmptyGreeting => set("alternate_greetings", json!(["Hey.", "", null])),
        Fault::NumberAsText => set("character_version", json!(1.5)),
        Fault::ListAsText => set("personality", json!(["calm", "kind"])),
        Fault::NullText => set("scenario", json!(null)),
        Fault::Absent => {
            let data = if is_first { &mut card } else { &mut card["data"] };
            data.as_object_mut().expect("an object").remove("mes_example");
        }
        Fault::BesideData if !is_first => {
            let book = json!({ "entries": [] });
            card["data"].as_object_mut().expect("an object").remove("description");
            card["data"].as_object_mut().expect("an object").remove("character_book");
            card["description"] = json!("beside");
            card["character_book"] = book;
            // It is moved to where it belongs.
            broken.push("/character_book".to_owned());
        }
        // These are in the bytes around the JSON.
        Fault::BesideData | Fault::ByteOrderMark | Fault::LineBreaks | Fault::WrongChecksum | Fault::CutOff => {}
    }
    card
}

fn contained(card: &Value, container: Container, faults: &[Fault]) -> Vec<u8> {
    let mark: &[u8] = if faults.contains(&Fault::ByteOrderMark) { b"\xef\xbb\xbf" } else { b"" };
    let json = [mark, card.to_string().as_bytes()].concat();
    let mut base64 = STANDARD.encode(&json).into_bytes();
    if faults.contains(&Fault::LineBreaks) {
        base64 = base64.chunks(76).collect::<Vec<_>>().join(&b"\n"[..]);
    }
    let chunk = match container {
        Container::Json => return json,
        Container::Before | Container::After => text_chunk("chara", &base64),
        Container::Compressed => (*b"zTXt", [b"ccv3\0\0", &zlib(&base64)[..]].concat()),
        Container::International | Container::Twice => (*b"iTXt", [b"ccv3\0\0\0\0\0", &base64[..]].concat()),
    };
    let (before, after) = match container {
        Container::After => (vec![], vec![chunk]),
        Container::Twice => (vec![card_chunk("chara", &json!({ "name": "stale" })), chunk], vec![]),
        _ => (vec![chunk], vec![]),
    };
    let mut png = small_png(&before, &after);
    if faults.contains(&Fault::WrongChecksum) {
        // The last byte of the text's checksum: before the pixels, or before the end.
        let pixels = png.windows(4).position(|kind| kind == b"IDAT").expect("pixels");
        let end = if after.is_empty() { pixels - 5 } else { png.len() - 13 };
        png[end] ^= 0xff;
    }
    if faults.contains(&Fault::CutOff) {
        png.truncate(png.len() - 12);
    }
    png
}
