//! Where a server lives.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::process::Command;

use super::{Ran, Server, ran};

/// Settings that hold back whoever says a lot, which is not what is tried.
const LIMITS: [&str; 6] = [
    "gate.addresses_per_minute",
    "gate.evaluations_per_hour",
    "gate.guild_evaluations_per_hour",
    "gate.guild_statements_per_day",
    "server.requests_per_second",
    "server.request_burst",
];

/// The program that is tried: `TERTULIA_PROGRAM`, so that a long trial need not mind what is built meanwhile, or what was built with the tests.
pub fn program() -> String {
    std::env::var("TERTULIA_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tertulia").to_owned())
}

/// Where a server lives: its data, its settings, its environment.
pub struct Premises {
    folder: Arc<TempDir>,
    environment: Vec<(String, String)>,
}

impl Premises {
    /// A server with Aria alone in its lobby on a free port, whose rehearsal answers at once.
    pub fn new() -> Self {
        Self::shipped().with("console.rooms", r#"[{ id = "lobby", guild = "home", companions = ["aria"] }]"#)
    }

    /// A server as it ships, with three companions in its lobby, on a free port, whose rehearsal answers at once.
    pub fn shipped() -> Self {
        let folder = Arc::new(tempfile::Builder::new().prefix("tertulia-").tempdir().expect("a folder"));
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

    /// Nobody is held back, whatever they say and ask for.
    pub fn without_limits(self) -> Self {
        LIMITS.into_iter().fold(self, |premises, limit| premises.with(limit, "1000000"))
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
        self.command_of(&[&[&*program()], arguments].concat())
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
        Server::of(self.command(&[])).await.living_in(Arc::clone(&self.folder))
    }

    /// Runs the program to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }
}
