//! Measures how much the last messages repeat each other (docs/design/closing.md C-12).

use std::collections::BTreeSet;

use super::thoughts::without_thoughts;

/// A score above this is repetition.
pub const THRESHOLD: f64 = 0.7;

/// A trigram: three characters in a row, or a whole text that has fewer.
type Piece = [Option<char>; 3];

/// The similarity of some texts, from 0 (all different) to 1 (the same thing again and again).
///
/// This is the mean, over all pairs, of the Jaccard similarity of their sets of character trigrams (Unicode scalar values of the lower-cased text). A
/// shorter text is a single piece. For fewer than two texts it is 0.
pub fn lexical(texts: &[&str]) -> f64 {
    let sets: Vec<BTreeSet<Piece>> = texts.iter().map(|text| pieces(text)).collect();
    let (mut sum, mut pairs) = (0.0, 0_u32);
    // The order of the sum is part of the score: floating-point addition is not associative.
    for (at, one) in sets.iter().enumerate() {
        for other in &sets[at + 1..] {
            sum += similarity(one, other);
            pairs += 1;
        }
    }
    if pairs == 0 { 0.0 } else { sum / f64::from(pairs) }
}

/// Parses the score of a side model: the number from 0 to 1 that is the last word of its last non-empty line.
///
/// Markdown and punctuation around it are ignored. Anything else counts as 0, such as a percentage or a number out of range. What the model thinks
/// aloud is left out.
pub fn read_score(text: &str) -> f64 {
    let answer = without_thoughts(text);
    let Some(line) = answer.lines().rev().find(|line| line.contains(char::is_alphanumeric)) else { return 0.0 };
    let line = line.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%');
    let word = line.rsplit(|c: char| c.is_whitespace() || matches!(c, ':' | '=')).next().unwrap_or_default();
    let number = word.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '+'));
    // Other forms that parse as a number, such as `inf` or `1e-1`, were not requested.
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    number.parse().ok().filter(|score| is_plain && (0.0..=1.0).contains(score)).unwrap_or(0.0)
}

fn pieces(text: &str) -> BTreeSet<Piece> {
    let lower: Vec<Option<char>> = text.to_lowercase().chars().map(Some).collect();
    let at = |place: usize| lower.get(place).copied().flatten();
    (0..lower.len().saturating_sub(2).max(1)).map(|start| [at(start), at(start + 1), at(start + 2)]).collect()
}

/// The Jaccard similarity of two non-empty sets: the size of their intersection, divided by the size of their union.
fn similarity(one: &BTreeSet<Piece>, other: &BTreeSet<Piece>) -> f64 {
    let shared = one.intersection(other).count();
    shared as f64 / (one.len() + other.len() - shared) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn similarity_is_the_share_of_common_trigrams() {
        for (texts, expected) in [
            (&[][..], 0.0),
            (&["again"], 0.0),
            (&["again", "again"], 1.0),
            (&["AGAIN", "again"], 1.0),
            (&["abc", "xyz"], 0.0),
            // abc bcd | bcd cde: one of three.
            (&["abcd", "bcde"], 1.0 / 3.0),
            // A set: aaa once | aaa, aab.
            (&["aaaaaa", "aaab"], 0.5),
            // 1, 1/3 and 1/3 over three pairs.
            (&["abcd", "abcd", "bcde"], 5.0 / 9.0),
            (&["ab", "AB"], 1.0),
            (&["ab", "abc"], 0.0),
            (&["", ""], 1.0),
            (&["", "a"], 0.0),
            // Scalar values, not bytes: ありが りがと | りがと がとう.
            (&["ありがと", "りがとう"], 1.0 / 3.0),
        ] {
            assert!((lexical(texts) - expected).abs() < 1e-12, "{texts:?}");
        }
    }

    #[test]
    fn only_nearly_equal_texts_are_repetition() {
        let same = [
            "So true, the comets!",
            "So true, the comet!",
            "So true: the comets!",
            "so true, the comets",
            "So true, the comets!!",
        ];
        let talk =
            ["We saw comets.", "Where did you see them?", "Over the bay, at five.", "I was asleep at five.", "As ever, Bruno."];

        assert!(lexical(&same) > THRESHOLD, "{}", lexical(&same));
        assert!(lexical(&talk) < 0.1, "{}", lexical(&talk));
    }

    #[test]
    fn a_score_is_the_last_word_and_from_0_to_1() {
        for (text, expected) in [
            ("0.8", 0.8),
            ("They circle.\n0.75\n", 0.75),
            ("**0.8**", 0.8),
            ("`0.8`.", 0.8),
            ("Score: 0.8", 0.8),
            ("score=0.8", 0.8),
            ("```\n0.8\n```", 0.8),
            ("<think>0.9</think>0.3", 0.3),
            (".5", 0.5),
            ("1", 1.0),
            ("1.0.", 1.0),
            ("0", 0.0),
            ("1.01", 0.0),
            ("-0.5", 0.0),
            ("80%", 0.0),
            ("1%", 0.0),
            ("0,1", 0.0),
            ("8/10", 0.0),
            ("1e-1", 0.0),
            ("inf", 0.0),
            ("NaN", 0.0),
            ("0.8 of them", 0.0),
            ("0.8\nor so", 0.0),
            ("<think>0.9", 0.0),
            ("½", 0.0),
            ("", 0.0),
        ] {
            assert_eq!(read_score(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_lexical_score_is_always_from_0_to_1(texts in prop::collection::vec("\\PC{0,12}|[ab]{0,6}", 0..6)) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();

            prop_assert!((0.0..=1.0).contains(&lexical(&texts)));
        }

        #[test]
        fn similarity_does_not_depend_on_the_order(one in "[abC ]{0,8}", other in "[aBc ]{0,8}") {
            prop_assert_eq!(lexical(&[&one, &other]), lexical(&[&other, &one]));
        }

        #[test]
        fn the_same_text_is_repetition(text in any::<String>(), times in 2_usize..6) {
            prop_assert_eq!(lexical(&vec![text.as_str(); times]), 1.0);
        }

        #[test]
        fn a_parsed_score_is_always_from_0_to_1(text in any::<String>(), number in any::<f64>()) {
            prop_assert!((0.0..=1.0).contains(&read_score(&text)));
            prop_assert!((0.0..=1.0).contains(&read_score(&number.to_string())));
        }
    }
}
