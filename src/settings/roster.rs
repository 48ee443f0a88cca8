//! The configured companions: one file or folder each, or the built-in ones.

pub mod files;
mod folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use unicode_normalization::UnicodeNormalization;

use super::Problem;
use super::Settings;
use super::companion::{Companion, CompanionFile, check_id, shortened};
use super::console::Console;
use super::discord::Discord;
use super::layer::{Completeness, Layer, located, read_layers};
use super::load::{is_there, read_text};
use super::mismatch::Mismatch;
use super::models::Models;
use super::problem::Located;
use super::prompt::Prompt;
use super::speech::Speech;
use crate::domain::id::CompanionId;
use crate::domain::model_role::ModelRole;
use crate::domain::names::{SharedName, is_everyday_word};
use crate::domain::policy::names::CommonNames;
use crate::domain::prompt::room::{decision_room, statement_room, tokens};
use crate::domain::service::Service;
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
    /// The companions with invalid files. They are listed so that they are not reported as missing, too.
    pub(super) invalid: Vec<CompanionId>,
    /// The errors in those files, and files that are not named like a companion.
    pub(super) broken: Vec<Located>,
    /// Folders that are named like a companion but contain neither `companion.toml` nor persona files.
    pub skipped: Vec<(CompanionId, PathBuf)>,
    /// All other entries of the folder.
    pub(super) others: Vec<PathBuf>,
}

/// Companions that replace the files of their ids: they are stored elsewhere, or are checked before they are written. `None`: the
/// files are ignored, as if there were no such companion.
pub type Overlay = BTreeMap<CompanionId, Option<InPlace>>;

/// A companion that replaces its files.
#[derive(Clone, Debug)]
pub struct InPlace {
    /// The place that error messages show.
    pub place: String,
    /// The content of its file, or the error of reading it.
    pub text: Result<String, String>,
}

/// The valid companions of the overlay, and the problems of the others.
pub fn in_place(overlay: &Overlay, settings: &Settings) -> (BTreeMap<CompanionId, Companion>, Vec<Located>) {
    let mut roster = Roster::empty(Origin::BuiltIn);
    roster.take_all(overlay, settings);
    (roster.companions, roster.broken)
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

/// A note about a persona that decisions do not show in full, or about a brief that is not needed.
fn persona_note(companion: &Companion, prompt: &Prompt, models: &Models) -> Option<String> {
    let room = decision_room(prompt).persona;
    let (id, persona) = (&companion.id, tokens(companion.persona.trim()));
    let has_side_model = models.served(ModelRole::Side, &companion.model.side).endpoint.is_some();
    let (source, advice) = match prompt.is_short() {
        true => ("prompt.decision = \"short\"".to_owned(), "write a brief, or shorten the persona"),
        false => (
            format!("prompt.decision_tokens = {}", prompt.decision_tokens),
            "write a brief, shorten the persona, or raise prompt.decision_tokens",
        ),
    };
    let shown = match &companion.brief {
        Some(_) if prompt.is_short() => return None,
        Some(_) if persona <= room => {
            return Some(format!(
                "companion {id}: its brief is not used, because its persona of about {persona} tokens fits into decisions \
                 ({room}); remove the brief"
            ));
        }
        None if persona <= room => return None,
        Some(brief) => format!("its brief of about {} tokens", tokens(brief.trim())),
        None if has_side_model => {
            format!("a brief that the side model makes, and its beginning until then; to choose what they show, {advice}")
        }
        None => format!("its beginning, because no side model is configured that could make a brief; {advice}"),
    };
    Some(format!(
        "companion {id}: its persona of about {persona} tokens does not fit into decisions ({room}, from {source}): statements show \
         all of it, decisions show {shown}"
    ))
}

/// A note about a companion whose silence ends before it has considered the newest messages (docs/design/gate.md G-38).
pub fn silence_note(companion: &Companion) -> Option<String> {
    let (silence, lull) = (companion.starts_after?, companion.text_lull_timeout);
    let note = format!(
        "companion {}: its starts_after of {silence} s is not longer than its text_lull_timeout of {lull} s: what was said is not considered \
         yet when the silence ends, so it begins again, and the companion starts a conversation later; make starts_after longer",
        companion.id
    );
    (silence <= lull).then_some(note)
}

/// A note about a name that is an everyday word (docs/design/gate.md G-6).
pub fn common_name_note(companion: &Companion, common: CommonNames) -> Option<String> {
    let word = Some(&companion.name).filter(|name| common == CommonNames::Vocative && is_everyday_word(name))?;
    Some(format!(
        "companion {}: {word} is an everyday word, so it counts as a name only where it calls somebody (\"@{word}\", \"{word}, are you there?\", \
         \"what do you think, {word}?\", \"hey {word}\"); add an alias that is no such word, choose another name, or set \
         names.common = \"anywhere\"",
        companion.id
    ))
}

/// A note about two companions that share a name.
fn shared_note(SharedName { name, first, second }: &SharedName) -> String {
    format!("the companions {first} and {second} share the name {name:?}, so they cannot be in one guild; rename one of them")
}

/// Checks a companion's file. Returns the invalid values by key: values that are out of range, and models and voices that the
/// settings do not have.
pub fn checked(file: CompanionFile, id: &CompanionId, settings: &Settings) -> Result<Companion, Vec<Problem>> {
    let Settings { companion_defaults, models, prompt, speech, .. } = settings;
    let choices = invalid_choices(&file, models, speech);
    let choices = choices.into_iter().map(|mismatch| Problem::new(mismatch.path.to_string(), mismatch.message_without_path()));
    let mut problems: Vec<_> = choices.collect();
    match Companion::from_file(file, Some(id.as_str()), companion_defaults) {
        Ok(companion) => {
            problems.extend(oversized(&companion, prompt));
            if problems.is_empty() { Ok(companion) } else { Err(problems) }
        }
        Err(found) => {
            problems.extend(found);
            Err(problems)
        }
    }
}

impl Roster {
    /// Reads the folder, or the built-in companions if it does not exist, and applies the overlay. Errors of the folder as a
    /// whole are added to `problems`.
    pub(super) fn read(folder: &FilePath, overlay: &Overlay, settings: &Settings, problems: &mut Vec<Located>) -> Self {
        let mut roster = Self::read_files(folder, overlay, settings, problems);
        roster.take_all(overlay, settings);
        roster
    }

    fn take_all(&mut self, overlay: &Overlay, settings: &Settings) {
        for (id, instead) in overlay {
            let Some(InPlace { place, text }) = instead.clone() else { continue };
            match check_id(id.as_str()) {
                Ok(()) => self.add_companion(id.as_str(), CardFiles { file: place, text, persona: None }, settings),
                Err(message) => self.broken.push(Located::at(place, message)),
            }
        }
    }

    fn read_files(folder: &FilePath, overlay: &Overlay, settings: &Settings, problems: &mut Vec<Located>) -> Self {
        if !is_there(folder) {
            let mut roster = Self::empty(Origin::BuiltIn);
            for (stem, text) in BUILT_IN.into_iter().filter(|(stem, _)| !overlay.contains_key(&CompanionId::from(*stem))) {
                let card = CardFiles { file: format!("built-in companion {stem}"), text: Ok(text.to_owned()), persona: None };
                roster.add_companion(stem, card, settings);
            }
            return roster;
        }
        let mut roster = Self::empty(Origin::Folder(folder.to_owned()));
        let (entries, others) = entries_in(folder, problems);
        roster.skipped.extend(others.iter().filter_map(|path| {
            let id = path.file_name()?.to_str().filter(|name| check_id(name).is_ok())?.into();
            path.is_dir().then(|| (id, path.clone()))
        }));
        roster.others = others;
        for path in entries {
            let name = path.display().to_string();
            let is_folder = path.is_dir();
            let stem = if is_folder { path.file_name() } else { path.file_stem() };
            let Some(stem) = stem.and_then(|stem| stem.to_str()).filter(|stem| check_id(stem).is_ok()) else {
                let ending = if is_folder { "" } else { ", then .toml" };
                let message = format!("is not named after an id; name it with 1 to 32 letters, digits, _ or -{ending}");
                roster.broken.push(Located::at(name.escape_debug().to_string(), message));
                continue;
            };
            if overlay.contains_key(&CompanionId::from(stem)) {
                continue;
            }
            // Entries are sorted, so a folder precedes the file of the same name.
            if roster.knows(&stem.into()) {
                let other = folder.join(stem).display().to_string();
                roster
                    .broken
                    .push(Located::at(name, format!("and the folder {other} are both the companion {stem}; remove one")));
                continue;
            }
            let card =
                if is_folder { folder::card(&path) } else { CardFiles { file: name, text: read_text(&path), persona: None } };
            roster.add_companion(stem, card, settings);
        }
        roster
    }

    const fn empty(origin: Origin) -> Self {
        Self {
            companions: BTreeMap::new(),
            origin,
            invalid: Vec::new(),
            broken: Vec::new(),
            skipped: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The notes of `tertulia check` about personas that decisions do not show in full, and about briefs that are not needed.
    pub(super) fn persona_notes(&self, settings: &Settings) -> Vec<String> {
        self.companions.values().filter_map(|companion| persona_note(companion, &settings.prompt, &settings.models)).collect()
    }

    /// The notes of `tertulia check` about names that companions share, which is an error within one guild, and about names that
    /// are everyday words.
    pub(super) fn name_notes(&self, common: CommonNames) -> impl Iterator<Item = String> {
        let words = self.companions.values().filter_map(move |companion| common_name_note(companion, common));
        shared_names(self.companions.values()).into_iter().map(|shared| shared_note(&shared)).chain(words)
    }

    /// The notes of `tertulia check` about companions whose silence ends before they have considered the newest messages
    /// (docs/design/gate.md G-38).
    pub(super) fn silence_notes(&self) -> impl Iterator<Item = String> {
        self.companions.values().filter_map(silence_note)
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

    /// The problems with the companions of the rooms, by keys of the section `console`. Unknown companions go to `unknown`.
    pub(super) fn check_rooms(&self, console: &Console, unknown: &mut Vec<Problem>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut guilds: BTreeMap<_, (usize, BTreeMap<_, _>)> = BTreeMap::new();
        for (index, room) in console.rooms.iter().enumerate() {
            let (_, present) = guilds.entry(&room.guild).or_insert_with(|| (index, BTreeMap::new()));
            for (position, id) in room.companions.iter().enumerate() {
                match self.companions.get(id) {
                    Some(companion) => drop(present.insert(id, companion)),
                    None if self.knows(id) => {}
                    None => unknown.push(Problem::new(format!("rooms[{index}].companions[{position}]"), self.unknown(id))),
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

    /// The problems with the companions for direct messages, by keys of the section `discord`. Unknown companions go to `unknown`.
    pub(super) fn check_direct_companions(&self, discord: &Discord, unknown: &mut Vec<Problem>) -> Vec<Problem> {
        let ids = discord.direct_companions.as_deref().unwrap_or_default();
        let mut problems = Vec::new();
        for (position, id) in ids.iter().enumerate().filter(|(_, id)| !self.knows(id)) {
            unknown.push(Problem::new(format!("direct_companions[{position}]"), self.unknown(id)));
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

    /// Adds a companion, unless its files have errors.
    fn add_companion(&mut self, stem: &str, card: CardFiles, settings: &Settings) {
        let id = CompanionId::from(stem);
        let mut problems = Vec::new();
        let CardFiles { file, text, persona } = card;
        let persona = persona.transpose().map_err(|found| problems.extend(found)).ok().flatten();
        let companion = text
            .map_err(|message| Located::at(&file, message))
            .and_then(|text| Layer::file(&file, &text))
            .map_err(|problem| problems.push(problem))
            .ok()
            .and_then(|layer| companion_in(layer, stem, persona, settings, &mut problems));
        match companion {
            Some(companion) if problems.is_empty() => drop(self.companions.insert(id, companion)),
            _ => self.invalid.push(id),
        }
        self.broken.extend(problems);
    }

    /// The first companions by id without a shared name, so that they can be in one guild.
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

/// The files of a companion.
struct CardFiles {
    /// The file with the companion's keys.
    file: String,
    /// The text of that file, or the error of reading it.
    text: Result<String, String>,
    /// The persona of its folder. `None`: the persona is a key of the file.
    persona: Option<Result<String, Vec<Located>>>,
}

fn companion_in(
    layer: Layer,
    stem: &str,
    persona: Option<String>,
    Settings { companion_defaults, models, prompt, speech, .. }: &Settings,
    problems: &mut Vec<Located>,
) -> Option<Companion> {
    let mut layers = [layer];
    let mut file: CompanionFile = read_layers(
        &mut layers,
        Completeness::Complete,
        |file| invalid_choices(file, models, speech),
        &mut Vec::new(),
        problems,
    )?;
    if let Some(persona) = persona {
        if file.persona.is_some() {
            let message = "is set, but the folder has persona files (*.md), too; remove one of the two";
            problems.push(located(&layers, &Mismatch::at("persona", message)));
        }
        file.persona = Some(persona.into());
    }
    Companion::from_file(file, Some(stem), companion_defaults)
        .and_then(|companion| {
            let found = oversized(&companion, prompt);
            if found.is_empty() { Ok(companion) } else { Err(found) }
        })
        .map_err(|found| {
            problems.extend(found.into_iter().map(|Problem { key, message, .. }| located(&layers, &Mismatch::at(&key, message))));
        })
        .ok()
}

/// The problems of a persona that does not fit into a statement's prompt, and of a brief that does not fit into a decision's.
fn oversized(companion: &Companion, prompt: &Prompt) -> Vec<Problem> {
    let texts = [
        ("persona", &*companion.persona, statement_room(prompt), ("statement", prompt.statement_tokens)),
        (
            "brief",
            companion.brief.as_deref().unwrap_or_default(),
            decision_room(prompt).brief,
            ("decision", prompt.decision_tokens),
        ),
    ];
    let oversized = texts.into_iter().filter(|(_, text, room, _)| tokens(text.trim()) > *room);
    let problem = oversized.map(|(key, text, room, (what, all))| {
        let tokens = tokens(text.trim());
        let message = format!(
            "has about {tokens} tokens, at most {room} fit into a {what}; shorten it, or raise prompt.{what}_tokens, which is {all}"
        );
        Problem::new(key, message)
    });
    problem.collect()
}

/// Finds references of a companion's file that the settings do not have: models, models whose timeouts exceed the role's
/// `timeout_secs`, and the provider of its voice.
fn invalid_choices(file: &CompanionFile, models: &Models, speech: &Speech) -> Vec<Mismatch> {
    let chosen = [ModelRole::Main, ModelRole::Side].into_iter().zip(file.model.iter().cycle());
    let models = chosen.filter_map(|(role, choice)| {
        Some(Mismatch::at(&format!("model.{}", role.as_str()), models.problem_of(role, choice.of(role))?))
    });
    let provider = file.voice.as_ref().and_then(|voice| voice.provider.as_deref());
    let provider = provider.and_then(|name| speech.problem_of_service(Service::SpeechSynthesis, name));
    models.chain(provider.map(|message| Mismatch::at("voice.provider", message))).collect()
}

/// Lists a folder: the TOML files and the companions' folders, sorted by name, and all other entries. Hidden entries are ignored.
fn entries_in(folder: &FilePath, problems: &mut Vec<Located>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let is_companion = |path: &PathBuf| {
        let is_file = path.extension().is_some_and(|extension| extension == "toml");
        is_file || folder::is_companion(path)
    };
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>());
    let entries = entries.unwrap_or_else(|error| {
        problems.push(Located::at(folder.display().to_string(), format!("cannot be read: {error}")));
        Vec::new()
    });
    let visible = entries.into_iter().filter(|path| !folder::is_hidden(path));
    let (mut files, others): (Vec<_>, Vec<_>) = visible.partition(is_companion);
    files.sort();
    if files.len() > MAX_COMPANIONS {
        let message = format!("contains {} companions, at most {MAX_COMPANIONS} are allowed", files.len());
        problems.push(Located::at(folder.display().to_string(), message));
        files.truncate(MAX_COMPANIONS);
    }
    (files, others)
}

/// Normalizes a name: names that differ only in case, in composition of characters or in invisible characters are equal.
fn folded(name: &str) -> String {
    name.nfkc().filter(|c| !is_invisible(*c) && !is_joining(*c)).collect::<String>().to_lowercase()
}
