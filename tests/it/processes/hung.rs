//! A process whose runtime hangs must end, so that its service manager starts it again.
//!
//! No message makes the server itself hang; that would be a bug. So most tests start their own program again, which hangs under the same watchdog.
//! One blocks the threads of the real program from outside with strace (Debian: `strace`), in the system call with which a runtime waits for sockets
//! and timers. The watchdog's thread waits with another call.

use std::process::Stdio;

use reqwest::Method;
use serde_json::json;
use tertulia::actors::runtime::directory::Address;
use tertulia::actors::runtime::watchdog::{STALLED_EXIT_STATUS, Watchdog, at_message, at_work};
use tertulia::domain::id::Seq;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::halted::assert_all_answered;
use crate::harness::model::Model;
use crate::harness::{Lines, PATIENCE, Premises, Server, ran};

/// The environment variable that tells this test's own program what should hang.
const TO_HANG: &str = "TERTULIA_TEST_TO_HANG";
/// The watchdog's limit in seconds. In the server it is thirty.
const LIMIT: u32 = 2;
/// The calls in which a runtime waits (not every processor has both). Each is delayed by an hour.
const DELAYED: &str = "inject=?epoll_wait,?epoll_pwait:delay_enter=3600000000";
/// The traced calls: those, and one that sled's threads make every second, because strace prints a delayed call only when another one follows.
const TRACED: &str = "trace=?epoll_wait,?epoll_pwait,futex";

#[tokio::test]
async fn a_stalled_runtime_ends_the_process() {
    let ended = ran(hanging("runtime")).await.exits_with(STALLED_EXIT_STATUS);

    assert!(ended.stdout.contains("the runtime stalls"), "{ended:?}");
}

#[tokio::test]
async fn a_hung_handler_ends_the_process_although_the_rest_continues() {
    let ended = ran(hanging("handler")).await.exits_with(STALLED_EXIT_STATUS);

    assert!(ended.stdout.contains("a handler hangs") && ended.stdout.contains("console:lobby"), "{ended:?}");
    assert!(ended.stdout.contains("seq=7"), "{ended:?}");
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
            tokio::spawn(async move {
                let _at_work = (hung_tasks == 1).then(|| at_work(Address::Channel("console:lobby".into())));
                at_message(Seq(7));
                loop {
                    std::thread::park();
                }
            });
        }
        std::future::pending::<()>().await;
    });
}

/// `cargo test --test it -- --ignored runtime_hangs`, with Debian's package `strace`.
#[tokio::test]
#[ignore = "needs strace, and takes half a minute"]
async fn a_server_whose_runtime_hangs_ends_after_half_a_minute_and_nothing_is_lost_or_unanswered() {
    let model = Model::holding("main").await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    let addressed = server.say("lobby", "Ana", "hey aria, are you there?").await;
    model.wait_for_requests("main", 1).await;
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

    model.release();
    let server = premises.start().await;
    let body = server.done(Method::POST, "/api/rooms/lobby/messages", Some(message.clone())).await;
    let again = body["seq"].as_u64().expect("a number");
    let accepted = [(addressed, "hey aria, are you there?"), (unaddressed, "she is slow today"), (again, "is anybody there?")];
    let record = assert_all_answered(&server, &accepted, &message).await;
    assert!(record.answer(addressed).is_ok_and(|answer| answer > unaddressed));
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
