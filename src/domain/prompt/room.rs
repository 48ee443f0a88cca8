//! The maximum size of a persona that is shown in full. The check of the settings uses this file, so it imports no file that imports the whole
//! settings.

use super::data::{unmarked_name, weight};
use super::form::{Extra, statement_form, vote_form};
use super::texts::{
    FRAME_WEIGHT, HOW_TO_READ, HOW_TO_READ_TURNS, HOW_TO_READ_TURNS_SHORT, MAX_SENTENCE_WEIGHT, SHORT_PERSONA,
    SMALL_FRAME_WEIGHT, statement_texts_weight,
};
use crate::closing::Stage;
use crate::policy::prompt::Prompt as Words;
use crate::room_words::RoomWords;
use crate::trigger::Trigger;

/// A prompt with less weight than this is small, because of a model with a small context or a long persona.
pub(super) const SMALL: usize = 12_000;
/// The maximum weight of a name of 64 characters.
const NAME_WEIGHT: usize = 128;
/// The maximum size of a persona and of a brief that decisions show in full, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionRoom {
    /// Half of the room that the rest of the prompt leaves, and in short decisions at most 200. A longer persona is replaced by its brief.
    pub persona: usize,
    pub brief: usize,
}

/// The room for personas in decisions. It depends only on the settings, so all decisions show a companion in the same way.
pub fn decision_room(words: &Words) -> DecisionRoom {
    let questions = longest(&Trigger::ALL.map(|trigger| words.question_for(trigger)));
    let form = weight(&vote_form("", Stage::PreClosing, Extra { is_call: true, about_risk: true }, words)) + NAME_WEIGHT;
    let frame = frame_weight(words, NAME_WEIGHT) + FRAME_WEIGHT;
    let rest = frame + weight(HOW_TO_READ) + longest_context(words, NAME_WEIGHT) + questions + form;
    let brief = (words.decision_tokens * 4).saturating_sub(rest) / 8;
    DecisionRoom { persona: if words.is_short() { brief.min(SHORT_PERSONA) } else { brief }, brief }
}

/// The maximum size of a persona, in tokens: four fifths of the room that the rest of a statement's prompt leaves.
pub fn statement_room(words: &Words) -> usize {
    persona_room(words, NAME_WEIGHT)
}

/// The same for a companion whose name has this weight. In a small prompt the persona may take five sixths.
pub(super) fn persona_room(words: &Words, name: usize) -> usize {
    let rest = frame_weight(words, name) + weight(how_to_read_turns(words)) + statement_ending_weight(words, name);
    let left = (words.statement_tokens * 4).saturating_sub(rest);
    if is_small(words) { left.saturating_sub(SMALL_FRAME_WEIGHT) * 5 / 24 } else { left.saturating_sub(FRAME_WEIGHT) / 5 }
}

/// Whether the prompts of statements are small, because of a model with a small context.
pub(super) const fn is_small(words: &Words) -> bool {
    words.statement_tokens * 4 < SMALL
}

/// The weight that is reserved for the name of a companion in the prompt of a statement.
pub(super) fn statement_name_weight(name: &str, words: &Words) -> usize {
    if is_small(words) { weight(&unmarked_name(name)) } else { NAME_WEIGHT }
}

/// The explanation of the talk in the prompt of a statement.
pub(super) const fn how_to_read_turns(words: &Words) -> &'static str {
    if is_small(words) { HOW_TO_READ_TURNS_SHORT } else { HOW_TO_READ_TURNS }
}

/// The weight of the texts around a description, without [`FRAME_WEIGHT`].
fn frame_weight(words: &Words, name: usize) -> usize {
    let tones = ["very_quiet", "quiet", "average", "eager", "very_eager"].map(|tier| words.tone.of(tier));
    weight("You are .") + name + longest(&tones)
}

/// The maximum weight of the fixed texts at the end of a statement's prompt, for any trigger. A small prompt has the optional ones only if they fit.
pub(super) fn statement_ending_weight(words: &Words, name: usize) -> usize {
    let manners = longest(&Trigger::ALL.map(|trigger| words.manner_for(trigger)));
    let room = RoomWords::default();
    // That of a role-play is shorter.
    let form = weight(&statement_form("", false, &room)).max(weight(&statement_form("", true, &room))) + name;
    longest_context(words, name) + manners + form + if is_small(words) { 0 } else { statement_texts_weight() }
}

fn longest_context(words: &Words, name: usize) -> usize {
    let weight = |sentence: &String| (weight(sentence) + name * sentence.matches('{').count()).min(MAX_SENTENCE_WEIGHT);
    [&words.direct_address, &words.interjection, &words.turn, &words.chosen].map(weight).into_iter().max().unwrap_or_default()
}

fn longest(texts: &[&str]) -> usize {
    texts.iter().map(|text| weight(text)).max().unwrap_or_default()
}

/// The estimated tokens of a text: one per four ASCII characters or two other characters.
pub fn tokens(text: &str) -> usize {
    weight(text).div_ceil(4)
}
