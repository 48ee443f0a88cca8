//! The folder, settings and environment of a server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::{Ran, Server, ran};

/// Limits that would slow down tests which say a lot.
const LIMITS: [&str; 6] = [
    "gate.addresses_per_minute",
    "gate.evaluations_per_hour",
    "gate.guild_evaluations_per_hour",
    "gate.guild_statements_per_day",
    "server.requests_per_second",
    "server.request_burst",
];

/// The program under test: `TERTULIA_PROGRAM`, or else the one that was built with the tests. With the variable, a long trial is not disturbed by
/// builds meanwhile.
pub fn program() -> String {
    std::env::var("TERTULIA_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tertulia").to_owned())
}

/// The folder of a server, with its data and settings, and its environment variables.
pub struct Premises {
    folder: Arc<TempDir>,
    environment: Vec<(String, String)>,
}

impl Premises {
    /// A server on a free port with Aria alone in its lobby. Its rehearsal answers at once.
    pub fn new() -> Self {
        Self::shipped().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = ["aria"] }]"#)
    }

    /// A server with the default settings, on a free port, with three companions in its lobby. Its rehearsal answers at once.
    pub fn shipped() -> Self {
        let folder = Arc::new(tempfile::Builder::new().prefix("tertulia-").tempdir().expect("a folder"));
        std::fs::create_dir(folder.path().join("config")).expect("a folder for settings");
        let premises = Self { folder, environment: Vec::new() };
        // Backups would keep words that a test deletes.
        premises
            .with("server.listen", "127.0.0.1:0")
            .with("models.rehearsal.pace", "0")
            .with("models.check_at_start", "false")
            .with("storage.backup_every", "never")
    }

    /// Sets a setting, by its path.
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

    /// Raises the limits on messages, evaluations, statements and requests, so that none is reached.
    pub fn without_limits(self) -> Self {
        LIMITS.into_iter().fold(self, |premises, limit| premises.with(limit, "1000000"))
    }

    /// Sets an environment variable that is not a setting of tertulia.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a companion. The companions added here replace the built-in ones.
    pub fn with_companion(self, id: &str, text: &str) -> Self {
        self.write_companion(id, text);
        self
    }

    /// Writes or overwrites a companion's file.
    pub fn write_companion(&self, id: &str, text: &str) {
        let folder = self.path().join("config/companions");
        std::fs::create_dir_all(&folder).expect("a folder for companions");
        std::fs::write(folder.join(format!("{id}.toml")), text).expect("a companion's file");
    }

    /// Writes or overwrites a file in a companion's folder.
    pub fn write_companion_file(&self, id: &str, name: &str, content: impl AsRef<[u8]>) {
        let folder = self.path().join("config/companions").join(id);
        std::fs::create_dir_all(&folder).expect("a folder for a companion");
        std::fs::write(folder.join(name), content).expect("a companion's file");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The program with these arguments, in this folder and environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&[&[&*program()], arguments].concat())
    }

    /// A command line of the laboratory.
    pub fn lab(&self, arguments: &[&str]) -> Command {
        self.command_of(&[&[env!("CARGO_BIN_EXE_tertulia-lab")], arguments].concat())
    }

    /// Runs a command of the laboratory to its end.
    pub async fn run_lab(&self, arguments: &[&str]) -> Ran {
        ran(self.lab(arguments)).await
    }

    /// Any command line, in this folder and environment.
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
        Server::of(self.command(&[])).await.with_folder(Arc::clone(&self.folder))
    }

    /// Starts a server in whose paused lobby so many long messages were said, and then one with these words, which was deleted.
    pub async fn start_after_a_deletion(&self, messages: u32, deleted: &str) -> Server {
        let server = self.start().await;
        server.done(Method::PATCH, "/api/rooms/lobby", Some(json!({ "paused": true }))).await;
        let long_text = "so much was said ".repeat(200);
        for number in 0..messages {
            server.say("lobby", "Ana", &format!("{number}: {long_text}")).await;
        }
        let seq = server.say("lobby", "Ben", deleted).await;
        server.say("lobby", "Ana", "and so on").await;
        server.done(Method::DELETE, &format!("/api/rooms/lobby/messages/{seq}"), None).await;
        server
    }

    /// A stopped server whose store has a message of Ana in the lobby.
    pub async fn with_message(self, text: &str) -> Self {
        let server = self.start().await;
        server.say("lobby", "Ana", text).await;
        server.stop().await;
        self
    }

    /// Verifies the store, and returns its number of events.
    pub async fn verified_events(&self) -> u64 {
        let verified = self.run(&["history", "verify", "--json"]).await.exits_with(0).object();
        assert_eq!(verified["sound"], true, "{verified}");
        verified["events"].as_u64().expect("a number")
    }

    /// Runs the program until it ends.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }
}
