//! The commands of the real binary: what they print, where, and how they end.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = r#"
companions = [{ id = "aria" }]
events = [{ at = 1.5, channel = "quay", from = "Rosa", text = "Soup, Aria?" }]
"#;

#[test]
fn good_settings_are_told_and_end_well() {
    let here = folder(&[("config/companions/mira.toml", "name = \"Mira Vale\"\ninterjection = \"quiet\"\n")]);

    let output = tertulia(&here, &["check"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = stdout(&output);
    assert!(told.contains("answers to Mira Vale"), "{told}");
    assert!(told.trim_end().ends_with("the settings are good"), "{told}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_wrong_value_in_a_companions_file_is_told_with_its_place_and_what_is_allowed() {
    let here = folder(&[("config/companions/aria.toml", "name = \"Aria\"\ninterjection = \"chatty\"\n")]);

    let output = tertulia(&here, &["check"]);

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected =
        "config/companions/aria.toml:2: interjection = \"chatty\" is not one of very_quiet, quiet, average, eager, very_eager";
    assert_eq!(stderr(&output).trim_end(), expected);
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_typo_in_a_companions_file_is_told_with_what_was_meant() {
    let here = folder(&[("config/companions/aria.toml", "name = \"Aria\"\nintejection = \"quiet\"\n")]);

    let for_people = tertulia(&here, &["check"]);
    let for_programs = tertulia(&here, &["check", "--json"]);

    assert_eq!(for_people.status.code(), Some(2), "{for_people:?}");
    let expected = "config/companions/aria.toml:2: intejection is not a known key; did you mean interjection?";
    assert_eq!(stderr(&for_people).trim_end(), expected);
    assert_eq!(for_programs.status.code(), Some(2), "{for_programs:?}");
    let told: Value = serde_json::from_slice(&for_programs.stdout).expect("one JSON object");
    assert_eq!(told["ok"], false);
    assert_eq!(told["problems"][0]["line"], 2);
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let here = folder(&[]);

    let output = binary(&here, &["check"]).env("TERTULIA__GATE__MAX_BUFFER", "many").output().expect("it runs");

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("TERTULIA__GATE__MAX_BUFFER"), "{output:?}");
}

#[test]
fn a_replay_is_told_to_people_line_by_line() {
    let here = folder(&[("night.toml", SCRIPT)]);

    let output = tertulia(&here, &["replay", "night.toml"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = stdout(&output);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 5, "{told}");
    assert!(lines[0].ends_with("#1 Rosa: Soup, Aria?"), "{told}");
    assert!(lines[2].ends_with("aria decides: NO, direct_address, model_no"), "{told}");
}

#[test]
fn a_replay_is_told_to_programs_in_one_json_object_a_line() {
    let here = folder(&[("night.toml", SCRIPT)]);

    let output = tertulia(&here, &["replay", "night.toml", "--json"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = stdout(&output);
    let objects: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<_> = objects.iter().filter_map(|object| object["event"].as_str()).collect();
    assert_eq!(events, ["message", "evaluate", "decision", "silence", "state"]);
    assert_eq!((&objects[2]["at"], &objects[2]["channel"]), (&Value::from(1.5), &Value::from("quay")));
}

#[test]
fn json_and_toml_scripts_say_the_same() {
    let json = r#"{"companions": [{"id": "aria"}],
        "events": [{"at": 1.5, "channel": "quay", "from": "Rosa", "text": "Soup, Aria?"}]}"#;
    let here = folder(&[("night.toml", SCRIPT), ("night.json", json)]);

    let from_toml = tertulia(&here, &["replay", "night.toml", "--json"]);
    let from_json = tertulia(&here, &["replay", "night.json", "--json"]);

    assert_eq!(stdout(&from_toml), stdout(&from_json));
}

#[test]
fn a_malformed_script_is_told_with_its_file_and_place() {
    let typo =
        "companions = [{ id = \"aria\" }]\nevents = [\n  { at = 1.5, chanel = \"quay\", from = \"Rosa\", text = \"x\" },\n]\n";
    let early = r#"{"companions": [], "events": [{"at": -1, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let far = r#"{"companions": [], "events": [{"at": 1e300, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let kind = [r#"{"companions": [5], "events": []}"#, "companions = [5]\nevents = []\n"];
    let number = r#"{"companions": [], "events": [{"at": "x", "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let files = [("early.json", early), ("cut.json", "{\n"), ("far.json", far), ("number.json", number)];
    let here = folder(&[&files[..], &[("typo.toml", typo), ("kind.json", kind[0]), ("kind.toml", kind[1])]].concat());

    for (file, place, problem) in [
        ("typo.toml", "line 3", "`chanel`"),
        ("early.json", "events[0].at", "-1"),
        ("cut.json", "cut.json: EOF", "line 2"),
        ("far.json", "events[0].at", "1e300 is not"),
        ("gone.toml", "gone.toml", "No such file"),
        (".", ".: it is a folder", "name a script in it"),
        ("kind.json", "companions[0] is 5, must be a companion", "line 1"),
        ("kind.toml", "kind.toml", "expected a companion"),
        ("number.json", "events[0].at is \"x\", must be a number", "line 1"),
    ] {
        let output = tertulia(&here, &["replay", file]);

        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!([file, place, problem].iter().all(|part| told.contains(part)), "{told}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn an_unknown_option_is_wrong_usage() {
    let here = folder(&[]);

    let output = tertulia(&here, &["check", "--jsn"]);

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--json"), "{output:?}");
}

#[test]
fn help_shows_examples() {
    let here = folder(&[]);

    for arguments in [&["--help"][..], &["check", "--help"], &["replay", "--help"]] {
        let output = tertulia(&here, arguments);

        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = stdout(&output);
        assert!(told.contains("Examples:\n  tertulia "), "{told}");
    }
}

/// A folder of its own with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn tertulia(here: &TempDir, arguments: &[&str]) -> Output {
    binary(here, arguments).output().expect("the binary runs")
}

/// The real binary, started in this folder, in an environment without settings.
fn binary(here: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tertulia"));
    command.args(arguments).current_dir(here.path()).env_clear();
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
