//! Who answers what a run asks: the lists of its script, or somebody else.

use std::collections::BTreeMap;
use std::time::Duration;

use super::script::{Answer, Answers, Script};
use crate::domain::conversation::Conversation;
use crate::domain::event::Evaluated;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::trigger::Trigger;

/// What is asked for in a run.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// Whether a companion speaks.
    Decision {
        /// Who is asked, and about what.
        evaluated: &'a Evaluated,
        /// It is asked in a round: decision and vote in one.
        is_vote: bool,
    },
    /// The words of a statement.
    Statement {
        /// Who speaks.
        companion: &'a CompanionId,
        /// What led to it.
        trigger: Trigger,
        /// The snapshot that it answers.
        messages: &'a [Seq],
    },
    /// How much the last messages repeat each other.
    Judgement,
}

impl Question<'_> {
    /// Whose question it is; a judgement is nobody's.
    pub fn companion(&self) -> Option<&CompanionId> {
        match self {
            Self::Decision { evaluated, .. } => Some(&evaluated.companion),
            Self::Statement { companion, .. } => Some(companion),
            Self::Judgement => None,
        }
    }
}

/// Whoever answers in a run.
pub trait Players {
    /// The answer to a question. The conversation stands as it did when the step was over that asked.
    fn answer(&mut self, question: Question<'_>, conversation: &Conversation) -> Answer;

    /// Whether in every round everyone is asked, listeners too: see [`Rules::asks_everyone`](crate::domain::conversation::Rules).
    fn asks_everyone(&self) -> bool {
        false
    }
}

/// The lists of a script.
pub(super) struct Lists<'a> {
    script: &'a Script,
    side: BTreeMap<Option<CompanionId>, Turns>,
    main: BTreeMap<Option<CompanionId>, Turns>,
}

impl<'a> Lists<'a> {
    pub(super) fn of(script: &'a Script) -> Self {
        Self { script, side: BTreeMap::new(), main: BTreeMap::new() }
    }
}

impl Players for Lists<'_> {
    fn answer(&mut self, question: Question<'_>, _: &Conversation) -> Answer {
        match question {
            Question::Decision { .. } | Question::Judgement => next(&self.script.side, &mut self.side, question.companion()),
            Question::Statement { .. } => next(&self.script.main, &mut self.main, question.companion()),
        }
    }
}

/// Takes from a list, one after the other; the last one repeats.
#[derive(Clone, Copy, Default)]
pub(super) struct Turns(usize);

impl Turns {
    pub(super) fn take<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let taken = list.get(self.0).or(list.last());
        self.0 += 1;
        taken
    }
}

fn next(answers: &Answers, turns: &mut BTreeMap<Option<CompanionId>, Turns>, companion: Option<&CompanionId>) -> Answer {
    let owner = companion.filter(|companion| answers.own.contains_key(companion)).cloned();
    let list = owner.as_ref().map_or(&*answers.shared, |owner| answers.of(owner));
    let taken = turns.entry(owner.clone()).or_default().take(list).cloned();
    taken.unwrap_or_else(|| Answer { outcome: Err("no answer".into()), delay: Duration::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{What, run_with};

    #[test]
    fn a_run_asks_whoever_plays_the_models() {
        let mut players = Silent { asks_everyone: false, asked: Vec::new() };

        run_with(&talk(), &mut players).unwrap();

        assert_eq!(players.asked, ["aria"]);
    }

    #[test]
    fn where_everyone_is_asked_listeners_are_asked_too() {
        let mut players = Silent { asks_everyone: true, asked: Vec::new() };

        let happenings = run_with(&talk(), &mut players).unwrap();

        assert_eq!(players.asked, ["aria", "bruno"]);
        assert_eq!(happenings.iter().filter(|happening| matches!(happening.what, What::Round { .. })).count(), 1);
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

    /// Everyone says NO.
    struct Silent {
        asks_everyone: bool,
        asked: Vec<String>,
    }

    impl Players for Silent {
        fn answer(&mut self, question: Question<'_>, _: &Conversation) -> Answer {
            self.asked.extend(question.companion().map(ToString::to_string));
            Answer { outcome: Ok("NO".to_owned()), delay: Duration::ZERO }
        }

        fn asks_everyone(&self) -> bool {
            self.asks_everyone
        }
    }
}
