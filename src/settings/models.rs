//! Section `models`: the models, their endpoints, timeouts and limits.

pub mod extra;
pub mod moderation;
mod named;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Url};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::extra::{Extra, ExtraValues};
use self::moderation::Moderation;
pub use self::named::NamedModel;
pub(super) use self::named::check_table_name;
use super::companion::shortened;
use super::secret::{bare_secret, secret};
use super::{Problem, duration, within};
use crate::domain::id::ModelName;
use crate::domain::model_role::ModelRole;
use crate::domain::price::Price;

/// The highest price for a million tokens, in units of the currency.
pub(super) const HIGHEST_PRICE: f64 = 1_000_000.0;

/// The lowest price above zero: smaller amounts are not counted.
pub(super) const LOWEST_PRICE: f64 = 0.000_001;

/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 8 * 1024;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Models {
    /// The cheap, fast model that answers decisions and writes summaries.
    pub side: Endpoint,
    /// The model that writes statements.
    pub main: Endpoint,
    /// Tokens that a guild may use in a day, over all models. `None`: no limit.
    pub guild_tokens_per_day: Option<u64>,
    /// A PEM file with certificate authorities for models and speech services, in addition to those of the machine.
    pub ca_file: Option<PathBuf>,
    /// The currency of all prices as an ISO 4217 code: three capital letters.
    pub currency: String,
    /// The moderation service for statements. `None`: statements are not moderated.
    pub moderation: Option<Moderation>,
    /// Whether the server tries the models once when it starts.
    pub check_at_start: bool,
    /// Whether the side model describes pictures that people post without a description.
    #[serde(default)]
    pub captions: bool,
    /// The queue and retries of calls.
    pub pool: Pool,
    pub breaker: Breaker,
    pub rehearsal: Rehearsal,
    /// Further models, which companions name in their files: all other tables of this section.
    #[serde(skip)]
    pub named: BTreeMap<ModelName, NamedModel>,
}

/// The endpoint and limits of a model in a role.
#[derive(Clone, Debug)]
pub struct Served<'a> {
    /// The table with the endpoint.
    pub table: ModelName,
    /// That table. `None`: the role is served by `rehearsal`.
    pub endpoint: Option<Cow<'a, Endpoint>>,
    /// The timeouts and limits of its calls.
    pub limits: Cow<'a, Endpoint>,
}

/// Limits of concurrent calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// The limit over all guilds, at least 1.
    pub most: usize,
    /// The limit for one guild, at least 1.
    pub guild_share: usize,
}

/// A model's endpoint, and its limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The base URL of an OpenAI-compatible API, for example `http://127.0.0.1:11434/v1`. Without it the other role's endpoint serves this role too.
    pub base_url: Option<String>,
    /// The model's name at the endpoint. Required with `base_url`.
    pub model: Option<String>,
    /// The API key, only from the environment (`TERTULIA__MODELS__MAIN__API_KEY`).
    pub api_key: Option<SecretString>,
    /// A file that contains only the key.
    pub api_key_file: Option<PathBuf>,
    /// Seconds for a question, including the wait in the queue and retries: 0.1 to 3600.
    pub timeout_secs: f64,
    /// Seconds until the first token: 0.1 to `timeout_secs`.
    pub first_token_timeout_secs: f64,
    /// The longest pause in a stream in seconds: 0.1 to `timeout_secs`.
    pub idle_timeout_secs: f64,
    /// Concurrent calls: 1 to 1024.
    pub max_concurrent: usize,
    /// Concurrent calls for one guild: 1 to 1024. `None`: half of `max_concurrent`.
    pub guild_max_concurrent: Option<usize>,
    /// Whether the model is sent pictures. Only statements show any.
    #[serde(default)]
    pub vision: Vision,
    /// The sampling temperature, 0 to 2. `None`: the endpoint's default.
    pub temperature: Option<f64>,
    /// Further fields of the body of each request to the model.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
    /// Further headers of each request.
    #[serde(default)]
    pub extra_headers: ExtraValues,
    /// Further parameters in the address of each request.
    #[serde(default)]
    pub extra_query: ExtraValues,
    /// The price of a million input tokens, in units of `models.currency`: 0, or 0.000001 to 1000000. Both prices must be set, or
    /// none. Without prices the cost is unknown.
    pub input_price: Option<f64>,
    /// The price of a million output tokens. The same rules apply.
    pub output_price: Option<f64>,
    /// The price of a million input tokens that the endpoint reads from its cache: 0, or 0.000001 to 1000000. `None`: `input_price`.
    pub cache_read_price: Option<f64>,
    /// The price of a million input tokens that the endpoint writes to its cache. The same rules apply.
    pub cache_write_price: Option<f64>,
}

/// Whether a model is sent pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "VisionValue", into = "VisionValue")]
#[schemars(with = "VisionValue")]
pub enum Vision {
    /// It gets the descriptions of pictures.
    #[default]
    Off,
    On,
    /// Unless its endpoint's list of models says that it reads none, or it has refused some.
    Auto,
}

/// `true`, `false` or `"auto"`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be true, false or \"auto\"")]
enum VisionValue {
    IsOn(bool),
    Word(VisionWord),
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VisionWord {
    Auto,
    /// From the environment, which has texts.
    True,
    False,
}

impl From<VisionValue> for Vision {
    fn from(value: VisionValue) -> Self {
        match value {
            VisionValue::IsOn(false) | VisionValue::Word(VisionWord::False) => Self::Off,
            VisionValue::IsOn(true) | VisionValue::Word(VisionWord::True) => Self::On,
            VisionValue::Word(VisionWord::Auto) => Self::Auto,
        }
    }
}

impl From<Vision> for VisionValue {
    fn from(vision: Vision) -> Self {
        match vision {
            Vision::Off => Self::IsOn(false),
            Vision::On => Self::IsOn(true),
            Vision::Auto => Self::Word(VisionWord::Auto),
        }
    }
}

impl Vision {
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }
}

/// The queue and retries of calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// The maximum number of waiting questions for each model in each role: 1 to 100000.
    pub queue_capacity: usize,
    /// The maximum number of calls for one question: 1 to 20.
    pub max_attempts: u32,
    /// Seconds before the second call, doubled for each further call: 0.01 to 60.
    pub backoff_secs: f64,
    /// The longest such pause in seconds: `backoff_secs` to 600.
    pub max_backoff_secs: f64,
}

/// The circuit breaker of an endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Consecutive failures that open the breaker: 1 to 1000.
    pub failures: u32,
    /// Seconds until one question may try the endpoint again: 0.1 to 3600.
    pub cool_down_secs: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rehearsal {
    /// The seed of the answers. Another seed gives other answers to the same prompt.
    pub seed: u64,
    /// How slowly it answers, 0 to 10: 0 is immediately, 1 is like a quick person.
    pub pace: f64,
}

impl Models {
    /// The section's own keys, which cannot be names of further models.
    const KEYS: &[&str] = &[
        "side",
        "main",
        "moderation",
        "guild_tokens_per_day",
        "ca_file",
        "currency",
        "check_at_start",
        "captions",
        "pool",
        "breaker",
        "rehearsal",
    ];

    /// Checks all ranges, and the keys that depend on each other. Returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        for role in [ModelRole::Side, ModelRole::Main] {
            self.own(role).check().map_err(|problem| Problem { key: format!("{}.{}", role.as_str(), problem.key), ..problem })?;
        }
        // The page can use only the key of `main` for a connected model.
        if self.side.api_key.is_some() && self.side.base_url.is_none() {
            return Err(Problem::new("side.base_url", "is missing, but a key is set; set base_url and model, or remove the key"));
        }
        if self.guild_tokens_per_day == Some(0) {
            return Err(Problem::new("guild_tokens_per_day", "is 0, must be at least 1; remove it for no limit"));
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(Problem::new("currency", format!("is {:?}, must be three capital letters, like \"USD\"", self.currency)));
        }
        let moderation = self.moderation.as_ref().map_or(Ok(()), Moderation::check);
        moderation.map_err(|problem| Problem { key: format!("moderation.{}", problem.key), ..problem })?;
        self.pool.check().map_err(|problem| Problem { key: format!("pool.{}", problem.key), ..problem })?;
        within("breaker.failures", self.breaker.failures, 1..=1000)?;
        within("breaker.cool_down_secs", self.breaker.cool_down_secs, 0.1..=3600.0)?;
        within("rehearsal.pace", self.rehearsal.pace, 0.0..=10.0)?;
        self.named.iter().try_for_each(|(name, model)| {
            model.check(name, &self.main)?;
            // The timeouts of a model that is used in only one role may exceed those of the other role.
            let longest = if self.main.timeout_secs < self.side.timeout_secs { &self.side } else { &self.main };
            let Some((key, secs)) = model.overlong(longest).next() else { return Ok(()) };
            let (main, side) = (self.main.timeout_secs, self.side.timeout_secs);
            let message = format!(
                "is {secs}, longer than a question may take in any role (models.main.timeout_secs = {main}, models.side.timeout_secs = \
                 {side}); lower it or raise one of those"
            );
            Err(Problem::new(format!("{name}.{key}"), message))
        })
    }

    /// One note for each model whose concurrent calls a single guild may use up, and one for an unused key. Each note contains
    /// the remedy.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |name: &str, Concurrency { most, .. }| {
            let remedy = match most {
                1 => format!("raise models.{name}.max_concurrent if the endpoint can serve more calls at a time"),
                _ => format!("set models.{name}.guild_max_concurrent to {} or less", most / 2),
            };
            format!(
                "models.{name}: one guild may use all concurrent calls ({most}), and every other guild waits while its calls hang; {remedy}"
            )
        };
        let roles = [ModelRole::Side, ModelRole::Main].map(|role| (role.as_str(), self.concurrency(role, &role.into())));
        // If a further model does not set these, the note about the role covers it.
        let named = self.named.iter().filter(|(_, model)| model.max_concurrent.is_some() || model.guild_max_concurrent.is_some());
        let named = named.map(|(name, _)| (name.as_str(), self.concurrency(ModelRole::Side, name)));
        let all = roles.into_iter().chain(named);
        let spare_key = (self.main.api_key.is_some() && self.main.base_url.is_none()).then(|| {
            "models.main: a key is set, but no base_url: nothing uses the key; set base_url and model, or connect the model on the page".to_owned()
        });
        all.filter(|(_, calls)| calls.guild_share >= calls.most).map(|(name, calls)| note(name, calls)).chain(spare_key).collect()
    }

    /// The names of models that a companion's file may use: `main`, `side` and those of further models.
    pub fn names(&self) -> impl Iterator<Item = ModelName> {
        [ModelRole::Main.into(), ModelRole::Side.into()].into_iter().chain(self.named.keys().cloned())
    }

    /// Whether any model has an endpoint, as opposed to the rehearsal.
    pub fn has_endpoint(&self) -> bool {
        let named = self.named.values().map(|model| model.base_url.as_ref());
        [self.main.base_url.as_ref(), self.side.base_url.as_ref()].into_iter().chain(named).any(|address| address.is_some())
    }

    /// Why a companion cannot use the model of this name in a role: the model does not exist, or its timeouts exceed the role's
    /// `timeout_secs`. The text follows the name of a key.
    pub fn problem_of(&self, role: ModelRole, name: &ModelName) -> Option<String> {
        let own = self.own(role);
        if !self.names().any(|known| known == *name) {
            let names: Vec<_> = self.names().map(|name| name.to_string()).collect();
            return Some(format!("= {:?} is not a model; the models are: {}", shortened(name.as_str()), names.join(", ")));
        }
        let (key, secs) = self.named.get(name)?.overlong(own).next()?;
        let (role, most) = (role.as_str(), own.timeout_secs);
        Some(format!(
            "= \"{name}\" waits longer than its question may take: models.{name}.{key} = {secs}, models.{role}.timeout_secs = {most}; \
             lower the first or raise the second"
        ))
    }

    /// Resolves the model for a role by name: a further model, or the endpoint of `main` or `side`.
    pub fn served(&self, role: ModelRole, name: &ModelName) -> Served<'_> {
        let own = self.own(role);
        if let Some(model) = self.named.get(name) {
            let endpoint: Cow<'_, Endpoint> = Cow::Owned(model.in_role(own));
            return Served { table: name.clone(), endpoint: Some(endpoint.clone()), limits: endpoint };
        }
        let named_role = Self::role_of(name).unwrap_or(role);
        let limits = if named_role == role {
            Cow::Borrowed(own)
        } else {
            Cow::Owned(Endpoint { timeout_secs: own.timeout_secs, ..self.own(named_role).clone() })
        };
        let serves = |role: &ModelRole| self.own(*role).base_url.is_some();
        let table = [named_role, named_role.other()].into_iter().find(serves);
        let endpoint = table.map(|table| Cow::Borrowed(self.own(table)));
        Served { table: table.unwrap_or(named_role).into(), endpoint, limits }
    }

    /// The limits of concurrent calls of this model in this role.
    pub fn concurrency(&self, role: ModelRole, name: &ModelName) -> Concurrency {
        let own = self.own(Self::role_of(name).unwrap_or(role));
        let limits = |most: usize, guild: Option<usize>| Concurrency { most, guild_share: guild.unwrap_or((most / 2).max(1)) };
        match self.named.get(name) {
            Some(NamedModel { max_concurrent: Some(most), guild_max_concurrent, .. }) => limits(*most, *guild_max_concurrent),
            Some(model) => limits(own.max_concurrent, model.guild_max_concurrent.or(own.guild_max_concurrent)),
            None => limits(own.max_concurrent, own.guild_max_concurrent),
        }
    }

    fn role_of(name: &ModelName) -> Option<ModelRole> {
        [ModelRole::Side, ModelRole::Main].into_iter().find(|role| role.as_str() == name.as_str())
    }

    /// The role's own table. Its timeouts and limits apply even if another endpoint serves the role.
    pub const fn own(&self, role: ModelRole) -> &Endpoint {
        match role {
            ModelRole::Side => &self.side,
            ModelRole::Main => &self.main,
        }
    }

    /// The certificate authorities in `ca_file`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a certificate in it cannot be used.
    pub fn authorities(&self) -> Result<Vec<Certificate>, Problem> {
        let Some(path) = &self.ca_file else { return Ok(Vec::new()) };
        let problem = |what: &dyn std::fmt::Display| Problem::new("ca_file", format!("{} {what}", path.display()));
        let text = std::fs::read(path).map_err(|error| {
            problem(&format!("cannot be read: {error}; name a PEM file that the server may read, or leave it out"))
        })?;
        let read = |der: CertificateDer<'static>| {
            // reqwest would check it later only.
            RootCertStore::empty().add(der.clone()).map_err(|error| error.to_string())?;
            Certificate::from_der(&der).map_err(|error| error.to_string())
        };
        let found = CertificateDer::pem_slice_iter(&text).map(|der| der.map_err(|error| error.to_string()).and_then(read));
        let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| {
            problem(&format!("holds a certificate that cannot be used: {error}; take it out, or convert it to PEM again"))
        })?;
        if found.is_empty() {
            return Err(problem(&"holds no certificate; name a PEM file, with lines -----BEGIN CERTIFICATE-----"));
        }
        Ok(found)
    }

    /// The price of a model. `rehearsal` is free. `None`: no price is set, so the cost is unknown.
    pub fn price(&self, role: ModelRole, name: &ModelName) -> Option<Price> {
        let Some(endpoint) = self.served(role, name).endpoint else { return Some(Price::free(&self.currency)) };
        let (input, output) = endpoint.input_price.zip(endpoint.output_price)?;
        let price = Price::per_million(input, output, &self.currency);
        Some(price.with_cache(endpoint.cache_read_price, endpoint.cache_write_price))
    }
}

impl Endpoint {
    fn check(&self) -> Result<(), Problem> {
        if let Some(url) = &self.base_url {
            parsed_base_url(url)?;
        }
        if self.model.as_ref().is_some_and(|model| model.trim().is_empty() || model.len() > 200) {
            return Err(Problem::new("model", "must be the name of the model at the endpoint, 1 to 200 bytes"));
        }
        for (key, price) in self.prices() {
            let price = price.filter(|price| *price != 0.0).unwrap_or(LOWEST_PRICE);
            within(key, price, LOWEST_PRICE..=HIGHEST_PRICE)?;
        }
        check_key_sources(self.api_key.as_ref(), self.api_key_file.as_deref())?;
        within("timeout_secs", self.timeout_secs, 0.1..=3600.0)?;
        for (key, secs) in
            [("first_token_timeout_secs", self.first_token_timeout_secs), ("idle_timeout_secs", self.idle_timeout_secs)]
        {
            let most = self.timeout_secs;
            if !(0.1..=most).contains(&secs) {
                // The operator may have lowered only `timeout_secs`, so that the error is about this key's default.
                let message = format!(
                    "is {secs}, must be from 0.1 to {most}, the value of timeout_secs in this table: change both together"
                );
                return Err(Problem::new(key, message));
            }
        }
        within("max_concurrent", self.max_concurrent, 1..=1024)?;
        within("guild_max_concurrent", self.guild_share(), 1..=1024)?;
        within("temperature", self.temperature.unwrap_or_default(), 0.0..=2.0)?;
        self.extra()?;
        // This is the last check: if a value was out of range and was removed, the keys that depend on it are not the problem.
        self.check_dependent_keys()
    }

    fn check_dependent_keys(&self) -> Result<(), Problem> {
        match (&self.base_url, &self.model) {
            (Some(_), Some(_)) => {}
            (Some(url), None) => return Err(Problem::new("model", format!("is missing; name the model that {url} serves"))),
            (None, Some(model)) => {
                return Err(Problem::new(
                    "base_url",
                    format!("is missing; set the URL where {model:?} is served, for example \"http://127.0.0.1:11434/v1\""),
                ));
            }
            (None, None) if self.api_key_file.is_some() => {
                return Err(Problem::new("base_url", "is missing, but a key is set; set base_url and model, or remove the key"));
            }
            (None, None) if self.prices().into_iter().any(|(_, price)| price.is_some()) => {
                return Err(Problem::new(
                    "base_url",
                    "is missing, but a price is set; set base_url and model, or remove the price: the endpoint that serves this \
                     role has its own",
                ));
            }
            (None, None) => {}
        }
        match (self.input_price, self.output_price) {
            (Some(_), None) => Err(Problem::new("output_price", "is missing, but input_price is set; set both")),
            (None, Some(_)) => Err(Problem::new("input_price", "is missing, but output_price is set; set both")),
            (None, None) if self.cache_read_price.is_some() || self.cache_write_price.is_some() => {
                let message = "is missing, but a price of cached tokens is set; set input_price and output_price, too";
                Err(Problem::new("input_price", message))
            }
            _ => Ok(()),
        }
    }

    fn prices(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("input_price", self.input_price),
            ("output_price", self.output_price),
            ("cache_read_price", self.cache_read_price),
            ("cache_write_price", self.cache_write_price),
        ]
    }

    /// The key from the settings or its file, if one is set.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the key is empty, too long, or contains characters that are not allowed
    /// in an HTTP header.
    pub fn key(&self) -> Result<Option<SecretString>, Problem> {
        read_key(self.api_key.as_ref(), self.api_key_file.as_deref())
    }

    /// The additional body fields, headers and query parameters.
    ///
    /// # Errors
    /// Returns an error if a name or a value cannot be sent, or if a file or a variable cannot be read.
    pub fn extra(&self) -> Result<Extra, Problem> {
        let sends_key = self.api_key.is_some() || self.api_key_file.is_some();
        Extra::of(&self.extra_body, &self.extra_headers, &self.extra_query, sends_key)
    }

    /// Concurrent calls for one guild. The default is half of `max_concurrent`, rounded down, but at least 1.
    pub fn guild_share(&self) -> usize {
        self.guild_max_concurrent.unwrap_or((self.max_concurrent / 2).max(1))
    }

    /// How long a question may take, including the wait in the queue and retries.
    pub fn timeout(&self) -> Duration {
        duration(self.timeout_secs)
    }
}

impl Pool {
    fn check(&self) -> Result<(), Problem> {
        within("queue_capacity", self.queue_capacity, 1..=100_000)?;
        within("max_attempts", self.max_attempts, 1..=20)?;
        within("backoff_secs", self.backoff_secs, 0.01..=60.0)?;
        within("max_backoff_secs", self.max_backoff_secs, self.backoff_secs..=600.0)
    }
}

/// Checks that a key is set in only one place.
pub(super) fn check_key_sources(key: Option<&SecretString>, file: Option<&Path>) -> Result<(), Problem> {
    match (key, file) {
        (Some(_), Some(_)) => {
            Err(Problem::new("api_key_file", "is set, but the environment sets a key too; set only one of them"))
        }
        _ => Ok(()),
    }
}

/// Returns the key from the settings, or from the file.
pub(super) fn read_key(key: Option<&SecretString>, file: Option<&Path>) -> Result<Option<SecretString>, Problem> {
    read_secret(("api_key", key), ("api_key_file", file))
}

/// Returns a secret for a header from the settings, or from the file, each with its key.
pub(super) fn read_secret(
    key: (&'static str, Option<&SecretString>),
    file: (&'static str, Option<&Path>),
) -> Result<Option<SecretString>, Problem> {
    let Some((name, key)) = secret(key, file)? else { return Ok(None) };
    let key = SecretString::from(bare_secret(name, key.expose_secret())?);
    let fits = |key: &str| !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits(key.expose_secret()) {
        return Err(Problem::new(name, "must contain one key of visible ASCII characters and nothing else"));
    }
    Ok(Some(key))
}

/// Parses the base URL of an API.
///
/// # Errors
/// Returns an error if the text is not an absolute http or https URL, or if it contains a user, a password, a fragment, or a
/// query that looks like a secret.
pub fn parsed_base_url(text: &str) -> Result<Url, Problem> {
    // Azure passes the version of the API as a query parameter.
    let (address, query) = text.split_once('?').unwrap_or((text, ""));
    let mut url = parsed_endpoint("base_url", address, "http://127.0.0.1:11434/v1")?;
    url.set_query(Some(query).filter(|query| !query.is_empty()));
    if let Some((name, _)) = url.query_pairs().find(|(name, _)| names_a_secret(name)) {
        let message = format!("must not contain the secret {name}; set it in extra_query, from a file or the environment");
        return Err(Problem::new("base_url", message));
    }
    if url.fragment().is_some() || query.contains('#') {
        return Err(Problem::new("base_url", "must not contain a #"));
    }
    Ok(url)
}

/// Whether a parameter of this name holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    ["key", "token", "secret", "sig", "password"].iter().any(|word| name.to_lowercase().contains(word))
}

/// Parses the URL of another server, the value of this key.
///
/// # Errors
/// Returns an error if the text is not an absolute http or https URL with a host, or if it has a user, a password, a query or a fragment.
pub fn parsed_endpoint(key: &str, text: &str, example: &str) -> Result<Url, Problem> {
    let example = format!("for example \"{example}\"");
    let url =
        Url::parse(text).map_err(|error| Problem::new(key, format!("is not a whole address ({error}); give one, {example}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(Problem::new(key, format!("must begin with http:// or https:// and name a host, {example}")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(Problem::new(
            key,
            format!("must not contain a user, a key, a ? or a #, {example}; set the key in the environment"),
        ));
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
