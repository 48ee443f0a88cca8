//! Section `speech`: the languages that are spoken, and their word lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::companion::shortened;
use super::models::{HIGHEST_PRICE, LOWEST_PRICE};
use super::{Problem, within};
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;
use crate::domain::voice::words::{WordLists, words};

/// The longest word list.
const MOST_WORDS: usize = 500;
/// The longest entry of a word list, in characters.
const MOST_CHARS: usize = 64;

/// Section `speech`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// The language that is spoken: the name of a table in `words`.
    pub language: Arc<str>,
    /// The price of a minute of audio that is recognised, in units of `models.currency`: 0, or 0.000001 to 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognition_price: Option<f64>,
    /// The price of a million characters that are spoken, as `recognition_price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthesis_price: Option<f64>,
    /// The word lists of each language.
    pub words: BTreeMap<Arc<str>, SpokenWords>,
}

/// The word lists of one language. Case and punctuation do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Written")]
pub struct SpokenWords {
    /// Words and phrases that stop a companion when somebody begins with them (docs/design/voice.md A-26).
    pub stop: Vec<Arc<str>>,
    /// Words that only show that somebody listens (docs/design/voice.md A-27).
    pub backchannel: Vec<Arc<str>>,
    #[serde(skip_serializing)]
    lists: WordLists,
}

/// The word lists of one language as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `stop` and `backchannel`")]
struct Written {
    stop: Vec<Arc<str>>,
    backchannel: Vec<Arc<str>>,
}

impl From<Written> for SpokenWords {
    fn from(Written { stop, backchannel }: Written) -> Self {
        let lists = WordLists::new(stop.iter().map(|word| &**word), backchannel.iter().map(|word| &**word));
        Self { stop, backchannel, lists }
    }
}

impl Speech {
    /// The word lists of a room: those of its language, or of `language` if it has none or its language has no table any more.
    pub fn word_lists(&self, language: Option<&str>) -> &WordLists {
        static NONE: WordLists = WordLists::empty();
        let found = language.and_then(|language| self.words.get(language)).or_else(|| self.words.get(&self.language));
        found.map_or(&NONE, |found| &found.lists)
    }

    /// The price of a service for speech. `None`: no price is set, so the cost is not known.
    pub fn price(&self, service: Service, currency: &str) -> Option<UnitPrice> {
        match service {
            Service::LanguageModel => None,
            Service::SpeechRecognition => self.recognition_price.map(|price| UnitPrice::per_minute(price, currency)),
            Service::SpeechSynthesis => self.synthesis_price.map(|price| UnitPrice::per_million_characters(price, currency)),
        }
    }

    /// What is wrong with a language, if it has no table.
    pub fn problem_of(&self, language: &str) -> Option<String> {
        let known = || self.words.keys().map(|language| &**language).collect::<Vec<_>>().join(", ");
        (!self.words.contains_key(language)).then(|| {
            let language = shortened(language);
            format!("= {language:?} has no table [speech.words.{language}]; add one, or choose one of {}", known())
        })
    }

    /// Checks the language and all lists.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn check(&self) -> Result<(), Problem> {
        for (key, price) in [("recognition_price", self.recognition_price), ("synthesis_price", self.synthesis_price)] {
            let price = price.filter(|price| *price != 0.0).unwrap_or(LOWEST_PRICE);
            within(key, price, LOWEST_PRICE..=HIGHEST_PRICE)?;
        }
        for (language, lists) in &self.words {
            check_list(&format!("words.{language}.stop"), &lists.stop)?;
            check_list(&format!("words.{language}.backchannel"), &lists.backchannel)?;
        }
        self.problem_of(&self.language).map_or(Ok(()), |message| Err(Problem::new("language", message)))
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
