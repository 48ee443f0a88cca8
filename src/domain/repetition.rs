//! Measures how much the last statements repeat each other (docs/design/closing.md C-12).

mod acts;
mod likeness;
mod numbers;

use likeness::Features;

use super::raw_answer;

/// A score above this is repetition.
pub const THRESHOLD: f64 = 0.7;

/// The number of statements in the smallest judged window.
pub const LEAST_STATEMENTS: usize = 3;
/// The number of statements in the largest judged window.
pub const MOST_STATEMENTS: usize = 5;

/// The repetition among the newest texts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeated {
    /// From 0 (all different) to 1 (all the same).
    pub score: f64,
    /// The number of newest texts with this score. If several windows have it, the smallest one.
    pub window: usize,
}

/// The number of statements whose words count as already used in the conversation.
pub const REMEMBERED_STATEMENTS: usize = 10;

/// The similarity of some texts, oldest first, from 0 (all different) to 1 (all the same).
pub fn lexical(texts: &[&str]) -> f64 {
    newest(texts, false).score
}

/// Scores the windows of the newest three, four and five texts, oldest first. Returns the highest score; of windows with equal
/// scores, the smallest.
///
/// Fewer than three texts are one window. For fewer than two, the score is 0. If a person asked for the conversation
/// (`is_asked_for`), it may be a game. A word is new to the conversation if none of the earlier texts has it.
pub fn newest(texts: &[&str], is_asked_for: bool) -> Repeated {
    let talk: Vec<Features> = texts.iter().map(|text| Features::of(text)).collect();
    let is_new: Vec<bool> = (0..talk.len()).map(|at| talk[at].tells_more_than(&talk[..at])).collect();
    let judged = talk.len().saturating_sub(MOST_STATEMENTS);
    let (features, is_new) = (&talk[judged..], &is_new[judged..]);
    let likeness: Vec<Vec<f64>> = features.iter().map(|one| features.iter().map(|other| one.likeness(other)).collect()).collect();
    let mut best = Repeated { score: 0.0, window: features.len() };
    for window in LEAST_STATEMENTS.min(features.len())..=features.len() {
        let first = features.len() - window;
        let is_game = is_asked_for && is_game(&features[first..], &is_new[first..]);
        let score = score(&features[first..], &likeness[first..], first, is_game);
        if score > best.score {
            best = Repeated { score, window };
        }
    }
    best
}

/// The score of one window. `likeness` has its rows; the columns of the window begin at `first`.
fn score(window: &[Features], likeness: &[Vec<f64>], first: usize, is_game: bool) -> f64 {
    if window.len() < 2 {
        return 0.0;
    }
    let acts: Vec<acts::Acts> = window.iter().map(|features| features.acts).collect();
    let sameness = acts::sameness(&acts);
    // A conversation with a fixed form, such as a game or a song, is no repetition as long as it adds words.
    if is_game || adds_something(window) { sameness } else { shared_words(likeness, first).max(one_sided(window)).max(sameness) }
}

/// Whether the window is a game: a repeated frame with new words in it. One of any two consecutive texts has a word that is new
/// to the conversation, and every other word belongs to the frame, or to a question and its answer. Letters that spell a word are
/// a game, too.
fn is_game(window: &[Features], is_new: &[bool]) -> bool {
    let belongs = |word: &String| {
        let texts: Vec<usize> = (0..window.len()).filter(|at| window[*at].told.contains(word)).collect();
        // The first text of a conversation often lacks a word of the frame.
        texts.len() + 1 >= window.len() || matches!(texts[..], [_]) || matches!(texts[..], [one, other] if other == one + 1)
    };
    let fills_frame = || window.iter().flat_map(|features| &features.told).all(belongs);
    is_new.windows(2).all(|pair| pair[0] || pair[1]) && fills_frame() || likeness::spells(window)
}

/// Whether the newest two texts of a window add content words: in a window of three texts any word, in a larger one at least two
/// words each. A list or verse that grows with every text adds something, too.
fn adds_something(window: &[Features]) -> bool {
    let added: Vec<usize> = (1..window.len()).map(|at| window[at].added_to(&window[..at])).rev().take(2).collect();
    let is_enough = if window.len() <= LEAST_STATEMENTS {
        added.iter().any(|words| *words > 0)
    } else {
        added.iter().all(|words| *words > 1)
    };
    is_enough || window.windows(2).all(|pair| pair[1].extends(&pair[0]))
}

/// The mean of each text's greatest likeness to another one. The two greatest values are left out, because a pair alone is no
/// loop.
fn shared_words(likeness: &[Vec<f64>], first: usize) -> f64 {
    let greatest = |(at, row): (usize, &Vec<f64>)| {
        let others = row[first..].iter().enumerate().filter(|(other, _)| *other != at).map(|(_, likeness)| *likeness);
        others.fold(0.0, f64::max)
    };
    let mut all: Vec<f64> = likeness.iter().enumerate().map(greatest).collect();
    // The order of the sum is part of the score: floating-point addition is not associative.
    all.sort_by(f64::total_cmp);
    all.truncate(all.len().saturating_sub(2).max(1));
    all.iter().sum::<f64>() / all.len() as f64
}

/// The likeness of the first, third and fifth of five texts, because one of two speakers may repeat itself. Only content words
/// count, at least three.
fn one_sided(window: &[Features]) -> f64 {
    let [one, _, two, _, three] = window else { return 0.0 };
    [(one, two), (one, three), (two, three)].into_iter().map(|(one, other)| one.word_likeness(other, 3)).fold(1.0, f64::min)
}

/// Parses the score of a side model: the number from 0 to 1 that is the last word of its last non-empty line.
///
/// Markdown and punctuation around the number are ignored. Anything else counts as 0, such as a percentage or a number out of
/// range. The model's thoughts are ignored.
pub fn read_score(text: &str) -> f64 {
    let answer = raw_answer::decision(text).text;
    let Some(line) = answer.lines().rev().find(|line| line.contains(char::is_alphanumeric)) else { return 0.0 };
    let line = line.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%');
    let word = line.rsplit(|c: char| c.is_whitespace() || matches!(c, ':' | '=')).next().unwrap_or_default();
    let number = word.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '+'));
    // Other forms that parse as a number, such as `inf` or `1e-1`, were not requested.
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    number.parse().ok().filter(|score| is_plain && (0.0..=1.0).contains(score)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOOPS: &str = include_str!("../../tests/repetition/loops.jsonl");
    const HEALTHY: &str = include_str!("../../tests/repetition/healthy.jsonl");

    #[derive(serde::Deserialize)]
    struct Talk {
        kind: String,
        statements: Vec<String>,
    }

    impl Talk {
        fn read(lines: &str) -> Vec<Self> {
            lines.lines().map(|line| serde_json::from_str(line).expect("it is a talk")).collect()
        }

        /// The highest score after one of the first `most` statements.
        fn highest_score(&self, most: usize, is_asked_for: bool) -> f64 {
            let texts: Vec<&str> = self.statements.iter().map(String::as_str).take(most).collect();
            (LEAST_STATEMENTS..=texts.len()).map(|count| newest(&texts[..count], is_asked_for).score).fold(0.0, f64::max)
        }
    }

    #[test]
    fn loops_of_every_kind_are_found_by_the_fourth_exchange() {
        let loops = Talk::read(LOOPS);

        for (kind, least) in [("identical", 12), ("near-identical", 12), ("goodbyes", 11), ("paraphrase", 6)] {
            for is_asked_for in [false, true] {
                let is_found = |talk: &&Talk| talk.kind == kind && talk.highest_score(8, is_asked_for) > THRESHOLD;
                let found = loops.iter().filter(is_found).count();
                assert!(found >= least, "{found} of kind {kind}, asked for: {is_asked_for}");
            }
        }
    }

    #[test]
    fn of_windows_with_the_same_score_the_smallest_is_named() {
        let repeated = newest(&["the ferry leaves at nine"; 5], false);
        assert_eq!((repeated.window, repeated.score), (LEAST_STATEMENTS, newest(&["the ferry leaves at nine"; 3], false).score));
    }

    #[test]
    fn healthy_talks_are_no_repetition() {
        for talk in Talk::read(HEALTHY) {
            let score = talk.highest_score(usize::MAX, false);
            assert!(score <= THRESHOLD, "{score}: {:?}", talk.statements);
        }
    }

    #[test]
    fn likeness_compares_trigrams_and_content_words() {
        for (one, other, expected) in [
            ("again", "again", 1.0),
            ("AGAIN", "again", 1.0),
            ("abc", "xyz", 0.0),
            // abc bcd | bcd cde: one of three, of the 0.7 from which on texts are the same.
            ("abcd", "bcde", 1.0 / 3.0 / 0.7),
            // Three or more equal characters are one: a | aab.
            ("aaaaaa", "aab", 0.0),
            // Of two content words each one is common: a half, of 0.9.
            ("red comets", "green comet", 0.5 / 0.9),
            ("ab", "AB", 1.0),
            ("ab", "abc", 0.0),
            ("", "", 1.0),
            ("", "a", 0.0),
            // Scalar values, not bytes: ありが りがと | りがと がとう.
            ("ありがと", "りがとう", 1.0 / 3.0 / 0.7),
            // Who counts, or shows another board, says something else.
            ("Two sheep jump.", "Three sheep jump.", 0.0),
            ("One sheep jumps.", "Zwei sheep jump.", 0.0),
            ("You rolled a 7.", "You rolled a 4.", 0.0),
            ("羊が一匹", "羊が二匹", 0.0),
            ("Your move.\n```\nX.\n```", "Your move.\n```\nXO\n```", 0.0),
            ("Your move.\n```\nX.\n```", "Your move!\n```\nX.\n```", 1.0),
        ] {
            let likeness = Features::of(one).likeness(&Features::of(other));
            assert!((likeness - expected).abs() < 1e-12, "{one:?}, {other:?}: {likeness}");
        }
        assert_eq!([lexical(&[]), lexical(&["again"]), lexical(&["again", "again"])], [0.0, 0.0, 1.0]);
    }

    #[test]
    fn talk_with_a_fixed_form_goes_on_while_something_is_added() {
        let is_found = |texts: &[&str]| lexical(texts) > THRESHOLD;

        assert!(is_found(&["I like red comets.", "I like red comets.", "I like red comets."]));
        assert!(is_found(&["Red comets, yes.", "Blue comets, yes.", "Red comets, yes.", "Blue comets, yes."]));
        // Of three statements a new word in one of the newest two is enough, of four it is not.
        assert!(!is_found(&["I like red comets.", "I like red comets.", "I like blue comets."]));
        assert!(is_found(&["I like red comets.", "I like red comets.", "I like red comets.", "I like blue comets."]));
        // A list that grows.
        let bag = ["In my bag I put a kite", "In my bag I put a kite, a map", "In my bag I put a kite, a map, a goat"];
        assert!(!is_found(&bag));
        assert!(is_found(&[bag[2], bag[2], bag[2]]));
    }

    #[test]
    fn a_frame_is_a_game_while_each_new_word_is_the_point() {
        let rhymes = ["Maus", "Laus", "Strauß", "Applaus", "Schmaus", "Graus"].map(|word| format!("Auf Haus reimt sich {word}."));
        let is_found = |texts: &[&str]| newest(texts, true).score > THRESHOLD;
        let rhymes: Vec<&str> = rhymes.iter().map(String::as_str).collect();
        let curtains = [
            "The blue curtains would look lovely in the living room.",
            "Yes, the blue curtains would look truly lovely in the living room.",
            "Exactly, blue curtains would look lovely in that living room!",
            "Great, the blue curtains would simply look lovely in the living room.",
        ];

        assert!(!is_found(&rhymes));
        assert!(newest(&rhymes, false).score > THRESHOLD, "nobody asked for it");
        // The words come back.
        assert!(is_found(&[&rhymes[..], &rhymes[..2]].concat()));
        assert!(!is_found(&["Is it a cup?", "No, it is not a cup.", "Is it a lamp?", "No, it is not a lamp.", "Is it a bed?"]));
        assert!(is_found(&curtains));
        assert!(!is_found(&["B", "A", "N", "A", "N", "A"]));
        assert!(is_found(&["k", "k", "k", "k"]));
    }

    #[test]
    fn goodbyes_in_different_words_are_repetition() {
        for (texts, expected) in [
            (&["Good night!", "Sleep tight!", "Sweet dreams!"][..], 0.75),
            (&["Good night!", "Sleep tight!", "I will read on."], 0.5),
            (&["Gute Nacht!", "Bis morgen!", "Schlaf gut!", "Mach's gut."], 1.0),
            (&["That is true, we should go there in May.", "Oh yes, before it is hot.", "Exactly.", "Sure, in May!"], 0.0),
            (&["True, we should go there in May.", "Oh yes, before it is hot.", "Exactly.", "Sure, in May!"], 0.8),
            (&["True, we should go there in May.", "Oh yes, before it is hot.", "Exactly.", "Sure, is May fine?"], 0.0),
        ] {
            let score = lexical(texts);
            assert!(if expected == 0.0 { score <= THRESHOLD } else { score == expected }, "{score}: {texts:?}");
        }
    }

    #[test]
    fn one_of_two_speakers_may_repeat_itself() {
        let same = "The moon pulls the tides along the coast.";
        let texts = ["Why?", same, "And when is low water?", same, "I asked when.", same];

        assert_eq!(newest(&texts, true), Repeated { score: 1.0, window: 5 });
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
        assert!(lexical(&talk) < 0.3, "{}", lexical(&talk));
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
        fn likeness_does_not_depend_on_the_order(one in "[abC ]{0,8}", other in "[aBc ]{0,8}") {
            let likeness = |one: &str, other: &str| Features::of(one).likeness(&Features::of(other));
            prop_assert_eq!(likeness(&one, &other), likeness(&other, &one));
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
