//! The commands of the real binary: their output and exit codes.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = r#"
companions = [{ id = "aria" }]
events = [{ at = 1.5, channel = "quay", from = "Rosa", text = "Soup, Aria?" }]
"#;

#[test]
fn check_reports_valid_settings_and_exits_with_0() {
    let dir = folder(&[("config/companions/mira.toml", "name = \"Mira Vale\"\ninterjection = \"quiet\"\n")]);

    let output = tertulia(&dir, &["check"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = stdout(&output);
    assert!(printed.contains("answers to Mira Vale"), "{printed}");
    assert!(printed.trim_end().ends_with("the settings are good"), "{printed}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn an_invalid_value_in_a_companion_file_is_reported_with_its_line_and_the_allowed_values() {
    let dir = folder(&[("config/companions/aria.toml", "name = \"Aria\"\ninterjection = \"chatty\"\n")]);

    let output = tertulia(&dir, &["check"]);

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected =
        "config/companions/aria.toml:2: interjection = \"chatty\" is not one of very_quiet, quiet, average, eager, very_eager";
    assert_eq!(stderr(&output).trim_end(), expected);
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_misspelled_key_in_a_companion_file_is_reported_with_a_suggestion() {
    let dir = folder(&[("config/companions/aria.toml", "name = \"Aria\"\nintejection = \"quiet\"\n")]);

    let as_text = tertulia(&dir, &["check"]);
    let as_json = tertulia(&dir, &["check", "--json"]);

    assert_eq!(as_text.status.code(), Some(2), "{as_text:?}");
    let expected = "config/companions/aria.toml:2: intejection is not a known key; did you mean interjection?";
    assert_eq!(stderr(&as_text).trim_end(), expected);
    assert_eq!(as_json.status.code(), Some(2), "{as_json:?}");
    let printed: Value = serde_json::from_slice(&as_json.stdout).expect("one JSON object");
    assert_eq!(printed["ok"], false);
    assert_eq!(printed["problems"][0]["line"], 2);
}

#[test]
fn an_invalid_environment_variable_is_reported_by_name() {
    let dir = folder(&[]);

    let output = binary(&dir, &["check"]).env("TERTULIA__GATE__MAX_BUFFER", "many").output().expect("it runs");

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("TERTULIA__GATE__MAX_BUFFER"), "{output:?}");
}

#[test]
fn replay_prints_one_line_per_event() {
    let dir = folder(&[("night.toml", SCRIPT)]);

    let output = tertulia(&dir, &["replay", "night.toml"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = stdout(&output);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 5, "{printed}");
    assert!(lines[0].ends_with("#1 Rosa: Soup, Aria?"), "{printed}");
    assert!(lines[2].ends_with("aria decides: NO, direct_address, model_no"), "{printed}");
}

#[test]
fn replay_with_json_prints_one_object_per_line() {
    let dir = folder(&[("night.toml", SCRIPT)]);

    let output = tertulia(&dir, &["replay", "night.toml", "--json"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = stdout(&output);
    let objects: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<_> = objects.iter().filter_map(|object| object["event"].as_str()).collect();
    assert_eq!(events, ["message", "evaluate", "decision", "silence", "state"]);
    assert_eq!((&objects[2]["at"], &objects[2]["channel"]), (&Value::from(1.5), &Value::from("quay")));
}

#[test]
fn json_and_toml_scripts_replay_alike() {
    let json = r#"{"companions": [{"id": "aria"}],
        "events": [{"at": 1.5, "channel": "quay", "from": "Rosa", "text": "Soup, Aria?"}]}"#;
    let dir = folder(&[("night.toml", SCRIPT), ("night.json", json)]);

    let from_toml = tertulia(&dir, &["replay", "night.toml", "--json"]);
    let from_json = tertulia(&dir, &["replay", "night.json", "--json"]);

    assert_eq!(stdout(&from_toml), stdout(&from_json));
}

#[test]
fn an_invalid_script_is_reported_with_its_file_and_position() {
    let typo =
        "companions = [{ id = \"aria\" }]\nevents = [\n  { at = 1.5, chanel = \"quay\", from = \"Rosa\", text = \"x\" },\n]\n";
    let negative = r#"{"companions": [], "events": [{"at": -1, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let too_late = r#"{"companions": [], "events": [{"at": 1e300, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let wrong_type = [r#"{"companions": [5], "events": []}"#, "companions = [5]\nevents = []\n"];
    let wrong_number = r#"{"companions": [], "events": [{"at": "x", "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let files = [("early.json", negative), ("cut.json", "{\n"), ("far.json", too_late), ("number.json", wrong_number)];
    let dir = folder(&[&files[..], &[("typo.toml", typo), ("kind.json", wrong_type[0]), ("kind.toml", wrong_type[1])]].concat());

    for (file, position, problem) in [
        ("typo.toml", "line 3", "`chanel`"),
        ("early.json", "events[0].at", "-1"),
        ("cut.json", "cut.json: EOF", "line 2"),
        ("far.json", "events[0].at", "1e300 is not"),
        ("gone.toml", "gone.toml", "No such file"),
        (".", ".: this is a folder", "name a script in it"),
        ("kind.json", "companions[0] is 5, must be a companion", "line 1"),
        ("kind.toml", "kind.toml", "expected a companion"),
        ("number.json", "events[0].at is \"x\", must be a number", "line 1"),
    ] {
        let output = tertulia(&dir, &["replay", file]);

        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!([file, position, problem].iter().all(|part| printed.contains(part)), "{printed}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn an_unknown_option_is_a_usage_error() {
    let dir = folder(&[]);

    let output = tertulia(&dir, &["check", "--jsn"]);

    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--json"), "{output:?}");
}

#[test]
fn help_shows_examples() {
    let dir = folder(&[]);

    for arguments in [&["--help"][..], &["check", "--help"], &["replay", "--help"]] {
        let output = tertulia(&dir, arguments);

        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let printed = stdout(&output);
        assert!(printed.contains("Examples:\n  tertulia "), "{printed}");
    }
}

/// A new folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn tertulia(dir: &TempDir, arguments: &[&str]) -> Output {
    binary(dir, arguments).output().expect("the binary runs")
}

/// The real binary, started in this folder, in an environment without settings.
fn binary(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tertulia"));
    command.args(arguments).current_dir(dir.path()).env_clear();
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
