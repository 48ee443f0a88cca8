//! Previews an import: the parts of a card that a companion gets, those it does not get, and why, before a stranger's text
//! becomes a persona.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::card::{Card, Form, OURS, READ_KEYS, TALKATIVENESS, proper_name};
use super::lorebook::{Lost, Read};
use super::persona::{Choices, PartUse, Persona, persona};
use super::picture::{self, NotAPicture, Picture};
use super::salvage::{Salvage, SalvageKind};
use crate::domain::card_macros::{Found, People, User, cleaned, expanded};
use crate::domain::lore::Unusable;
use crate::domain::lore::matching::Compiled;
use crate::domain::named::named;
use crate::domain::policy::interjection::Interjection;
use crate::domain::text;
use crate::settings::companion::{CompanionFile, MAX_ABOUT_CHARS, MAX_ALIASES, MAX_GREETING_BYTES, MAX_GREETINGS};

/// The maximum number of key names in a preview, and their maximum length.
const MAX_NAMES: usize = 16;
const MAX_NAME_CHARS: usize = 40;

/// The parts of a card that a companion gets, and those that it does not get.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Preview {
    pub form: Form,
    /// Empty if the card has none. Then a person must choose one.
    pub name: String,
    pub aliases: Vec<String>,
    pub persona: String,
    /// How much of each part of the card the persona includes.
    pub parts: Vec<PartUse>,
    pub tone: Option<String>,
    /// One sentence about it that everybody sees. No prompt contains it.
    pub about: Option<String>,
    pub chattiness: Option<String>,
    pub interjection: Option<Interjection>,
    /// Instructions of the card's author to the model. The persona includes them only if a person chose so.
    pub system_prompt: Option<String>,
    pub post_history_instructions: Option<String>,
    /// Notes for people who choose a card. No prompt contains them.
    pub creator_notes: Option<String>,
    /// The possible greetings in a room.
    pub greetings: Vec<Greeting>,
    pub picture: PictureUse,
    /// The lorebook, which the companion then knows.
    pub lore: Option<LoreUse>,
    pub unused: Vec<Unused>,
    pub salvaged: Vec<Salvage>,
}

named! {
    /// The field of the card that contains the greeting.
    #[derive(JsonSchema)]
    pub enum GreetingKind {
        First = "first_mes",
        Alternate = "alternate_greetings",
        /// For rooms with several companions.
        GroupOnly = "group_only_greetings",
    }
}

/// A greeting with its macros expanded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Greeting {
    pub kind: GreetingKind,
    pub text: String,
}

/// The use of a lorebook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoreUse {
    /// The number of entries, and of those that always count.
    pub entries: usize,
    pub constant: usize,
    /// Entries and keys that are not used.
    pub unusable: Vec<Unusable>,
    /// What is not taken over, with the number of entries.
    pub lost: BTreeMap<Lost, usize>,
}

/// The use of the PNG around a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum PictureUse {
    /// The card is a JSON file.
    None,
    Used {
        picture: Picture,
    },
    NotUsed {
        why: NotAPicture,
    },
}

named! {
    /// The parts of a card that a companion does not get.
    #[derive(JsonSchema)]
    pub enum UnusedKind {
        CreatorNotes = "creator_notes",
        /// Assets such as pictures and sounds, apart from the card's own picture.
        Assets = "assets",
        /// Tags, author and version.
        AboutTheCard = "about_the_card",
        Extensions = "extensions",
        OtherFields = "other_fields",
        Greetings = "greetings",
        Macros = "macros",
        Comments = "comments",
        HiddenCharacters = "hidden_characters",
    }
}

named! {
    /// The reason why a part is not used.
    #[derive(JsonSchema)]
    pub enum Reason {
        /// It is for people, not for models.
        ForPeople = "for_people",
        /// Addresses in a card are never fetched.
        NeverFetched = "never_fetched",
        /// A companion has only one picture.
        OnePicture = "one_picture",
        /// It is in the PNG beside the card, and is discarded.
        NotKept = "not_kept",
        /// It is for the program that wrote it, and is kept for an export only.
        OtherPrograms = "other_programs",
        TooMany = "too_many",
        TooLong = "too_long",
        /// Only the program of the card's author knows the value.
        NoValue = "no_value",
        /// A random choice was replaced by its first choice.
        FirstChoice = "first_choice",
        /// The characters are invisible.
        Hidden = "hidden",
    }
}

/// An unused part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unused {
    pub what: UnusedKind,
    pub why: Reason,
    pub count: usize,
    /// The names of keys or macros, each in one line. Long lists are truncated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A preview of [`draft`] for this card with these choices.
pub fn preview(card: &Card, choices: &Choices) -> Preview {
    let mut found = Found::default();
    let Made { file, persona: Persona { text: persona, parts }, offered, left_out } = made(card, choices, &mut found);
    let name = file.name.as_deref().unwrap_or_default();
    let [user, _] = users(card);
    let mut shown = |text: &str| {
        let people = People { character: called(name), user };
        Some(expanded(text, people, &mut found)).filter(|text| !text.is_empty())
    };
    let (system_prompt, post_history_instructions) = (shown(&card.system_prompt), shown(&card.post_history_instructions));
    let creator_notes = Some(cleaned(text::first_bytes(&card.creator_notes, MAX_GREETING_BYTES), &mut Found::default()));
    let mut salvaged = card.salvages.clone();
    (0..found.hidden).for_each(|_| salvaged.file(SalvageKind::HiddenCharacters));
    Preview {
        form: card.form,
        name: name.to_owned(),
        aliases: file.aliases.iter().flatten().map(ToString::to_string).collect(),
        persona,
        parts,
        tone: file.tone.as_deref().map(str::to_owned),
        about: file.about.as_deref().map(str::to_owned),
        chattiness: file.chattiness.as_deref().map(str::to_owned),
        interjection: file.interjection,
        system_prompt,
        post_history_instructions,
        creator_notes: creator_notes.filter(|notes| !notes.is_empty()),
        greetings: offered.into_iter().map(|offered| offered.greeting).collect(),
        picture: match card.picture.as_deref().map(picture::check) {
            None => PictureUse::None,
            Some(Ok(picture)) => PictureUse::Used { picture },
            Some(Err(why)) => PictureUse::NotUsed { why },
        },
        lore: card.book.as_ref().map(lore_use),
        unused: unused(card, left_out, &found),
        salvaged: salvaged.list(),
    }
}

fn lore_use(read: &Read) -> LoreUse {
    let Compiled { mut unusable, .. } = Compiled::new(read.book.clone());
    unusable.truncate(MAX_NAMES);
    let entries = &read.book.entries;
    LoreUse {
        entries: entries.len(),
        constant: entries.iter().filter(|entry| entry.constant).count(),
        unusable,
        lost: read.lost.clone(),
    }
}

/// The companion for a card. Values that the card does not have keep their defaults. A card without a name gives a companion
/// without a name.
pub fn draft(card: &Card, choices: &Choices) -> CompanionFile {
    made(card, choices, &mut Found::default()).file
}

/// A draft, and the details for its preview.
struct Made<'a> {
    file: CompanionFile,
    persona: Persona,
    offered: Vec<Offered<'a>>,
    /// The numbers of greetings over the count limit and over the length limit.
    left_out: [usize; 2],
}

fn made<'a>(card: &'a Card, choices: &Choices, found: &mut Found) -> Made<'a> {
    let name = choices.name.as_deref().map(proper_name).filter(|name| !name.is_empty()).unwrap_or_else(|| card.shown_name());
    let [user, user_in_greeting] = users(card);
    let persona = persona(card, called(&name), user, choices, found);
    let mut known = BTreeSet::from([name.clone()]);
    let others = std::iter::once(proper_name(&card.name)).chain(card.traits.aliases.iter().cloned());
    let aliases = others.filter(|alias| !alias.is_empty() && known.insert(alias.clone())).take(MAX_ALIASES);
    let mut words = |text: &Option<String>| -> Option<Arc<str>> {
        let text = text.as_deref().map(|text| cleaned(text, found))?;
        (!text.is_empty()).then(|| text.into())
    };
    let (chattiness, tone) = (words(&card.traits.chattiness), words(&card.traits.tone));
    let about = words(&card.traits.about).map(|about| text::one_line(&about, MAX_ABOUT_CHARS - 1).into());
    let (offered, left_out) = greetings(card, called(&name), user_in_greeting, found);
    let file = CompanionFile {
        greetings: Some(offered.iter().map(|offered| offered.greeting.text.as_str().into()).collect()),
        aliases: Some(aliases.map(Into::into).collect()),
        persona: Some(persona.text.as_str().into()),
        chattiness,
        tone,
        about,
        interjection: card.traits.interjection,
        name: (!name.is_empty()).then(|| name.into()),
        ..CompanionFile::default()
    };
    Made { file, persona, offered, left_out }
}

/// The words for the user in a persona and in a greeting, in the language of the card.
pub(super) fn users(card: &Card) -> [User; 2] {
    User::of(&[&card.description, &card.personality, &card.scenario, &card.first_mes])
}

/// The character's name in its own texts.
pub(super) fn called(name: &str) -> &str {
    if name.is_empty() { "the character" } else { name }
}

/// A greeting that a companion can have.
pub(super) struct Offered<'a> {
    pub(super) greeting: Greeting,
    /// The original text, with macros.
    pub(super) written: &'a str,
}

/// The greetings, and how many exceed the count limit and the length limit.
pub(super) fn greetings<'a>(card: &'a Card, name: &str, user: User, found: &mut Found) -> (Vec<Offered<'a>>, [usize; 2]) {
    let people = People { character: name, user };
    let first = std::iter::once((GreetingKind::First, &card.first_mes));
    let others = card.alternate_greetings.iter().map(|text| (GreetingKind::Alternate, text));
    let group = card.group_only_greetings.iter().map(|text| (GreetingKind::GroupOnly, text));
    let all: Vec<_> = first.chain(others).chain(group).filter(|(_, text)| !text.trim().is_empty()).collect();
    let mut too_long = 0;
    let offered = all.iter().take(MAX_GREETINGS).map(|&(kind, written)| {
        let mut text = expanded(written, people, found);
        if text.len() > MAX_GREETING_BYTES {
            too_long += 1;
            text = [text::first_bytes(&text, MAX_GREETING_BYTES - 3), "…"].concat();
        }
        Offered { greeting: Greeting { kind, text }, written }
    });
    let offered = offered.filter(|offered| !offered.greeting.text.is_empty()).collect();
    (offered, [all.len().saturating_sub(MAX_GREETINGS), too_long])
}

fn unused(card: &Card, [too_many, too_long]: [usize; 2], found: &Found) -> Vec<Unused> {
    let empty = Map::new();
    let top = card.original.as_object().unwrap_or(&empty);
    let data = top.get("data").and_then(Value::as_object);
    let extensions = data.unwrap_or(top).get("extensions").and_then(Value::as_object);
    let is_used = |key: &str| key == OURS || key == TALKATIVENESS && card.traits.interjection.is_some();
    let extensions = extensions.into_iter().flat_map(Map::keys).filter(|key| !is_used(key));
    let is_other =
        |key: &&String| !READ_KEYS.contains(&key.as_str()) && !["spec", "spec_version", "data", "assets"].contains(&key.as_str());
    let others = data.into_iter().chain([top]).flat_map(Map::keys).filter(is_other);
    let assets = data.unwrap_or(top).get("assets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let address = |asset: &Value| asset.get("uri").and_then(Value::as_str).unwrap_or_default().trim().to_ascii_lowercase();
    // `ccdefault:` is the PNG itself.
    let assets: Vec<String> = assets.iter().map(address).filter(|uri| !uri.starts_with("ccdefault:")).collect();
    let remote = assets.iter().filter(|uri| uri.contains("://") && !uri.starts_with("embeded:")).count();
    let about = [!card.tags.is_empty(), !card.creator.is_empty(), !card.character_version.is_empty()];

    let counted = |what, why, count: usize| Unused { what, why, count, names: Vec::new() };
    let mut all = vec![
        counted(UnusedKind::CreatorNotes, Reason::ForPeople, usize::from(!card.creator_notes.trim().is_empty())),
        counted(UnusedKind::Assets, Reason::NeverFetched, remote),
        counted(UnusedKind::Assets, Reason::OnePicture, assets.len() - remote),
        counted(UnusedKind::Assets, Reason::NotKept, card.embedded_assets),
        counted(UnusedKind::AboutTheCard, Reason::ForPeople, about.into_iter().filter(|is_there| *is_there).count()),
        with_names(UnusedKind::Extensions, Reason::OtherPrograms, extensions),
        with_names(UnusedKind::OtherFields, Reason::OtherPrograms, others),
        counted(UnusedKind::Greetings, Reason::TooMany, too_many),
        counted(UnusedKind::Greetings, Reason::TooLong, too_long),
        with_names(UnusedKind::Macros, Reason::NoValue, found.unknown.iter()),
        counted(UnusedKind::Macros, Reason::FirstChoice, found.chances),
        counted(UnusedKind::Comments, Reason::ForPeople, found.comments),
        counted(UnusedKind::HiddenCharacters, Reason::Hidden, found.hidden),
    ];
    all.retain(|unused| unused.count > 0);
    all
}

fn with_names<'a>(what: UnusedKind, why: Reason, names: impl Iterator<Item = &'a String>) -> Unused {
    let names: BTreeSet<&String> = names.collect();
    let told = names.iter().take(MAX_NAMES).map(|name| text::one_line(name, MAX_NAME_CHARS));
    Unused { what, why, count: names.len(), names: told.collect() }
}
