//! Takes a model's raw answer apart: what of it is said, and what is not (docs/design/speaking.md S-5, docs/design/gate.md G-29).
//!
//! * `visible`: thoughts, channels, calls of tools and what follows the end of the turn are left out. `tags` and `code` find their marks.
//! * `residue`: marks of citations and tokens that were not decoded are removed.
//! * `echo`: of what is left, nothing that stands in the prompt word for word is said.
//! * `words`: of what is left, the companion's own words. `speakers`, `form` and `silence` recognise what is in their way.
//!
//! An answer is read in the same way while it grows and when it is whole, so that nothing is shown or spoken that is cut later. The one exception is
//! a closing mark without an opening one: what was before it cannot be taken back.

mod code;
mod echo;
mod form;
mod residue;
mod silence;
mod speakers;
mod tags;
#[cfg(test)]
mod tests;
mod visible;
mod words;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use self::echo::Echo;
pub use self::echo::Known;
use self::form::Form;
use self::residue::Residue;
use self::visible::{Piece, Purpose, Visible};
#[cfg(test)]
pub(in crate::domain) use self::words::MAX_CHARS;
pub use self::words::Speakers;
use self::words::Words;
pub use super::trimmed::Trimmed;

/// Why an answer holds no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// Nothing in it is visible.
    Empty,
    /// It is only thoughts.
    Thoughts,
    /// It says that nothing is said.
    Silence,
    /// It is a decision.
    Decision,
    /// It is a call of a tool.
    ToolCall,
    /// It is a transcript of others, JSON without words, or what stands in the prompt.
    Form,
}

impl Nothing {
    /// A stable code for records, spans and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Thoughts => "only_thoughts",
            Self::Silence | Self::Decision | Self::ToolCall | Self::Form => "no_statement",
        }
    }

    /// Whether the model wrote something else than it was asked for, so that it is asked once more.
    pub fn is_to_repeat(self) -> bool {
        self.code() == "no_statement"
    }
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub words: Result<String, Nothing>,
    /// What was cut out of the answer.
    pub trimmed: BTreeSet<Trimmed>,
    /// A closing mark of a thought came without an opening one: the endpoint began the thought itself.
    pub began_in_thought: bool,
    /// The words were over before the answer was: their turn ended, or somebody else spoke.
    pub is_over: bool,
}

/// Reads a statement while it grows. It does not matter in which pieces it comes.
#[derive(Clone, Debug)]
pub struct Reader {
    speakers: Arc<Speakers>,
    visible: Visible,
    residue: Residue,
    echo: Echo,
    words: Words,
    begins_in_thought: bool,
    restarts: usize,
}

impl Reader {
    /// Before the first word. `begins_in_thought`: the endpoint is known to begin the thoughts of this model itself, so that nothing is shown before they end.
    pub fn new(speakers: Speakers, begins_in_thought: bool) -> Self {
        let speakers = Arc::new(speakers);
        let (visible, words) = (Visible::new(Purpose::Words).said_among(speakers.clone()), Words::new(speakers.clone()));
        let echo = Echo::new(speakers.known.clone());
        Self { speakers, visible, residue: Residue::default(), echo, words, begins_in_thought, restarts: 0 }
    }

    /// Takes the next piece of the answer.
    pub fn feed(&mut self, piece: &str) {
        self.take(piece, false);
    }

    /// The words so far. They only grow, except at a restart.
    pub fn words(&self) -> &str {
        if self.is_held() { "" } else { self.words.so_far() }
    }

    /// How often words were taken back, because a thought ended that had no beginning.
    pub const fn restarts(&self) -> usize {
        self.restarts
    }

    /// Whether nothing more is read of the answer: somebody else speaks in it.
    pub const fn is_over(&self) -> bool {
        self.words.is_over && !self.is_held()
    }

    /// The answer is whole.
    pub fn finish(mut self) -> Reading {
        self.take("", true);
        let began_in_thought = self.visible.unopened.is_some();
        let is_over = self.words.is_over || self.visible.is_over();
        let mut trimmed = self.visible.trimmed;
        trimmed.append(&mut self.words.trimmed);
        trimmed.extend(self.echo.found.then_some(Trimmed::Prompt));
        let words = self.words.finish();
        let nothing = self.words.nothing.unwrap_or_else(|| match () {
            () if trimmed.contains(&Trimmed::ToolCall) => Nothing::ToolCall,
            () if trimmed.contains(&Trimmed::Thought) || trimmed.contains(&Trimmed::Channel) => Nothing::Thoughts,
            () if trimmed.contains(&Trimmed::Decision) => Nothing::Decision,
            () if trimmed.contains(&Trimmed::OtherSpeaker) || trimmed.contains(&Trimmed::Prompt) => Nothing::Form,
            () => Nothing::Empty,
        });
        Reading { words: if words.is_empty() { Err(nothing) } else { Ok(words) }, trimmed, began_in_thought, is_over }
    }

    const fn is_held(&self) -> bool {
        self.begins_in_thought && self.visible.unopened.is_none() && !self.visible.has_final
    }

    fn take(&mut self, piece: &str, is_end: bool) {
        let (words, speakers, restarts) = (&mut self.words, &self.speakers, &mut self.restarts);
        let (residue, echo) = (&mut self.residue, &mut self.echo);
        self.visible.feed(piece, is_end, &mut |piece| match piece {
            Piece::More(text) => {
                residue.feed(text, false, &mut |text| echo.feed(text, false, &mut |text| words.feed(text, false)));
            }
            Piece::Restart => {
                *restarts += usize::from(!words.so_far().is_empty());
                *words = Words::new(speakers.clone());
                (*residue, *echo) = (Residue::default(), Echo::new(speakers.known.clone()));
            }
        });
        if is_end {
            residue.feed("", true, &mut |text| echo.feed(text, false, &mut |text| words.feed(text, false)));
            echo.feed("", true, &mut |text| words.feed(text, false));
            words.feed("", true);
        }
    }
}

/// Reads a whole statement.
pub fn statement(text: &str, speakers: Speakers) -> Reading {
    let mut reader = Reader::new(speakers, false);
    reader.feed(text);
    reader.finish()
}

/// An answer without what is not said of it, that is no statement: a decision, a judgement, a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unveiled<'a> {
    /// What is left.
    pub text: Cow<'a, str>,
    /// The text before the last closing mark that has no opening one: a thought that the endpoint began itself, or an answer that quotes the mark.
    pub unopened: Option<&'a str>,
    /// What was cut out.
    pub trimmed: BTreeSet<Trimmed>,
}

/// A decision or a judgement without thoughts, channels and what follows the end of the turn. Marks in a JSON object stay.
pub fn decision(text: &str) -> Unveiled<'_> {
    unveiled(text, Purpose::Decision)
}

/// A text in plain words that is no statement, such as a summary: without thoughts, channels, what follows the end of the turn, the line that announces
/// it and JSON around it.
pub fn prose(text: &str) -> String {
    let seen = unveiled(text, Purpose::Words).text;
    let words = form::without_announcement(&seen);
    match form::read(words, |_| true) {
        Form::Words(words, _) => words,
        Form::Nothing(_) | Form::Other => words.to_owned(),
    }
}

/// A summary in plain words. None: it is a vote, the talk again, or words that refuse to write one.
pub fn summary(text: &str) -> Option<String> {
    let seen = unveiled(text, Purpose::Words).text;
    let is_other = form::begins_transcript(seen.trim_start()) || matches!(form::read(&seen, |_| true), Form::Nothing(_));
    let words = prose(text).trim().to_owned();
    let is_refusal = words.chars().count() < MAX_REFUSAL_CHARS && {
        let begin = words.to_lowercase().replace('’', "'");
        REFUSALS.iter().any(|refusal| begin.starts_with(refusal))
    };
    (!is_other && !is_refusal && words.contains(char::is_alphanumeric)).then_some(words)
}

/// How models refuse to write something, and how long such an answer is at most.
const REFUSALS: [&str; 8] =
    ["i'm sorry", "i am sorry", "sorry,", "i can't", "i cannot", "i'm not able", "i am not able", "as an ai"];
const MAX_REFUSAL_CHARS: usize = 200;

fn unveiled(text: &str, purpose: Purpose) -> Unveiled<'_> {
    let mut visible = Visible::new(purpose);
    let mut shown = String::with_capacity(text.len());
    visible.feed(text, true, &mut |piece| match piece {
        Piece::More(more) => shown.push_str(more),
        Piece::Restart => shown.clear(),
    });
    let text_shown = if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) };
    Unveiled { text: text_shown, unopened: visible.unopened.map(|end| &text[..end]), trimmed: visible.trimmed }
}

/// Whether something is the case at the beginning of a text that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look<T> {
    Yes(T),
    /// More of the text is needed.
    More,
    No,
}

impl<T> Look<T> {
    /// This, or else what another look gives.
    fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Yes(_) => self,
            Self::No => other(),
            Self::More => match other() {
                Self::No => Self::More,
                other => other,
            },
        }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Yes(found) => Look::Yes(change(found)),
            Self::More => Look::More,
            Self::No => Look::No,
        }
    }

    /// The same, at the end of the text.
    fn at_end(self) -> Self {
        match self {
            Self::More => Self::No,
            other => other,
        }
    }
}
