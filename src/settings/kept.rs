//! The settings that are made on the page. They are stored in a file of their own beside the store, which only the server's user may read, and apply
//! unless a settings file or a variable sets the same key to something else than its default.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::{fmt, io};

use config::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::layer::{Layer, located, merged, place};
use super::mismatch::{Mismatch, Path};
use super::models::Endpoint;
use super::safety::Safety;
use super::{Problem, Settings, private_file};
use crate::domain::policy::gate::Gate;

/// The file in the data folder.
pub const FILE: &str = "settings.json";
/// The tables of the speech services that the page sets up.
pub const EARS: &str = "page_ears";
pub const VOICE: &str = "page_voice";

/// The keys that can be set on the page.
pub const KEYS: [&str; 45] = [
    "speech.language",
    "speech.recognition",
    "speech.synthesis",
    "speech.services.page_ears.api",
    "speech.services.page_ears.base_url",
    "speech.services.page_ears.model",
    "speech.services.page_ears.api_key",
    "speech.services.page_ears.price",
    "speech.services.page_voice.api",
    "speech.services.page_voice.base_url",
    "speech.services.page_voice.model",
    "speech.services.page_voice.voice",
    "speech.services.page_voice.api_key",
    "speech.services.page_voice.price",
    TOKEN,
    "models.guild_tokens_per_day",
    "models.main.input_price",
    "models.main.output_price",
    "models.main.cache_read_price",
    "models.main.cache_write_price",
    "models.side.input_price",
    "models.side.output_price",
    "models.side.cache_read_price",
    "models.side.cache_write_price",
    "gate.guild_statements_per_day",
    "gate.guild_evaluations_per_hour",
    "gate.evaluations_per_hour",
    "speech.guild_minutes_per_day",
    "speech.guild_characters_per_day",
    "tools.guild_calls_per_day",
    "tools.person_calls_per_day",
    "guests.each.messages_per_day",
    "guests.each.voice_minutes_per_day",
    "guests.each.tokens_per_day",
    "guests.together.messages_per_day",
    "guests.together.voice_minutes_per_day",
    "guests.together.tokens_per_day",
    "prompt.time_zone",
    "memory.languages",
    "companion_defaults.quiet_hours",
    "safety.operator",
    "safety.privacy",
    "safety.notice",
    "safety.crisis",
    "safety.crisis_text",
];
const TOKEN: &str = "discord.token";
/// A file may hold the token instead, and then the page's does not apply.
const TOKEN_FILE: &str = "discord.token_file";

/// Settings made on the page, by their keys.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kept(pub BTreeMap<String, Json>);

impl fmt::Debug for Kept {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// A key that can be set on the page, and what is in force.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KeptField {
    /// The value in force. Absent: nothing is set, or it is secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// The value without anything set. Absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// Whether a value is set, also if it is secret.
    pub is_set: bool,
    /// Whether the page has set it.
    pub on_page: bool,
    /// The file with its line, or the variable, that sets it. It takes precedence over the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The state of all keys that can be set on the page.
pub type KeptFields = BTreeMap<&'static str, KeptField>;

/// Whether the value of a key is never shown.
pub fn is_secret(key: &str) -> bool {
    key == TOKEN || key.ends_with(".api_key")
}

impl Kept {
    /// Reads the settings from a data folder. Without a file there are none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(data: &FilePath) -> Result<Self, Problem> {
        let remedy = "run this as the server's user, or delete it and make the settings again on the page";
        private_file::read_of_page(&path(data), remedy).map(Option::unwrap_or_default)
    }

    /// Writes the settings to a data folder. The file is replaced atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, data: &FilePath) -> io::Result<()> {
        if self.0.is_empty() {
            private_file::remove(&path(data))
        } else {
            private_file::write(&path(data), &serde_json::to_vec_pretty(self)?)
        }
    }

    /// These settings with some keys replaced. `null` or an empty text removes one. A key of a service belongs to its address, so it is removed with it.
    #[must_use]
    pub fn changed(&self, new: BTreeMap<String, Json>) -> Self {
        let mut kept = self.clone();
        for table in [EARS, VOICE] {
            let of = |key: &str| format!("speech.services.{table}.{key}");
            let moves = |key: &str| new.get(&of(key)).is_some_and(|value| *value != *self.0.get(&of(key)).unwrap_or(&Json::Null));
            if moves("api") || moves("base_url") {
                kept.0.remove(&of("api_key"));
            }
        }
        kept.0.extend(new);
        kept.0.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
        kept
    }

    /// The settings as the last layer, without those that files and variables set, and those that this version does not know.
    pub(super) fn layer(&self, data: &FilePath, files: &Files<'_>) -> Option<Layer> {
        let mut tree = Map::new();
        let overruled = |key: &str| files.place_of(key).is_some();
        for (key, value) in self.0.iter().filter(|(key, _)| KEYS.contains(&key.as_str()) && !overruled(key)) {
            let mut steps = key.split('.').collect::<Vec<_>>();
            let last = steps.pop().unwrap_or_default();
            let table = steps
                .into_iter()
                .try_fold(&mut tree, |table, step| table.entry(step).or_insert_with(|| Json::Object(Map::new())).as_object_mut());
            table?.insert(last.to_owned(), value.clone());
        }
        (!tree.is_empty()).then(|| Layer::page(path(data).display().to_string(), tree.into()))
    }

    /// The state of each key.
    pub(super) fn fields(&self, layers: &[Layer], files: &Files<'_>) -> KeptFields {
        let json = |tree: &Option<Value>, key| {
            let value = tree.as_ref().and_then(|tree| Path::of(key).value_in(tree)).cloned();
            value.and_then(|value| value.try_deserialize::<Json>().ok()).filter(|value| !value.is_null())
        };
        let tree = merged(layers).ok();
        let field = |key: &'static str| {
            let value = json(&tree, key);
            let place = files.place_of(key);
            let is_set = value.is_some() || key == TOKEN && place.is_some();
            let (value, default) = (value.filter(|_| !is_secret(key)), json(&files.built_in, key));
            (key, KeptField { value, default, is_set, on_page: self.0.contains_key(key), place })
        };
        KEYS.into_iter().map(field).collect()
    }
}

/// The layers of files and variables, above the built-in one, which is the first.
pub(super) struct Files<'a> {
    layers: &'a [Layer],
    tree: Option<Value>,
    built_in: Option<Value>,
}

impl<'a> Files<'a> {
    pub fn new(layers: &'a [Layer]) -> Self {
        let tree = |layers: Option<&[Layer]>| layers.and_then(|layers| merged(layers).ok());
        Self { layers, tree: tree(Some(layers)), built_in: tree(layers.get(..1)) }
    }

    /// The place where a file or a variable sets a key to another value than the built-in one.
    fn place_of(&self, key: &str) -> Option<String> {
        let path = Path::of(key);
        let [set, built_in] = [&self.tree, &self.built_in].map(|tree| tree.as_ref().and_then(|tree| path.value_in(tree)));
        if set.map(|value| &value.kind) != built_in.map(|value| &value.kind) {
            return Some(place(&located(self.layers, &Mismatch::at(key, ""))));
        }
        if key == TOKEN { self.place_of(TOKEN_FILE) } else { None }
    }
}

impl Settings {
    /// These settings, with the values of `new` for everything that changes while the server runs.
    #[must_use]
    pub fn with_live(&self, new: &Self) -> Self {
        let mut settings = self.clone();
        settings.speech = new.speech.clone();
        settings.discord.token.clone_from(&new.discord.token);
        settings.discord.token_file.clone_from(&new.discord.token_file);
        settings.guests = new.guests.clone();
        // The memberships know who is a minor's guild since the start.
        settings.safety = Safety { minors: self.safety.minors.clone(), ..new.safety.clone() };
        settings.prompt.time_zone.clone_from(&new.prompt.time_zone);
        settings.tools = new.tools.clone();
        settings.memory.languages.clone_from(&new.memory.languages);
        settings.companion_defaults.quiet_hours = new.companion_defaults.quiet_hours;
        settings.gate = Gate {
            evaluations_per_hour: new.gate.evaluations_per_hour,
            guild_evaluations_per_hour: new.gate.guild_evaluations_per_hour,
            guild_statements_per_day: new.gate.guild_statements_per_day,
            ..settings.gate
        };
        settings.models.guild_tokens_per_day = new.models.guild_tokens_per_day;
        let price = |endpoint: &mut Endpoint, new: &Endpoint| {
            (endpoint.input_price, endpoint.output_price) = (new.input_price, new.output_price);
            (endpoint.cache_read_price, endpoint.cache_write_price) = (new.cache_read_price, new.cache_write_price);
        };
        price(&mut settings.models.main, &new.models.main);
        price(&mut settings.models.side, &new.models.side);
        settings
    }
}

fn path(data: &FilePath) -> PathBuf {
    data.join(FILE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::{Overlay, Sources, load_with};

    fn sources(folder: &FilePath, data: &FilePath) -> Sources {
        let environment = vec![("TERTULIA__STORAGE__PATH".to_owned(), data.display().to_string())];
        Sources { folder: folder.to_owned(), folder_was_named: true, profile: None, environment }
    }

    #[test]
    fn what_the_page_sets_applies_unless_a_file_sets_it_and_the_file_is_named() {
        let [folder, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let text = "[safety]\noperator = \"The Book Club\"\n[gate]\nguild_statements_per_day = 5000\n";
        fs::write(folder.path().join("default.toml"), text).unwrap();
        let made = [
            ("safety.operator", json!("Somebody")),
            ("gate.guild_statements_per_day", json!(7)),
            ("speech.services.page_ears.api", json!("deepgram")),
            ("speech.services.page_ears.api_key", json!("ear-key")),
            ("speech.recognition", json!(["page_ears"])),
            ("later.key", json!("of a newer version")),
        ];
        Kept(made.map(|(key, value)| (key.to_owned(), value)).into()).write(data.path()).unwrap();

        let loaded = load_with(&sources(folder.path(), data.path()), &Overlay::new()).unwrap();

        let settings = &loaded.settings;
        assert_eq!((settings.safety.operator.as_deref(), settings.gate.guild_statements_per_day), (Some("The Book Club"), 7));
        assert_eq!(settings.speech.recognition, [EARS.into()]);
        let limit = &loaded.fields["gate.guild_statements_per_day"];
        assert_eq!((&limit.value, &limit.default), (&Some(json!(7)), &Some(json!(5000))));
        let operator = &loaded.fields["safety.operator"];
        assert!(operator.place.as_deref().is_some_and(|place| place.ends_with("default.toml:2")), "{operator:?}");
        let key = &loaded.fields["speech.services.page_ears.api_key"];
        assert!(key.is_set && key.on_page && key.value.is_none() && key.place.is_none(), "{key:?}");
        assert!(!format!("{loaded:?}").contains("ear-key"));
    }

    #[test]
    fn a_value_of_the_page_that_no_setting_can_have_names_the_file_and_the_key() {
        let [folder, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        Kept([("guests.each.messages_per_day".to_owned(), json!("many"))].into()).write(data.path()).unwrap();

        let problems = load_with(&sources(folder.path(), data.path()), &Overlay::new()).unwrap_err();

        let text = problems.to_string();
        assert!(text.contains(FILE) && text.contains("guests.each.messages_per_day"), "{text}");
    }

    #[test]
    fn a_server_of_tools_and_the_rights_to_its_tools_change_together() {
        let of = |tools| Settings::overlay(json!({ "tools": tools })).unwrap();
        let server = json!({ "box": { "url": "http://127.0.0.1:1/mcp" } });
        let rights = json!({ "box__open": { "allow": "operators" } });
        let new = of(json!({ "servers": server, "rights": rights, "operators": ["7"], "calls_per_reply": 1, "timeout_secs": 2 }));

        let tools = of(json!({})).with_live(&new).tools;

        assert!(tools.servers.contains_key("box") && tools.operators.contains("7"));
        assert_eq!(tools.rights["box__open"].allow, Some(crate::domain::tools::Allow::Operators));
        assert_eq!((tools.calls_per_reply, tools.timeout_secs), (1, 2.0));
    }

    #[test]
    fn a_key_is_not_kept_for_another_address() {
        let ears = |key: &str| format!("speech.services.page_ears.{key}");
        let kept = Kept([(ears("base_url"), json!("http://a/v1")), (ears("api_key"), json!("of a"))].into());

        let same = kept.changed([(ears("base_url"), json!("http://a/v1")), (ears("model"), json!("w"))].into());
        let other = kept.changed([(ears("base_url"), json!("http://b/v1"))].into());
        let renewed = kept.changed([(ears("base_url"), json!("http://b/v1")), (ears("api_key"), json!("of b"))].into());

        let key = |kept: &Kept| kept.0.get(&ears("api_key")).cloned();
        assert_eq!((key(&same), key(&other), key(&renewed)), (Some(json!("of a")), None, Some(json!("of b"))));
    }
}
