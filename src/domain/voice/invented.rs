//! Recognises text that speech recognition invents for sounds without words (docs/design/voice.md A-9).

use std::sync::Arc;
use std::time::Duration;

use super::super::names::is_unspaced;
use super::words::words;

/// Brackets around descriptions of sounds: `[BLANK_AUDIO]`, `(music)`, `*coughs*`, `<|nospeech|>`.
const BRACKETS: [(char, char); 8] =
    [('[', ']'), ('(', ')'), ('{', '}'), ('<', '>'), ('*', '*'), ('（', '）'), ('【', '】'), ('［', '］')];
/// A phrase must be repeated at least this often before its pace counts.
const FEWEST_TIMES: usize = 4;
/// The longest phrase whose repetitions are searched for, in words.
const LONGEST_PHRASE: usize = 12;
/// The fastest human speech: words per second, and characters per second in scripts without spaces.
const MOST_A_SECOND: (f64, f64) = (7.0, 15.0);
/// Shorter durations are rounded up to this one, because the ends of a segment are not exact.
const SHORTEST: Duration = Duration::from_millis(500);

/// Whether the recogniser invented a text for audio of the duration `time`. It did if the text has no words outside brackets, if it consists only of
/// listed texts, or if a phrase is repeated faster than a human speaks. Case and punctuation of the listed texts are ignored.
pub fn is_invented(text: &str, time: Duration, listed: &[Arc<str>]) -> bool {
    let said = words(&said(text));
    is_made_of(&said, listed) || is_repeated_too_fast(&said, time)
}

/// Whether the words are a sequence of listed texts.
fn is_made_of(said: &[String], listed: &[Arc<str>]) -> bool {
    let listed: Vec<_> = listed.iter().map(|listed| words(listed)).filter(|listed| !listed.is_empty()).collect();
    let mut rest = said;
    while let Some(length) = listed.iter().filter(|listed| rest.starts_with(listed)).map(Vec::len).max() {
        rest = &rest[length..];
    }
    rest.is_empty()
}

/// Removes bracketed parts. From the first bracket that is never closed, the rest is kept unchanged.
fn said(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let close = BRACKETS.iter().find_map(|(open, close)| (*open == c).then_some(*close));
        match close.and_then(|close| after.split_once(close)) {
            // No part of the text is searched twice.
            Some((_, after)) => {
                out.push(' ');
                rest = after;
            }
            None if close.is_some() => return out + rest,
            None => {
                out.push(c);
                rest = after;
            }
        }
    }
    out
}

/// Whether a phrase is repeated too often for the duration.
fn is_repeated_too_fast(words: &[String], time: Duration) -> bool {
    // In scripts without spaces, `words` returns whole clauses.
    let is_dense = words.iter().any(|word| word.chars().any(is_unspaced));
    let units: Vec<String> = match is_dense {
        true => words.iter().flat_map(|word| word.chars().map(String::from)).collect(),
        false => words.to_vec(),
    };
    let most = if is_dense { MOST_A_SECOND.1 } else { MOST_A_SECOND.0 } * time.max(SHORTEST).as_secs_f64();
    (1..=LONGEST_PHRASE.min(units.len())).any(|length| {
        // Counts consecutive units that equal the unit one phrase earlier. Together with the first phrase they are its repetitions.
        let mut repeated = 0;
        units.windows(length + 1).any(|window| {
            repeated = if window[0] == window[length] { repeated + 1 } else { 0 };
            let all = repeated + length;
            all >= FEWEST_TIMES * length && all as f64 > most
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_invented(text: &str, secs: f64) -> bool {
        let listed = ["Thank you for watching", "ご視聴ありがとうございました"].map(Arc::from);
        super::is_invented(text, Duration::from_secs_f64(secs), &listed)
    }

    #[test]
    fn what_is_described_is_not_said() {
        for text in [
            "[BLANK_AUDIO]",
            " [ Silence ]",
            "(music)",
            "(keyboard clicking) [laughs]",
            "♪",
            "♪ ♪",
            "♪ (upbeat music) ♪",
            "*coughs*",
            "<|nospeech|>",
            "<unk>",
            "[_BEG_][_TT_150]",
            "{noise}",
            "（音楽）",
            "【拍手】",
            ".",
            "...",
            "…",
            "-",
            "?!",
            "🎵",
            "Thank you for watching!",
            "thank you, for WATCHING",
            "Thank you for watching. Thank you for watching!",
            "ご視聴ありがとうございました。",
        ] {
            assert!(is_invented(text, 2.0), "{text}");
        }
    }

    #[test]
    fn words_are_said() {
        for text in [
            "So I went down to the harbour yesterday.",
            "(laughs) yes",
            "Well (sic) that is it",
            "Thank you for watching the dog",
            "Thank you",
            "[unclosed",
            "a * b",
            "I <3 you",
            "はい",
            "42",
            "you",
        ] {
            assert!(!is_invented(text, 2.0), "{text}");
        }
    }

    #[test]
    fn a_phrase_is_invented_if_it_comes_faster_than_anybody_speaks() {
        for (text, secs, expected) in [
            ("the ".repeat(12), 1.5, true),
            ("Thank you. ".repeat(12), 1.5, true),
            ("I ".repeat(14), 1.5, true),
            (format!("Hello there. {}", "Thank you. ".repeat(40)), 10.0, true),
            ("we will see you in the next one ".repeat(20), 5.0, true),
            ("ありがとう".repeat(20), 3.0, true),
            ("謝謝。".repeat(60), 3.0, true),
            ("no ".repeat(6), 1.2, false),
            ("no no no".to_owned(), 0.3, false),
            ("Thank you. ".repeat(12), 6.0, false),
            ("ha ".repeat(12), 4.0, false),
            ("ありがとう".repeat(4), 3.0, false),
            ("one two three four five six seven eight nine ten eleven twelve".to_owned(), 1.0, false),
        ] {
            assert_eq!(is_invented(&text, secs), expected, "{text} in {secs} s");
        }
    }

    #[test]
    fn a_long_text_is_read_quickly() {
        assert!(is_invented(&"[(*<a".repeat(100_000), 2.0));
        assert!(is_invented(&"()".repeat(100_000), 2.0));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), secs in 0.0..1e6_f64) {
            is_invented(&text, secs);
        }
    }
}
