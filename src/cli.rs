//! The command line: commands, options and exit codes.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or wrong settings, 3 the store cannot be used. A server also exits with 70 if its
//! runtime hung, and with 130 after a second stop signal.

mod access;
pub mod check;
pub mod client;
pub mod command_io;
pub mod discord;
pub mod failure;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod health;
pub mod history;
pub mod models;
pub mod replay;
pub mod serve;
mod time;
pub mod token;
pub mod tools;
pub mod usage;
pub mod visible;
pub mod why;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::server::growing;
use crate::settings::{Located, Problems, Sources};

/// The exit code for wrong usage and wrong settings; clap uses it too.
pub const EXIT_USAGE: u8 = 2;

/// The exit code for a store that cannot be opened, or that accepts no more writes.
pub const EXIT_STORE: u8 = 3;

const EXAMPLES: &str = "\
Examples:
  tertulia                                  start the server; its page is at http://127.0.0.1:7878
  tertulia check                            check the settings
  tertulia check --config /etc/tertulia     check the settings in another folder
  tertulia serve --profile production       apply production.toml on top of default.toml
  TERTULIA__GATE__MAX_BUFFER=100 tertulia   change one setting for one run
  tertulia discord check                    check whether Discord would work, and what to change
  tertulia models check                     try the models: one decision and one statement
  tertulia tools check                      check whether the servers of tools work
  tertulia replay night.json --json         run a scripted conversation in virtual time
  tertulia why lobby aria                   explain why a companion spoke or stayed silent
  tertulia health                           check whether the running server is ready
  tertulia history backup /backups          back up the store while the server runs
  tertulia usage --last 7d                  show what the last week cost, by guild

Exit codes:
  0    done
  1    failed
  2    wrong usage or wrong settings
  3    the store cannot be opened, or accepts no more writes
  70   the server hung
  130  the server got a second stop signal";

/// Hosts AI companions, and decides when they speak, who speaks next, and when to stop.
#[derive(Clone, Debug, Parser)]
#[command(name = "tertulia", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub place: Place,

    /// What to do [default: serve]
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Where the settings are.
#[derive(Clone, Debug, Args)]
pub struct Place {
    /// The folder that holds default.toml, profiles and companions/ [default: config]
    #[arg(long, global = true, value_name = "DIR")]
    pub config: Option<PathBuf>,

    /// The profile: PROFILE.toml in that folder overrides default.toml
    #[arg(long, global = true, value_name = "PROFILE", env = "TERTULIA_PROFILE")]
    pub profile: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Start the server
    Serve {
        /// Start although the store has lost data: list what is missing, and continue with what is left. The old store is deleted, so copy the
        /// folder first; the new one needs as much disk space again
        #[arg(long)]
        accept_loss: bool,
    },
    /// Check the settings, and show the settings in force
    #[command(after_help = "Examples:\n  tertulia check\n  tertulia check --config /etc/tertulia --profile production --json")]
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check whether Discord would work
    #[command(subcommand)]
    Discord(discord::Discord),
    /// Check whether the models work
    #[command(subcommand)]
    Models(models::Models),
    /// Run a scripted conversation in virtual time and print what happened
    #[command(after_help = "Examples:\n  tertulia replay night.json\n  tertulia replay night.toml --json | grep '\"decision\"'")]
    Replay {
        /// The script, JSON or TOML
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Explain why a companion spoke or stayed silent, and what happened to a message
    Why(why::Why),
    /// Check whether the server is ready
    #[command(after_help = "Examples:\n  tertulia health\n  tertulia health --server 127.0.0.1:7878 --json\n\n\
                            Exit codes:\n  0  ready\n  1  not ready, not running, or not reachable\n  2  wrong usage or wrong settings")]
    Health {
        /// Ask this server [default: the one that runs on the data folder]
        #[arg(long, value_name = "ADDRESS")]
        server: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Export, back up, check and delete stored data
    History(history::History),
    /// Make, list and end tokens of programs, each with a scope
    #[command(subcommand)]
    Token(token::Token),
    /// Check the servers of tools, and accept their tools
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Show what guilds used: calls, tokens, their cost, and the share of each daily limit used
    Usage(usage::Usage),
}

/// Prepares the process, and parses its arguments. For `--help` or invalid arguments, prints a message and exits.
pub fn begin<P: Parser>() -> P {
    // Two libraries may each bring a TLS provider. Without a default, the first use of TLS panics.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Only the owner may read the files that are written here and by sled.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let parsed = P::try_parse().unwrap_or_else(|error| {
        // The error message repeats the arguments, so it is built again from arguments without terminal control characters.
        let arguments = std::env::args_os().map(|argument| visible::line(&argument.to_string_lossy()));
        P::try_parse_from(arguments).err().unwrap_or(error).exit()
    });
    growing::fail_softly();
    parsed
}

impl Cli {
    /// The given command, or `serve`.
    pub fn command_or_default(&self) -> Command {
        self.command.clone().unwrap_or(Command::Serve { accept_loss: false })
    }
}

impl Place {
    /// The sources of the settings, including the environment variables.
    ///
    /// # Errors
    /// Returns an error if the value of a `TERTULIA__` variable is not UTF-8.
    pub fn sources(&self) -> Result<Sources, Problems> {
        let mut environment = Vec::new();
        let mut problems = Vec::new();
        for (name, value) in std::env::vars_os() {
            // No setting has a name that is not UTF-8.
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => environment.push((name, value)),
                Err(_) if name.to_uppercase().starts_with("TERTULIA__") => problems.push(Located::at(name, "is not UTF-8 text")),
                Err(_) => {}
            }
        }
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Sources {
            folder: self.config.clone().unwrap_or_else(|| "config".into()),
            folder_was_named: self.config.is_some(),
            profile: self.profile.clone(),
            environment,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_the_server_is_started() {
        let cli = Cli::parse_from(["tertulia"]);

        assert!(matches!(cli.command_or_default(), Command::Serve { accept_loss: false }));
    }

    #[test]
    fn options_are_accepted_before_and_after_the_command() {
        let before = Cli::parse_from(["tertulia", "--config", "here", "check", "--json"]);
        let after = Cli::parse_from(["tertulia", "check", "--json", "--config", "here"]);

        assert_eq!(before.place.config, after.place.config);
        assert!(matches!(after.command_or_default(), Command::Check { json: true }));
    }

    #[test]
    fn the_default_folder_is_not_marked_as_named() {
        let cli = Cli::parse_from(["tertulia"]);

        let sources = cli.place.sources().expect("the environment of tests is text");

        assert_eq!(sources.folder, PathBuf::from("config"));
        assert!(!sources.folder_was_named);
    }
}
