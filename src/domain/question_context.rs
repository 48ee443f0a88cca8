//! What a question to a model is about, beside its text.

use std::sync::Arc;

use super::closing::Stage;
use super::message::{Author, Message};
use super::trigger::Trigger;

/// What a question is about. It travels with the request as an extension: `rehearsal` goes by it, and a real model reads the text alone.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionContext {
    /// What is asked for.
    pub purpose: Purpose,
    /// The chattiness of the companion whose question it is, verbatim; empty for a summary and a judgement.
    pub chattiness: Arc<str>,
    /// The newest messages, oldest first: the last one is what the question is about.
    pub newest: Vec<Line>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// YES or NO, in two lines.
    Decision {
        /// Why it is asked.
        trigger: Trigger,
    },
    /// Decision and vote in one, as a JSON object.
    Vote {
        /// Why it is asked.
        trigger: Trigger,
    },
    /// The words of a statement.
    Statement {
        /// What it answers.
        trigger: Trigger,
        /// How near its end the speaker sees the conversation.
        closing: Stage,
    },
    /// A summary of what was said.
    Summary,
    /// How much the last messages repeat one another, as a number.
    Judgement,
}

/// A message as far as it counts here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who said it.
    pub from: Author,
    /// The words.
    pub text: Arc<str>,
}

impl Line {
    /// The most lines of a context.
    pub const MOST: usize = 8;

    /// The newest of some messages, both from the oldest to the newest.
    pub fn newest_of<'a>(messages: impl DoubleEndedIterator<Item = &'a Message>) -> Vec<Self> {
        let line = |message: &Message| Self { from: message.from.clone(), text: message.text.clone() };
        let mut lines: Vec<Self> = messages.rev().take(Self::MOST).map(line).collect();
        lines.reverse();
        lines
    }
}
