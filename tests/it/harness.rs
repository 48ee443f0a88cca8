//! The real program in a folder of its own: started, talked to, watched, signalled, killed.
//!
//! Nothing here waits by the clock: a line, an event, an answer or the end of a process is waited for. [`PATIENCE`] only ends a wait for what
//! will never come.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// After this a wait is given up; nothing that is waited for takes a tenth of it, even on a machine with much else to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Where a server lives: its data, its settings, its environment.
pub struct Premises {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Premises {
    /// A server with Aria alone in its lobby on a free port, whose rehearsal answers at once.
    pub fn new() -> Self {
        Self::shipped().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = ["aria"] }]"#)
    }

    /// A server as it ships, with three companions in its lobby, on a free port, whose rehearsal answers at once.
    pub fn shipped() -> Self {
        let folder = tempfile::Builder::new().prefix("tertulia-").tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("config")).expect("a folder for settings");
        let premises = Self { folder, environment: Vec::new() };
        premises.with("server.listen", "127.0.0.1:0").with("models.rehearsal.pace", "0")
    }

    /// A setting, by its path.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.set(key, value);
        self
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, key: &str, value: &str) {
        let name = format!("TERTULIA__{}", key.to_uppercase().replace('.', "__"));
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.to_owned()));
    }

    /// A variable of its environment that is no setting of ours.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A companion; those that are written here replace the built-in ones.
    pub fn with_companion(self, id: &str, text: &str) -> Self {
        self.write_companion(id, text);
        self
    }

    /// Writes a companion's file anew.
    pub fn write_companion(&self, id: &str, text: &str) {
        let folder = self.path().join("config/companions");
        std::fs::create_dir_all(&folder).expect("a folder for companions");
        std::fs::write(folder.join(format!("{id}.toml")), text).expect("a companion's file");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The program with these arguments, at home here.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&[&[env!("CARGO_BIN_EXE_tertulia")], arguments].concat())
    }

    /// Any program, at home here.
    pub fn command_of(&self, line: &[&str]) -> Command {
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).current_dir(self.path()).kill_on_drop(true);
        command.env_clear().envs(std::env::vars().filter(|(name, _)| name == "PATH"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the server and waits until it says that it is ready.
    pub async fn start(&self) -> Server {
        Server::of(self.command(&[])).await
    }

    /// Runs the program to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The one JSON object that it printed.
    pub fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end.
pub async fn ran(mut command: Command) -> Ran {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Lines that a program has written so far.
#[derive(Clone, Default)]
pub struct Lines {
    written: Arc<Mutex<(Vec<String>, bool)>>,
    more: Arc<Notify>,
}

impl Lines {
    /// Reads them from now on.
    pub fn of(output: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Self::default();
        let reader = lines.clone();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                reader.written.lock().expect("no panic while held").0.push(line);
                reader.more.notify_waiters();
            }
            reader.written.lock().expect("no panic while held").1 = true;
            reader.more.notify_waiters();
        });
        lines
    }

    /// Waits for a line with these words; none if the program ends without one.
    pub async fn wait_for(&self, words: &str) -> Option<String> {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            {
                let written = self.written.lock().expect("no panic while held");
                let found = written.0.iter().find(|line| line.contains(words)).cloned();
                if found.is_some() || written.1 {
                    return found;
                }
            }
            more.await;
        }
    }

    /// Everything, once the program has closed its output.
    async fn all(&self) -> String {
        self.wait_for("\u{0}").await;
        self.text()
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        self.written.lock().expect("no panic while held").0.join("\n")
    }
}

/// A server that is ready. It is killed when it is dropped.
pub struct Server {
    pub url: String,
    child: Child,
    log: Lines,
    http: reqwest::Client,
}

impl Server {
    /// Starts a server by this command.
    pub async fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program can be started");
        let log = Lines::of(child.stderr.take().expect("piped"));
        let lines = Lines::of(child.stdout.take().expect("piped"));
        let ready = timeout(PATIENCE, lines.wait_for("ready ")).await.ok().flatten();
        let ready = ready.unwrap_or_else(|| panic!("the server did not get ready:\n{}", log.text()));
        let url = ready.trim_start_matches("ready ").to_owned();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { url, child, log, http }
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Asks the API; the body is JSON, or nothing.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answered = async {
            let response = request.send().await;
            let response = response.unwrap_or_else(|error| panic!("no answer: {error:?}; its log:\n{}", self.log.text()));
            let status = response.status();
            let body = response.text().await.expect("a body");
            (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
        };
        timeout(PATIENCE, answered).await.expect("an answer in time")
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
            watch.next_within(patience).await.expect("the server is there");
        }
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
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(&url)).await.expect("a connection in time");
        Watch { socket: connected.expect("a WebSocket").0, seen: Vec::new() }
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

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A room that is watched.
pub struct Watch {
    socket: Socket,
    seen: Vec<Value>,
}

impl Watch {
    /// The next event; none when the connection is over.
    pub async fn next(&mut self) -> Option<Value> {
        self.next_within(PATIENCE).await
    }

    /// The same, waited for so long at most.
    async fn next_within(&mut self, patience: Duration) -> Option<Value> {
        // Pings are no events: they end no wait.
        let next = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(serde_json::from_str::<Value>(&text).expect("JSON")),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                }
            }
        };
        let event = timeout(patience, next).await.unwrap_or_else(|_| panic!("nothing happens any more: {:#?}", self.seen));
        self.seen.extend(event.clone());
        event
    }

    /// Waits for an event of this name.
    pub async fn event(&mut self, name: &str) -> Value {
        while let Some(event) = self.next().await {
            if event["event"] == name {
                return event;
            }
        }
        panic!("the connection ended before {name}: {:#?}", self.seen)
    }
}

/// A companion that is asked half a second after the last word.
pub const QUICK: &str = "name = \"Aria\"\ntext_lull_timeout = 0.05\ninterjection = \"average\"\n";
