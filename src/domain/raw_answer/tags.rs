//! Recognises the marks of models at a place in an answer.

use super::{Look, Trimmed};
use crate::domain::marks::{END_OF_DETAILS, ENDS, PAIRS, STARTS, TAGS};
use crate::domain::text::first_bytes;

/// At most this many bytes of attributes are in a tag, and of a header in one of Harmony's channels.
const MAX_HEADER: usize = 256;
/// The longest name of a mark that is not known, in bytes.
const MAX_NAME: usize = 40;
/// The name that introduces a channel of Harmony (OpenAI, "OpenAI harmony response format").
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Something begins that is not said.
    Open(Family),
    /// It ends.
    Close(Family),
    /// A tag that begins and ends at once.
    Empty,
    /// A channel of Harmony begins whose words are said.
    Final,
    /// The turn ends.
    End,
    /// A turn begins.
    Start,
    /// HTML's `<s>`, which is also a mark that begins a text.
    Strike,
}

/// Marks that open and close each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Tags in angle brackets. A model may mix their names.
    Tag(Trimmed),
    /// A line of [`PAIRS`].
    Pair(usize),
    /// A channel of Harmony.
    Channel(Trimmed),
    /// A channel of Harmony whose marks the server removed: `analysis…assistantfinal…`.
    Bare,
}

impl Mark {
    /// The same, where the channel's other marks are there.
    fn with_marks(self) -> Self {
        if self == Self::Open(Family::Bare) { Self::Open(Family::Channel(Trimmed::Channel)) } else { self }
    }
}

impl Family {
    pub(super) fn kind(self) -> Trimmed {
        match self {
            Self::Tag(kind) | Self::Channel(kind) => kind,
            Self::Pair(at) => PAIRS[at].2,
            Self::Bare => Trimmed::Channel,
        }
    }
}

/// The mark that a text begins with, and its length.
pub(super) fn mark(text: &str, is_end: bool) -> Look<(Mark, usize)> {
    let found = channel(text, is_end).or(|| tag(text)).or(|| pair(text)).or(|| {
        let of = |marks: &[&str], what| marks.iter().fold(Look::No, |found, mark| found.or(|| literal(text, mark, what)));
        of(&ENDS, Mark::End).or(|| of(&STARTS, Mark::Start)).or(|| literal(text, "<s>", Mark::Strike))
    });
    let found = if is_end { found.at_end() } else { found };
    if found == Look::No { unknown(text, is_end) } else { found }
}

/// A mark of a family that is not known, which ends the turn: `<|word|>`. It may be cut off at the end of the answer.
fn unknown(text: &str, is_end: bool) -> Look<(Mark, usize)> {
    let Some(inside) = text.strip_prefix("<|") else { return Look::No };
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
    let length = end + "<||>".len();
    match &inside[end..] {
        _ if end > MAX_NAME => Look::No,
        rest if end > 0 && rest.starts_with("|>") => Look::Yes((Mark::End, length)),
        "" | "|" if is_end && end > 0 => Look::Yes((Mark::End, text.len())),
        "" | "|" => Look::More,
        _ => Look::No,
    }
}

/// Whether a text begins with the mark that closes this, and the length of it. What closes a channel may belong to what follows.
pub(super) fn closes(family: Family, text: &str, is_end: bool) -> Look<usize> {
    let ends = |literals: &[&str]| literals.iter().fold(Look::No, |found, text_of| found.or(|| literal(text, text_of, ())));
    let found = match family {
        Family::Tag(kind) => match tag(text) {
            Look::Yes((Mark::Close(Family::Tag(closed)), length)) if closed == kind => Look::Yes(length),
            Look::More => Look::More,
            _ => Look::No,
        },
        Family::Pair(at) if PAIRS[at].1.is_empty() => Look::No,
        Family::Pair(at) => literal(text, PAIRS[at].1, ()).map(|(_, length)| length),
        Family::Channel(_) => {
            ends(&["<|end|>", "<|call|>", "<|return|>"]).map(|(_, length)| length).or(|| ends(&["<|start|>", CHANNEL]).map(|_| 0))
        }
        Family::Bare => exactly(text, FINAL).or(|| literal(text, CHANNEL, ()).map(|_| 0)),
    };
    if is_end { found.at_end() } else { found }
}

/// What is left of the header of the final channel, if a server removes the marks.
pub(super) const FINAL: &str = "assistantfinal";

/// The beginning of an answer in Harmony's channels whose marks the server removed. The word alone is a word, so that something must be joined to it.
pub(super) fn bare_channel(text: &str, is_end: bool) -> Look<(Mark, usize)> {
    let joined = |word: &'static str, is_joined: fn(char) -> bool, what: Mark| match exactly(text, word) {
        Look::Yes(length) => match text[length..].chars().next() {
            None => Look::More,
            Some(c) if is_joined(c) => Look::Yes((what, length)),
            Some(' ') if what != Mark::Final => exactly(&text[length..], " to=").map(|more| (what, length + more)),
            Some(_) => exactly(&text[length..], MESSAGE).map(|more| (what.with_marks(), length + more)),
        },
        Look::More => Look::More,
        Look::No => Look::No,
    };
    let [thoughts, calls] = [Mark::Open(Family::Bare), Mark::Open(Family::Channel(Trimmed::ToolCall))];
    let found = joined("analysis", |c| c.is_ascii_alphanumeric(), thoughts)
        .or(|| joined("commentary", |c| c.is_ascii_alphanumeric(), calls))
        .or(|| joined("final", char::is_uppercase, Mark::Final))
        .or(|| exactly(text, FINAL).map(|length| (Mark::Final, length)))
        .or(|| exactly(text, "assistantanalysis").map(|length| (thoughts, length)));
    if is_end { found.at_end() } else { found }
}

/// A header of Harmony: a channel's name, whom it is for, and `<|message|>`.
fn channel(text: &str, is_end: bool) -> Look<(Mark, usize)> {
    let begin = match literal(text, CHANNEL, ()) {
        Look::Yes((_, length)) => length,
        Look::More => return Look::More,
        Look::No => return Look::No,
    };
    let header = &text[begin..];
    let (header, length) = match first_bytes(header, MAX_HEADER).find(MESSAGE) {
        Some(end) => (&header[..end], begin + end + MESSAGE.len()),
        None if header.len() <= MAX_HEADER && !is_end => return Look::More,
        // Without it, the name alone is the header.
        _ => {
            let end = header.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(header.len());
            (&header[..end], begin + end)
        }
    };
    let is_call = header.contains("to=");
    Look::Yes(match header.trim_start() {
        name if name.starts_with("final") => (Mark::Final, length),
        _ if is_call => (Mark::Open(Family::Channel(Trimmed::ToolCall)), length),
        _ => (Mark::Open(Family::Channel(Trimmed::Channel)), length),
    })
}

/// A tag in angle brackets, by its name: `<think>`, `</ think >`, `<think type="hidden">`, `<think/>`.
fn tag(text: &str) -> Look<(Mark, usize)> {
    let Some(inside) = text.strip_prefix('<') else { return Look::No };
    let name = inside.trim_start_matches([' ', '/']);
    let before = &inside[..inside.len() - name.len()];
    if before.len() > 4 {
        return Look::No;
    }
    let end = name.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '_' | ':' | '-'))).unwrap_or(name.len());
    let (name, attributes) = name.split_at(end);
    let is_call = name.eq_ignore_ascii_case("function") && attributes.starts_with('=');
    let known = TAGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind);
    let is_call = is_call || name.len() <= MAX_NAME && name.to_ascii_lowercase().contains("tool_call");
    let known = if is_call { Some(Trimmed::ToolCall) } else { known };
    if attributes.is_empty() {
        return if name.len() <= MAX_NAME { Look::More } else { Look::No };
    }
    let closed_function = before.contains('/') && name.eq_ignore_ascii_case("function");
    let Some(kind) = known.or(closed_function.then_some(Trimmed::ToolCall)) else { return Look::No };
    let Some(length) = first_bytes(attributes, MAX_HEADER).find(['>', '<', '\n']) else {
        return if attributes.len() <= MAX_HEADER { Look::More } else { Look::No };
    };
    let (attributes, rest) = attributes.split_at(length);
    let is_plain = attributes.trim_matches([' ', '/']).is_empty();
    let is_tag = is_plain || attributes.starts_with([' ', '=']) && attributes.contains('=');
    if !is_tag || !rest.starts_with('>') {
        return Look::No;
    }
    let length = text.len() - rest.len() + 1;
    Look::Yes(match (before.contains('/'), attributes.ends_with('/')) {
        (true, _) => (Mark::Close(Family::Tag(kind)), length),
        (false, true) => (Mark::Empty, length),
        (false, false) => (Mark::Open(Family::Tag(kind)), length),
    })
}

fn pair(text: &str) -> Look<(Mark, usize)> {
    let of = |(at, (open, close, _)): (usize, &(&str, &str, Trimmed))| {
        let closed = || literal(text, close, Mark::Close(Family::Pair(at)));
        literal(text, open, Mark::Open(Family::Pair(at))).or(|| if *close == END_OF_DETAILS { Look::No } else { closed() })
    };
    PAIRS.iter().enumerate().fold(Look::No, |found, pair| found.or(|| of(pair)))
}

/// Whether a text begins with another, and its length.
fn exactly(text: &str, expected: &str) -> Look<usize> {
    match text.starts_with(expected) {
        true => Look::Yes(expected.len()),
        false if expected.starts_with(text) => Look::More,
        false => Look::No,
    }
}

/// Whether a text begins with another, in any case.
fn literal<T>(text: &str, expected: &str, what: T) -> Look<(T, usize)> {
    let length = expected.len().min(text.len());
    if expected.is_empty() || !text.as_bytes()[..length].eq_ignore_ascii_case(&expected.as_bytes()[..length]) {
        return Look::No;
    }
    if length < expected.len() { Look::More } else { Look::Yes((what, length)) }
}
