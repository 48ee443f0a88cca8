//! The maximum size of a persona that is shown in full. The check of the settings uses this file, so it imports no file that imports the whole
//! settings.

use super::data::weight;
use super::form::{Extra, statement_form, vote_form};
use super::texts::{FRAME_WEIGHT, HOW_TO_READ, HOW_TO_READ_TURNS, MAX_SENTENCE_WEIGHT, SHORT_PERSONA, statement_texts_weight};
use crate::closing::Stage;
use crate::policy::prompt::Prompt as Words;
use crate::trigger::Trigger;

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
    let rest = frame_weight(words) + weight(HOW_TO_READ) + longest_context(words) + questions + form;
    let brief = (words.decision_tokens * 4).saturating_sub(rest) / 8;
    DecisionRoom { persona: if words.is_short() { brief.min(SHORT_PERSONA) } else { brief }, brief }
}

/// The maximum size of a persona, in tokens: four fifths of the room that the rest of a statement's prompt leaves.
pub fn statement_room(words: &Words) -> usize {
    let rest = frame_weight(words) + weight(HOW_TO_READ_TURNS) + statement_ending_weight(words);
    (words.statement_tokens * 4).saturating_sub(rest) / 5
}

fn frame_weight(words: &Words) -> usize {
    let tones = ["very_quiet", "quiet", "average", "eager", "very_eager"].map(|tier| words.tone.of(tier));
    weight("You are .") + NAME_WEIGHT + longest(&tones) + FRAME_WEIGHT
}

/// The maximum weight of the fixed texts at the end of a statement's prompt, for any trigger.
pub(super) fn statement_ending_weight(words: &Words) -> usize {
    let manners = longest(&Trigger::ALL.map(|trigger| words.manner_for(trigger)));
    let form = weight(&statement_form("", false)).max(weight(&statement_form("", true))) + NAME_WEIGHT;
    longest_context(words) + manners + form + statement_texts_weight()
}

fn longest_context(words: &Words) -> usize {
    let weight = |sentence: &String| (weight(sentence) + NAME_WEIGHT * sentence.matches('{').count()).min(MAX_SENTENCE_WEIGHT);
    [&words.direct_address, &words.interjection, &words.turn].map(weight).into_iter().max().unwrap_or_default()
}

fn longest(texts: &[&str]) -> usize {
    texts.iter().map(|text| weight(text)).max().unwrap_or_default()
}

/// The estimated tokens of a text: one per four ASCII characters or two other characters.
pub fn tokens(text: &str) -> usize {
    weight(text).div_ceil(4)
}
