//! A message is on disk before it is acknowledged. Killing the process cannot show this, because data in the kernel's cache survives a kill.
//!
//! strace (Debian: `strace`) watches the system calls. A unit test of the store checks that every commit syncs what it wrote
//! (`adapters/store/sled/durable/synced.rs`). This test checks that the sync reaches the kernel.

use std::fs;
use std::path::Path;

use tokio::time::timeout;

use crate::harness::{PATIENCE, Premises, Server, program};

/// The system calls to trace.
const CALLS: &str = "trace=read,recvfrom,pwrite64,fsync,fdatasync,write,writev,sendto";

/// `cargo test --test it -- --ignored synced_before_it_is_acknowledged`, with Debian's package `strace`.
#[tokio::test]
#[ignore = "needs strace"]
async fn a_message_is_synced_before_it_is_acknowledged() {
    let premises = Premises::new();
    let trace = premises.path().join("trace");
    let file = trace.to_string_lossy().into_owned();
    // With `-D`, the program is the child of the test, and strace is not.
    let line = ["strace", "-D", "-f", "-y", "-s", "400", "-e", CALLS, "-o", &file, &program()];
    let server = Server::of(premises.command_of(&line)).await;

    for number in 0..10 {
        server.say("lobby", "Ana", &format!("the words of message {number}, and of no other")).await;
    }
    server.rest("lobby").await;
    server.stop().await;

    let calls = timeout(PATIENCE, complete_trace(&trace)).await.expect("strace ends with the program");
    let calls: Vec<&str> = calls.lines().collect();
    for number in 0..10 {
        let text = format!("the words of message {number}, and of no other");
        let find = |from: usize, is_wanted: &dyn Fn(&str) -> bool| {
            calls[from..].iter().position(|call| is_wanted(call)).map(|found| from + found)
        };
        let received = find(0, &|call| is_receipt(call, &text)).expect("the message is read from a connection");
        let acknowledged = find(received, &|call| call.contains("202 Accepted")).expect("the message is accepted");
        let written = find(received, &|call| call.contains("pwrite64(") && call.contains("/store/db>"));
        let written = written.filter(|written| *written < acknowledged).expect("the message is written before that");
        let synced = (written..acknowledged).any(|at| is_synced(&calls[at..acknowledged]));
        assert!(synced, "{text:?} was accepted without a sync:\n{}", calls[received..=acknowledged].join("\n"));
    }
}

/// Waits until the traced program has ended, and returns the trace.
async fn complete_trace(trace: &Path) -> String {
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

fn is_receipt(call: &str, text: &str) -> bool {
    (call.contains("read(") || call.contains("recvfrom(") || call.contains("resumed>")) && call.contains(text)
}

/// Whether the first of these calls syncs the database, and returns within these calls.
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
