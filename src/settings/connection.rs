//! The model that was connected on the page. It replaces the endpoints of `models.main` and `models.side`. It is stored in a file
//! of its own beside the store, which only the server's user may read.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::models::extra::{ExtraValue, ExtraValues};
use super::models::{Endpoint, Vision, names_a_secret};
use super::{Problem, Settings, private_file};
use crate::domain::policy::prompt::DecisionForm;

const FILE: &str = "connection.json";

/// The keys that a connection sets: the form of a decision's prompt, and the limits that follow from
/// [`Connection::timeout_secs`]. A key that the operator's settings change keeps its value. If one limit is changed, all limits
/// keep their values, because they depend on each other.
pub(super) const OVERRIDABLE: [&str; 10] = [
    DECISION,
    "models.side.timeout_secs",
    "models.side.first_token_timeout_secs",
    "models.side.idle_timeout_secs",
    "models.main.timeout_secs",
    "models.main.first_token_timeout_secs",
    "models.main.idle_timeout_secs",
    "turn_taking.state_timeout_secs",
    "turn_taking.floor_timeout_secs",
    "voice.decision_timeout_secs",
];
const DECISION: &str = "prompt.decision";
/// The allowed timeouts of a decision, in seconds. The minimum is the default of `models.side.timeout_secs`.
pub const TIMEOUT_SECS: RangeInclusive<u16> = 15..=600;
/// How much longer a round waits than a decision may take, in seconds. The defaults have the same difference.
const ROUND_AFTER_SECS: f64 = 5.0;
/// The maximum of `voice.decision_timeout_secs`.
const MOST_IN_CALL_SECS: f64 = 60.0;

/// A model server and its models.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The base URL of an OpenAI-compatible API.
    pub base_url: String,
    /// The API key. It belongs to the base URL.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub api_key: Option<SecretString>,
    /// Further headers of each request. Like the key, they belong to the base URL.
    #[serde(default, skip_serializing_if = "ExtraValues::is_empty")]
    pub extra_headers: ExtraValues,
    /// Further parameters in the address of each request.
    #[serde(default, skip_serializing_if = "ExtraValues::is_empty")]
    pub extra_query: ExtraValues,
    /// The model that writes statements. Without `side`, it also decides.
    pub main: ConnectedModel,
    /// The model that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<ConnectedModel>,
    /// The timeout of a decision in seconds. The related limits are derived from it. `None`: those of the settings apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// Whether decisions use the short prompt, as with `prompt.decision = "short"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short_decisions: bool,
}

/// A model at that server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectedModel {
    /// Its name there.
    #[schemars(length(min = 1))]
    pub model: String,
    /// The price of a million input tokens, in units of `models.currency`. Both prices are set, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// The price of a million output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
    /// The price of a million input tokens that the server reads from its cache. Absent: `input_price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_price: Option<f64>,
    /// The price of a million input tokens that the server writes to its cache. Absent: `input_price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_price: Option<f64>,
    /// Further fields of the body of each request to it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Whether it is sent pictures that people post. Only the model that writes statements is.
    #[serde(default, skip_serializing_if = "Vision::is_off")]
    pub vision: Vision,
}

/// Serializes the key in plain text. Used only for the connection's file.
fn exposed<S: serde::Serializer>(key: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    key.as_ref().map(ExposeSecret::expose_secret).serialize(serializer)
}

impl Connection {
    /// Reads the connection from a data folder. `None`: there is no file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(data: &Path) -> Result<Option<Self>, Problem> {
        let remedy = "delete it to use the models of the settings, and connect the model again on the page";
        private_file::read_of_page(&path(data), remedy)
    }

    /// Writes the connection to a data folder. The file is replaced atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        private_file::write(&path(data), &serde_json::to_vec_pretty(self)?)
    }

    /// Removes the connection from a data folder.
    ///
    /// # Errors
    /// Returns an error if the file cannot be removed.
    pub fn remove(data: &Path) -> io::Result<()> {
        private_file::remove(&path(data))
    }

    /// Returns the settings with this connection as the endpoint of both roles. Its limits apply unless the settings set any of
    /// them.
    pub fn applied_to(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        self.apply(&mut settings.models.main, Some(&self.main));
        self.apply(&mut settings.models.side, self.side.as_ref());
        if let Some(secs) = self.timeout_secs.filter(|_| settings.set.iter().all(|(key, _)| *key == DECISION)) {
            allow(&mut settings, secs.into());
        }
        if self.short_decisions && settings.set.iter().all(|(key, _)| *key != DECISION) {
            settings.prompt.decision = DecisionForm::Short;
        }
        settings
    }

    /// The settings that override a wish of this connection: each key with its place.
    pub fn overruled_by(&self, settings: &Settings) -> Vec<String> {
        let overrules = |key: &str| if key == DECISION { self.short_decisions } else { self.timeout_secs.is_some() };
        settings.set.iter().filter(|(key, _)| overrules(key)).map(|(key, place)| format!("{key} ({place})")).collect()
    }

    fn apply(&self, endpoint: &mut Endpoint, model: Option<&ConnectedModel>) {
        endpoint.base_url = model.map(|_| self.base_url.clone());
        endpoint.model = model.map(|model| model.model.clone());
        endpoint.api_key = self.api_key.clone().filter(|_| model.is_some());
        endpoint.api_key_file = None;
        endpoint.vision = model.map(|model| model.vision).unwrap_or_default();
        endpoint.input_price = model.and_then(|model| model.input_price);
        endpoint.output_price = model.and_then(|model| model.output_price);
        endpoint.cache_read_price = model.and_then(|model| model.cache_read_price);
        endpoint.cache_write_price = model.and_then(|model| model.cache_write_price);
        // The values in the settings belong to the base URL in the settings, so they are replaced.
        endpoint.extra_body = model.map(|model| model.extra_body.clone()).unwrap_or_default();
        endpoint.extra_headers = model.map(|_| secrets(&self.extra_headers, |_| true)).unwrap_or_default();
        endpoint.extra_query = model.map(|_| secrets(&self.extra_query, names_a_secret)).unwrap_or_default();
    }
}

/// Sets all limits that depend on a decision's timeout. A statement may take twice as long.
fn allow(settings: &mut Settings, secs: f64) {
    let Settings { models, turn_taking, voice, .. } = settings;
    (models.side.timeout_secs, models.side.first_token_timeout_secs, models.side.idle_timeout_secs) = (secs, secs, secs);
    turn_taking.state_timeout_secs = secs + ROUND_AFTER_SECS;
    let main = &mut models.main;
    for (limit, least) in [
        (&mut main.timeout_secs, 2.0 * secs),
        (&mut main.first_token_timeout_secs, secs),
        (&mut main.idle_timeout_secs, secs),
        (&mut turn_taking.floor_timeout_secs, secs),
        (&mut voice.decision_timeout_secs, secs.min(MOST_IN_CALL_SECS)),
    ] {
        *limit = limit.max(least);
    }
}

/// Converts the values. Those whose name satisfies `is_secret` become secrets.
fn secrets(values: &ExtraValues, is_secret: impl Fn(&str) -> bool) -> ExtraValues {
    let of = |(name, value): (&String, &ExtraValue)| match value {
        ExtraValue::Text(text) if is_secret(name) => (name.clone(), ExtraValue::Secret(text.clone())),
        value => (name.clone(), value.clone()),
    };
    values.iter().map(of).collect()
}

fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::models::Models;
    use super::*;
    use crate::domain::model_role::ModelRole;

    fn defaults() -> Settings {
        crate::samples::defaults().clone()
    }

    fn connection() -> Connection {
        let text = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), ExtraValue::Text(value.into()))]);
        let extra_body = Map::from_iter([("reasoning_effort".to_owned(), "low".into())]);
        Connection {
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            api_key: Some("secret".to_owned().into()),
            extra_headers: text("x-gateway-key", "secret"),
            extra_query: text("api-version", "2025-01-01"),
            main: ConnectedModel {
                model: "large".to_owned(),
                input_price: Some(0.5),
                output_price: Some(1.5),
                extra_body,
                ..ConnectedModel::default()
            },
            side: None,
            timeout_secs: None,
            short_decisions: false,
        }
    }

    #[test]
    fn only_the_owner_may_read_it_and_its_key_is_nowhere_else() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("connection.json.new"), "left by a server that was killed").unwrap();

        connection().write(data.path()).unwrap();

        let mode = fs::metadata(path(data.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = Connection::read(data.path()).unwrap().unwrap();
        assert_eq!(read.api_key.as_ref().map(ExposeSecret::expose_secret), Some("secret"));
        let extra = read.applied_to(&defaults()).models.main.extra().unwrap();
        assert_eq!((extra.headers[0].0.as_str(), extra.headers[0].1.as_bytes()), ("x-gateway-key", &b"secret"[..]));
        assert_eq!((&*extra.query[0].0, extra.query[0].1.expose_secret()), ("api-version", "2025-01-01"));
        assert_eq!(extra.body["reasoning_effort"], "low");
        assert_eq!(extra.secrets.iter().map(ExposeSecret::expose_secret).collect::<Vec<_>>(), ["secret"]);
        assert!(!format!("{read:?}").contains("secret"));
        Connection::remove(data.path()).unwrap();
        assert!(Connection::read(data.path()).unwrap().is_none());
    }

    #[test]
    fn one_model_serves_both_roles_unless_two_are_connected() {
        let mut settings = defaults();
        settings.models.side.base_url = Some("http://other/v1".to_owned());
        settings.models.main.api_key_file = Some("/run/secrets/other".into());
        settings.models.side.extra_headers =
            BTreeMap::from([("x-other".to_owned(), ExtraValue::Text("for http://other".into()))]);
        let mut connection = connection();

        let one = connection.applied_to(&settings).models;
        connection.side = Some(ConnectedModel { model: "small".to_owned(), ..ConnectedModel::default() });
        let two = connection.applied_to(&settings).models;

        let decides = |models: &Models| models.served(ModelRole::Side, &ModelRole::Side.into()).endpoint.unwrap().model.clone();
        assert_eq!((decides(&one).as_deref(), decides(&two).as_deref()), (Some("large"), Some("small")));
        assert_eq!((one.main.api_key_file, two.side.base_url), (None, Some(connection.base_url)));
        assert_eq!(two.side.extra_headers.keys().collect::<Vec<_>>(), ["x-gateway-key"]);
        assert!(one.side.extra_headers.is_empty() && two.side.extra_body.is_empty());
    }

    #[test]
    fn one_number_gives_a_slow_model_all_the_time_that_belongs_together() {
        let mut connection = Connection { timeout_secs: Some(60), short_decisions: true, ..connection() };
        let usual = defaults();

        let slow = connection.applied_to(&usual);

        let Settings { models, turn_taking, voice, prompt, .. } = &slow;
        let secs = |one: &Endpoint| (one.first_token_timeout_secs, one.idle_timeout_secs, one.timeout_secs);
        assert_eq!((secs(&models.side), secs(&models.main)), ((60.0, 60.0, 60.0), (60.0, 60.0, 120.0)));
        assert_eq!((turn_taking.state_timeout_secs, turn_taking.floor_timeout_secs), (65.0, 60.0));
        assert_eq!((voice.decision_timeout_secs, prompt.decision), (60.0, DecisionForm::Short));
        for secs in [*TIMEOUT_SECS.start(), *TIMEOUT_SECS.end()] {
            connection.timeout_secs = Some(secs);
            assert!(connection.applied_to(&usual).check().is_empty(), "{secs} s");
        }
        connection.timeout_secs = None;
        assert_eq!(secs(&connection.applied_to(&usual).models.side), secs(&usual.models.side));
    }

    #[test]
    fn limits_of_the_settings_go_before_those_that_were_given_on_the_page() {
        let connection = Connection { timeout_secs: Some(60), short_decisions: true, ..connection() };
        let mut settings = defaults();

        settings.set = vec![("turn_taking.state_timeout_secs", "default.toml:3".to_owned())];
        let limited = connection.applied_to(&settings);
        settings.set = vec![(DECISION, "default.toml:4".to_owned())];
        let asked_in_full = connection.applied_to(&settings);

        assert_eq!((limited.models.side.timeout_secs, limited.prompt.decision), (15.0, DecisionForm::Short));
        assert_eq!((asked_in_full.models.side.timeout_secs, asked_in_full.prompt.decision), (60.0, DecisionForm::Full));
        assert_eq!(connection.overruled_by(&settings), ["prompt.decision (default.toml:4)"]);
        assert_eq!(Connection { short_decisions: false, ..connection }.overruled_by(&settings), [""; 0]);
    }

    #[test]
    fn a_file_that_cannot_be_read_says_the_way_out() {
        let data = tempfile::tempdir().unwrap();
        fs::write(path(data.path()), "{}").unwrap();

        let problem = Connection::read(data.path()).unwrap_err();

        assert!(problem.message.contains("delete it"), "{problem:?}");
    }
}
