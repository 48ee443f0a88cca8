//! Further models, each in a table with its own name: `[models.NAME]`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

use super::extra::ExtraValues;
use super::{Endpoint, Models, Problem, Vision, within};
use crate::domain::id::ModelName;

/// A model that companions name in their files. If the timeouts, the limits or the temperature are absent, those of the role's table apply:
/// `models.main` or `models.side`. No other key is inherited, except `timeout_secs`, which always comes from the role's table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedModel {
    /// See [`Endpoint::base_url`]. Required.
    pub base_url: Option<String>,
    /// See [`Endpoint::model`]. Required.
    pub model: Option<String>,
    pub api_key: Option<SecretString>,
    pub api_key_file: Option<PathBuf>,
    /// Seconds until the first token: 0.1 to 3600, and at most `timeout_secs` of each role in which a companion uses the model.
    pub first_token_timeout_secs: Option<f64>,
    /// The longest pause in a stream in seconds. The same limits apply.
    pub idle_timeout_secs: Option<f64>,
    /// See [`Endpoint::max_concurrent`]. It applies in each role separately.
    pub max_concurrent: Option<usize>,
    /// See [`Endpoint::guild_max_concurrent`]. If only `max_concurrent` is set, half of that.
    pub guild_max_concurrent: Option<usize>,
    #[serde(default)]
    pub vision: Vision,
    pub temperature: Option<f64>,
    #[serde(default)]
    pub extra_body: Map<String, Value>,
    #[serde(default)]
    pub extra_headers: ExtraValues,
    #[serde(default)]
    pub extra_query: ExtraValues,
    pub input_price: Option<f64>,
    pub output_price: Option<f64>,
    pub cache_read_price: Option<f64>,
    pub cache_write_price: Option<f64>,
}

impl NamedModel {
    /// The model's endpoint and limits in a role. Absent timeouts, limits and temperature come from the role's table.
    pub fn in_role(&self, role: &Endpoint) -> Endpoint {
        let at_most = |secs: Option<f64>, otherwise: f64| secs.unwrap_or(otherwise).min(role.timeout_secs);
        Endpoint {
            base_url: self.base_url.clone(),
            model: self.model.clone(),
            api_key: self.api_key.clone(),
            api_key_file: self.api_key_file.clone(),
            timeout_secs: role.timeout_secs,
            first_token_timeout_secs: at_most(self.first_token_timeout_secs, role.first_token_timeout_secs),
            idle_timeout_secs: at_most(self.idle_timeout_secs, role.idle_timeout_secs),
            max_concurrent: self.max_concurrent.unwrap_or(role.max_concurrent),
            guild_max_concurrent: self
                .guild_max_concurrent
                .or(role.guild_max_concurrent.filter(|_| self.max_concurrent.is_none())),
            vision: self.vision,
            temperature: self.temperature.or(role.temperature),
            extra_body: self.extra_body.clone(),
            extra_headers: self.extra_headers.clone(),
            extra_query: self.extra_query.clone(),
            input_price: self.input_price,
            output_price: self.output_price,
            cache_read_price: self.cache_read_price,
            cache_write_price: self.cache_write_price,
        }
    }

    /// The timeouts that exceed `timeout_secs` of this role.
    pub(crate) fn overlong(&self, role: &Endpoint) -> impl Iterator<Item = (&'static str, f64)> {
        self.set_timeouts().filter(|(_, secs)| *secs > role.timeout_secs)
    }

    fn set_timeouts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let secs = [("first_token_timeout_secs", self.first_token_timeout_secs), ("idle_timeout_secs", self.idle_timeout_secs)];
        secs.into_iter().filter_map(|(key, secs)| Some((key, secs?)))
    }

    /// `role` is the table of any role. It must have been checked.
    pub(super) fn check(&self, name: &ModelName, role: &Endpoint) -> Result<(), Problem> {
        check_table_name(name.as_str())?;
        let ranges = self.set_timeouts().try_for_each(|(key, secs)| within(key, secs, 0.1..=3600.0));
        let outcome = ranges.and_then(|()| self.in_role(role).check()).and_then(|()| match self.base_url {
            Some(_) => Ok(()),
            None => Err(Problem::new(
                "base_url",
                "is missing; set the URL where the model is served, for example \"http://127.0.0.1:11434/v1\"",
            )),
        });
        outcome.map_err(|problem| Problem { key: format!("{name}.{}", problem.key), ..problem })
    }
}

/// Checks a table's name. It must also be valid in the name of an environment variable, where `__` is the separator.
pub(crate) fn check_table_name(text: &str) -> Result<(), Problem> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = text.len() <= 32
        && text.bytes().all(allowed)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.contains("__")
        && !text.ends_with('_');
    if is_name {
        return Ok(());
    }
    Err(Problem::new(
        text,
        "is not a name of 1 to 32 letters a-z, digits and single _ between them that begins with a letter; rename it",
    ))
}

impl<'de> Deserialize<'de> for Models {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Section;

        impl<'de> Visitor<'de> for Section {
            type Value = Models;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct Models")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Models, A::Error> {
                let mut named = BTreeMap::new();
                // Reads the section's own keys, and collects the other tables in `named`.
                let models = Models::deserialize(MapAccessDeserializer::new(Splitter { map, named: &mut named }))?;
                Ok(Models { named, ..models })
            }
        }

        deserializer.deserialize_struct("Models", &[], Section)
    }
}

/// Passes on the section's own keys, and collects the tables of further models.
struct Splitter<'a, A> {
    map: A,
    named: &'a mut BTreeMap<ModelName, NamedModel>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Splitter<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if Models::KEYS.contains(&&*key) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            match self.map.next_value()? {
                Entry::Table(model) => drop(self.named.insert(key.into(), *model)),
                Entry::Other => return Err(A::Error::unknown_field(&key, Models::KEYS)),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// The value of a key that is not one of the section's own.
enum Entry {
    Table(Box<NamedModel>),
    Other,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        macro_rules! other {
            ($($visit:ident: $type:ty,)+) => {
                $(fn $visit<E: de::Error>(self, _: $type) -> Result<Entry, E> {
                    Ok(Entry::Other)
                })+
            };
        }

        impl<'de> Visitor<'de> for Either {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                NamedModel::deserialize(MapAccessDeserializer::new(map)).map(|model| Entry::Table(Box::new(model)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Entry, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Entry::Other)
            }

            other! {
                visit_bool: bool,
                visit_i64: i64,
                visit_u64: u64,
                visit_f64: f64,
                visit_str: &str,
            }
        }

        deserializer.deserialize_map(Either)
    }
}
