//! Bugs that a test build can switch on, to see that the simulation catches them (`.ci/planted`). In every other build each of them is off.

/// A bug, and the name that switches it on.
macro_rules! bugs {
    ($($bug:ident $name:literal)*) => {
        /// A bug outside the domain. `src/simulation.rs` says what each of them does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($bug,)*
        }

        #[cfg(test)]
        impl Bug {
            const ALL: &[(Self, &str)] = &[$((Self::$bug, $name),)*];
        }
    };
}

bugs! {
    ConnectionsStayAway "connections-stay-away"
    CountedTwice "counted-twice"
    DoubledReply "doubled-reply"
    EndedIsNotRunAgain "ended-is-not-run-again"
    ForgottenDeadline "forgotten-deadline"
    FoundIsNotCounted "found-is-not-counted"
    LostWhileReading "lost-while-reading"
    IdIsNotChecked "id-is-not-checked"
    KilledDoesNotComeBack "killed-does-not-come-back"
    PausedForGood "paused-for-good"
    ConnectionWithoutActor "connection-without-actor"
    ManagerStays "manager-stays"
    MissingBeforeRestart "missing-before-restart"
    NumberIsLeftOut "number-left-out"
    OwedIsGivenUp "owed-is-given-up"
    OwedLeavesTooEarly "owed-leaves-too-early"
    PanickedIsNotOpenedAgain "panicked-is-not-opened-again"
    PromptOfAnotherGuild "prompt-of-another-guild"
    QuestionIsNotAskedAgain "question-is-not-asked-again"
    RestoredRoundIsNotCounted "restored-round-not-counted"
    RestoredUnansweredIsNotCounted "restored-unanswered-not-counted"
    SeveralAreCountedOnce "several-counted-once"
    SixOfABatch "six-of-a-batch"
    SummaryOfAnotherGuild "summary-of-another-guild"
    MessageWithoutId "message-without-id"
    UnconfirmedIsCounted "unconfirmed-counted-as-posted"
    UnknownTakenForStored "unknown-taken-for-stored"
    WishBeforeRestart "wish-before-restart"
}

/// Whether this bug is switched on.
#[cfg(not(test))]
#[inline]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}

/// Whether this bug is switched on: the variable `TERTULIA_PLANTED` names it.
#[cfg(test)]
pub fn is_planted(bug: Bug) -> bool {
    static PLANTED: std::sync::LazyLock<Option<Bug>> = std::sync::LazyLock::new(|| {
        let name = std::env::var("TERTULIA_PLANTED").ok()?;
        let found = Bug::ALL.iter().find(|(_, known)| *known == name);
        Some(found.unwrap_or_else(|| panic!("TERTULIA_PLANTED: there is no bug {name}")).0)
    });
    *PLANTED == Some(bug)
}

/// What the bugs leak from one guild into another. Clones share it.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub struct Leak {
    message: std::sync::Arc<parking_lot::Mutex<Option<crate::domain::prompt::Said>>>,
    summary: std::sync::Arc<parking_lot::Mutex<Option<std::sync::Arc<str>>>>,
}

#[cfg(test)]
impl Leak {
    /// What these bugs make of the input of a question.
    pub fn into_question(
        &self,
        mut input: crate::actors::messages::companion::DecisionInput,
    ) -> crate::actors::messages::companion::DecisionInput {
        self.add_message(&mut input);
        self.replace_summary(&mut input);
        input
    }

    /// Adds the newest message of the question before to this one, of whatever guild that was.
    fn add_message(&self, input: &mut crate::actors::messages::companion::DecisionInput) {
        if is_planted(Bug::PromptOfAnotherGuild) {
            let before = std::mem::replace(&mut *self.message.lock(), input.buffer.last().cloned());
            input.buffer.splice(0..0, before);
        }
    }

    /// Keeps a summary for the next question, of whatever guild that is.
    pub fn keep_summary(&self, summary: Option<&std::sync::Arc<str>>) {
        *self.summary.lock() = summary.cloned();
    }

    /// Replaces the summary of this question by the newest one of any guild.
    fn replace_summary(&self, input: &mut crate::actors::messages::companion::DecisionInput) {
        if is_planted(Bug::SummaryOfAnotherGuild) {
            input.summary.clone_from(&self.summary.lock());
        }
    }
}

#[test]
fn each_bug_has_a_name_of_its_own() {
    let mut names: Vec<_> = Bug::ALL.iter().map(|(_, name)| name).collect();
    names.sort();
    names.dedup();

    assert_eq!(names.len(), Bug::ALL.len());
}
