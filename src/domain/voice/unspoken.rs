//! Finds the parts of a text that a voice does not speak as written: blocks of code, addresses, stage directions (docs/design/voice.md A-61).

use std::ops::Range;

use super::super::links::web_address;

/// The word that is spoken in place of a block of code.
const CODE: &str = "code";
/// The maximum length of a stage direction, in characters.
const LONGEST_DIRECTION: usize = 200;
/// Marks that may come between the end of a sentence and the next one.
const CLOSING: [char; 8] = ['"', '\'', '”', '’', ')', '」', '』', '）'];
const OPENING: [char; 8] = [' ', '\t', '"', '“', '„', '«', '「', '『'];

/// The fence of a block of code: its character, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence(char, usize);

impl Fence {
    /// Parses a line as a fence.
    pub(super) fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let count = line.len() - rest.len();
        (count >= 3 && !rest.contains('`')).then_some(Self(mark, count))
    }

    /// Whether a line closes the block that this fence opened.
    pub(super) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.1 && line.chars().all(|c| c == self.0)
    }
}

/// Whether a text ends inside a block of code.
pub(super) fn ends_in_code(text: &str) -> bool {
    let next = |open: Option<Fence>, line: &str| match open {
        Some(fence) => (!fence.is_closed_by(line)).then_some(fence),
        None => Fence::of(line),
    };
    text.lines().fold(None, next).is_some()
}

/// The parts of a text that are not spoken as written, ascending, each with its replacement.
pub(super) fn unspoken(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    if !["*", "://", "www.", "WWW.", "```", "~~~"].iter().any(|mark| text.contains(mark)) {
        return found;
    }
    let mut code: Option<(Fence, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        match code {
            Some((fence, start)) if fence.is_closed_by(line) => {
                found.push((start..end, CODE));
                code = None;
            }
            Some(_) => {}
            None => match Fence::of(line) {
                Some(fence) => code = Some((fence, at)),
                None => in_line(text, at..end, &mut found),
            },
        }
        at += line.len();
    }
    found.extend(code.map(|(_, start)| (start..text.len(), CODE)));
    found
}

/// Finds addresses and stage directions in one line.
fn in_line<'a>(text: &'a str, line: Range<usize>, found: &mut Vec<(Range<usize>, &'a str)>) {
    let mut at = line.start;
    while let Some(c) = text[at..line.end].chars().next() {
        let rest = &text[at..line.end];
        if let Some(length) = direction(&text[line.start..at], rest) {
            // Also removes one white space after it, so that only one is left between the words on both sides.
            let space = rest[length..].chars().next().filter(|c| matches!(c, ' ' | '\t')).map_or(0, char::len_utf8);
            found.push((at..at + length + space, ""));
            at += length + space;
        } else if let Some((length, host)) = address(text, at) {
            found.push((at..at + length, host));
            at += length;
        } else {
            at += c.len_utf8();
        }
    }
}

fn address(text: &str, at: usize) -> Option<(usize, &str)> {
    let is_begin = matches!(text.as_bytes()[at], b'h' | b'H' | b'w' | b'W');
    is_begin.then(|| web_address(text[..at].chars().next_back(), &text[at..])).flatten()
}

/// The byte length of the stage direction at the beginning of a text: a span in single asterisks that is a whole sentence, or begins one. `before` is
/// the text before it in the line. `*Never* do that` begins with emphasis, not with a direction.
pub(super) fn direction(before: &str, text: &str) -> Option<usize> {
    let inside = text.strip_prefix('*')?;
    if inside.starts_with(|c: char| c == '*' || c.is_whitespace()) || !begins_sentence(before) {
        return None;
    }
    let (words, after) = inside.split_at(inside.find(['*', '\n'])?);
    let after = after.strip_prefix('*')?;
    let goes_on = |c: char| c.is_lowercase() || matches!(c, ',' | ';' | ':');
    let is_emphasis = words.starts_with(char::is_uppercase) && after.trim_start().starts_with(goes_on);
    let is_span = !words.ends_with(char::is_whitespace)
        && !after.starts_with(|c: char| c == '*' || c.is_alphanumeric() || c == '\'' || c == '’');
    let is_of_words =
        words.contains(char::is_alphanumeric) && !words.contains(['|', '`']) && words.chars().count() <= LONGEST_DIRECTION;
    (is_span && is_of_words && !is_emphasis).then_some(words.len() + 2)
}

/// Whether a text is the beginning of a possible stage direction that has not ended yet.
pub(super) fn ends_in_direction(text: &str) -> bool {
    let inside = text.trim_start().strip_prefix('*');
    inside.is_some_and(|inside| {
        let is_open = !inside.starts_with(char::is_whitespace) && !inside.contains(['*', '\n']);
        is_open && inside.chars().count() <= LONGEST_DIRECTION
    })
}

fn begins_sentence(before: &str) -> bool {
    let before = before.trim_end_matches(OPENING);
    before.is_empty()
        || before.ends_with('*')
        || before.trim_end_matches(CLOSING).ends_with(['.', '!', '?', '…', '。', '！', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_in_asterisks_that_is_or_opens_a_sentence_is_a_direction() {
        for (text, expected) in [
            ("*smiles*", &["*smiles*"][..]),
            ("*smiles* Hello", &["*smiles* "]),
            ("*Smiles warmly* Hello", &["*Smiles warmly* "]),
            ("Hi. *waves* Bye!", &["*waves* "]),
            ("Hi! *waves*", &["*waves*"]),
            ("“Hi.” *waves*", &["*waves*"]),
            ("*smiles* *waves* Hello", &["*smiles* ", "*waves* "]),
            ("Well\n*sighs* no", &["*sighs* "]),
            ("*笑* 你好。*挥手*", &["*笑* ", "*挥手*"]),
            ("*looks up. Frowns.* Oh", &["*looks up. Frowns.* "]),
            ("I *really* mean it", &[]),
            ("*Never* do that", &[]),
            ("*I*, for one", &[]),
            ("*Aria*'s boat", &[]),
            ("**Yes.** No", &[]),
            ("***Yes*** no", &[]),
            ("* one * two", &[]),
            ("*open", &[]),
            ("*a\nb*", &[]),
            ("2*3*4", &[]),
            ("Done. 2 * 3 * 4", &[]),
            ("*5*6", &[]),
        ] {
            let found: Vec<_> = unspoken(text).into_iter().map(|(range, spoken)| (&text[range], spoken)).collect();

            assert_eq!(found, expected.iter().map(|direction| (*direction, "")).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn code_and_addresses_are_named() {
        for (text, expected) in [
            ("Try:\n```python\nprint(1)\n```\nIt counts.", &[("```python\nprint(1)\n```", "code")][..]),
            ("~~~\n*a* https://a.b\n~~~~", &[("~~~\n*a* https://a.b\n~~~~", "code")]),
            ("```\nnever closed", &[("```\nnever closed", "code")]),
            ("```\na\n```\n\n```\nb\n```", &[("```\na\n```", "code"), ("```\nb\n```", "code")]),
            ("```one line```", &[]),
            (
                "See https://example.org/a?b=c, or (www.a.example/x). Bye",
                &[("https://example.org/a?b=c", "example.org"), ("www.a.example/x", "a.example")],
            ),
            ("example.org and a://b", &[]),
        ] {
            let found: Vec<_> = unspoken(text).into_iter().map(|(range, spoken)| (&text[range], spoken)).collect();

            assert_eq!(found, expected, "{text}");
        }
    }
}
