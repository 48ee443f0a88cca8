//! A companion's voice, and the pronunciation of its name: the table `voice` of its file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{MAX_ALIASES, check_name, shortened};
use crate::{Problem, within};

/// The longest name of a provider or a voice, in characters.
const MAX_ID_CHARS: usize = 128;
/// The maximum number of words with a pronunciation.
const MAX_PRONOUNCED: usize = 200;
/// The longest word with a pronunciation, and the longest pronunciation, in characters.
const MAX_WORD_CHARS: usize = 128;

/// A companion's voice (docs/design/voice.md A-63).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with `provider`, `voice`, `speed`, `pronounce` and `sounds_like`")]
pub struct CompanionVoice {
    /// The provider of speech synthesis (1 to 128 characters). `None`: `speech.synthesis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The provider's name of the voice (1 to 128 characters). `None`: the provider's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<Arc<str>>,
    /// The speaking rate, as a factor (0.5 to 2). `None`: the voice's own rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Words, and the text that is spoken instead of them (at most 200, each of 1 to 128 characters).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pronounce: BTreeMap<Arc<str>, Arc<str>>,
    /// Words that speech recognition writes instead of its name (at most 16, each of 1 to 64 characters). They address it in
    /// speech only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sounds_like: Vec<Arc<str>>,
}

impl CompanionVoice {
    /// Whether no key is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// All invalid values.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut found = vec![
            check_text("voice.provider", self.provider.as_deref(), MAX_ID_CHARS),
            check_text("voice.voice", self.voice.as_deref(), MAX_ID_CHARS),
            within("voice.speed", self.speed.unwrap_or(1.0), 0.5..=2.0),
            check_count("voice.pronounce", self.pronounce.len(), MAX_PRONOUNCED),
            check_count("voice.sounds_like", self.sounds_like.len(), MAX_ALIASES),
        ];
        for (word, pronunciation) in &self.pronounce {
            found.push(check_text("voice.pronounce", Some(word), MAX_WORD_CHARS));
            let key = format!("voice.pronounce.{}", shortened(word));
            found.push(check_text(&key, Some(pronunciation), MAX_WORD_CHARS));
            if !pronunciation.chars().any(char::is_alphanumeric) && !pronunciation.trim().is_empty() {
                let message =
                    format!("= {:?}, must have a letter or a digit, or nothing would be spoken", shortened(pronunciation));
                found.push(Err(Problem::new(key, message)));
            }
        }
        let sounds = self.sounds_like.iter().enumerate();
        found.extend(sounds.map(|(index, name)| check_name(&format!("voice.sounds_like[{index}]"), name)));
        found.into_iter().filter_map(Result::err).collect()
    }
}

fn check_text(key: &str, text: Option<&str>, most: usize) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    let is_usable = !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control);
    let problem = || {
        Problem::new(key, format!("= {:?}, must have 1 to {most} characters, none of them a control character", shortened(text)))
    };
    is_usable.then_some(()).ok_or_else(problem)
}

fn check_count(key: &str, count: usize, most: usize) -> Result<(), Problem> {
    if count > most {
        return Err(Problem::new(key, format!("has {count} entries, at most {most} are allowed")));
    }
    Ok(())
}
