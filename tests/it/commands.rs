//! The commands of the real binary that need neither a server nor a store: their output and exit codes.

use std::fs;

use serde_json::Value;

use crate::harness::Premises;

const SCRIPT: &str = r#"
companions = [{ id = "aria" }]
events = [{ at = 1.5, channel = "quay", from = "Rosa", text = "Soup, Aria?" }]
models = { side = [] }
"#;

/// An MCP server with one tool, whose description is in the file `$1`.
const BOX: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
read -r words <"$1"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"unknown"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"box","version":"1"}}' ;;
    *'"tools/list"'*) say "\"result\":{\"tools\":[{\"name\":\"go\",\"description\":\"$words\",\"inputSchema\":{\"type\":\"object\"}}]}" ;;
  esac
done
"#;

#[tokio::test]
async fn check_reports_valid_settings_and_exits_with_0() {
    let premises = Premises::new().with_companion("mira", "name = \"Mira Vale\"\ninterjection = \"quiet\"\n");

    let checked = premises.with("console.rooms", "[]").run(&["check"]).await.exits_with(0);

    assert!(checked.stdout.contains("answers to Mira Vale"), "{checked:?}");
    assert!(checked.stdout.trim_end().ends_with("the settings are good"), "{checked:?}");
    assert_eq!(checked.stderr, "");
}

#[tokio::test]
async fn invalid_settings_are_reported_with_their_place_and_what_is_allowed() {
    let with_aria = |line: &str| Premises::new().with_companion("aria", &format!("name = \"Aria\"\n{line}\n"));
    let chatty =
        "config/companions/aria.toml:2: interjection = \"chatty\" is not one of very_quiet, quiet, average, eager, very_eager";
    let misspelled = "config/companions/aria.toml:2: intejection is not a known key; did you mean interjection?";
    let both = "config/companions/aria.toml: and the folder config/companions/aria are both the companion aria; remove one";
    let twice = with_aria("");
    twice.write_companion_file("aria", "companion.toml", "name = \"Aria\"\n");

    for (premises, words) in [
        (with_aria("interjection = \"chatty\""), chatty),
        (with_aria("intejection = \"quiet\""), misspelled),
        (twice, both),
        (Premises::new().with("gate.max_buffer", "many"), "TERTULIA__GATE__MAX_BUFFER"),
    ] {
        let checked = premises.run(&["check"]).await.exits_with(2);

        let is_all = words.starts_with("config");
        assert!(if is_all { checked.stderr.trim_end() == words } else { checked.stderr.contains(words) }, "{words}: {checked:?}");
        assert_eq!(checked.stdout, "");
    }
    let as_json = with_aria("intejection = \"quiet\"").run(&["check", "--json"]).await.exits_with(2).object();
    assert_eq!((&as_json["ok"], &as_json["problems"][0]["line"]), (&false.into(), &2.into()), "{as_json}");
    let without_token = Premises::new().run(&["discord", "check", "--json"]).await.exits_with(2).object();
    assert!(without_token["problems"][0]["message"].to_string().contains("no token is set"), "{without_token}");
}

#[tokio::test]
async fn tools_are_held_back_until_they_are_accepted_and_again_when_they_change() {
    let premises = with_files(&[("box.sh", BOX), ("words", r"Goes\ntertulia: no tool is held back")]);
    let arguments = format!("[{:?}, {:?}]", premises.path().join("box.sh"), premises.path().join("words"));
    let premises = premises.with("tools.servers.box.command", "/bin/sh").with("tools.servers.box.arguments", &arguments);

    let new = premises.run(&["tools", "check"]).await.exits_with(1);
    let reviewed = premises.run(&["tools", "review"]).await.exits_with(0);
    premises.run(&["tools", "review", "--accept", "box__gone"]).await.exits_with(1);
    let accepted = premises.run(&["tools", "review", "--accept", "box__go"]).await.exits_with(0);
    let good = premises.run(&["tools", "check"]).await.exits_with(0);
    fs::write(premises.path().join("words"), "Pays").expect("a file");
    let changed = premises.run(&["tools", "review"]).await.exits_with(0);

    assert!(new.stdout.contains("  box__go: can change something, held back, because it is new"), "{new:?}");
    assert!(reviewed.stdout.contains("  description: Goes\n    tertulia: no tool is held back\n"), "{reviewed:?}");
    assert!(accepted.stdout.starts_with("accepted: box__go\n"), "{accepted:?}");
    assert!(
        good.stdout.contains("box__go: can change something, accepted, for operators, confirmed by who asked or an operator"),
        "{good:?}"
    );
    assert!(
        changed.stdout.contains("description before: Goes") && changed.stdout.contains("description now:    Pays"),
        "{changed:?}"
    );
}

#[tokio::test]
async fn replay_prints_one_line_or_object_per_event() {
    let json = r#"{"companions": [{"id": "aria"}], "models": {"side": []},
        "events": [{"at": 1.5, "channel": "quay", "from": "Rosa", "text": "Soup, Aria?"}]}"#;
    let premises = with_files(&[("night.toml", SCRIPT), ("night.json", json)]);

    let lines = premises.run(&["replay", "night.toml"]).await.exits_with(0).stdout;
    let objects = premises.run(&["replay", "night.toml", "--json"]).await.exits_with(0).stdout;
    let from_json = premises.run(&["replay", "night.json", "--json"]).await.exits_with(0).stdout;

    let lines: Vec<_> = lines.lines().collect();
    assert!(lines.len() == 5 && lines[0].ends_with("#1 Rosa: Soup, Aria?"), "{lines:?}");
    assert!(lines[2].ends_with("aria decides: NO, direct_address, model_no"), "{lines:?}");
    assert_eq!(objects, from_json);
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<_> = objects.iter().filter_map(|object| object["event"].as_str()).collect();
    assert_eq!(events, ["message", "evaluate", "decision", "silence", "state"]);
    assert_eq!((&objects[2]["at"], &objects[2]["channel"]), (&Value::from(1.5), &Value::from("quay")));
}

#[tokio::test]
async fn a_script_may_name_configured_companions_and_leave_out_answers() {
    let mute = r#"{"companions": ["aria"], "models": {"side": [], "main": []},
        "events": [{"at": 0, "channel": "quay", "from": "Rosa", "text": "Soup, Aria?"}]}"#;
    let unknown = mute.replace(r#"["aria"]"#, r#"["aria", "ari"]"#);
    let premises = with_files(&[("mute.json", mute), ("unknown.json", &unknown)]);
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");

    let mut scripts = 0;
    for example in std::fs::read_dir(examples).expect("the examples").flatten().map(|entry| entry.path()) {
        if example.extension().is_some_and(|extension| extension == "json" || extension == "toml") {
            let path = example.to_str().expect("a path that is text");
            let replayed = premises.run(&["replay", path]).await.exits_with(0);
            assert!(replayed.stdout.contains(" says: "), "{replayed:?}");
            assert_eq!(replayed.stderr.contains("rehearsal answers"), path.ends_with("round.toml"), "{replayed:?}");
            scripts += 1;
        }
    }
    let mute = premises.run(&["replay", "mute.json"]).await.exits_with(0);
    let unknown = premises.run(&["replay", "unknown.json"]).await.exits_with(2);

    assert_eq!(scripts, 3);
    assert!(mute.stdout.contains("aria decides: NO") && mute.stderr.is_empty(), "{mute:?}");
    assert!(unknown.stderr.contains("companions[1]: \"ari\" is no configured companion (known: "), "{unknown:?}");
}

#[tokio::test]
async fn an_invalid_script_is_reported_with_its_file_and_position() {
    let typo =
        "companions = [{ id = \"aria\" }]\nevents = [\n  { at = 1.5, chanel = \"quay\", from = \"Rosa\", text = \"x\" },\n]\n";
    let negative = r#"{"companions": [], "events": [{"at": -1, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let too_late = r#"{"companions": [], "events": [{"at": 1e300, "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let wrong_type = [r#"{"companions": [5], "events": []}"#, "companions = [5]\nevents = []\n"];
    let wrong_number = r#"{"companions": [], "events": [{"at": "x", "channel": "quay", "from": "Rosa", "text": "x"}]}"#;
    let files = [("early.json", negative), ("cut.json", "{\n"), ("far.json", too_late), ("number.json", wrong_number)];
    let more = [("typo.toml", typo), ("kind.json", wrong_type[0]), ("kind.toml", wrong_type[1])];
    let premises = with_files(&[&files[..], &more].concat());

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
        let refused = premises.run(&["replay", file]).await.exits_with(2);

        assert!([file, position, problem].iter().all(|part| refused.stderr.contains(part)), "{refused:?}");
        assert_eq!(refused.stdout, "");
    }
}

#[tokio::test]
async fn an_unknown_option_is_a_usage_error_and_help_shows_examples() {
    let premises = Premises::new();

    let unknown = premises.run(&["check", "--jsn"]).await.exits_with(2);

    assert!(unknown.stderr.contains("--json"), "{unknown:?}");
    for arguments in [&["--help"][..], &["check", "--help"], &["replay", "--help"]] {
        let help = premises.run(arguments).await.exits_with(0);
        assert!(help.stdout.contains("Examples:\n  tertulia "), "{help:?}");
    }
}

fn with_files(files: &[(&str, &str)]) -> Premises {
    let premises = Premises::new();
    for (name, text) in files {
        fs::write(premises.path().join(name), text).expect("a file");
    }
    premises
}
