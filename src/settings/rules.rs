//! The rules of a conversation according to the settings.

use super::Settings;
use crate::domain::conversation::Rules;
use crate::domain::id::GuildId;
use crate::domain::policy::quiet_hours::QuietHours;

impl Settings {
    /// The rules of a channel with this guild and spoken language. `None`: `speech.language`.
    pub fn rules(&self, guild: &GuildId, language: Option<&str>) -> Rules<'_> {
        Rules {
            words: self.speech.word_lists(language),
            quiet_hours: self.gate.guild_quiet_hours.get(guild).copied().unwrap_or_default(),
            zone: self.prompt.zone_of(guild),
            ..Rules::from(self)
        }
    }
}

impl<'a> From<&'a Settings> for Rules<'a> {
    fn from(settings: &'a Settings) -> Self {
        Self {
            gate: &settings.gate,
            quiet_hours: QuietHours::Never,
            helps_at_risk: settings.safety.crisis,
            zone: settings.prompt.zone(),
            turn_taking: &settings.turn_taking,
            closing: &settings.closing,
            repetition: &settings.repetition,
            reply: &settings.reply,
            voice: &settings.voice,
            answer_timeout: settings.models.main.timeout(),
            words: settings.speech.word_lists(None),
            voice_lull_timeout: settings.companion_defaults.voice_lull(),
        }
    }
}
