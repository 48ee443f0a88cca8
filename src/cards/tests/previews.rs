//! What a companion gets from a card.

use serde_json::json;

use super::*;
use crate::settings::companion::MAX_PERSONA_BYTES;
use crate::{GreetingKind, Part, PartUse, PictureUse, Reason, UnusedKind};

fn persona_of(description: &str) -> String {
    preview_of(&json!({ "name": "Nyx", "description": description })).persona
}

/// What is not used, with its count.
fn unused(preview: &Preview) -> Vec<(UnusedKind, Reason, usize)> {
    preview.unused.iter().map(|unused| (unused.what, unused.why, unused.count)).collect()
}

#[test]
fn a_persona_is_made_of_the_texts_about_the_character() {
    let preview = preview_of(&full());

    assert_eq!((preview.name.as_str(), &*preview.aliases), ("Nyx", &["Nyx of the Long Night".to_owned()][..]));
    assert_eq!(
        preview.persona,
        "Nyx watches the stars, and knows whoever you talk to.\n\nPersonality: calm\n\nScenario: It is night.\n\n\
         How Nyx talks, for example:\nWhoever you talk to: hi\nNyx: hello\n---\nWhoever you talk to: bye\nNyx: so soon?"
    );
    assert_eq!(preview.interjection, Some(Interjection::Eager), "from SillyTavern's talkativeness");
    assert!(preview.parts.iter().all(|part| part.used == part.bytes));
}

#[test]
fn instructions_to_the_model_are_shown_and_are_off_at_first() {
    let card = read_json(&full());
    let both = Choices { system_prompt: true, post_history_instructions: true, ..Choices::default() };

    let [off, on] = [Choices::default(), both].map(|choices| preview(&card, &choices));

    for preview in [&off, &on] {
        assert_eq!(
            (preview.system_prompt.as_deref(), preview.post_history_instructions.as_deref()),
            (Some("Write as Nyx."), Some("Stay Nyx."))
        );
    }
    assert!(!off.persona.contains("Write as") && !off.persona.contains("Stay"));
    assert!(on.persona.ends_with("so soon?\n\nWrite as Nyx.\n\nStay Nyx."));
}

#[test]
fn notes_of_the_author_reach_no_prompt() {
    let card = read_json(&full());
    let choices = Choices { system_prompt: true, post_history_instructions: true, ..Choices::default() };

    let preview = preview(&card, &choices);

    assert_eq!(preview.creator_notes.as_deref(), Some("Best with a patient model."));
    assert!(!format!("{:?}", draft(&card, &choices)).contains("patient"));
    assert!(unused(&preview).contains(&(UnusedKind::CreatorNotes, Reason::ForPeople, 1)));
}

#[test]
fn every_greeting_may_be_the_first_word() {
    let greetings = preview_of(&full()).greetings;

    let told: Vec<_> = greetings.iter().map(|greeting| (greeting.kind, greeting.text.as_str())).collect();
    assert_eq!(
        told,
        [
            (GreetingKind::First, "*Nyx nods at everyone.* Everyone is late."),
            (GreetingKind::Alternate, "Hey."),
            (GreetingKind::GroupOnly, "Hello, all of you."),
        ]
    );
}

#[test]
fn what_is_not_used_is_told_with_its_reason() {
    let preview = preview_of(&full());

    assert_eq!(
        unused(&preview),
        [
            (UnusedKind::CreatorNotes, Reason::ForPeople, 1),
            (UnusedKind::Assets, Reason::NeverFetched, 1),
            (UnusedKind::Assets, Reason::OnePicture, 1),
            (UnusedKind::AboutTheCard, Reason::ForPeople, 3),
            (UnusedKind::Extensions, Reason::OtherPrograms, 1),
            (UnusedKind::OtherFields, Reason::OtherPrograms, 3),
        ]
    );
    assert_eq!(preview.lore.map(|lore| (lore.entries, lore.constant, lore.unusable.len())), Some((1, 0, 0)));
    assert_eq!(preview.unused[5].names, ["creation_date", "x_inside", "x_outside"]);
}

#[test]
fn the_words_for_the_user_are_in_the_language_of_the_card() {
    let texts = [
        (
            "Nyx ist eine Eule, die in der Nacht durch das Dorf fliegt und mit {{user}} spricht. {{user}}s Hand ist kalt.",
            "Nyx ist eine Eule, die in der Nacht durch das Dorf fliegt und mit dein Gegenüber spricht. Deines Gegenübers Hand ist kalt.",
            "*Sie sieht alle an und nimmt aller Hand. Das ist nicht so gut.*",
            "*Sie sieht {{user}} an und nimmt <USER>s Hand. Das ist nicht so gut.*",
        ),
        (
            "Nyx es un búho que vive en el bosque y que habla con {{user}} por la noche.",
            "Nyx es un búho que vive en el bosque y que habla con quien habla contigo por la noche.",
            "*Mira a todos y no dice nada de lo que sabe.*",
            "*Mira a {{user}} y no dice nada de lo que sabe.*",
        ),
    ];
    for (description, persona, greeting, first_mes) in texts {
        let card =
            json!({ "spec": "chara_card_v2", "data": { "name": "Nyx", "description": description, "first_mes": first_mes } });
        let preview = preview_of(&card);

        assert_eq!((&*preview.persona, &*preview.greetings[0].text), (persona, greeting));
    }
}

#[test]
fn macros_are_replaced_or_left_out_and_told() {
    let cases = [
        (
            "{{Char}}, <bot> and <CHAR> meet {{USER}} and <User>.",
            "Nyx, Nyx and Nyx meet whoever you talk to and whoever you talk to.",
        ),
        ("{{user}}'s friend. {{user}} too.", "Whoever you talk to's friend. Whoever you talk to too."),
        ("{{ char }}{{newline}}{{trim}}{{// no}}{{comment: no}}{{hidden_key:no}}on", "Nyx\non"),
        ("{{random:red\\, or so,blue}} {{pick::{{char}}::Ann}} {{random::a,b}}", "red, or so Nyx a"),
        ("{{{char}}} {{char {char}} }} {{}}x", "{Nyx}  }} x"),
        ("a<!-- one --><!--two\n-->b<!-- open", "ab<!-- open"),
        ("<user>quoted</user> by <user>", "<user>quoted</user> by <user>"),
        ("one<START>two", "onetwo"),
        ("It is {{time}} in {{getvar::place}}.", "It is  in ."),
    ];
    for (written, expected) in cases {
        assert_eq!(persona_of(written), expected, "{written}");
    }

    let preview =
        preview_of(&json!({ "name": "N", "description": "{{time}}{{time}}{{getvar::x}}{{random:a,b}}<!-- -->{{// x}}" }));
    let macros = &preview.unused;
    assert_eq!(macros[0].names, ["getvar", "time"]);
    assert_eq!(
        unused(&preview),
        [
            (UnusedKind::Macros, Reason::NoValue, 2),
            (UnusedKind::Macros, Reason::FirstChoice, 1),
            (UnusedKind::Comments, Reason::ForPeople, 2),
        ]
    );
}

#[test]
fn text_that_nobody_sees_is_left_out() {
    let tags: String = "obey".chars().map(|c| char::from_u32(0xe_0000 + u32::from(c)).unwrap()).collect();

    let preview = preview_of(&json!({ "name": "N", "description": format!("kind{tags}\u{202e}\u{1b}[2J\r\nand calm") }));

    assert_eq!(preview.persona, "kind[2J\nand calm");
    assert_eq!(preview.salvaged[0].kind, SalvageKind::HiddenCharacters);
}

#[test]
fn of_a_persona_that_is_too_long_the_examples_go_first() {
    let card = |description: usize, example: &str| {
        json!({
            "name": "Nyx",
            "description": "d ".repeat(description / 2),
            "scenario": "s ".repeat(1_000),
            "mes_example": format!("<START>{example}").repeat(30),
        })
    };
    let uses = |card| {
        let preview = preview_of(&card);
        assert!(preview.persona.len() <= MAX_PERSONA_BYTES);
        preview.parts.into_iter().map(|PartUse { part, bytes, used }| (part, bytes, used)).collect::<Vec<_>>()
    };
    let example = "e".repeat(500);

    let with_some = uses(card(10_000, &example));
    let without = uses(card(15_000, &example));
    let cut = uses(card(20_000, &example));

    let all = 30 * 500 + 29 * 5;
    assert_eq!(
        with_some,
        [(Part::Description, 9_999, 9_999), (Part::Scenario, 1_999, 1_999), (Part::Examples, all, 8 * 500 + 7 * 5)]
    );
    assert_eq!(without[2], (Part::Examples, all, 0));
    assert_eq!(without[0], (Part::Description, 14_999, 14_999));
    assert!((1_000..1_999).contains(&without[1].2), "{without:?}");
    assert!((16_000..16_384).contains(&cut[0].2) && cut[1].2 == 0, "{cut:?}");
}

#[test]
fn texts_are_bounded_however_macros_multiply_them() {
    let mut card = full();
    card["data"]["nickname"] = json!("N".repeat(60));
    for field in ["description", "system_prompt", "first_mes", "mes_example"] {
        card["data"][field] = json!("{{char}}".repeat(30_000));
    }
    card["data"]["scenario"] = json!(["{{random:".repeat(30_000), "}}".repeat(30_000)].concat());
    card["data"]["alternate_greetings"] = json!(vec!["x".repeat(20_000); 100]);

    let preview = preview_of(&card);

    assert!(preview.persona.len() <= MAX_PERSONA_BYTES);
    assert_eq!(preview.greetings.len(), 64);
    assert!(preview.greetings.iter().all(|greeting| greeting.text.len() <= 16 << 10));
    assert!(unused(&preview).contains(&(UnusedKind::Greetings, Reason::TooMany, 38)));
    assert!(unused(&preview).contains(&(UnusedKind::Greetings, Reason::TooLong, 64)));
}

#[test]
fn the_png_of_a_card_is_its_picture_if_it_may_be() {
    let asset = text_chunk("chara-ext-asset_:1", b"AAAA");
    let small = read(&small_png(&[card_chunk("ccv3", &full()), asset], &[])).unwrap();
    let large = read(&small_png(&[card_chunk("ccv3", &full()), (*b"prVt", vec![0; 1 << 20])], &[])).unwrap();

    let [none, small, large] = [read_json(&full()), small, large].map(|card| preview(&card, &Choices::default()));

    assert_eq!(none.picture, PictureUse::None);
    assert!(matches!(small.picture, PictureUse::Used { picture } if (picture.width, picture.height) == (2, 2)));
    assert!(unused(&small).contains(&(UnusedKind::Assets, Reason::NotKept, 1)));
    let shown = serde_json::to_value(&large.picture).unwrap();
    assert_eq!((&shown["code"], &shown["why"]["code"]), (&json!("not_used"), &json!("too_large")));
}
