//! One election: States are collected for one moment of a channel, and one speaker, or nobody, is selected (docs/design/turn-taking.md T-1).

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::closing::Stage;
use super::id::{CompanionId, Seq, TurnId};
use super::moment::Moment;
use super::vote::{Stance, State};

/// A round that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The newest event from outside when it was opened: what its States are about.
    pub message: Seq,
    /// When it was opened.
    pub opened_at: Moment,
    /// When States that are missing are waited for no longer.
    pub deadline: Moment,
    /// Somebody was asked because another companion has spoken.
    pub asks_for_turn: bool,
    /// The turn that it is held in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Everyone who takes part, with the State that was submitted.
    ballots: BTreeMap<CompanionId, Option<State>>,
}

impl Round {
    /// A round in which these States are known, and those of others are waited for.
    pub fn new(message: Seq, opened_at: Moment, deadline: Moment, known: &[State], awaited: &[CompanionId]) -> Self {
        let known = known.iter().map(|state| (state.from.clone(), Some(state.clone())));
        let ballots = awaited.iter().map(|companion| (companion.clone(), None)).chain(known).collect();
        Self { message, opened_at, deadline, asks_for_turn: false, turn: None, ballots }
    }

    /// What its States name as what they are about.
    pub fn message_id(&self) -> String {
        message_id(self.message)
    }

    /// Takes a State. One for another round, by somebody who was not asked, or a second one is discarded.
    pub fn submit(&mut self, state: State) {
        if state.message_id == self.message_id()
            && let Some(ballot @ None) = self.ballots.get_mut(&state.from)
        {
            *ballot = Some(state);
        }
    }

    /// Takes a State in the place of whatever its sender submitted.
    pub fn overrule(&mut self, state: State) {
        if let Some(ballot) = self.ballots.get_mut(&state.from) {
            *ballot = Some(state);
        }
    }

    /// Whether this companion's State is still waited for.
    pub fn awaits(&self, companion: &CompanionId) -> bool {
        matches!(self.ballots.get(companion), Some(None))
    }

    /// A companion is gone, and its State with it.
    pub fn withdraw(&mut self, companion: &CompanionId) {
        self.ballots.remove(companion);
    }

    /// Whose States are still waited for, by id.
    pub fn missing(&self) -> impl Iterator<Item = &CompanionId> {
        self.ballots.iter().filter(|(_, state)| state.is_none()).map(|(companion, _)| companion)
    }

    /// The States that were submitted, by id of their senders.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.ballots.values().flatten()
    }

    /// Whether somebody may speak, so that one will be selected.
    pub fn has_wishes(&self) -> bool {
        self.states().any(is_candidate)
    }

    /// Those who may speak, in the order in which they would: whoever was called upon first, then by importance; of equals whoever spoke
    /// least recently here, then the smaller id. `spoke` gives the newest statement of a companion.
    pub fn ranking(&self, spoke: impl Fn(&CompanionId) -> Option<Seq>) -> Vec<CompanionId> {
        let mut candidates: Vec<_> = self.states().filter(|state| is_candidate(state)).collect();
        candidates.sort_by(|one, other| {
            let called = Reverse(one.selected).cmp(&Reverse(other.selected));
            let weight = other.importance.partial_cmp(&one.importance).unwrap_or(Ordering::Equal);
            let patience = spoke(&one.from).cmp(&spoke(&other.from));
            called.then(weight).then(patience).then_with(|| one.from.cmp(&other.from))
        });
        candidates.into_iter().map(|state| state.from.clone()).collect()
    }
}

/// Whether somebody else was called upon like the one who was selected, and found it as important: so that something else decided.
pub fn is_tied(states: &[State], selected: &CompanionId) -> bool {
    let Some(winner) = states.iter().find(|state| state.from == *selected) else { return false };
    let is_level = |other: &&State| other.selected == winner.selected && other.importance == winner.importance;
    states.iter().filter(|state| is_candidate(state) && state.from != *selected).any(|other| is_level(&other))
}

/// How an event's number is written in a State (a string, docs/design/turn-taking.md T-4).
pub fn message_id(message: Seq) -> String {
    message.to_string()
}

/// The State of one who listens without having been asked, or without having answered.
pub fn listening(companion: &CompanionId, message: Seq, is_called: bool, stage: Stage) -> State {
    State::listening(companion.clone(), message_id(message), is_called, stage)
}

/// Listening is never overruled, and whoever has ended the conversation withdraws.
fn is_candidate(state: &State) -> bool {
    state.state == Stance::Speak && state.closing != Stage::Terminal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_called_upon_comes_before_whoever_finds_it_important() {
        let round = round(&[("aria", 9.0, false), ("ben", 1.0, true), ("cleo", 3.0, true)]);

        assert_eq!(ranked(&round, &[]), ["cleo", "ben", "aria"]);
    }

    #[test]
    fn of_equals_the_one_who_spoke_least_recently_comes_first() {
        let round = round(&[("aria", 5.0, false), ("ben", 5.0, false), ("cleo", 5.0, false), ("dora", 5.0, false)]);

        assert_eq!(ranked(&round, &[("aria", 9), ("cleo", 4)]), ["ben", "dora", "cleo", "aria"]);
    }

    #[test]
    fn whoever_listens_or_has_closed_is_never_selected() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into(), "ben".into()]);

        round.submit(listening(&"aria".into(), Seq(7), true, Stage::None));
        round.submit(State { closing: Stage::Terminal, ..wish("ben", 10.0, true) });

        assert_eq!(ranked(&round, &[]), [""; 0]);
        assert_eq!(round.missing().count(), 0);
    }

    #[test]
    fn states_of_other_rounds_of_strangers_and_second_ones_are_discarded() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into()]);

        round.submit(State { message_id: "6".into(), ..wish("aria", 1.0, false) });
        round.submit(wish("zed", 1.0, false));
        assert!(round.awaits(&"aria".into()));

        round.submit(wish("aria", 2.0, false));
        round.submit(wish("aria", 3.0, false));
        assert_eq!(round.states().map(|state| state.importance).collect::<Vec<_>>(), [2.0]);
    }

    #[test]
    fn whoever_leaves_is_not_waited_for() {
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["aria".into()]);

        round.withdraw(&"aria".into());

        assert_eq!(round.missing().count() + round.states().count(), 0);
    }

    fn round(wishes: &[(&str, f64, bool)]) -> Round {
        let states: Vec<_> = wishes.iter().map(|(from, importance, selected)| wish(from, *importance, *selected)).collect();
        Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &states, &[])
    }

    fn wish(from: &str, importance: f64, selected: bool) -> State {
        State { from: from.into(), message_id: "7".into(), state: Stance::Speak, importance, selected, closing: Stage::None }
    }

    fn ranked(round: &Round, spoke: &[(&str, u64)]) -> Vec<String> {
        let spoke =
            |companion: &CompanionId| spoke.iter().find(|(from, _)| *from == companion.as_str()).map(|(_, seq)| Seq(*seq));
        round.ranking(spoke).iter().map(ToString::to_string).collect()
    }
}
