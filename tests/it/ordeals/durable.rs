//! What was accepted is on disk before anybody is told so: not only handed to the kernel, which a kill of the process could not tell apart.
//!
//! It is looked at from outside, by strace (Debian: `strace`). That every commit syncs what it wrote is a unit test of the store
//! (`adapters/store/sled/durable/synced.rs`); that the system really is told is seen here.

use std::fs;
use std::path::Path;

use tokio::time::timeout;

use crate::harness::{PATIENCE, Premises, Server, program};

/// The calls that matter, with the files they are about.
const CALLS: &str = "trace=read,recvfrom,pwrite64,fsync,fdatasync,write,writev,sendto";

/// `cargo test --test it -- --ignored synced_before_anybody`, with Debian's package `strace`.
#[tokio::test]
#[ignore = "needs strace"]
async fn what_is_accepted_was_synced_before_anybody_is_told() {
    let premises = Premises::new();
    let trace = premises.path().join("trace");
    let file = trace.to_string_lossy().into_owned();
    // The program is the child, and whoever looks on is not.
    let line = ["strace", "-D", "-f", "-y", "-s", "400", "-e", CALLS, "-o", &file, &program()];
    let server = Server::of(premises.command_of(&line)).await;

    for number in 0..10 {
        server.say("lobby", "Ana", &format!("the words of message {number}, and of no other")).await;
    }
    server.rest("lobby").await;
    server.stop().await;

    let calls = timeout(PATIENCE, whole(&trace)).await.expect("strace ends with the program");
    let calls: Vec<&str> = calls.lines().collect();
    for number in 0..10 {
        let words = format!("the words of message {number}, and of no other");
        let at =
            |from: usize, what: &dyn Fn(&str) -> bool| calls[from..].iter().position(|call| what(call)).map(|found| from + found);
        let heard = at(0, &|call| is_heard(call, &words)).expect("it is read from a connection");
        let told = at(heard, &|call| call.contains("202 Accepted")).expect("it is accepted");
        let written = at(heard, &|call| call.contains("pwrite64(") && call.contains("/store/db>"));
        let written = written.filter(|written| *written < told).expect("it is written before that");
        let synced = (written..told).any(|at| is_synced(&calls[at..told]));
        assert!(synced, "{words:?} was accepted without a sync:\n{}", calls[heard..=told].join("\n"));
    }
}

/// What was written once the program that it is about has ended.
async fn whole(trace: &Path) -> String {
    loop {
        let calls = fs::read_to_string(trace).expect("strace writes it");
        let thread = |line: Option<&str>| line.and_then(|line| line.split_whitespace().next()).map(str::to_owned);
        let is_over = calls.lines().next_back().is_some_and(|line| line.contains("+++ exited with"));
        if is_over && thread(calls.lines().next()) == thread(calls.lines().next_back()) {
            return calls;
        }
        tokio::task::yield_now().await;
    }
}

fn is_heard(call: &str, words: &str) -> bool {
    (call.contains("read(") || call.contains("recvfrom(") || call.contains("resumed>")) && call.contains(words)
}

/// Whether the first of these calls syncs the database, and is over by the last of them.
fn is_synced(calls: &[&str]) -> bool {
    let Some(first) = calls.first().filter(|call| call.contains("fdatasync(") && call.contains("/store/db>")) else {
        return false;
    };
    if first.trim_end().ends_with("= 0") {
        return true;
    }
    let thread = first.split_whitespace().next().unwrap_or_default();
    let resumed = |call: &&&str| call.split_whitespace().next() == Some(thread) && call.contains("fdatasync resumed>");
    calls.iter().find(resumed).is_some_and(|call| call.trim_end().ends_with("= 0"))
}
