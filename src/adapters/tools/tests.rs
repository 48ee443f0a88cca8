//! Real connections to a test double of an MCP server, to programs, and to a fake SearXNG.

mod double;
mod programs;
mod results;
mod reviewing;
mod searching;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::adapters::system::SystemClock;
use crate::ports::tools::{ToolState, ToolView};

use double::Double;

/// The settings of a server that are not set.
pub(crate) const UNSET: ToolServer = ToolServer {
    url: None,
    token: None,
    token_file: None,
    command: None,
    arguments: Vec::new(),
    environment: Vec::new(),
    memory_mb: None,
    timeout_secs: None,
};

fn settings(search_url: Option<String>, servers: BTreeMap<Arc<str>, ToolServer>) -> Settings {
    let (operators, rights) = (BTreeSet::new(), BTreeMap::new());
    let (guild_calls_per_day, person_calls_per_day, prices) = (1_000, 100, BTreeMap::new());
    Settings {
        calls_per_reply: 3,
        timeout_secs: 10.0,
        guild_calls_per_day,
        person_calls_per_day,
        prices,
        operators,
        rights,
        search_url,
        servers,
    }
}

/// The tools of one server, `box`.
fn start(data: &Path, server: ToolServer) -> ToolSet {
    let settings = settings(None, BTreeMap::from([("box".into(), server)]));
    ToolSet::start(&settings, data, Vec::new(), Arc::new(SystemClock)).unwrap()
}

/// The tools of a test double that was tried.
async fn connected(data: &Path, double: &Double) -> ToolSet {
    connected_for(data, double, 10.0).await
}

/// As [`connected`], with a time limit of calls.
async fn connected_for(data: &Path, double: &Double, timeout_secs: f64) -> ToolSet {
    // The client is built for https, too.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let set = start(data, ToolServer { url: Some(double.url()), timeout_secs: Some(timeout_secs), ..UNSET });
    set.tried().await;
    set
}

/// Accepts everything that is shown.
async fn accept_all(set: &ToolSet) -> ToolsView {
    let tools = shown(set).into_iter().filter(|tool| tool.problem.is_none()).map(|tool| (tool.name, tool.hash)).collect();
    set.accept(AcceptedTools { tools }).await.unwrap()
}

/// The tools that operators see.
fn shown(set: &ToolSet) -> Vec<ToolView> {
    set.review().servers.remove(0).tools
}

fn names_offered(set: &ToolSet) -> Vec<String> {
    set.offered().into_iter().map(|offered| offered.tool.name).collect()
}

async fn call(set: &ToolSet, tool: &str) -> Result<Answer, Failure> {
    set.call(tool, Map::from_iter([("x".to_owned(), json!(1))])).await
}

/// A tool as a server lists it.
fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}
