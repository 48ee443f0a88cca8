//! Answers the questions of a run: from the lists of its script, or by another implementation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::script::{Answer, Answers, Script};
use crate::domain::conversation::Conversation;
use crate::domain::event::Evaluated;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::trigger::Trigger;

/// A question to a model in a run.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// The question whether a companion speaks.
    Decision {
        /// The companion and the messages.
        evaluated: &'a Evaluated,
    },
    /// The request for the text of a statement.
    Statement {
        companion: &'a CompanionId,
        /// The trigger that led to the statement.
        trigger: Trigger,
        /// The numbers of the messages that it answers.
        messages: &'a [Seq],
    },
    /// The question how much the last statements repeat each other.
    Judgement,
}

impl Question<'_> {
    /// The companion of the question. `None` for a judgement.
    pub fn companion(&self) -> Option<&CompanionId> {
        match self {
            Self::Decision { evaluated, .. } => Some(&evaluated.companion),
            Self::Statement { companion, .. } => Some(companion),
            Self::Judgement => None,
        }
    }
}

/// Plays the models in a run.
pub trait Responder {
    /// Answers a question. `conversation` is the state after the step that led to it.
    fn answer(&mut self, question: Question<'_>, conversation: &Conversation) -> Answer;
}

/// Answers from the lists of a script.
pub struct ScriptedAnswers<'a> {
    script: &'a Script,
    side: BTreeMap<Option<CompanionId>, Cursor>,
    main: BTreeMap<Option<CompanionId>, Cursor>,
}

impl<'a> ScriptedAnswers<'a> {
    pub fn of(script: &'a Script) -> Self {
        Self { script, side: BTreeMap::new(), main: BTreeMap::new() }
    }
}

impl Responder for ScriptedAnswers<'_> {
    fn answer(&mut self, question: Question<'_>, _: &Conversation) -> Answer {
        match question {
            Question::Decision { .. } | Question::Judgement => next(&self.script.side, &mut self.side, question.companion()),
            Question::Statement { .. } => next(&self.script.main, &mut self.main, question.companion()),
        }
    }
}

/// A position in a list.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor(usize);

impl Cursor {
    /// The next item. `None` at the end of the list.
    pub(super) fn take_once<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        self.0 += 1;
        list.get(self.0 - 1)
    }

    /// The next item. The last one repeats. `None` if the list is empty.
    pub(super) fn next_or_last<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let item = list.get(self.0).or(list.last());
        self.0 += 1;
        item
    }
}

fn next(answers: &Answers, cursors: &mut BTreeMap<Option<CompanionId>, Cursor>, companion: Option<&CompanionId>) -> Answer {
    let owner = companion.filter(|companion| answers.own.contains_key(companion)).cloned();
    let list = owner.as_ref().map_or(&*answers.shared, |owner| answers.of(owner));
    let item = cursors.entry(owner.clone()).or_default().next_or_last(list).cloned();
    item.unwrap_or_else(|| Answer { outcome: Err("no answer".into()), delay: Duration::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::run_with;

    #[test]
    fn a_run_asks_its_responder() {
        let mut responder = Silent { asked: Vec::new() };

        run_with(&talk(), &mut responder).unwrap();

        assert_eq!(responder.asked, ["aria"]);
    }

    fn talk() -> Script {
        let script = Script::from_toml(
            r#"
            companions = [{ id = "aria" }, { id = "bruno" }]
            until = 5.0
            events = [{ at = 0.0, channel = "quay", from = "Rosa", text = "Aria?" }]
            "#,
        );
        script.unwrap()
    }

    /// Answers every question with NO.
    struct Silent {
        asked: Vec<String>,
    }

    impl Responder for Silent {
        fn answer(&mut self, question: Question<'_>, _: &Conversation) -> Answer {
            self.asked.extend(question.companion().map(ToString::to_string));
            Answer { outcome: Ok("NO".to_owned()), delay: Duration::ZERO }
        }
    }
}
