//! Loads settings from their sources: the built-in defaults ← `default.toml` ← the profile ← the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::Problem;
use super::Settings;
use super::companion::Companion;
use super::connection::OVERRIDABLE;
use super::console::check_room_name;
use super::exposure;
use super::kept::{Files, Kept, KeptFields};
use super::layer::{Completeness, Layer, located, merged, place, quotation_notes, read_layers, value_of};
use super::lore::{self, BookFile};
use super::mismatch::{Kind, Mismatch, Path};
use super::problem::{Located, Problems};
use super::roster::{Origin, Overlay, Roster};
use super::speech::Speech;
use super::storage::Engine;
use super::zone::Zone;
use super::{stray, strict};
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::domain::service::Service;

/// The built-in settings.
const DEFAULTS: &str = include_str!("../../config/default.toml");
/// Their title in lists of sources.
const BUILT_IN: &str = "built-in defaults";
/// Keys that a settings file must not contain, besides `api_key` of each model and of each speech service, and `token` of each server
/// of tools. Each has a sibling key with the suffix `_file`, which names a file that contains only the secret (docs/design/interfaces.md I-4).
const SECRETS: [&str; 3] = ["discord.token", "server.admin_token", "storage.url"];
/// The largest settings file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The sources of settings.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The folder with `default.toml`, profiles and `companions/`.
    pub folder: PathBuf,
    /// Whether the user named the folder. If so, it must exist.
    pub folder_was_named: bool,
    /// The name of the profile. If it is set, its file must exist.
    pub profile: Option<String>,
    /// Environment variables. Only those that begin with `TERTULIA__` are settings.
    pub environment: Vec<(String, String)>,
}

impl Sources {
    /// The folder of the companions.
    pub fn companions(&self) -> PathBuf {
        self.folder.join("companions")
    }

    /// The folder of lorebooks in files.
    fn lore(&self) -> PathBuf {
        self.folder.join("lore")
    }
}

/// Valid settings and companions, and their sources.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// All settings, checked.
    pub settings: Settings,
    pub companions: BTreeMap<CompanionId, Companion>,
    /// The source of the companions.
    pub companions_from: Origin,
    /// Whether a file or a variable sets `console.rooms`.
    pub has_rooms: bool,
    /// The lorebooks in files.
    pub lore: Vec<BookFile>,
    /// Companions that are left out because their files have errors.
    pub left_out: Vec<CompanionId>,
    /// The errors in their files, and in those of lorebooks, which are left out, too.
    pub broken: Vec<Located>,
    /// Folders that are named like a companion but contain neither `companion.toml` nor persona files.
    pub skipped: Vec<(CompanionId, PathBuf)>,
    /// The titles of the sources, the weakest first. They never contain values.
    pub sources: Vec<String>,
    /// Hints for the operator that are not errors.
    pub notes: Vec<String>,
    /// Keys of the settings that name companions without a file. These companions may be in the store.
    pub unknown: Vec<Located>,
    /// The settings that were made on the page.
    pub kept: Kept,
    /// What is in force of everything that can be set on the page.
    pub fields: KeptFields,
}

impl Loaded {
    /// Rejects settings that name companions which do not exist.
    ///
    /// # Errors
    /// Returns the places where they are named, and the errors in files of companions.
    pub fn known(mut self) -> Result<Self, Problems> {
        if self.unknown.is_empty() {
            return Ok(self);
        }
        self.unknown.append(&mut self.broken);
        Err(Problems::sorted(self.unknown))
    }

    /// Rejects companions with errors, which are otherwise left out.
    ///
    /// # Errors
    /// Returns the errors in their files.
    pub fn complete(self) -> Result<Self, Problems> {
        if self.broken.is_empty() { Ok(self) } else { Err(Problems::sorted(self.broken)) }
    }

    /// Checks that a server can start with these settings: its secrets can be read, and the data folder is not a file. Commands
    /// that start no server do not need this.
    ///
    /// # Errors
    /// Returns every problem that prevents the start of a server, by key. The messages never contain a secret.
    pub fn serve(&self) -> Result<(), Problems> {
        let Settings { server, discord, models, storage, speech, .. } = &self.settings;
        let keys = models.names().map(|name| {
            let key = models.served(ModelRole::Main, &name).limits.key();
            ("models", key.err().map(|problem| Problem { key: format!("{name}.{}", problem.key), ..problem }))
        });
        let used = used_services(speech, &self.companions);
        let services = speech.services.iter().map(|(name, table)| {
            let is_used = used.contains(name) || table.api(name).is_ok_and(|api| api.serves(Service::SpeechSynthesis));
            let key = if is_used { table.needed_key(name) } else { table.key() };
            ("speech", key.err().map(|problem| Problem { key: format!("services.{name}.{}", problem.key), ..problem }))
        });
        let is_file = storage.path.exists() && !storage.path.is_dir();
        let tokens = [("server", server.token().err()), ("discord", discord.token().err())];
        let authorities = ("models", models.authorities().err());
        let moderation = models.moderation.as_ref().and_then(|moderation| moderation.key().err());
        let moderation = moderation.map(|problem| Problem { key: format!("moderation.{}", problem.key), ..problem });
        let database = ("storage", (storage.engine == Engine::Postgres).then(|| storage.url().err()).flatten());
        let folder = ("storage", is_file.then(|| Problem::new("path", "is a file; name a folder")));
        let found = tokens
            .into_iter()
            .chain(keys)
            .chain(services)
            .chain([authorities, ("models", moderation), database, folder])
            .filter_map(|(section, problem)| Some((section, problem?)));
        let found = found.map(|(section, Problem { key, message, .. })| format!("{section}.{key} {message}"));
        let problems: Vec<_> = found.map(|message| Located { place: None, line: None, message }).collect();
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }
}

/// Loads and checks settings and companions. Companions whose files have errors are left out.
///
/// # Errors
/// Returns all problems in settings files and in variables, each with its place, followed by those of companions.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    load_with(sources, &Overlay::new()).and_then(Loaded::known)
}

/// Loads settings, with companions that replace files. Keys that name companions which do not exist are in [`Loaded::unknown`].
///
/// # Errors
/// The same as for [`load`].
pub fn load_with(sources: &Sources, overlay: &Overlay) -> Result<Loaded, Problems> {
    load_with_kept(sources, overlay, None)
}

/// Loads settings as [`load_with`] does, with these settings of the page instead of the stored ones.
///
/// # Errors
/// The same as for [`load`].
pub fn load_with_kept(sources: &Sources, overlay: &Overlay, kept: Option<&Kept>) -> Result<Loaded, Problems> {
    let (mut problems, mut reported) = (Vec::new(), Vec::new());
    let mut layers = layers(sources, &mut problems);
    let unchanged = layers.clone();
    let files = Files::new(&unchanged);
    let data = PathBuf::from(value_of("storage.path", &unchanged).unwrap_or_default());
    let kept = kept.map_or_else(|| Kept::read(&data), |kept| Ok(kept.clone()));
    let kept = kept.unwrap_or_else(|Problem { key, message, .. }| {
        problems.push(Located::at(key, message));
        Kept::default()
    });
    layers.extend(kept.layer(&data, &files));
    for upto in 2..=layers.len() {
        read_layers::<Settings>(&mut layers[..upto], Completeness::Partial, |_| Vec::new(), &mut reported, &mut problems);
    }
    problems.extend(layers.iter().flat_map(secrets));
    let titles = layers.iter().filter_map(|layer| layer.title.clone()).collect();
    let fields = kept.fields(&layers, &files);
    let settings = read_layers(&mut layers, Completeness::Complete, failed_checks, &mut reported, &mut problems);
    let Some(mut settings) = settings else { return Err(Problems::sorted(problems)) };
    settings.server.keep_token_in(&settings.storage.path);
    settings.set = OVERRIDABLE.into_iter().filter_map(|key| Some((key, place_of(key, &layers)?))).collect();
    problems.extend(failed_cross_check(&settings, &layers).map(|mismatch| located(&layers, &mismatch)));

    let mut notes = Vec::new();
    let mut roster = Roster::read(&sources.companions(), overlay, &settings, &mut problems);
    let lore = lore::read(&sources.lore(), read_text, &mut roster.broken);
    let has_rooms = layers[1..].iter().any(|layer| layer.value_path(&Path::of("console.rooms")).is_some());
    if !has_rooms {
        roster.fill(&mut settings.console, &mut notes);
    }
    let (mut absent, mut absent_direct) = (Vec::new(), Vec::new());
    let rooms = in_section("console", roster.check_rooms(&settings.console, &mut absent));
    let direct = in_section("discord", roster.check_direct_companions(&settings.discord, &mut absent_direct));
    problems.extend(rooms.chain(direct).map(|mismatch| located(&layers, &mismatch)));
    let absent = in_section("console", absent).chain(in_section("discord", absent_direct));
    let unknown: Vec<_> = absent.map(|mismatch| located(&layers, &mismatch)).collect();
    if !problems.is_empty() {
        problems.extend(unknown.into_iter().chain(roster.broken));
        return Err(Problems::sorted(problems));
    }
    notes.extend(take_zone_of_machine(&sources.environment, &mut settings));
    notes.extend(exposure::notes(&settings));
    notes.extend(settings.server.token_note());
    notes.extend(settings.models.notes());
    notes.extend(roster.persona_notes(&settings));
    notes.extend(roster.silence_notes());
    notes.extend(roster.name_notes(settings.names.common));
    let is_used = |name: &&ModelName| {
        let mut roles = roster.companions.values().flat_map(|companion| [&companion.model.main, &companion.model.side]);
        roles.any(|used| used == *name)
    };
    let unused = settings.models.named.keys().filter(|name| !is_used(name));
    notes.extend(unused.map(|name| {
        format!("models.{name}: no companion uses it; name it in a companion's file ([model] main = \"{name}\"), or remove it")
    }));
    let used = used_services(&settings.speech, &roster.companions);
    notes.extend(settings.speech.services.keys().filter(|name| !used.contains(name)).map(|name| {
        format!("speech.services.{name}: nothing uses it; name it in speech.recognition or speech.synthesis, or remove it")
    }));
    notes.extend(sources.environment.iter().filter_map(|(name, _)| misnamed(name)));
    notes.extend(quotation_notes(&sources.environment));
    let overruled = fields.iter().filter(|(_, field)| field.on_page);
    notes.extend(overruled.filter_map(|(key, field)| {
        field
            .place
            .as_ref()
            .map(|place| format!("{key}: the value that was set on the page is not used, because {place} sets it"))
    }));
    notes.extend(stray::settings_notes(&sources.folder, sources.profile.as_deref()));
    notes.extend(stray::companion_notes(roster.others.iter().map(PathBuf::as_path)));
    Ok(Loaded {
        settings,
        companions: roster.companions,
        companions_from: roster.origin,
        has_rooms,
        lore,
        left_out: roster.invalid,
        broken: roster.broken,
        skipped: roster.skipped,
        sources: titles,
        notes,
        unknown,
        kept,
        fields,
    })
}

/// The place where a file or a variable sets a key to another value than the built-in one. `None`: the built-in value applies.
fn place_of(key: &str, layers: &[Layer]) -> Option<String> {
    (value_of(key, layers) != value_of(key, &layers[..1])).then(|| place(&located(layers, &Mismatch::at(key, ""))))
}

/// Uses the time zone of the variable `TZ` if the settings have none. Returns a hint if the variable names no time zone.
fn take_zone_of_machine(environment: &[(String, String)], settings: &mut Settings) -> Option<String> {
    let (_, value) = environment.iter().find(|(name, value)| name == "TZ" && !value.is_empty())?;
    if settings.prompt.time_zone.is_some() {
        return None;
    }
    let value = value.trim_start_matches(':');
    settings.prompt.time_zone = match value.starts_with('/') {
        true => fs::read(value).ok().and_then(|contents| Zone::of_file(&contents)),
        false => Zone::parse(value),
    };
    settings.prompt.time_zone.is_none().then(|| {
        "TZ: it names no time zone that this machine knows, so companions are told the time in UTC; set prompt.time_zone"
            .to_owned()
    })
}

impl Settings {
    /// The built-in defaults, overridden by a replay script's `settings` (docs/design/replay.md R-1).
    ///
    /// # Errors
    /// Returns all keys in the script that are unknown, have the wrong type or are out of range. Their paths begin with
    /// `settings`.
    pub fn overlay(script: serde_json::Value) -> Result<Self, Problems> {
        if !script.is_object() {
            return Err(Problems(vec![Located { place: None, line: None, message: "settings is not a table".to_owned() }]));
        }
        let mut problems = Vec::new();
        let mut layers: Vec<_> = built_in(&mut problems).into_iter().chain([Layer::script("settings", script)]).collect();
        let settings = read_layers(&mut layers, Completeness::Complete, failed_checks, &mut Vec::new(), &mut problems);
        settings.filter(|_| problems.is_empty()).ok_or(Problems::sorted(problems))
    }

    /// The built-in defaults as a TOML table: every key that has a default.
    ///
    /// # Errors
    /// Returns an error if the built-in file is not TOML. Tests exclude that.
    pub fn defaults() -> Result<toml::Table, Problems> {
        DEFAULTS.parse().map_err(|error: toml::de::Error| Problems(vec![Located::at(BUILT_IN, error.message())]))
    }
}

/// Reports secrets in a settings file, because such files are copied and shown with less care than secrets need.
fn secrets(layer: &Layer) -> impl Iterator<Item = Located> {
    let keys_in =
        |section: &'static str, key: &'static str| layer.keys_in(section).map(move |name| format!("{section}.{name}.{key}"));
    let keys = keys_in("models", "api_key").chain(keys_in("speech.services", "api_key")).chain(keys_in("tools.servers", "token"));
    let secrets: Vec<_> = SECRETS.map(str::to_owned).into_iter().chain(keys).collect();
    let is_there = |path: &String| layer.is_file() && layer.value_path(&Path::of(path)).as_ref() == Some(&Path::of(path));
    secrets.into_iter().filter(is_there).map(|path| {
        let variable = path.to_uppercase().replace('.', "__");
        let message = format!(
            "is a secret and must not be in a settings file; set TERTULIA__{variable}, or set {path}_file to a file that contains only the secret"
        );
        located(std::slice::from_ref(layer), &Mismatch::at(&path, message))
    })
}

/// The layers in order. The first one is the built-in one.
fn layers(sources: &Sources, problems: &mut Vec<Located>) -> Vec<Layer> {
    let mut layers = Vec::from_iter(built_in(problems));
    let folder = &sources.folder;
    if sources.folder_was_named && !folder.is_dir() {
        problems
            .push(Located::at(folder.display().to_string(), "is not a folder; --config must name the folder of default.toml"));
    }
    let default = folder.join("default.toml");
    if is_there(&default) {
        layers.extend(read_layer(&default, problems));
    }
    match sources.profile.as_deref() {
        None | Some("" | "default") => {}
        Some(profile) if check_room_name(profile).is_err() => {
            let message = format!("profile {profile:?} is not a name of 1 to 64 letters, digits, _ or -");
            problems.push(Located { place: None, line: None, message });
        }
        Some(profile) => {
            let path = folder.join(format!("{profile}.toml"));
            if is_there(&path) {
                layers.extend(read_layer(&path, problems));
            } else {
                let message = format!(
                    "does not exist, but the profile {profile} is selected; create the file, or remove --profile or TERTULIA_PROFILE"
                );
                problems.push(Located::at(path.display().to_string(), message));
            }
        }
    }
    layers.push(Layer::environment(&sources.environment, problems));
    layers
}

/// A note about a variable that looks like a setting, but has one underscore where two are needed.
fn misnamed(name: &str) -> Option<String> {
    let is_plain = |rest: &&str| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !rest.starts_with('_');
    let rest = name.strip_prefix("TERTULIA_").filter(is_plain)?;
    let (mut table, mut key) = (&Settings::defaults().ok()?, rest);
    let mut meant = "TERTULIA".to_owned();
    while let Some((section, value)) = table.iter().find(|(section, value)| value.is_table() && begins_with(key, section)) {
        meant = format!("{meant}__{}", section.to_uppercase());
        key = key[section.len()..].trim_start_matches('_');
        let Some(inner) = value.as_table() else { break };
        table = inner;
    }
    if meant == "TERTULIA" {
        return None;
    }
    meant = format!("{meant}__{}", key.to_uppercase());
    let is_unknown = key.is_empty() || !is_known(&meant);
    let suggestion = if is_unknown { String::new() } else { format!("; did you mean {meant}?") };
    Some(format!("{name} is ignored: two underscores must follow TERTULIA and each name of a section{suggestion}"))
}

/// Whether a name begins with this name of a section and an underscore.
fn begins_with(name: &str, section: &str) -> bool {
    let is_prefix = name.get(..section.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(section));
    is_prefix && name[section.len()..].starts_with('_')
}

/// Whether this variable corresponds to a setting.
fn is_known(variable: &str) -> bool {
    let layers = [Layer::environment(&[(variable.to_owned(), "x".to_owned())], &mut Vec::new())];
    let read = merged(&layers).map(|tree| strict::read::<Settings>(&tree));
    !matches!(read, Ok(Err(Mismatch { kind: Kind::UnknownKey(..), .. })))
}

fn built_in(problems: &mut Vec<Located>) -> Option<Layer> {
    Layer::file(BUILT_IN, DEFAULTS).map_err(|problem| problems.push(problem)).ok()
}

fn read_layer(path: &FilePath, problems: &mut Vec<Located>) -> Option<Layer> {
    let name = path.display().to_string();
    let layer = read_text(path).map_err(|message| Located::at(&name, message)).and_then(|text| Layer::file(&name, &text));
    layer.map_err(|problem| problems.push(problem)).ok()
}

/// Whether a file of this name exists. Unreadable files and broken links count: the reader then reports why they cannot be read.
/// If they were skipped, the defaults would silently replace the operator's settings.
pub(super) fn is_there(path: &FilePath) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Reads a settings file. It must be a regular file, because opening a FIFO or a device can block forever.
pub(super) fn read_text(path: &FilePath) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // With this flag, opening a FIFO does not block. It has no effect on a regular file.
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_wait).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a regular file; put a file with the settings there".to_owned());
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(format!("has {} bytes, at most {MAX_FILE_BYTES} are allowed", metadata.len()));
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(unreadable)?;
    let text = String::from_utf8(text).map_err(|_| "is not UTF-8 text; save it as UTF-8".to_owned())?;
    // Some editors begin a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The speech services in use, by the names of their tables.
fn used_services<'a>(speech: &'a Speech, companions: &'a BTreeMap<CompanionId, Companion>) -> BTreeSet<&'a Arc<str>> {
    speech.used().chain(companions.values().filter_map(|companion| companion.voice.provider.as_ref())).collect()
}

/// The problems that sections report, with full paths.
fn failed_checks(settings: &Settings) -> Vec<Mismatch> {
    // A token that the server has generated counts.
    let mut settings = settings.clone();
    settings.server.keep_token_in(&settings.storage.path);
    settings.check().into_iter().flat_map(|(section, problem)| in_section(section, vec![problem])).collect()
}

/// The problem between sections, if there is one. It is reported at the key that the later layer sets. It does not apply to a
/// replay script, which has no model timeouts.
fn failed_cross_check(settings: &Settings, layers: &[Layer]) -> Option<Mismatch> {
    const MORE: &str = "turn_taking.state_timeout_secs";
    const LESS: &str = "models.side.timeout_secs";
    let (more, less) = (settings.turn_taking.state_timeout_secs, settings.models.side.timeout_secs);
    if more > less {
        return None;
    }
    let set_in = |path: &str| layers.iter().rposition(|layer| layer.value_path(&Path::of(path)).is_some());
    let (path, message) = if set_in(LESS) > set_in(MORE) {
        (LESS, format!("is {less}, must be less than {MORE}, which is {more}; lower this one or raise that one"))
    } else {
        (MORE, format!("is {more}, must be more than {LESS}, which is {less}; raise this one or lower that one"))
    };
    Some(Mismatch::at(path, format!("{message}: a round must not end before its answers can arrive")))
}

fn in_section(section: &str, problems: Vec<Problem>) -> impl Iterator<Item = Mismatch> {
    problems.into_iter().map(move |problem| Mismatch::at(&format!("{section}.{}", problem.key), problem.message))
}
