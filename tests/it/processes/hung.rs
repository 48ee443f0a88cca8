//! A process whose runtime hangs ends, so that whoever runs it starts it again.
//!
//! Nothing that is said makes the server itself hang, which would be a fault. So it is this test's own program, started once more, that hangs
//! under the watchdog that the server has. (The server itself is held from outside in `ordeals/hung.rs`.)

use std::process::Stdio;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tertulia::actors::runtime::directory::Address;
use tertulia::actors::runtime::watchdog::{STALLED_EXIT_STATUS, Watchdog, at_message, at_work};
use tertulia::domain::id::Seq;
use tertulia::journal::channel_key::ChannelKey;
use tokio::process::Command;

use crate::harness::{Premises, QUICK, ran};

/// Which of the programs below is to hang, in the environment of this test's own program.
const TO_HANG: &str = "TERTULIA_TEST_TO_HANG";
/// Seconds without a sign of life; the server has thirty.
const LIMIT: u32 = 2;

#[tokio::test]
async fn a_runtime_that_stalls_ends_the_process() {
    let ended = ran(hanging("runtime")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("the runtime stalls"), "{ended:?}");
}

#[tokio::test]
async fn a_handler_that_never_ends_ends_the_process_although_the_rest_goes_on() {
    let ended = ran(hanging("handler")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("a handler hangs") && ended.stdout.contains("console:lobby"), "{ended:?}");
    assert!(ended.stdout.contains("seq=7"), "{ended:?}");
}

#[tokio::test]
async fn a_message_over_which_the_server_hung_three_times_is_set_aside_at_the_next_start() {
    let premises = Premises::new().with_companion("aria", QUICK);
    let server = premises.start().await;
    let poison = server.say("lobby", "Ana", "well").await;
    let other = server.say("lobby", "Ana", "well, well").await;
    server.kill().await;
    // As the watchdog leaves it.
    let stuck = |seq: u64, times: u32| json!({ "channel": "console:lobby", "seq": seq, "times": times });
    let note = premises.data().join("stalled.json");
    std::fs::write(&note, json!([stuck(poison, 3), stuck(other, 2)]).to_string()).expect("written");

    let server = premises.start().await;

    let listed = server.get("/api/quarantine").await["messages"].clone();
    assert_eq!((listed[0]["seq"].as_u64(), listed.as_array().map(Vec::len)), (Some(poison), Some(1)), "{listed}");
    let noted: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&note).expect("the other is still noted")).expect("an array");
    assert_eq!(noted.as_array().map(|noted| noted.iter().map(|entry| entry["seq"].as_u64()).collect()), Some(vec![Some(other)]));
    let id = listed[0]["id"].as_str().expect("an id");
    let (status, _) = server.ask(Method::POST, &format!("/api/quarantine/{id}/retry"), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let texts: Vec<_> = server.history("lobby").await.into_iter().filter(|(_, from, _)| from == "Ana").collect();
    assert_eq!(texts.iter().map(|(.., text)| text.as_str()).collect::<Vec<_>>(), ["well, well", "well"]);
    assert_eq!(server.get("/api/quarantine").await["messages"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_companion_that_hangs_over_a_question_is_named_with_its_guild_and_channel() {
    let ended = ran(hanging("question")).await;

    assert_eq!(ended.code, Some(STALLED_EXIT_STATUS), "{ended:?}");
    assert!(ended.stdout.contains("guild=home channel=console:lobby companion=aria"), "{ended:?}");
}

fn hanging(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", "processes::hung::hangs", "--ignored", "--nocapture"]).env(TO_HANG, what).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
#[ignore = "hangs when it is told to, for the tests above"]
fn hangs() {
    let Ok(what) = std::env::var(TO_HANG) else { return };
    tracing_subscriber::fmt().with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let _watchdog = Watchdog::start(LIMIT).expect("a thread");
        let hangs = if what == "runtime" { 2 } else { 1 };
        for _ in 0..hangs {
            let is_asking = what == "question";
            tokio::spawn(async move {
                let channel_key = ChannelKey::new(&"home".into(), &"console:lobby".into());
                let _at_work = match (hangs, is_asking) {
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
