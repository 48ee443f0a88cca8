//! Protects files, secrets and the log: file modes, secrets in output, and outside text that would forge log lines.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::json;

use crate::harness::hostile::{HOSTILE, controls_terminal, is_log_line};
use crate::harness::model::{Answer, Model};
use crate::harness::{Premises, Server, program, ran};

const ADMIN: &str = "xyloadmin-3f8a90c1d2e4b567";
const KEY: &str = "xylokey-77aa0b1c2d3e4f5061";

#[tokio::test]
async fn written_files_are_private_to_their_owner_whatever_the_umask_is() {
    let premises = Premises::new();
    let server = Server::of(premises.command_of(&["sh", "-c", "umask 0; exec \"$0\"", &program()])).await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria?").await;
    watch.event("statement").await;
    let to = premises.path().join("copy.backup");
    let to = to.to_str().expect("UTF-8");

    let backed_up = premises.run(&["history", "backup", to]).await;
    let exported = premises.run(&["history", "export", "--out", "lines"]).await;

    assert_eq!((backed_up.code, exported.code), (Some(0), Some(0)), "{backed_up:?} {exported:?}");
    let running = open_to_others(&premises.data());
    server.stop().await;
    let mut restored = premises;
    restored.set("storage.path", "elsewhere");
    let restore = ["sh", "-c", "umask 0; exec \"$0\" history restore copy.backup", &program()];
    ran(restored.command_of(&restore)).await.exits_with(0);
    let elsewhere = restored.path().join("elsewhere");
    assert_eq!((running, open_to_others(&elsewhere)), (Vec::new(), Vec::new()));
    for file in ["copy.backup", "lines", "data", "elsewhere"] {
        assert!(!is_open(&restored.path().join(file)), "{file}");
    }
}

#[tokio::test]
async fn backups_and_exports_into_the_store_are_refused() {
    let premises = Premises::new();
    let server = premises.start().await;
    server.say("lobby", "Ana", "Aria?").await;
    let [backup, lines] = ["a.backup", "lines"].map(|name| premises.data().join("store").join(name));
    let try_both = async || {
        let backed_up = premises.run(&["history", "backup", backup.to_str().expect("UTF-8")]).await;
        let exported = premises.run(&["history", "export", "--out", lines.to_str().expect("UTF-8")]).await;
        [backed_up, exported]
    };

    let online = try_both().await;
    let to = backup.to_str().expect("UTF-8");
    let (status, problem) = server.ask(Method::POST, "/api/backup", Some(json!({ "to": to }))).await;
    server.stop().await;
    let offline = try_both().await;

    for (ran, target) in online.into_iter().chain(offline).zip([&backup, &lines].into_iter().cycle()) {
        let message = format!("{} lies in the data folder {},", target.display(), premises.data().display());
        assert!(ran.code == Some(2) && ran.stderr.contains(&format!("tertulia: {message}")), "{ran:?}");
    }
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &"to".into()), "{problem}");
    assert!(!backup.exists() && !lines.exists());
}

#[tokio::test]
async fn no_control_character_of_a_file_name_reaches_the_terminal() {
    let premises = Premises::new();
    let names = ["\u{1b}]0;there\u{7}.backup", "\u{1b}[31mgone"];
    fs::write(premises.path().join(names[0]), "no backup, no script").expect("it can be written");

    for name in names {
        for command in [&["history", "verify", name][..], &["replay", name], &["history", "restore", name]] {
            let ran = premises.run(command).await;
            assert!(ran.code != Some(0) && !ran.stderr.contains(['\u{1b}', '\u{7}']), "{command:?}: {ran:?}");
            assert!(ran.stderr.contains("\\u{1b}"), "{command:?}: {ran:?}");
        }
    }
}

/// Every file and folder below this folder that is accessible to anybody but its owner.
fn open_to_others(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| {
            let below = if path.is_dir() { open_to_others(&path) } else { Vec::new() };
            is_open(&path).then(|| path.display().to_string()).into_iter().chain(below)
        })
        .collect()
}

fn is_open(path: &Path) -> bool {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o077 != 0
}

#[tokio::test]
async fn a_world_readable_secret_is_warned_about() {
    let premises = Premises::new();
    let file = premises.path().join("token");
    fs::write(&file, ADMIN).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("permissions");
    let premises = premises.with("server.admin_token_file", "token");

    let checked = premises.run(&["check"]).await;
    let server = premises.start().await;
    let line = server.logs("server.admin_token_file").await;

    assert!(checked.stdout.contains("note: server.admin_token_file: everybody on this machine can read token"), "{checked:?}");
    assert!(line.contains("WARN") && line.contains("chmod o= token"), "{line}");
    server.stop().await;
}

#[tokio::test]
async fn no_secret_leaks_into_answers_outputs_or_the_log() {
    let outside = refusing("xylosaid").await;
    outside.wants_key(KEY);
    let premises = premises(&outside).with("server.admin_token", ADMIN).with("telemetry.log", "trace");
    let server = premises.start().await;
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let mut output = String::new();

    let wrong = client.get(format!("{}/api/rooms", server.url)).bearer_auth(format!("{ADMIN}x")).send().await.expect("an answer");
    output += &wrong.text().await.expect("a body");
    let signed_in =
        client.post(format!("{}/signin", server.url)).json(&json!({ "token": ADMIN })).send().await.expect("an answer");
    let cookie = signed_in.headers()["set-cookie"].to_str().expect("text").split(';').next().expect("a pair").to_owned();
    let message = client.post(format!("{}/api/rooms/lobby/messages", server.url)).header("cookie", &cookie);
    assert_eq!(message.json(&json!({ "from": "Ana", "text": "Aria?" })).send().await.expect("an answer").status(), 202);
    // The endpoint refuses, and its error quotes the key.
    server.logs("a model gives no answer").await;
    for path in [
        "/",
        "/metrics",
        "/readyz",
        "/api/rooms",
        "/api/companions",
        "/api/decisions?room=lobby",
        "/api/why?room=lobby",
        "/api/usage",
        "/api/quarantine",
        "/api/export",
        "/api/nothing",
    ] {
        let answer = client.get(format!("{}{path}", server.url)).bearer_auth(ADMIN).send().await.expect("an answer");
        output += &format!("{:?}", answer.headers());
        output += &answer.text().await.expect("a body");
    }
    for command in [
        &["check"][..],
        &["check", "--json"],
        &["health"],
        &["why", "lobby"],
        &["usage"],
        &["history", "verify"],
        &["history", "export"],
        &["history", "backup", "copy.backup"],
    ] {
        let ran = premises.run(command).await;
        output += &format!("{}{}", ran.stdout, ran.stderr);
    }
    output += &String::from_utf8_lossy(&fs::read(premises.path().join("copy.backup")).expect("a backup"));
    let log = server.stop().await;

    assert!(!outside.asked().is_empty(), "it was asked with the key");
    let session = cookie.split_once('=').expect("a value").1.to_owned();
    for secret in [ADMIN, KEY, &session] {
        assert!(!output.contains(secret), "an answer contains {secret}");
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "the log contains {secret}: {line:?}");
    }
}

#[tokio::test]
async fn outside_text_forges_no_log_line_and_controls_no_terminal() {
    let outside = refusing(HOSTILE).await;
    for form in ["text", "json"] {
        // This level includes the lines of every other one.
        let premises = premises(&outside).with("telemetry.log_format", form).with("telemetry.log", "info,tertulia=trace");
        let server = premises.start().await;
        ask_with_hostile_words(&server).await;
        server.logs("a model gives no answer").await;
        let mut shown = String::new();
        for command in [&["health"][..], &["why", "lobby"], &["why", "lobby", "aria"], &["usage"], &["why", HOSTILE]] {
            let ran = premises.run(command).await;
            shown += &format!("{}{}", ran.stdout, ran.stderr);
        }
        // Hostile text in the companions' files.
        premises.write_companion("eve", &format!("name = {}\ninterjection = {}\n", json!(HOSTILE), json!(HOSTILE)));
        premises.write_companion("e\nforged", "name = \"Eve\"\n");
        server.signal("HUP").await;
        server.logs_many("not reloaded", 3).await;
        let checked = premises.run(&["check"]).await;
        fs::remove_dir_all(premises.path().join("config/companions")).expect("a folder");
        shown += &format!("{}{}", checked.stdout, checked.stderr);
        let log = server.stop().await;

        assert!(!log.contains(controls_terminal), "{log:?}");
        assert!(!shown.contains(controls_terminal), "{shown:?}");
        assert!(shown.contains("desrever"), "the messages are shown: {shown:?}");
        // Exports are JSON for programs: direction marks are unchanged there.
        let exported = premises.run(&["history", "export"]).await;
        assert!(!exported.stdout.contains(|char: char| char.is_control() && char != '\n'), "{exported:?}");
        for line in log.lines() {
            assert!(is_log_line(line, form), "{line:?}");
            // The log never quotes people, models or programs. It quotes an operator's settings, with the file.
            assert!(!line.contains("forged") || line.contains("not reloaded"), "{line:?}");
        }
    }
}

/// Sends hostile text to every interface that takes text from outside.
async fn ask_with_hostile_words(server: &Server) {
    for at in
        ["rooms/lobby%0Aforged%1B%5B31m", "rooms/%E2%80%AElobby", "nothing%0d%0aforged", "decisions?room=%1b%5b31m&companion=%0a"]
    {
        server.ask(reqwest::Method::GET, &format!("/api/{at}"), None).await;
    }
    // Headers with bytes that are not ASCII, which programs may send.
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let forged = HeaderValue::from_bytes("forged decision=YES \u{202e}\u{9b}2J".as_bytes()).expect("a header");
    for name in ["host", "origin", "user-agent", "authorization", "x-forwarded-for", "traceparent"] {
        let request = client.get(format!("{}/api/rooms", server.url)).header(name, forged.clone());
        request.send().await.expect("an answer");
    }
    let den = json!({ "guild": "home", "companions": ["aria", { "id": "zed", "external": true }] });
    server.ask(reqwest::Method::PUT, "/api/rooms/den", Some(den)).await;
    // Some of these messages are accepted, and some are refused.
    let named = "Ana forged decision=YES \u{e0041}\u{200b}";
    let spoken = format!("Aria? {}", HOSTILE.replace(|char: char| char.is_control() && char != '\n', ""));
    let mut accepted = 0;
    for (from, text, id) in [
        ("Ana", &*spoken, "id forged decision=YES \u{202e}\u{2066}"),
        (named, "Aria?", "1"),
        (named, &spoken, "1 \u{2028}forged"),
        (HOSTILE, "Aria?", "2"),
        ("Ana", "Aria?", HOSTILE),
    ] {
        for room in ["lobby", "den"] {
            let message = json!({ "from": from, "text": text, "id": id });
            let (status, _) = server.ask(reqwest::Method::POST, &format!("/api/rooms/{room}/messages"), Some(message)).await;
            accepted += u32::from(status == StatusCode::ACCEPTED);
        }
        for plan in [json!({ "guild": from }), json!({ "guild": "home", "companions": [from] }), json!({ text: id })] {
            server.ask(reqwest::Method::PUT, "/api/rooms/cellar", Some(plan)).await;
        }
        let vote = json!({ "from": "zed", "messageId": HOSTILE, "state": "speak", "importance": 5, "closing": HOSTILE });
        server.ask(reqwest::Method::POST, "/api/rooms/den/states", Some(vote)).await;
        let words = json!({ "from": "zed", "message_id": "1", "text": spoken });
        server.ask(reqwest::Method::POST, "/api/rooms/den/statements", Some(words)).await;
    }
    assert_eq!(accepted, 6, "messages with valid names and ids are accepted in both rooms");
}

/// A model's endpoint that refuses every request. Its error quotes these words and the API key of the request.
async fn refusing(words: &'static str) -> Model {
    Model::start(move |_| Answer::Refused(403, format!("{words} of {{authorization}}"))).await
}

fn premises(outside: &Model) -> Premises {
    outside.serving_as("main", Premises::new()).with("models.main.api_key", KEY)
}
