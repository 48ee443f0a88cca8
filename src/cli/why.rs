//! `tertulia why …`: tells why a companion spoke, or did not, in plain words.
//!
//! A server that runs on the data folder is asked; without one the store is opened here, alone.

mod telling;
mod time;

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;

use super::asking::{ask_with, print, print_json};
use super::client::{Client, block_on};
use super::failure::Failure;
use super::whom::{self, Whom};
use crate::adapters::system::SystemClock;
use crate::domain::id::Seq;
use crate::ports::backend::Backend;
use crate::ports::backend::decisions::{WhyAt, WhyQuery};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::server::offline;
use crate::settings::{Loaded, Sources};

const EXAMPLES: &str = "\
Examples:
  tertulia why lobby                     what everybody decided last
  tertulia why lobby aria                the story of Aria's newest decision
  tertulia why lobby aria --at 23:40     the decision that was her newest then
  tertulia why lobby --at '2h ago'       everybody's, two hours ago
  tertulia why lobby --message 128       what became of that message
  tertulia why discord:1234 aria         the same of a channel on Discord

All times are UTC. A server that runs on the data folder (storage.path) is asked, with the admin token of the settings; without one the \
store is opened here.

Exit codes:
  0  told
  1  there is no such room, companion or message, or it failed
  2  wrong usage or wrong settings
  3  the store cannot be used";

/// Whose story to tell.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// In which room
    #[arg(value_name = "ROOM")]
    pub room: String,

    /// Of which companion: its id, its name or an alias [default: everybody, in short]
    #[arg(value_name = "COMPANION")]
    pub companion: Option<String>,

    /// The decision that was the newest then: 2026-05-01T22:14:05Z, 2026-05-01 22:14, 22:14 (the last time it was that time), 2h30m ago; or
    /// a decision's number
    #[arg(long, value_name = "TIME", conflicts_with = "message")]
    pub at: Option<String>,

    /// What became of a message: its number, its platform's id, or the id that its sender gave
    #[arg(long, value_name = "ID")]
    pub message: Option<String>,

    /// Ask this server [default: the one that runs on the data folder, if one does]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,

    /// Print the one JSON object that GET /api/why gives
    #[arg(long)]
    pub json: bool,
}

/// Tells it; errors go to standard error.
pub fn run(sources: &Sources, why: Why) -> ExitCode {
    ask_with(sources, |loaded| tell(loaded, &why))
}

fn tell(loaded: Loaded, why: &Why) -> Result<(), Failure> {
    let query = query(why)?;
    let (told, is_served) = match whom::find(&loaded, why.server.as_deref())? {
        Whom::Server(client) => (block_on(from_server(&client, &query))?, true),
        Whom::Store => {
            whom::there_is_one(&loaded.settings.storage.path)?;
            let told = offline::ask(loaded, async |backend: &dyn Backend| backend.why(query).await)??;
            (serde_json::to_string(&told).map_err(|error| Failure::Failed(error.to_string()))?, false)
        }
    };
    if why.json {
        return print_json(&told);
    }
    let told = telling::Told::read(&told).map_err(|error| Failure::Failed(format!("the answer is no story: {error}")))?;
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let width = telling::width(std::env::var("COLUMNS").ok().as_deref(), terminal);
    print(&telling::tell(&told, why, is_served, width).trim_end())
}

async fn from_server(client: &Client, query: &WhyQuery) -> Result<String, Failure> {
    let at = query.at.as_ref().map(|at| match at {
        WhyAt::Event(seq) => ("at", seq.to_string()),
        WhyAt::Moment(moment) => ("at", rfc3339(*moment)),
        WhyAt::Message(id) => ("message", id.to_string()),
    });
    let mut asked = vec![("room", query.room.as_str())];
    asked.extend(query.companion.iter().map(|companion| ("companion", &**companion)));
    asked.extend(at.iter().map(|(key, value)| (*key, value.as_str())));
    let response = client.send(client.request(Method::GET, "/api/why", &asked)).await?;
    response.text().await.map_err(|error| client.broken(&error))
}

fn query(why: &Why) -> Result<WhyQuery, Failure> {
    let room = RoomId::parse(&why.room).ok_or_else(|| {
        Failure::Usage(format!(
            "ROOM {:?} is no room's id: 1 to 64 letters, digits, _ or -, or a channel's id like discord:1234",
            why.room
        ))
    })?;
    let at = match (&why.at, &why.message) {
        (Some(at), _) => Some(match at.parse() {
            Ok(seq) => WhyAt::Event(Seq(seq)),
            Err(_) => WhyAt::Moment(time::read(at, SystemClock.now()).map_err(Failure::Usage)?),
        }),
        (None, Some(id)) => Some(WhyAt::Message(id.as_str().into())),
        (None, None) => None,
    };
    Ok(WhyQuery { room, companion: why.companion.as_deref().map(|name| name.trim().into()), at })
}

/// For what is hostile.
#[cfg(test)]
pub(super) fn read_time(text: &str, now: crate::domain::moment::Moment) -> Result<crate::domain::moment::Moment, String> {
    time::read(text, now)
}
