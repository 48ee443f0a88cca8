//! Servers of tools that speak the Model Context Protocol (MCP), each in a table with its own name: `[tools.servers.NAME]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;

use super::{Problem, within};
use crate::companion::shortened;
use crate::duration;
use crate::models::{parsed_endpoint, read_secret};

/// The maximum number of servers, and of arguments and variables of a program.
const MOST_SERVERS: usize = 16;
const MOST_ARGUMENTS: usize = 64;
/// The longest name of a server. With it and `__`, the name of a tool has at most 64 characters.
const MAX_NAME_CHARS: usize = 20;

/// A server of tools: one that is reached by a URL, or a program that this server starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolServer {
    /// The URL of its endpoint for streamable HTTP.
    pub url: Option<String>,
    /// The bearer token for `url`, only from the environment (`TERTULIA__TOOLS__SERVERS__NAME__TOKEN`).
    pub token: Option<SecretString>,
    /// A file that contains only the token.
    pub token_file: Option<PathBuf>,
    /// The program: an absolute path, or a name that is looked up in `PATH`.
    pub command: Option<String>,
    /// The arguments of the program, at most 64.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The names of the environment variables that the program gets, at most 64. It gets no others.
    #[serde(default)]
    pub environment: Vec<String>,
    /// The most memory for the data of each process of the program, in MiB: 16 to 65,536. `None`: 512.
    pub memory_mb: Option<u64>,
    /// The time limit of a call in seconds: 0.1 to 120. `None`: 10.
    pub timeout_secs: Option<f64>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached<'a> {
    At(Url),
    By(&'a str),
}

/// Checks the servers.
pub(super) fn check(servers: &BTreeMap<Arc<str>, ToolServer>) -> Result<(), Problem> {
    if servers.len() > MOST_SERVERS {
        let message = format!("has {} servers, at most {MOST_SERVERS} are allowed", servers.len());
        return Err(Problem::new("servers", message));
    }
    servers.iter().try_for_each(|(name, server)| {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        // Names of tools are the server's and the tool's with `__` between them.
        let is_parted = name.contains("__") || name.starts_with('_') || name.ends_with('_');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_of_name) || is_parted {
            let message =
                format!("must have a name of 1 to {MAX_NAME_CHARS} small letters and digits, with single _ between them");
            return Err(Problem::new(format!("servers.{}", shortened(name)), message));
        }
        server.check().map_err(|problem| Problem { key: format!("servers.{name}.{}", problem.key), ..problem })
    })
}

impl ToolServer {
    fn check(&self) -> Result<(), Problem> {
        let is_program = matches!(self.reached()?, Reached::By(_));
        for (key, is_set, is_of_programs) in [
            ("arguments", !self.arguments.is_empty(), true),
            ("environment", !self.environment.is_empty(), true),
            ("memory_mb", self.memory_mb.is_some(), true),
            ("token", self.token.is_some(), false),
            ("token_file", self.token_file.is_some(), false),
        ] {
            if is_set && is_program != is_of_programs {
                let other = if is_of_programs { "command" } else { "url" };
                return Err(Problem::new(key, format!("belongs to a server with {other}; remove it")));
            }
        }
        if self.token.is_some() && self.token_file.is_some() {
            return Err(Problem::new("token_file", "is set, but the environment sets a token too; set only one of them"));
        }
        for (key, texts) in [("arguments", &self.arguments), ("environment", &self.environment)] {
            if texts.len() > MOST_ARGUMENTS {
                return Err(Problem::new(key, format!("has {} entries, at most {MOST_ARGUMENTS} are allowed", texts.len())));
            }
        }
        let is_variable = |name: &String| {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty() && name.chars().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        for (index, name) in self.environment.iter().enumerate() {
            let refused = |message| Err(Problem::new(format!("environment[{index}]"), message));
            if !is_variable(name) {
                return refused("is no name of a variable; give names alone, and set the values in the environment of tertulia");
            }
            if name.starts_with("TERTULIA__") {
                return refused("is a setting of tertulia, which may be a secret; use a variable of another name");
            }
        }
        within("memory_mb", self.memory_mb(), 16..=65_536)?;
        within("timeout_secs", self.timeout_secs.unwrap_or(1.0), 0.1..=120.0)
    }

    /// How the server is reached.
    ///
    /// # Errors
    /// Returns an error unless exactly one way is set and can be used.
    pub fn reached(&self) -> Result<Reached<'_>, Problem> {
        match (&self.url, &self.command) {
            (Some(url), None) => parsed_endpoint("url", url, "http://127.0.0.1:8000/mcp").map(Reached::At),
            (None, Some(command)) if command.trim().is_empty() => Err(Problem::new("command", "is empty; name a program")),
            (None, Some(command)) => Ok(Reached::By(command)),
            (Some(_), Some(_)) => Err(Problem::new("command", "is set, and url too; a server has only one of them")),
            (None, None) => Err(Problem::new("url", "is missing; set the URL of the server, or the command of a program")),
        }
    }

    /// The token, if one is set.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the token contains characters that are not allowed in an HTTP header.
    pub fn token(&self) -> Result<Option<SecretString>, Problem> {
        read_secret(("token", self.token.as_ref()), ("token_file", self.token_file.as_deref()))
    }

    /// The most memory for the data of each process, in MiB.
    pub fn memory_mb(&self) -> u64 {
        self.memory_mb.unwrap_or(512)
    }

    /// The time limit of a call.
    pub fn timeout(&self) -> Duration {
        duration(self.timeout_secs.unwrap_or(10.0))
    }
}
