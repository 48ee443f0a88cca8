//! Decides how much of a companion's persona its prompts show: statements all of it, decisions all of it or its brief.

use std::borrow::Cow;

use super::data::{beginning, weight};
use super::frame::{FRAME_WEIGHT, HOW_TO_READ, block, paragraphs, sizes};
use super::{Character, Prompt, decision_form, statement_form, tokens, vote_form};
use crate::domain::trigger::Trigger;
use crate::settings::prompt::Prompt as Words;

/// The weight of the longest name, twice that of its 64 characters.
const NAME_WEIGHT: usize = 128;
/// The most that the context of a trigger weighs (`frame::context`).
const MAX_CONTEXT_WEIGHT: usize = 800;

/// The longest persona that is shown in full, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonaRoom {
    /// In decisions: half of what the rest of the prompt leaves. A longer persona is replaced by its brief.
    pub decision: usize,
    /// In statements: four fifths of what the rest of the prompt leaves.
    pub statement: usize,
}

/// The room for personas. It depends on the settings alone, so a companion is shown in the same way in all its decisions.
pub fn persona_room(words: &Words) -> PersonaRoom {
    let longest = |texts: &[&str]| texts.iter().map(|text| weight(text)).max().unwrap_or_default();
    let tones = ["very_quiet", "quiet", "average", "eager", "very_eager"].map(|tier| words.tone.of(tier));
    let frame = weight("You are .") + 2 * NAME_WEIGHT + longest(&tones) + weight(HOW_TO_READ) + FRAME_WEIGHT;
    let contexts = longest(&[&words.direct_address, &words.interjection, &words.turn]) + NAME_WEIGHT;
    let frame = frame + contexts.min(MAX_CONTEXT_WEIGHT);
    let questions = longest(&Trigger::ALL.map(|trigger| words.question_for(trigger)));
    let decision = questions + longest(&[&decision_form("", words), &vote_form("", words)]);
    let manners = longest(&Trigger::ALL.map(|trigger| words.manner_for(trigger)));
    let statement = manners + weight(&statement_form(""));
    PersonaRoom {
        decision: (words.decision_tokens * 4).saturating_sub(frame + decision) / 8,
        statement: (words.statement_tokens * 4).saturating_sub(frame + statement) / 5,
    }
}

/// What a prompt shows of a companion.
pub(super) struct Card<'a> {
    /// The name of the part in [`Prompt::sizes`].
    pub(super) part: &'static str,
    /// The persona, its brief or its beginning.
    pub(super) text: Cow<'a, str>,
    /// The sentence of the interjection level.
    pub(super) tier: &'a str,
    /// How the companion speaks up; empty for decisions.
    pub(super) tone: &'a str,
}

/// For a decision: the whole persona if it fits, else its brief, else its beginning.
pub(super) fn for_decision<'a>(character: &Character<'a>, words: &'a Words) -> Card<'a> {
    let room = persona_room(words).decision;
    let persona = character.persona.trim();
    let (part, text) = match character.brief.map(str::trim) {
        Some(brief) if tokens(persona) > room => ("brief", brief),
        _ => ("persona", persona),
    };
    Card { part, text: beginning(text, room * 4), tier: words.tone.of(character.tier), tone: "" }
}

/// For a statement: the whole persona. The settings are refused if it does not fit.
pub(super) fn for_statement<'a>(character: &Character<'a>, words: &'a Words) -> Card<'a> {
    let text = beginning(character.persona.trim(), persona_room(words).statement * 4);
    Card { part: "persona", text, tier: words.tone.of(character.tier), tone: character.tone.trim() }
}

/// The prompt that asks for the brief of a persona. [`clean_brief`](crate::domain::statement::clean_brief) cleans the answer.
pub fn brief(persona: &str, words: &Words) -> Prompt {
    let system = "You shorten descriptions of characters.".to_owned();
    let ending = "Write this description again in at most 200 words, addressed to the character as it is now. Keep who the character \
                  is, what it cares about and what it leaves alone, how it speaks, and its limits: what decides whether it would join a \
                  conversation. Add nothing. Write only the new description.";
    let room = (words.summary_tokens * 4).saturating_sub(weight(&system) + weight(ending) + FRAME_WEIGHT);
    let persona = format!("{}\n", beginning(persona.trim(), room));
    Prompt {
        sizes: sizes(&[("instructions", &system), ("persona", &persona), ("question", ending)]),
        user: paragraphs(&[&block("description", &persona), ending]),
        system,
    }
}
