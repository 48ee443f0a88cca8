//! Recognises the marks of models at a place in an answer.

use super::Trimmed;
use super::cursor::{Cursor, Found, More, first};
use crate::marks::{AROUND_NAMES, END_OF_DETAILS, PAIRS, TAGS, TURNS};
use crate::text::first_bytes;

/// At most this many bytes of attributes are in a tag, and of a header in one of Harmony's channels.
const MAX_HEADER: usize = 256;
/// The longest name of a mark, in bytes.
const MAX_NAME: usize = 40;
/// The marks around the header of a channel of Harmony (OpenAI, "OpenAI harmony response format").
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
/// What is left of the header of the final channel, if a server removes the marks.
const BARE_FINAL: &str = "assistantfinal";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Something begins that is not said.
    Open(Family),
    /// It ends.
    Close(Family),
    /// A channel of Harmony begins whose words are said.
    Final,
    /// A turn, or a text, begins or ends.
    Turn,
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

impl Family {
    pub fn kind(self) -> Trimmed {
        match self {
            Self::Tag(kind) | Self::Channel(kind) => kind,
            Self::Pair(at) => PAIRS[at].2,
            Self::Bare => Trimmed::Channel,
        }
    }

    /// The place after the mark that closes this, if the text begins with it. What closes a channel may belong to what follows.
    pub fn close(self, text: Cursor<'_>) -> Found<'_> {
        let (closing, following): (&[&str], &[&str]) = match self {
            Self::Tag(kind) => {
                return Ok(tag(text)?.filter(|(mark, _)| *mark == Mark::Close(Self::Tag(kind))).map(|(_, end)| end));
            }
            Self::Pair(at) if PAIRS[at].1.is_empty() => return Ok(None),
            Self::Pair(at) => (&[PAIRS[at].1], &[]),
            Self::Channel(_) => (&["<|end|>", "<|call|>", "<|return|>"], &["<|start|>", CHANNEL]),
            Self::Bare => (&[BARE_FINAL], &[CHANNEL]),
        };
        let closed = first(closing, |mark| text.after_any_case(mark))?;
        if closed.is_some() { Ok(closed) } else { first(following, |mark| Ok(text.after(mark)?.map(|_| text))) }
    }
}

/// A mark, and the place after it.
type FoundMark<'a> = Result<Option<(Mark, Cursor<'a>)>, More>;

/// The mark that a text begins with.
pub(super) fn mark(text: Cursor<'_>) -> FoundMark<'_> {
    for find in [channel, tag, literal, turn] {
        if let Some(found) = find(text)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The beginning of an answer in Harmony's channels whose marks the server removed. The word alone is a word, so that something must be joined to it.
pub(super) fn bare_channel(text: Cursor<'_>) -> FoundMark<'_> {
    let (thoughts, call) = (Mark::Open(Family::Bare), Mark::Open(Family::Channel(Trimmed::ToolCall)));
    let name = text.after("assistant")?.unwrap_or(text);
    for (word, mark) in [("analysis", thoughts), ("commentary", call), ("final", Mark::Final)] {
        let Some(end) = name.after(word)? else { continue };
        let is_next = |c: char| if mark == Mark::Final { c.is_uppercase() } else { c.is_ascii_alphanumeric() };
        if !text.until(name).is_empty() || end.next()?.is_some_and(is_next) {
            return Ok(Some((mark, end)));
        }
        return Ok(first([MESSAGE, " to="], |more| end.after(more))?.map(|end| (mark, end)));
    }
    Ok(None)
}

/// A header of Harmony: a channel's name, whom it is for, and `<|message|>`. Without that, the name alone is the header.
fn channel(text: Cursor<'_>) -> FoundMark<'_> {
    let Some(begin) = text.after(CHANNEL)? else { return Ok(None) };
    let name = begin.past(|c| c.is_ascii_alphabetic(), MAX_NAME)?;
    let end = match first_bytes(begin.rest(), MAX_HEADER).find(MESSAGE) {
        Some(length) => begin.moved(length),
        None if begin.rest().len() <= MAX_HEADER => begin.at_end(name)?,
        None => name,
    };
    let header = begin.until(end).trim_start();
    let kind = if header.contains("to=") { Trimmed::ToolCall } else { Trimmed::Channel };
    let mark = if header.starts_with("final") { Mark::Final } else { Mark::Open(Family::Channel(kind)) };
    Ok(Some((mark, end.after(MESSAGE)?.unwrap_or(end))))
}

/// A tag in angle brackets, by its name: `<think>`, `</ think >`, `<think type="hidden">`, `<think/>`. Calls of tools have many names.
fn tag(text: Cursor<'_>) -> FoundMark<'_> {
    let Some(begin) = text.after("<")? else { return Ok(None) };
    let start = begin.past(|c| matches!(c, ' ' | '/'), 4)?;
    let end = start.past(|c| c.is_ascii_alphabetic() || matches!(c, '_' | ':' | '-'), MAX_NAME)?;
    let name = start.until(end).to_ascii_lowercase();
    let is_closing = begin.until(start).contains('/');
    let is_function = name == "function" && (is_closing || end.after("=")?.is_some());
    let kind = match TAGS.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => *kind,
        None if is_function || name.contains("tool_call") => Trimmed::ToolCall,
        None => return Ok(None),
    };
    let close = end.past(|c| !matches!(c, '>' | '<' | '\n'), MAX_HEADER)?;
    let attributes = end.until(close);
    let is_plain = attributes.trim_matches(' ').is_empty() || is_closing && attributes == "/";
    let is_tag = is_plain || attributes.starts_with([' ', '=']) && attributes.contains('=');
    let Some(after) = close.after(">")?.filter(|_| is_tag) else { return Ok(None) };
    let family = Family::Tag(kind);
    Ok(Some((if is_closing { Mark::Close(family) } else { Mark::Open(family) }, after)))
}

/// A mark of another shape.
fn literal(text: Cursor<'_>) -> FoundMark<'_> {
    let of_pair = |(at, (open, close, _)): (usize, &(&'static str, &'static str, _))| {
        [(*open, Mark::Open(Family::Pair(at))), (*close, Mark::Close(Family::Pair(at)))]
    };
    let marks = PAIRS.iter().enumerate().flat_map(of_pair).chain(TURNS.map(|turn| (turn, Mark::Turn)));
    for (literal, mark) in marks.filter(|(literal, _)| !literal.is_empty() && *literal != END_OF_DETAILS) {
        if let Some(end) = text.after_any_case(literal)? {
            return Ok(Some((mark, end)));
        }
    }
    Ok(None)
}

/// A mark that begins or ends a turn, whatever its name is. At the end of the answer it may be cut off.
fn turn(text: Cursor<'_>) -> FoundMark<'_> {
    for (open, close) in AROUND_NAMES {
        let Some(begin) = text.after(open)? else { continue };
        let end = begin.past(|c| c.is_alphanumeric() || matches!(c, '_' | '\u{2581}'), MAX_NAME)?;
        let is_cut = close.starts_with(end.rest());
        let after = end.after(close)?.or_else(|| is_cut.then(|| end.moved(end.rest().len())));
        return Ok(after.filter(|_| !begin.until(end).is_empty()).map(|after| (Mark::Turn, after)));
    }
    Ok(None)
}
