//! What a script says: who is present, what models answer, what happens when.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::domain::id::CompanionId;
use crate::domain::message::Modality;
use crate::domain::moment::Moment;
use crate::settings::Settings;
use crate::settings::companion::{Companion, CompanionFile};
use crate::settings::misfit::{misfit, without_place};

/// The latest moment of a script, in seconds: about thirty years.
const LATEST_SECS: f64 = 1e9;
/// The largest script that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A script, checked.
#[derive(Clone, Debug)]
pub struct Script {
    /// Everyone who may be present.
    pub companions: BTreeMap<CompanionId, Companion>,
    /// The embedded defaults with the script's settings on them.
    pub settings: Settings,
    /// The jitter values that are drawn, one after the other; the last one repeats.
    pub jitter: Vec<i8>,
    /// The side model's answers.
    pub side: Answers,
    /// The main model's answers.
    pub main: Answers,
    /// What happens, in the script's order.
    pub events: Vec<Scripted>,
    /// When the run ends, inclusive.
    pub until: Option<Moment>,
    /// What it does not tell as it was, in words, where it was made of a record.
    pub notes: Vec<String>,
}

/// What a model answers, one after the other; the last one repeats.
#[derive(Clone, Debug)]
pub struct Answers {
    /// For every companion that has no list of its own.
    pub shared: Vec<Answer>,
    /// For one companion alone.
    pub own: BTreeMap<CompanionId, Vec<Answer>>,
}

/// One answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text, or why there is none.
    pub outcome: Result<String, String>,
    /// How long it takes.
    pub delay: Duration,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub struct Scripted {
    /// When.
    pub at: Moment,
    /// Where.
    pub channel: String,
    /// What.
    pub deed: Deed,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Somebody says something.
    Say(Saying),
    /// A companion comes.
    Join(CompanionId),
    /// A companion goes.
    Leave(CompanionId),
    /// What is going on is dropped.
    Clear,
}

/// Something that somebody says.
#[derive(Clone, Debug)]
pub struct Saying {
    /// Who.
    pub from: String,
    /// The words.
    pub text: String,
    /// Ids of companions and people.
    pub mentions: Vec<String>,
    /// Whose message it answers.
    pub reply_to: Option<String>,
    /// Whether a foreign bot says it.
    pub bot: bool,
    /// Whether it is a direct message.
    pub direct: bool,
    /// Typed or spoken.
    pub modality: Modality,
    /// A voice utterance that ends a lull.
    pub lull_endpoint: bool,
}

/// What is wrong with a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not what it should be.
    #[error("{0}")]
    Malformed(String),
    /// Its settings are not.
    #[error("settings: {0}")]
    Settings(String),
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Script {
    /// Reads a script from a file: TOML if its name ends in `.toml`, else JSON.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)?;
        if path.extension().is_some_and(|extension| extension == "toml") {
            Self::from_toml(&text)
        } else {
            Self::from_json(&text)
        }
    }

    /// Reads a script written in JSON.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        bounded(text)?;
        let mut json = serde_json::Deserializer::from_str(without_mark(text));
        let written: Written = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            // What ends in the middle has no name for where that is; line and column say it.
            let path = path.trim_end_matches('?').trim_end_matches('.');
            let told = error.into_inner().to_string();
            let said = without_place(&told);
            let at = &told[said.len()..];
            ScriptError::Malformed(match misfit(said).filter(|_| said.starts_with("invalid ")) {
                _ if path.is_empty() => told,
                Some(misfit) => format!("{path} {misfit}{at}"),
                None => format!("{path}: {told}"),
            })
        })?;
        json.end().map_err(|error| ScriptError::Malformed(error.to_string()))?;
        written.checked()
    }

    /// Reads a script written in TOML.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        bounded(text)?;
        let written: Written = toml::from_str(without_mark(text)).map_err(|error| ScriptError::Malformed(error.to_string()))?;
        written.checked()
    }
}

impl Answers {
    /// The list that a companion's answers come from.
    pub fn of(&self, companion: &CompanionId) -> &[Answer] {
        self.own.get(companion).unwrap_or(&self.shared)
    }
}

/// Some editors begin a file with a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn bounded(text: &str) -> Result<(), ScriptError> {
    if text.len() > MAX_BYTES {
        return Err(ScriptError::Malformed(format!("the script has {} bytes, at most {MAX_BYTES} are read", text.len())));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a replay script: an object with `companions` and `events`")]
struct Written {
    companions: Vec<CompanionFile>,
    #[serde(default)]
    settings: Option<serde_json::Value>,
    #[serde(default)]
    jitter: Vec<i8>,
    #[serde(default)]
    models: WrittenModels,
    #[serde(default)]
    events: Vec<WrittenEvent>,
    until: Option<f64>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the answers of `side` and of `main`, by these keys")]
struct WrittenModels {
    #[serde(default)]
    side: Vec<WrittenAnswer>,
    #[serde(default)]
    main: Vec<WrittenAnswer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an answer: an object with `text` or `error`")]
struct WrittenAnswer {
    text: Option<String>,
    error: Option<String>,
    #[serde(default)]
    delay: f64,
    companion: Option<CompanionId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an event: an object with `at`, `channel` and what happens")]
struct WrittenEvent {
    at: f64,
    channel: String,
    from: Option<String>,
    text: Option<String>,
    #[serde(default)]
    mentions: Vec<String>,
    reply_to: Option<String>,
    #[serde(default)]
    bot: bool,
    #[serde(default)]
    direct: bool,
    #[serde(default)]
    modality: Modality,
    #[serde(default)]
    lull_endpoint: bool,
    #[serde(default)]
    clear: bool,
    join: Option<CompanionId>,
    leave: Option<CompanionId>,
}

impl Written {
    fn checked(self) -> Result<Script, ScriptError> {
        let settings = Settings::overlay(self.settings.unwrap_or(serde_json::Value::Object(Default::default())))
            .map_err(|problems| ScriptError::Settings(problems.to_string()))?;
        let mut companions = BTreeMap::new();
        for (index, file) in self.companions.into_iter().enumerate() {
            let place = format!("companions[{index}]");
            let companion = Companion::from_file(file, None, &settings.companion_defaults)
                .map_err(|problems| wrong(&place, problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
            let id = companion.id.clone();
            if companions.insert(id.clone(), companion).is_some() {
                return Err(wrong(&place, format!("id = \"{id}\" is there twice")));
            }
        }
        if let Some(jitter) = self.jitter.iter().find(|jitter| !(-2..=2).contains(*jitter)) {
            return Err(wrong("jitter", format!("{jitter} is not one of -2, -1, 0, 1, 2")));
        }
        let known = |companion: &CompanionId, place: &str| {
            companions
                .contains_key(companion)
                .then_some(())
                .ok_or_else(|| wrong(place, format!("\"{companion}\" is not one of the script's companions")))
        };
        let mut events = Vec::with_capacity(self.events.len());
        for (index, event) in self.events.into_iter().enumerate() {
            let place = format!("events[{index}]");
            let scripted = event.checked(&place)?;
            if let Deed::Join(companion) | Deed::Leave(companion) = &scripted.deed {
                known(companion, &place)?;
            }
            events.push(scripted);
        }
        let side = answers(self.models.side, "models.side", "NO", known)?;
        let main = answers(self.models.main, "models.main", "ok", known)?;
        let until = self.until.map(|until| moment(until, "until")).transpose()?;
        Ok(Script { companions, settings, jitter: self.jitter, side, main, events, until, notes: self.notes })
    }
}

impl WrittenEvent {
    fn checked(self, place: &str) -> Result<Scripted, ScriptError> {
        let at = moment(self.at, &format!("{place}.at"))?;
        let deed = match (self.text, self.join, self.leave, self.clear) {
            (Some(text), None, None, false) => {
                let from = self.from.ok_or_else(|| wrong(place, "a message needs `from`".into()))?;
                Deed::Say(Saying {
                    from,
                    text,
                    mentions: self.mentions,
                    reply_to: self.reply_to,
                    bot: self.bot,
                    direct: self.direct,
                    modality: self.modality,
                    lull_endpoint: self.lull_endpoint,
                })
            }
            (None, Some(companion), None, false) => Deed::Join(companion),
            (None, None, Some(companion), false) => Deed::Leave(companion),
            (None, None, None, true) => Deed::Clear,
            _ => return Err(wrong(place, "needs exactly one of `text`, `join`, `leave`, `clear`".into())),
        };
        Ok(Scripted { at, channel: self.channel, deed })
    }
}

fn answers(
    written: Vec<WrittenAnswer>,
    place: &str,
    otherwise: &str,
    known: impl Fn(&CompanionId, &str) -> Result<(), ScriptError>,
) -> Result<Answers, ScriptError> {
    let mut answers = Answers { shared: Vec::new(), own: BTreeMap::new() };
    for (index, written) in written.into_iter().enumerate() {
        let place = format!("{place}[{index}]");
        let delay = moment(written.delay, &format!("{place}.delay"))?.since(Moment::ZERO);
        let outcome = match (written.text, written.error) {
            (Some(text), None) => Ok(text),
            (None, Some(error)) => Err(error),
            _ => return Err(wrong(&place, "needs exactly one of `text`, `error`".into())),
        };
        let answer = Answer { outcome, delay };
        match written.companion {
            None => answers.shared.push(answer),
            Some(companion) => {
                known(&companion, &place)?;
                answers.own.entry(companion).or_default().push(answer);
            }
        }
    }
    if answers.shared.is_empty() {
        answers.shared.push(Answer { outcome: Ok(otherwise.to_owned()), delay: Duration::ZERO });
    }
    Ok(answers)
}

/// Seconds, rounded to the nearest microsecond.
fn moment(secs: f64, place: &str) -> Result<Moment, ScriptError> {
    if !(0.0..=LATEST_SECS).contains(&secs) {
        return Err(wrong(place, format!("{secs:?} is not a number of seconds from 0 to {LATEST_SECS}")));
    }
    Ok(Moment::from_micros((secs * 1e6).round() as u64))
}

fn wrong(place: &str, message: String) -> ScriptError {
    ScriptError::Malformed(format!("{place}: {message}"))
}
