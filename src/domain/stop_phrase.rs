//! Recognises a message that asks to stop, with nothing else (docs/design/speaking.md S-15).

use super::names::Names;

/// Longer texts are no stop phrases, in words without names.
const MOST_WORDS: usize = 8;

/// Whether a text is one of these phrases, apart from names of companions, mentions (`@name`), punctuation, symbols and case.
pub fn is_stop_phrase<'a>(text: &str, names: Option<&Names>, phrases: impl IntoIterator<Item = &'a str>) -> bool {
    let words = words(text);
    if words.is_empty() {
        return false;
    }
    let words = match names {
        Some(names) => without_names(words, names),
        None => words,
    };
    !words.is_empty() && words.len() <= MOST_WORDS && phrases.into_iter().any(|phrase| self::words(phrase) == words)
}

/// The words of a text in lower case. Apostrophes are left out, and everything else that is no letter or digit separates words. A mention is no word.
fn words(text: &str) -> Vec<String> {
    let spaced = text.split_whitespace().filter(|word| !word.starts_with(['@', '<']));
    let parts = spaced.flat_map(|word| word.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’')));
    let lowered = parts.map(|part| part.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect());
    lowered.filter(|word: &String| !word.is_empty()).collect()
}

/// The words that belong to no name of a companion. Longer names are removed first.
fn without_names(mut text: Vec<String>, names: &Names) -> Vec<String> {
    let mut names: Vec<Vec<String>> = names.whole_names().map(words).filter(|name| !name.is_empty()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        while let Some(at) = text.windows(name.len()).position(|part| part == name) {
            text.drain(at..at + name.len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PHRASES: [&str; 4] = ["stop", "never mind", "don't bother", "arrête-toi"];

    #[test]
    fn a_stop_phrase_stands_alone() {
        for (text, expected) in [
            ("stop", true),
            ("STOP!!!", true),
            ("  Stop. ✋", true),
            ("aria, stop", true),
            ("Stop, Mira Vale!", true),
            ("stop @aria", true),
            ("<@123> stop", true),
            ("never mind…", true),
            ("Never   mind, aria", true),
            ("don’t bother", true),
            ("dont bother", true),
            ("Arrête-toi !", true),
            ("aria stop! I meant the film", false),
            ("stop it", false),
            ("never", false),
            ("wait", false),
            ("bus stop", false),
            ("aria", false),
            ("", false),
            ("!?", false),
        ] {
            assert_eq!(is_stop_phrase(text, Some(&names()), PHRASES), expected, "{text:?}");
        }
    }

    #[test]
    fn names_that_are_phrases_themselves_are_no_phrases() {
        let names = Names::new([("stop".into(), ["Stop"])]).unwrap();

        assert!(!is_stop_phrase("stop", Some(&names), PHRASES));
        assert!(is_stop_phrase("stop", None, PHRASES));
    }

    fn names() -> Names {
        Names::new([("aria".into(), ["Aria"]), ("mira".into(), ["Mira Vale"])]).unwrap()
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), phrase in any::<String>()) {
            is_stop_phrase(&text, Some(&names()), [&*phrase]);
        }
    }
}
