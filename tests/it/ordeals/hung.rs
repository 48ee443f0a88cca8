//! The real program, whose runtime hangs: it ends by itself after half a minute, and the next start goes on with everything.
//!
//! Nothing that anybody can say makes it hang. So strace (Debian: `strace`) holds its threads from outside, in the call by which a runtime
//! waits for sockets and timers; the thread of the watchdog waits by another.

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

/// The calls in which a runtime waits (not every processor has both), each held for an hour before it is made.
const HELD: &str = "inject=?epoll_wait,?epoll_pwait:delay_enter=3600000000";
/// Those, and one that sled's threads make every second: a call that is held is told of only when another one follows.
const TOLD: &str = "trace=?epoll_wait,?epoll_pwait,futex";

/// `cargo test --test it -- --ignored runtime_hangs`, with Debian's package `strace`.
#[tokio::test]
#[ignore = "needs strace, and takes half a minute"]
async fn a_server_whose_runtime_hangs_ends_after_half_a_minute_and_the_next_one_owes_and_loses_nothing() {
    let model = Model::start().await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    let called = server.say("lobby", "Ana", "hey aria, are you there?").await;
    let mut asked = model.statements_asked.subscribe();
    wait(&mut asked, 1).await;
    let late = server.say("lobby", "Bob", "she is slow today").await;

    let mut holder = Holder::of(&server).await;
    let said = json!({ "from": "Cleo", "text": "is anybody there?", "id": "cleos" });
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let waiting = tokio::spawn(http.post(format!("{}/api/rooms/lobby/messages", server.url)).json(&said).send());
    holder.let_go_at_the_end().await;
    let (status, log) = server.ended().await;

    assert_eq!(status.code(), Some(STALLED_EXIT_STATUS), "{log}");
    let named =
        log.lines().any(|line| line.contains("ERROR") && line.contains("the runtime stalls") && line.contains("silent_secs=30"));
    assert!(named, "{log}");
    let left_alone = timeout(PATIENCE, waiting).await.expect("an end in time").expect("it is sent");
    assert!(left_alone.is_err(), "{left_alone:?}");
    // It was nobody's message over which it hung.
    assert!(!premises.data().join("stalled.json").exists());

    model.holds_back.store(false, Ordering::SeqCst);
    let server = premises.start().await;
    let (status, body) = server.ask(Method::POST, "/api/rooms/lobby/messages", Some(said.clone())).await;
    assert_eq!(status, 202, "{body}");
    let again = body["seq"].as_u64().expect("a number");
    let record = Record::at_rest(&server, "lobby", &said).await;
    record.assert_exact(&[called, late, again]);
    assert!(record.answer(called).is_ok_and(|answer| answer > late), "{record:#?}");
    let told: Vec<_> = server.history("lobby").await.into_iter().filter(|(_, from, _)| from == "aria").collect();
    assert_eq!(told.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), record.statements(), "{told:?}");
    assert_eq!(server.get("/api/quarantine").await["messages"], json!([]));
    server.stop().await;
}

/// A strace that holds every thread of a server that waits for sockets and timers, until it is dropped.
struct Holder {
    strace: Child,
    told: Lines,
}

impl Holder {
    async fn of(server: &Server) -> Self {
        let id = server.id().to_string();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-p", &id, "-e", TOLD, "-e", HELD]);
        strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut strace = strace.spawn().expect("strace can be started");
        let told = Lines::of(strace.stderr.take().expect("piped"));
        let holds = timeout(PATIENCE, told.wait_for(" epoll_")).await.ok().flatten();
        assert!(holds.is_some(), "strace does not hold it: {}", told.text());
        Self { strace, told }
    }

    /// Waits until the program ends by itself. What strace holds cannot end before it lets go; a thread that has nothing to do ends before that,
    /// with another status.
    async fn let_go_at_the_end(&mut self) {
        let end = format!("+++ exited with {STALLED_EXIT_STATUS} +++");
        let ended = timeout(PATIENCE, self.told.wait_for(&end)).await.ok().flatten();
        assert!(ended.is_some(), "it goes on: {}", self.told.text());
        self.strace.kill().await.expect("it runs");
    }
}
