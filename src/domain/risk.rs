//! Detects signs in people's messages that they want to die or to hurt themselves (docs/design/safety.md N-8).
//!
//! If a phrase of a list occurs, the vote of a model decides. If no model answers, only the unmistakable phrases count.

use std::sync::LazyLock;

use super::phrases::{self, Phrases};
use super::text::first;

/// The maximum number of characters of a message that are examined.
const MOST_CHARS: usize = 4_000;

/// The clarity of a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// A model must decide.
    Possible,
    /// The sign counts even if no model answers.
    Clear,
}

/// Characters that indicate jokes. If one of them, or a mark of the list, is present, no phrase is clear.
const NOT_EARNEST_SIGNS: &[char] = &['💀', '😂', '🤣', '😆', '☠', '笑', '草'];

/// The phrases with their signs, and the marks without signs.
static PHRASES: LazyLock<Phrases<Option<Sign>>> = LazyLock::new(|| {
    Phrases::new(phrases::sections(include_str!("risk/words.txt")).map(|(_, line)| match line.strip_prefix('!') {
        Some(clear) => (Some(Sign::Clear), clear),
        None => line.strip_prefix('~').map_or((Some(Sign::Possible), line), |mark| (None, mark)),
    }))
});

/// The clearest sign in the first 4,000 characters of a text.
pub fn sign(text: &str) -> Option<Sign> {
    let text = first(text, MOST_CHARS);
    let found = PHRASES.found_in(text);
    let is_earnest = (text.is_ascii() || !text.contains(NOT_EARNEST_SIGNS)) && !found.contains(&None);
    let clearest = found.into_iter().flatten().max();
    if is_earnest { clearest } else { clearest.map(|_| Sign::Possible) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmistakable_phrases_are_found_in_every_language() {
        for text in [
            "honestly i don’t want to live anymore",
            "I WANT TO DIE.",
            "Ich will nicht mehr leben…",
            "ich möchte sterben",
            "ya no quiero vivir así",
            "quisiera estar muerta",
            "j'ai envie de mourir",
            "não quero mais viver",
            "もう死にたい",
        ] {
            assert_eq!(sign(text), Some(Sign::Clear), "{text}");
        }
    }

    /// Messages that other programs' bug reports say were missed, or were wrongly taken for signs.
    #[test]
    fn reported_texts_are_read_rightly() {
        for apostrophe in ["'", "\u{2018}", "\u{2019}", "\u{2bc}", "\u{2032}", "\u{ff07}"] {
            let text = format!("I don{apostrophe}t want to live anymore");
            assert_eq!(sign(&text), Some(Sign::Clear), "empathySync 191: {text}");
        }
        assert_eq!(sign("Ich mo\u{308}chte ster\u{ad}ben"), Some(Sign::Clear), "an accent of its own, and a soft hyphen");
        let indirect = "I don't see the point anymore. Everything feels hopeless and I'm tired of fighting.";
        assert_eq!(sign(indirect), Some(Sign::Possible), "empathySync 80");
        assert_eq!(sign("I'm a skilled cook."), None, "report-a-cybercrime 1976");
    }

    #[test]
    fn what_may_be_meant_otherwise_only_raises_the_question() {
        for text in [
            "i keep dying at this boss",
            "kms this is so embarrassing",
            "I want to die 💀",
            "Ich will sterben, haha",
            "me muero de risa",
        ] {
            assert_eq!(sign(text), Some(Sign::Possible), "{text}");
        }
        for text in ["What time is it?", "Wir gehen ins Kino.", "¿Qué hora es?", "", "🦀"] {
            assert_eq!(sign(text), None, "{text}");
        }
    }
}
