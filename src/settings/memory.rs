//! Section `memory`: recall of older messages of a room, and notes.

use frostem::Algorithm;

use super::{Problem, within};

/// The maximum number of languages with stemming.
const MOST_LANGUAGES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The languages whose inflected word forms match each other, by their English names (at most 8). In other languages, words
    /// must match exactly.
    pub languages: Vec<String>,
    /// The number of a room's newest messages that recall searches (100 to 1,000,000).
    pub recall_window: usize,
    /// Whether notes about people and rooms may be taken. A guild's people turn them on.
    pub notes: bool,
    /// The number of messages after which notes are taken (10 to 1,000).
    pub notes_after: u64,
    /// The tokens for the notes about one person who takes part, in the prompt of a statement (0 to 1,000). There are at most three times as many
    /// for all.
    pub page_tokens: usize,
    /// The maximum memory for the search indexes of rooms, in megabytes (1 to 4,096).
    pub cache_mb: usize,
}

impl Memory {
    pub(super) fn check(&self) -> Result<(), Problem> {
        within("recall_window", self.recall_window, 100..=1_000_000)?;
        within("notes_after", self.notes_after, 10..=1_000)?;
        within("page_tokens", self.page_tokens, 0..=1_000)?;
        within("cache_mb", self.cache_mb, 1..=4_096)?;
        if self.languages.len() > MOST_LANGUAGES {
            let message = format!("has {} entries, at most {MOST_LANGUAGES} are allowed", self.languages.len());
            return Err(Problem::new("languages", message));
        }
        for (index, language) in self.languages.iter().enumerate() {
            if Algorithm::from_name(language).is_err() {
                let known: Vec<_> = Algorithm::all().iter().map(|known| known.name()).collect();
                let message = format!("= {language:?} is not one of {}", known.join(", "));
                return Err(Problem::new(format!("languages[{index}]"), message));
            }
        }
        Ok(())
    }

    /// The English names of the languages that can be in `languages`.
    pub fn known_languages() -> Vec<String> {
        Algorithm::all().iter().map(|known| known.name().to_owned()).collect()
    }

    /// The stemming algorithms of the languages, for [`Words`](crate::domain::recall::words::Words).
    pub fn algorithms(&self) -> Vec<Algorithm> {
        self.languages.iter().filter_map(|language| Algorithm::from_name(language).ok()).collect()
    }
}
