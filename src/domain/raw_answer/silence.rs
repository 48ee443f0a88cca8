//! Recognises words that say that nothing is said: `[silence]`, `*stays silent*`, `NO_REPLY`.

use super::Look;

/// What stands between brackets or asterisks, in any case. `*stays silent*` may also name the companion.
const SILENT: [&str; 45] = [
    "silence",
    "silent",
    "stays silent",
    "stay silent",
    "staying silent",
    "remains silent",
    "remain silent",
    "remaining silent",
    "keeps silent",
    "is silent",
    "says nothing",
    "say nothing",
    "stays quiet",
    "remains quiet",
    "no response",
    "no reply",
    "no answer",
    "no message",
    "no output",
    "no statement",
    "no text",
    "no words",
    "no response needed",
    "no reply needed",
    "no response necessary",
    "no reply necessary",
    "no response required",
    "no reply required",
    "nothing to say",
    "nothing to add",
    "does not respond",
    "does not reply",
    "does not answer",
    "does not speak",
    "doesnt respond",
    "doesnt reply",
    "doesnt answer",
    "doesnt speak",
    "empty response",
    "empty message",
    "empty reply",
    "listens silently",
    "silent reply",
    "pass",
    "skip",
];
/// What a model, or its template, writes alone.
const MARKS: [&str; 14] = [
    "NO_REPLY",
    "NO REPLY",
    "NO_RESPONSE",
    "NO RESPONSE",
    "NOREPLY",
    "NO_ANSWER",
    "SILENT_REPLY",
    "STAY_SILENT",
    "SILENCE",
    "SILENT",
    "YES",
    "NO",
    "null",
    "undefined",
];
const BRACKETS: [(char, char); 5] = [('(', ')'), ('[', ']'), ('*', '*'), ('_', '_'), ('<', '>')];
/// A longer text says something, in bytes.
const MAX_LENGTH: usize = 100;

/// Whether a text says only that nothing is said. `More`: so far it may.
pub(super) fn silence(text: &str, companion_name: &str, is_end: bool) -> Look<()> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_LENGTH || text.contains('\n') {
        return Look::No;
    }
    if text.chars().all(|c| matches!(c, '.' | '…' | '。' | '・' | '—' | '–' | '-' | ' ')) {
        return if is_end { Look::Yes(()) } else { Look::More };
    }
    let opened = text.trim_start_matches(|c| BRACKETS.iter().any(|(open, _)| *open == c));
    let closed = opened.trim_end_matches(|c: char| BRACKETS.iter().any(|(_, close)| *close == c) || matches!(c, '.' | ' '));
    let has_brackets = opened.len() < text.len();
    let is_closed = opened.ends_with(|c| BRACKETS.iter().any(|(_, close)| *close == c));
    let words = plain(closed);
    let subject = plain(companion_name);
    let unsubjected = words.strip_prefix(&subject).filter(|_| !subject.is_empty()).map_or(&*words, str::trim_start);
    let is_silent = |phrase: &str| phrase == unsubjected || phrase == words;
    let may_be_silent =
        |phrase: &str| phrase.starts_with(unsubjected) || subject.starts_with(&*words) || phrase.starts_with(&*words);
    let mark = text.trim_matches(['*', '`', '_', '[', ']', '(', ')', '"']);
    let is_mark = |known: &str| mark == known || mark.strip_prefix(known).is_some_and(|rest| rest.trim() == known);
    let may_be_mark =
        |known: &str| known.starts_with(mark) || mark.strip_prefix(known).is_some_and(|rest| known.starts_with(rest.trim()));
    match is_end {
        true if has_brackets && is_closed && SILENT.iter().any(|phrase| is_silent(phrase)) => Look::Yes(()),
        true if MARKS.iter().any(|known| is_mark(known)) => Look::Yes(()),
        false if has_brackets && SILENT.iter().any(|phrase| may_be_silent(phrase)) => Look::More,
        false if MARKS.iter().any(|known| may_be_mark(known)) => Look::More,
        _ => Look::No,
    }
}

/// Whether a line of an answer with other words is a mark that nothing is said.
pub(super) fn is_mark(line: &str) -> bool {
    let line = line.trim().trim_matches(['*', '`', '[', ']']);
    line.contains('_') && MARKS.contains(&line)
}

/// The words in lower case, without signs.
fn plain(text: &str) -> String {
    let joined = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-');
    let words: String = text.chars().filter(joined).map(|c| if matches!(c, '_' | '-') { ' ' } else { c }).collect();
    words.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line may become such a mark.
pub(super) fn may_become_mark(line: &str) -> bool {
    let words = line.trim_start_matches(['*', '`', '[']);
    line.len() <= MAX_LENGTH && MARKS.iter().any(|mark| mark.contains('_') && mark.starts_with(words))
}
