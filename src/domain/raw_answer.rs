//! Takes a model's raw answer apart: what of it is said, and what is not (docs/design/speaking.md S-5, docs/design/gate.md G-29).
//!
//! An answer passes four `stages`. Each reads at a `cursor`, and decides nothing before enough of the text is there.
//!
//! * `visible`: thoughts, channels, calls of tools and what follows the end of the turn are left out. `tags` and `code` find their marks.
//! * `residue`: marks of citations and tokens that were not decoded are removed.
//! * `echo`: of what is left, nothing that stands in the prompt word for word is said.
//! * `words`: of what is left, the companion's own words. `speakers`, `form` and `silence` recognise what is in their way.
//!
//! An answer is read in the same way while it grows and when it is whole, so that nothing is shown or spoken that is cut later. The one exception is
//! a closing mark without an opening one: what was before it cannot be taken back.

mod code;
mod cursor;
mod echo;
mod form;
mod residue;
mod silence;
mod speakers;
mod stages;
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
use self::residue::Residue;
pub use self::speakers::Speakers;
use self::stages::{Chain, Sink};
use self::visible::{Purpose, Visible};
#[cfg(test)]
pub(crate) use self::words::MAX_CHARS;
use self::words::Words;
pub use super::trimmed::Trimmed;

/// Why an answer holds no words. Of several reasons, the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nothing {
    /// Nothing in it is visible.
    Empty,
    /// It is only thoughts.
    Thoughts,
    /// It says that nothing is said.
    Silence,
    /// It is something else than it was asked for: a decision, a call of a tool, the talk of others.
    Other,
}

impl Nothing {
    /// A stable code for records, spans and metrics.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Thoughts => "only_thoughts",
            Self::Silence | Self::Other => "no_statement",
        }
    }

    /// Why an answer holds no words of which this was cut out.
    fn of(trimmed: &BTreeSet<Trimmed>) -> Self {
        let nothing = trimmed.iter().map(|kind| match kind {
            Trimmed::EndOfTurn | Trimmed::OwnName => Self::Empty,
            Trimmed::Thought | Trimmed::Channel => Self::Thoughts,
            Trimmed::Silence => Self::Silence,
            _ => Self::Other,
        });
        nothing.max().unwrap_or(Self::Empty)
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
    chain: Chain<Visible, Chain<Residue, Chain<Echo, Words>>>,
    begins_in_thought: bool,
}

impl Reader {
    /// Before the first word. `begins_in_thought`: the endpoint is known to begin the thoughts of this model itself, so that nothing is shown before they end.
    pub fn new(speakers: Speakers, begins_in_thought: bool) -> Self {
        let echo = Echo(speakers.known.clone());
        let words = Chain::new(Residue, Chain::new(echo, Words::new(Arc::new(speakers))));
        Self { chain: Chain::new(Visible::new(Purpose::Words), words), begins_in_thought }
    }

    /// Takes the next piece of the answer.
    pub fn feed(&mut self, piece: &str) {
        self.chain.take(piece, false);
    }

    /// The words so far. They only grow, except at a restart.
    pub fn words(&self) -> &str {
        if self.is_held() { "" } else { &self.said().words }
    }

    /// How often words were taken back, because a thought ended that had no beginning.
    pub const fn restarts(&self) -> usize {
        self.said().restarts
    }

    /// Whether nothing more is read of the answer: somebody else speaks in it.
    pub fn is_over(&self) -> bool {
        self.said().is_over() && !self.is_held()
    }

    /// The answer is whole.
    pub fn finish(mut self) -> Reading {
        self.chain.take("", true);
        let is_over = self.said().is_over() || self.chain.stage.is_over();
        let Chain { stage: visible, mut trimmed, next: Chain { next: echo, .. }, .. } = self.chain;
        trimmed.extend(echo.trimmed.iter().chain(&echo.next.trimmed));
        let words = Some(echo.next.finish()).filter(|words| !words.is_empty()).ok_or_else(|| Nothing::of(&trimmed));
        Reading { words, trimmed, began_in_thought: visible.unopened.is_some(), is_over }
    }

    const fn said(&self) -> &Words {
        &self.chain.next.next.next
    }

    const fn is_held(&self) -> bool {
        let visible = &self.chain.stage;
        self.begins_in_thought && visible.unopened.is_none() && !visible.has_final
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
/// it and JSON around it. None: it is a vote, or lines of the talk.
pub fn prose(text: &str) -> Option<String> {
    let seen = unveiled(text, Purpose::Words).text;
    let seen = form::without_announcement(&seen);
    let words = form::read(seen, |_| false).map_or_else(|| seen.to_owned(), |(words, _)| words);
    (!form::begins_transcript(seen) && words.contains(char::is_alphanumeric)).then_some(words)
}

/// A summary in plain words. None: it is none, or words that refuse to write one.
pub fn summary(text: &str) -> Option<String> {
    let words = prose(text)?.trim().to_owned();
    let begin = words.to_lowercase().replace('’', "'");
    let is_refusal = words.len() < MAX_REFUSAL && REFUSALS.iter().any(|refusal| begin.starts_with(refusal));
    (!is_refusal).then_some(words)
}

/// How models refuse to write something, and how long such an answer is at most, in bytes.
const REFUSALS: [&str; 8] =
    ["i'm sorry", "i am sorry", "sorry,", "i can't", "i cannot", "i'm not able", "i am not able", "as an ai"];
const MAX_REFUSAL: usize = 200;

fn unveiled(text: &str, purpose: Purpose) -> Unveiled<'_> {
    let mut chain = Chain::new(Visible::new(purpose), String::new());
    chain.take(text, true);
    let Chain { stage: visible, trimmed, next: shown, .. } = chain;
    let text_shown = if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) };
    Unveiled { text: text_shown, unopened: visible.unopened.map(|end| &text[..end]), trimmed }
}
