//! The models in force. Other models can be tried and connected while the server runs.

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
use crate::settings::models::Vision;

/// Shows, tries and connects models.
#[async_trait]
pub trait ModelSetup: Send + Sync + 'static {
    /// The models in force.
    async fn models(&self) -> Result<ModelsView, Refused>;

    /// The names of the models that a server has. An error of the server is a [`Refused::Invalid`] of `base_url` or `api_key`.
    async fn names(&self, server: ModelServer) -> Result<Vec<String>, Refused>;

    /// Tries one decision and one statement. Errors of the models are part of the result.
    async fn try_out(&self, connection: NewConnection) -> Result<Trial, Refused>;

    /// Switches to these models, and stores them for the next start.
    async fn connect(&self, connection: NewConnection) -> Result<ModelsView, Refused>;

    /// Switches back to the models of the settings.
    async fn disconnect(&self) -> Result<ModelsView, Refused>;
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelServer {
    /// The base URL of an OpenAI-compatible API, usually ending in `/v1`.
    #[schemars(length(min = 1, max = 2_048))]
    pub base_url: String,
    /// The API key of the server. Absent: the key in use for this URL; it is not sent to any other URL. Empty: no key.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Whether to use the key of the settings that belongs to no URL yet (`has_spare_key` of the models in force).
    #[serde(default)]
    pub spare_key: bool,
    /// Additional headers of requests. `null`: the value in use for this URL.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_headers: NewValues,
    /// Additional query parameters of requests. `null`: the value in use for this URL.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Option<String>>")]
    pub extra_query: NewValues,
}

/// Values by name. `None`: the value in use.
pub type NewValues = BTreeMap<String, Option<SecretString>>;

/// The models to try or to connect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConnection {
    /// The base URL, as for `/api/models/names`.
    #[schemars(length(min = 1, max = 2_048))]
    pub base_url: String,
    /// The key, as for `/api/models/names`.
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
    /// The model that answers decisions. Absent: `main`.
    pub side: Option<ConnectedModel>,
    /// The time limit of a decision in seconds, for a slow computer. The limits of statements, rounds and calls follow from it. Absent: the limits
    /// of the settings. Limits that the settings set explicitly always take precedence (`set` of the models in force).
    #[schemars(range(min = 15, max = 600))]
    pub timeout_secs: Option<u16>,
    /// Whether decisions use few words, as with `prompt.decision = "short"`. If the settings set `prompt.decision`, that takes precedence.
    #[serde(default)]
    pub short_decisions: bool,
}

/// The origin of the models in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// No model is configured: `rehearsal` answers.
    Rehearsal,
    /// The models come from the settings file or the environment.
    Settings,
    /// The models were connected on the page.
    Page,
}

/// The models in force. Keys are never included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelsView {
    /// The origin of the models.
    pub source: Source,
    /// The currency of the prices, an ISO 4217 code.
    pub currency: String,
    /// The base URL of the model that writes statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether a key is set for the model that writes statements.
    pub has_key: bool,
    /// Whether the settings have a key for the model that writes statements, but no base URL that the key belongs to.
    pub has_spare_key: bool,
    /// The additional headers of requests. Their values are secret: all are `null`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, Option<String>>,
    /// The additional query parameters of requests. `null`: a secret value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_query: BTreeMap<String, Option<String>>,
    /// The model that writes statements.
    pub main: ModelView,
    /// The model that answers decisions.
    pub side: ModelView,
    /// The time limit that was given when these models were connected on the page, even if the settings take precedence over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// Whether short decisions were requested when these models were connected on the page.
    pub short_decisions: bool,
    /// Of `prompt.decision` and the limits that follow from `timeout_secs`: those that files or variables set, each with its location. They take
    /// precedence over the values given on the page.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<&'static str, String>,
    /// The current problems of the models.
    pub troubles: Vec<ModelTrouble>,
}

/// A model in force.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelView {
    /// `rehearsal`, `openai`, or the host of the model's server.
    pub provider: Arc<str>,
    pub model: Arc<str>,
    /// The time limit of a decision or a statement, in seconds.
    pub timeout_secs: f64,
    /// The price per million input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// The price per million output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// The price per million input tokens that are read from a cache, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_price: Option<f64>,
    /// The price per million input tokens that are written to a cache, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_price: Option<f64>,
    /// The additional fields in the body of requests.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Whether the model is sent pictures that people post.
    #[serde(skip_serializing_if = "Vision::is_off")]
    pub vision: Vision,
    /// Whether the model gets pictures that people post, and not only their descriptions.
    pub sees_pictures: bool,
    /// The changes to the request format that the model required, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adaptations: Vec<Cow<'static, str>>,
}

/// A model whose last call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelTrouble {
    /// `side` or `main`.
    pub role: &'static str,
    /// The name of the model at its server.
    pub model: Arc<str>,
    /// The error code, as in records.
    pub error: &'static str,
    /// The error, and how to fix it.
    pub detail: String,
}

/// The results of trying models.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Trial {
    /// A decision by the side model.
    pub decision: Tried,
    /// A statement by the main model.
    pub statement: Tried,
}

/// The result of trying one task with a model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tried {
    pub model: Arc<str>,
    /// Whether the answer can be used.
    pub works: bool,
    /// The changes to the request format that the model required, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adaptations: Vec<Cow<'static, str>>,
    /// The error code, as in records, if there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// The answer, or the error and how to fix it.
    pub detail: String,
    /// The duration in seconds.
    pub secs: f64,
    /// The number of input tokens, if the server counts them.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The cost in units of the currency. Absent: the model has no price, or there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
