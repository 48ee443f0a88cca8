//! Section `speech`: the languages that are spoken, and their word lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Problem;
use super::companion::shortened;
use crate::domain::voice::words::{WordLists, words};

/// The longest word list.
const MOST_WORDS: usize = 500;
/// The longest entry of a word list, in characters.
const MOST_CHARS: usize = 64;

/// Section `speech`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// The language that is spoken: the name of a table in `words`.
    pub language: Arc<str>,
    /// The word lists of each language.
    pub words: BTreeMap<Arc<str>, SpokenWords>,
}

/// The word lists of one language. Case and punctuation do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SpokenWords {
    /// Words and phrases that stop a companion when somebody begins with them (docs/design/voice.md A-26).
    pub stop: Vec<Arc<str>>,
    /// Words that only show that somebody listens (docs/design/voice.md A-27).
    pub backchannel: Vec<Arc<str>>,
}

impl Speech {
    /// The word lists of a language. Empty for a language without a table.
    pub fn word_lists(&self, language: &str) -> WordLists {
        let of = |lists: &SpokenWords| {
            WordLists::new(lists.stop.iter().map(|word| &**word), lists.backchannel.iter().map(|word| &**word))
        };
        self.words.get(language).map(of).unwrap_or_default()
    }

    /// Checks the language and all lists.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn check(&self) -> Result<(), Problem> {
        for (language, lists) in &self.words {
            check_list(&format!("words.{language}.stop"), &lists.stop)?;
            check_list(&format!("words.{language}.backchannel"), &lists.backchannel)?;
        }
        if !self.words.contains_key(&self.language) {
            let known = self.words.keys().map(|language| &**language).collect::<Vec<_>>().join(", ");
            let message = format!(
                "= {:?} has no table [speech.words.{}]; add one, or choose one of {known}",
                shortened(&self.language),
                shortened(&self.language)
            );
            return Err(Problem::new("language", message));
        }
        Ok(())
    }
}

fn check_list(key: &str, list: &[Arc<str>]) -> Result<(), Problem> {
    if list.len() > MOST_WORDS {
        return Err(Problem::new(key, format!("has {} entries, at most {MOST_WORDS} are allowed", list.len())));
    }
    let unusable = list.iter().find(|entry| words(entry).is_empty() || entry.chars().count() > MOST_CHARS);
    match unusable {
        Some(entry) => {
            let message =
                format!("has {:?}, must have words with letters or digits, in 1 to {MOST_CHARS} characters", shortened(entry));
            Err(Problem::new(key, message))
        }
        None => Ok(()),
    }
}
