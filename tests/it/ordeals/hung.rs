//! The real program with a hung runtime: the process ends on its own after half a minute, and the next start continues with everything.
//!
//! No message makes the program hang. So strace (Debian: `strace`) blocks its threads from outside, in the system call with which a runtime waits
//! for sockets and timers. The watchdog's thread waits with another call.

use std::process::Stdio;
use std::sync::atomic::Ordering;

use reqwest::Method;
use serde_json::json;
use tertulia::actors::runtime::watchdog::STALLED_EXIT_STATUS;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::record::Record;
use crate::harness::{Lines, PATIENCE, Premises, Server};
use crate::processes::crashes::{Model, wait};

/// The calls in which a runtime waits (not every processor has both). Each is delayed by an hour.
const DELAYED: &str = "inject=?epoll_wait,?epoll_pwait:delay_enter=3600000000";
/// The traced calls: those, and one that sled's threads make every second, because strace prints a delayed call only when another one follows.
const TRACED: &str = "trace=?epoll_wait,?epoll_pwait,futex";

/// `cargo test --test it -- --ignored runtime_hangs`, with Debian's package `strace`.
#[tokio::test]
#[ignore = "needs strace, and takes half a minute"]
async fn a_server_whose_runtime_hangs_ends_after_half_a_minute_and_nothing_is_lost_or_unanswered() {
    let model = Model::start().await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    let addressed = server.say("lobby", "Ana", "hey aria, are you there?").await;
    let mut requests = model.statements_asked.subscribe();
    wait(&mut requests, 1).await;
    let unaddressed = server.say("lobby", "Bob", "she is slow today").await;

    let mut blocker = Blocker::attach(&server).await;
    let message = json!({ "from": "Cleo", "text": "is anybody there?", "id": "cleos" });
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let pending = tokio::spawn(http.post(format!("{}/api/rooms/lobby/messages", server.url)).json(&message).send());
    blocker.wait_for_the_end().await;
    let (status, log) = server.ended().await;

    assert_eq!(status.code(), Some(STALLED_EXIT_STATUS), "{log}");
    let named =
        log.lines().any(|line| line.contains("ERROR") && line.contains("the runtime stalls") && line.contains("silent_secs=30"));
    assert!(named, "{log}");
    let response = timeout(PATIENCE, pending).await.expect("an end in time").expect("it is sent");
    assert!(response.is_err(), "{response:?}");
    // No message caused the hang, so none is blamed.
    assert!(!premises.data().join("stalled.json").exists());

    model.holds_back.store(false, Ordering::SeqCst);
    let server = premises.start().await;
    let (status, body) = server.ask(Method::POST, "/api/rooms/lobby/messages", Some(message.clone())).await;
    assert_eq!(status, 202, "{body}");
    let again = body["seq"].as_u64().expect("a number");
    let record = Record::at_rest(&server, "lobby", &message).await;
    record.assert_exact(&[addressed, unaddressed, again]);
    assert!(record.answer(addressed).is_ok_and(|answer| answer > unaddressed), "{record:#?}");
    let statements: Vec<_> = server.history("lobby").await.into_iter().filter(|(_, from, _)| from == "aria").collect();
    assert_eq!(statements.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), record.statements(), "{statements:?}");
    assert_eq!(server.get("/api/quarantine").await["messages"], json!([]));
    server.stop().await;
}

/// A strace that blocks every thread of a server that waits for sockets and timers, until it is dropped.
struct Blocker {
    strace: Child,
    output: Lines,
}

impl Blocker {
    async fn attach(server: &Server) -> Self {
        let id = server.id().to_string();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-p", &id, "-e", TRACED, "-e", DELAYED]);
        strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut strace = strace.spawn().expect("strace can be started");
        let output = Lines::of(strace.stderr.take().expect("piped"));
        let blocked = timeout(PATIENCE, output.wait_for(" epoll_")).await.ok().flatten();
        assert!(blocked.is_some(), "strace does not block it: {}", output.text());
        Self { strace, output }
    }

    /// Waits until the program ends on its own, and detaches strace, because a blocked thread cannot end before that. The exit status must be the
    /// watchdog's: an idle thread ends earlier, with another status.
    async fn wait_for_the_end(&mut self) {
        let end = format!("+++ exited with {STALLED_EXIT_STATUS} +++");
        let ended = timeout(PATIENCE, self.output.wait_for(&end)).await.ok().flatten();
        assert!(ended.is_some(), "the program still runs: {}", self.output.text());
        self.strace.kill().await.expect("it runs");
    }
}
