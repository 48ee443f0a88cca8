//! Takes the companion's words out of what is visible of an answer: without its own name, and without the lines of others.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;

use super::code::{Fence, Object};
use super::form::{self, Form};
use super::silence::{is_mark, silence};
use super::speakers::{bare_role, is_score, role, speaker};
use super::visible::Purpose;
use super::{Known, Look, Nothing, Trimmed};
use crate::domain::text::{first_bytes, is_invisible, is_joining};

/// The maximum length of a statement, in characters.
pub(in crate::domain) const MAX_CHARS: usize = 20_000;
/// Quotation marks that may surround a whole statement.
const QUOTES: [(char, char); 7] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('\'', '\'')];
/// How often a name is removed from the beginning, as in `Aria: "Aria: Hello"`.
const MAX_NAMES: u8 = 3;
/// A JSON object at the beginning of a line is read up to this length, in bytes.
const MAX_OBJECT: usize = 4_000;
/// What a line begins with after which a scene may follow, and how long it may be, in bytes.
const INTRODUCTIONS: [&str; 10] = ["sure", "of course", "certainly", "okay", "ok", "here", "scene", "act ", "int.", "ext."];
const MAX_LINE: usize = 100;
/// What surrounds a stage direction.
const BRACKETS: [(char, char); 4] = [('*', '*'), ('_', '_'), ('(', ')'), ('[', ']')];
/// How far the answer of another speaker is looked for, in bytes.
const MAX_DIALOGUE: usize = 1_000;
/// The longest label of a line in a list, in bytes.
const MAX_LABEL: usize = 40;
/// What may stand before an answer's words, as a role does.
const LABELS: [&str; 2] = ["Response", "Reply"];
/// Others than the people and companions of the room whose turns a model may write.
const ROLES: [&str; 3] = ["User", "Human", "Assistant"];

/// Who speaks in a room, as far as an answer may name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speakers {
    own: Arc<str>,
    /// The other ways to write its own name: without decoration, and its first word.
    own_forms: Vec<Arc<str>>,
    others: Vec<Arc<str>>,
    /// What of the prompt is never said.
    pub(super) known: Arc<Known>,
}

impl Speakers {
    /// The companion that answers, and everybody else who is known in the room.
    pub fn new(own: &str, others: impl IntoIterator<Item = Arc<str>>) -> Self {
        let own = own.trim();
        let plain = plain(own);
        let first = plain.split_whitespace().next().filter(|first| first.chars().count() > 2);
        let own_forms =
            [Some(plain), first].into_iter().flatten().filter(|form| !form.is_empty() && *form != own).map(Arc::from).collect();
        // A letter alone also begins questions and lists.
        let is_name = |name: &str| name.len() > 1 && name.to_lowercase() != own.to_lowercase();
        let forms = |name: Arc<str>| [Arc::from(name.trim()), Arc::from(self::plain(&name))];
        let mut others: Vec<Arc<str>> = others.into_iter().flat_map(forms).filter(|name| is_name(name)).collect();
        others.sort_unstable();
        others.dedup();
        Self { own: own.into(), own_forms, others, known: Arc::default() }
    }

    /// Adds the other names that the companion answers to.
    #[must_use]
    pub fn also_called(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.own_forms.extend(names);
        self
    }

    /// Adds what of the prompt is never said.
    #[must_use]
    pub fn knowing(self, known: Known) -> Self {
        Self { known: known.into(), ..self }
    }

    /// Whether a line begins with somebody else's name, and the length of that.
    fn other(&self, line: &str) -> Look<usize> {
        let named = self.others.iter().fold(Look::No, |found, name| found.or(|| speaker(line, name)));
        ROLES.iter().fold(named, |found, name| {
            found.or(|| if name.eq_ignore_ascii_case(&self.own) { Look::No } else { role(line, name) })
        })
    }

    /// Whether a line begins with the companion's own name, or its role, and the length of that.
    fn own(&self, line: &str) -> Look<usize> {
        let own = [&self.own].into_iter().chain(&self.own_forms).filter(|own| !own.is_empty());
        let named = own.fold(Look::No, |found, own| found.or(|| speaker(line, own)));
        let is_taken = self.others.iter().any(|name| name.eq_ignore_ascii_case("assistant"));
        named.or(|| if is_taken { Look::No } else { role(line, "Assistant") })
    }

    /// Whether this is one of the companion's own names.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let own = [&self.own].into_iter().chain(&self.own_forms);
        !name.is_empty() && own.into_iter().any(|own| own.to_lowercase() == name.to_lowercase())
    }

    fn is_own(&self, name: &str) -> bool {
        let name = name.trim();
        name.to_lowercase() == self.own.to_lowercase()
            || name.eq_ignore_ascii_case("assistant")
            || name.eq_ignore_ascii_case("you")
    }
}

/// A name without the signs around it.
fn plain(name: &str) -> &str {
    name.trim_matches(|c: char| !c.is_alphanumeric())
}

/// What holds back the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing that is known.
    None,
    /// Only its end shows what it is.
    ToEnd,
    /// A quotation mark, which may close at the end. It is looked for from here on.
    Quote { close: char, searched: usize },
}

/// Takes out the words. It does not matter in which pieces the text comes.
#[derive(Clone, Debug)]
pub(super) struct Words {
    speakers: Arc<Speakers>,
    /// What is undecided.
    head: String,
    at: usize,
    hold: Hold,
    is_opening: bool,
    /// Names that may still be removed from the beginning.
    names: u8,
    may_be_form: bool,
    may_be_quoted: bool,
    fence: Option<Fence>,
    is_line_start: bool,
    /// The answer shows lines of several speakers: all of them are its words.
    is_scene: bool,
    /// The companion's name before a line was removed.
    is_after_name: bool,
    /// The last line with words, until the next one begins.
    line: String,
    /// All lines before that one are headings.
    is_heading: bool,
    /// Only words that lead to a scene were said before the line.
    is_introduction: bool,
    words: String,
    /// White space and hidden characters that belong to the words only if others follow.
    gap: String,
    chars: usize,
    pub(super) nothing: Option<Nothing>,
    /// Somebody else speaks, so that nothing more is read.
    pub(super) is_over: bool,
    pub(super) trimmed: BTreeSet<Trimmed>,
}

enum Step {
    Say(usize),
    Skip(usize),
    /// Nothing more of it is said.
    End,
}

impl Words {
    pub(super) fn new(speakers: Arc<Speakers>) -> Self {
        Self {
            speakers,
            head: String::new(),
            at: 0,
            hold: Hold::None,
            is_opening: true,
            names: MAX_NAMES,
            may_be_form: true,
            may_be_quoted: true,
            fence: None,
            is_line_start: true,
            is_scene: false,
            is_after_name: false,
            line: String::new(),
            is_heading: true,
            is_introduction: true,
            words: String::new(),
            gap: String::new(),
            chars: 0,
            nothing: None,
            is_over: false,
            trimmed: BTreeSet::new(),
        }
    }

    pub(super) fn so_far(&self) -> &str {
        &self.words
    }

    /// Takes the next piece of the text.
    pub(super) fn feed(&mut self, text: &str, is_end: bool) {
        if self.is_over || self.nothing.is_some() {
            return;
        }
        self.head.push_str(text);
        while self.is_opening {
            if !self.open(is_end) {
                return;
            }
        }
        while let Some(step) = self.step(is_end) {
            match step {
                Step::Say(length) => {
                    let said = self.head[self.at..self.at + length].to_owned();
                    self.say(&said);
                    self.at += length;
                }
                Step::Skip(length) => self.at += length,
                Step::End => {
                    self.is_over = true;
                    self.head.clear();
                    self.at = 0;
                }
            }
        }
        self.head.drain(..take(&mut self.at));
    }

    /// The whole words.
    pub(super) fn finish(&mut self) -> String {
        let mut words = take(&mut self.words);
        if !words.is_empty() {
            words.push_str(self.gap.trim_end());
        }
        words
    }

    /// Decides about the beginning. False: more of it is needed.
    fn open(&mut self, is_end: bool) -> bool {
        let begin = self.head.len() - self.head.trim_start().len();
        self.head.drain(..begin);
        if self.head.is_empty() {
            return false;
        }
        match self.hold {
            Hold::None => {}
            Hold::ToEnd if !is_end => return false,
            Hold::ToEnd => {
                self.hold = Hold::None;
                self.may_be_form = false;
                return self.read_form();
            }
            Hold::Quote { close, searched } => return self.find_quote(close, searched, is_end),
        }
        match silence(&self.head, &self.speakers.own, is_end) {
            Look::More => return false,
            Look::Yes(()) => return self.say_nothing(Nothing::Silence, Trimmed::Silence),
            Look::No => {}
        }
        if let Some((verdict, rest)) = self.head.split_once('\n')
            && matches!(verdict.trim().trim_matches('*'), "YES" | "NO")
        {
            if rest.trim().is_empty() {
                return false;
            }
            if verdict.contains("NO") {
                return self.say_nothing(Nothing::Decision, Trimmed::Decision);
            }
            self.trimmed.insert(Trimmed::Decision);
            self.head.drain(..=verdict.len());
            return true;
        }
        if self.may_be_form {
            match self.may_hold_form(is_end) {
                Look::More => return false,
                Look::Yes(()) => {
                    self.hold = Hold::ToEnd;
                    return true;
                }
                Look::No => {}
            }
        }
        if self.names > 0 {
            match self.own_name(is_end) {
                Look::More => return false,
                Look::Yes(length) => {
                    self.trimmed.insert(Trimmed::OwnName);
                    self.head.drain(..length);
                    self.names -= 1;
                    return true;
                }
                Look::No => {}
            }
            match self.own_line(is_end) {
                Look::More => return false,
                Look::Yes(length) => {
                    self.trimmed.insert(Trimmed::OwnName);
                    self.head.drain(..length);
                    return true;
                }
                Look::No => {}
            }
        }
        if self.is_scene {
            self.is_opening = false;
            return true;
        }
        let quote = QUOTES.iter().find(|(open, _)| self.head.starts_with(*open));
        if let Some((open, close)) = quote.filter(|_| self.may_be_quoted) {
            self.hold = Hold::Quote { close: *close, searched: open.len_utf8() };
            return true;
        }
        match self.speakers.other(&self.head) {
            Look::More if !is_end => return false,
            Look::Yes(_) => self.is_scene = true,
            _ => {}
        }
        self.is_opening = false;
        true
    }

    /// Whether the text is to be read as JSON once it is whole.
    fn may_hold_form(&self, is_end: bool) -> Look<()> {
        if form::may_be(&self.head) {
            return Look::Yes(());
        }
        if is_end {
            return Look::No;
        }
        if form::may_become(self.head.trim_end()) { Look::More } else { Look::No }
    }

    fn read_form(&mut self) -> bool {
        match form::read(&self.head, |name| self.speakers.is_own(name)) {
            Form::Words(words, kind) => {
                self.trimmed.insert(kind);
                self.head = super::unveiled(&words, Purpose::Words).text.into_owned();
                self.names = MAX_NAMES;
                true
            }
            Form::Nothing(kind) => {
                let nothing = match kind {
                    Trimmed::Decision => Nothing::Decision,
                    Trimmed::ToolCall => Nothing::ToolCall,
                    _ => Nothing::Form,
                };
                self.say_nothing(nothing, kind)
            }
            Form::Other => true,
        }
    }

    fn say_nothing(&mut self, nothing: Nothing, kind: Trimmed) -> bool {
        self.nothing = Some(nothing);
        self.trimmed.insert(kind);
        self.head.clear();
        false
    }

    /// The companion's name at the beginning. Where it begins a list of scores, it is part of that.
    fn own_name(&mut self, is_end: bool) -> Look<usize> {
        let label = || LABELS.iter().fold(Look::No, |found, label| found.or(|| role(&self.head, label)));
        let length = match self.speakers.own(&self.head).or(label) {
            Look::Yes(length) => length,
            Look::More if is_end => return Look::No,
            other => return other,
        };
        let after = &self.head[length..];
        match is_score(after, is_end) {
            Look::More => Look::More,
            Look::No => Look::Yes(length),
            Look::Yes(()) => {
                let next = after.split_once('\n').map_or("", |(_, next)| next).trim_start();
                match self.speakers.other(next) {
                    Look::Yes(_) => {
                        self.is_scene = true;
                        Look::No
                    }
                    Look::More if !is_end => Look::More,
                    _ => Look::Yes(length),
                }
            }
        }
    }

    /// The companion's name, or its role, alone in the first line: a heading.
    fn own_line(&self, is_end: bool) -> Look<usize> {
        let Some((line, rest)) = self.head.split_once('\n') else {
            return if bare_role(&self.head, is_end) == Look::More { Look::More } else { Look::No };
        };
        let name = line.trim().trim_matches(['*', '_', '#', '[', ']', '<', '>', ' ']);
        if !self.speakers.is_called(name) && !matches!(bare_role(line, true), Look::Yes(false)) {
            return Look::No;
        }
        match rest.trim().is_empty() {
            true if is_end => Look::No,
            true => Look::More,
            false => Look::Yes(line.len() + 1),
        }
    }

    /// Whether a quotation mark at the beginning closes at the end.
    fn find_quote(&mut self, close: char, searched: usize, is_end: bool) -> bool {
        let open = self.head.chars().next().map_or(0, char::len_utf8);
        let first = self.head.chars().next();
        match self.head[searched..].find(|c| c == close || Some(c) == first) {
            None if is_end => {
                (self.hold, self.may_be_quoted) = (Hold::None, false);
                true
            }
            None => {
                self.hold = Hold::Quote { close, searched: self.head.len() };
                false
            }
            Some(found) => {
                let end = searched + found;
                let is_close = self.head[end..].starts_with(close);
                let after = self.head[end..].chars().next().map_or(end, |c| end + c.len_utf8());
                let is_last = self.head[after..].trim().is_empty();
                if is_close && is_last && !is_end {
                    self.hold = Hold::Quote { close, searched: end };
                    return false;
                }
                (self.hold, self.may_be_quoted) = (Hold::None, false);
                if is_close && is_last {
                    self.head = self.head[open..end].to_owned();
                    self.names = self.names.max(1);
                }
                true
            }
        }
    }

    /// What happens with the beginning of the undecided text. `None`: more of it is needed.
    fn step(&mut self, is_end: bool) -> Option<Step> {
        let rest = &self.head[self.at..];
        let first = rest.chars().next()?;
        if !self.is_line_start {
            return Some(Step::Say(rest.find('\n').map_or(rest.len(), |end| end + 1)));
        }
        if let Some(fence) = self.fence {
            match fence.close(rest, is_end) {
                Look::More => return None,
                Look::Yes(length) => {
                    self.fence = None;
                    return Some(Step::Say(length));
                }
                Look::No => {
                    self.is_line_start = false;
                    return self.step(is_end);
                }
            }
        }
        if self.is_after_name && first == ' ' {
            return Some(Step::Skip(1));
        }
        self.is_after_name = false;
        if first.is_whitespace() {
            return Some(Step::Say(rest.len() - rest.trim_start().len()));
        }
        match Fence::open(rest, is_end) {
            Look::More => return None,
            Look::Yes((fence, length)) => return self.block(fence, length, is_end),
            Look::No => {}
        }
        if first == '{' && !self.is_announced() {
            match object(rest, is_end) {
                Look::More => return None,
                Look::Yes(kind) => return Some(self.end(kind)),
                Look::No => {}
            }
        }
        if rest.starts_with(|c: char| c.is_ascii_uppercase() || matches!(c, '*' | '`' | '[')) {
            let line = rest.split('\n').next().unwrap_or(rest);
            if is_mark(line) {
                if line.len() == rest.len() && !is_end {
                    return None;
                }
                self.trimmed.insert(Trimmed::Silence);
                return Some(Step::Skip(line.len()));
            }
            if !is_end && line.len() == rest.len() && super::silence::may_become_mark(line) {
                return None;
            }
        }
        let is_listed = self.is_announced() || matches!(bare_role(&self.line, true), Look::Yes(_));
        if !is_listed && !self.words.is_empty() {
            match bare_role(rest, is_end) {
                Look::More => return None,
                Look::Yes(_) => return Some(self.end(Trimmed::OtherSpeaker)),
                Look::No => {}
            }
        }
        if !self.is_scene {
            match self.speakers.other(rest) {
                Look::More if !is_end => return None,
                Look::Yes(length) => match is_score(&rest[length..], is_end) {
                    Look::More => return None,
                    Look::No if self.is_introduced() && !self.is_announced() && !self.is_headed() => {
                        match self.is_dialogue(rest, &rest[..length], is_end) {
                            Look::More => return None,
                            Look::Yes(()) => self.is_scene = true,
                            Look::No => return Some(self.end(Trimmed::OtherSpeaker)),
                        }
                    }
                    Look::No if !self.is_announced() && !self.is_headed() && !self.is_listed(rest) => {
                        return Some(self.end(Trimmed::OtherSpeaker));
                    }
                    _ => self.is_scene = true,
                },
                _ => {}
            }
        }
        if !self.is_scene && !self.is_announced() {
            match self.speakers.own(rest) {
                Look::More if !is_end => return None,
                Look::Yes(length) if is_score(&rest[length..], true) == Look::No => {
                    self.trimmed.insert(Trimmed::OwnName);
                    self.is_after_name = true;
                    return Some(Step::Skip(length));
                }
                _ => {}
            }
        }
        self.begin_line();
        self.is_line_start = false;
        self.step(is_end)
    }

    /// A block of code. One that holds a decision or a call of a tool, and was not announced, is no code.
    fn block(&mut self, fence: Fence, length: usize, is_end: bool) -> Option<Step> {
        let rest = &self.head[self.at..];
        if rest[..length].trim_matches(['`', '~', '\n', ' ', '\r']).starts_with("tool_") {
            return Some(self.end(Trimmed::ToolCall));
        }
        let inside = rest[length..].trim_start();
        if inside.is_empty() && !is_end {
            return None;
        }
        if inside.starts_with('{') && !self.is_announced() {
            match object(inside, is_end) {
                Look::More => return None,
                Look::Yes(kind) => return Some(self.end(kind)),
                Look::No => {}
            }
        }
        self.fence = Some(fence);
        self.begin_line();
        Some(Step::Say(length))
    }

    fn end(&mut self, kind: Trimmed) -> Step {
        self.trimmed.insert(kind);
        Step::End
    }

    /// Whether the line before announces what follows: "Here is the score:".
    fn is_announced(&self) -> bool {
        self.line.trim_end().trim_end_matches(['*', '_']).ends_with([':', '：'])
    }

    /// Whether only headings were said so far.
    fn is_headed(&self) -> bool {
        let line = self.line.trim();
        let is_bold = line.len() > 4 && line.starts_with("**") && line.ends_with("**");
        self.is_heading && (is_bold || line.starts_with('#') || line.chars().all(|c| matches!(c, '-' | '=' | '*')))
    }

    /// Whether only words that lead to a scene were said so far: an assent, a stage direction.
    fn is_introduced(&self) -> bool {
        let line = self.line.trim();
        let is_direction =
            BRACKETS.iter().any(|(open, close)| line.len() > 2 && line.starts_with(*open) && line.ends_with(*close));
        let begins = |begin: &str| line.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin));
        let is_short = line.len() <= MAX_LINE;
        self.is_introduction && (line.is_empty() || is_direction || is_short && INTRODUCTIONS.iter().any(|begin| begins(begin)))
    }

    /// Whether two others speak in turn in the lines that begin here, and the companion does not.
    fn is_dialogue(&self, text: &str, first: &str, is_end: bool) -> Look<()> {
        let seen = first_bytes(text, MAX_DIALOGUE);
        for line in seen.lines().skip(1) {
            if matches!(self.speakers.own(line), Look::Yes(_)) {
                return Look::No;
            }
            if let Look::Yes(length) = self.speakers.other(line)
                && line.get(..length) != Some(first)
            {
                return Look::Yes(());
            }
        }
        if is_end || seen.len() < text.len() { Look::No } else { Look::More }
    }

    /// Whether a line with the name of a role goes on with a list of such lines: "Host: db", "User: tertulia".
    fn is_listed(&self, line: &str) -> bool {
        let is_labelled = self.line.trim_start().split_once(": ").is_some_and(|(label, value)| {
            !label.is_empty() && label.len() <= MAX_LABEL && !label.contains(['.', '!', '?']) && !value.trim().is_empty()
        });
        is_labelled && ROLES.iter().any(|name| matches!(role(line, name), Look::Yes(_)))
    }

    /// A line with words begins.
    fn begin_line(&mut self) {
        self.is_introduction = self.is_introduced();
        self.is_heading = self.is_headed();
        self.line.clear();
    }

    fn say(&mut self, text: &str) {
        for c in text.chars() {
            self.is_line_start = c == '\n' || self.is_line_start && c.is_whitespace();
            if c != '\n' {
                self.line.push(c);
            }
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

/// What a JSON object at the beginning of a line is. `No`: words.
fn object(text: &str, is_end: bool) -> Look<Trimmed> {
    if form::begins_transcript(text) {
        return Look::Yes(Trimmed::OtherSpeaker);
    }
    let read = first_bytes(text, MAX_OBJECT);
    match Object::default().take(read) {
        Some(end) => form::of_line(&read[..end]).map_or(Look::No, Look::Yes),
        None if read.len() < text.len() => Look::No,
        None if is_end => form::of_line(text).map_or(Look::No, Look::Yes),
        None => Look::More,
    }
}
