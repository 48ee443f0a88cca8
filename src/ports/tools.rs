//! Tools outside this program that companions may call: search, and the tools of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backend::Refused;
use super::language_model::Tool;
use crate::domain::tools::Right;

#[async_trait]
pub trait Tools: Send + Sync + 'static {
    /// The tools that may be offered to a reply now. Tools that the operator has not accepted are absent.
    fn offered(&self) -> Vec<OfferedTool> {
        Vec::new()
    }

    /// Waits until each server is connected, or has failed once, but not for long.
    async fn ready(&self) {}

    /// Calls the tool of this name with arguments that are a JSON object. The time limit is the caller's.
    async fn call(&self, _: &str, _: serde_json::Map<String, serde_json::Value>) -> Result<Answer, Failure> {
        Err(Failure::NotMade("there are no tools".into()))
    }

    /// What operators see: the servers as they are now, ordered by name.
    fn review(&self) -> ToolsView {
        ToolsView::default()
    }

    /// Accepts tools for operators, so that they may be offered from now on and after restarts. Returns [`Refused::Conflict`] if a tool has changed
    /// since it was shown.
    async fn accept(&self, _: AcceptedTools) -> Result<ToolsView, Refused> {
        Err(Refused::not_found("there are no tools"))
    }
}

/// A tool, and what its calls can do.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    /// Its name is `server__tool`, or the bare name of a built-in tool.
    pub tool: Tool,
    /// Whether a call changes nothing, so that it may be repeated.
    pub read_only: bool,
    /// Where its calls go: an address, or a program.
    pub place: Arc<str>,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Untrusted text of at most 8 KiB.
    pub text: String,
    /// The size of the whole answer in bytes, before it was cut.
    pub bytes: u64,
    /// Whether the tool says that the call failed.
    pub is_error: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The call was not made, such as when the server cannot be reached. The text says why.
    NotMade(Arc<str>),
    /// The connection ended after the call was sent. Whether the call had an effect is unknown.
    Unknown(Arc<str>),
}

/// Web search, and the servers of tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolsView {
    /// The host of the SearXNG that the tool `search` asks. Absent: there is no search.
    pub search: Option<String>,
    pub servers: Vec<ToolServerView>,
    /// Why the list of accepted tools cannot be read. As long as it cannot, no tool of a server counts as accepted.
    pub problem: Option<String>,
}

/// A server of tools.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolServerView {
    pub name: String,
    /// Its URL, or its program.
    pub place: String,
    /// What it says about itself: its name, its version, and that of the protocol.
    pub about: Option<String>,
    /// Whether its tools can be called now.
    pub connected: bool,
    /// Why they cannot, or what is wrong with its list.
    pub problem: Option<String>,
    pub tools: Vec<ToolView>,
}

/// A tool of a server, as the server describes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// `server__tool`.
    pub name: String,
    pub state: ToolState,
    /// Whether the server says that a call changes nothing.
    pub read_only: bool,
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
    /// Identifies this version of the tool.
    pub hash: String,
    /// The accepted version, if it is another one.
    pub accepted: Option<AcceptedTool>,
    /// Why the tool cannot be used, whether it is accepted or not.
    pub problem: Option<String>,
    pub right: Right,
}

/// Whether a tool may be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    Accepted,
    /// It was never accepted.
    New,
    /// It is not as it was accepted.
    Changed,
}

/// A tool as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedTool {
    pub hash: String,
    pub description: String,
    pub read_only: bool,
    pub parameters: serde_json::Value,
}

/// Tools to accept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTools {
    /// The hash of each tool as it was shown, by the tool's name.
    pub tools: BTreeMap<String, String>,
}

/// No tools, for tests and replays.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {}
