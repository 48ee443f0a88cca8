//! Loads settings from wherever they come: the built-in defaults ← `default.toml` ← the profile ← the environment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::{fmt, fs};

use config::Value;
use rustix::fs::OFlags;

use super::Settings;
use super::companion::Companion;
use super::exposure;
use super::layer::{Asked, Layer, located, merged, settle};
use super::mismatch::{Kind, Mismatch, Path};
use super::problem::{Located, Problem, Problems};
use super::roster::{Origin, Roster};
use super::strict;
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;

/// The settings that the binary carries.
const DEFAULTS: &str = include_str!("../../config/default.toml");
/// What they are called in lists of sources.
const BUILT_IN: &str = "built-in defaults";
/// Keys that a file of settings must not hold, with `api_key` of each model: each has a sibling, with `_file` at its end, that names a file for
/// it alone (docs/design/interfaces.md I-4).
const SECRETS: [&str; 2] = ["discord.token", "server.admin_token"];
/// The largest file of settings that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The folder that holds `default.toml`, profiles and `companions/`.
    pub folder: PathBuf,
    /// Whether the folder must exist, because somebody named it.
    pub folder_was_named: bool,
    /// The profile: its file must exist then.
    pub profile: Option<String>,
    /// Variables of the environment; those that begin with `TERTULIA__` count.
    pub environment: Vec<(String, String)>,
}

/// Settings that were found good, and what they are made of.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The companions, by id.
    pub companions: BTreeMap<CompanionId, Companion>,
    /// Where the companions come from.
    pub companions_from: Origin,
    /// What was read, the weakest first; never values.
    pub sources: Vec<String>,
    /// What an operator may want to know though nothing is wrong.
    pub notes: Vec<String>,
    merged: Unshown,
}

/// A tree whose values may be secrets.
#[derive(Clone)]
struct Unshown(Value);

impl fmt::Debug for Unshown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Loaded {
    /// The text of a setting by its path (`models.side.model`), if it is set and is a text.
    pub fn text(&self, path: &str) -> Option<&str> {
        let value = path.split('.').try_fold(&self.merged.0, |value, key| match &value.kind {
            config::ValueKind::Table(table) => table.get(key),
            _ => None,
        })?;
        match &value.kind {
            config::ValueKind::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Loaded {
    /// Whether a server can begin with them: the secrets that they name are there and can be used, and the data folder can be one. Whoever
    /// asks nothing of a server needs none of it.
    ///
    /// # Errors
    /// Everything that is in the way, by its key. Never a secret.
    pub fn serve(&self) -> Result<(), Problems> {
        let Settings { server, discord, models, storage, .. } = &self.settings;
        let keys = models.names().map(|name| {
            let key = models.served(ModelRole::Main, &name).limits.key();
            ("models", key.err().map(|problem| Problem { key: format!("{name}.{}", problem.key), ..problem }))
        });
        let is_file = storage.path.exists() && !storage.path.is_dir();
        let tokens = [("server", server.token().err()), ("discord", discord.token().err())];
        let folder = ("storage", is_file.then(|| Problem::new("path", "is a file; name a folder")));
        let found = tokens.into_iter().chain(keys).chain([folder]).filter_map(|(section, problem)| Some((section, problem?)));
        let found = found.map(|(section, Problem { key, message })| format!("{section}.{key} {message}"));
        let problems: Vec<_> = found.map(|message| Located { place: None, line: None, message }).collect();
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }
}

/// Loads and checks settings and companions.
///
/// # Errors
/// Everything that is wrong in any file or variable, each with its place.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let mut problems = Vec::new();
    let mut layers = layers(sources, &mut problems);
    for upto in 2..=layers.len() {
        settle::<Settings>(&mut layers[..upto], Asked::Fitting, |_| Vec::new(), &mut problems);
    }
    problems.extend(layers.iter().flat_map(secrets));
    let titles = layers.iter().filter_map(Layer::title).collect();
    let settings = settle(&mut layers, Asked::Whole, objections, &mut problems);
    let Some(mut settings) = settings else { return Err(Problems::sorted(problems)) };
    problems.extend(disagreements(&settings, &layers).iter().map(|mismatch| located(&layers, mismatch)));

    let mut notes = Vec::new();
    let roster = Roster::read(&sources.folder.join("companions"), &settings.companion_defaults, &settings.models, &mut problems);
    if !layers[1..].iter().any(|layer| layer.answers_for(&Path::of("console.rooms")).is_some()) {
        roster.fill(&mut settings.console, &mut notes);
    }
    problems.extend(in_section("console", roster.objections(&settings.console)).map(|mismatch| located(&layers, &mismatch)));
    let direct = in_section("discord", roster.direct_objections(&settings.discord));
    problems.extend(direct.map(|mismatch| located(&layers, &mismatch)));
    if !problems.is_empty() {
        return Err(Problems::sorted(problems));
    }
    notes.extend(exposure::notes(&settings));
    notes.extend(settings.models.notes());
    let is_asked = |name: &&ModelName| {
        let mut roles = roster.companions.values().flat_map(|companion| [&companion.model.main, &companion.model.side]);
        roles.any(|asked| asked == *name)
    };
    let unasked = settings.models.named.keys().filter(|name| !is_asked(name));
    notes.extend(unasked.map(|name| {
        format!("models.{name}: no companion asks it; name it in a companion's file ([model] main = \"{name}\"), or take it out")
    }));
    notes.extend(sources.environment.iter().filter_map(|(name, _)| misnamed(name)));
    let merged = merged(&layers).map_err(|problem| Problems(vec![problem]))?;
    Ok(Loaded {
        settings,
        companions: roster.companions,
        companions_from: roster.origin,
        sources: titles,
        notes,
        merged: Unshown(merged),
    })
}

impl Settings {
    /// The built-in defaults with a tree laid on them strictly, as a replay script has it under `settings` (docs/design/replay.md R-1).
    ///
    /// # Errors
    /// Everything in the tree that is unknown, does not fit or is out of range, named from `settings` down.
    pub fn overlay(script: serde_json::Value) -> Result<Self, Problems> {
        if !script.is_object() {
            return Err(Problems(vec![Located { place: None, line: None, message: "settings is not a table".to_owned() }]));
        }
        let mut problems = Vec::new();
        let mut layers: Vec<_> = built_in(&mut problems).into_iter().chain([Layer::script("settings", script)]).collect();
        let settings = settle(&mut layers, Asked::Whole, objections, &mut problems);
        settings.filter(|_| problems.is_empty()).ok_or(Problems::sorted(problems))
    }

    /// The built-in defaults as they are written, every key that has one.
    ///
    /// # Errors
    /// None in a binary that passed its tests.
    pub fn defaults() -> Result<toml::Table, Problems> {
        DEFAULTS.parse().map_err(|error: toml::de::Error| Problems(vec![Located::at(BUILT_IN, error.message())]))
    }
}

/// The secrets that stand in a file of settings, which is copied, shown and kept with less care than they need.
fn secrets(layer: &Layer) -> impl Iterator<Item = Located> {
    let keys = layer.keys_in("models").map(|name| format!("models.{name}.api_key"));
    let secrets: Vec<_> = SECRETS.map(str::to_owned).into_iter().chain(keys).collect();
    let is_there = |path: &String| {
        matches!(layer, Layer::File { .. }) && layer.answers_for(&Path::of(path)).as_ref() == Some(&Path::of(path))
    };
    secrets.into_iter().filter(is_there).map(|path| {
        let variable = path.to_uppercase().replace('.', "__");
        let message = format!(
            "is a secret and must not stand in a file of settings; give it as TERTULIA__{variable}, or name a file that holds it alone in {path}_file"
        );
        let mismatch = Mismatch { path: Path::of(&path), kind: Kind::Other(message) };
        located(std::slice::from_ref(layer), &mismatch)
    })
}

/// The layers in their order; the first is always the built-in one.
fn layers(sources: &Sources, problems: &mut Vec<Located>) -> Vec<Layer> {
    let mut layers = Vec::from_iter(built_in(problems));
    let folder = &sources.folder;
    if sources.folder_was_named && !folder.is_dir() {
        problems.push(Located::at(
            folder.display().to_string(),
            "is not a folder; --config names the folder that holds default.toml",
        ));
    }
    let default = folder.join("default.toml");
    if is_there(&default) {
        layers.extend(read_layer(&default, problems));
    }
    match sources.profile.as_deref() {
        None | Some("" | "default") => {}
        Some(profile) if !is_profile(profile) => {
            let message = format!("profile {profile:?} is not a name of 1 to 64 letters, digits, _ or -");
            problems.push(Located { place: None, line: None, message });
        }
        Some(profile) => {
            let path = folder.join(format!("{profile}.toml"));
            if is_there(&path) {
                layers.extend(read_layer(&path, problems));
            } else {
                let message = format!(
                    "is not there, and the profile {profile} is asked for; create it or leave --profile and TERTULIA_PROFILE out"
                );
                problems.push(Located::at(path.display().to_string(), message));
            }
        }
    }
    layers.push(Layer::environment(&sources.environment, problems));
    layers
}

/// What to say of a variable that looks like a setting's, and is none: it begins with one underscore where there have to be two.
fn misnamed(name: &str) -> Option<String> {
    let is_plain = |rest: &&str| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !rest.starts_with('_');
    let rest = name.strip_prefix("TERTULIA_").filter(is_plain)?;
    let defaults = Settings::defaults().ok()?;
    let section = defaults.keys().find(|section| {
        let there = rest.get(..section.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(section));
        there && rest[section.len()..].starts_with('_')
    })?;
    let key = rest[section.len()..].trim_start_matches('_');
    let is_within = |(name, value): (&String, &toml::Value)| {
        value.is_table() && key.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    let is_nested = defaults[section].as_table().is_some_and(|section| section.iter().any(is_within));
    let meant = format!("TERTULIA__{}__{}", section.to_uppercase(), key.to_uppercase());
    let is_none = is_nested || key.is_empty() || !is_known(&meant);
    let meant = if is_none { String::new() } else { format!("; {meant} is, if that was meant") };
    Some(format!("{name} is not read: two underscores follow TERTULIA, and each name of a section{meant}"))
}

/// Whether a setting goes by this variable.
fn is_known(variable: &str) -> bool {
    let layers = [Layer::environment(&[(variable.to_owned(), "x".to_owned())], &mut Vec::new())];
    let read = merged(&layers).map(|tree| strict::read::<Settings>(&tree));
    !matches!(read, Ok(Err(Mismatch { kind: Kind::UnknownKey(_), .. })))
}

fn built_in(problems: &mut Vec<Located>) -> Option<Layer> {
    Layer::file(BUILT_IN, DEFAULTS).map_err(|problem| problems.push(problem)).ok()
}

fn read_layer(path: &FilePath, problems: &mut Vec<Located>) -> Option<Layer> {
    let name = path.display().to_string();
    let layer = read_text(path).map_err(|message| Located::at(&name, message)).and_then(|text| Layer::file(&name, &text));
    layer.map_err(|problem| problems.push(problem)).ok()
}

/// Whether something has this name. What cannot be looked at, or leads nowhere, counts: reading it will tell why it fails, where
/// passing over it would put defaults in the place of what somebody has set.
pub(super) fn is_there(path: &FilePath) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// The text of a file of settings. Only a regular file is read: opening a FIFO or a device may wait without end.
pub(super) fn read_text(path: &FilePath) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a FIFO does not wait then. Nothing else changes for a regular file.
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_wait).open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err("is no regular file; put a file with the settings there".to_owned());
    }
    if found.len() > MAX_FILE_BYTES {
        return Err(format!("has {} bytes, at most {MAX_FILE_BYTES} are read", found.len()));
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    String::from_utf8(text).map_err(|_| "is not UTF-8 text".to_owned())
}

fn is_profile(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

/// What the sections object to, by path from the root.
fn objections(settings: &Settings) -> Vec<Mismatch> {
    settings.check().into_iter().flat_map(|(section, problem)| in_section(section, vec![problem])).collect()
}

/// What sections object to in each other, told at the key that was set last. A replay script is free of it: there the models' timeouts do
/// not apply.
fn disagreements(settings: &Settings, layers: &[Layer]) -> Vec<Mismatch> {
    const ROUND: &str = "turn_taking.state_timeout_secs";
    const QUESTION: &str = "models.side.timeout_secs";
    let (round, question) = (settings.turn_taking.state_timeout_secs, settings.models.side.timeout_secs);
    if round > question {
        return Vec::new();
    }
    let set_in = |path: &str| layers.iter().rposition(|layer| layer.answers_for(&Path::of(path)).is_some());
    let (path, message) = if set_in(QUESTION) > set_in(ROUND) {
        (QUESTION, format!("is {question}, must be less than {ROUND}, which is {round}; lower this one, or raise that one"))
    } else {
        (ROUND, format!("is {round}, must be more than {QUESTION}, which is {question}; raise this one, or lower that one"))
    };
    let message = format!("{message}: a round must not end before its answers can arrive");
    vec![Mismatch { path: Path::of(path), kind: Kind::Other(message) }]
}

fn in_section(section: &str, problems: Vec<Problem>) -> impl Iterator<Item = Mismatch> {
    problems.into_iter().map(move |problem| Mismatch {
        path: Path::of(&format!("{section}.{}", problem.key)),
        kind: Kind::Other(problem.message),
    })
}
