//! Additional body fields, headers and query parameters for an endpoint.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::secret::bare_secret;
use super::Problem;

/// The fields that the program sets itself.
const OWN_FIELDS: [&str; 9] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "response_format",
    "stream",
    "stream_options",
    "temperature",
    "tools",
];
/// The headers that the program or its HTTP client sets itself.
const OWN_HEADERS: [&str; 8] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "transfer-encoding",
];
/// The maximum number of fields, of headers, and of parameters.
const MOST: usize = 32;

/// The value of a header or a parameter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a text, { file = \"…\" } or { env = \"…\" }")]
pub enum ExtraValue {
    Text(#[serde(serialize_with = "exposed")] SecretString),
    /// The path of a file that contains only the value. The value is a secret.
    File {
        file: PathBuf,
    },
    /// The name of an environment variable. The value is a secret.
    Variable {
        env: String,
    },
    /// A value that was entered on the page.
    #[serde(skip_deserializing)]
    Secret(#[serde(serialize_with = "exposed")] SecretString),
}

/// Serializes a secret in plain text. Used only for the file of a connection.
pub(crate) fn exposed<S: serde::Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

/// A table of values by their names.
pub type ExtraValues = BTreeMap<String, ExtraValue>;

/// The additional fields, headers and parameters, with values read from files and the environment.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    pub body: Map<String, Value>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub query: Vec<(String, SecretString)>,
    /// Values to redact from errors and logs.
    pub secrets: Vec<SecretString>,
}

impl Extra {
    /// # Errors
    /// Returns an error if the program sets a name itself, if a name cannot be sent, or if a value cannot be read.
    pub(super) fn of(
        body: &Map<String, Value>,
        headers: &ExtraValues,
        query: &ExtraValues,
        sends_key: bool,
    ) -> Result<Self, Problem> {
        for (table, names) in [("extra_body", body.len()), ("extra_headers", headers.len()), ("extra_query", query.len())] {
            if names > MOST {
                return Err(Problem::new(table, format!("has {names} entries, may have {MOST}")));
            }
        }
        if let Some(own) = body.keys().find(|field| OWN_FIELDS.contains(&field.as_str())) {
            return Err(Problem::new("extra_body", format!("must not have {own}, which the program sets itself; remove it")));
        }
        let mut extra = Self { body: body.clone(), ..Self::default() };
        for (name, value) in headers {
            let key = || format!("extra_headers.{name}");
            let is_own = |name: &HeaderName| OWN_HEADERS.contains(&name.as_str()) || sends_key && name == "authorization";
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| Problem::new(key(), "is not the name of a header; it has letters, digits and -"))?;
            if is_own(&header) {
                return Err(Problem::new(key(), "is set by the program itself; remove it, or the key"));
            }
            let value = extra.read(&key(), value)?;
            let mut value = HeaderValue::from_str(value.expose_secret())
                .map_err(|_| Problem::new(key(), "holds characters that a header cannot have"))?;
            value.set_sensitive(true);
            extra.headers.push((header, value));
        }
        for (name, value) in query {
            let value = extra.read(&format!("extra_query.{name}"), value)?;
            extra.query.push((name.clone(), value));
        }
        Ok(extra)
    }

    fn read(&mut self, key: &str, value: &ExtraValue) -> Result<SecretString, Problem> {
        let secret = match value {
            ExtraValue::Text(text) => return Ok(text.clone()),
            ExtraValue::Secret(secret) => {
                self.secrets.push(secret.clone());
                return Ok(secret.clone());
            }
            ExtraValue::File { file } => std::fs::read_to_string(file)
                .map_err(|error| Problem::new(key, format!("the file {} cannot be read: {error}", file.display())))?,
            ExtraValue::Variable { env } => {
                std::env::var(env).map_err(|_| Problem::new(key, format!("the environment has no variable {env:?}; set it")))?
            }
        };
        let secret = SecretString::from(bare_secret(key, &secret)?);
        self.secrets.push(secret.clone());
        Ok(secret)
    }
}
