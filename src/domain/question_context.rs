//! The context of a question to a model, besides its text.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::closing::Stage;
use super::message::{Author, Message};
use super::moment::Moment;
use super::trigger::Trigger;
use super::vote::together::Voter;

/// The context of a question. It is an extension of the request: `rehearsal` uses it to answer, and a real model reads only the text.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionContext {
    /// The kind of answer that is requested.
    pub purpose: Purpose,
    /// The newest messages, oldest first. The question is about the last one.
    pub newest: Vec<Line>,
}

/// The kind of answer that is requested.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// A decision, YES or NO, and a vote, as one JSON object.
    Vote { trigger: Trigger },
    /// The votes of several companions, as one JSON object. Each companion has the context in which it would be asked alone.
    Votes { of: Vec<(Voter, QuestionContext)> },
    /// The text of a statement.
    Statement {
        /// The trigger that led to the statement.
        trigger: Trigger,
        closing: Stage,
        /// The number of statements that this one replaces at a user's request.
        tries: u32,
    },
    /// A summary of the messages.
    Summary,
    /// Notes about the messages.
    Notes,
    /// The brief of a persona.
    Brief,
    /// The description of a picture.
    Caption,
    /// A score from 0 to 1: how much the last statements repeat each other.
    Judgement,
}

/// Older messages that a statement's prompt shows in addition to the newest ones, oldest first. It is an extension of the request, like
/// [`QuestionContext`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Earlier(pub Vec<(Line, Day)>);

/// The new messages that a statement answers, oldest first. It is an extension of the request, like [`QuestionContext`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// The messages of people, without those to others only.
    pub asked: Vec<Line>,
    /// The events of reminders that are due.
    pub reminders: Vec<Line>,
}

/// The day of a message, as a phrase: `today`, `yesterday`, `on Monday`, `on 3 November`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day(pub String);

impl Day {
    /// The day of a moment, relative to another one in the same time zone.
    pub fn of(at: Moment, now: Moment, zone: &TimeZone) -> Self {
        let (day, today) = (at.zoned(zone).date(), now.zoned(zone).date());
        Self(match today.since(day).map_or(i32::MAX, |span| span.get_days()) {
            ..=0 => "today".to_owned(),
            1 => "yesterday".to_owned(),
            2..=6 => day.strftime("on %A").to_string(),
            _ => day.strftime("on %-d %B").to_string(),
        })
    }
}

/// The author and the text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub from: Author,
    /// The text, as the author wrote it.
    pub text: Arc<str>,
}

impl Line {
    /// The maximum number of messages in a context.
    pub const MOST: usize = 8;

    /// The newest [`MOST`](Self::MOST) of some messages. Both lists are ordered from the oldest to the newest.
    pub fn newest_of<'a>(messages: impl DoubleEndedIterator<Item = &'a Message>) -> Vec<Self> {
        let line = |message: &Message| Self { from: message.from.clone(), text: message.text.clone() };
        let mut lines: Vec<Self> = messages.rev().take(Self::MOST).map(line).collect();
        lines.reverse();
        lines
    }
}
