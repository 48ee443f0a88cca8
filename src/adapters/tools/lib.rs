//! Tools outside this program: web search, and the tools of servers that speak the Model Context Protocol (MCP).
//!
//! 1. `connection` reaches a server: by HTTP, or as a program that runs below this one.
//! 2. `server` keeps the connection, lists the tools, and makes calls.
//! 3. `listed` checks what a server says about its tools. `lock` knows which of them the operator has accepted.
//! 4. `content` makes a bounded text of a result. `search` asks a SearXNG.

mod connection;
mod content;
mod listed;
mod lock;
mod search;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use reqwest::Certificate;
use serde_json::{Map, Value};

use tertulia_adapters as adapters;
use tertulia_domain as domain;
use tertulia_http_client as http_client;
use tertulia_ports as ports;
use tertulia_settings as settings;

use self::connection::Target;
use self::listed::SEPARATOR;
use self::lock::Lock;
use self::search::Search;
use self::server::Kept;
use crate::domain::tools::RightSetting;
use crate::ports::backend::Refused;
use crate::ports::clock::Clock;
use crate::ports::tools::{AcceptedTool, AcceptedTools, Answer, Failure, OfferedTool, Tools, ToolsView};
use crate::settings::Problem;
use crate::settings::tools::Tools as Settings;
use crate::settings::tools::server::ToolServer;

/// The tools of the settings. Dropping it disconnects all servers.
pub struct ToolSet {
    /// The data folder.
    data: PathBuf,
    clock: Arc<dyn Clock>,
    /// Certificate authorities in addition to those of the machine.
    authorities: Vec<Certificate>,
    lock: Arc<Lock>,
    in_force: RwLock<InForce>,
}

#[derive(Default)]
struct InForce {
    rights: BTreeMap<Arc<str>, RightSetting>,
    search: Option<Arc<Search>>,
    servers: BTreeMap<Arc<str>, Kept>,
}

/// The names of the tools that were accepted, by the file in this data folder.
pub fn accepted_names(data: &Path) -> Vec<String> {
    Lock::read(data).names()
}

/// Validated settings, ready for use.
pub struct Prepared {
    search: Option<Search>,
    /// The servers that are to be connected, by name.
    starting: BTreeMap<Arc<str>, (ToolServer, Target)>,
}

/// How long replies wait for servers that were not tried yet.
const READY_WITHIN: Duration = Duration::from_secs(5);

impl ToolSet {
    /// Begins to connect the servers of the settings, in the background. Requires a Tokio runtime.
    ///
    /// # Errors
    /// Returns an error if a setting cannot be used.
    pub fn start(
        settings: &Settings,
        data: &Path,
        authorities: Vec<Certificate>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let lock = Arc::new(Lock::read(data));
        let set = Self { data: data.into(), clock, authorities, lock, in_force: RwLock::default() };
        set.use_settings(settings, set.prepare(settings)?);
        Ok(set)
    }

    /// Uses these settings from now on. Servers whose settings are the same stay connected.
    pub fn use_settings(&self, settings: &Settings, Prepared { search, starting }: Prepared) {
        let mut in_force = self.in_force.write();
        (in_force.search, in_force.rights) = (search.map(Arc::new), settings.rights.clone());
        in_force.servers.retain(|name, _| settings.servers.contains_key(name) && !starting.contains_key(name));
        let started = starting.into_iter().map(|(name, (settings, target))| {
            let kept = Kept::start(name.clone(), settings, target, self.lock.clone(), self.clock.clone());
            (name, kept)
        });
        in_force.servers.extend(started);
    }

    /// Prepares the use of these settings.
    ///
    /// # Errors
    /// Returns an error if a setting cannot be used.
    pub fn prepare(&self, settings: &Settings) -> Result<Prepared, Problem> {
        let search = |url| Search::new(url, settings.timeout(), &self.authorities, self.clock.clone());
        let search = settings.search_url()?.map(search).transpose()?;
        let mut starting = BTreeMap::new();
        for (name, server) in &settings.servers {
            if !self.in_force.read().servers.get(name).is_some_and(|known| known.server.has(server)) {
                let keyed = |problem: Problem| Problem { key: format!("servers.{name}.{}", problem.key), ..problem };
                let target = Target::new(name, server, &self.data, &self.authorities).map_err(keyed)?;
                starting.insert(name.clone(), (server.clone(), target));
            }
        }
        Ok(Prepared { search, starting })
    }

    /// Waits until each server is connected, or has failed once.
    pub async fn tried(&self) {
        let states: Vec<_> = self.in_force.read().servers.values().map(|kept| kept.server.state.subscribe()).collect();
        for mut state in states {
            // A server that is gone is not waited for.
            let _ = state.wait_for(|state| state.is_tried).await;
        }
    }
}

#[async_trait]
impl Tools for ToolSet {
    fn offered(&self) -> Vec<OfferedTool> {
        let in_force = self.in_force.read();
        let search = in_force.search.iter().filter_map(|search| search.offered());
        search.chain(in_force.servers.values().flat_map(|kept| kept.server.offered())).collect()
    }

    async fn ready(&self) {
        // A server that hangs must not silence companions.
        let _ = tokio::time::timeout(READY_WITHIN, self.tried()).await;
    }

    async fn call(&self, name: &str, arguments: Map<String, Value>) -> Result<Answer, Failure> {
        let unknown = || Failure::NotMade(format!("there is no tool {name}").into());
        // The lock is not held during the call.
        let Some((server, _)) = name.split_once(SEPARATOR) else {
            let search = self.in_force.read().search.clone().filter(|_| name == search::NAME).ok_or_else(unknown)?;
            return search.call(&arguments).await;
        };
        let server = self.in_force.read().servers.get(server).ok_or_else(unknown)?.server.clone();
        server.call(name, arguments).await
    }

    fn review(&self) -> ToolsView {
        let in_force = self.in_force.read();
        ToolsView {
            search: in_force.search.as_ref().map(|search| search.host().to_owned()),
            servers: in_force.servers.values().map(|kept| kept.server.view(&in_force.rights)).collect(),
            problem: self.lock.problem(),
        }
    }

    async fn accept(&self, accepted: AcceptedTools) -> Result<ToolsView, Refused> {
        let view = self.review();
        let listed: BTreeMap<_, _> =
            view.servers.iter().flat_map(|server| &server.tools).map(|tool| (&*tool.name, tool)).collect();
        let mut new = BTreeMap::new();
        for (name, hash) in accepted.tools {
            let tool = listed.get(&*name).ok_or_else(|| Refused::not_found(format!("there is no tool {name}")))?;
            if let Some(problem) = &tool.problem {
                return Err(Refused::conflict(format!("{name} cannot be used: {problem}")));
            }
            if tool.hash != hash {
                return Err(Refused::conflict(format!("{name} has changed since it was shown; look at it again")));
            }
            let (description, parameters) = (tool.description.clone(), tool.parameters.clone());
            new.insert(name, AcceptedTool { hash, description, read_only: tool.read_only, parameters });
        }
        // What connected servers no longer have is forgotten, and so are servers that are gone.
        let is_kept = move |name: &str| {
            let is_of = |server: &str| name.split_once(SEPARATOR).is_some_and(|(of, _)| of == server);
            let mut servers = view.servers.iter().filter(|server| is_of(&server.name));
            servers.any(|server| !server.connected || server.tools.iter().any(|tool| tool.name == name))
        };
        let lock = self.lock.clone();
        let writing = tokio::task::spawn_blocking(move || lock.accept(new, is_kept));
        let written = writing.await.map_err(io::Error::other).flatten();
        written.map_err(|error| Refused::unavailable(format!("the accepted tools cannot be written: {error}")))?;
        Ok(self.review())
    }
}
