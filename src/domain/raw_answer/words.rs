//! Extracts the companion's own words from the visible text: without its name, and without lines of other speakers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::code::{Place, fence, line_end, object_length};
use super::cursor::{Cursor, MAX_HELD, More};
use super::silence::is_silence;
use super::speakers::{Speakers, is_bare_role, is_score};
use super::stages::Sink;
use super::visible::Purpose;
use super::{Trimmed, form};
use crate::text::{first_bytes, is_invisible, is_joining};

/// The maximum length of a statement, in characters.
pub(super) const MAX_CHARS: usize = 20_000;
/// The maximum length of a first line that is a decision, in bytes.
const MAX_VERDICT: usize = 20;
/// Quotation marks that may surround a whole statement.
const QUOTES: [(char, char); 7] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('\'', '\'')];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before the first word.
    #[default]
    Begin,
    Words,
    /// The answer deliberately shows lines of several speakers. All of them are part of the statement.
    Scene,
    /// Another speaker's line, a decision or a tool call began, so the rest is ignored.
    Over,
}

/// Extracts the words. How the text is split into pieces makes no difference.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    speakers: Arc<Speakers>,
    phase: Phase,
    /// Text that waits for a decision.
    head: String,
    place: Place,
    /// The words so far. They only grow, except at a restart.
    pub words: String,
    /// White space and invisible characters that are output only if visible text follows.
    gap: String,
    chars: usize,
    /// How often words were discarded.
    pub restarts: usize,
    pub trimmed: BTreeSet<Trimmed>,
}

impl Sink for Words {
    fn push_text(&mut self, text: &str, is_whole: bool) {
        if self.is_over() {
            return;
        }
        self.head.push_str(text);
        while self.phase == Phase::Begin {
            self.head.drain(..self.head.len() - self.head.trim_start().len());
            if self.head.is_empty() {
                return;
            }
            match begin(Cursor::new(&self.head, 0, is_whole), &self.speakers) {
                Err(More) => return,
                Ok(None) => self.phase = Phase::Words,
                Ok(Some((rest, kind))) => {
                    self.head = rest;
                    self.trimmed.extend(kind);
                }
            }
        }
        let head = std::mem::take(&mut self.head);
        let mut at = Cursor::new(&head, 0, is_whole);
        while !at.rest().is_empty() && !self.is_over() {
            let Ok((end, cut)) = self.step(at) else { break };
            match cut {
                None => self.say(at.until(end)),
                Some(kind) => _ = self.trimmed.insert(kind),
            }
            at = end;
        }
        at.rest().clone_into(&mut self.head);
    }

    fn restart(&mut self) {
        let restarts = self.restarts + usize::from(!self.words.is_empty());
        *self = Self { restarts, ..Self::new(self.speakers.clone()) };
    }

    fn is_empty(&self) -> bool {
        let head = Cursor::new(self.head.trim(), 0, true);
        let is_own_name = || matches!(self.speakers.own_at_begin(head), Ok(Some(end)) if end.rest().is_empty());
        self.words.is_empty() && (head.rest().is_empty() || is_own_name())
    }
}

impl Words {
    pub fn new(speakers: Arc<Speakers>) -> Self {
        Self { speakers, ..Self::default() }
    }

    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The complete words.
    pub fn finish(mut self) -> String {
        if !self.words.is_empty() {
            self.words.push_str(self.gap.trim_end());
        }
        self.words
    }

    /// The end of the next piece of text, and its kind if it is cut.
    fn step<'a>(&mut self, text: Cursor<'a>) -> Result<(Cursor<'a>, Option<Trimmed>), More> {
        let rest = text.rest();
        if !self.place.is_line_start() {
            return Ok((line_end(text), None));
        }
        if self.place.fence.is_none() {
            if rest.starts_with(char::is_whitespace) {
                return Ok((text.moved(rest.len() - rest.trim_start().len()), None));
            }
            if let Some((end, kind)) = self.line(text)? {
                return Ok((end, Some(kind)));
            }
        }
        Ok((self.place.code(text)?.unwrap_or_else(|| line_end(text)), None))
    }

    /// The end of the text to cut at the beginning of this line, and its kind. `None` if nothing is cut.
    fn line<'a>(&mut self, text: Cursor<'a>) -> Result<Option<(Cursor<'a>, Trimmed)>, More> {
        // An announced list or dialogue: "Here is the score:"
        let last_line = self.words.lines().next_back().unwrap_or_default();
        let is_announced = last_line.trim_end_matches(['*', '_', ' ']).ends_with([':', '：']);
        let block = fence(text)?;
        let inside = block.map_or(Ok(text), |(_, inside)| inside.past_blank())?;
        let is_call = block.is_some_and(|(fence, inside)| text.until(inside)[fence.len()..].trim().starts_with("tool_"));
        let form = if is_announced { None } else { object(inside)? };
        if let Some(kind) = if is_call { Some(Trimmed::ToolCall) } else { form } {
            self.phase = Phase::Over;
            return Ok(Some((text.end(), kind)));
        }
        // Models append such a word to a statement, so the words before it are kept.
        if is_silence(text, "")? && text.rest().contains('_') {
            return Ok(Some((text.end(), Trimmed::Silence)));
        }
        if self.phase == Phase::Scene || block.is_some() {
            return Ok(None);
        }
        let other = self.speakers.other(text)?;
        if other.is_none() && (self.words.is_empty() || !is_bare_role(text)?) {
            let own = if is_announced { None } else { self.speakers.own(text)? };
            return Ok(own.map(|end| (end, Trimmed::OwnName)));
        }
        let is_heading = |line: &str| line.is_empty() || line.starts_with('#') || line.starts_with("**") && line.ends_with("**");
        let is_headed = self.words.lines().all(is_heading);
        let is_scene = is_announced || is_headed || other.map_or(Ok(false), is_score)?;
        self.phase = if is_scene { Phase::Scene } else { Phase::Over };
        Ok((!is_scene).then_some((text.end(), Trimmed::OtherSpeaker)))
    }

    fn say(&mut self, text: &str) {
        self.place.pass(text);
        for c in text.chars() {
            if c.is_control() && !matches!(c, '\n' | '\t')
                || self.chars == MAX_CHARS
                || self.words.is_empty() && self.gap.is_empty() && c.is_whitespace()
            {
                continue;
            }
            self.chars += 1;
            self.gap.push(c);
            let is_seen = !(c.is_whitespace() || c.is_control() || is_joining(c) || is_invisible(c) || c == '\u{2800}');
            if is_seen {
                self.words.push_str(&self.gap);
                self.gap.clear();
            }
        }
    }
}

/// Removes one layer before or around the words. Returns the remaining text, and the kind of the removed text. `None` if the
/// words begin here.
fn begin(text: Cursor<'_>, speakers: &Speakers) -> Result<Option<(String, Option<Trimmed>)>, More> {
    if is_silence(text, speakers.name())? {
        return Ok(Some((String::new(), Some(Trimmed::Silence))));
    }
    if let Some((line, _)) = first_bytes(text.rest(), MAX_VERDICT).split_once('\n')
        && let verdict @ ("YES" | "NO") = line.trim_matches(['*', ' '])
    {
        let rest = if verdict == "YES" { text.moved(line.len() + 1).rest() } else { text.at_end("")? };
        return Ok(Some((rest.to_owned(), Some(Trimmed::Decision))));
    }
    if form::may_be(text)? {
        text.at_end(())?;
        if let Some((words, kind)) = form::read(text.rest(), |name| speakers.is_own(name)) {
            return Ok(Some((super::unveiled(&words, Purpose::Words).text.into_owned(), Some(kind))));
        }
    }
    if let Some(end) = speakers.own_at_begin(text)? {
        return Ok(Some((end.rest().to_owned(), Some(Trimmed::OwnName))));
    }
    Ok(quoted(text)?.map(|inside| (inside.to_owned(), None)))
}

/// The text between quotation marks that surround the whole answer.
fn quoted(text: Cursor<'_>) -> Result<Option<&str>, More> {
    let Some((open, close)) = QUOTES.iter().find(|(open, _)| text.rest().starts_with(*open)) else { return Ok(None) };
    let begin = text.moved(open.len_utf8());
    let end = begin.past(|c| c != *open && c != *close, MAX_HELD)?;
    let is_whole = end.rest().strip_prefix(*close).is_some_and(|after| after.trim().is_empty());
    if is_whole { text.at_end(Some(begin.until(end))) } else { Ok(None) }
}

/// Classifies the JSON object at the beginning of a line. `None` if it is part of the words.
fn object(text: Cursor<'_>) -> Result<Option<Trimmed>, More> {
    let rest = text.rest();
    if !rest.starts_with('{') {
        return text.next().map(|_| None);
    }
    let seen = first_bytes(rest, MAX_HELD);
    match object_length(seen) {
        _ if form::begins_transcript(rest) => Ok(Some(Trimmed::OtherSpeaker)),
        Some(end) => Ok(form::of_line(&rest[..end])),
        None if seen.len() < rest.len() => Ok(None),
        None => text.at_end(()).map(|()| form::of_line(rest)),
    }
}
