//! Reads a companion's temper from the words about its chattiness.

use crate::domain::question_context::QuestionContext;

/// How a companion takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// Shy, reserved.
    Quiet,
    /// Dry, blunt, sardonic.
    Dry,
    /// Nothing in particular.
    Even,
    /// Wants to know.
    Curious,
    /// Jokes.
    Playful,
    /// Is always there.
    Eager,
}

/// The beginnings of words that show a temper, the tellingest first.
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
    /// The temper of whom a question is for.
    pub fn of(context: &QuestionContext) -> Self {
        // The instructions are full of such words; only what is said of the companion counts.
        Self::in_words(&context.chattiness).unwrap_or(Self::Even)
    }

    /// How likely it is to say something that nobody asked for, from 0 to 1.
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

    fn in_words(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
        let shows = |signs: &[&str]| words.iter().any(|word| signs.iter().any(|sign| word.starts_with(sign)));
        SIGNS.iter().find(|(_, signs)| shows(signs)).map(|(temper, _)| *temper)
    }
}
