//! Reads the answer of a main model that decides and speaks in one call (docs/design/gate.md G-42). An answer that begins with a marker is a pass.

use super::answer::MAX_REASON_CHARS;

/// The marker that the model writes instead of a statement.
pub const MARKER: &str = "PASS";

/// The kind of the text received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It may be the beginning of the marker.
    Undecided,
    Speaks,
    /// The model passes, with its reason if it gave one.
    Passes(Option<String>),
}

/// Classifies the text of an answer. `is_whole`: no more text follows.
pub fn choice(words: &str, is_whole: bool) -> Choice {
    let begin = words.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '"' | '“' | '`' | '[' | '('));
    let is_marker = begin.get(..MARKER.len()).is_some_and(|word| word.eq_ignore_ascii_case(MARKER));
    if !is_marker {
        let may_become = MARKER.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin));
        return if !is_whole && may_become { Choice::Undecided } else { Choice::Speaks };
    }
    let (word, after) = begin.split_at(MARKER.len());
    let is_capital = word == MARKER;
    let after = after.trim_start_matches(['*', '_', '"', '”', '`', ']', ')']);
    match after.trim_start().chars().next() {
        None if !is_whole => Choice::Undecided,
        // The marker counts only alone or before a reason. Within a sentence it is an ordinary word.
        None => Choice::Passes(None),
        Some(':') => passes(after, is_whole),
        Some('.' | '!' | '…' | ';') if after.trim().chars().count() == 1 => passes(after, is_whole),
        Some('.' | '!' | '…' | ';' | '-' | '–' | '—' | ',' | '(') if is_capital => passes(after, is_whole),
        Some(_) if is_capital && after.starts_with('\n') => passes(after, is_whole),
        Some(_) => Choice::Speaks,
    }
}

fn passes(after: &str, is_whole: bool) -> Choice {
    if !is_whole {
        return Choice::Undecided;
    }
    let line =
        after.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—' | ',' | '(' | ')' | '*' | '_' | '`'));
    let line = line.lines().next().unwrap_or_default().trim_start_matches(['.', '!', '…', ';', ' ']);
    Choice::Passes(line.contains(char::is_alphanumeric).then(|| line.chars().take(MAX_REASON_CHARS).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_and_its_reason_are_read_and_words_are_words() {
        for (answer, reason) in [
            ("PASS: They talk to Bob.", Some("They talk to Bob.")),
            ("**PASS:** They talk to Bob.", Some("They talk to Bob.")),
            ("PASS - nothing to add", Some("nothing to add")),
            ("PASS\nThey talk to Bob.", Some("They talk to Bob.")),
            ("PASS", None),
            ("[PASS]", None),
            ("PASS.", None),
            ("Pass: they talk to Bob.", Some("they talk to Bob.")),
            ("pass.", None),
            ("PASS!", None),
        ] {
            assert_eq!(choice(answer, true), Choice::Passes(reason.map(str::to_owned)), "{answer}");
        }
        for answer in ["Pass me the salt.", "PASS me the salt.", "PASSING by.", "Yes, at six.", "", "PA"] {
            assert_eq!(choice(answer, true), Choice::Speaks, "{answer}");
        }
    }

    #[test]
    fn nothing_is_decided_before_the_marker_is_excluded() {
        for (words, is_undecided) in [
            ("", true),
            ("P", true),
            ("*PAS", true),
            ("PASS", true),
            ("PASS: a", true),
            ("PASS m", false),
            ("Ye", false),
            ("Pa", true),
            ("Pas d", false),
        ] {
            assert_eq!(choice(words, false) == Choice::Undecided, is_undecided, "{words:?}");
        }
    }
}
