//! Composes a persona from the texts of a card. If they are too long, the examples are dropped first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::card::Card;
use crate::domain::card_macros::{Found, People, User, dialogues, expanded};
use crate::domain::named::named;
use crate::domain::text;
use crate::settings::companion::MAX_PERSONA_BYTES;

/// The separator between two dialogues.
const BETWEEN: &str = "\n---\n";
/// The separator between two parts.
const GAP: &str = "\n\n";
const CUT: &str = "…";

/// A person's choices for the import of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    /// A name to use instead of the card's.
    pub name: Option<String>,
    /// Whether the persona includes the card's system prompt.
    pub system_prompt: bool,
    /// Whether the persona includes the card's instructions for after the conversation.
    pub post_history_instructions: bool,
}

named! {
    /// The parts of a persona, in order.
    #[derive(JsonSchema)]
    pub enum Part {
        Description = "description",
        Personality = "personality",
        Scenario = "scenario",
        Examples = "mes_example",
        SystemPrompt = "system_prompt",
        PostHistoryInstructions = "post_history_instructions",
    }
}

/// How much of a part the persona includes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartUse {
    pub part: Part,
    /// The length of the part, in bytes.
    pub bytes: usize,
    /// The length of the included text, in bytes. It is less than `bytes`, or 0, if the persona would be too long.
    pub used: usize,
}

pub(super) struct Persona {
    pub(super) text: String,
    pub(super) parts: Vec<PartUse>,
}

/// A part with its heading.
struct Section {
    part: Part,
    heading: String,
    text: String,
    bytes: usize,
}

impl Section {
    fn new(part: Part, heading: String, text: String) -> Self {
        Self { part, heading, bytes: text.len(), text }
    }

    /// The number of bytes in the persona, with heading and separator.
    fn cost(&self) -> usize {
        if self.text.is_empty() { 0 } else { self.heading.len() + self.text.len() + GAP.len() }
    }

    /// Shortens the text by `over` bytes, as far as possible, at the end of a word. Returns the number of bytes that are still
    /// too many.
    fn shorten(&mut self, over: usize) -> usize {
        let before = self.cost();
        let room = self.text.len().saturating_sub(over + CUT.len());
        let begin = text::first_bytes(&self.text, room);
        let begin = begin.rfind(char::is_whitespace).map_or(begin, |end| &begin[..end]).trim_end();
        self.text = if begin.is_empty() { String::new() } else { [begin, CUT].concat() };
        over.saturating_sub(before - self.cost())
    }
}

pub(super) fn persona(card: &Card, name: &str, user: User, choices: &Choices, found: &mut Found) -> Persona {
    let people = People { character: name, user };
    let mut section = |part, heading: String, text: &str, is_chosen: bool| {
        let text = if is_chosen { expanded(text, people, found) } else { String::new() };
        Section::new(part, heading, text)
    };
    let mut sections = [
        section(Part::Description, String::new(), &card.description, true),
        section(Part::Personality, "Personality: ".to_owned(), &card.personality, true),
        section(Part::Scenario, "Scenario: ".to_owned(), &card.scenario, true),
        section(Part::SystemPrompt, String::new(), &card.system_prompt, choices.system_prompt),
        section(Part::PostHistoryInstructions, String::new(), &card.post_history_instructions, choices.post_history_instructions),
    ];
    let examples: Vec<String> =
        dialogues(&card.mes_example).into_iter().map(|dialogue| expanded(dialogue, people, found)).collect();
    let examples: Vec<&str> = examples.iter().map(|example| &**example).filter(|example| !example.is_empty()).collect();

    let mut over = sections.iter().map(Section::cost).sum::<usize>().saturating_sub(MAX_PERSONA_BYTES);
    for part in [2, 1, 4, 3, 0] {
        if over > 0 {
            over = sections[part].shorten(over);
        }
    }
    let heading = format!("How {name} talks, for example:\n");
    let room = MAX_PERSONA_BYTES.saturating_sub(sections.iter().map(Section::cost).sum::<usize>() + heading.len() + GAP.len());
    let mut taken = Section::new(Part::Examples, heading, fitting(&examples, room));
    taken.bytes = examples.join(BETWEEN).len();

    let [description, personality, scenario, system_prompt, post_history_instructions] = sections;
    let sections = [description, personality, scenario, taken, system_prompt, post_history_instructions];
    let parts = sections.iter().filter(|section| section.bytes > 0);
    let parts = parts.map(|section| PartUse { part: section.part, bytes: section.bytes, used: section.text.len() }).collect();
    let texts: Vec<String> =
        sections.iter().filter(|section| !section.text.is_empty()).map(|s| s.heading.clone() + &s.text).collect();
    Persona { text: texts.join(GAP), parts }
}

/// As many dialogues as fit, from the first on.
fn fitting(examples: &[&str], room: usize) -> String {
    let mut taken = String::new();
    for example in examples {
        let between = if taken.is_empty() { "" } else { BETWEEN };
        if taken.len() + between.len() + example.len() > room {
            break;
        }
        taken.push_str(between);
        taken.push_str(example);
    }
    taken
}
