//! What an export keeps.

use serde_json::json;

use super::*;
use crate::picture::NotAPicture;
use crate::{Form, write_json, write_png};

/// What of a value another lacks, by path.
pub(super) fn lost(before: &Value, after: Option<&Value>, path: &str, lost_paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(fields), Some(Value::Object(after))) => {
            for (key, value) in fields {
                lost(value, after.get(key), &format!("{path}/{key}"), lost_paths);
            }
        }
        (before, Some(after)) if before == after => {}
        _ => lost_paths.push(path.to_owned()),
    }
}

fn lost_by_export(card: &Value) -> Vec<String> {
    let read = read_json(card);
    let mut paths = Vec::new();
    lost(card, Some(&write_json(Some(&read.original), &companion_of(&read))), "", &mut paths);
    paths
}

#[test]
fn an_export_of_what_was_imported_loses_nothing() {
    let second = full_with("/spec", json!("chara_card_v2"));

    assert_eq!(lost_by_export(&full()), [""; 0]);
    assert_eq!(lost_by_export(&second), ["/spec"], "it is of the third version now");
    assert_eq!(lost_by_export(&json!({ "name": "Ann", "description": "kind", "x": { "y": 1 }, "chat": "a" })), [""; 0]);
    assert_eq!(lost_by_export(&full_with("/data/character_book", json!(null))), ["/data/character_book"]);
}

#[test]
fn an_export_has_every_field_that_the_versions_require() {
    let card = read_json(&json!({ "name": "Ann", "description": "kind" }));

    let written = write_json(Some(&card.original), &companion_of(&card));

    let data = written["data"].as_object().unwrap();
    for text in ["name", "description", "personality", "scenario", "first_mes", "mes_example", "creator_notes", "system_prompt"] {
        assert!(data[text].is_string(), "{text}");
    }
    for text in ["post_history_instructions", "creator", "character_version"] {
        assert!(data[text].is_string(), "{text}");
    }
    for list in ["alternate_greetings", "group_only_greetings", "tags"] {
        assert!(data[list].is_array(), "{list}");
    }
    assert_eq!((&written["spec"], &written["spec_version"]), (&json!("chara_card_v3"), &json!("3.0")));
    assert_eq!(written["description"], "kind", "programs for the first version look beside data");
}

#[test]
fn a_companion_survives_an_export_and_an_import() {
    let before = companion(CompanionFile {
        name: Some("Großmutter Hilde".into()),
        aliases: Some(vec!["Hilde".into(), "Oma".into()]),
        persona: Some("You bake.\n\nYou knit.\n".into()),
        chattiness: Some("talks to everyone".into()),
        interjection: Some(Interjection::VeryEager),
        tone: Some("Begin with a sigh.".into()),
        about: Some("She bakes, and she knits.".into()),
        greetings: Some(vec!["Come in.".into(), "Sit down.\nTea?".into()]),
        ..CompanionFile::default()
    });

    let card = read_json(&write_json(None, &before));
    let after = companion_of(&card);

    assert_eq!((card.form, salvaged(&card)), (Form::V3, Vec::new()));
    assert_eq!(after, Companion { persona: "You bake.\n\nYou knit.".into(), ..before });
}

#[test]
fn an_edited_persona_takes_the_place_of_the_texts_that_it_was_made_of() {
    let card = read_json(&full());
    let edited = Companion { persona: "You are new.".into(), name: "Vera".into(), ..companion_of(&card) };

    let written = write_json(Some(&card.original), &edited);
    let again = read_json(&written);

    assert_eq!(&*companion_of(&again).persona, "You are new.");
    assert_eq!((again.name.as_str(), again.nickname.as_str()), ("Vera", ""));
    let mut paths = Vec::new();
    lost(&full(), Some(&written), "", &mut paths);
    let changed = ["description", "first_mes", "mes_example", "name", "nickname", "personality", "scenario"]
        .map(|field| format!("/data/{field}"));
    assert_eq!(paths, changed);
}

#[test]
fn an_edited_persona_is_written_under_every_name_that_the_card_has_for_it() {
    let card = read_json(&json!({ "char_name": "Ann", "char_persona": "kind", "example_dialogue": "{{char}}: hi" }));
    let edited = Companion { persona: "You are new.".into(), ..companion_of(&card) };

    let written = write_json(Some(&card.original), &edited);

    let told = [&written["data"]["description"], &written["description"], &written["char_persona"], &written["example_dialogue"]];
    assert_eq!(told, ["You are new.", "You are new.", "You are new.", ""]);
}

#[test]
fn greetings_that_were_not_changed_stay_as_they_are_written_and_others_take_their_places() {
    let mut card = full_with("/data/alternate_greetings", json!(["Hey, {{user}}.", "Hm."]));
    card["data"]["group_only_greetings"] = json!(["Hello, {{user}}, says {{char}}."]);
    let card = read_json(&card);
    let companion = companion_of(&card);
    let greetings = |chosen: &[&str]| {
        let chosen = Companion { greetings: chosen.iter().map(|text| (*text).into()).collect(), ..companion.clone() };
        let written = write_json(Some(&card.original), &chosen);
        assert_eq!(companion_of(&read_json(&written)).greetings, chosen.greetings);
        assert_eq!(written["first_mes"], written["data"]["first_mes"]);
        ["first_mes", "alternate_greetings", "group_only_greetings"].map(|field| written["data"][field].clone())
    };

    let as_they_are: Vec<&str> = companion.greetings.iter().map(|greeting| &**greeting).collect();

    assert_eq!(as_they_are, ["*Nyx nods at everyone.* Everyone is late.", "Hey, everyone.", "Hm.", "Hello, everyone, says Nyx."]);
    assert_eq!(greetings(&as_they_are)[0], card.first_mes);
    assert_eq!(
        greetings(&["New.", "Hey, everyone.", "Hello, everyone, says Nyx."]),
        [json!("New."), json!(["Hey, {{user}}."]), json!(["Hello, {{user}}, says {{char}}."])]
    );
    assert_eq!(greetings(&[]), [json!(""), json!([]), json!([])]);
}

#[test]
fn a_renamed_companion_keeps_the_parts_of_its_card() {
    let card = json!({ "spec": "chara_card_v2", "data": {
        "name": "Nova", "description": "{{char}} is a poet.", "personality": "calm", "scenario": "A tea house.",
        "mes_example": format!("<START>\n{{{{char}}}}: {}", "Hum. ".repeat(5_000)), "first_mes": "{{char}} looks up.",
    }});
    let read = read_json(&card);
    let made = Companion { greetings: vec!["Nova looks up.".into()], ..companion_of(&read) };

    let renamed = write_json(Some(&read.original), &Companion { name: "Stella".into(), ..made });

    assert_eq!(renamed["data"]["name"], "Stella");
    for part in ["description", "personality", "scenario", "mes_example", "first_mes"] {
        assert_eq!(renamed["data"][part], card["data"][part], "{part}");
    }
}

#[test]
fn greetings_beside_the_data_do_not_come_back() {
    let card = read_json(&json!({ "name": "Ann", "first_mes": "Hi.", "alternate_greetings": ["Ho."], "char_greeting": "Hi." }));
    let silent = Companion { greetings: Vec::new(), ..companion_of(&card) };

    let again = read_json(&write_json(Some(&card.original), &silent));

    assert_eq!(companion_of(&again).greetings, silent.greetings);
}

#[test]
fn instructions_that_were_taken_into_the_persona_are_not_doubled() {
    let card = read_json(&full());
    let choices = Choices { system_prompt: true, post_history_instructions: true, ..Choices::default() };
    let taken = companion(draft(&card, &choices));

    let again = read_json(&write_json(Some(&card.original), &taken));

    assert_eq!(companion(draft(&again, &choices)).persona, taken.persona);
    assert_eq!(again.description, card.description);
}

#[test]
fn a_png_has_both_versions_before_its_pixels_and_keeps_its_other_texts() {
    let card = read_json(&full());
    let title = text_chunk("Title", b"night");
    let picture = small_png(std::slice::from_ref(&title), &[card_chunk("chara", &json!({ "name": "stale" }))]);

    let png = write_png(&picture, Some(&card.original), &companion_of(&card)).expect("it is a PNG");

    let written = write_json(Some(&card.original), &companion_of(&card));
    let mut second = written.clone();
    second["spec"] = json!("chara_card_v2");
    second["spec_version"] = json!("2.0");
    assert_eq!(png, small_png(&[title, card_chunk("chara", &second), card_chunk("ccv3", &written)], &[]));
    assert_eq!(read(&png).unwrap().original, written);
    assert_eq!(write_png(b"\xff\xd8\xff", None, &companion_of(&card)), Err(NotAPicture::Unknown));
}

#[test]
fn extensions_that_are_no_object_are_kept() {
    assert_eq!(lost_by_export(&full_with("/data/extensions", json!([]))), ["/data/extensions"]);

    let card = read_json(&full_with("/data/extensions", json!(["x"])));
    let written = write_json(Some(&card.original), &companion_of(&card));

    assert_eq!(written["data"]["extensions"]["other"], json!(["x"]));
}
