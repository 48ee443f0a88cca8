//! A record with a valid checksum that cannot be decoded: the messages of the commands, with and without a server.

use std::fs;
use std::path::Path;

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Premises, serve_answer};

const HEADER: usize = b"tertulia backup 1\n".len();
/// The kinds in the keys of events and of snapshots.
const JOURNAL: u8 = 1;
const SNAPSHOT: u8 = 3;

#[tokio::test]
async fn verify_names_an_undecodable_record_and_a_remedy() {
    let premises = Premises::new();
    let server = premises.start().await;
    for text in ["one", "two", "three"] {
        server.say("lobby", "Ana", text).await;
    }
    server.stop().await;
    assert_eq!(premises.run(&["history", "backup", "sound.backup"]).await.code, Some(0));
    let last = write_damaged_copy(&premises.path().join("sound.backup"), &premises.path().join("torn.backup"));
    std::fs::rename(premises.data(), premises.path().join("before")).expect("it can be moved");

    let backup_verified = premises.run(&["history", "verify", "torn.backup", "--json"]).await;
    let restored = premises.run(&["history", "restore", "torn.backup", "--json"]).await;
    let offline = premises.run(&["history", "verify"]).await;
    let forgotten = premises.run(&["history", "forget", "--guild", "home", "--person", "Ana", "--yes"]).await.exits_with(3);
    let server = premises.start().await;
    server.say("lobby", "Ben", "is anybody there?").await;
    server.logs("this channel cannot continue").await;
    let online = premises.run(&["history", "verify"]).await;
    let state = server.get("/api/rooms/lobby/state").await;
    let why = premises.run(&["why", "lobby"]).await;
    let quarantine = server.get("/api/quarantine").await;
    server.stop().await;

    let named = format!("event {last} of channel console:lobby of guild home cannot be read: it is cut off at byte 5");
    let problems = backup_verified.object()["problems"].clone();
    assert!(
        backup_verified.code == Some(1) && problems[0] == named && backup_verified.object()["sound"] == false,
        "{backup_verified:?}"
    );
    assert!(restored.code == Some(0) && restored.object()["problems"] == problems, "{restored:?}");
    let words = format!("torn.backup is damaged, and is restored as it is: 1 problem was found:\n    {named}\n");
    assert!(restored.stderr.contains(&words) && restored.stderr.contains("restore an earlier backup"), "{restored:?}");
    for verified in [&offline, &online] {
        assert_eq!(verified.code, Some(1), "{verified:?}");
        let says = |words: &str| verified.stderr.contains(words);
        assert!(says(&named) && says("history restore") && says("DELETE /api/rooms/ROOM"), "{verified:?}");
        assert!(!says("--accept-loss"), "that would not help: {verified:?}");
    }
    assert!(forgotten.stderr.contains("1 entry cannot be read and may be this person's"), "{forgotten:?}");
    assert!(state["kept_away"]["detail"].as_str().is_some_and(|detail| detail.contains(&named)), "{state}");
    let text = why.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.code == Some(0) && text.contains(&format!("Event {last} cannot be read")), "{why:?}");
    let listed = quarantine["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(matches!(listed, [one] if one["room"] == "lobby" && detail(one).contains(&named)), "{quarantine}");
}

#[tokio::test]
async fn verify_reports_an_unreadable_store_as_json_too() {
    let premises = Premises::new();
    let damaged = Json(json!({ "type": "urn:tertulia:damaged", "detail": "event 3 cannot be read" }));
    let url = serve_answer(StatusCode::INTERNAL_SERVER_ERROR, damaged).await;
    fs::create_dir(premises.data()).expect("a folder");
    let lock = fs::File::create(premises.data().join("lock")).expect("a file");
    lock.try_lock().expect("it is free");
    fs::write(premises.data().join("server.json"), json!({ "url": url, "pid": 1 }).to_string()).expect("a file");

    let online = premises.run(&["history", "verify", "--json"]).await;
    drop(lock);
    fs::create_dir(premises.data().join("store")).expect("a folder");
    fs::write(premises.data().join("manifest"), "torn").expect("a file");
    let offline = premises.run(&["history", "verify", "--json"]).await;

    for (ran, words) in [(online, "event 3 cannot be read"), (offline, "its manifest cannot be read")] {
        let report = ran.object();
        assert!(ran.code == Some(3) && report["sound"] == false && report["problem_count"] == 1, "{ran:?}");
        let problem = report["problems"][0].as_str().unwrap_or_default();
        assert!(problem.contains(words) && ran.stderr.contains(problem), "{ran:?}");
    }
}

fn detail(entry: &Value) -> &str {
    entry["detail"].as_str().unwrap_or_default()
}

/// Writes a copy of a backup in which the last event of a journal is cut off, and the snapshots, which may contain it, are missing. The checksum
/// is valid. Returns the event's number.
fn write_damaged_copy(from: &Path, to: &Path) -> u64 {
    let bytes = std::fs::read(from).expect("a backup");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut records: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut at = HEADER;
    while number(at) != u32::MAX {
        let (key, value) = (number(at) as usize, number(at + 4) as usize);
        let begin = at + 8;
        records.push((bytes[begin..begin + key].to_vec(), bytes[begin + key..begin + key + value].to_vec()));
        at = begin + key + value;
    }
    records.retain(|(key, _)| key[1] != SNAPSHOT);
    let (key, value) = records.iter_mut().rfind(|(key, _)| key[1] == JOURNAL).expect("an event");
    *value = b"\x01{\"at\"".to_vec();
    let last = u64::from_be_bytes(*key.last_chunk().expect("a number"));

    let mut out = bytes[..HEADER].to_vec();
    for (key, value) in &records {
        out.extend(u32::try_from(key.len()).expect("short").to_be_bytes());
        out.extend(u32::try_from(value.len()).expect("short").to_be_bytes());
        out.extend(key);
        out.extend(value);
    }
    out.extend(u32::MAX.to_be_bytes());
    out.extend((records.len() as u64).to_be_bytes());
    let hash = out.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    out.extend(hash.to_be_bytes());
    std::fs::write(to, out).expect("it can be written");
    last
}
