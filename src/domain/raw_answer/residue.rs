//! Removes what decoders and search tools leave between words: marks of citations, and tokens that were not decoded.

use super::Look;

/// The marks around a citation in answers of OpenAI's models, and the brackets of older ones: `【4:0†source】`.
const CITATION: (char, char) = ('\u{e200}', '\u{e201}');
const SOURCE: (char, char) = ('【', '】');
/// A longer text between them is no citation.
const MAX_CITATION: usize = 200;
/// Spaces and line feeds of tokenisers.
const SPACES: [(char, char); 3] = [('\u{2581}', ' '), ('Ġ', ' '), ('Ċ', '\n')];

/// Passes a text on without them. It does not matter in which pieces it comes.
#[derive(Clone, Debug, Default)]
pub(super) struct Residue {
    /// What is undecided.
    head: String,
    /// The last character before.
    before: Option<char>,
}

impl Residue {
    pub(super) fn feed(&mut self, piece: &str, is_end: bool, say: &mut impl FnMut(&str)) {
        self.head.push_str(piece);
        let (mut at, mut from) = (0, 0);
        while let Some(c) = self.head[at..].chars().next() {
            let rest = &self.head[at..];
            let found = match c {
                '<' => token(rest),
                _ if c == CITATION.0 => between(rest, CITATION.1).map(|length| (length, "")),
                _ if c == SOURCE.0 => source(rest),
                _ => space(c, self.before, &rest[c.len_utf8()..]),
            };
            match found {
                Look::More if !is_end => break,
                Look::Yes((length, instead)) => {
                    say(&self.head[from..at]);
                    say(instead);
                    at += length;
                    from = at;
                }
                _ => at += c.len_utf8(),
            }
            self.before = match found {
                Look::Yes((_, instead)) => instead.chars().next_back().or(self.before),
                _ => Some(c),
            };
        }
        say(&self.head[from..at]);
        self.head.drain(..at);
    }
}

/// `<unk>`, and a byte such as `<0x0A>`, of which only a line feed means something by itself.
fn token(text: &str) -> Look<(usize, &'static str)> {
    let unknown = "<unk>";
    if text.starts_with(unknown) {
        return Look::Yes((unknown.len(), ""));
    }
    let is_byte = |text: &str| {
        let shape = text.bytes().zip(*b"<0xHH>").all(|(byte, shape)| match shape {
            b'H' => byte.is_ascii_hexdigit(),
            _ => byte == shape,
        });
        shape && text.len() <= 6
    };
    match text.get(..6) {
        Some(byte) if is_byte(byte) => Look::Yes((6, if byte == "<0x0A>" { "\n" } else { "" })),
        None if unknown.starts_with(text) || is_byte(text) => Look::More,
        _ => Look::No,
    }
}

fn between(text: &str, close: char) -> Look<usize> {
    match text.find(close) {
        Some(end) if end <= MAX_CITATION => Look::Yes(end + close.len_utf8()),
        None if text.len() <= MAX_CITATION => Look::More,
        _ => Look::No,
    }
}

/// Such brackets are also quotation marks, which have no dagger behind a number.
fn source(text: &str) -> Look<(usize, &'static str)> {
    let inside = &text[SOURCE.0.len_utf8()..];
    let number = inside.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    match number.chars().next() {
        None => Look::More,
        Some('†') if number.len() < inside.len() => between(text, SOURCE.1).map(|length| (length, "")),
        Some(_) => Look::No,
    }
}

/// A sign that stands for a space, between the end of one word and the beginning of the next.
fn space(c: char, before: Option<char>, after: &str) -> Look<(usize, &'static str)> {
    let Some((sign, instead)) = SPACES.iter().find(|(sign, _)| *sign == c) else { return Look::No };
    let is_joined = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '!' | '?' | ':' | ';');
    match (before, after.chars().next()) {
        (Some(before), Some(next)) if is_joined(before) && (next.is_alphanumeric() || next == c) => {
            Look::Yes((sign.len_utf8(), if *instead == ' ' { " " } else { "\n" }))
        }
        (Some(before), None) if is_joined(before) => Look::More,
        _ => Look::No,
    }
}
