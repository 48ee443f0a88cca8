//! Reads a model's answer in two lines: a sentence saying why, then YES or NO.

use super::text::{is_joining, seen};
use super::thoughts::{unopened, without_thoughts};

/// Only the last 16 KiB of an answer are read.
const MAX_READ_BYTES: usize = 16 * 1024;
/// The maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 500;

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The last word: YES, NO, or neither.
    pub decision: Verdict,
    /// The sentence before the decision, in one line of at most 500 characters. If the answer is unreadable, its last line.
    pub why: Option<String>,
}

/// The decision in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// `YES`: the companion wants to speak.
    Yes,
    /// `NO`: the companion stays silent.
    No,
    /// Neither. It settles the messages like a NO.
    Unreadable,
}

/// Parses an answer. The last word of the last line that has words decides, in any case, without the punctuation, Markdown and signs around it.
///
/// Only an ASCII `yes` or `no` counts; everything else is unreadable. What the model thinks aloud is left out. A thought that ends but never began
/// may be an answer that quotes the tag. If it decides the opposite, the answer is unreadable.
pub fn read(text: &str) -> Reading {
    let reading = read_visible(&without_thoughts(text));
    let is_contradicted = unopened(text).is_some_and(|before| is_opposite_decided(before, reading.decision));
    let decision = if is_contradicted { Verdict::Unreadable } else { reading.decision };
    Reading { decision, ..reading }
}

/// Whether a text decides the opposite of `decision`: in its first sentence, in a line of one word, or in its last word.
pub(super) fn is_opposite_decided(text: &str, decision: Verdict) -> bool {
    let opposite = match decision {
        Verdict::Yes => Verdict::No,
        Verdict::No => Verdict::Yes,
        Verdict::Unreadable => return false,
    };
    let text = text.trim();
    // A question decides nothing.
    let first = text.split_inclusive(['.', '!', '?', ';', '\n']).next().filter(|first| !first.ends_with('?'));
    let is_word = |line: &&str| line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count() == 1;
    let last = Some(text).filter(|text| !text.ends_with('?'));
    text.lines().filter(is_word).chain(first).chain(last).any(|part| read_visible(part).decision == opposite)
}

fn read_visible(answer: &str) -> Reading {
    let tail = tail(answer);
    let is_cut = tail.len() < answer.len();
    let mut lines =
        tail.rsplit(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).filter(|line| line.contains(char::is_alphanumeric));
    let Some(last) = lines.next() else {
        return Reading { decision: Verdict::Unreadable, why: None };
    };

    let line = last.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (before, word) = line.rfind(separates).map_or(("", line), |at| line.split_at(at));
    let stripped = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let begins_before_the_cut = is_cut && std::ptr::eq(word.as_ptr(), tail.as_ptr());
    let decision = match stripped {
        _ if begins_before_the_cut => Verdict::Unreadable,
        yes if yes.eq_ignore_ascii_case("yes") => Verdict::Yes,
        no if no.eq_ignore_ascii_case("no") => Verdict::No,
        _ => Verdict::Unreadable,
    };

    let why = match decision {
        Verdict::Unreadable => sentence(last),
        _ if is_label(before) => lines.next().and_then(sentence),
        _ => sentence(before),
    };
    Reading { decision, why }
}

/// The last 16 KiB of a text.
fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_READ_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Whether a character separates words even without white space.
fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | ';' | ',' | '=' | '—' | '–' | '…' | '→' | '：' | '，' | '。')
}

/// Whether the text before the decision only announces it, such as `Answer`.
fn is_label(before: &str) -> bool {
    let words: Vec<&str> = before.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.len() <= 2
        && words.iter().all(|word| {
            ["final", "my", "the", "answer", "decision", "verdict", "a", "line", "2", "so"]
                .iter()
                .any(|label| word.eq_ignore_ascii_case(label))
        })
}

/// A line that can be journaled: no control or direction characters, one space between words, no Markdown around it.
pub(super) fn sentence(line: &str) -> Option<String> {
    let mut cleaned = String::new();
    let mut length = 0;
    for c in seen(line.trim_matches(|c: char| c.is_whitespace() || "*_`#>\"“”-:→".contains(c))) {
        let c = if c.is_whitespace() || c.is_control() { ' ' } else { c };
        if c == ' ' && (cleaned.ends_with(' ') || cleaned.is_empty()) {
            continue;
        }
        if length == MAX_REASON_CHARS {
            // The character that a trailing joiner would join is cut off.
            cleaned.truncate(cleaned.trim_end_matches(is_joining).len());
            break;
        }
        cleaned.push(c);
        length += 1;
    }
    cleaned.truncate(cleaned.trim_end().len());
    (!cleaned.is_empty()).then_some(cleaned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_word_of_the_last_line_decides() {
        use Verdict::{No, Unreadable, Yes};

        for (text, expected) in [
            ("They asked me.\nYES", Yes),
            ("not mine\nNO", No),
            ("yes", Yes),
            ("No.", No),
            ("**YES**", Yes),
            ("`no`", No),
            ("Answer: YES!", Yes),
            ("**Answer:**NO", No),
            ("Decision:YES", Yes),
            ("I will stay out of it — NO", No),
            ("out of it—NO", No),
            ("YES 👍", Yes),
            ("YES 👍🏽\u{fe0f}", Yes),
            ("why\nYES\n\n  \n", Yes),
            ("```\nwhy\nNO\n```", No),
            ("why\r\nNO\r\n", No),
            ("YES\nNO", No),
            ("NO\nYES", Yes),
            ("> *no*", No),
            ("(yes)", Yes),
            ("Answer YES or NO", No),
            ("<think>I say NO</think>\nYES", Yes),
            ("<think>I say\nNO", Unreadable),
            ("YES\nbecause I like it", Unreadable),
            ("YES/NO", Unreadable),
            ("YES|NO", Unreadable),
            ("yes-no", Unreadable),
            ("not_no", Unreadable),
            ("yess", Unreadable),
            ("noo", Unreadable),
            ("nope", Unreadable),
            ("ＹＥＳ", Unreadable),
            ("УES", Unreadable),
            ("はい", Unreadable),
            ("oui", Unreadable),
            ("", Unreadable),
            ("  \n ", Unreadable),
            ("!!!", Unreadable),
        ] {
            assert_eq!(read(text).decision, expected, "{text:?}");
        }
    }

    #[test]
    fn the_sentence_before_is_the_reason() {
        for (text, expected) in [
            ("They asked me.\nYES", Some("They asked me.")),
            ("first\n\n*Not  mine.*\n\n**NO**", Some("Not mine.")),
            ("Not mine.\nAnswer: NO", Some("Not mine.")),
            ("Not mine. NO", Some("Not mine.")),
            ("a\u{202e}b\u{7}c\u{200b}\td\nNO", Some("ab c d")),
            ("NO", None),
            ("so what", Some("so what")),
            ("", None),
        ] {
            assert_eq!(read(text).why.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn long_answers_are_read_in_bounded_time_and_cut() {
        let long = format!("{}\nNO", "why ".repeat(1_000_000));
        let thoughtful = "</think>".repeat(100_000);
        let one_word = "a".repeat(1_000_000);
        let straddling = format!("kno{}", "!".repeat(MAX_READ_BYTES - 2));

        assert_eq!(read(&long).decision, Verdict::No);
        assert_eq!(read(&thoughtful).decision, Verdict::Unreadable);
        assert!(read(&long).why.is_some_and(|why| why.chars().count() <= MAX_REASON_CHARS));
        assert_eq!(read(&one_word).why.map(|why| why.len()), Some(MAX_REASON_CHARS));
        assert_eq!(read(&straddling).decision, Verdict::Unreadable);
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in any::<String>(), noise in "[\\PC\n]{0,60}") {
            read(&text);
            read(&noise);
        }

        #[test]
        fn only_the_last_line_decides(text in "[^<>]*", yes in any::<bool>()) {
            let answer = format!("{text}\n{}", if yes { "YES" } else { "NO" });

            prop_assert_eq!(read(&answer).decision, if yes { Verdict::Yes } else { Verdict::No });
        }
    }
}
