//! Chains the stages that an answer passes.

use std::collections::BTreeSet;

use super::Trimmed;
use super::cursor::{Cursor, More};

/// What a stage does with the text up to a position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Say(Cursor<'a>),
    Cut(Trimmed, Cursor<'a>),
    /// Outputs a replacement for the text.
    Instead(&'static str, Cursor<'a>),
    /// Discards this text and everything before it.
    Restart(Trimmed, Cursor<'a>),
}

pub(super) trait Stage {
    /// Decides about the text that begins here; it is not empty. `is_begin`: nothing has been output yet.
    fn step<'a>(&mut self, text: Cursor<'a>, is_begin: bool) -> Result<Step<'a>, More>;
}

/// Receives the text that a stage outputs.
pub(super) trait Sink {
    fn push_text(&mut self, text: &str, is_whole: bool);

    /// Discards all text received so far.
    fn restart(&mut self);

    /// Whether no text has been output yet.
    fn is_empty(&self) -> bool;
}

impl Sink for String {
    fn push_text(&mut self, text: &str, _: bool) {
        self.push_str(text);
    }

    fn restart(&mut self) {
        self.clear();
    }

    fn is_empty(&self) -> bool {
        self.trim().is_empty()
    }
}

/// A stage, its input so far, and the next stage or sink.
#[derive(Clone, Debug)]
pub(super) struct Chain<S, N> {
    pub stage: S,
    text: String,
    at: usize,
    pub trimmed: BTreeSet<Trimmed>,
    pub next: N,
}

impl<S: Stage, N: Sink> Chain<S, N> {
    pub const fn new(stage: S, next: N) -> Self {
        Self { stage, text: String::new(), at: 0, trimmed: BTreeSet::new(), next }
    }
}

impl<S: Stage, N: Sink> Sink for Chain<S, N> {
    fn push_text(&mut self, text: &str, is_whole: bool) {
        self.text.push_str(text);
        while self.at < self.text.len() {
            let text = Cursor::new(&self.text, self.at, is_whole);
            let Ok(step) = self.stage.step(text, self.next.is_empty()) else { break };
            match step {
                Step::Say(end) => self.next.push_text(text.until(end), false),
                Step::Instead(instead, _) => self.next.push_text(instead, false),
                Step::Cut(kind, _) => _ = self.trimmed.insert(kind),
                Step::Restart(kind, _) => {
                    self.trimmed.insert(kind);
                    self.next.restart();
                }
            }
            let (Step::Say(end) | Step::Cut(_, end) | Step::Instead(_, end) | Step::Restart(_, end)) = step;
            self.at = end.before().len();
        }
        if is_whole {
            self.next.push_text("", true);
        }
    }

    fn restart(&mut self) {
        (self.text, self.at, self.trimmed) = (String::new(), 0, BTreeSet::new());
        self.next.restart();
    }

    fn is_empty(&self) -> bool {
        self.at == self.text.len() && self.next.is_empty()
    }
}
