use std::time::Duration;

use serde_json::json;

use super::Folder;
use crate::companion::{Companion, CompanionFile, Interjection, ModelChoice, Overrides};
use crate::{Origin, Problem, shared_names};

#[test]
fn the_built_in_companions_are_valid_and_have_different_interjection_levels() {
    let loaded = Folder::empty().load().expect("nothing is wrong");

    let policies: Vec<_> = loaded.companions.values().map(|companion| (companion.id.as_str(), companion.interjection)).collect();

    assert_eq!(
        policies,
        [("aria", Interjection::Average), ("bruno", Interjection::VeryQuiet), ("cleo", Interjection::VeryEager)]
    );
    assert!(loaded.companions.values().all(|companion| companion.persona.lines().count() >= 20));
    assert_eq!(shared_names(loaded.companions.values()), []);
    assert_eq!(loaded.companions_from, Origin::BuiltIn);
}

#[test]
fn a_companions_folder_replaces_the_built_in_ones() {
    let folder = Folder::with(&[
        ("companions/mira.toml", "aliases = [\"mi\"]\n"),
        ("companions/README.md", "not a companion"),
        ("companions/.hidden.toml", "nor this"),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    let ids: Vec<_> = loaded.companions.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["mira"]);
    assert_eq!(loaded.settings.console.rooms[0].companions[0].as_str(), "mira");
    assert_eq!(loaded.notes, ["room lobby: mira is in it; set console.rooms to choose"]);
}

#[test]
fn a_silence_that_is_not_longer_than_a_lull_is_noted() {
    let notes = |starts_after: u32| {
        let file = format!("starts_after = {starts_after}\ntext_lull_timeout = 90\n");
        let notes = Folder::with(&[("companions/mira.toml", &file)]).load().expect("nothing is wrong").notes;
        notes.into_iter().find(|note| note.starts_with("companion "))
    };

    assert!(
        notes(90)
            .is_some_and(|note| note.contains("mira: its starts_after of 90 s is not longer than its text_lull_timeout of 90 s"))
    );
    assert_eq!(notes(91), None);
}

#[test]
fn absent_keys_of_a_companion_come_from_the_defaults() {
    let folder = Folder::with(&[
        ("default.toml", "[companion_defaults]\ninterjection = \"eager\"\n"),
        ("companions/mira.toml", "text_lull_timeout = 2.5\n"),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    let mira = &loaded.companions[&"mira".into()];
    assert_eq!((&*mira.name, mira.interjection), ("Mira", Interjection::Eager));
    assert_eq!((mira.text_lull(), mira.voice_lull()), (Duration::from_millis(2500), Duration::from_secs(5)));
    assert_eq!(&*mira.chattiness, "Balanced — responds when the conversation is relevant");
}

#[test]
fn a_picture_is_a_public_url() {
    let with = |picture: &str| {
        let file = CompanionFile { picture: Some(picture.into()), ..CompanionFile::default() };
        let defaults = Folder::empty().load().expect("nothing is wrong").settings.companion_defaults;
        Companion::from_file(file, Some("mira"), &defaults)
    };

    for picture in ["https://example.org/mira.png", "https://cdn.example.org/a%20b.png?size=256#x", "https://[2001:db8::1]/m.png"]
    {
        assert_eq!(with(picture).expect("a valid URL").picture.as_deref(), Some(picture));
    }
    let long = format!("https://example.org/{}", "x".repeat(2_048));
    for (picture, expected) in [
        ("http://example.org/mira.png", "does not begin with https://"),
        ("http://127.0.0.1/mira.png", "does not begin with https://"),
        ("data:image/png;base64,AA==", "does not begin with https://"),
        ("mira.png", "is not a URL"),
        ("", "is not a URL"),
        ("https://me:secret@example.org/m.png", "contains a user or a password"),
        ("https://example.org/a b.png", "contains a space"),
        ("https://example.org/\n.png", "contains a space or a control character"),
        (long.as_str(), "at most 2048 are allowed"),
    ] {
        let problems = with(picture).expect_err(picture);

        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].key, "picture");
        assert!(problems[0].message.contains(expected), "{}", problems[0]);
    }
}

#[test]
fn greetings_are_texts_with_a_limit() {
    let with = |greetings: &str| Folder::with(&[("companions/mira.toml", greetings)]).load();

    let mira = with("greetings = [\"\"\"Hello,\r\nyou.\"\"\", \"Hm?\"]").expect("nothing is wrong");
    assert_eq!(*mira.companions[&"mira".into()].greetings, ["Hello,\nyou.".into(), "Hm?".into()]);
    let many = format!("greetings = [{}]", "\"a\", ".repeat(65));
    let long = format!("greetings = [\"a\", \"{}\"]", "a".repeat(16_385));
    for (wrong, expected) in [
        (many.as_str(), "greetings has 65 entries, at most 64"),
        (&long, "greetings[1] has 16385 bytes, at most 16384"),
        ("greetings = [\" \"]", "greetings[0] is empty"),
        ("greetings = \"Hello\"", "greetings"),
    ] {
        let problem = with(wrong).expect_err("it is wrong").to_string();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn the_lobby_has_the_built_in_companions() {
    let loaded = Folder::empty().load().expect("nothing is wrong");

    let lobby: Vec<_> = loaded.settings.console.rooms[0].companions.iter().map(|id| id.as_str()).collect();
    assert_eq!(lobby, ["aria", "bruno", "cleo"]);
    assert_eq!(loaded.notes, [""; 0]);
}

#[test]
fn default_rooms_get_the_first_three_companions_that_share_no_name() {
    let folder = Folder::with(&[
        ("companions/ana.toml", "aliases = [\"sunny\"]"),
        ("companions/ben.toml", "aliases = [\"Sunny\"]"),
        ("companions/cora.toml", ""),
        ("companions/dan.toml", ""),
        ("companions/eva.toml", ""),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    let lobby: Vec<_> = loaded.settings.console.rooms[0].companions.iter().map(|id| id.as_str()).collect();
    assert_eq!(lobby, ["ana", "cora", "dan"]);
    assert_eq!(
        loaded.notes,
        [
            "room lobby: ana, cora and dan are in it; set console.rooms to choose",
            "the companions ana and ben share the name \"Sunny\", so they cannot be in one guild; rename one of them"
        ]
    );
}

#[test]
fn a_room_has_at_most_32_companions() {
    let room = |companions: usize| {
        let ids: Vec<_> = (0..companions).map(|number| format!("\"c{number}\"")).collect();
        let room = format!("[[console.rooms]]\nid = \"den\"\nguild = \"home\"\ncompanions = [{}]\n", ids.join(", "));
        let files: Vec<_> = (0..companions).map(|number| (format!("companions/c{number}.toml"), String::new())).collect();
        let mut files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        files.push(("default.toml", &room));
        Folder::with(&files)
    };

    assert!(room(32).load().is_ok());
    assert_eq!(
        room(33).problems(),
        ["default.toml:4: console.rooms[0].companions names 33 companions, at most 32 can be in a room"]
    );
}

#[test]
fn what_is_wrong_with_companions_and_their_rooms_is_said_with_its_place() {
    let rooms = "[console]\nrooms = [\n  { id = \"a\", guild = \"g\", companions = [\"mira\"] },\n  { id = \"b\", guild = \"g\", companions = [\"zed\"] },\n]\n";
    let of_two_guilds = rooms.replace("\"b\", guild = \"g\"", "\"b\", guild = \"h\"");
    let namesakes = [("companions/mira.toml", "aliases = [\"Sunny\"]"), ("companions/zed.toml", "aliases = [\"sUNNY\"]")];
    let same_id =
        ["g", "h"].map(|guild| format!("[[console.rooms]]\nid = \"a\"\nguild = \"{guild}\"\ncompanions = []\n")).concat();
    for (files, problems) in [
        (
            &[("companions/mira.toml", "name = \"Mira\"\n\ninterjection = \"chatty\"\n")][..],
            &["companions/mira.toml:3: interjection = \"chatty\" is not one of very_quiet, quiet, average, eager, very_eager"][..],
        ),
        (
            &[("companions/mira.toml", "name = \"Mi\\nra\"\naliases = [\"ok\", \"a\\u202Eb\"]\n")],
            &[
                r#"companions/mira.toml:1: name = "Mi\nra" contains a control character; remove it"#,
                r#"companions/mira.toml:2: aliases[1] = "a\u{202e}b" contains a control character; remove it"#,
            ],
        ),
        (
            &[("default.toml", "[[console.rooms]]\nid = \"den\"\nguild = \"home\"\ncompanions = [\n  \"ghost\"]\n")],
            &[
                "default.toml:5: console.rooms[0].companions[0] = \"ghost\" is not a companion; the companions are: aria, bruno, cleo",
            ],
        ),
        (
            &[("default.toml", "[discord]\ndirect_companions = [\"aria\", \"ghost\"]\n")],
            &[
                "default.toml:2: discord.direct_companions[1] = \"ghost\" is not a companion; the companions are: aria, bruno, cleo",
            ],
        ),
        (
            &[
                ("default.toml", "[discord]\ndirect_companions = [\"mira\", \"zed\"]\n\n[console]\nrooms = []\n"),
                namesakes[0],
                namesakes[1],
            ],
            &[
                "default.toml:2: discord.direct_companions names mira and zed, and both answer to \"sUNNY\"; rename one or remove it",
            ],
        ),
        (
            &[("default.toml", rooms), namesakes[0], namesakes[1]],
            &[
                "default.toml:3: console.rooms[0].companions brings mira and zed into guild g, and both answer to \"sUNNY\"; rename one or \
               keep them in different guilds",
            ],
        ),
        (
            &[("default.toml", &*same_id)],
            &["default.toml:6: console.rooms[1].id = \"a\" is the id of rooms[0] already; each room needs its own"],
        ),
    ] {
        assert_eq!(Folder::with(files).problems(), problems, "{files:?}");
    }
    assert!(Folder::with(&[("default.toml", &*of_two_guilds), namesakes[0], namesakes[1]]).load().is_ok());
}

#[test]
fn a_name_that_looks_like_another_is_rejected() {
    let names = [
        "name = \"a\\u00ADria\"\naliases = [\"ok\", \"Ari\\u200Da\"]\n",
        "name = \"Mi\\uFE00ra\"\naliases = [\"❤\\uFE0F\", \"می\\u200Cرا\"]\n",
        "name = \"می\\u200Cرا\"\naliases = []\n",
        "name = \"میرا\"\naliases = []\n",
    ];
    let files = ["companions/soft.toml", "companions/mira.toml"];
    let folder = Folder::with(&[(files[0], names[0]), (files[1], names[1])]);

    let problems = folder.problems();

    let is_reported = |start: &str, code: &str| {
        problems.iter().any(|problem| problem.starts_with(start) && problem.contains(code) && problem.contains("remove it"))
    };
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        is_reported("companions/soft.toml:1: name", "U+00AD") && is_reported("companions/soft.toml:2: aliases[1]", "U+200D"),
        "{problems:?}"
    );
    assert!(is_reported("companions/mira.toml:1: name", "U+FE00"), "{problems:?}");
    let joined =
        Folder::with(&[("companions/one.toml", names[2]), ("companions/two.toml", names[3])]).load().expect("each name is valid");
    assert_eq!(shared_names(joined.companions.values()).len(), 1, "the names look alike");
}

#[test]
fn a_companion_in_a_script_needs_an_id() {
    let defaults = Folder::empty().load().expect("nothing is wrong").settings.companion_defaults;
    let file: CompanionFile =
        serde_json::from_value(json!({ "id": "aria", "aliases": ["ari"] })).expect("valid JSON of this type");

    let aria = Companion::from_file(file, None, &defaults).expect("nothing is wrong");
    let problems = Companion::from_file(CompanionFile::default(), None, &defaults).expect_err("it has no id");

    assert_eq!(aria.names().collect::<Vec<_>>(), ["aria", "Aria", "ari"]);
    assert_eq!(problems, [Problem::new("id", "is missing")]);
}

#[test]
fn overrides_change_only_the_values_that_they_set() {
    let aria = Folder::empty().load().expect("nothing is wrong").companions.remove(&"aria".into()).expect("she is built in");
    let overrides = json!({
        "interjection": "quiet", "text_lull_timeout": 3, "max_turns": 5, "repetition": false, "model": { "side": "small" },
    });
    let overrides: Overrides = serde_json::from_value(overrides).expect("valid JSON of this type");

    let changed = overrides.applied_to(&aria);

    let model = ModelChoice { side: "small".into(), ..ModelChoice::default() };
    let (interjection, text_lull_timeout, max_turns) = (Interjection::Quiet, 3.0, Some(5));
    assert_eq!(changed, Companion { interjection, text_lull_timeout, max_turns, repetition: false, model, ..aria });
    assert_eq!(overrides.check(), Ok(()));
}

#[test]
fn starting_intervals_are_15_12_9_6_and_3_messages() {
    let intervals = Interjection::ALL.map(Interjection::starting_interval);

    assert_eq!(intervals, [15, 12, 9, 6, 3]);
}
