//! Section `reply`: what happens to a statement in progress when people say more.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problem, within};
use crate::stop_phrase::is_stop_phrase;

/// The pause without messages after which a statement is restarted.
pub const REPLAN_PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of phrases of one language, and of characters of a phrase.
const MOST_PHRASES: usize = 100;
const MOST_CHARS: usize = 60;

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// How often a statement is restarted because people said more (0 to 10). 0: never.
    pub max_replans: u32,
    /// The messages that cancel a statement if they contain no other words, by language. The languages are labels: all phrases apply in all
    /// languages.
    pub stop_phrases: BTreeMap<String, Vec<String>>,
}

impl Reply {
    /// The stop phrases of all languages.
    pub fn all_stop_phrases(&self) -> impl Iterator<Item = &str> {
        self.stop_phrases.values().flatten().map(String::as_str)
    }

    pub fn check(&self) -> Result<(), Problem> {
        within("max_replans", self.max_replans, 0..=10)?;
        for (language, phrases) in &self.stop_phrases {
            let key = format!("stop_phrases.{language}");
            within(&key, phrases.len(), 0..=MOST_PHRASES)?;
            for phrase in phrases {
                if phrase.chars().count() > MOST_CHARS || !is_stop_phrase(phrase, None, [&**phrase]) {
                    let what = format!("{phrase:?} must be 1 to 8 words without mentions, with at most {MOST_CHARS} characters");
                    return Err(Problem::new(key, what));
                }
            }
        }
        Ok(())
    }
}
