//! A replay script: the companions, the models' answers, and the timed events.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::mouth::Mouth;
use super::speech::{ParsedSpeech, ParsedVoice, ParsedVoiceEvent, VoiceAction};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Modality;
use crate::domain::model_role::ModelRole;
use crate::domain::moment::Moment;
use crate::settings::Settings;
use crate::settings::companion::{Companion, CompanionFile};
use crate::settings::strict::{self, Wrong};

/// The maximum time in a script, in seconds: about thirty years.
const LATEST_SECS: f64 = 1e9;
/// The maximum size of a script, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A validated script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The companions that may be members of channels.
    pub companions: BTreeMap<CompanionId, Companion>,
    /// The embedded defaults, overridden by the script's settings.
    pub settings: Settings,
    /// The jitter values, in the order of use. The last one repeats.
    pub jitter: Vec<i8>,
    /// The answers of the side model.
    pub side: Answers,
    /// The answers of the main model.
    pub main: Answers,
    /// The models without a list of answers in the script. `side` then contains the single answer NO, and `main` the single
    /// answer `ok`.
    pub unscripted: Vec<ModelRole>,
    /// The voices of spoken replies, in order. The last one repeats.
    pub mouths: Vec<Mouth>,
    /// The random draws for interruptions, in order, from 0 to 1. When none are left, companions are not tolerant.
    pub rolls: Vec<f64>,
    /// The events, in the order of the script.
    pub events: Vec<ScriptedEvent>,
    /// The end of the run, inclusive.
    pub until: Option<Moment>,
    /// For a script from a record, sentences about differences from the record.
    pub notes: Vec<String>,
}

/// The answers of a model, in order. The last one repeats.
#[derive(Clone, Debug)]
pub struct Answers {
    /// The list for every companion without its own list.
    pub shared: Vec<Answer>,
    /// The lists of single companions.
    pub own: BTreeMap<CompanionId, Vec<Answer>>,
}

/// One answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text, or an error code.
    pub outcome: Result<String, String>,
    /// The model's response time.
    pub delay: Duration,
}

#[derive(Clone, Debug)]
pub struct ScriptedEvent {
    pub at: Moment,
    pub channel: String,
    pub action: Action,
}

/// The action of a script event.
#[derive(Clone, Debug)]
pub enum Action {
    /// A person or a bot sends a message.
    Say(ScriptedMessage),
    /// A person's action in the voice call.
    Voice(VoiceAction),
    /// A companion joins the channel.
    Join(CompanionId),
    /// A companion leaves the channel.
    Leave(CompanionId),
    /// The room is cleared, and everything in progress is cancelled.
    Clear,
    /// A person presses Stop for a companion's reply.
    Stop(CompanionId),
    /// A person presses Replace this answer for the companion's statement, which is the newest message.
    Again(CompanionId),
    /// A person chooses the companion to speak next. None: everybody once.
    Choose(Option<CompanionId>),
    /// A companion is paused, or resumed.
    Pause(CompanionId, bool),
    /// Other models answer from now on.
    ReplaceModels,
    /// The author edits a message.
    Edit {
        /// The message's number in the channel.
        message: Seq,
        /// The new text.
        text: String,
    },
    /// A message is deleted.
    Delete(Seq),
}

#[derive(Clone, Debug, Default)]
pub struct ScriptedMessage {
    /// The author's id, which is also the name.
    pub from: String,
    pub text: String,
    /// The ids of the mentioned companions and people.
    pub mentions: Vec<String>,
    /// The id of the author whose message it answers.
    pub reply_to: Option<String>,
    /// Whether the author is a foreign bot.
    pub bot: bool,
    /// Whether it is a direct message.
    pub direct: bool,
    /// Whether it was typed or spoken.
    pub modality: Modality,
    /// Whether it is a voice utterance that ends a lull.
    pub lull_endpoint: bool,
    /// The kind of a platform event that demands an acknowledgement. `from` is then the person concerned.
    pub kind: Option<String>,
}

/// The reason why a script cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not a valid script.
    #[error("{0}")]
    Malformed(String),
    /// Its settings are not valid.
    #[error("settings: {0}")]
    Settings(String),
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Script {
    /// Reads a script from a file: TOML if its name ends in `.toml`, else JSON. `configured` is called only if the script refers
    /// to configured companions.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the script is invalid. The text names the position.
    pub fn read(path: &Path, configured: Configured<'_>) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)?;
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        let parsed = if is_toml { parse_toml(&text)? } else { parse_json(&text)? };
        parsed.validate(configured)
    }

    /// Parses a script in JSON.
    ///
    /// # Errors
    /// Returns an error if the script is invalid. The text names the position.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        parse_json(text)?.validate(&nobody)
    }

    /// Parses a script in TOML.
    ///
    /// # Errors
    /// Returns an error if the script is invalid. The text names the position.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        parse_toml(text)?.validate(&nobody)
    }
}

/// Loads the configured companions, or returns the reason why they cannot be loaded.
pub type Configured<'a> = &'a dyn Fn() -> Result<BTreeMap<CompanionId, Companion>, String>;

fn nobody() -> Result<BTreeMap<CompanionId, Companion>, String> {
    Ok(BTreeMap::new())
}

fn parse_json(text: &str) -> Result<ParsedScript, ScriptError> {
    check_size(text)?;
    let mut json = serde_json::Deserializer::from_str(without_mark(text));
    let parsed: ParsedScript = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        // The path of an unexpected end is unknown; line and column locate it.
        let path = path.trim_end_matches('?').trim_end_matches('.');
        let error = error.into_inner();
        ScriptError::Malformed(match strict::json::<ParsedScript>(without_mark(text).as_bytes()) {
            _ if path.is_empty() => error.to_string(),
            Ok(Err(Wrong { detail, is_mistyped: true, .. })) if detail.starts_with(path) => {
                format!("{detail} at line {} column {}", error.line(), error.column())
            }
            _ => format!("{path}: {error}"),
        })
    })?;
    json.end().map_err(|error| ScriptError::Malformed(error.to_string()))?;
    Ok(parsed)
}

fn parse_toml(text: &str) -> Result<ParsedScript, ScriptError> {
    check_size(text)?;
    toml::from_str(without_mark(text)).map_err(|error| ScriptError::Malformed(error.to_string()))
}

impl Answers {
    /// The list of answers for a companion.
    pub fn of(&self, companion: &CompanionId) -> &[Answer] {
        self.own.get(companion).unwrap_or(&self.shared)
    }
}

/// Removes the byte order mark that some editors write.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn check_size(text: &str) -> Result<(), ScriptError> {
    if text.len() > MAX_BYTES {
        return Err(ScriptError::Malformed(format!("the script has {} bytes, at most {MAX_BYTES} are read", text.len())));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a replay script: an object with `companions` and `events`")]
struct ParsedScript {
    companions: Vec<ParsedCompanion>,
    settings: Option<serde_json::Value>,
    #[serde(default)]
    jitter: Vec<i8>,
    #[serde(default)]
    rolls: Vec<f64>,
    #[serde(default)]
    models: ParsedModels,
    #[serde(default)]
    events: Vec<ParsedEvent>,
    until: Option<f64>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the answers of `side` and of `main` and the voices of `mouth`, by these keys")]
struct ParsedModels {
    #[serde(default)]
    mouth: Vec<Mouth>,
    side: Option<Vec<ParsedAnswer>>,
    main: Option<Vec<ParsedAnswer>>,
}

/// A companion: the id of a configured one, or one with its own settings.
enum ParsedCompanion {
    Configured(CompanionId),
    Own(Box<CompanionFile>),
}

impl<'de> Deserialize<'de> for ParsedCompanion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdOrTable;
        impl<'de> Visitor<'de> for IdOrTable {
            type Value = ParsedCompanion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a companion: the id of a configured one, or an object with `id`")
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<Self::Value, E> {
                Ok(ParsedCompanion::Configured(id.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                CompanionFile::deserialize(MapAccessDeserializer::new(map)).map(|file| ParsedCompanion::Own(Box::new(file)))
            }
        }
        deserializer.deserialize_any(IdOrTable)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an answer: an object with `text` or `error`")]
struct ParsedAnswer {
    text: Option<String>,
    error: Option<String>,
    #[serde(default)]
    delay: f64,
    companion: Option<CompanionId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an event: an object with `at`, `channel` and what happens")]
struct ParsedEvent {
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
    kind: Option<String>,
    #[serde(default)]
    clear: bool,
    #[serde(default)]
    models_replaced: bool,
    edit: Option<u64>,
    delete: Option<u64>,
    join: Option<CompanionId>,
    leave: Option<CompanionId>,
    stop: Option<CompanionId>,
    again: Option<CompanionId>,
    next: Option<CompanionId>,
    #[serde(default)]
    everybody: bool,
    pause: Option<CompanionId>,
    resume: Option<CompanionId>,
    voice: Option<ParsedVoice>,
    speech: Option<ParsedSpeech>,
    partial: Option<String>,
    r#final: Option<String>,
    say: Option<String>,
    started: Option<f64>,
    ended: Option<f64>,
}

impl ParsedScript {
    fn validate(self, configured: Configured<'_>) -> Result<Script, ScriptError> {
        let settings = Settings::overlay(self.settings.unwrap_or(serde_json::Value::Object(Default::default())))
            .map_err(|problems| ScriptError::Settings(problems.to_string()))?;
        let mut companions = BTreeMap::new();
        let is_named = |companion: &ParsedCompanion| matches!(companion, ParsedCompanion::Configured(_));
        let known = self.companions.iter().any(is_named).then(configured).transpose().map_err(ScriptError::Malformed)?;
        let mut known = known.unwrap_or_default();
        for (index, companion) in self.companions.into_iter().enumerate() {
            let position = format!("companions[{index}]");
            let companion = match companion {
                ParsedCompanion::Configured(id) => known.remove(&id).ok_or_else(|| {
                    let known = known.keys().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
                    let known = if known.is_empty() { "none" } else { &known };
                    malformed(&position, format!("{:?} is no configured companion (known: {known})", id.as_str()))
                })?,
                ParsedCompanion::Own(file) => {
                    Companion::from_file(*file, None, &settings.companion_defaults).map_err(|problems| {
                        malformed(&position, problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
                    })?
                }
            };
            let id = companion.id.clone();
            if companions.insert(id.clone(), companion).is_some() {
                return Err(malformed(&position, format!("id = \"{id}\" occurs twice")));
            }
        }
        if let Some(jitter) = self.jitter.iter().find(|jitter| !(-2..=2).contains(*jitter)) {
            return Err(malformed("jitter", format!("{jitter} is not one of -2, -1, 0, 1, 2")));
        }
        if let Some(roll) = self.rolls.iter().find(|roll| !(0.0..=1.0).contains(*roll)) {
            return Err(malformed("rolls", format!("{roll:?} is not a number from 0 to 1")));
        }
        for (index, mouth) in self.models.mouth.iter().enumerate() {
            mouth.check(&format!("models.mouth[{index}]"))?;
        }
        let check_known = |companion: &CompanionId, position: &str| {
            companions
                .contains_key(companion)
                .then_some(())
                .ok_or_else(|| malformed(position, format!("\"{companion}\" is not one of the script's companions")))
        };
        let mut events = Vec::with_capacity(self.events.len());
        for (index, event) in self.events.into_iter().enumerate() {
            let position = format!("events[{index}]");
            for scripted in event.validate(&position)? {
                if let Action::Join(companion)
                | Action::Leave(companion)
                | Action::Stop(companion)
                | Action::Choose(Some(companion))
                | Action::Pause(companion, _) = &scripted.action
                {
                    check_known(companion, &position)?;
                }
                events.push(scripted);
            }
        }
        let lists = [(ModelRole::Side, self.models.side.is_none()), (ModelRole::Main, self.models.main.is_none())];
        let unscripted = lists.into_iter().filter_map(|(role, is_absent)| is_absent.then_some(role)).collect();
        let side = answers(self.models.side.unwrap_or_default(), "models.side", "NO", check_known)?;
        let main = answers(self.models.main.unwrap_or_default(), "models.main", "ok", check_known)?;
        let until = self.until.map(|until| moment(until, "until")).transpose()?;
        let (jitter, rolls, mouths, notes) = (self.jitter, self.rolls, self.models.mouth, self.notes);
        Ok(Script { companions, settings, jitter, side, main, unscripted, mouths, rolls, events, until, notes })
    }
}

impl ParsedEvent {
    /// Converts the event. `say` results in several events.
    fn validate(self, position: &str) -> Result<Vec<ScriptedEvent>, ScriptError> {
        let at = moment(self.at, &format!("{position}.at"))?;
        let moment_of = |secs: Option<f64>, key: &str| secs.map(|secs| moment(secs, &format!("{position}.{key}"))).transpose();
        let heard = ParsedVoiceEvent {
            voice: self.voice,
            speech: self.speech,
            partial: self.partial,
            last: self.r#final,
            say: self.say,
            started: moment_of(self.started, "started")?,
            ended: moment_of(self.ended, "ended")?,
        };
        let changes_channel = self.text.is_some() || self.join.is_some() || self.leave.is_some() || self.clear;
        let is_other = changes_channel || self.edit.is_some() || self.delete.is_some();
        let chosen = self.next.map(Some).into_iter().chain(self.everybody.then_some(None)).map(Action::Choose);
        let pauses = [(self.pause, true), (self.resume, false)];
        let pauses = pauses.into_iter().filter_map(|(companion, paused)| Some(Action::Pause(companion?, paused)));
        let pressed = self.stop.map(Action::Stop).into_iter().chain(self.again.map(Action::Again)).chain(chosen).chain(pauses);
        let mut alone: Vec<_> = pressed.chain(self.models_replaced.then_some(Action::ReplaceModels)).collect();
        if heard.is_given() {
            if is_other || !alone.is_empty() {
                return Err(malformed(position, "needs exactly one thing that happens".into()));
            }
            return heard.events(at, &self.channel, self.from).map_err(|detail| malformed(position, detail));
        }
        let message = self.edit.or(self.delete).map(Seq);
        if message == Some(Seq::NONE) {
            return Err(malformed(position, "the first message of a channel has number 1".into()));
        }
        if let Some(action) = alone.pop() {
            if is_other || !alone.is_empty() {
                return Err(malformed(position, "needs exactly one thing that happens".into()));
            }
            return Ok(vec![ScriptedEvent { at, channel: self.channel, action }]);
        }
        let action = match (self.text, self.join, self.leave, self.clear) {
            (Some(text), None, None, false) if self.edit.is_some() && self.delete.is_none() => {
                Action::Edit { message: message.unwrap_or_default(), text }
            }
            (None, None, None, false) if self.delete.is_some() && self.edit.is_none() => {
                Action::Delete(message.unwrap_or_default())
            }
            _ if message.is_some() => return Err(malformed(position, "needs `edit` and `text`, or `delete` alone".into())),
            (Some(text), None, None, false) => {
                let from = self.from.ok_or_else(|| malformed(position, "a message needs `from`".into()))?;
                let is_message = self.bot || self.direct || self.lull_endpoint || self.reply_to.is_some();
                if self.kind.is_some() && is_message {
                    let detail = "has `kind`, so it is an event; leave out `reply_to`, `bot`, `direct` and `lull_endpoint`";
                    return Err(malformed(position, detail.into()));
                }
                Action::Say(ScriptedMessage {
                    from,
                    text,
                    mentions: self.mentions,
                    reply_to: self.reply_to,
                    bot: self.bot,
                    direct: self.direct,
                    modality: self.modality,
                    lull_endpoint: self.lull_endpoint,
                    kind: self.kind,
                })
            }
            (None, Some(companion), None, false) => Action::Join(companion),
            (None, None, Some(companion), false) => Action::Leave(companion),
            (None, None, None, true) => Action::Clear,
            _ => {
                return Err(malformed(
                    position,
                    "needs exactly one of `text`, `join`, `leave`, `clear`, `edit`, `delete`, `stop`, `again`, `models_replaced`"
                        .into(),
                ));
            }
        };
        Ok(vec![ScriptedEvent { at, channel: self.channel, action }])
    }
}

fn answers(
    parsed: Vec<ParsedAnswer>,
    position: &str,
    default_text: &str,
    check_known: impl Fn(&CompanionId, &str) -> Result<(), ScriptError>,
) -> Result<Answers, ScriptError> {
    let mut answers = Answers { shared: Vec::new(), own: BTreeMap::new() };
    for (index, parsed) in parsed.into_iter().enumerate() {
        let position = format!("{position}[{index}]");
        let delay = moment(parsed.delay, &format!("{position}.delay"))?.since(Moment::ZERO);
        let outcome = match (parsed.text, parsed.error) {
            (Some(text), None) => Ok(text),
            (None, Some(error)) => Err(error),
            _ => return Err(malformed(&position, "needs exactly one of `text`, `error`".into())),
        };
        let answer = Answer { outcome, delay };
        match parsed.companion {
            None => answers.shared.push(answer),
            Some(companion) => {
                check_known(&companion, &position)?;
                answers.own.entry(companion).or_default().push(answer);
            }
        }
    }
    if answers.shared.is_empty() {
        answers.shared.push(Answer { outcome: Ok(default_text.to_owned()), delay: Duration::ZERO });
    }
    Ok(answers)
}

/// Converts seconds to a moment, rounded to the nearest microsecond.
fn moment(secs: f64, position: &str) -> Result<Moment, ScriptError> {
    if !(0.0..=LATEST_SECS).contains(&secs) {
        return Err(malformed(position, format!("{secs:?} is not a number of seconds from 0 to {LATEST_SECS}")));
    }
    Ok(Moment::from_micros((secs * 1e6).round() as u64))
}

fn malformed(position: &str, message: String) -> ScriptError {
    ScriptError::Malformed(format!("{position}: {message}"))
}
