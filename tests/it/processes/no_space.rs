//! A server without disk space, or without write permission.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::harness::{PATIENCE, Premises, Server, program, ran, skipped};

#[tokio::test]
async fn a_file_size_limit_ends_the_server_and_loses_no_accepted_message() {
    let premises = Premises::new().with("server.requests_per_second", "1000000");
    // The limit of a file's size: two mebibytes, in blocks of half a kibibyte.
    let limited = format!("ulimit -f 4096; exec {}", program());
    let server = Server::of(premises.command_of(&["sh", "-c", &limited])).await;
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut accepted = Vec::new();
    for number in 0.. {
        let message = json!({ "from": "Ana", "text": format!("{number} {}", "and so on ".repeat(600)).trim_end() });
        let sent = http.post(format!("{}/api/rooms/lobby/messages", server.url)).json(&message).send();
        match tokio::time::timeout(PATIENCE, sent).await.expect("an answer in time") {
            Ok(response) if response.status() == 202 => {
                let body: serde_json::Value = response.json().await.expect("JSON");
                accepted.push((body["seq"].as_u64().expect("a number"), message["text"].as_str().expect("text").to_owned()));
            }
            _ => break,
        }
    }

    let (status, log) = server.ended().await;

    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("the store accepts no more writes"), "{log}");
    assert!(!accepted.is_empty());
    let server = premises.start().await;
    let stored: Vec<_> = server.history("lobby").await.into_iter().filter(|(_, from, _)| from == "Ana").collect();
    for (seq, text) in &accepted {
        assert_eq!(
            stored.iter().filter(|(other_seq, _, other_text)| other_seq == seq && other_text == text).count(),
            1,
            "message {seq} is not stored exactly once"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn an_unwritable_data_folder_is_refused() {
    let premises = Premises::new();
    fs::create_dir(premises.data()).expect("a folder");
    permit(premises.path(), 0o755);
    permit(&premises.data(), 0o555);
    let probe = premises.command_of(&["sh", "-c", "test -w data"]);
    let is_root = ran(probe).await.code == Some(0);
    let binary = env!("CARGO_BIN_EXE_tertulia");
    let setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let line: Vec<&str> = if is_root { setpriv.into_iter().chain([binary]).collect() } else { vec![binary] };
    if is_root {
        let mut version = premises.command_of(&[&setpriv[..], &[binary, "--version"]].concat());
        if !version.status().await.is_ok_and(|status| status.success()) {
            return skipped("this user can write to every folder, and the program cannot be run as another user");
        }
    }

    let refused = ran(premises.command_of(&line)).await;

    permit(&premises.data(), 0o755);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("cannot be written to: give it to the user that runs this"), "{refused:?}");
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions can be set");
}
