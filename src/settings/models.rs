//! Which models answer, how long they may take, and how much at a time.

mod named;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use self::named::NamedModel;
use super::Problem;
use crate::domain::id::ModelName;
use crate::domain::model_role::ModelRole;
use crate::domain::price::Price;

/// The highest price for a million tokens, in units of the currency.
const HIGHEST_PRICE: f64 = 1_000_000.0;

/// The lowest price that is not nothing: smaller parts are not counted.
const LOWEST_PRICE: f64 = 0.000_001;

/// A key file longer than this holds something else.
const MAX_KEY_BYTES: usize = 8 * 1024;

/// Section `[models]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Models {
    /// The cheap, fast model that answers decisions and writes summaries.
    pub side: Endpoint,
    /// The model that writes statements.
    pub main: Endpoint,
    /// Tokens that a guild may use in a day, over all models; none is no limit.
    pub guild_tokens_per_day: Option<u64>,
    /// The currency of all prices, as ISO 4217 writes it: three capital letters.
    pub currency: String,
    /// How questions wait and are tried again.
    pub pool: Pool,
    /// When an endpoint is left alone for a while.
    pub breaker: Breaker,
    /// The built-in model.
    pub rehearsal: Rehearsal,
    /// Further models, which companions name in their files: every other table of this section.
    #[serde(skip)]
    pub named: BTreeMap<ModelName, NamedModel>,
}

/// A model as it is asked in a role.
#[derive(Clone, Debug)]
pub struct Served<'a> {
    /// The table that says where it is served.
    pub table: ModelName,
    /// What that table says; none means `rehearsal`.
    pub endpoint: Option<Cow<'a, Endpoint>>,
    /// The timeouts and limits that it is asked within.
    pub limits: Cow<'a, Endpoint>,
}

/// How many calls run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// In all.
    pub most: usize,
    /// For one guild.
    pub guild_share: usize,
}

/// Where a model is served, and its limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Where its OpenAI-compatible API begins, for example `http://127.0.0.1:11434/v1`. Without it the other role's endpoint serves this one too.
    pub base_url: Option<String>,
    /// The model's name there; needed with `base_url`.
    pub model: Option<String>,
    /// Its key, from the environment alone (`TERTULIA__MODELS__MAIN__API_KEY`).
    pub api_key: Option<SecretString>,
    /// A file that holds the key alone.
    pub api_key_file: Option<PathBuf>,
    /// Seconds for a question, waiting and retries included: 0.1 to 3600.
    pub timeout_secs: f64,
    /// Seconds until the first word: at most `timeout_secs`.
    pub first_token_timeout_secs: f64,
    /// Seconds that a stream may pause: at most `timeout_secs`.
    pub idle_timeout_secs: f64,
    /// Calls at a time: 1 to 1024.
    pub max_concurrent: usize,
    /// Calls at a time for one guild: 1 to 1024. None is half of `max_concurrent`.
    pub guild_max_concurrent: Option<usize>,
    /// 0 to 2; none leaves it to the endpoint.
    pub temperature: Option<f64>,
    /// What a million tokens cost that the model reads, in units of `models.currency`: 0, or 0.000001 to 1000000. With `output_price`, or not
    /// at all: then what it costs is not known.
    pub input_price: Option<f64>,
    /// The same for tokens that it writes.
    pub output_price: Option<f64>,
}

/// How questions wait and are tried again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Questions that may wait for each model in each role: 1 to 100000.
    pub queue_capacity: usize,
    /// Calls for one question at most: 1 to 20.
    pub max_attempts: u32,
    /// Seconds before the second call, doubled for each further one: 0.01 to 60.
    pub backoff_secs: f64,
    /// The longest such pause in seconds: `backoff_secs` to 600.
    pub max_backoff_secs: f64,
}

/// When an endpoint is left alone for a while.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    /// Failures in a row that open it: 1 to 1000.
    pub failures: u32,
    /// Seconds until one question may try again: 0.1 to 3600.
    pub cool_down_secs: f64,
}

/// The built-in model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rehearsal {
    /// Another number gives other answers to the same words.
    pub seed: u64,
    /// 1 is the pace of a quick person, 0 answers at once: 0 to 10.
    pub pace: f64,
}

impl Models {
    /// The section's own keys, which are no names of further models.
    const KEYS: &[&str] = &["side", "main", "guild_tokens_per_day", "currency", "pool", "breaker", "rehearsal"];

    /// What of this section is out of range or does not go together.
    pub fn check(&self) -> Result<(), Problem> {
        for role in [ModelRole::Side, ModelRole::Main] {
            self.own(role).check().map_err(|problem| Problem { key: format!("{}.{}", role.as_str(), problem.key), ..problem })?;
        }
        if self.guild_tokens_per_day == Some(0) {
            return Err(problem("guild_tokens_per_day", "is 0, must be at least 1; leave it out for no limit"));
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(problem("currency", format!("is {:?}, must be three capital letters, like \"USD\"", self.currency)));
        }
        self.pool.check().map_err(|problem| Problem { key: format!("pool.{}", problem.key), ..problem })?;
        within("breaker.failures", f64::from(self.breaker.failures), 1.0, 1000.0)?;
        within("breaker.cool_down_secs", self.breaker.cool_down_secs, 0.1, 3600.0)?;
        within("rehearsal.pace", self.rehearsal.pace, 0.0, 10.0)?;
        self.named.iter().try_for_each(|(name, model)| {
            model.check(name, &self.main)?;
            // One that is asked in one role alone may take longer than the other's questions.
            let longest = if self.main.timeout_secs < self.side.timeout_secs { &self.side } else { &self.main };
            let Some((key, secs)) = model.overlong(longest).next() else { return Ok(()) };
            let (main, side) = (self.main.timeout_secs, self.side.timeout_secs);
            let message = format!(
                "is {secs}, longer than a question may take in any role (models.main.timeout_secs = {main}, models.side.timeout_secs = \
                 {side}); lower it, or raise one of those"
            );
            Err(problem(&format!("{name}.{key}"), message))
        })
    }

    /// One note for each role in which a single guild may take all calls, with the way out.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |name: &str, Concurrency { most, .. }| {
            let way_out = match most {
                1 => format!("raise models.{name}.max_concurrent if the endpoint can do more at a time"),
                _ => format!("set models.{name}.guild_max_concurrent to {} or less", most / 2),
            };
            format!(
                "models.{name}: one guild may take all calls ({most} at a time), and while its calls hang every other guild waits; {way_out}"
            )
        };
        let roles = [ModelRole::Side, ModelRole::Main].map(|role| (role.as_str(), self.concurrency(role, &role.into())));
        // What a further model leaves out was noted with the role.
        let named = self.named.iter().filter(|(_, model)| model.max_concurrent.is_some() || model.guild_max_concurrent.is_some());
        let named = named.map(|(name, _)| (name.as_str(), self.concurrency(ModelRole::Side, name)));
        let all = roles.into_iter().chain(named);
        all.filter(|(_, calls)| calls.guild_share >= calls.most).map(|(name, calls)| note(name, calls)).collect()
    }

    /// The names that a companion may have for its models.
    pub fn names(&self) -> impl Iterator<Item = ModelName> {
        [ModelRole::Main.into(), ModelRole::Side.into()].into_iter().chain(self.named.keys().cloned())
    }

    /// Who serves a role under a name: the further model of that name, or what `main` or `side` means.
    pub fn served(&self, role: ModelRole, name: &ModelName) -> Served<'_> {
        let own = self.own(role);
        if let Some(model) = self.named.get(name) {
            let endpoint: Cow<'_, Endpoint> = Cow::Owned(model.in_role(own));
            return Served { table: name.clone(), endpoint: Some(endpoint.clone()), limits: endpoint };
        }
        let meant = Self::role_of(name).unwrap_or(role);
        let limits = if meant == role {
            Cow::Borrowed(own)
        } else {
            Cow::Owned(Endpoint { timeout_secs: own.timeout_secs, ..self.own(meant).clone() })
        };
        let serves = |role: &ModelRole| self.own(*role).base_url.is_some();
        let table = [meant, meant.other()].into_iter().find(serves);
        let endpoint = table.map(|table| Cow::Borrowed(self.own(table)));
        Served { table: table.unwrap_or(meant).into(), endpoint, limits }
    }

    /// How many calls of this model run at a time in this role.
    pub fn concurrency(&self, role: ModelRole, name: &ModelName) -> Concurrency {
        let own = self.own(Self::role_of(name).unwrap_or(role));
        let of = |most: usize, of_guild: Option<usize>| Concurrency { most, guild_share: of_guild.unwrap_or((most / 2).max(1)) };
        match self.named.get(name) {
            Some(NamedModel { max_concurrent: Some(most), guild_max_concurrent, .. }) => of(*most, *guild_max_concurrent),
            Some(model) => of(own.max_concurrent, model.guild_max_concurrent.or(own.guild_max_concurrent)),
            None => of(own.max_concurrent, own.guild_max_concurrent),
        }
    }

    fn role_of(name: &ModelName) -> Option<ModelRole> {
        [ModelRole::Side, ModelRole::Main].into_iter().find(|role| role.as_str() == name.as_str())
    }

    /// The role's own table: its timeouts and limits, whoever serves it.
    pub const fn own(&self, role: ModelRole) -> &Endpoint {
        match role {
            ModelRole::Side => &self.side,
            ModelRole::Main => &self.main,
        }
    }

    /// What a model costs. `rehearsal` costs nothing, which is known; a model without prices costs nobody knows what.
    pub fn price(&self, role: ModelRole, name: &ModelName) -> Option<Price> {
        let Some(endpoint) = self.served(role, name).endpoint else { return Some(Price::free(&self.currency)) };
        let (input, output) = endpoint.input_price.zip(endpoint.output_price)?;
        Some(Price::per_million(input, output, &self.currency))
    }
}

impl Endpoint {
    fn check(&self) -> Result<(), Problem> {
        if let Some(url) = &self.base_url {
            parsed_base_url(url)?;
        }
        if self.model.as_ref().is_some_and(|model| model.trim().is_empty() || model.len() > 200) {
            return Err(problem("model", "must be a model's name of 1 to 200 bytes, as the endpoint knows it"));
        }
        for (key, price) in [("input_price", self.input_price), ("output_price", self.output_price)] {
            let price = price.filter(|price| *price != 0.0).unwrap_or(LOWEST_PRICE);
            within(key, price, LOWEST_PRICE, HIGHEST_PRICE)?;
        }
        if self.api_key.is_some() && self.api_key_file.is_some() {
            return Err(problem("api_key_file", "is set, and the environment gives a key too; keep one of them"));
        }
        within("timeout_secs", self.timeout_secs, 0.1, 3600.0)?;
        for (key, within) in
            [("first_token_timeout_secs", self.first_token_timeout_secs), ("idle_timeout_secs", self.idle_timeout_secs)]
        {
            let most = self.timeout_secs;
            if !(0.1..=most).contains(&within) {
                // Whoever lowered the one has not set the other, and finds the defaults blamed.
                let message =
                    format!("is {within}, must be from 0.1 to {most}, which is timeout_secs beside it: change both together");
                return Err(problem(key, message));
            }
        }
        within("max_concurrent", self.max_concurrent as f64, 1.0, 1024.0)?;
        within("guild_max_concurrent", self.guild_share() as f64, 1.0, 1024.0)?;
        within("temperature", self.temperature.unwrap_or_default(), 0.0, 2.0)?;
        // Last: whatever is out of range has been told by then, and what misses it is no news.
        self.check_what_goes_together()
    }

    fn check_what_goes_together(&self) -> Result<(), Problem> {
        match (&self.base_url, &self.model) {
            (Some(_), Some(_)) => {}
            (Some(url), None) => return Err(problem("model", format!("is missing; name the model that {url} serves"))),
            (None, Some(model)) => {
                return Err(problem(
                    "base_url",
                    format!("is missing; say where {model:?} is served, for example \"http://127.0.0.1:11434/v1\""),
                ));
            }
            (None, None) if self.api_key.is_some() || self.api_key_file.is_some() => {
                return Err(problem(
                    "base_url",
                    "is missing, though a key is given; set base_url and model, or take the key away",
                ));
            }
            (None, None) if self.input_price.is_some() || self.output_price.is_some() => {
                return Err(problem(
                    "base_url",
                    "is missing, though a price is given; set base_url and model, or take the price away: whatever serves this \
                     role has its own",
                ));
            }
            (None, None) => {}
        }
        match (self.input_price, self.output_price) {
            (Some(_), None) => Err(problem("output_price", "is missing, though input_price is given; give both")),
            (None, Some(_)) => Err(problem("input_price", "is missing, though output_price is given; give both")),
            _ => Ok(()),
        }
    }

    /// The key, if there is one, read from its file where that is named.
    ///
    /// # Errors
    /// When the file cannot be read, is empty, is too long, or holds what no HTTP header can carry.
    pub fn key(&self) -> Result<Option<SecretString>, Problem> {
        let (name, key) = match (&self.api_key, &self.api_key_file) {
            (Some(key), _) => ("api_key", key.clone()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| problem("api_key_file", format!("{} cannot be read: {error}", path.display())))?;
                ("api_key_file", SecretString::from(text.trim().to_owned()))
            }
            (None, None) => return Ok(None),
        };
        let fits = |key: &str| !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits(key.expose_secret()) {
            return Err(problem(name, "must be one key of visible ASCII characters and nothing else"));
        }
        Ok(Some(key))
    }

    /// Calls at a time for one guild: half of all, rounded down but never none, where nothing else is set.
    pub fn guild_share(&self) -> usize {
        self.guild_max_concurrent.unwrap_or((self.max_concurrent / 2).max(1))
    }

    /// How long a question may take, waiting and retries included.
    pub fn timeout(&self) -> Duration {
        seconds(self.timeout_secs)
    }
}

impl Pool {
    fn check(&self) -> Result<(), Problem> {
        within("queue_capacity", self.queue_capacity as f64, 1.0, 100_000.0)?;
        within("max_attempts", f64::from(self.max_attempts), 1.0, 20.0)?;
        within("backoff_secs", self.backoff_secs, 0.01, 60.0)?;
        within("max_backoff_secs", self.max_backoff_secs, self.backoff_secs, 600.0)
    }
}

/// A span of time from a setting that was checked; one that was not counts as zero.
pub fn seconds(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs).unwrap_or_default()
}

/// Reads where an API begins.
///
/// # Errors
/// When it is not an absolute http or https address, or carries a user, a query or a fragment.
pub fn parsed_base_url(text: &str) -> Result<Url, Problem> {
    let example = "for example \"http://127.0.0.1:11434/v1\"";
    let url = Url::parse(text)
        .map_err(|error| problem("base_url", format!("is not an address ({error}); give it whole, {example}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(problem("base_url", format!("must begin with http:// or https:// and name a host, {example}")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(problem(
            "base_url",
            format!("must hold neither a user, a key, a ? nor a #, {example}; a key goes to the environment"),
        ));
    }
    Ok(url)
}

fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), Problem> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(problem(key, format!("is {value}, must be from {least} to {most}")))
}

fn problem(key: &str, message: impl Into<String>) -> Problem {
    Problem { key: key.to_owned(), message: message.into() }
}

#[cfg(test)]
pub(crate) mod tests;
