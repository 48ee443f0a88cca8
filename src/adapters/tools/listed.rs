//! Checks what a server says about its tools, and identifies each version of a tool by a hash.

use aws_lc_rs::digest::{SHA256, digest};
use rmcp::model::Tool as Described;
use serde_json::{Value, json};

use crate::domain::text::{first_hidden, one_line};
use crate::ports::language_model::Tool;

/// Separates the name of a server from that of its tool.
pub(crate) const SEPARATOR: &str = "__";
/// The most characters of a tool's name with that of its server. Providers of models accept no longer ones.
const MAX_NAME_CHARS: usize = 64;
/// The most characters of a description in a prompt, before `…`.
const MAX_DESCRIPTION_CHARS: usize = 299;
/// The longest description and the longest schema that are read, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;
const MAX_SCHEMA_BYTES: usize = 32 * 1024;

/// A tool of a server.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// `server__tool`, with the characters that models can write.
    pub(crate) name: String,
    /// Its name at the server.
    pub(crate) original: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
    pub(crate) read_only: bool,
    pub(crate) hash: String,
    /// Why it cannot be used.
    pub(crate) problem: Option<&'static str>,
}

impl Listed {
    fn new(server: &str, tool: Described) -> Self {
        let description = tool.description.unwrap_or_default().into_owned();
        let mut parameters = Value::Object((*tool.input_schema).clone());
        // The order of keys means nothing.
        parameters.sort_all_objects();
        let read_only = tool.annotations.and_then(|hints| hints.read_only_hint).unwrap_or_default();
        let mut version = json!({ "name": tool.name, "description": description, "schema": parameters, "read_only": read_only });
        version.sort_all_objects();
        let hash = digest(&SHA256, version.to_string().as_bytes());
        let hash = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let name: String = tool.name.chars().map(|c| if matches!(c, '.' | '/') { '_' } else { c }).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let problem = if name.is_empty() || !name.chars().all(is_plain) {
            Some("its name has other characters than letters, digits, _, -, . and /")
        } else if server.len() + SEPARATOR.len() + name.len() > MAX_NAME_CHARS {
            Some("its name is too long: with that of the server, it may have 64 characters")
        } else if description.len() > MAX_DESCRIPTION_BYTES || parameters.to_string().len() > MAX_SCHEMA_BYTES {
            Some("its description or its schema is too long")
        } else if first_hidden(&parameters.to_string()).is_some() {
            // They would be in the prompt, and nobody would see them.
            Some("its schema has invisible characters")
        } else if parameters.get("type").is_some_and(|kind| kind != "object") {
            Some("its schema is not that of an object")
        } else {
            None
        };
        // What cannot be used is shown in part.
        let shown = |text: &str| one_line(text, MAX_NAME_CHARS);
        let (name, description, parameters) = match problem {
            Some(_) => (shown(&name), one_line(&description, MAX_DESCRIPTION_CHARS), json!({})),
            None => (name, description, parameters),
        };
        let name = [server, SEPARATOR, &name].concat();
        Self { name, original: tool.name.into_owned(), description, parameters, read_only, hash, problem }
    }

    /// The tool as models see it.
    pub(crate) fn offered(&self) -> Tool {
        let description = one_line(&self.description, MAX_DESCRIPTION_CHARS);
        Tool { name: self.name.clone(), description, parameters: self.parameters.clone() }
    }
}

/// The tools of a server, ordered by name. Different tools with the same name cannot be used.
pub(crate) fn listed(server: &str, tools: Vec<Described>) -> Vec<Listed> {
    let mut listed: Vec<_> = tools.into_iter().map(|tool| Listed::new(server, tool)).collect();
    listed.sort_by(|a, b| (&a.name, &a.hash).cmp(&(&b.name, &b.hash)));
    // Some servers repeat their only page.
    listed.dedup_by(|a, b| a.name == b.name && a.hash == b.hash);
    for of_one_name in listed.chunk_by_mut(|a, b| a.name == b.name).filter(|tools| tools.len() > 1) {
        of_one_name.iter_mut().for_each(|tool| tool.problem = Some("another tool of the server has the same name"));
    }
    listed
}
