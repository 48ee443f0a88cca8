//! What editors, shells and env files do to settings: quotation marks, byte order marks, line ends, other endings of files.

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::Folder;
use crate::Settings;

#[test]
fn quotation_marks_around_a_secret_in_a_variable_are_removed_and_noted() {
    for quoted in ["\"sk-abc\"", "'sk-abc'", "  \"sk-abc\"\r\n"] {
        let loaded = Folder::empty().variable("TERTULIA__MODELS__MAIN__API_KEY", quoted).load().expect("nothing is wrong");

        assert_eq!(loaded.settings.models.main.key().unwrap().unwrap().expose_secret(), "sk-abc");
        let note = "TERTULIA__MODELS__MAIN__API_KEY: the quotation marks around";
        assert!(loaded.notes.iter().any(|found| found.starts_with(note)), "{:?}", loaded.notes);
    }
    let loaded = Folder::empty().variable("TERTULIA__MODELS__MAIN__API_KEY", " sk-abc\r\n").load().expect("nothing is wrong");

    assert_eq!(loaded.settings.models.main.key().unwrap().unwrap().expose_secret(), "sk-abc");
    assert!(loaded.notes.iter().all(|note| !note.contains("quotation")), "{:?}", loaded.notes);
}

#[test]
fn quotation_marks_around_another_variable_are_refused_by_name() {
    for (name, value) in [
        ("TERTULIA__MODELS__MAIN__BASE_URL", "\"http://127.0.0.1:1/v1\""),
        ("TERTULIA__MODELS__MAIN__MODEL", "'m'"),
        ("TERTULIA__GATE__MAX_BUFFER", "\"100\""),
        ("TERTULIA__MODELS__MAIN__API_KEY_FILE", "\"/key\""),
    ] {
        let problems = Folder::empty().variable(name, value).problems();

        let expected = format!(
            "{name}: has quotation marks around its value, which would be part of it; remove them (`docker run --env-file` keeps them)"
        );
        assert_eq!(problems, [expected]);
    }
    let list = Folder::empty().variable("TERTULIA__SPEECH__RECOGNITION", "[\"rehearsal\"]").load().expect("nothing is wrong");
    assert_eq!(list.settings.speech.recognition.len(), 1);
}

#[test]
fn files_with_a_byte_order_mark_and_windows_line_ends_are_read() {
    let folder = Folder::with(&[
        ("default.toml", "\u{feff}[gate]\r\nmax_buffer = 77\r\n"),
        (
            "companions/mira.toml",
            "\u{feff}persona = \"\"\"\r\nYou are Mira.\r\nYou like tides.\r\n\"\"\"\r\nbrief = \"a\\rb\"\r\n",
        ),
        ("companions/nora/companion.toml", "\u{feff}name = \"Nora\"\r\n"),
        ("companions/nora/persona.md", "\u{feff}You are Nora.\r\n\r\nYou like maps.\r\n"),
    ]);

    let loaded = folder.load().expect("nothing is wrong");

    assert_eq!(loaded.settings.gate.max_buffer, 77);
    assert_eq!(&*loaded.companions[&"mira".into()].persona, "You are Mira.\nYou like tides.\n");
    assert_eq!(loaded.companions[&"mira".into()].brief.as_deref(), Some("a\nb"));
    assert_eq!(&*loaded.companions[&"nora".into()].persona, "You are Nora.\n\nYou like maps.");
}

#[test]
fn files_that_were_meant_as_settings_or_companions_are_noted() {
    let companions = ["aria.yaml", "ben.yml", "cora.json", "DAN.TOML", "eva.toml.txt", "fay.md"];
    let settings = ["default.yaml", "Default.toml", "config.toml", "settings.json", "night.TOML", "night.toml.txt", "night.yaml"];
    let others = [
        "README.md",
        "docker-compose.yaml",
        "day.toml",
        "data.json",
        ".default.toml.swp",
        "companions/README.md",
        "companions/.x.yaml",
    ];
    let names: Vec<_> =
        companions.map(|name| format!("companions/{name}")).into_iter().chain(settings.map(str::to_owned)).collect();
    let all = names.iter().map(String::as_str).chain(others).chain(["night.toml", "default.toml", "companions/mira.toml"]);
    let folder = Folder::with(&all.map(|name| (name, "")).collect::<Vec<_>>()).profile("night");

    let loaded = folder.load().expect("nothing is wrong");

    let noted: Vec<_> = loaded.notes.iter().filter_map(|note| note.split_once(" is not read: ")).map(|(path, _)| path).collect();
    let prefix = format!("{}/", folder.dir.path().display());
    let mut noted: Vec<_> = noted.into_iter().map(|path| path.strip_prefix(&prefix).expect("it is in the folder")).collect();
    let mut expected: Vec<_> = names.iter().map(String::as_str).collect();
    noted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(noted, expected);
}

#[test]
fn a_key_that_was_removed_says_what_takes_its_place() {
    let problem = Settings::overlay(json!({ "reply": { "replan_within_secs": 3 } })).expect_err("it was removed").to_string();

    assert!(
        problem.starts_with("settings.reply.replan_within_secs was removed: ") && problem.contains("reply.max_replans"),
        "{problem}"
    );
}
