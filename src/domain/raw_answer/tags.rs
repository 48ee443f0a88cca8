//! Recognises the markers of models in an answer.

use super::Trimmed;
use super::cursor::{Cursor, Found, More, first};
use crate::marks::{AROUND_NAMES, END_OF_DETAILS, PAIRS, TAGS, TURNS};
use crate::text::first_bytes;

/// The maximum length of a tag's attributes and of a Harmony channel header, in bytes.
const MAX_HEADER: usize = 256;
/// The maximum length of a marker's name, in bytes.
const MAX_NAME: usize = 40;
/// The markers around a channel header in the OpenAI harmony response format.
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
/// The rest of the final channel's header if a server removes the markers.
const BARE_FINAL: &str = "assistantfinal";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Hidden text begins.
    Open(Family),
    /// Hidden text ends.
    Close(Family),
    /// A Harmony channel begins whose text is part of the answer.
    Final,
    /// A turn or a document begins or ends.
    Turn,
}

/// Markers that open and close each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Tags in angle brackets. A model may open with one name and close with another one.
    Tag(Trimmed),
    /// The index of an entry in [`PAIRS`].
    Pair(usize),
    /// A Harmony channel.
    Channel(Trimmed),
    /// A Harmony channel without its markers, which the server removed: `analysis…assistantfinal…`.
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

    /// The position after the closing marker, if it begins here. A marker that also begins the next channel is not consumed.
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

/// A marker and the position after it.
type FoundMark<'a> = Result<Option<(Mark, Cursor<'a>)>, More>;

/// The marker that begins here.
pub(super) fn mark(text: Cursor<'_>) -> FoundMark<'_> {
    first([channel, tag, literal, turn], |find| find(text))
}

/// The beginning of an answer in Harmony channels without markers. A channel's name alone is an ordinary word, so it counts only
/// with a role before it or text joined to it.
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

/// A Harmony header: the channel's name, the recipient, and `<|message|>`. Without `<|message|>`, the name alone is the header.
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

/// A tag in angle brackets, recognised by its name: `<think>`, `</ think >`, `<think type="hidden">`, `<think/>`. Tool calls have
/// many names.
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

/// A marker with a fixed text.
fn literal(text: Cursor<'_>) -> FoundMark<'_> {
    let of_pair = |(at, (open, close, _)): (usize, &(&'static str, &'static str, _))| {
        [(*open, Mark::Open(Family::Pair(at))), (*close, Mark::Close(Family::Pair(at)))]
    };
    let marks = PAIRS.iter().enumerate().flat_map(of_pair).chain(TURNS.map(|turn| (turn, Mark::Turn)));
    let marks = marks.filter(|(literal, _)| !literal.is_empty() && *literal != END_OF_DETAILS);
    first(marks, |(literal, mark)| Ok(text.after_any_case(literal)?.map(|end| (mark, end))))
}

/// A marker that begins or ends a turn, with any name inside. At the end of the answer it may be truncated.
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
