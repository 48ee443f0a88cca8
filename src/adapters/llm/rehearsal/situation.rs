//! Analyses the newest message and the messages before it with simple rules.

use super::kind::{Kind, is_brief, is_for_all, is_goodbye, words};
use crate::domain::message::Role;
use crate::domain::question_context::{Line, QuestionContext};
use crate::ports::language_model::Request;

/// The newest message, analysed, and the streak of companions' statements that it ends.
#[derive(Debug)]
pub(super) struct Situation {
    /// The name of the newest author other than this companion, short and on one line.
    pub speaker: String,
    pub kind: Kind,
    /// Whether it addresses the whole room.
    pub is_for_all: bool,
    /// Whether it is so short that it needs no answer.
    pub is_brief: bool,
    pub names_me: bool,
    /// The author of the newest message that names the companion. `None`: the companion was addressed in another way, by a reply.
    pub caller: Option<String>,
    /// Whether it asks or requests something.
    pub asks: bool,
    /// Whether its author is another companion.
    pub by_companion: bool,
    /// The number of statements by companions since the last message of another author.
    pub streak: usize,
    /// Whether a companion said goodbye in one of them, so that the conversation is over.
    pub is_over: bool,
    /// The kind of the last message by an author other than a companion.
    pub opening: Kind,
    /// The newest messages in lower case, which should not be repeated.
    pub said: Vec<String>,
}

impl Situation {
    /// Analyses the newest messages of a question.
    pub fn of(request: &Request, context: &QuestionContext) -> Self {
        let newest = context.newest.last();
        let (speaker, text) = newest.map_or(("", ""), |line| (&*line.from.name, &*line.text));
        let lower = text.to_lowercase();
        let me = request.companion.as_ref().map_or(String::new(), |companion| companion.name.to_lowercase());
        let me = words(&me);

        let is_mine = |line: &Line| request.companion.as_ref().is_some_and(|companion| *line.from.id == *companion.id.as_str());
        let names_me = |text: &str| !me.is_empty() && words(text).windows(me.len()).any(|some| some == me);
        let calls_me = |line: &&Line| !is_mine(line) && names_me(&line.text.to_lowercase());
        let is_statement = |line: &&Line| line.from.role == Role::Companion;
        let run: Vec<&Line> = context.newest.iter().rev().take_while(is_statement).collect();
        let other = context.newest.iter().rev().nth(run.len()).map_or("", |line| &*line.text);
        let kind = Kind::of(text);
        Self {
            // A companion does not address itself.
            speaker: printable(context.newest.iter().rev().find(|line| !is_mine(line)).map_or(speaker, |line| &line.from.name)),
            kind,
            is_for_all: is_for_all(text),
            is_brief: is_brief(text),
            names_me: names_me(&lower),
            caller: context.newest.iter().rev().find(calls_me).map(|line| printable(&line.from.name)),
            asks: kind.asks() || text.contains(['?', '？']),
            by_companion: newest.is_some_and(|line| is_statement(&line) && !is_mine(line)),
            streak: run.len(),
            is_over: run.iter().any(|line| is_goodbye(&line.text)),
            opening: Kind::of(other),
            said: context.newest.iter().map(|line| line.text.to_lowercase()).collect(),
        }
    }
}

/// A name from outside, made safe for a sentence: without characters that a parser of answers would read as a thought or an
/// object.
pub(super) fn printable(name: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !matches!(c, '<' | '>' | '{' | '}');
    let name: String = name.chars().filter(is_plain).take(32).collect();
    let name = name.trim();
    if name.is_empty() { "somebody".to_owned() } else { name.to_owned() }
}
