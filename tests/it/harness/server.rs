//! A running server.

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

/// How many lines of its log a failing test shows.
const LINES_SHOWN: usize = 40;

/// A server that is ready. It is killed when it is dropped.
pub struct Server {
    pub url: String,
    child: Child,
    log: Lines,
    http: reqwest::Client,
    /// Keeps the folder as long as the server, even if its premises are dropped.
    _folder: Option<Arc<TempDir>>,
}

impl Server {
    /// Starts a server by this command. Panics if it ends before it is ready.
    pub async fn of(command: Command) -> Self {
        match Self::attempt(command).await {
            Ok(server) => server,
            Err(ended) => panic!("the server did not get ready: {ended:?}"),
        }
    }

    /// Starts a server that will serve at this URL, perhaps only after it has stood by.
    pub fn beginning(mut command: Command, url: String) -> Self {
        let mut child = command.spawn().expect("the program can be started");
        let log = Lines::of(child.stderr.take().expect("piped"));
        // Its output is read, so that it never waits.
        Lines::of(child.stdout.take().expect("piped"));
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { url, child, log, http, _folder: None }
    }

    /// Starts a server by this command. An error if it ends before it is ready.
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

    pub(super) fn with_folder(mut self, folder: Arc<TempDir>) -> Self {
        self._folder = Some(folder);
        self
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends a request to the API, with a JSON body or none.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let result = self.try_ask(method, path, body).await;
        result.unwrap_or_else(|error| panic!("no answer: {error}; its log:\n{}", self.log.text()))
    }

    /// Sends a request to the API of a server that may be failing. The error says why there is no complete answer.
    pub async fn try_ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<(StatusCode, Value), String> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = async {
            let response = request.send().await.map_err(|error| format!("{path}: {error:?}"))?;
            let status = response.status();
            let body = response.text().await.map_err(|error| format!("{path}: {error:?}"))?;
            Ok((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
        };
        timeout(PATIENCE, response).await.expect("an answer in time")
    }

    /// The body of a GET request. The error says why it did not succeed.
    pub async fn try_get(&self, path: &str) -> Result<Value, String> {
        match self.try_ask(Method::GET, path, None).await? {
            (StatusCode::OK, body) => Ok(body),
            (status, body) => Err(format!("{path}: {status}: {body}")),
        }
    }

    /// Sends a request to the API without waiting for the answer.
    pub fn begin(&self, method: Method, path: &str, body: Option<Value>) {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = body.into_iter().fold(request, |request, body| request.json(&body));
        tokio::spawn(async move { drop(request.send().await) });
    }

    /// Sends a request that must succeed, and returns the body of the answer.
    pub async fn done(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, body) = self.ask(method, path, body).await;
        assert!(status.is_success(), "{path}: {status}: {body}");
        body
    }

    pub async fn get(&self, path: &str) -> Value {
        self.done(Method::GET, path, None).await
    }

    /// Sends a message to a room. Returns its number once it is accepted.
    pub async fn say(&self, room: &str, from: &str, text: &str) -> u64 {
        let message = json!({ "from": from, "text": text });
        let body = self.done(Method::POST, &format!("/api/rooms/{room}/messages"), Some(message)).await;
        body["seq"].as_u64().expect("a number")
    }

    /// The messages of a room, as `(seq, from, text)`.
    pub async fn history(&self, room: &str) -> Vec<(u64, String, String)> {
        let mut messages: Vec<(u64, String, String)> = Vec::new();
        loop {
            let after = messages.last().map_or(0, |(seq, ..)| *seq);
            let page = self.get(&format!("/api/rooms/{room}/history?after={after}&limit=1000")).await;
            let page = page["messages"].as_array().expect("messages").clone();
            let text = |message: &Value, field: &str| message[field].as_str().expect("text").to_owned();
            messages.extend(
                page.iter()
                    .map(|message| (message["seq"].as_u64().expect("a number"), text(message, "from"), text(message, "text"))),
            );
            if page.len() < 1000 {
                return messages;
            }
        }
    }

    /// Waits until nothing is open in a room, and returns its state.
    pub async fn rest(&self, room: &str) -> Value {
        self.rest_within(room, PATIENCE).await
    }

    /// Like [`Self::rest`]. `patience` limits the wait for each next event.
    pub async fn rest_within(&self, room: &str, patience: Duration) -> Value {
        let state = self.state_once_at_rest(room, patience).await;
        // The state shows what happened before the last of it is on record.
        if !room.contains(':') {
            self.wait_for_writer(room).await;
        }
        state
    }

    async fn state_once_at_rest(&self, room: &str, patience: Duration) -> Value {
        if let Some(state) = self.state_at_rest(room).await {
            return state;
        }
        let mut watch = self.watch(room, None).await;
        loop {
            if let Some(state) = self.state_at_rest(room).await {
                return state;
            }
            let event = watch.next_within(patience).await.expect("the server runs");
            // A message is published once it is on record. Its channel may handle it a moment later, without publishing anything more.
            if event["event"] == "message" && !room.contains(':') {
                self.wait_for_writer(room).await;
            }
        }
    }

    /// Sends a change to a room of the console that changes nothing. It is answered once the writer has dispatched every earlier event to the room.
    async fn wait_for_writer(&self, room: &str) {
        self.done(Method::PATCH, &format!("/api/rooms/{room}"), Some(json!({}))).await;
    }

    /// The state of a room, if nothing is open in it.
    async fn state_at_rest(&self, room: &str) -> Option<Value> {
        let state = self.get(&format!("/api/rooms/{room}/state")).await;
        let companions = state["companions"].as_array().expect("companions");
        let is_idle = |companion: &Value| {
            companion["buffer"].as_array().is_some_and(Vec::is_empty)
                && matches!(companion["doing"].as_str(), Some("listening" | "closing" | "closed"))
        };
        let is_empty = |open: &str| state[open].as_array().is_none_or(Vec::is_empty);
        let is_free = ["turn", "floor"].iter().all(|open| state[open].is_null()) && is_empty("rounds") && is_empty("late");
        (is_free && companions.iter().all(is_idle)).then_some(state)
    }

    /// Watches a room from its first event, says this as Ana, and waits for the statement that follows. Returns the number of her message.
    pub async fn exchange(&self, room: &str, text: &str) -> (Watch, u64) {
        let mut watch = self.watch(room, Some(0)).await;
        let seq = self.say(room, "Ana", text).await;
        watch.event("statement").await;
        (watch, seq)
    }

    /// Watches a room, from the event after this one if it is given.
    pub async fn watch(&self, room: &str, after: Option<u64>) -> Watch {
        let after = after.map_or_else(String::new, |after| format!("&after={after}"));
        let url = format!("{}/api/live?room={room}{after}", self.url.replacen("http", "ws", 1));
        Watch::of(&url).await
    }

    /// Watches all rooms, from this cursor if it is not empty.
    pub async fn watch_rooms(&self, after: &str) -> Watch {
        Watch::of(&format!("{}/api/live?after={after}", self.url.replacen("http", "ws", 1))).await
    }

    /// Sends a signal: `TERM`, `HUP`.
    pub async fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().await;
        assert!(sent.expect("kill can be run").success(), "the server has ended");
    }

    /// The lines of the log so far that have these words, and all warnings and errors.
    pub fn log_lines_with(&self, words: &str) -> Vec<String> {
        let text = self.log.text();
        // Some machines allow few open files.
        let lines = text.lines().filter(|line| !line.contains("ulimit -n"));
        let lines = lines.filter(|line| [words, " WARN ", "ERROR"].iter().any(|sign| line.contains(sign)));
        lines.map(str::to_owned).collect()
    }

    /// Waits for a line of the log with these words.
    pub async fn logs(&self, words: &str) -> String {
        let line = timeout(PATIENCE, self.log.wait_for(words)).await.ok().flatten();
        line.unwrap_or_else(|| panic!("no line says {words:?}:\n{}", self.log.text()))
    }

    /// Waits until `times` lines of the log have these words.
    pub async fn logs_many(&self, words: &str, times: usize) {
        let line = timeout(PATIENCE, self.log.wait_for_many(words, times)).await.ok().flatten();
        assert!(line.is_some(), "fewer than {times} lines say {words:?}:\n{}", self.log.text());
    }

    /// The values of a metric, by its labels.
    pub async fn measured(&self, name: &str) -> BTreeMap<String, f64> {
        let metrics = self.get("/metrics").await;
        let sample = |line: &str| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            labels.starts_with(['{', ' ']).then_some(())?;
            Some((labels.to_owned(), value.parse().ok()?))
        };
        metrics.as_str().expect("text").lines().filter_map(sample).collect()
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux reports VmRSS");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// The number of its open sockets.
    pub fn sockets(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").flatten();
        open.filter(|one| std::fs::read_link(one.path()).is_ok_and(|of| of.to_string_lossy().starts_with("socket:"))).count()
    }

    /// Processor time so far.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        // In ticks of 10 ms (proc_pid_stat(5)), behind the name, which may contain spaces.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        Duration::from_millis(fields.map(|ticks| 10 * ticks.parse::<u64>().expect("a number")).sum())
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_some()
    }

    /// Waits until the server has ended. Returns its status and its log.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the server ends").expect("its status");
        (status, timeout(PATIENCE, self.log.all()).await.expect("its log"))
    }

    /// Kills the server with SIGKILL, and waits until it has ended. Returns its log.
    pub async fn kill(mut self) -> String {
        self.child.start_kill().expect("it runs");
        self.ended().await.1
    }

    /// Stops the server with SIGTERM, as an operator does. Returns its log.
    pub async fn stop(self) -> String {
        self.signal("TERM").await;
        let (status, log) = self.ended().await;
        assert!(status.success(), "{status}:\n{log}");
        log
    }
}

/// A test that fails shows the end of the log.
impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log.text();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines.len().saturating_sub(LINES_SHOWN);
            eprintln!("the end of the log of {}:\n{}", self.url, lines[end..].join("\n"));
        }
    }
}
