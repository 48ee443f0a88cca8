//! The command line: what can be asked for, and how the answer is given.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage or wrong settings, 3 the store cannot be used; of a server also 70 (its runtime hung) and 130
//! (told to stop twice).

mod asking;
pub mod bench;
pub mod check;
mod client;
pub mod discord;
mod failure;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod health;
pub mod history;
pub mod replay;
pub mod serve;
pub mod usage;
mod visible;
mod whom;
pub mod why;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::settings::{Located, Problems, Sources};

/// The exit code for wrong usage and wrong settings; clap uses it too.
pub const EXIT_USAGE: u8 = 2;

/// The exit code for a store that cannot be opened, or takes no more.
pub const EXIT_STORE: u8 = 3;

const EXAMPLES: &str = "\
Examples:
  tertulia                                  start; the companions are at http://127.0.0.1:7878
  tertulia check                            tell whether the settings are good
  tertulia check --config /etc/tertulia     the same for another folder
  tertulia serve --profile production       lay production.toml over default.toml
  TERTULIA__GATE__MAX_BUFFER=100 tertulia   change one setting for one run
  tertulia discord check                    tell whether Discord would work, and what to click
  tertulia replay night.json --json         run a scripted conversation in virtual time
  tertulia why lobby aria                   tell why a companion spoke, or did not
  tertulia health                           ask the running server whether it can be talked to
  tertulia history backup /backups          copy what is stored, while the server runs
  tertulia usage --last 7d                  what the last week cost, by guild
  tertulia bench --rate 1000                how this machine bears a thousand messages a second

Exit codes:
  0  done
  1  failed
  2  wrong usage or wrong settings
  3  the store cannot be opened, or takes no more
  70, 130  a server that hung, and one that was told twice to stop";

/// Hosts AI companions, and decides when they speak, who speaks next, and when to stop.
#[derive(Clone, Debug, Parser)]
#[command(name = "tertulia", version, after_help = EXAMPLES)]
pub struct Cli {
    /// The folder that holds default.toml, profiles and companions/ [default: config]
    #[arg(long, global = true, value_name = "DIR")]
    pub config: Option<PathBuf>,

    /// The profile: PROFILE.toml in that folder is laid over default.toml
    #[arg(long, global = true, value_name = "PROFILE", env = "TERTULIA_PROFILE")]
    pub profile: Option<String>,

    /// What to do [default: serve]
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What can be asked for.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Start the server
    Serve {
        /// Go on with what is there, though the store holds less than it should
        #[arg(long)]
        accept_loss: bool,
    },
    /// Tell whether the settings are good, and what they amount to
    #[command(after_help = "Examples:\n  tertulia check\n  tertulia check --config /etc/tertulia --profile production --json")]
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Look whether Discord would work
    #[command(subcommand)]
    Discord(discord::Discord),
    /// Run a scripted conversation in virtual time and print what happened
    #[command(after_help = "Examples:\n  tertulia replay night.json\n  tertulia replay night.toml --json | grep '\"decision\"'")]
    Replay {
        /// The script, JSON or TOML
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Tell why a companion spoke, or did not, and what became of a message
    Why(why::Why),
    /// Tell whether the server can be talked to
    #[command(after_help = "Examples:\n  tertulia health\n  tertulia health --server http://127.0.0.1:7878 --json\n\n\
                            Exit codes:\n  0  ready\n  1  not ready, not there, or not reached\n  2  wrong usage or wrong settings")]
    Health {
        /// Ask this server [default: the one that runs on the data folder]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Read out, copy, check, and forget what is stored
    History(history::History),
    /// Talk to a server as many people would, and tell how much it takes and how long that takes
    Bench(bench::Bench),
    /// Tell what guilds used: calls, tokens and what they cost, and how they stand with their caps
    Usage(usage::Usage),
}

impl Cli {
    /// What the process was started with. What cannot be understood is told, and so is help; then the process ends.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            // What is told repeats what was given: here without what a terminal would obey.
            let given = std::env::args_os().map(|given| visible::line(&given.to_string_lossy()));
            Self::try_parse_from(given).err().unwrap_or(error).exit()
        })
    }

    /// What is asked for: without a command, to serve.
    pub fn asked(&self) -> Command {
        self.command.clone().unwrap_or(Command::Serve { accept_loss: false })
    }

    /// Where the settings come from, the process's environment included.
    ///
    /// # Errors
    /// A variable that is meant for the settings and is no text.
    pub fn sources(&self) -> Result<Sources, Problems> {
        let mut environment = Vec::new();
        let mut problems = Vec::new();
        for (name, value) in std::env::vars_os() {
            // A variable whose name is no text is nobody's setting.
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

        assert!(matches!(cli.asked(), Command::Serve { accept_loss: false }));
    }

    #[test]
    fn options_are_taken_before_and_after_the_command() {
        let before = Cli::parse_from(["tertulia", "--config", "here", "check", "--json"]);
        let after = Cli::parse_from(["tertulia", "check", "--json", "--config", "here"]);

        assert_eq!(before.config, after.config);
        assert!(matches!(after.asked(), Command::Check { json: true }));
    }

    #[test]
    fn a_folder_that_was_not_named_may_be_missing() {
        let cli = Cli::parse_from(["tertulia"]);

        let sources = cli.sources().expect("the environment of tests is text");

        assert_eq!(sources.folder, PathBuf::from("config"));
        assert!(!sources.folder_was_named);
    }
}
