//! Decides how long a persona may be to be shown in full. The settings are checked by it, so it imports no file that imports them as a whole.

use super::data::weight;
use super::{FRAME_WEIGHT, HOW_TO_READ, statement_form, vote_form};
use crate::domain::closing::Stage;
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
    let context = |sentence: &String| (weight(sentence) + NAME_WEIGHT * sentence.matches('{').count()).min(MAX_CONTEXT_WEIGHT);
    let contexts = [&words.direct_address, &words.interjection, &words.turn].map(context);
    let frame = frame + contexts.into_iter().max().unwrap_or_default();
    let questions = longest(&Trigger::ALL.map(|trigger| words.question_for(trigger)));
    let decision = questions + weight(&vote_form("", Stage::PreClosing, words));
    let manners = longest(&Trigger::ALL.map(|trigger| words.manner_for(trigger)));
    let statement = manners + weight(&statement_form("", false)).max(weight(&statement_form("", true)));
    PersonaRoom {
        decision: (words.decision_tokens * 4).saturating_sub(frame + decision) / 8,
        statement: (words.statement_tokens * 4).saturating_sub(frame + statement) / 5,
    }
}

/// The estimated tokens of a text: one for four ASCII characters, or for two other characters.
pub fn tokens(text: &str) -> usize {
    weight(text).div_ceil(4)
}
