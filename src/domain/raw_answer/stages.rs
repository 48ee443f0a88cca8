//! An answer passes several stages, one after the other.

use std::collections::BTreeSet;

use super::Trimmed;
use super::cursor::{Cursor, More};

/// What happens with a text up to this place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Say(Cursor<'a>),
    Cut(Trimmed, Cursor<'a>),
    /// This is said in its place.
    Instead(&'static str, Cursor<'a>),
    /// Neither this nor anything before is said.
    Restart(Trimmed, Cursor<'a>),
}

pub(super) trait Stage {
    /// Decides about the text that begins here, which is not empty. `is_begin`: nothing is said yet.
    fn step<'a>(&mut self, text: Cursor<'a>, is_begin: bool) -> Result<Step<'a>, More>;
}

/// What takes the text that a stage says.
pub(super) trait Sink {
    fn take(&mut self, text: &str, is_whole: bool);

    /// Everything before was not said.
    fn restart(&mut self);

    /// Whether nothing is said yet.
    fn is_empty(&self) -> bool;
}

impl Sink for String {
    fn take(&mut self, text: &str, _: bool) {
        self.push_str(text);
    }

    fn restart(&mut self) {
        self.clear();
    }

    fn is_empty(&self) -> bool {
        self.trim().is_empty()
    }
}

/// A stage, its text up to now, and what follows it.
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
    fn take(&mut self, text: &str, is_whole: bool) {
        self.text.push_str(text);
        while self.at < self.text.len() {
            let text = Cursor::new(&self.text, self.at, is_whole);
            let Ok(step) = self.stage.step(text, self.next.is_empty()) else { break };
            match step {
                Step::Say(end) => self.next.take(text.until(end), false),
                Step::Instead(instead, _) => self.next.take(instead, false),
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
            self.next.take("", true);
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
