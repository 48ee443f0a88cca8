//! Recognises answers that only announce silence: `[silence]`, `*stays silent*`, `NO_REPLY`.

use super::cursor::{Cursor, More};

/// An announcement of silence consists of words of both lists and possibly the companion's name, with at least one word of the
/// first list. It is in brackets, in emphasis or in capital letters.
const NAMES: &str =
    "yes no silence silent silently quiet nothing pass skip response reply answer message output statement respond speak";
const OTHERS: &str = "stays stay staying remains remain remaining keeps is listens says say not to add needed necessary required does doesnt empty";
/// The beginnings of an announcement in capital letters.
const CAPITALS: [&str; 4] = ["NO", "YES", "SILEN", "STAY"];
/// The maximum length of an announcement, in bytes.
const MAX_LENGTH: usize = 100;

/// Whether a text only announces silence.
pub(super) fn is_silence(text: Cursor<'_>, companion_name: &str) -> Result<bool, More> {
    let words = text.rest().trim();
    if words.len() > MAX_LENGTH || words.contains('\n') {
        return Ok(false);
    }
    let is_dots = words.chars().all(|c| matches!(c, '.' | '…' | '。' | '・' | '—' | '–' | '-' | ' '));
    match text.at_end(is_dots || says_nothing(words, companion_name, true)) {
        Err(More) if !is_dots && !says_nothing(words, companion_name, false) => Ok(false),
        found => found,
    }
}

/// Whether these words announce silence, as far as they have arrived.
fn says_nothing(text: &str, companion_name: &str, is_whole: bool) -> bool {
    let inside = text.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '!' | '?'));
    let may_begin = |begin: &str| inside.starts_with(begin) || !is_whole && begin.starts_with(inside);
    let is_capital = !inside.contains(char::is_lowercase) && CAPITALS.into_iter().any(may_begin);
    if !is_capital && !text.starts_with(['(', '[', '*', '_', '<']) {
        return false;
    }
    let (words, name) = (inside.to_lowercase().replace(['\'', '’'], ""), companion_name.to_lowercase());
    let mut words: Vec<&str> = words.split([' ', '_', '-']).filter(|word| !word.is_empty()).collect();
    if !is_whole {
        words.pop();
    }
    let is_of = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    let is_silent = words.iter().all(|word| [NAMES, OTHERS, &name].iter().any(|list| is_of(list, word)));
    is_silent && (!is_whole || words.iter().any(|word| is_of(NAMES, word)))
}
