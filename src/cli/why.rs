//! `tertulia why …`: explains in words why a companion spoke or stayed silent.
//!
//! If a server runs on the data folder, the command sends it a request. Otherwise the command opens the store itself. If there is
//! no store, it sends the request to the server on `server.listen`.

mod rendering;

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;

use super::access::{self, Access};
use super::client::{Client, block_on};
use super::command_io::{print, print_json, run_with_settings};
use super::failure::Failure;
use super::time;
use crate::adapters::system::SystemClock;
use crate::domain::id::Seq;
use crate::ports::backend::Backend;
use crate::ports::backend::decisions::{WhyAt, WhyQuery};
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::server::offline;
use crate::settings::{Loaded, Sources};
use crate::texts::Language;

const EXAMPLES: &str = "\
Examples:
  tertulia why lobby                     the latest decision of each companion
  tertulia why lobby aria                the story of Aria's latest decision
  tertulia why lobby aria --at 23:40     the story of her latest decision at that time
  tertulia why lobby --at '2h ago'       the latest decision of each companion two hours ago
  tertulia why lobby --message 128       what each companion did about that message
  tertulia why 'Großmutters Küche'       a room by its title
  tertulia why discord:1234 aria         the same for a channel on Discord

All times are UTC. If a server runs on the data folder (storage.path), the command asks it, with the admin token from the settings. Otherwise it \
opens the store itself; if there is none, it asks the server on server.listen, without the token.

Exit codes:
  0  done
  1  failed, or there is no such room, companion or message
  2  wrong usage or wrong settings
  3  the store cannot be used";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// The room: its id or its title
    #[arg(value_name = "ROOM")]
    pub room: String,

    /// The companion: its id, its name or an alias [default: all companions, in short]
    #[arg(value_name = "COMPANION")]
    pub companion: Option<String>,

    /// Show the latest decision at this time: 2026-05-01T22:14:05Z, 2026-05-01 22:14, 2026-05-01, 22:14 (in the last 24 hours), yesterday 22:14,
    /// 2h30m ago; or the decision with this number
    #[arg(long, value_name = "TIME", conflicts_with = "message")]
    pub at: Option<String>,

    /// Show what happened to this message: its number, its id on the platform, or the id that its sender gave
    #[arg(long, value_name = "ID")]
    pub message: Option<String>,

    /// Ask this server [default: the one that runs on the data folder, if one does]
    #[arg(long, value_name = "ADDRESS")]
    pub server: Option<String>,

    /// Print the JSON object that GET /api/why returns
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. Errors go to standard error.
pub fn run(sources: &Sources, why: Why) -> ExitCode {
    run_with_settings(sources, |loaded| show(loaded, &why))
}

fn show(loaded: Loaded, why: &Why) -> Result<(), Failure> {
    let at = at(why)?;
    let (answer, is_from_server) = match access::find_to_read(&loaded, why.server.as_deref())? {
        Access::Server(client) => (block_on(from_server(&client, why, at.as_ref()))?, true),
        Access::Store => {
            access::require_store(&loaded.settings.storage)?;
            let companion = why.companion.as_deref().map(|name| name.trim().into());
            let asked = async |backend: &Backend| {
                let room = backend.rooms.find(&why.room).await?;
                backend.records.why(WhyQuery { room, companion, at, language: Language::English }).await
            };
            let answer = offline::ask(loaded, asked)??;
            (serde_json::to_string(&answer).map_err(|error| Failure::Failed(error.to_string()))?, false)
        }
    };
    if why.json {
        return print_json(&answer);
    }
    let explanation = serde_json::from_str(&answer)
        .map_err(|error| Failure::Failed(format!("the answer cannot be read as an explanation: {error}")))?;
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let width = rendering::width(std::env::var("COLUMNS").ok().as_deref(), terminal);
    print(&rendering::render(&explanation, why, is_from_server, width).trim_end())
}

async fn from_server(client: &Client, why: &Why, at: Option<&WhyAt>) -> Result<String, Failure> {
    let at = at.map(|at| match at {
        WhyAt::Event(seq) => ("at", seq.to_string()),
        WhyAt::Moment(moment) => ("at", rfc3339(*moment)),
        WhyAt::Message(id) => ("message", id.to_string()),
    });
    let mut parameters = vec![("room", why.room.as_str())];
    parameters.extend(why.companion.iter().map(|companion| ("companion", companion.trim())));
    parameters.extend(at.iter().map(|(key, value)| (*key, value.as_str())));
    let response = client.send(client.request(Method::GET, "/api/why", &parameters)).await?;
    response.text().await.map_err(|error| client.broken(&error))
}

/// The decision or message to explain.
fn at(why: &Why) -> Result<Option<WhyAt>, Failure> {
    Ok(match (&why.at, &why.message) {
        (Some(at), _) => Some(match at.parse() {
            Ok(seq) => WhyAt::Event(Seq(seq)),
            Err(_) => WhyAt::Moment(time::moment_of("--at", at, SystemClock.now())?),
        }),
        (None, Some(id)) => Some(WhyAt::Message(id.as_str().into())),
        (None, None) => None,
    })
}
