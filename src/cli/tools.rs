//! `tertulia tools check|review`: lists the servers of tools with their tools, shows which tools are held back, and accepts them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tracing::subscriber::NoSubscriber;

use super::access::{self, Access, require_owner};
use super::client::block_on;
use super::command_io::{print, print_json, run_with_settings};
use super::failure::Failure;
use super::visible;
use crate::domain::id::GuildId;
use crate::domain::tools::built_in::BuiltIn;
use crate::domain::tools::{CAUSE, Confirm, Right};
use crate::ports::tools::{
    AcceptedTools, Answer, Failure as ToolFailure, ToolServerView, ToolState, ToolView, Tools as _, ToolsView,
};
use crate::server;
use crate::settings::{Loaded, Sources};

const EXAMPLES: &str = "\
Examples:
  tertulia tools check                        is each server connected, and which of its tools can be used?
  tertulia tools review                       what do the tools that are held back say, and what has changed?
  tertulia tools review --accept dice__roll   let companions use this tool as it is now
  tertulia tools review --accept-all          let them use all tools of all servers as they are now

A tool is used only as it was accepted: with the same name, description, arguments and statement whether it only reads.

If a server runs on the data folder (storage.path), the commands ask it. Otherwise they connect the servers of the settings themselves.

Exit codes:
  0  done
  1  check: a server or the search does not work, or a tool is held back; review: not accepted
  2  wrong usage or wrong settings";

/// What a check searches for.
const TRIED_QUERY: &str = "weather";

#[derive(Clone, Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Tools {
    /// Check whether the servers of tools and the search work, and list the tools
    Check(Asked),
    /// Show the tools that are held back, and accept them
    Review {
        #[command(flatten)]
        asked: Asked,
        /// Accept this tool as it is now; can be given several times
        #[arg(long, value_name = "NAME")]
        accept: Vec<String>,
        /// Accept all tools as they are now
        #[arg(long, conflicts_with = "accept")]
        accept_all: bool,
    },
}

#[derive(Clone, Debug, Args)]
pub struct Asked {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Ask this server [default: the one that runs on the data folder, if one does]
    #[arg(long, value_name = "ADDRESS")]
    pub server: Option<String>,
}

/// Runs the command. Errors go to standard error.
pub fn run(sources: &Sources, command: &Tools) -> ExitCode {
    // What is worth knowing is in the output. Libraries would log what servers say.
    let _ = tracing::subscriber::set_global_default(NoSubscriber::new());
    run_with_settings(sources, |loaded| match command {
        Tools::Check(asked) => check(&loaded, asked),
        Tools::Review { asked, accept, accept_all } => review(&loaded, asked, accept, *accept_all),
    })
}

fn check(loaded: &Loaded, asked: &Asked) -> Result<(), Failure> {
    let view = view(loaded, asked, |_| Ok(None))?;
    let search = loaded.settings.tools.search_url.as_ref().map(|_| block_on(searched(loaded))).transpose()?;
    let problem = search.as_ref().and_then(|answer| answer.is_error.then_some(&*answer.text));
    let connected = view.servers.iter().filter(|server| server.connected);
    let known = connected.map(|server| (&*server.name, server.tools.iter().map(|tool| &*tool.name).collect())).collect();
    let mut notes: Vec<String> = unread(loaded, asked, &view).into_iter().collect();
    notes.extend(strays(loaded, &known));
    if asked.json {
        let mut object = json!(view);
        (object["search_problem"], object["notes"]) = (json!(problem), json!(notes));
        print_json(&format!("{object:#}"))?;
    } else {
        print(&visible::lines(&checked(&view, problem, &notes)))?;
    }
    let broken = view.servers.iter().filter(|server| !server.connected || server.problem.is_some()).count();
    let held_back = held_back(&view).count();
    match (broken + usize::from(problem.is_some() || view.problem.is_some()), held_back) {
        (0, 0) => Ok(()),
        (0, 1) => Err(Failure::Failed("1 tool is held back: see `tertulia tools review`".to_owned())),
        (0, count) => Err(Failure::Failed(format!("{count} tools are held back: see `tertulia tools review`"))),
        (1, _) => Err(Failure::Failed("1 server or service does not work".to_owned())),
        (count, _) => Err(Failure::Failed(format!("{count} servers or services do not work"))),
    }
}

fn review(loaded: &Loaded, asked: &Asked, accept: &[String], accept_all: bool) -> Result<(), Failure> {
    let mut accepted = Vec::new();
    let view = view(loaded, asked, |view| {
        let is_chosen = |tool: &&ToolView| accept_all || accept.contains(&tool.name);
        let tools: BTreeMap<_, _> =
            held_back(view).filter(is_chosen).map(|tool| (tool.name.clone(), tool.hash.clone())).collect();
        let known: Vec<_> = view.servers.iter().flat_map(|server| &server.tools).map(|tool| &*tool.name).collect();
        if let Some(unknown) = accept.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::Failed(format!("there is no tool {unknown}; the tools are: {}", known.join(", "))));
        }
        accepted = tools.keys().cloned().collect();
        Ok((!tools.is_empty()).then_some(AcceptedTools { tools }))
    })?;
    if asked.json {
        return print_json(&format!("{:#}", json!(view)));
    }
    let mut lines = Vec::new();
    lines.extend((!accepted.is_empty()).then(|| format!("accepted: {}", accepted.join(", "))));
    for server in view.servers.iter().filter(|server| !server.connected) {
        lines.push(format!("{}: not connected: {}", server.name, server.problem.as_deref().unwrap_or("it starts")));
    }
    lines.extend(held_back(&view).map(reviewed));
    lines.extend(unread(loaded, asked, &view).map(|unread| format!("note: {unread}")));
    lines.push(match held_back(&view).next() {
        Some(_) => "to accept them as they are: tertulia tools review --accept NAME, or --accept-all".to_owned(),
        None => "no tool is held back".to_owned(),
    });
    print(&visible::lines(&lines.join("\n")))
}

/// A note if the running server has other servers of tools than the settings.
fn unread(loaded: &Loaded, asked: &Asked, view: &ToolsView) -> Option<String> {
    let there: BTreeSet<&str> = view.servers.iter().map(|server| &*server.name).collect();
    let here: BTreeSet<&str> = loaded.settings.tools.servers.keys().map(|name| &**name).collect();
    let other: Vec<_> = there.symmetric_difference(&here).copied().collect();
    let is_ours = asked.server.is_none() && !other.is_empty();
    is_ours.then(|| {
        let names = other.join(", ");
        format!(
            "tools.servers: the running server has not read the settings since they changed ({names}); send it SIGHUP, or start it again"
        )
    })
}

/// Notes about names in `tools.rights`, `tools.prices` and companions' lists that no tool has. `known` are the tools of servers, as far as they are known.
pub(super) fn strays(loaded: &Loaded, known: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let tools = &loaded.settings.tools;
    let rights = tools.rights.keys().map(|name| (format!("tools.rights.{name}"), name));
    let prices = tools.prices.keys().map(|name| (format!("tools.prices.{name}"), name));
    let lists = loaded.companions.values().flat_map(|companion| {
        let place = format!("companion {}: tools", companion.id);
        companion.tools.iter().flatten().map(move |name| (place.clone(), name))
    });
    let is_stray = |name: &str| match name.split_once("__") {
        None => BuiltIn::of(name).is_none() && name != "search",
        Some((server, _)) => match known.get(server) {
            Some(tools) => !tools.contains(name),
            None => !tools.servers.contains_key(server),
        },
    };
    let strays = rights.chain(prices).chain(lists).filter(|(_, name)| is_stray(name));
    strays.map(|(place, name)| format!("{place}: there is no tool {name}, or it is not accepted")).collect()
}

/// The servers and their tools, after accepting those that `chosen` returns.
fn view(
    loaded: &Loaded,
    asked: &Asked,
    chosen: impl FnOnce(&ToolsView) -> Result<Option<AcceptedTools>, Failure>,
) -> Result<ToolsView, Failure> {
    let read = |object: Value| {
        serde_json::from_value(object).map_err(|error| Failure::Failed(format!("the server's answer cannot be read: {error}")))
    };
    match access::find(loaded, asked.server.as_deref())? {
        Access::Server(client) => block_on(async {
            let view: ToolsView = read(client.object(client.request(Method::GET, "/api/tools", &[])).await?)?;
            match chosen(&view)? {
                Some(accepted) => {
                    let request = client.request(Method::POST, "/api/tools/accept", &[]).json(&accepted);
                    read(client.object(request).await?)
                }
                None => Ok(view),
            }
        }),
        Access::Store => block_on(async {
            let tools = server::tools(&loaded.settings).map_err(|problem| Failure::Usage(problem.to_string()))?;
            tools.tried().await;
            let view = tools.review();
            match chosen(&view)? {
                Some(accepted) => {
                    let data = &loaded.settings.storage.path;
                    if !data.exists() {
                        let data = data.display();
                        let detail = format!("there is no data folder {data}: start the server once, or set storage.path");
                        return Err(Failure::Failed(detail));
                    }
                    require_owner(data)?;
                    Ok(tools.accept(accepted).await?)
                }
                None => Ok(view),
            }
        }),
    }
}

/// The tools that are not used because they are not accepted as they are. Those that cannot be used anyway are not among them.
fn held_back(view: &ToolsView) -> impl Iterator<Item = &ToolView> {
    let tools = view.servers.iter().flat_map(|server| &server.tools);
    tools.filter(|tool| tool.state != ToolState::Accepted && tool.problem.is_none())
}

/// Tries the search.
async fn searched(loaded: &Loaded) -> Result<Answer, Failure> {
    let mut settings = loaded.settings.clone();
    settings.tools.servers.clear();
    let tools = server::tools(&settings).map_err(|problem| Failure::Usage(problem.to_string()))?;
    let outcome = tools.call("search", Map::from_iter([("query".to_owned(), json!(TRIED_QUERY))])).await;
    Ok(outcome.unwrap_or_else(|failure| {
        let (ToolFailure::NotMade(reason) | ToolFailure::Unknown(reason)) = failure;
        Answer { text: reason.to_string(), bytes: 0, is_error: true }
    }))
}

fn checked(view: &ToolsView, search_problem: Option<&str>, notes: &[String]) -> String {
    let mut lines = Vec::new();
    if let Some(host) = &view.search {
        let verdict = search_problem.map_or_else(|| "works".to_owned(), |problem| format!("does not work: {problem}"));
        lines.push(format!("search at {host}: {verdict}"));
    }
    for ToolServerView { name, place, about, connected, problem, tools } in &view.servers {
        let verdict = if *connected { "connected" } else { "not connected" };
        let about = about.as_ref().filter(|_| *connected).map(|about| format!(" ({about})")).unwrap_or_default();
        let problem = problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
        lines.push(format!("{name} at {place}: {verdict}{about}{problem}"));
        for tool in tools {
            let reads = if tool.read_only { "only reads" } else { "can change something" };
            let state = match (&tool.problem, tool.state) {
                (Some(problem), _) => format!("cannot be used: {problem}"),
                (None, ToolState::Accepted) => {
                    format!("accepted, for {}{}{}", tool.right.allow, confirmed_by(&tool.right), in_guilds(&tool.right))
                }
                (None, ToolState::New) => "held back, because it is new".to_owned(),
                (None, ToolState::Changed) => "held back, because it has changed".to_owned(),
            };
            lines.push(format!("  {}: {reads}, {state}", tool.name));
        }
    }
    lines.extend(view.problem.clone());
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    if view.search.is_none() && view.servers.is_empty() && notes.is_empty() {
        lines.push("there are no servers of tools, and no search: see [tools] in config/default.toml".to_owned());
    }
    lines.join("\n")
}

/// By whom each call of a tool is confirmed.
fn confirmed_by(right: &Right) -> String {
    if right.confirm == Confirm::Never {
        return String::new();
    }
    let (causes, roles): (Vec<_>, Vec<_>) = right.approvers.iter().map(|approver| &**approver).partition(|one| *one == CAUSE);
    let causes = causes.iter().map(|_| "who asked or ".to_owned());
    let roles = (!roles.is_empty()).then(|| format!("people with the roles {} or ", roles.join(", ")));
    format!(", confirmed by {}an operator", causes.chain(roles).collect::<String>())
}

/// The guilds in which a tool is offered, if not in all.
fn in_guilds(right: &Right) -> String {
    let Some(guilds) = &right.guilds else { return String::new() };
    let guilds: Vec<&str> = guilds.iter().map(GuildId::as_str).collect();
    if guilds.is_empty() { ", in no guild".to_owned() } else { format!(", only in {}", guilds.join(", ")) }
}

/// A tool that is held back, with the version that was accepted.
fn reviewed(tool: &ToolView) -> String {
    // A line end in a text of the server must not begin a line of output.
    let indented = |text: &str| text.replace('\n', "\n    ");
    let parts = |read_only: bool, description: &str, parameters: &Value| {
        let reads = if read_only { "yes" } else { "no" };
        [("only reads", reads.to_owned()), ("description", indented(description)), ("arguments", parameters.to_string())]
    };
    let now = parts(tool.read_only, &tool.description, &tool.parameters);
    let before = tool.accepted.as_ref();
    let before = before.map_or(now.clone(), |before| parts(before.read_only, &before.description, &before.parameters));
    let lines = before.iter().zip(&now).map(|((label, before), (_, now))| match before == now {
        true => format!("\n  {label}: {now}"),
        false => format!("\n  {label} before: {before}\n  {label} now:    {now}"),
    });
    let why = if tool.state == ToolState::New { "new" } else { "changed since it was accepted" };
    format!("{}: {why}{}", tool.name, lines.collect::<String>())
}
