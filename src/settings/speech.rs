//! Section `speech`: the spoken languages, their word lists, and the services for speech recognition and synthesis.

mod service;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::service::{BUILT_IN, Resolved, SpeechApi, SpeechService};
use super::companion::shortened;
use super::models::check_table_name;
use super::{Problem, duration, within};
use crate::domain::service::Service;
use crate::domain::voice::words::{WordLists, words};

/// The maximum number of entries in a word list.
const MOST_WORDS: usize = 500;
/// The maximum length of a word list entry, in characters.
const MOST_CHARS: usize = 64;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// The spoken language: the name of a table in `words`.
    pub language: Arc<str>,
    /// The speech recognition services, by the names of their tables, or `rehearsal`. The first one that works is used.
    pub recognition: Vec<Arc<str>>,
    /// The speech synthesis service of companions without one in their file: the name of its table, or `rehearsal`.
    pub synthesis: Arc<str>,
    /// Whether to request partial results, if the recogniser has them.
    pub partial_results: bool,
    /// Whether the words of voice notes to companions are recognised on other platforms. On the page they always are.
    pub voice_notes: bool,
    /// The timeout for connecting to a service, and for its answer to a request, in seconds (1 to 120).
    pub timeout_secs: f64,
    /// The maximum number of concurrent streams or sentences of each service (1 to 1,024).
    pub max_concurrent: usize,
    /// The minutes of a guild's audio that services recognise in 24 hours, 0.01 to 1,000,000. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_minutes_per_day: Option<f64>,
    /// The characters that services speak for a guild in 24 hours, at least 1. `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guild_characters_per_day: Option<u64>,
    /// Texts that recognisers return for noise and silence (docs/design/voice.md A-9). Case and punctuation are ignored.
    pub noise: Vec<Arc<str>>,
    /// The services, by the names of their tables.
    #[serde(default, skip_serializing)]
    pub services: BTreeMap<Arc<str>, SpeechService>,
    /// The word lists of each language.
    pub words: BTreeMap<Arc<str>, SpokenWords>,
}

/// The word lists of one language. Case and punctuation are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Written")]
pub struct SpokenWords {
    /// Words and phrases that stop a companion when an utterance begins with them (docs/design/voice.md A-26).
    pub stop: Vec<Arc<str>>,
    /// Words that only show that a person listens (docs/design/voice.md A-27).
    pub backchannel: Vec<Arc<str>>,
    #[serde(skip_serializing)]
    lists: WordLists,
}

/// The word lists of one language as they appear in the file.
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
    /// The word lists for the language of a room. If the room has none, or its language has no table any more, those for the setting `language`.
    pub fn word_lists(&self, language: Option<&str>) -> &WordLists {
        static NONE: WordLists = WordLists::empty();
        let found = language.and_then(|language| self.words.get(language)).or_else(|| self.words.get(&self.language));
        found.map_or(&NONE, |found| &found.lists)
    }

    /// The timeout for connecting, and for the answer to a request.
    pub fn timeout(&self) -> Duration {
        duration(self.timeout_secs)
    }

    /// A guild's limit for a service in 24 hours: recognised milliseconds, or spoken characters. `None` if there is no limit.
    pub fn guild_limit(&self, service: Service) -> Option<u64> {
        match service {
            Service::LanguageModel => None,
            Service::SpeechRecognition => self.guild_minutes_per_day.map(|minutes| (minutes * 60_000.0).round() as u64),
            Service::SpeechSynthesis => self.guild_characters_per_day,
        }
    }

    /// The error if this service does not exist or does not support this use. The text follows the name of a key. `None` if the service can be used.
    pub fn problem_of_service(&self, service: Service, name: &str) -> Option<String> {
        let serves = |(name, table): (&Arc<str>, &SpeechService)| {
            table.api(name).is_ok_and(|api| api.serves(service)).then(|| format!("{name:?}"))
        };
        let found = name == BUILT_IN || self.services.get_key_value(name).is_some_and(|table| serves(table).is_some());
        (!found).then(|| {
            let what = if service == Service::SpeechRecognition { "recognises speech" } else { "makes voices" };
            let known: Vec<_> = [format!("{BUILT_IN:?}")].into_iter().chain(self.services.iter().filter_map(serves)).collect();
            let add = match self.services.contains_key(name) {
                true => String::new(),
                false => format!("add a table [speech.services.{}], or ", shortened(name)),
            };
            format!("= {:?} is no service that {what}; {add}choose one of {}", shortened(name), known.join(", "))
        })
    }

    /// The names of all services that are used if no companion names one.
    pub fn used(&self) -> impl Iterator<Item = &Arc<str>> {
        self.recognition.iter().chain([&self.synthesis])
    }

    /// The error if a language has no table. `None` if it has one.
    pub fn problem_of(&self, language: &str) -> Option<String> {
        let known = || self.words.keys().map(|language| &**language).collect::<Vec<_>>().join(", ");
        (!self.words.contains_key(language)).then(|| {
            let language = shortened(language);
            format!("= {language:?} has no table [speech.words.{language}]; add one, or choose one of {}", known())
        })
    }

    /// Checks the limits, the services, the language and all lists.
    ///
    /// # Errors
    /// Returns an error that names the first invalid value.
    pub fn check(&self) -> Result<(), Problem> {
        within("timeout_secs", self.timeout_secs, 1.0..=120.0)?;
        within("max_concurrent", self.max_concurrent, 1..=1024)?;
        within("guild_minutes_per_day", self.guild_minutes_per_day.unwrap_or(1.0), 0.01..=1_000_000.0)?;
        within("guild_characters_per_day", self.guild_characters_per_day.unwrap_or(1), 1..=u64::MAX)?;
        for (name, table) in &self.services {
            if **name == *BUILT_IN {
                return Err(Problem::new(format!("services.{name}"), "is the name of what is built in; rename the table"));
            }
            check_table_name(name).map_err(|problem| Problem { key: format!("services.{}", problem.key), ..problem })?;
            table.check(name).map_err(|problem| Problem { key: format!("services.{name}.{}", problem.key), ..problem })?;
        }
        if self.recognition.is_empty() {
            return Err(Problem::new("recognition", format!("is empty; name at least one service, or {BUILT_IN:?}")));
        }
        for (at, name) in self.recognition.iter().enumerate() {
            if self.recognition[..at].contains(name) {
                return Err(Problem::new("recognition", format!("names {:?} twice; name it once", shortened(name))));
            }
            if **name == *BUILT_IN && at + 1 < self.recognition.len() {
                let message = format!("names {BUILT_IN:?} before others, which would never be used; name it last, or alone");
                return Err(Problem::new("recognition", message));
            }
        }
        let recognition = self.recognition.iter().map(|name| ("recognition", Service::SpeechRecognition, name));
        for (key, service, name) in recognition.chain([("synthesis", Service::SpeechSynthesis, &self.synthesis)]) {
            self.problem_of_service(service, name).map_or(Ok(()), |message| Err(Problem::new(key, message)))?;
        }
        check_list("noise", &self.noise)?;
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
