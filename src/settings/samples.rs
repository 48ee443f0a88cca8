//! Settings and companions for tests, of other crates too (feature `samples`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::Settings;
use crate::companion::Companion;
use crate::models::{Models, NamedModel, Vision};
use crate::server::Server;

/// The default settings with these overrides.
pub fn settings(overlay: Value) -> Settings {
    Settings::overlay(overlay).unwrap_or_else(|problems| panic!("{problems}"))
}

pub fn defaults() -> &'static Settings {
    static DEFAULTS: LazyLock<Settings> = LazyLock::new(|| settings(json!({})));
    &DEFAULTS
}

/// A companion as its file describes it.
pub fn companion(file: Value, settings: &Settings) -> Companion {
    let file = serde_json::from_value(file).expect("a companion's file");
    Companion::from_file(file, None, &settings.companion_defaults).expect("a good companion")
}

pub fn models() -> Models {
    defaults().models.clone()
}

/// A further model with this limit of concurrent calls.
pub fn named_model(max_concurrent: usize) -> NamedModel {
    NamedModel {
        base_url: Some("http://127.0.0.1:2/v1".into()),
        model: Some("small".into()),
        api_key: None,
        api_key_file: None,
        first_token_timeout_secs: None,
        idle_timeout_secs: None,
        max_concurrent: Some(max_concurrent),
        guild_max_concurrent: None,
        vision: Vision::Off,
        temperature: None,
        extra_body: serde_json::Map::new(),
        extra_headers: BTreeMap::new(),
        extra_query: BTreeMap::new(),
        input_price: None,
        output_price: None,
        cache_read_price: None,
        cache_write_price: None,
    }
}

pub fn server() -> Server {
    defaults().server.clone()
}
