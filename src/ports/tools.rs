//! Tools outside this program that companions may call: search, and the tools of MCP servers.

use std::sync::Arc;

use async_trait::async_trait;

use super::language_model::Tool;

#[async_trait]
pub trait Tools: Send + Sync + 'static {
    /// The tools that may be offered to a reply now. Tools that the operator has not accepted are absent.
    fn offered(&self) -> Vec<OfferedTool>;

    /// Calls a tool with arguments that are a JSON object. The time limit is the caller's.
    async fn call(&self, name: &str, arguments: serde_json::Map<String, serde_json::Value>) -> Result<Answer, Failure>;
}

/// Several sources of tools. The first one with a name has it.
#[async_trait]
impl Tools for Vec<Arc<dyn Tools>> {
    fn offered(&self) -> Vec<OfferedTool> {
        self.iter().flat_map(|tools| tools.offered()).collect()
    }

    async fn call(&self, name: &str, arguments: serde_json::Map<String, serde_json::Value>) -> Result<Answer, Failure> {
        let has_it = |tools: &&Arc<dyn Tools>| tools.offered().iter().any(|offered| offered.tool.name == name);
        match self.iter().find(has_it) {
            Some(tools) => tools.call(name, arguments).await,
            None => Err(Failure::NotMade("there is no such tool any more".into())),
        }
    }
}

/// A tool, and what its calls can do.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    /// Its name is `server__tool`, or the bare name of a built-in tool.
    pub tool: Tool,
    /// Whether a call changes nothing, so that it may be repeated.
    pub read_only: bool,
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
