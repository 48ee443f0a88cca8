//! The rules of a conversation, as the settings have them.

use super::Settings;
use crate::domain::conversation::Rules;

impl<'a> Rules<'a> {
    /// The rules of a channel in which this language is spoken. None: `speech.language`.
    pub fn of(settings: &'a Settings, language: Option<&str>) -> Self {
        Self { words: settings.speech.word_lists(language), ..Self::from(settings) }
    }
}

impl<'a> From<&'a Settings> for Rules<'a> {
    fn from(settings: &'a Settings) -> Self {
        Self {
            gate: &settings.gate,
            turn_taking: &settings.turn_taking,
            closing: &settings.closing,
            repetition: &settings.repetition,
            reply: &settings.reply,
            voice: &settings.voice,
            answer_timeout: settings.models.main.timeout(),
            words: settings.speech.word_lists(None),
            voice_lull_timeout: settings.companion_defaults.voice_lull(),
            asks_everyone: false,
        }
    }
}
