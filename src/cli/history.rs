//! `tertulia history …`: reads out, copies, checks and forgets what is stored.
//!
//! A server that runs on the data folder is asked; without one the store is opened here, alone.

mod expire;
mod export;
mod forget;
mod keep;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::asking::ask_with;
use super::failure::Failure;
use super::visible;
use crate::ports::backend::keeping::Forget;
use crate::settings::Sources;

/// What a guild's or a person's id may have, in characters.
const MAX_ID_CHARS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  tertulia history export --room lobby                       what happened there
  tertulia history export --room lobby --as replay --out lobby.json
  tertulia history export --guild home --person Ana          what somebody said
  tertulia history backup /backups                           a copy
  tertulia history verify /backups/tertulia-20260501T120000Z.backup
  tertulia history restore /backups/tertulia-20260501T120000Z.backup
  tertulia history compact                                   give space back
  tertulia history expire                                    delete what is kept for too long
  tertulia history forget --guild home --person Ana

A server that runs on the data folder (storage.path) is asked, with the admin token of the settings; without one the store is opened here.

Exit codes:
  0  done
  1  failed, something wrong was found, or there is no such room, guild or person
  2  wrong usage or wrong settings
  3  the store cannot be used";

/// What is asked about what is stored.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct History {
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do
    #[command(subcommand)]
    pub asked: Asked,
}

/// What to do with what is stored.
#[derive(Clone, Debug, Subcommand)]
pub enum Asked {
    /// Read out what happened, a JSON object a line, or as a script for `tertulia replay`
    #[command(after_help = "Examples:\n  tertulia history export --room lobby | grep '\"decision\"'\n  \
                            tertulia history export --room lobby --as replay --out lobby.json && tertulia replay lobby.json\n  \
                            tertulia history export --guild home --person Ana --out ana.json")]
    Export {
        /// This room alone [default: all of them]
        #[arg(long, value_name = "ROOM", required_if_eq("form", "replay"))]
        room: Option<String>,
        /// What this person said alone: their id, on Discord `discord:` and the user's id; on the console, their name
        #[arg(long, value_name = "PERSON", requires = "guild", conflicts_with_all = ["room", "form"])]
        person: Option<String>,
        /// The guild in which they said it
        #[arg(long, value_name = "GUILD", requires = "person")]
        guild: Option<String>,
        /// In which form
        #[arg(long = "as", value_enum, default_value_t = Form::Json, id = "form")]
        form: Form,
        /// Write to this new file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// Copy everything into one new file, while the server runs or without it
    #[command(after_help = "Examples:\n  tertulia history backup /backups\n  tertulia history backup monday.backup --json")]
    Backup {
        /// A folder that is there already and gets a file named for the time, or a new file whose name ends in .backup
        #[arg(value_name = "DIR|FILE.backup")]
        to: PathBuf,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// Make the store of a data folder that has none out of a backup; no server may run on it
    #[command(after_help = "Examples:\n  tertulia history restore monday.backup\n  \
                            TERTULIA__STORAGE__PATH=/srv/new tertulia history restore monday.backup")]
    Restore {
        /// The backup
        #[arg(value_name = "BACKUP")]
        from: PathBuf,
    },
    /// Read a backup, or the store, through and tell what is wrong with it
    #[command(after_help = "Examples:\n  tertulia history verify\n  tertulia history verify monday.backup --json")]
    Verify {
        /// The backup [default: the store]
        #[arg(value_name = "BACKUP")]
        backup: Option<PathBuf>,
    },
    /// Give space back by copying the store; no server may run on it
    #[command(after_help = "Examples:\n  tertulia history compact --json\n  tertulia history compact --accept-loss")]
    Compact {
        /// Copy what can be read of a damaged store, tell what cannot, and go on without it: the old file is deleted, so copy the folder first
        #[arg(long)]
        accept_loss: bool,
    },
    /// Delete now what is older than storage.retention_days says; a server does that by itself once a day. No server may run on it
    #[command(
        after_help = "Examples:\n  tertulia history expire\n  tertulia history expire --guild home --older-than 90d --yes --json\n  \
                        tertulia history expire --guild home --everything"
    )]
    Expire {
        /// In this guild alone [default: in all of them]
        #[arg(long, value_name = "GUILD")]
        guild: Option<String>,
        /// What is older than this, whatever the settings say: 24h (the least), 90d, 4w
        #[arg(long, value_name = "SPAN")]
        older_than: Option<String>,
        /// All that was said in this guild, however young it is
        #[arg(long, requires = "guild", conflicts_with = "older_than")]
        everything: bool,
        /// Do not ask whether to go on
        #[arg(long)]
        yes: bool,
    },
    /// Take out of one guild what a person said, and what was decided and summed up about it
    #[command(after_help = "Examples:\n  tertulia history forget --guild home --person Ana\n  \
                            tertulia history forget --guild home --person Ana --answers --yes --json\n  \
                            tertulia history forget --guild discord:81384788765712384 --person discord:80351110224678912")]
    Forget {
        /// In which guild
        #[arg(long, value_name = "GUILD")]
        guild: String,
        /// Whom: the person's id, on Discord `discord:` and the user's id; on the console, their name
        #[arg(long, value_name = "PERSON")]
        person: String,
        /// What companions answered to them, too: it can repeat their words. Only now: of what is forgotten nobody can tell any more
        /// what was an answer to it
        #[arg(long)]
        answers: bool,
        /// Do not ask whether to go on
        #[arg(long)]
        yes: bool,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
}

/// In which form to read out what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// What happened, an object a line
    Json,
    /// A script for `tertulia replay`
    Replay,
}

/// Does what is asked; errors go to standard error.
pub fn run(sources: &Sources, history: History) -> ExitCode {
    let History { json, asked } = history;
    ask_with(sources, |loaded| match asked {
        Asked::Export { room, form, out, person, guild, server } => {
            let of = guild.zip(person);
            export::run(loaded, server.as_deref(), room, of, form, out.as_deref())
        }
        Asked::Backup { to, server } => keep::backup(&loaded, server.as_deref(), &to, json),
        Asked::Restore { from } => keep::restore(&loaded, &from, json),
        Asked::Verify { backup } => keep::verify(&loaded, backup.as_deref(), json),
        Asked::Compact { accept_loss } => keep::compact(&loaded, accept_loss, json),
        Asked::Expire { guild, older_than, everything, yes } => {
            let asked = expire::Asked { guild: guild.as_deref(), older_than: older_than.as_deref(), everything };
            expire::run(loaded, &asked, yes, json)
        }
        Asked::Forget { guild, person, answers, yes, server } => {
            let whom = Forget { guild: guild.as_str().into(), person: person.into(), answers };
            forget::run(loaded, server.as_deref(), &whom, yes, json)
        }
    })
}

/// Whether this can be a guild's or a person's id.
fn check_id(option: &str, id: &str) -> Result<(), Failure> {
    if (1..=MAX_ID_CHARS).contains(&id.chars().count()) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{option} {id:?} is no id: 1 to {MAX_ID_CHARS} characters")))
}

/// Until when erased words can be read in the store's file; none: nothing compacts it by itself.
fn in_file_until(until: Option<&str>) -> String {
    until.map_or_else(
        || "`tertulia history compact`".to_owned(),
        |until| format!("{} at the latest, if a server runs then and can compact it", visible::line(until)),
    )
}

/// Shows on a terminal how far long work has come; elsewhere nothing.
fn progress(doing: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(doing);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {pos} records, {per_sec}, {elapsed}") {
        bar.set_style(style);
    }
    bar
}
