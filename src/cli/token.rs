//! `tertulia token make|list|end`: manages the scoped tokens of programs. The server that runs on the data folder applies changes
//! at once.

use std::process::ExitCode;

use clap::Subcommand;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::access::require_owner;
use super::command_io::{print, print_json, report, run_with_settings};
use super::failure::Failure;
use crate::adapters::console::tokens::{Refused, Scope, Tokens};
use crate::adapters::system::{SystemClock, SystemRng};
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::settings::{Loaded, Sources};

/// The commands of `token`.
#[derive(Clone, Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  tertulia token make prometheus --scope metrics > /etc/prometheus/tertulia.token\n  tertulia token list\n  tertulia token end prometheus"
)]
pub enum Token {
    /// Make a token, and print it. It is shown once
    Make {
        /// What it is called: letters, digits, _ and -
        name: String,
        /// What it opens: /metrics alone, whatever can be read, or everything
        #[arg(long, value_enum)]
        scope: Scope,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the tokens, without their secrets
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: it opens nothing any more
    End {
        /// The name of the token
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Name => Self::Usage(refused.to_string()),
            _ => Self::Failed(refused.to_string()),
        }
    }
}

/// Runs the command. Errors go to standard error.
pub fn run(sources: &Sources, command: &Token) -> ExitCode {
    run_with_settings(sources, |loaded| carry_out(command, &loaded))
}

fn carry_out(command: &Token, loaded: &Loaded) -> Result<(), Failure> {
    let data = &loaded.settings.storage.path;
    let tokens = Tokens::of(data);
    if !data.exists() {
        return Err(Failure::Failed(format!(
            "there is no data folder {}: start the server once, or set storage.path",
            data.display()
        )));
    }
    match command {
        Token::Make { name, scope, json } => {
            require_owner(data)?;
            let secret = tokens.make(name, *scope, SystemClock.now(), &SystemRng)?;
            let secret = secret.expose_secret();
            report(*json, &json!({ "name": name, "scope": scope, "token": secret }), secret)
        }
        Token::List { json } => {
            let all = tokens.all()?;
            if *json {
                let all: Vec<_> = all
                    .iter()
                    .map(|token| json!({ "name": token.name, "scope": token.scope, "made_at": rfc3339(token.made_at) }))
                    .collect();
                return print_json(&json!({ "tokens": all }));
            }
            for token in &all {
                print(&format!("{}: {}, made {}", token.name, token.scope, rfc3339(token.made_at)))?;
            }
            if all.is_empty() { print(&"there are no tokens") } else { Ok(()) }
        }
        Token::End { name, json } => {
            require_owner(data)?;
            tokens.end(name)?;
            report(*json, &json!({ "ended": name }), &format!("the token {name} opens nothing any more"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, Subcommand as _};

    use super::*;
    use crate::texts::Language;

    #[test]
    fn the_help_calls_the_end_of_a_token_as_the_page_does() {
        let command = Token::augment_subcommands(Command::new("token"));
        let about = command.find_subcommand("end").and_then(Command::get_about).unwrap().to_string();

        assert!(about.starts_with(&Language::English.say("tokens.end", &[])), "{about}");
    }
}
