//! The settings that can be made on the page. They are tested, kept and put into force while the server runs.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::backend::refused::Refused;
use crate::settings::kept::KeptFields;

/// Shows, tries and keeps settings.
#[async_trait]
pub trait SettingsSetup: Send + Sync + 'static {
    /// The settings in force.
    async fn settings(&self) -> Result<SettingsView, Refused>;

    /// Checks settings, and tries the services that they are about: speech is made and recognised, and Discord is asked.
    async fn try_out(&self, tried: TriedSettings) -> Result<SettingsTrial, Refused>;

    /// Puts settings into force, and keeps them for the next start.
    async fn keep(&self, new: NewSettings) -> Result<SettingsView, Refused>;

    /// Reads the settings files and the companions again.
    async fn read_again(&self) -> Result<SettingsView, Refused>;
}

/// Services that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Services {
    /// Recognition and synthesis.
    Speech,
    /// The bot.
    Discord,
}

/// Settings to try.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TriedSettings {
    /// As for `PATCH /api/settings`.
    pub values: BTreeMap<String, Value>,
    /// The services to try. Absent: the values are only checked.
    pub about: Option<Services>,
}

/// Settings to keep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSettings {
    /// Values by the keys of the settings, such as `guests.each.messages_per_day`. `null` removes what the page has set. Keys that are absent stay.
    pub values: BTreeMap<String, Value>,
}

/// The settings in force. Keys and tokens are never included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SettingsView {
    /// What can be set, by key.
    #[schemars(with = "BTreeMap<String, crate::settings::kept::KeptField>")]
    pub fields: KeptFields,
    /// The languages that `speech.language` may be.
    pub speech_languages: Vec<String>,
    /// The languages that `memory.languages` may have.
    pub memory_languages: Vec<String>,
    /// The currency of prices, an ISO 4217 code.
    pub currency: String,
    /// Why the settings files could not be read again at the last attempt.
    pub problems: Vec<String>,
}

/// The result of trying settings.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SettingsTrial {
    /// Whether everything works.
    pub works: bool,
    /// What works, what does not, and what to do.
    pub lines: Vec<TrialLine>,
    /// The sentence that the voice said, as a WAV file in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<String>,
    /// What the recogniser understood of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<String>,
    /// The link that invites the bot to a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
}

/// One result of a trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrialLine {
    /// `good`, `warning` or `problem`.
    pub state: &'static str,
    /// What it is about: `voice`, `recognition`, or a subject of `tertulia discord check`.
    pub about: &'static str,
    /// The result, or the error and how to fix it.
    pub said: String,
    /// The code of the error of a service for speech, as in records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// What to click to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub click: Option<String>,
}
