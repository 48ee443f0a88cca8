//! A process whose runtime hangs must end, so that its service manager starts it again.
//!
//! No message makes the server itself hang; that would be a bug. So this test starts its own program again, which hangs under the same watchdog.
//! (`ordeals/hung.rs` halts the real server from outside.)

use std::process::Stdio;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tertulia::actors::runtime::directory::Address;
use tertulia::actors::runtime::watchdog::{STALLED_EXIT_STATUS, Watchdog, at_message, at_work};
use tertulia::domain::id::Seq;
use tertulia::journal::channel_key::ChannelKey;
use tokio::process::Command;

use crate::harness::{Premises, QUICK, ran};

/// The environment variable that tells this test's own program what should hang.
const TO_HANG: &str = "TERTULIA_TEST_TO_HANG";
/// The watchdog's limit in seconds. In the server it is thirty.
const LIMIT: u32 = 2;

#[tokio::test]
async fn a_stalled_runtime_ends_the_process() {
    let ended = ran(hanging("runtime")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("the runtime stalls"), "{ended:?}");
}

#[tokio::test]
async fn a_hung_handler_ends_the_process_although_the_rest_continues() {
    let ended = ran(hanging("handler")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("a handler hangs") && ended.stdout.contains("console:lobby"), "{ended:?}");
    assert!(ended.stdout.contains("seq=7"), "{ended:?}");
}

#[tokio::test]
async fn a_message_that_hung_the_server_three_times_is_a_dead_letter_at_the_next_start() {
    let premises = Premises::new().with_companion("aria", QUICK);
    let server = premises.start().await;
    let poison = server.say("lobby", "Ana", "well").await;
    let other = server.say("lobby", "Ana", "well, well").await;
    server.kill().await;
    // The watchdog writes such a file.
    let entry_for = |seq: u64, times: u32| json!({ "channel": "console:lobby", "seq": seq, "times": times });
    let stalled_file = premises.data().join("stalled.json");
    std::fs::write(&stalled_file, json!([entry_for(poison, 3), entry_for(other, 2)]).to_string()).expect("written");

    let server = premises.start().await;

    let listed = server.get("/api/quarantine").await["messages"].clone();
    assert_eq!((listed[0]["seq"].as_u64(), listed.as_array().map(Vec::len)), (Some(poison), Some(1)), "{listed}");
    let remaining: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&stalled_file).expect("the other message is still in the file"))
            .expect("an array");
    assert_eq!(
        remaining.as_array().map(|entries| entries.iter().map(|entry| entry["seq"].as_u64()).collect()),
        Some(vec![Some(other)])
    );
    let id = listed[0]["id"].as_str().expect("an id");
    let (status, _) = server.ask(Method::POST, &format!("/api/quarantine/{id}/retry"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let texts: Vec<_> = server.history("lobby").await.into_iter().filter(|(_, from, _)| from == "Ana").collect();
    assert_eq!(texts.iter().map(|(.., text)| text.as_str()).collect::<Vec<_>>(), ["well, well", "well"]);
    assert_eq!(server.get("/api/quarantine").await["messages"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn the_guild_channel_and_companion_of_a_hung_question_are_logged() {
    let ended = ran(hanging("question")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("guild=home channel=console:lobby companion=aria"), "{ended:?}");
}

fn hanging(hanging_part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command
        .args(["--exact", "processes::hung::hang_on_purpose", "--ignored", "--nocapture"])
        .env(TO_HANG, hanging_part)
        .kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
#[ignore = "hangs on purpose, for the tests above"]
fn hang_on_purpose() {
    let Ok(hanging_part) = std::env::var(TO_HANG) else { return };
    tracing_subscriber::fmt().with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let _watchdog = Watchdog::start(LIMIT).expect("a thread");
        let hung_tasks = if hanging_part == "runtime" { 2 } else { 1 };
        for _ in 0..hung_tasks {
            let is_asking = hanging_part == "question";
            tokio::spawn(async move {
                let channel_key = ChannelKey::new(&"home".into(), &"console:lobby".into());
                let _at_work = match (hung_tasks, is_asking) {
                    (1, false) => Some(at_work(Address::Channel(channel_key.channel))),
                    (1, true) => {
                        Some(at_work(Address::Companion("home".into(), "aria".into())).about(&channel_key, &"aria".into()))
                    }
                    _ => None,
                };
                at_message(Seq(7));
                loop {
                    std::thread::park();
                }
            });
        }
        std::future::pending::<()>().await;
    });
}
