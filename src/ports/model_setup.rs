//! The models in force, and how others are tried and connected while the server runs.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::backend::refused::Refused;
use crate::settings::connection::ConnectedModel;

/// Tries models and connects them.
#[async_trait]
pub trait ModelSetup: Send + Sync + 'static {
    /// The models in force.
    async fn models(&self) -> Result<ModelsView, Refused>;

    /// The names of the models that a server has. What the server answers instead is a [`Refused::Invalid`] of `base_url`, or of `api_key`.
    async fn names(&self, server: ModelServer) -> Result<Vec<String>, Refused>;

    /// Tries a decision and a statement. What goes wrong there is part of the result.
    async fn try_out(&self, connection: NewConnection) -> Result<Trial, Refused>;

    /// Uses these models from now on, and keeps them for the next start.
    async fn connect(&self, connection: NewConnection) -> Result<ModelsView, Refused>;

    /// Uses the models of the settings again.
    async fn disconnect(&self) -> Result<ModelsView, Refused>;
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelServer {
    /// The base URL of an OpenAI-compatible API, usually ending in `/v1`.
    #[schemars(length(min = 1, max = 2_048))]
    pub base_url: String,
    /// Its key. Absent: the key that is in use for this URL, which cannot be used for another one. Empty: there is none.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Use the key of the settings instead, which belongs to no URL yet (`has_spare_key` of the models in force).
    #[serde(default)]
    pub spare_key: bool,
    /// Further headers of requests. `null`: the value that is in use for this URL.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_headers: NewValues,
    /// Further parameters in the address of requests. `null`: the value that is in use for this URL.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_query: NewValues,
}

/// Values by their names. `None`: the one in use.
pub type NewValues = BTreeMap<String, Option<SecretString>>;

/// Models to try or to connect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConnection {
    /// The base URL, as for `/api/models/names`.
    #[schemars(length(min = 1, max = 2_048))]
    pub base_url: String,
    /// The key, as for `/api/models/names`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// As for `/api/models/names`.
    #[serde(default)]
    pub spare_key: bool,
    /// As for `/api/models/names`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_headers: NewValues,
    /// As for `/api/models/names`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_query: NewValues,
    /// The model that writes statements.
    pub main: ConnectedModel,
    /// The model that decides. Absent: `main` does.
    #[serde(default)]
    pub side: Option<ConnectedModel>,
    /// How many seconds a decision may take, for a slow computer. All limits that belong together follow from it: those of statements, rounds and calls. Absent:
    /// those of the settings, which also count if they set one of them (`set` of the models in force).
    #[serde(default)]
    #[schemars(range(min = 15, max = 600))]
    pub timeout_secs: Option<u16>,
    /// Ask for decisions in few words, as with `prompt.decision = "short"`, unless the settings set that.
    #[serde(default)]
    pub short_decisions: bool,
}

/// Where the models in force come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// None is configured: `rehearsal` answers.
    Rehearsal,
    /// The settings file or the environment.
    Settings,
    /// They were connected on the page.
    Page,
}

/// The models in force. A key is never part of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelsView {
    /// Where they come from.
    pub source: Source,
    /// The currency of the prices, an ISO 4217 code.
    pub currency: String,
    /// The base URL of the model that writes statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether a key is set for it.
    pub has_key: bool,
    /// Whether the settings have a key for the model that writes statements, and no base URL that it belongs to.
    pub has_spare_key: bool,
    /// The further headers of its requests. Their values are never shown: all are `null`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, Option<String>>,
    /// The further parameters in the address of its requests. `null`: a secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_query: BTreeMap<String, Option<String>>,
    /// The model that writes statements.
    pub main: ModelView,
    /// The model that decides.
    pub side: ModelView,
    /// What was given for these models when they were connected on the page, even if the settings overrule it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// The same.
    pub short_decisions: bool,
    /// The keys that files or variables change, each with its place, of the limits that follow from `timeout_secs`, and `prompt.decision`. They take
    /// precedence over what is given here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<&'static str, String>,
    /// What is wrong with them.
    pub troubles: Vec<ModelTrouble>,
}

/// A model in force.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelView {
    /// `rehearsal`, `openai`, or the host of its server.
    pub provider: Arc<str>,
    pub model: Arc<str>,
    /// How many seconds a decision or a statement may take.
    pub timeout_secs: f64,
    /// The price of a million input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// The price of a million output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// The further fields of the body of its requests.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// How it is asked otherwise than usual, because it refused the usual way. One sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adaptations: Vec<Cow<'static, str>>,
}

/// A model whose last call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelTrouble {
    /// `side` or `main`.
    pub role: &'static str,
    /// Its name at the server.
    pub model: Arc<str>,
    /// The error code, as on record.
    pub error: &'static str,
    /// What happened, and what to do.
    pub detail: String,
}

/// How models did what they were asked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Trial {
    /// A decision, by the model that decides.
    pub decision: Tried,
    /// A statement, by the model that writes them.
    pub statement: Tried,
}

/// How a model did one thing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tried {
    pub model: Arc<str>,
    /// Whether its answer can be used.
    pub works: bool,
    /// How it was asked otherwise than usual, because it refused the usual way. One sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adaptations: Vec<Cow<'static, str>>,
    /// If there was no answer, the error code, as on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// Its answer, or what is wrong and what to do.
    pub detail: String,
    /// How long it took, in seconds.
    pub secs: f64,
    /// The tokens of the prompt, if the server counts them.
    pub input_tokens: u64,
    /// The tokens of the answer.
    pub output_tokens: u64,
    /// The cost in units of the currency. Absent: no price is set, or there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
