//! Derives a companion's temper from the description of its chattiness.

use crate::domain::question_context::QuestionContext;

/// How a companion takes part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    Quiet,
    /// Dry, blunt, sardonic.
    Dry,
    /// No particular temper.
    Even,
    /// Asks questions.
    Curious,
    Playful,
    /// Always wants to talk.
    Eager,
}

/// The beginnings of words that indicate a temper, the strongest indication first.
const SIGNS: [(Temper, &[&str]); 5] = [
    (Temper::Quiet, &["shy", "reserved", "quiet", "timid", "rarely", "seldom", "withdrawn", "laconic", "taciturn", "introvert"]),
    (Temper::Dry, &["dry", "wry", "sarcas", "sardon", "blunt", "gruff", "grump", "deadpan", "cynic", "stoic"]),
    (Temper::Playful, &["playful", "joke", "joking", "teas", "silly", "mischie", "witty", "cheerful", "prank"]),
    (Temper::Curious, &["curious", "inquisit", "wonder", "question", "inquir", "nosy", "interested"]),
    (
        Temper::Eager,
        &["eager", "always", "talkative", "chatty", "enthusias", "outgoing", "extrovert", "often", "excited", "loves"],
    ),
];

impl Temper {
    /// The temper of the companion that a question is for.
    pub fn of(context: &QuestionContext) -> Self {
        // The instructions are full of such words, so only the description of the companion counts.
        Self::described_by(&context.chattiness).unwrap_or(Self::Even)
    }

    /// The probability of saying something unasked, from 0 to 1.
    pub const fn appetite(self) -> f64 {
        match self {
            Self::Quiet => 0.12,
            Self::Dry => 0.35,
            Self::Even => 0.4,
            Self::Curious => 0.55,
            Self::Playful => 0.6,
            Self::Eager => 0.8,
        }
    }

    fn described_by(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
        let shows = |signs: &[&str]| words.iter().any(|word| signs.iter().any(|sign| word.starts_with(sign)));
        SIGNS.iter().find(|(_, signs)| shows(signs)).map(|(temper, _)| *temper)
    }
}
