//! Leaves out of an answer what is not said: thoughts, channels, calls of tools, and what follows the end of the turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::code::{Fence, Object, span, ticks};
use super::tags::{FINAL, Family, Mark, bare_channel, closes, mark};
use super::{Look, Speakers, Trimmed};
use crate::domain::marks::PROMPT_PARTS;
use crate::domain::text::first_bytes;
use crate::domain::vote_fields::begins_with_field;

/// A companion's own name before its words is looked for in so many bytes of them.
const MAX_OPENING: usize = 80;
/// Signs around a mark that is only mentioned.
const QUOTES: [char; 13] = ['"', '\'', '“', '”', '„', '«', '»', '‘', '’', '「', '」', '(', ')'];
/// What follows a mark in prose.
const PUNCTUATION: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', '…', '。', '，', '、', '；'];
/// The names of a turn's author that a header gives before the words.
const OWN_ROLES: [&str; 5] = ["assistant", "model", "chatbot", "bot", "ai"];
/// Those of somebody else's turn.
const OTHER_ROLES: [&str; 5] = ["user", "human", "system", "tool", "observation"];

/// What an answer is for. In JSON objects marks are words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Thoughts, and JSON objects, begin lines.
    Words,
    /// Thoughts, and JSON objects, may be anywhere. What begins like a vote and is no JSON counts as an object that does not end.
    Decision,
}

/// What of an answer is seen.
pub(super) enum Piece<'a> {
    More(&'a str),
    /// Everything before was not said.
    Restart,
}

/// Where the reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Words,
    /// In what is not said. `from` is the place of the opening mark, if a mark without a closing one is a word there.
    Hidden {
        family: Family,
        from: Option<usize>,
    },
    /// After the end of the turn.
    After,
}

enum Step {
    Show(usize),
    Skip(usize),
    Restart(usize),
}

/// Reads an answer. It does not matter in which pieces it comes.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    purpose: Purpose,
    raw: String,
    /// The undecided text begins here.
    at: usize,
    /// The length of the text before `raw`.
    dropped: usize,
    place: Place,
    fence: Option<Fence>,
    object: Option<Object>,
    is_line_start: bool,
    /// The last character before the undecided text.
    /// The beginning of what was shown.
    opening: String,
    /// Whose answer it is, if it is a statement.
    speakers: Option<Arc<Speakers>>,
    last: Option<char>,
    /// The last character is a quotation mark that opens.
    is_quote_open: bool,
    /// Words were shown since the last restart.
    has_words: bool,
    /// A mark that begins a turn was the last thing before the words.
    is_after_start: bool,
    /// A thought's opening mark is among the words, in this answer's prose.
    has_mentioned: bool,
    /// `<s>` is among the words.
    is_struck: bool,
    /// Families of marks whose next closing mark does not exist.
    unclosed: Vec<Family>,
    pub(super) has_final: bool,
    /// It begins with a word that may be what is left of a channel's header.
    may_be_channel: bool,
    /// The end of the text before the last closing mark without an opening one, in bytes of the whole text.
    pub(super) unopened: Option<usize>,
    pub(super) trimmed: BTreeSet<Trimmed>,
}

impl Visible {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            raw: String::new(),
            at: 0,
            dropped: 0,
            place: Place::Words,
            fence: None,
            object: None,
            is_line_start: true,
            opening: String::new(),
            speakers: None,
            last: None,
            is_quote_open: false,
            has_words: false,
            is_after_start: false,
            has_mentioned: false,
            is_struck: false,
            unclosed: Vec::new(),
            has_final: false,
            may_be_channel: false,
            unopened: None,
            trimmed: BTreeSet::new(),
        }
    }

    /// Whether the turn has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.place, Place::After)
    }

    fn is_decision(&self) -> bool {
        self.purpose == Purpose::Decision
    }

    /// The answer is a statement in this room.
    pub(super) fn said_among(self, speakers: Arc<Speakers>) -> Self {
        Self { speakers: Some(speakers), ..self }
    }

    /// Takes the next piece of the text, and shows what is certain now.
    pub(super) fn feed(&mut self, piece: &str, is_end: bool, show: &mut dyn FnMut(Piece<'_>)) {
        self.raw.push_str(piece);
        while let Some(step) = self.step(is_end) {
            let length = match step {
                Step::Show(length) => {
                    self.show(length, show);
                    length
                }
                Step::Skip(length) => length,
                Step::Restart(length) => {
                    self.restart(show);
                    length
                }
            };
            let mut before = self.raw[..self.at + length].chars().rev();
            let last = before.next();
            // A quotation mark after a word or a sentence closes. What was before it may have been dropped.
            let previous = before.next().or(self.last);
            self.is_quote_open = last.is_some_and(|last| QUOTES.contains(&last)) && previous.is_none_or(char::is_whitespace);
            self.last = last;
            self.at += length;
        }
        let keep = match self.place {
            Place::Hidden { from: Some(from), .. } => from,
            _ => self.at,
        };
        self.raw.drain(..keep);
        self.at -= keep;
        self.dropped += keep;
        if let Place::Hidden { from: Some(from), .. } = &mut self.place {
            *from = 0;
        }
    }

    /// Whether nothing but the companion's own name was shown.
    fn is_after_name(&self) -> bool {
        let named = self.opening.trim().trim_matches(|c: char| matches!(c, '*' | '_' | '[' | ']' | '<' | '>' | ':' | '：' | ' '));
        self.opening.len() < MAX_OPENING && self.speakers.as_ref().is_some_and(|speakers| speakers.is_called(named))
    }

    fn show(&mut self, length: usize, show: &mut dyn FnMut(Piece<'_>)) {
        let text = &self.raw[self.at..self.at + length];
        self.opening.push_str(first_bytes(text, MAX_OPENING - self.opening.len()));
        show(Piece::More(text));
        let line = text.rsplit('\n').next().unwrap_or_default();
        let is_blank = line.trim().is_empty();
        self.is_line_start = match self.fence {
            Some(_) => text.ends_with('\n'),
            None => is_blank && (self.is_line_start || line.len() < text.len()),
        };
        self.has_words |= !text.trim().is_empty();
        self.is_after_start &= !self.has_words;
    }

    fn restart(&mut self, show: &mut dyn FnMut(Piece<'_>)) {
        if self.has_words {
            show(Piece::Restart);
        }
        (self.place, self.fence, self.object) = (Place::Words, None, None);
        (self.is_line_start, self.has_words, self.has_mentioned, self.is_struck) = (true, false, false, false);
        self.opening.clear();
    }

    /// What happens with the beginning of the undecided text. `None`: more of it is needed.
    fn step(&mut self, is_end: bool) -> Option<Step> {
        let rest = &self.raw[self.at..];
        if rest.is_empty() {
            return if is_end { self.end() } else { None };
        }
        match self.place {
            Place::Words => self.in_words(is_end),
            Place::Hidden { family, .. } => self.in_hidden(family, is_end),
            Place::After => self.after(is_end),
        }
    }

    /// The text has ended within what is hidden: an opening mark among the words was a word.
    fn end(&mut self) -> Option<Step> {
        let Place::Hidden { family, from: Some(from) } = self.place else { return None };
        self.unclosed.push(family);
        (self.place, self.at) = (Place::Words, from);
        // It is read again, as a word.
        Some(Step::Skip(0))
    }

    fn in_words(&mut self, is_end: bool) -> Option<Step> {
        let rest = &self.raw[self.at..];
        let first = rest.chars().next()?;
        if let Some(object) = &mut self.object {
            let end = object.take(rest);
            if end.is_some() {
                self.object = None;
            }
            return Some(Step::Show(end.unwrap_or(rest.len())));
        }
        if let Some(fence) = self.fence {
            if self.is_line_start {
                match fence.close(rest, is_end) {
                    Look::More => return None,
                    Look::Yes(length) => {
                        self.fence = None;
                        return Some(Step::Show(length));
                    }
                    Look::No => {}
                }
            }
            return Some(Step::Show(rest.find('\n').map_or(rest.len(), |end| end + 1)));
        }
        if self.is_line_start && first.is_whitespace() {
            return Some(Step::Show(rest.len() - rest.trim_start().len()));
        }
        if self.is_line_start && matches!(first, '`' | '~') {
            match Fence::open(rest, is_end) {
                Look::More => return None,
                Look::Yes((fence, length)) => {
                    self.fence = Some(fence);
                    return Some(Step::Show(length));
                }
                Look::No => {}
            }
        }
        if first == '`' {
            return match span(rest, is_end) {
                Look::More => None,
                Look::Yes(length) => Some(Step::Show(length)),
                Look::No => Some(Step::Show(ticks(rest))),
            };
        }
        if first == '{' && (self.is_line_start || self.is_decision()) {
            match begins_object(rest, self.is_decision()) {
                Look::More if !is_end => return None,
                Look::Yes(object) => {
                    self.object = Some(object);
                    return self.in_words(is_end);
                }
                _ => {}
            }
        }
        if !self.has_words {
            match self.at_beginning(is_end) {
                Look::More => return None,
                Look::Yes(step) => return Some(step),
                Look::No => {}
            }
        }
        if first == 'a' && self.may_be_channel && !self.has_final {
            match self.left_of_final(is_end) {
                Look::More => return None,
                Look::Yes(step) => return Some(step),
                Look::No => {}
            }
        }
        let rest = &self.raw[self.at..];
        let found = if matches!(first, '<' | '[' | ']' | '&' | '\u{25c1}') { mark(rest, is_end) } else { Look::No };
        match found {
            Look::More => None,
            Look::Yes((mark, length)) => self.meet(mark, length, is_end),
            Look::No => {
                // A line break ends a piece, so that the next one begins a line.
                let next = rest.char_indices().skip(1).find(|(_, c)| first == '\n' || self.may_begin(*c));
                Some(Step::Show(next.map_or(rest.len(), |(next, _)| next)))
            }
        }
    }

    /// Whether something that is not shown may begin with this character.
    fn may_begin(&self, c: char) -> bool {
        match c {
            '<' | '[' | ']' | '&' | '\u{25c1}' | '`' | '\n' => true,
            '{' => self.is_decision(),
            'a' => self.may_be_channel,
            _ => false,
        }
    }

    /// What may be left of a turn's header before the words.
    fn at_beginning(&mut self, is_end: bool) -> Look<Step> {
        let rest = &self.raw[self.at..];
        if self.is_after_start {
            let of = |roles: &[&str]| roles.iter().fold(Look::No, |found, role| found.or(|| header(rest, role, is_end)));
            match of(&OWN_ROLES) {
                Look::Yes(length) => return Look::Yes(Step::Skip(length)),
                Look::More => return Look::More,
                Look::No => {}
            }
            match of(&OTHER_ROLES) {
                Look::Yes(length) => {
                    self.place = Place::After;
                    return Look::Yes(Step::Skip(length));
                }
                Look::More => return Look::More,
                Look::No => {}
            }
        }
        match bare_channel(rest, is_end) {
            Look::Yes((mark, length)) => {
                self.trimmed.insert(Trimmed::Channel);
                match mark {
                    Mark::Open(family) => {
                        self.trimmed.insert(family.kind());
                        self.place = Place::Hidden { family, from: None };
                    }
                    _ => self.has_final = true,
                }
                Look::Yes(Step::Skip(length))
            }
            Look::More => Look::More,
            Look::No => {
                self.may_be_channel |= rest.starts_with("analysis");
                Look::No
            }
        }
    }

    /// `assistantfinal` after words: these were a channel that is not said.
    fn left_of_final(&mut self, is_end: bool) -> Look<Step> {
        let rest = &self.raw[self.at..];
        if rest.starts_with(FINAL) {
            self.has_final = true;
            self.trimmed.insert(Trimmed::Channel);
            return Look::Yes(Step::Restart(FINAL.len()));
        }
        if FINAL.starts_with(rest) && !is_end { Look::More } else { Look::No }
    }

    /// What a mark among the words does.
    fn meet(&mut self, mark: Mark, length: usize, is_end: bool) -> Option<Step> {
        let is_begin = !self.has_words;
        if mark == Mark::Strike {
            self.is_struck |= !is_begin;
            return Some(if is_begin { Step::Skip(length) } else { Step::Show(length) });
        }
        if let Mark::Open(Family::Tag(Trimmed::Form)) | Mark::Close(Family::Tag(Trimmed::Form)) = mark {
            let is_open = matches!(mark, Mark::Open(_));
            if is_open && !is_begin || !is_open && !self.trimmed.contains(&Trimmed::Form) {
                return Some(Step::Show(length));
            }
            self.trimmed.insert(Trimmed::Form);
            return Some(Step::Skip(length));
        }
        if let Mark::Open(family) = mark
            && family.kind() == Trimmed::Thought
        {
            if !(self.is_line_start || self.is_decision() || self.is_after_name()) || self.unclosed.contains(&family) {
                self.has_mentioned = true;
                return Some(Step::Show(length));
            }
            let is_of_prompt = PROMPT_PARTS.iter().any(|part| self.raw[self.at..].starts_with(part));
            let from = (!is_begin && !is_of_prompt && !self.is_decision()).then_some(self.at);
            if from.is_none() {
                self.trimmed.insert(Trimmed::Thought);
            }
            self.place = Place::Hidden { family, from };
            return Some(Step::Skip(length));
        }
        if mark == Mark::Empty && !self.is_line_start {
            return Some(Step::Show(length));
        }
        match self.is_mention(mark, length, is_end) {
            Look::More => return None,
            Look::Yes(()) => return Some(Step::Show(length)),
            Look::No => {}
        }
        Some(match mark {
            Mark::Open(family) => {
                self.trimmed.insert(family.kind());
                self.place = Place::Hidden { family, from: None };
                Step::Skip(length)
            }
            Mark::Empty => {
                self.trimmed.insert(Trimmed::Thought);
                Step::Skip(length)
            }
            Mark::Close(family) if family.kind() != Trimmed::Thought => {
                self.trimmed.insert(family.kind());
                Step::Skip(length)
            }
            Mark::Close(_) if self.has_mentioned && !self.is_line_start => {
                self.has_mentioned = false;
                Step::Show(length)
            }
            Mark::Close(_) => {
                self.trimmed.insert(Trimmed::Thought);
                self.unopened = Some(self.dropped + self.at);
                Step::Restart(length)
            }
            Mark::Final if self.has_final => self.end_turn(length),
            Mark::Final => {
                self.has_final = true;
                self.trimmed.insert(Trimmed::Channel);
                if is_begin { Step::Skip(length) } else { Step::Restart(length) }
            }
            // It closes what is struck through.
            Mark::End if self.is_struck && self.raw[self.at..].starts_with("</s>") => Step::Show(length),
            Mark::End | Mark::Start if is_begin => {
                self.is_after_start |= mark == Mark::Start;
                self.trimmed.insert(Trimmed::EndOfTurn);
                Step::Skip(length)
            }
            Mark::End | Mark::Start | Mark::Strike => self.end_turn(length),
        })
    }

    /// Whether this closes a thought of which no opening mark was read or mentioned.
    fn is_unopened(&self, mark: Mark) -> bool {
        matches!(mark, Mark::Close(family) if family.kind() == Trimmed::Thought) && !self.has_mentioned
    }

    fn end_turn(&mut self, length: usize) -> Step {
        self.trimmed.insert(Trimmed::EndOfTurn);
        self.place = Place::After;
        Step::Skip(length)
    }

    /// Whether a mark is only mentioned: between quotation marks, or within a sentence that goes on after it.
    fn is_mention(&self, mark: Mark, length: usize, is_end: bool) -> Look<()> {
        let after = &self.raw[self.at + length..];
        let last = if self.is_line_start { None } else { self.last };
        let is_quoted = self.is_quote_open;
        let is_spaced = last.is_some_and(char::is_whitespace);
        if !is_quoted && !is_spaced {
            return Look::No;
        }
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        if !is_end && (first.is_none() || is_spaced && first == Some(' ') && second.is_none()) {
            return Look::More;
        }
        let is_closed = is_quoted && first.is_some_and(|first| QUOTES.contains(&first));
        let goes_on = is_spaced
            && !self.is_decision()
            && (first.is_some_and(|first| PUNCTUATION.contains(&first))
                // Many write in small letters after a thought that the endpoint began itself.
                || !self.is_unopened(mark) && first == Some(' ') && second.is_some_and(char::is_lowercase));
        if is_closed || goes_on { Look::Yes(()) } else { Look::No }
    }

    fn in_hidden(&mut self, family: Family, is_end: bool) -> Option<Step> {
        let rest = &self.raw[self.at..];
        let may_close = |c: char| matches!(c, '<' | '[' | '&' | '\u{25c1}' | '`') || c == 'a' && family == Family::Bare;
        let next = rest.find(may_close).unwrap_or(rest.len());
        if next > 0 {
            return Some(Step::Skip(next));
        }
        if rest.starts_with('`') {
            return match span(rest, is_end) {
                Look::More => None,
                Look::Yes(length) => Some(Step::Skip(length)),
                Look::No => Some(Step::Skip(ticks(rest))),
            };
        }
        match closes(family, rest, is_end) {
            Look::More => None,
            Look::No => Some(Step::Skip(rest.chars().next()?.len_utf8())),
            Look::Yes(length) => {
                let after = rest[length..].chars().next();
                let is_quoted = |c: Option<char>| c.is_some_and(|c| QUOTES.contains(&c));
                if self.is_quote_open && after.is_none() && !is_end {
                    return None;
                }
                if length > 0 && self.is_quote_open && is_quoted(after) {
                    return Some(Step::Skip(length));
                }
                self.trimmed.insert(family.kind());
                self.has_final |= family == Family::Bare && length > 0;
                self.place = Place::Words;
                Some(Step::Skip(length))
            }
        }
    }

    /// Nothing is said after the end of the turn. Only if the final channel begins there, what was before it was not said.
    fn after(&mut self, is_end: bool) -> Option<Step> {
        let rest = &self.raw[self.at..];
        let next = if self.has_final { rest.len() } else { rest.find('<').unwrap_or(rest.len()) };
        if next > 0 {
            return Some(Step::Skip(next));
        }
        match mark(rest, is_end) {
            Look::More => None,
            Look::Yes((Mark::Final, length)) => {
                self.has_final = true;
                self.trimmed.insert(Trimmed::Channel);
                Some(Step::Restart(length))
            }
            _ => Some(Step::Skip(1)),
        }
    }
}

/// Whether a JSON object begins here. A vote without quotation marks is no JSON, and counts as one that does not end.
fn begins_object(text: &str, is_decision: bool) -> Look<Object> {
    let inside = text[1..].trim_start();
    if inside.is_empty() {
        return Look::More;
    }
    if inside.starts_with('"') {
        return Look::Yes(Object::default());
    }
    let is_vote = is_decision && begins_with_field(inside);
    if is_vote { Look::Yes(Object::endless()) } else { Look::No }
}

/// The length of a header's role, with what separates it from the words.
fn header(text: &str, role: &str, is_end: bool) -> Look<usize> {
    let length = role.len().min(text.len());
    if !text.as_bytes()[..length].eq_ignore_ascii_case(&role.as_bytes()[..length]) {
        return Look::No;
    }
    match text[length..].chars().next() {
        _ if length < role.len() => {
            if is_end {
                Look::No
            } else {
                Look::More
            }
        }
        Some('\n' | ':') => Look::Yes(length + 1),
        Some('<' | '[') => Look::Yes(length),
        Some(_) => Look::No,
        None => {
            if is_end {
                Look::Yes(length)
            } else {
                Look::More
            }
        }
    }
}
