//! A server that runs.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Lines, PATIENCE, Ran, Watch};

/// A server that is ready. It is killed when it is dropped.
pub struct Server {
    pub url: String,
    child: Child,
    log: Lines,
    http: reqwest::Client,
    /// Stays as long as the server does, whoever forgets its premises.
    _folder: Option<Arc<TempDir>>,
}

impl Server {
    /// Starts a server by this command.
    pub async fn of(command: Command) -> Self {
        match Self::attempt(command).await {
            Ok(server) => server,
            Err(ended) => panic!("the server did not get ready: {ended:?}"),
        }
    }

    /// Starts a server by this command, unless it ends before it is ready.
    pub async fn attempt(mut command: Command) -> Result<Self, Ran> {
        let mut child = command.spawn().expect("the program can be started");
        let log = Lines::of(child.stderr.take().expect("piped"));
        let lines = Lines::of(child.stdout.take().expect("piped"));
        let ready = timeout(PATIENCE, lines.wait_for("ready ")).await.ok().flatten();
        let Some(ready) = ready else {
            let code = timeout(PATIENCE, child.wait()).await.expect("it ends without being ready").expect("its status").code();
            let stderr = timeout(PATIENCE, log.all()).await.expect("its log");
            return Err(Ran { code, stdout: lines.text(), stderr });
        };
        let url = ready.trim_start_matches("ready ").to_owned();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Ok(Self { url, child, log, http, _folder: None })
    }

    pub(super) fn living_in(self, folder: Arc<TempDir>) -> Self {
        Self { _folder: Some(folder), ..self }
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Asks the API; the body is JSON, or nothing.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let answered = self.try_ask(method, path, body).await;
        answered.unwrap_or_else(|error| panic!("no answer: {error}; its log:\n{}", self.log.text()))
    }

    /// Asks the API of a server that may have other troubles; why there is no whole answer.
    pub async fn try_ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<(StatusCode, Value), String> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answered = async {
            let response = request.send().await.map_err(|error| format!("{path}: {error:?}"))?;
            let status = response.status();
            let body = response.text().await.map_err(|error| format!("{path}: {error:?}"))?;
            Ok((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
        };
        timeout(PATIENCE, answered).await.expect("an answer in time")
    }

    /// What the API says, or why it does not.
    pub async fn try_get(&self, path: &str) -> Result<Value, String> {
        match self.try_ask(Method::GET, path, None).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, body) => Err(format!("{path}: {status}: {body}")),
        }
    }

    /// Begins to ask the API, for somebody who will not wait for the answer.
    pub fn begin(&self, method: Method, path: &str, body: Option<Value>) {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = body.into_iter().fold(request, |request, body| request.json(&body));
        tokio::spawn(async move { drop(request.send().await) });
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Says something in a room; the number of the message, once it is accepted.
    pub async fn say(&self, room: &str, from: &str, text: &str) -> u64 {
        let said = json!({ "from": from, "text": text });
        let (status, body) = self.ask(Method::POST, &format!("/api/rooms/{room}/messages"), Some(said)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
        body["seq"].as_u64().expect("a number")
    }

    /// The messages of a room, as `(seq, from, text)`.
    pub async fn history(&self, room: &str) -> Vec<(u64, String, String)> {
        let mut told: Vec<(u64, String, String)> = Vec::new();
        loop {
            let after = told.last().map_or(0, |(seq, ..)| *seq);
            let page = self.get(&format!("/api/rooms/{room}/history?after={after}&limit=1000")).await;
            let page = page["messages"].as_array().expect("messages").clone();
            let text = |message: &Value, field: &str| message[field].as_str().expect("text").to_owned();
            told.extend(
                page.iter()
                    .map(|message| (message["seq"].as_u64().expect("a number"), text(message, "from"), text(message, "text"))),
            );
            if page.len() < 1000 {
                return told;
            }
        }
    }

    /// The state of a room once nothing is open in it any more.
    pub async fn rest(&self, room: &str) -> Value {
        self.rest_within(room, PATIENCE).await
    }

    /// The same, with this much time between two things that happen there.
    pub async fn rest_within(&self, room: &str, patience: Duration) -> Value {
        if let Some(state) = self.resting(room).await {
            return state;
        }
        let mut watch = self.watch(room, None).await;
        loop {
            if let Some(state) = self.resting(room).await {
                return state;
            }
            let event = watch.next_within(patience).await.expect("the server is there");
            // It is told once it is on record, and its room may take it in a moment later, of which nothing is told any more.
            if event["event"] == "message" && !room.contains(':') {
                self.wait_for_scribe(room).await;
            }
        }
    }

    /// Changes nothing in a room of the console, which is answered once everything that was told has been handed on to its room.
    async fn wait_for_scribe(&self, room: &str) {
        let (status, body) = self.ask(Method::PATCH, &format!("/api/rooms/{room}"), Some(json!({}))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }

    /// The state of a room, if nothing is open in it.
    async fn resting(&self, room: &str) -> Option<Value> {
        let state = self.get(&format!("/api/rooms/{room}/state")).await;
        let companions = state["companions"].as_array().expect("companions");
        let is_idle = |companion: &Value| {
            companion["buffer"].as_array().is_some_and(Vec::is_empty)
                && matches!(companion["doing"].as_str(), Some("listening" | "closing" | "closed"))
        };
        let is_resting = ["round", "turn", "floor"].iter().all(|open| state[open].is_null()) && companions.iter().all(is_idle);
        is_resting.then_some(state)
    }

    /// Watches a room from this event on.
    pub async fn watch(&self, room: &str, after: Option<u64>) -> Watch {
        let after = after.map_or_else(String::new, |after| format!("&after={after}"));
        let url = format!("{}/api/live?room={room}{after}", self.url.replacen("http", "ws", 1));
        Watch::of(&url).await
    }

    /// Sends a signal: `TERM`, `HUP`.
    pub async fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().await;
        assert!(sent.expect("kill can be run").success(), "the server is gone");
    }

    /// The lines of its log so far that have these words, and those that warn.
    pub fn told_of(&self, words: &str) -> Vec<String> {
        let text = self.log.text();
        let told = text.lines().filter(|line| [words, " WARN ", "ERROR"].iter().any(|sign| line.contains(sign)));
        told.map(str::to_owned).collect()
    }

    /// Waits for a line of the log with these words.
    pub async fn logs(&self, words: &str) -> String {
        let line = timeout(PATIENCE, self.log.wait_for(words)).await.ok().flatten();
        line.unwrap_or_else(|| panic!("no line says {words:?}:\n{}", self.log.text()))
    }

    /// Waits until so many lines of the log have these words.
    pub async fn logs_many(&self, words: &str, times: usize) {
        let line = timeout(PATIENCE, self.log.wait_for_many(words, times)).await.ok().flatten();
        assert!(line.is_some(), "less than {times} lines say {words:?}:\n{}", self.log.text());
    }

    /// The values of an instrument, by its labels.
    pub async fn measured(&self, name: &str) -> BTreeMap<String, f64> {
        let metrics = self.get("/metrics").await;
        let of = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            labels.starts_with(['{', ' ']).then_some(())?;
            Some((labels.to_owned(), value.parse().ok()?))
        };
        metrics.as_str().expect("text").lines().filter_map(of).collect()
    }

    /// Bytes of memory that it occupies.
    pub fn member(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the server ends").expect("its status");
        (status, timeout(PATIENCE, self.log.all()).await.expect("its log"))
    }

    /// Kills it as `kill -9` does, and waits until it is gone. Returns its log.
    pub async fn kill(mut self) -> String {
        self.child.start_kill().expect("it runs");
        self.ended().await.1
    }

    /// Ends it as an operator does.
    pub async fn stop(self) {
        self.signal("TERM").await;
        let (status, log) = self.ended().await;
        assert!(status.success(), "{status}:\n{log}");
    }
}
