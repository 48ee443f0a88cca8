//! The configured companions: one file each, or the built-in ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use unicode_normalization::UnicodeNormalization;

use super::companion::{Companion, CompanionDefaults, CompanionFile, check_id, shortened};
use super::console::Console;
use super::discord::Discord;
use super::layer::{Completeness, Layer, located, read_layers};
use super::load::{is_there, read_text};
use super::mismatch::{Kind, Mismatch, Path};
use super::models::Models;
use super::problem::{Located, Problem};
use crate::domain::id::{CompanionId, ModelName};
use crate::domain::model_role::ModelRole;
use crate::domain::text::{is_invisible, is_joining};

/// The built-in companions, by the stems of their files.
const BUILT_IN: [(&str, &str); 3] = [
    ("aria", include_str!("../../config/companions/aria.toml")),
    ("bruno", include_str!("../../config/companions/bruno.toml")),
    ("cleo", include_str!("../../config/companions/cleo.toml")),
];
/// The maximum number of companions in a folder.
const MAX_COMPANIONS: usize = 10_000;

/// The source of companions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The built-in companions.
    BuiltIn,
    /// This folder. It replaces the built-in companions.
    Folder(PathBuf),
}

/// The configured companions.
#[derive(Clone, Debug)]
pub struct Roster {
    /// The valid companions, by id.
    pub companions: BTreeMap<CompanionId, Companion>,
    /// Where they were read from.
    pub origin: Origin,
    /// The companions with invalid files. They are kept here so that they are not reported as missing too.
    invalid: Vec<CompanionId>,
}

/// A name that two companions share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The name as the second companion writes it.
    pub name: String,
    /// The companion with the smaller id.
    pub first: CompanionId,
    /// The companion with the larger id.
    pub second: CompanionId,
}

/// The names that any two of these companions share, ignoring case. Within one guild that is an error (docs/design/gate.md G-6).
pub fn shared_names<'a>(companions: impl IntoIterator<Item = &'a Companion>) -> Vec<SharedName> {
    let sorted: BTreeMap<_, _> = companions.into_iter().map(|companion| (&companion.id, companion)).collect();
    let mut owners: BTreeMap<String, &CompanionId> = BTreeMap::new();
    let mut shared = Vec::new();
    for (id, companion) in sorted {
        for name in companion.names() {
            match owners.get(&folded(name)) {
                Some(first) if *first != id => {
                    shared.push(SharedName { name: name.to_owned(), first: (*first).clone(), second: id.clone() });
                }
                Some(_) => {}
                None => drop(owners.insert(folded(name), id)),
            }
        }
    }
    shared.dedup_by(|a, b| folded(&a.name) == folded(&b.name) && a.second == b.second);
    shared
}

impl Roster {
    /// Reads the folder, or the built-in companions if it does not exist.
    pub(super) fn read(folder: &FilePath, defaults: &CompanionDefaults, models: &Models, problems: &mut Vec<Located>) -> Self {
        if !is_there(folder) {
            let mut roster = Self { companions: BTreeMap::new(), origin: Origin::BuiltIn, invalid: Vec::new() };
            for (stem, text) in BUILT_IN {
                roster.take(stem, &format!("built-in companion {stem}"), Ok(text.to_owned()), (defaults, models), problems);
            }
            return roster;
        }
        let mut roster = Self { companions: BTreeMap::new(), origin: Origin::Folder(folder.to_owned()), invalid: Vec::new() };
        for path in files_in(folder, problems) {
            let name = path.display().to_string();
            match path.file_stem().and_then(|stem| stem.to_str()) {
                Some(stem) if check_id(stem).is_ok() => roster.take(stem, &name, read_text(&path), (defaults, models), problems),
                _ => problems.push(Located::at(
                    name.escape_debug().to_string(),
                    "is not named after an id; name it with 1 to 32 letters, digits, _ or -, then .toml",
                )),
            }
        }
        roster
    }

    /// Fills the default rooms with existing companions, if a default room names companions that do not exist.
    pub(super) fn fill(&self, console: &mut Console, notes: &mut Vec<String>) {
        for room in &mut console.rooms {
            if room.companions.iter().all(|id| self.knows(id)) {
                continue;
            }
            room.companions = self.without_shared_names(BUILT_IN.len());
            let ids: Vec<_> = room.companions.iter().map(CompanionId::as_str).collect();
            notes.push(match &ids[..] {
                [] => format!("room {}: nobody is in it, because there are no companions", room.id),
                [only] => format!("room {}: {only} is in it; set console.rooms to choose", room.id),
                [most @ .., last] => {
                    format!("room {}: {} and {last} are in it; set console.rooms to choose", room.id, most.join(", "))
                }
            });
        }
    }

    /// The problems with the companions of the rooms, by keys of the section `console`.
    pub(super) fn check_rooms(&self, console: &Console) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut guilds: BTreeMap<_, (usize, BTreeMap<_, _>)> = BTreeMap::new();
        for (index, room) in console.rooms.iter().enumerate() {
            let (_, present) = guilds.entry(&room.guild).or_insert_with(|| (index, BTreeMap::new()));
            for (position, id) in room.companions.iter().enumerate() {
                match self.companions.get(id) {
                    Some(companion) => drop(present.insert(id, companion)),
                    None if self.knows(id) => {}
                    None => problems.push(Problem::new(format!("rooms[{index}].companions[{position}]"), self.unknown(id))),
                }
            }
        }
        for (guild, (index, present)) in guilds {
            for SharedName { name, first, second } in shared_names(present.into_values()) {
                problems.push(Problem::new(
                    format!("rooms[{index}].companions"),
                    format!(
                        "brings {first} and {second} into guild {guild}, and both answer to {name:?}; rename one or keep them in \
                         different guilds"
                    ),
                ));
            }
        }
        problems
    }

    /// The problems with the companions for direct messages, by keys of the section `discord`.
    pub(super) fn check_direct_companions(&self, discord: &Discord) -> Vec<Problem> {
        let ids = discord.direct_companions.as_deref().unwrap_or_default();
        let mut problems = Vec::new();
        for (position, id) in ids.iter().enumerate().filter(|(_, id)| !self.knows(id)) {
            problems.push(Problem::new(format!("direct_companions[{position}]"), self.unknown(id)));
        }
        for SharedName { name, first, second } in shared_names(ids.iter().filter_map(|id| self.companions.get(id))) {
            let message = format!("names {first} and {second}, and both answer to {name:?}; rename one or remove it");
            problems.push(Problem::new("direct_companions", message));
        }
        problems
    }

    fn unknown(&self, id: &CompanionId) -> String {
        format!("= {:?} is not a companion; the companions are: {}", shortened(id.as_str()), self.listed())
    }

    fn take(
        &mut self,
        stem: &str,
        name: &str,
        text: Result<String, String>,
        settings: (&CompanionDefaults, &Models),
        problems: &mut Vec<Located>,
    ) {
        let id = CompanionId::from(stem);
        let problems_before = problems.len();
        let companion = text
            .map_err(|message| Located::at(name, message))
            .and_then(|text| Layer::file(name, &text))
            .map_err(|problem| problems.push(problem))
            .ok()
            .and_then(|layer| companion_in(layer, stem, settings, problems));
        match companion {
            Some(companion) if problems.len() == problems_before => drop(self.companions.insert(id, companion)),
            _ => self.invalid.push(id),
        }
    }

    /// The first companions by id that share no name, so that they can be in one guild.
    fn without_shared_names(&self, most: usize) -> Vec<CompanionId> {
        let mut chosen: Vec<&Companion> = Vec::new();
        for companion in self.companions.values() {
            if chosen.len() < most && shared_names(chosen.iter().copied().chain([companion])).is_empty() {
                chosen.push(companion);
            }
        }
        chosen.into_iter().map(|companion| companion.id.clone()).collect()
    }

    fn knows(&self, id: &CompanionId) -> bool {
        self.companions.contains_key(id) || self.invalid.contains(id)
    }

    fn listed(&self) -> String {
        let ids: Vec<_> = self.companions.keys().map(CompanionId::as_str).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    }
}

fn companion_in(
    layer: Layer,
    stem: &str,
    (defaults, models): (&CompanionDefaults, &Models),
    problems: &mut Vec<Located>,
) -> Option<Companion> {
    let mut layers = [layer];
    let file: CompanionFile = read_layers(&mut layers, Completeness::Complete, |file| invalid_models(file, models), problems)?;
    Companion::from_file(file, Some(stem), defaults)
        .map_err(|found| {
            problems.extend(found.into_iter().map(|Problem { key, message }| {
                located(&layers, &Mismatch { path: Path::of(&key), kind: Kind::Other(message) })
            }));
        })
        .ok()
}

/// The models in a companion's file that do not exist, or whose timeouts exceed the role's `timeout_secs`.
fn invalid_models(file: &CompanionFile, models: &Models) -> Vec<Mismatch> {
    let Some(choice) = &file.model else { return Vec::new() };
    let chosen = [ModelRole::Main, ModelRole::Side].map(|role| (role, choice.of(role)));
    let problem = |(role, name): (ModelRole, &ModelName)| {
        let message = models.problem_of(role, name)?;
        Some(Mismatch { path: Path::of(&format!("model.{}", role.as_str())), kind: Kind::Other(message) })
    };
    chosen.into_iter().filter_map(problem).collect()
}

/// The TOML files of a folder, sorted by name. Hidden files are ignored.
fn files_in(folder: &FilePath, problems: &mut Vec<Located>) -> Vec<PathBuf> {
    let is_companion = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && path.extension().is_some_and(|extension| extension == "toml")
    };
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let mut files: Vec<_> = match entries {
        Ok(paths) => paths.into_iter().filter(is_companion).collect(),
        Err(error) => {
            problems.push(Located::at(folder.display().to_string(), format!("cannot be read: {error}")));
            Vec::new()
        }
    };
    files.sort();
    if files.len() > MAX_COMPANIONS {
        let message = format!("contains {} companions, at most {MAX_COMPANIONS} are allowed", files.len());
        problems.push(Located::at(folder.display().to_string(), message));
        files.truncate(MAX_COMPANIONS);
    }
    files
}

/// Normalizes a name: names that differ only in case, in composition of characters or in invisible characters are equal.
fn folded(name: &str) -> String {
    name.nfkc().filter(|c| !is_invisible(*c) && !is_joining(*c)).collect::<String>().to_lowercase()
}
