//! Derives a companion's temper from the description of its chattiness.

use crate::domain::question_context::QuestionContext;

/// How a companion takes part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    Quiet,
    Curious,
    /// Wants to talk.
    Lively,
}

/// The beginnings of words that indicate a temper, the strongest indication first.
const SIGNS: [(Temper, &[&str]); 2] = [
    (Temper::Quiet, &["shy", "reserved", "quiet", "timid", "rarely", "seldom", "introvert", "dry", "blunt", "gruff", "stoic"]),
    (Temper::Lively, &["playful", "joke", "silly", "cheerful", "eager", "always", "talkative", "chatty", "outgoing", "excited"]),
];

impl Temper {
    /// The temper of the companion that a question is for. The instructions are full of such words, so only its description counts.
    pub fn of(context: &QuestionContext) -> Self {
        let text = context.chattiness.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
        let shows = |signs: &[&str]| words.iter().any(|word| signs.iter().any(|sign| word.starts_with(sign)));
        SIGNS.iter().find(|(_, signs)| shows(signs)).map_or(Self::Curious, |(temper, _)| *temper)
    }

    /// The probability of saying something unasked, from 0 to 1.
    pub const fn appetite(self) -> f64 {
        match self {
            Self::Quiet => 0.2,
            Self::Curious => 0.5,
            Self::Lively => 0.75,
        }
    }
}
