//! A companion's settings: its file, the defaults for absent keys, and overrides at run time.

use std::borrow::Cow;
use std::sync::Arc;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Problem, duration, seconds, within};
use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{CompanionId, GuildId, ModelName};
use crate::domain::model_role::ModelRole;
pub use crate::domain::policy::interjection::Interjection;
pub use crate::domain::policy::quiet_hours::QuietHours;
use crate::domain::policy::turn_taking::MAX_TURNS;
use crate::domain::text::{self, first_hidden};
pub use overrides::{CompanionPatch, ModelOverrides, ModelPatch, Override, Overrides};
pub use voice::CompanionVoice;

mod overrides;
mod voice;
pub mod written;

/// The maximum number of a companion's aliases.
pub const MAX_ALIASES: usize = 16;
/// The longest name or alias, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// The longest sentence about a companion, in characters.
pub const MAX_ABOUT_CHARS: usize = 200;
/// The longest persona, in bytes.
pub const MAX_PERSONA_BYTES: usize = 16 * 1024;
/// The longest brief, in bytes.
pub const MAX_BRIEF_BYTES: usize = 4 * 1024;
/// The longest chattiness or tone, in bytes.
pub const MAX_TRAIT_BYTES: usize = 2 * 1024;
/// The maximum number of greetings, and the longest one, in bytes.
pub const MAX_GREETINGS: usize = 64;
pub const MAX_GREETING_BYTES: usize = 16 * 1024;
/// The maximum number of tools that a companion is offered.
pub const MAX_TOOLS: usize = 16;
/// The longest URL of a picture, in bytes: Discord's own limit.
pub const MAX_PICTURE_BYTES: usize = 2_048;
/// The longest lull timeout, in seconds.
const MAX_LULL_SECS: f64 = 86_400.0;
/// The shortest and the longest silence after which a companion may start a conversation, in seconds.
const LEAST_SILENCE_SECS: f64 = 60.0;
const MOST_SILENCE_SECS: f64 = 604_800.0;

/// A companion's complete configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Companion {
    /// The stem of its file's name, or the name of its folder: 1 to 32 of `A-Z a-z 0-9 _ -`.
    pub id: CompanionId,
    /// Its display name.
    pub name: Arc<str>,
    /// Further names that address it (docs/design/gate.md G-6).
    pub aliases: Vec<Arc<str>>,
    /// How willing it is to speak, as free text. It goes into the prompt verbatim (docs/design/gate.md G-26).
    pub chattiness: Arc<str>,
    /// How many messages pass before it considers an interjection (docs/design/gate.md G-7).
    pub interjection: Interjection,
    /// Seconds of silence that make a lull in a text channel (0 to 86,400; docs/design/gate.md G-4).
    pub text_lull_timeout: f64,
    /// Seconds of silence that make a lull in a voice channel (0 to 86,400; docs/design/gate.md G-4).
    pub voice_lull_timeout: f64,
    /// Its quiet hours, in which it speaks only when spoken to (docs/design/gate.md G-43).
    pub quiet_hours: QuietHours,
    /// Seconds of silence after which it may start a conversation (60 to 604,800; docs/design/gate.md G-37). `None`: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<f64>,
    /// Whether it is for adults only: it does not join rooms with minors (docs/design/safety.md N-11).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adult: bool,
    /// The description of the character for its prompts: the key of its file, or the persona files of its folder.
    pub persona: Arc<str>,
    /// The text that decisions show instead of a persona that is too long for them (docs/design/gate.md G-32). `None`: the side
    /// model writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief: Option<Arc<str>>,
    /// Its tone, as one sentence for the prompts of its statements. These prompts also contain the sentence of its interjection
    /// level.
    pub tone: Option<Arc<str>>,
    /// One sentence about it that everybody sees in its profile, guests too. It is in no prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
    /// The https URL of its picture, for platforms that show one. It must be public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<Arc<str>>,
    /// The greetings that it may start with in an empty room. A person chooses one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub greetings: Vec<Arc<str>>,
    /// The number of its own statements after which it ends a conversation (1 to 1,000,000). `None`: it has no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The tools that it is offered, by name. `None`: the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<str>>>,
    /// Whether its statements are judged for repetition. If so, repetition forces closing stages on it.
    pub repetition: bool,
    #[serde(skip_serializing_if = "ModelChoice::is_default")]
    pub model: ModelChoice,
    /// The sound of its voice and of its name.
    #[serde(skip_serializing_if = "CompanionVoice::is_default")]
    pub voice: CompanionVoice,
    /// The only guild in whose channels it takes part. `None`: in any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild: Option<GuildId>,
}

/// The models that a companion uses, by name: `main`, `side` or the NAME of a table `[models.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table with `main` and `side`, each the name of a model")]
pub struct ModelChoice {
    /// The model that writes its statements. The default is `main`.
    pub main: ModelName,
    /// The model that decides whether it speaks. The default is `side`.
    pub side: ModelName,
}

impl ModelChoice {
    pub const fn of(&self, role: ModelRole) -> &ModelName {
        match role {
            ModelRole::Side => &self.side,
            ModelRole::Main => &self.main,
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for ModelChoice {
    fn default() -> Self {
        Self { main: ModelRole::Main.into(), side: ModelRole::Side.into() }
    }
}

/// A companion as written in its file or in a replay script, with the keys of [`Companion`]. Absent keys have the values of
/// [`CompanionDefaults`]. Keys without a default are unset, and the name is the capitalised id.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a companion: its id, name and the like, by their keys")]
pub struct CompanionFile {
    /// The id. It must equal the stem of the file's name, or the folder's name.
    pub id: Option<CompanionId>,
    pub name: Option<Arc<str>>,
    pub aliases: Option<Vec<Arc<str>>>,
    pub chattiness: Option<Arc<str>>,
    pub interjection: Option<Interjection>,
    pub text_lull_timeout: Option<f64>,
    pub voice_lull_timeout: Option<f64>,
    pub quiet_hours: Option<QuietHours>,
    pub starts_after: Option<f64>,
    pub adult: Option<bool>,
    pub persona: Option<Arc<str>>,
    pub brief: Option<Arc<str>>,
    pub tone: Option<Arc<str>>,
    pub about: Option<Arc<str>>,
    pub picture: Option<Arc<str>>,
    pub greetings: Option<Vec<Arc<str>>>,
    pub max_turns: Option<u32>,
    pub tools: Option<Vec<Arc<str>>>,
    pub repetition: Option<bool>,
    pub model: Option<ModelChoice>,
    pub voice: Option<CompanionVoice>,
    pub guild: Option<GuildId>,
}

/// Section `companion_defaults`: values for keys that a companion's file does not set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanionDefaults {
    pub chattiness: Arc<str>,
    pub interjection: Interjection,
    pub text_lull_timeout: f64,
    pub voice_lull_timeout: f64,
    pub quiet_hours: QuietHours,
    pub repetition: bool,
    pub persona: Arc<str>,
}

seconds! {
    Companion {
        text_lull = text_lull_timeout,
        voice_lull = voice_lull_timeout,
    }
}

seconds! {
    CompanionDefaults { voice_lull = voice_lull_timeout, }
}

impl Companion {
    /// Builds a companion from its file and the defaults. `stem` is the name of its file without `.toml`, or the name of its
    /// folder, if it has one.
    ///
    /// # Errors
    /// Returns all values that are out of range or missing, each with its key.
    pub fn from_file(file: CompanionFile, stem: Option<&str>, defaults: &CompanionDefaults) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let id = id_of(file.id, stem, &mut problems);
        let companion = Self {
            name: file.name.unwrap_or_else(|| capitalised(id.as_str()).into()),
            id,
            aliases: file.aliases.unwrap_or_default(),
            chattiness: file.chattiness.unwrap_or_else(|| defaults.chattiness.clone()),
            interjection: file.interjection.unwrap_or(defaults.interjection),
            text_lull_timeout: file.text_lull_timeout.unwrap_or(defaults.text_lull_timeout),
            voice_lull_timeout: file.voice_lull_timeout.unwrap_or(defaults.voice_lull_timeout),
            quiet_hours: file.quiet_hours.unwrap_or(defaults.quiet_hours),
            starts_after: file.starts_after.filter(|silence| *silence != 0.0),
            adult: file.adult.unwrap_or_default(),
            persona: with_plain_lines(file.persona.unwrap_or_else(|| defaults.persona.clone())),
            brief: file.brief.map(with_plain_lines),
            tone: file.tone,
            about: file.about.filter(|about| !about.trim().is_empty()),
            picture: file.picture,
            greetings: file.greetings.unwrap_or_default().into_iter().map(with_plain_lines).collect(),
            max_turns: file.max_turns,
            tools: file.tools,
            repetition: file.repetition.unwrap_or(defaults.repetition),
            model: file.model.unwrap_or_default(),
            voice: file.voice.unwrap_or_default(),
            guild: file.guild,
        };
        problems.extend(companion.problems());
        if problems.is_empty() { Ok(companion) } else { Err(problems) }
    }

    /// Whether it may take part in channels of a guild.
    pub fn is_of(&self, guild: &GuildId) -> bool {
        self.guild.as_ref().is_none_or(|own| own == guild)
    }

    /// All names that address it: id, name and aliases, as written. Some may be equal.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.id.as_str(), &self.name].into_iter().chain(self.aliases.iter().map(|alias| &**alias))
    }

    /// All settings that the gate needs. The room's own quiet hours are added elsewhere.
    pub fn policy(&self) -> InterjectionPolicy {
        InterjectionPolicy {
            level: self.interjection,
            starting_interval: self.interjection.starting_interval().into(),
            text_lull_timeout: self.text_lull(),
            voice_lull_timeout: self.voice_lull(),
            quiet_hours: [self.quiet_hours, QuietHours::Never],
            starts_after: self.starts_after.map(duration),
            max_turns: self.max_turns,
            repetition: self.repetition,
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = vec![
            check_name("name", &self.name),
            check_trait("chattiness", &self.chattiness, MAX_TRAIT_BYTES),
            within("text_lull_timeout", self.text_lull_timeout, 0.0..=MAX_LULL_SECS),
            within("voice_lull_timeout", self.voice_lull_timeout, 0.0..=MAX_LULL_SECS),
            self.starts_after.map_or(Ok(()), check_starts_after),
            check_trait("persona", &self.persona, MAX_PERSONA_BYTES),
            check_trait("brief", self.brief.as_deref().unwrap_or_default(), MAX_BRIEF_BYTES),
            check_trait("tone", self.tone.as_deref().unwrap_or_default(), MAX_TRAIT_BYTES),
            self.about.as_deref().map_or(Ok(()), check_about),
            self.picture.as_deref().map_or(Ok(()), check_picture),
            check_max_turns(self.max_turns),
            self.guild.as_ref().map_or(Ok(()), check_guild),
        ];
        found.extend(self.aliases.iter().enumerate().map(|(index, alias)| check_name(&format!("aliases[{index}]"), alias)));
        found.extend(self.greetings.iter().enumerate().map(|(index, greeting)| check_greeting(index, greeting)));
        for (key, count, most) in [
            ("aliases", self.aliases.len(), MAX_ALIASES),
            ("greetings", self.greetings.len(), MAX_GREETINGS),
            ("tools", self.tools.as_ref().map_or(0, Vec::len), MAX_TOOLS),
        ] {
            if count > most {
                let problem = Problem::new(key, format!("has {count} entries, at most {most} are allowed"));
                found.push(Err(problem.coded("refusals.too_many_entries", json!({ "entries": count, "most": most }))));
            }
        }
        found.into_iter().filter_map(Result::err).chain(self.voice.problems()).collect()
    }
}

impl CompanionDefaults {
    pub fn check(&self) -> Result<(), Problem> {
        check_trait("chattiness", &self.chattiness, MAX_TRAIT_BYTES)?;
        within("text_lull_timeout", self.text_lull_timeout, 0.0..=MAX_LULL_SECS)?;
        within("voice_lull_timeout", self.voice_lull_timeout, 0.0..=MAX_LULL_SECS)?;
        check_trait("persona", &self.persona, MAX_PERSONA_BYTES)
    }
}

impl Overrides {
    /// The companion with these overrides. `paused` is not a setting of [`Companion`], so it has no effect here.
    pub fn applied_to(&self, companion: &Companion) -> Companion {
        Companion {
            chattiness: self.chattiness.clone().unwrap_or_else(|| companion.chattiness.clone()),
            interjection: self.interjection.unwrap_or(companion.interjection),
            text_lull_timeout: self.text_lull_timeout.unwrap_or(companion.text_lull_timeout),
            voice_lull_timeout: self.voice_lull_timeout.unwrap_or(companion.voice_lull_timeout),
            quiet_hours: self.quiet_hours.unwrap_or(companion.quiet_hours),
            starts_after: self.starts_after.or(companion.starts_after).filter(|silence| *silence != 0.0),
            max_turns: self.max_turns.or(companion.max_turns),
            repetition: self.repetition.unwrap_or(companion.repetition),
            model: ModelChoice {
                main: self.model.main.clone().unwrap_or_else(|| companion.model.main.clone()),
                side: self.model.side.clone().unwrap_or_else(|| companion.model.side.clone()),
            },
            ..companion.clone()
        }
    }

    pub fn check(&self) -> Result<(), Problem> {
        check_trait("chattiness", self.chattiness.as_deref().unwrap_or_default(), MAX_TRAIT_BYTES)?;
        within("text_lull_timeout", self.text_lull_timeout.unwrap_or_default(), 0.0..=MAX_LULL_SECS)?;
        within("voice_lull_timeout", self.voice_lull_timeout.unwrap_or_default(), 0.0..=MAX_LULL_SECS)?;
        self.starts_after.map_or(Ok(()), check_starts_after)?;
        check_max_turns(self.max_turns)
    }
}

/// Checks a `starts_after`: 0 (never), or a minute to a week.
fn check_starts_after(seconds: f64) -> Result<(), Problem> {
    if seconds == 0.0 {
        return Ok(());
    }
    within("starts_after", seconds, LEAST_SILENCE_SECS..=MOST_SILENCE_SECS)
}

/// Checks the guild of a companion: 1 to 64 characters in one line.
fn check_guild(guild: &GuildId) -> Result<(), Problem> {
    let text = guild.as_str();
    if (1..=64).contains(&text.chars().count()) && !text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Ok(());
    }
    Err(Problem::new("guild", "must be the id of a guild, such as \"discord:81384788765712384\"; remove it for all guilds"))
}

/// Checks that a companion can have this id: 1 to 32 of `A-Z a-z 0-9 _ -`.
pub fn check_id(id: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=32).contains(&id.len()) && id.bytes().all(allowed) {
        return Ok(());
    }
    Err(format!("{:?} is not an id of 1 to 32 letters A-Z and a-z, digits, _ or -", shortened(id)))
}

/// The first 60 characters of a text, for error messages.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    text::shortened(text, 60)
}

fn id_of(written: Option<CompanionId>, stem: Option<&str>, problems: &mut Vec<Problem>) -> CompanionId {
    let id = match (written, stem) {
        (Some(id), Some(stem)) if id.as_str() != stem => {
            let message = format!("= {:?}, but the file or folder is named {stem}; remove id", shortened(id.as_str()));
            problems.push(Problem::new("id", message));
            stem.into()
        }
        (_, Some(stem)) => stem.into(),
        (Some(id), None) => id,
        (None, None) => {
            problems.push(Problem::new("id", "is missing"));
            return "unnamed".into();
        }
    };
    if let Err(message) = check_id(id.as_str()) {
        problems.push(Problem::new("id", format!("= {message}")));
    }
    id
}

pub fn capitalised(id: &str) -> String {
    let mut chars = id.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn check_max_turns(most: Option<u32>) -> Result<(), Problem> {
    within("max_turns", most.unwrap_or(1), 1..=MAX_TURNS)
}

fn check_name(key: &str, name: &str) -> Result<(), Problem> {
    let shown = || format!("= {:?}", shortened(name));
    if name.trim().is_empty() {
        return Err(Problem::new(key, "is empty, must have 1 to 64 characters").coded("refusals.blank", json!({})));
    }
    if name.chars().count() > MAX_NAME_CHARS {
        let values = json!({ "chars": name.chars().count(), "most": MAX_NAME_CHARS });
        let message = format!("{} is too long, must have 1 to 64 characters", shown());
        return Err(Problem::new(key, message).coded("refusals.length", values));
    }
    if name.chars().any(|char| char.is_control() || is_layout(char)) {
        let message = format!("{} contains a control character; remove it", shown());
        return Err(Problem::new(key, message).coded("refusals.layout_character", json!({})));
    }
    if let Some(hidden) = first_hidden(name) {
        let message = format!(
            "{} contains U+{:04X}, which is invisible there, so that it looks like another name; remove it",
            shown(),
            u32::from(hidden)
        );
        let char = format!("U+{:04X}", u32::from(hidden));
        return Err(Problem::new(key, message).coded("refusals.hidden_character", json!({ "char": char })));
    }
    Ok(())
}

fn check_about(about: &str) -> Result<(), Problem> {
    let chars = about.chars().count();
    if chars > MAX_ABOUT_CHARS {
        let message = format!("has {chars} characters, at most {MAX_ABOUT_CHARS} are allowed");
        let values = json!({ "chars": chars, "most": MAX_ABOUT_CHARS });
        return Err(Problem::new("about", message).coded("refusals.length", values));
    }
    if about.chars().any(|char| char.is_control() || is_layout(char)) {
        let message = "contains a line break or another control character; write it in one line";
        return Err(Problem::new("about", message).coded("refusals.layout_character", json!({})));
    }
    Ok(())
}

/// Whether a character changes the direction of text or breaks lines. With such a character, a name could look like another
/// person's text.
fn is_layout(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn check_trait(key: &str, text: &str, most: usize) -> Result<(), Problem> {
    if text.len() > most {
        let problem = Problem::new(key, format!("has {} bytes, at most {most} are allowed", text.len()));
        return Err(problem.coded("refusals.too_many_bytes", json!({ "bytes": text.len(), "most": most })));
    }
    Ok(())
}

fn check_greeting(index: usize, greeting: &str) -> Result<(), Problem> {
    let key = format!("greetings[{index}]");
    if greeting.trim().is_empty() {
        return Err(Problem::new(key, "is empty; write something, or remove it").coded("refusals.blank", json!({})));
    }
    check_trait(&key, greeting, MAX_GREETING_BYTES)
}

/// Returns the text with Unix line endings, whatever line endings its editor writes.
pub fn with_plain_lines(text: Arc<str>) -> Arc<str> {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text }
}

/// Checks the URL of a picture. The platform fetches the picture, not this server, so a URL that only this machine can open would
/// show nothing.
fn check_picture(picture: &str) -> Result<(), Problem> {
    const REMEDY: &str = "give a public URL, such as \"https://example.org/mira.png\", or remove the key";
    let refused = |what: &str| {
        let problem = Problem::new("picture", format!("= {:?} {what}; {REMEDY}", shortened(picture)));
        Err(problem.coded("refusals.no_picture_url", json!({})))
    };
    if picture.len() > MAX_PICTURE_BYTES {
        return refused(&format!("has {} bytes, at most {MAX_PICTURE_BYTES} are allowed", picture.len()));
    }
    if picture.chars().any(|char| char.is_control() || char.is_whitespace() || is_layout(char)) {
        return refused("contains a space or a control character");
    }
    match Url::parse(picture) {
        Ok(url) if url.scheme() != "https" || !url.has_host() => refused("does not begin with https://"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => refused("contains a user or a password"),
        Ok(_) => Ok(()),
        Err(error) => refused(&format!("is not a URL ({error})")),
    }
}
