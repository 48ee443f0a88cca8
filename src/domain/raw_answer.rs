//! Extracts the statement from a model's raw answer and drops everything else (docs/design/speaking.md S-5, docs/design/gate.md
//! G-29).
//!
//! An answer passes four `stages`. Each stage reads at a `cursor` and waits for more text before it decides.
//!
//! * `visible` drops thoughts, channels, tool calls and everything after the end of the turn. `tags` and `code` find the markers.
//! * `residue` drops citation markers and undecoded tokens.
//! * `echo` drops sentences that the model copied word for word from the prompt.
//! * `words` keeps the companion's own words. It drops its name, other speakers' lines, JSON and announcements of silence, which
//!   `speakers`, `form` and `silence` recognise.
//!
//! A growing answer and a complete one are read in the same way, so that no text is shown or spoken that is dropped later. The
//! exceptions are a closing marker without an opening one and a late final channel: the text before them has already been output.

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
use self::words::Words;
pub use super::trimmed::Trimmed;

/// The reason why an answer has no words. If several apply, the last one in this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nothing {
    /// The answer has no visible text.
    Empty,
    /// The answer is only thoughts.
    Thoughts,
    /// The answer only announces silence.
    Silence,
    /// The model wrote something else than requested: a decision, a tool call, or other speakers' lines.
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

    /// The reason for an answer without words from which these parts were cut.
    fn of(trimmed: &BTreeSet<Trimmed>) -> Self {
        let nothing = trimmed.iter().map(|kind| match kind {
            Trimmed::EndOfTurn | Trimmed::OwnName => Self::Empty,
            Trimmed::Thought | Trimmed::Channel => Self::Thoughts,
            Trimmed::Silence => Self::Silence,
            _ => Self::Other,
        });
        nothing.max().unwrap_or(Self::Empty)
    }

    /// Whether the model wrote something else than requested, so that the request is repeated once.
    pub fn is_to_repeat(self) -> bool {
        self.code() == "no_statement"
    }
}

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub words: Result<String, Nothing>,
    /// The kinds of text that were cut from the answer.
    pub trimmed: BTreeSet<Trimmed>,
    /// A thought was closed without having been opened: the endpoint opened the thought itself.
    pub began_in_thought: bool,
    /// The statement ended before the answer did: the turn ended, or another speaker's line, a decision or a tool call began.
    pub is_over: bool,
}

/// Reads a statement as it streams in. How the text is split into pieces makes no difference.
#[derive(Clone, Debug)]
pub struct Reader {
    chain: Chain<Visible, Chain<Residue, Chain<Echo, Words>>>,
    begins_in_thought: bool,
}

impl Reader {
    /// Creates a reader. If `begins_in_thought`, the endpoint is known to open this model's thought itself, so no words are shown
    /// before the thought is closed.
    pub fn new(speakers: Speakers, begins_in_thought: bool) -> Self {
        let echo = Echo(speakers.known.clone());
        let words = Chain::new(Residue, Chain::new(echo, Words::new(Arc::new(speakers))));
        Self { chain: Chain::new(Visible::new(Purpose::Words), words), begins_in_thought }
    }

    /// Appends the next piece of the answer.
    pub fn feed(&mut self, piece: &str) {
        self.chain.push_text(piece, false);
    }

    /// The words so far. They only grow, except at a restart.
    pub fn words(&self) -> &str {
        if self.is_held() { "" } else { &self.said().words }
    }

    /// How often words were discarded, because a thought was closed that had not been opened, or because the final channel began.
    pub const fn restarts(&self) -> usize {
        self.said().restarts
    }

    /// Whether the rest of the answer is ignored, because another speaker's line, a decision or a tool call began.
    pub fn is_over(&self) -> bool {
        self.said().is_over() && !self.is_held()
    }

    /// Marks the answer as complete and returns the result.
    pub fn finish(mut self) -> Reading {
        self.chain.push_text("", true);
        let is_over = self.said().is_over() || self.chain.stage.is_over();
        let Chain { stage: visible, mut trimmed, next: Chain { next: echo, .. }, .. } = self.chain;
        trimmed.extend(echo.trimmed.iter().chain(&echo.next.trimmed));
        let is_over = is_over || trimmed.contains(&Trimmed::EndOfTurn);
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

/// Reads a complete statement.
pub fn statement(text: &str, speakers: Speakers) -> Reading {
    let mut reader = Reader::new(speakers, false);
    reader.feed(text);
    reader.finish()
}

/// An answer that is not a statement (a decision, a judgement, a summary), without its hidden parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unveiled<'a> {
    /// The visible text.
    pub text: Cow<'a, str>,
    /// The text before the last closing marker without an opening one. It is a thought that the endpoint opened itself, or an
    /// answer that quotes the marker.
    pub unopened: Option<&'a str>,
    /// The kinds of text that were cut from the answer.
    pub trimmed: BTreeSet<Trimmed>,
}

/// Removes thoughts, channels and everything after the end of the turn from a decision or a judgement. Markers inside a JSON
/// object are kept.
pub fn decision(text: &str) -> Unveiled<'_> {
    unveiled(text, Purpose::Decision)
}

/// Reads a plain text that is not a statement, such as a summary. Removes thoughts, channels, everything after the end of the
/// turn, a line that announces the text, and JSON around it. `None` if the answer is a vote or lines of a transcript.
pub fn prose(text: &str) -> Option<String> {
    let seen = unveiled(text, Purpose::Words).text;
    let seen = form::without_announcement(&seen);
    let words = form::read(seen, |_| false).map_or_else(|| seen.to_owned(), |(words, _)| words);
    (!form::begins_transcript(seen) && words.contains(char::is_alphanumeric)).then_some(words)
}

fn unveiled(text: &str, purpose: Purpose) -> Unveiled<'_> {
    let mut chain = Chain::new(Visible::new(purpose), String::new());
    chain.push_text(text, true);
    let Chain { stage: visible, trimmed, next: shown, .. } = chain;
    let text_shown = if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) };
    Unveiled { text: text_shown, unopened: visible.unopened.map(|end| &text[..end]), trimmed }
}
