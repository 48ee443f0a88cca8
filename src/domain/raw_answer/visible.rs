//! Drops the hidden parts of an answer: thoughts, channels, tool calls, and everything after the end of the turn.

use super::Trimmed;
use super::code::{Place, object_length, span};
use super::cursor::{Cursor, Found, MAX_HELD, More, first};
use super::stages::{Stage, Step};
use super::tags::{Family, Mark, bare_channel, mark};
use crate::marks::PROMPT_PARTS;
use crate::text::first_bytes;
use crate::vote_fields::begins_with_field;

/// The first characters of markers and of code.
const BEGINNINGS: [char; 6] = ['<', '[', ']', '&', '\u{25c1}', '`'];
/// Signs around a marker that is only mentioned.
const QUOTES: [char; 13] = ['"', '\'', '“', '”', '„', '«', '»', '‘', '’', '「', '」', '(', ')'];
/// Punctuation after a marker that is mentioned in prose.
const PUNCTUATION: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', '…', '。', '，', '、', '；'];
/// The author names in a turn's header, before the words: the companion's own roles, and those of other authors.
const OWN_ROLES: [&str; 5] = ["assistant", "model", "chatbot", "bot", "ai"];
const OTHER_ROLES: [&str; 5] = ["user", "human", "system", "tool", "observation"];

/// The use of an answer. In both cases, markers inside JSON objects are ordinary text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A statement. Thoughts and JSON objects count only at the beginning of a line.
    #[default]
    Words,
    /// A decision. Thoughts and JSON objects count anywhere. Text that begins like a vote but is not JSON counts as an object
    /// that is never closed.
    Decision,
}

#[derive(Clone, Debug, Default)]
enum Phase {
    #[default]
    Words,
    /// In a JSON object that is longer than the limit and therefore counts as never closed.
    Object,
    /// In hidden text.
    Hidden(Family),
    /// After the end of the turn.
    After,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Visible {
    purpose: Purpose,
    phase: Phase,
    place: Place,
    /// An opening marker of a thought is part of the words.
    has_mentioned: bool,
    /// A tag was removed before the words.
    has_tag: bool,
    pub has_final: bool,
    /// The end of the text before the last closing marker without an opening one, in bytes.
    pub unopened: Option<usize>,
}

impl Stage for Visible {
    fn step<'a>(&mut self, text: Cursor<'a>, is_begin: bool) -> Result<Step<'a>, More> {
        let step = match &mut self.phase {
            Phase::Words => self.in_words(text, is_begin)?,
            Phase::Object => Step::Say(text.end()),
            Phase::Hidden(family) => {
                let (family, (end, is_closed)) = (*family, hidden(*family, text)?);
                if is_closed {
                    self.has_final |= family == Family::Bare && !text.until(end).is_empty();
                    self.phase = Phase::Words;
                }
                Step::Cut(family.kind(), end)
            }
            Phase::After => self.after(text)?,
        };
        match step {
            Step::Say(end) => self.place.pass(text.until(end)),
            Step::Restart(..) => (self.phase, self.place, self.has_mentioned) = (Phase::Words, Place::default(), false),
            Step::Cut(..) | Step::Instead(..) => {}
        }
        Ok(step)
    }
}

impl Visible {
    pub fn new(purpose: Purpose) -> Self {
        Self { purpose, ..Self::default() }
    }

    /// Whether the turn has ended.
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::After)
    }

    fn in_words<'a>(&mut self, text: Cursor<'a>, is_begin: bool) -> Result<Step<'a>, More> {
        let rest = text.rest();
        let (is_line_start, is_decision) = (self.place.is_line_start(), self.purpose == Purpose::Decision);
        if is_line_start && self.place.fence.is_none() && rest.starts_with(char::is_whitespace) {
            return Ok(Step::Say(text.moved(rest.len() - rest.trim_start().len())));
        }
        if let Some(end) = self.place.code(text)? {
            return Ok(Step::Say(end));
        }
        if rest.starts_with('{')
            && (is_line_start || is_decision)
            && let Some(end) = object(text, self.purpose)?
        {
            if !is_decision && text.until(end).len() > MAX_HELD {
                self.phase = Phase::Object;
            }
            return Ok(Step::Say(end));
        }
        let found = match if is_begin && is_line_start { bare_channel(text)? } else { None } {
            None if rest.starts_with(BEGINNINGS) => mark(text)?,
            found => found,
        };
        if let Some((mark, end)) = found {
            return self.meet(mark, text, end, is_begin);
        }
        // Output up to a line break, so that the next step starts at the beginning of a line.
        let may_begin = |c| rest.starts_with('\n') || c == '\n' || BEGINNINGS.contains(&c) || c == '{' && is_decision;
        let next = rest.char_indices().skip(1).find(|(_, c)| may_begin(*c));
        Ok(Step::Say(next.map_or(text.end(), |(length, _)| text.moved(length))))
    }

    fn end_turn<'a>(&mut self, end: Cursor<'a>) -> Step<'a> {
        self.phase = Phase::After;
        Step::Cut(Trimmed::EndOfTurn, end)
    }

    fn begin_final<'a>(&mut self, end: Cursor<'a>, is_begin: bool) -> Step<'a> {
        self.has_final = true;
        if is_begin { Step::Cut(Trimmed::Channel, end) } else { Step::Restart(Trimmed::Channel, end) }
    }

    /// Handles a marker among the words.
    fn meet<'a>(&mut self, mark: Mark, text: Cursor<'a>, end: Cursor<'a>, is_begin: bool) -> Result<Step<'a>, More> {
        let is_line_start = self.place.is_line_start();
        let kind = if let Mark::Open(family) | Mark::Close(family) = mark { Some(family.kind()) } else { None };
        let is_thought = kind == Some(Trimmed::Thought);
        if kind == Some(Trimmed::Form) {
            self.has_tag |= is_begin;
            let is_around_words = is_begin || self.has_tag && matches!(mark, Mark::Close(_));
            return Ok(if is_around_words { Step::Cut(Trimmed::Form, end) } else { Step::Say(end) });
        }
        let is_mention = match mark {
            Mark::Open(family) if is_thought => {
                let is_part = || PROMPT_PARTS.iter().any(|part| text.rest().starts_with(part));
                let is_hidden =
                    is_begin || self.purpose == Purpose::Decision || is_line_start && (is_part() || ends(family, end)?);
                self.has_mentioned |= !is_hidden;
                !is_hidden
            }
            // Many models begin in lower case after a thought that the endpoint opened, so lower case is no sign of a mention then.
            _ => self.is_mention(text, end, !is_thought || self.has_mentioned)?,
        };
        if is_mention {
            return Ok(Step::Say(end));
        }
        Ok(match mark {
            Mark::Open(family) => {
                self.phase = Phase::Hidden(family);
                Step::Cut(family.kind(), end)
            }
            Mark::Close(family) if !is_thought => Step::Cut(family.kind(), end),
            Mark::Close(_) if self.has_mentioned && !is_line_start => {
                self.has_mentioned = false;
                Step::Say(end)
            }
            Mark::Close(_) => {
                self.unopened = Some(text.before().len());
                Step::Restart(Trimmed::Thought, end)
            }
            Mark::Final if !self.has_final => self.begin_final(end, is_begin),
            Mark::Turn if is_begin => {
                let role = end.past_blank()?;
                if first(OTHER_ROLES, |name| after_role(role, name))?.is_some() {
                    return Ok(self.end_turn(end));
                }
                Step::Cut(Trimmed::EndOfTurn, first(OWN_ROLES, |name| after_role(role, name))?.unwrap_or(end))
            }
            Mark::Final | Mark::Turn => self.end_turn(end),
        })
    }

    /// Whether a marker is only mentioned: it is quoted, or the sentence continues after it.
    fn is_mention(&self, text: Cursor<'_>, end: Cursor<'_>, may_go_on: bool) -> Result<bool, More> {
        if self.place.is_line_start() || !text.before().ends_with(char::is_whitespace) {
            return is_quoted(text, end);
        }
        let next = end.next()?;
        let goes_on = next.is_some_and(|next| PUNCTUATION.contains(&next))
            || may_go_on && next == Some(' ') && end.moved(1).next()?.is_some_and(char::is_lowercase);
        Ok(goes_on && self.purpose == Purpose::Words)
    }

    /// Drops everything after the end of the turn. If the final channel begins there, the text before it is discarded instead.
    fn after<'a>(&mut self, text: Cursor<'a>) -> Result<Step<'a>, More> {
        let next = text.rest().find('<').filter(|_| !self.has_final);
        if next == Some(0)
            && let Some((Mark::Final, end)) = mark(text)?
        {
            return Ok(self.begin_final(end, false));
        }
        Ok(Step::Cut(Trimmed::EndOfTurn, next.map_or(text.end(), |length| text.moved(length.max(1)))))
    }
}

/// The position after a role's name in a header and its separator.
fn after_role<'a>(text: Cursor<'a>, role: &str) -> Found<'a> {
    let Some(end) = text.after_any_case(role)? else { return Ok(None) };
    let separated = first(["\n", ":"], |separator| end.after(separator))?;
    Ok(separated.or(if matches!(end.next()?, None | Some('<' | '[')) { Some(end) } else { None }))
}

/// The position up to which hidden text is known to reach, and whether it ends there.
fn hidden(family: Family, text: Cursor<'_>) -> Result<(Cursor<'_>, bool), More> {
    let may_end = |c| BEGINNINGS.contains(&c) || c == 'a' && family == Family::Bare;
    let next = text.rest().find(may_end).map_or(text.end(), |length| text.moved(length));
    if !text.until(next).is_empty() {
        return Ok((next, false));
    }
    if let Some(end) = span(text)? {
        return Ok((end, false));
    }
    Ok(match family.close(text)? {
        Some(end) => (end, !is_quoted(text, end)?),
        None => (text.moved(text.rest().chars().next().map_or(0, char::len_utf8)), false),
    })
}

/// Whether the thought that begins here is closed, or longer than the limit for held text.
fn ends(family: Family, begin: Cursor<'_>) -> Result<bool, More> {
    let (mut at, mut is_closed) = (begin, begin.rest().len() > MAX_HELD);
    while !is_closed && !at.rest().is_empty() {
        (at, is_closed) = hidden(family, at)?;
    }
    if is_closed { Ok(true) } else { at.at_end(false) }
}

/// Whether a marker is surrounded by quotation marks.
fn is_quoted(text: Cursor<'_>, end: Cursor<'_>) -> Result<bool, More> {
    let mut before = text.before().chars().rev();
    let is_quote = |c: char| QUOTES.contains(&c);
    Ok(before.next().is_some_and(is_quote) && before.next().is_none_or(char::is_whitespace) && end.next()?.is_some_and(is_quote))
}

/// The position after a JSON object. A vote without quotation marks is not JSON and reaches to the end of the text, like an
/// object that is not closed.
fn object(text: Cursor<'_>, purpose: Purpose) -> Found<'_> {
    let inside = text.rest()[1..].trim_start();
    if inside.is_empty() {
        return text.at_end(None);
    }
    if !inside.starts_with('"') {
        let is_vote = purpose == Purpose::Decision && begins_with_field(inside);
        return Ok(Some(text.end()).filter(|_| is_vote));
    }
    let seen = if purpose == Purpose::Words { first_bytes(text.rest(), MAX_HELD) } else { text.rest() };
    match object_length(seen) {
        None if seen.len() < text.rest().len() => Ok(Some(text.end())),
        None => text.at_end(Some(text.end())),
        Some(length) => Ok(Some(text.moved(length))),
    }
}
