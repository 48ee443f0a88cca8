//! `tertulia history …`: exports, backs up, checks and deletes stored data.
//!
//! If a server runs on the data folder, `export`, `backup`, `verify` and `forget` send it a request, and the others fail. Without
//! a server, a command opens the store itself.

mod copies;
mod expire;
mod export;
mod forget;
mod transfer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use super::command_io::run_with_settings;
use super::failure::Failure;
use super::visible;
use crate::ports::backend::keeping::{ExportForm, Forget};
use crate::settings::Sources;
use crate::settings::storage::{Engine, Storage};

/// The maximum length of the id of a guild or a person, in characters.
const MAX_ID_CHARS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  tertulia history export --room lobby                       the events of a room
  tertulia history export --room lobby --as replay --out lobby.json
  tertulia history export --guild home --person Ana          what a person said
  tertulia history backup /backups                           back up the store
  tertulia history verify /backups/tertulia-20260501T120000Z.backup
  tertulia history restore /backups/tertulia-20260501T120000Z.backup
  tertulia history compact                                   free disk space
  tertulia history copy --from sled --to postgres            move to a database
  tertulia history expire                                    delete what is older than the retention period
  tertulia history forget --guild home --person Ana          delete what a person said

If a server runs on the data folder (storage.path), the command asks it, with the admin token from the settings. Otherwise it opens the store \
itself.

Exit codes:
  0  done
  1  failed, damage was found, or there is no such room, guild or person
  2  wrong usage or wrong settings
  3  the store cannot be used";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct History {
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Export events, one JSON object per line, or a room for people, as a script for `tertulia replay`, or as group chat for `tertulia-lab evaluate`
    #[command(after_help = "Examples:\n  tertulia history export --room lobby | grep '\"decision\"'\n  \
                            tertulia history export --room lobby --as replay --out lobby.json && tertulia replay lobby.json\n  \
                            tertulia history export --room lobby --as chat --out lobby.jsonl && tertulia-lab evaluate lobby.jsonl\n  \
                            tertulia history export --room \"Großmutters Küche\" --as html --out kitchen.html\n  \
                            tertulia history export --guild home --person Ana --out ana.json")]
    Export {
        /// Only this room: its id or its title [default: all rooms]
        #[arg(long, value_name = "ROOM", required_if_eq_any([("form", "replay"), ("form", "chat"), ("form", "markdown"), ("form", "html")]))]
        room: Option<String>,
        /// Only what this person said, by id: on Discord `discord:` and the user's id; on the console, the person's name
        #[arg(long, value_name = "PERSON", requires = "guild", conflicts_with_all = ["room", "form"])]
        person: Option<String>,
        /// The guild in which the person spoke
        #[arg(long, value_name = "GUILD", requires = "person")]
        guild: Option<String>,
        /// The output format
        #[arg(long = "as", value_enum, default_value_t = ExportForm::Json, id = "form")]
        form: ExportForm,
        /// Write to this new file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "ADDRESS")]
        server: Option<String>,
    },
    /// Copy the whole store into one new file; a server may run on it
    #[command(after_help = "Examples:\n  tertulia history backup /backups\n  tertulia history backup monday.backup --json")]
    Backup {
        /// An existing folder, which gets a file named after the current time, or a new file whose name ends in .backup
        #[arg(value_name = "DIR|FILE.backup")]
        to: PathBuf,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "ADDRESS")]
        server: Option<String>,
    },
    /// Create the store of an empty data folder from a backup; no server may run on it
    #[command(after_help = "Examples:\n  tertulia history restore monday.backup\n  \
                            TERTULIA__STORAGE__PATH=/srv/new tertulia history restore monday.backup")]
    Restore {
        /// The backup
        #[arg(value_name = "BACKUP")]
        from: PathBuf,
    },
    /// Read the whole store, or a whole backup, and report damage
    #[command(after_help = "Examples:\n  tertulia history verify\n  tertulia history verify monday.backup --json")]
    Verify {
        /// The backup [default: the store]
        #[arg(value_name = "BACKUP")]
        backup: Option<PathBuf>,
    },
    /// Free disk space by copying the store; no server may run on it
    #[command(after_help = "Examples:\n  tertulia history compact --json\n  tertulia history compact --accept-loss")]
    Compact {
        /// Keep what can be read of a damaged store, and say what is missing. The old file is deleted, so copy the folder first
        #[arg(long)]
        accept_loss: bool,
    },
    /// Copy the store into the empty one of another engine, and check the copy; no server may run on either
    #[command(
        after_help = "Examples:\n  tertulia history copy --from sled --to postgres\n  tertulia history copy --from postgres --to sled --json"
    )]
    Copy {
        /// What to copy
        #[arg(long, value_enum, value_name = "ENGINE")]
        from: Engine,
        /// Where to, an empty store
        #[arg(long, value_enum, value_name = "ENGINE")]
        to: Engine,
    },
    /// Delete now what is older than storage.retention_days; a server does this once a day. No server may run on the store
    #[command(
        after_help = "Examples:\n  tertulia history expire\n  tertulia history expire --guild home --older-than 90d --yes --json\n  \
                        tertulia history expire --guild home --everything"
    )]
    Expire {
        /// Only this guild [default: all guilds]
        #[arg(long, value_name = "GUILD")]
        guild: Option<String>,
        /// Delete what is older than this, instead of the age in the settings: 24h (the minimum), 90d, 4w
        #[arg(long, value_name = "SPAN")]
        older_than: Option<String>,
        /// Delete everything that was said in this guild, of any age
        #[arg(long, requires = "guild", conflicts_with = "older_than")]
        everything: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete what a person said in one guild, with the decisions and summaries about it
    #[command(after_help = "Examples:\n  tertulia history forget --guild home --person Ana\n  \
                            tertulia history forget --guild home --person Ana --answers --yes --json\n  \
                            tertulia history forget --guild discord:81384788765712384 --person discord:80351110224678912")]
    Forget {
        /// The guild
        #[arg(long, value_name = "GUILD")]
        guild: String,
        /// The person's id: on Discord `discord:` and the user's id; on the console, the person's name
        #[arg(long, value_name = "PERSON")]
        person: String,
        /// Also delete what companions answered, which can repeat the person's words. Answers cannot be found later, once the messages are
        /// deleted
        #[arg(long)]
        answers: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        /// Ask this server [default: the one that runs on the data folder, if one does]
        #[arg(long, value_name = "ADDRESS")]
        server: Option<String>,
    },
}

/// Runs the command. Errors go to standard error.
pub fn run(sources: &Sources, history: History) -> ExitCode {
    let History { json, command } = history;
    run_with_settings(sources, |loaded| match command {
        Command::Export { room, form, out, person, guild, server } => {
            let guild_and_person = guild.zip(person);
            export::run(loaded, server.as_deref(), room, guild_and_person, form, (out.as_deref(), json))
        }
        Command::Backup { to, server } => copies::backup(&loaded, server.as_deref(), &to, json),
        Command::Restore { from } => copies::restore(&loaded, &from, json),
        Command::Verify { backup } => copies::verify(&loaded, backup.as_deref(), json),
        Command::Compact { accept_loss } => copies::compact(&loaded, accept_loss, json),
        Command::Copy { from, to } => transfer::copy(&loaded, from, to, json),
        Command::Expire { guild, older_than, everything, yes } => {
            let scope = expire::Scope { guild: guild.as_deref(), older_than: older_than.as_deref(), everything };
            expire::run(loaded, &scope, yes, json)
        }
        Command::Forget { guild, person, answers, yes, server } => {
            let forget = Forget { guild: guild.as_str().into(), person: person.into(), answers };
            forget::run(loaded, server.as_deref(), &forget, yes, json)
        }
    })
}

/// Fails unless this can be the id of a guild or a person.
fn check_id(option: &str, id: &str) -> Result<(), Failure> {
    if (1..=MAX_ID_CHARS).contains(&id.chars().count()) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{option} {id:?} is not an id: an id has 1 to {MAX_ID_CHARS} characters")))
}

/// The places that still contain deleted text, and for how long. Without `until`, until the store is compacted.
fn still_readable(storage: &Storage, until: Option<&str>) -> String {
    if storage.engine == Engine::Postgres {
        return "the database's WAL, standbys and dumps contain them as long as you keep those".to_owned();
    }
    let until = until.map_or_else(
        || "`tertulia history compact`".to_owned(),
        |until| format!("{} at the latest, if a server runs then and can compact it", visible::line(until)),
    );
    format!(
        "backups that you made still contain them, those of the server for up to a day, and the file on disk contains them until {until}"
    )
}

/// A progress display for long work, until it is dropped. It shows only on a terminal.
fn progress(doing: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(doing).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {pos} records, {per_sec}, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// Shows the number of processed records, until it is dropped.
fn records(doing: &'static str) -> impl FnMut(u64) {
    let bar = progress(doing);
    move |records| bar.set_position(records)
}
