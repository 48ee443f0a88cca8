//! Recognises a message that contains only a stop phrase (docs/design/speaking.md S-15).

use unicode_normalization::UnicodeNormalization;

use super::names::Names;

/// The maximum size of a stop phrase: in bytes with names and mentions, and in words without them.
const MOST_BYTES: usize = 1_000;
const MOST_WORDS: usize = 8;

/// Whether a text is one of these phrases. Ignores names of companions, mentions (`@name`, `<@1>`), punctuation, symbols and case. For speech,
/// `names` includes words that sound like names ([`Names::of_sounds`]).
pub fn is_stop_phrase<'a, 'n>(
    text: &str,
    names: impl IntoIterator<Item = &'n Names>,
    phrases: impl IntoIterator<Item = &'a str>,
) -> bool {
    if text.len() > MOST_BYTES {
        return false;
    }
    let mut words = words(text);
    remove_names(&mut words, names);
    words.retain(|word| !word.is_mention);
    let is_it = |phrase: &'a str| self::words(phrase).iter().map(|word| &word.text).eq(words.iter().map(|word| &word.text));
    !words.is_empty() && words.len() <= MOST_WORDS && phrases.into_iter().any(is_it)
}

/// A word in lower case, in Unicode's composed form.
struct Word {
    text: String,
    /// The word follows an `@`. In a mention of several words, only the first one does.
    is_mention: bool,
}

/// The words of a text. Apostrophes are omitted. All other characters except letters and digits separate words. `<…>` is not a word.
fn words(text: &str) -> Vec<Word> {
    let text: String = text.nfc().collect();
    let mut words = Vec::new();
    for spaced in text.split_whitespace().filter(|spaced| !spaced.starts_with('<')) {
        let mut rest = spaced;
        while !rest.is_empty() {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
            let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let before = spaced[..spaced.len() - rest.len()].chars().next_back();
            let text: String = rest[..end].chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
            if !text.is_empty() {
                words.push(Word { text, is_mention: before == Some('@') });
            }
            rest = rest[end..].trim_start_matches(|c| !is_part(c));
        }
    }
    words
}

/// Removes the words of companions' names. Longer names are removed first.
fn remove_names<'n>(text: &mut Vec<Word>, names: impl IntoIterator<Item = &'n Names>) {
    let names = names.into_iter().flat_map(Names::whole_names);
    let mut names: Vec<Vec<Word>> = names.map(words).filter(|name| !name.is_empty()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        let is_name = |part: &[Word]| part.iter().zip(&name).all(|(one, other)| one.text == other.text);
        while let Some(at) = text.windows(name.len()).position(is_name) {
            text.drain(at..at + name.len());
        }
    }
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
            ("@aria,stop", true),
            ("@Mira Vale stop", true),
            ("@Ben stop", true),
            ("Arre\u{302}te-toi", true),
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
            ("stop ".repeat(300).as_str(), false),
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

    #[test]
    fn what_is_recognised_instead_of_a_name_is_a_name() {
        let sounds = Names::of_sounds(&names(), [("aria".into(), ["Arya"]), ("mira".into(), ["Meera Whale"])]);

        for text in ["Arya, stop", "Stop, Meera Whale! Aria!"] {
            assert!(is_stop_phrase(text, [&names(), &sounds], PHRASES), "{text:?}");
            assert!(!is_stop_phrase(text, [&names()], PHRASES), "{text:?}");
        }
        assert!(!is_stop_phrase("Arya Whale, stop", [&names(), &sounds], PHRASES));
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
