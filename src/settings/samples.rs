//! Settings and companions for tests, of other crates too (feature `samples`).

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::Settings;
use crate::companion::Companion;

/// The default settings with this in their place.
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
