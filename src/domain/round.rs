//! One election: the States for one moment of a channel are collected, and one speaker or none is selected
//! (docs/design/turn-taking.md T-1).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::closing::Stage;
use super::id::{CompanionId, Seq, TurnId};
use super::moment::Moment;
use super::vote::{Stance, State};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The newest inbound event when the round was opened. The States refer to this event.
    pub message: Seq,
    /// The time at which the round was opened.
    pub opened_at: Moment,
    /// The deadline for missing States.
    pub deadline: Moment,
    /// The turn of the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The companions that are asked, by id. Empty in snapshots of older versions.
    #[serde(default)]
    pub asked: Vec<CompanionId>,
    /// The participating companions, with the States that they submitted.
    ballots: BTreeMap<CompanionId, Option<State>>,
}

impl Round {
    /// Opens a round. The States `known` have arrived, and those of `awaited` are missing.
    pub fn new(message: Seq, opened_at: Moment, deadline: Moment, known: &[State], awaited: &[CompanionId]) -> Self {
        let known = known.iter().map(|state| (state.from.clone(), Some(state.clone())));
        let ballots = awaited.iter().map(|companion| (companion.clone(), None)).chain(known).collect();
        Self { message, opened_at, deadline, turn: None, asked: awaited.to_vec(), ballots }
    }

    /// The `messageId` that States of this round must have.
    pub fn message_id(&self) -> String {
        message_id(self.message)
    }

    /// Accepts a State. Discards it if it is for another round, by a companion that was not asked, or a second one.
    pub fn submit(&mut self, state: State) {
        if state.message_id == self.message_id()
            && let Some(ballot @ None) = self.ballots.get_mut(&state.from)
        {
            *ballot = Some(state);
        }
    }

    /// Sets the State of a participating companion, even if it has submitted one.
    pub fn overrule(&mut self, state: State) {
        if let Some(ballot) = self.ballots.get_mut(&state.from) {
            *ballot = Some(state);
        }
    }

    /// Whether this companion's State is missing.
    pub fn awaits(&self, companion: &CompanionId) -> bool {
        matches!(self.ballots.get(companion), Some(None))
    }

    /// Removes a companion and its State.
    pub fn withdraw(&mut self, companion: &CompanionId) {
        self.ballots.remove(companion);
    }

    /// The companions whose States are missing, by id.
    pub fn missing(&self) -> impl Iterator<Item = &CompanionId> {
        self.ballots.iter().filter(|(_, state)| state.is_none()).map(|(companion, _)| companion)
    }

    /// The submitted States, by the ids of their companions.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.ballots.values().flatten()
    }

    /// Whether any companion may speak, so that one will be selected.
    pub fn has_wishes(&self) -> bool {
        self.states().any(is_candidate)
    }

    /// The companions that may speak, in their order of speaking: first the ones that were called upon, then by importance, then
    /// the one that spoke least recently in this channel, then by id. `spoke` returns the newest statement of a companion.
    pub fn ranking(&self, spoke: impl Fn(&CompanionId) -> Option<Seq>) -> Vec<CompanionId> {
        ranked(self.states(), spoke)
    }
}

/// The companions of these States that may speak, in their order of speaking; see [`Round::ranking`].
pub fn ranked<'a>(states: impl Iterator<Item = &'a State>, spoke: impl Fn(&CompanionId) -> Option<Seq>) -> Vec<CompanionId> {
    let mut candidates: Vec<_> = states.filter(|state| is_candidate(state)).collect();
    candidates.sort_by(|one, other| {
        let called = Reverse(one.selected).cmp(&Reverse(other.selected));
        let weight = other.importance.partial_cmp(&one.importance).unwrap_or(Ordering::Equal);
        let patience = spoke(&one.from).cmp(&spoke(&other.from));
        called.then(weight).then(patience).then_with(|| one.from.cmp(&other.from))
    });
    candidates.into_iter().map(|state| state.from.clone()).collect()
}

/// The rule that selected a companion: the first criterion in which it differs from the second candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedBy {
    /// No other companion could speak.
    Only,
    /// The companion was called upon.
    Call,
    /// Its vote had the highest importance.
    Importance,
    /// It had spoken least recently.
    Patience,
    /// Its id comes first.
    Id,
}

impl SelectedBy {
    /// A stable code. `is_called`: the selected companion was called upon.
    pub const fn code(self, is_called: bool) -> &'static str {
        match (is_called, self) {
            (true, Self::Only) | (_, Self::Call) => "named",
            (false, Self::Only) => "only",
            (false, Self::Importance) => "important",
            (false, Self::Patience) => "patient",
            (false, Self::Id) => "first",
            (true, Self::Importance) => "named_important",
            (true, Self::Patience) => "named_patient",
            (true, Self::Id) => "named_first",
        }
    }
}

/// The rule that selected this companion among these States. `None` if it has no State.
pub fn selected_by(states: &[State], selected: &CompanionId, spoke: impl Fn(&CompanionId) -> Option<Seq>) -> Option<SelectedBy> {
    let winner = states.iter().find(|state| state.from == *selected)?;
    let others = ranked(states.iter().filter(|state| state.from != *selected), &spoke);
    let Some(second) = others.first().and_then(|second| states.iter().find(|state| state.from == *second)) else {
        return Some(SelectedBy::Only);
    };
    Some(if second.selected != winner.selected {
        SelectedBy::Call
    } else if second.importance != winner.importance {
        SelectedBy::Importance
    } else if spoke(&second.from) != spoke(selected) {
        SelectedBy::Patience
    } else {
        SelectedBy::Id
    })
}

/// Whether another candidate equals the selected one in call and importance, so that a later criterion decided.
pub fn is_tied(states: &[State], selected: &CompanionId) -> bool {
    selected_by(states, selected, |_| None) == Some(SelectedBy::Id)
}

/// An event's number in the form for a State (a string, docs/design/turn-taking.md T-4).
pub fn message_id(message: Seq) -> String {
    message.to_string()
}

/// The State of a companion that listens because it was not asked or did not answer.
pub fn listening(companion: &CompanionId, message: Seq, is_called: bool, stage: Stage) -> State {
    State::listening(companion.clone(), message_id(message), is_called, stage)
}

/// A listening companion is never selected, nor is one that has ended the conversation.
fn is_candidate(state: &State) -> bool {
    state.state == Stance::Speak && state.closing != Stage::Terminal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::wish;

    #[test]
    fn companions_that_were_called_upon_come_before_more_important_ones() {
        let round = round(&[("aria", 9.0, false), ("ben", 1.0, true), ("cleo", 3.0, true)]);

        assert_eq!(ranked(&round, &[]), ["cleo", "ben", "aria"]);
    }

    #[test]
    fn of_equals_the_companion_that_spoke_least_recently_comes_first() {
        let round = round(&[("aria", 5.0, false), ("ben", 5.0, false), ("cleo", 5.0, false), ("dora", 5.0, false)]);

        assert_eq!(ranked(&round, &[("aria", 9), ("cleo", 4)]), ["ben", "dora", "cleo", "aria"]);
        assert!(round.has_wishes());
    }

    #[test]
    fn the_rule_that_decided_is_the_first_in_which_the_next_companion_differs() {
        let rule = |wishes: &[(&str, f64, bool)], spoke: &[(&str, u64)]| {
            let states: Vec<_> = round(wishes).states().cloned().collect();
            let spoke = |who: &CompanionId| spoke.iter().find(|(from, _)| *from == who.as_str()).map(|(_, seq)| Seq(*seq));
            assert_eq!(selected_by(&states, &"zed".into(), spoke), None, "it has no State");
            let rule = selected_by(&states, &"aria".into(), spoke)?;
            let is_called = states.iter().any(|state| state.from == "aria".into() && state.selected);
            Some((rule, rule.code(is_called), is_tied(&states, &"aria".into())))
        };

        assert_eq!(rule(&[("aria", 5.0, false)], &[]), Some((SelectedBy::Only, "only", false)));
        assert_eq!(rule(&[("aria", 5.0, true)], &[]), Some((SelectedBy::Only, "named", false)));
        assert_eq!(rule(&[("aria", 5.0, true), ("ben", 9.0, false)], &[]), Some((SelectedBy::Call, "named", false)));
        assert_eq!(
            rule(&[("aria", 5.0, true), ("ben", 4.0, true)], &[]),
            Some((SelectedBy::Importance, "named_important", false))
        );
        assert_eq!(
            rule(&[("aria", 5.0, false), ("ben", 5.0, false)], &[("ben", 4)]),
            Some((SelectedBy::Patience, "patient", true))
        );
        assert_eq!(rule(&[("aria", 5.0, false), ("ben", 5.0, false)], &[]), Some((SelectedBy::Id, "first", true)));
    }

    #[test]
    fn listening_and_closed_companions_are_never_selected() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into(), "ben".into()]);

        round.submit(listening(&"aria".into(), Seq(7), true, Stage::None));
        round.submit(State { closing: Stage::Terminal, ..wish("ben", 10.0, true) });

        assert_eq!(ranked(&round, &[]), [""; 0]);
        assert!(!round.has_wishes());
        assert_eq!(round.missing().count(), 0);
    }

    #[test]
    fn states_for_other_rounds_by_strangers_and_second_ones_are_discarded() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into()]);

        round.submit(State { message_id: "6".into(), ..wish("aria", 1.0, false) });
        round.submit(wish("zed", 1.0, false));
        assert!(round.awaits(&"aria".into()));

        round.submit(wish("aria", 2.0, false));
        round.submit(wish("aria", 3.0, false));
        assert_eq!(round.states().map(|state| state.importance).collect::<Vec<_>>(), [2.0]);
    }

    #[test]
    fn a_companion_that_leaves_is_not_awaited() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into()]);

        round.withdraw(&"aria".into());

        assert_eq!(round.missing().count() + round.states().count(), 0);
    }

    fn round(wishes: &[(&str, f64, bool)]) -> Round {
        let states: Vec<_> = wishes.iter().map(|(from, importance, selected)| wish(from, *importance, *selected)).collect();
        Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &states, &[])
    }

    fn ranked(round: &Round, spoke: &[(&str, u64)]) -> Vec<String> {
        let spoke =
            |companion: &CompanionId| spoke.iter().find(|(from, _)| *from == companion.as_str()).map(|(_, seq)| Seq(*seq));
        round.ranking(spoke).iter().map(ToString::to_string).collect()
    }
}
