//! Follows rounds through the record, for display. The decisions are in the record; this module makes none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Event, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq, TurnId};
use crate::domain::round::{SelectedBy, ranked, selected_by};
use crate::domain::turn::bid::{Bid, Change, Ending, Phase as BidPhase, What};
use crate::domain::turn::bids::Bids;
use crate::domain::vote::{Stance, State};
use crate::ports::backend::stamp::Stamp;

/// The maximum number of concurrent rounds. Rounds with late statements last longest. If there are more, only the newest are
/// kept.
const MAX_ROUNDS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Votes are missing.
    #[default]
    Open,
    /// Votes wait until the floor is free.
    Held,
    /// A speaker is selected and will speak soon.
    Waiting,
    /// The speaker owes its statement.
    Speaking,
    Over,
}

/// The outcome of a round in which a companion wanted to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Posted,
    Failed,
    /// A person asked the speaker to stop.
    Cancelled,
    /// The messages were deleted, the room was cleared, the speaker left, was paused or ended the conversation, or another
    /// speaker was selected first.
    Dropped,
    /// A held vote of another round was selected.
    Outvoted,
}

/// One round, as the API shows it (docs/live.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RoundCourse {
    pub(crate) seq: Seq,
    pub(crate) at: Stamp,
    pub(crate) message_id: Seq,
    deadline: Option<Stamp>,
    pub(crate) phase: Phase,
    asked: BTreeSet<CompanionId>,
    awaited: BTreeSet<CompanionId>,
    /// The companions that did not vote.
    missing: BTreeSet<CompanionId>,
    states: BTreeMap<CompanionId, State>,
    /// The events with the companions' answers.
    pub(crate) answers: BTreeMap<CompanionId, Seq>,
    candidates: Vec<CompanionId>,
    held: BTreeSet<CompanionId>,
    selected: Option<CompanionId>,
    reason: Option<&'static str>,
    /// The rule that selected the speaker. `None` if no other companion could speak, or if several rounds had held votes of
    /// companions that were called upon.
    #[serde(skip)]
    pub(crate) by: Option<SelectedBy>,
    /// The companion with the floor. It is not the selected one if that one's reply failed.
    speaker: Option<CompanionId>,
    /// Whether the speaker lost the floor and continues to write.
    late: bool,
    outcome: Option<Outcome>,
    /// The reason why the last companion with a held vote does not speak.
    declined: Option<Reason>,
    /// The companion of another round that was selected while votes of this round were held.
    instead: Option<CompanionId>,
    closed_at: Option<Stamp>,
    speak_at: Option<Stamp>,
    #[serde(skip)]
    turn: Option<TurnId>,
    #[serde(skip)]
    has_changed: bool,
}

impl RoundCourse {
    fn new(recorded: &Recorded, message_id: Seq) -> Self {
        let Recorded { seq, at, turn, .. } = *recorded;
        Self { seq, at: at.into(), message_id, turn, has_changed: true, ..Self::default() }
    }

    /// Whether a companion that voted to speak got the floor. `None` while this is undecided, or if the round was dropped first.
    pub(crate) fn has_won(&self, companion: &CompanionId) -> Option<bool> {
        match (&self.selected, self.phase) {
            (Some(selected), _) => Some(selected == companion),
            (None, Phase::Open) => None,
            (None, Phase::Held) => (!self.held.contains(companion)).then_some(false),
            (None, _) => (self.outcome != Some(Outcome::Dropped)).then_some(false),
        }
    }

    /// Whether a companion was asked, according to the events read.
    pub(crate) fn was_asked(&self, companion: &CompanionId) -> bool {
        self.asked.contains(companion)
    }

    /// Whether a companion was asked and did not vote.
    pub(crate) fn has_failed_to_vote(&self, companion: &CompanionId) -> bool {
        self.missing.contains(companion)
    }

    fn awaits_statement(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Speaking)
    }

    /// Records a companion's answer, with or without a State.
    fn answer(&mut self, companion: &CompanionId, seq: Seq, state: Option<&State>) {
        self.awaited.remove(companion);
        self.asked.insert(companion.clone());
        self.answers.insert(companion.clone(), seq);
        self.states.extend(state.map(|state| (companion.clone(), state.clone())));
        self.has_changed = true;
    }

    fn close(&mut self, closed: &RoundClosed) {
        let is_opening_known = self.deadline.is_some();
        for state in &closed.states {
            if !is_opening_known && (state.state == Stance::Speak || state.importance > 0.0) {
                self.asked.insert(state.from.clone());
            }
            self.states.insert(state.from.clone(), state.clone());
        }
        self.missing.append(&mut self.awaited);
        self.speak_at = closed.speak_at.map(Stamp);
        self.held = closed.held.iter().cloned().collect();
        self.phase = if self.held.is_empty() { Phase::Over } else { Phase::Held };
        self.has_changed = true;
    }

    fn select(&mut self, selected: &CompanionId, by: Option<SelectedBy>) {
        let is_called = self.states.get(selected).is_some_and(|state| state.selected);
        (self.by, self.reason) = (by, by.map(|by| by.code(is_called)));
        (self.selected, self.speaker) = (Some(selected.clone()), Some(selected.clone()));
        self.held.clear();
        (self.phase, self.has_changed) = (Phase::Waiting, true);
    }

    /// Drops a held vote. `reason` is that of the decision, if it was declined.
    fn release(&mut self, companion: &CompanionId, reason: Option<Reason>) {
        if self.held.remove(companion) {
            self.has_changed = true;
            if self.held.is_empty() {
                (self.phase, self.declined) = (Phase::Over, reason);
            }
        }
    }

    fn end(&mut self, outcome: Outcome, at: Stamp) {
        if self.phase != Phase::Over {
            (self.phase, self.outcome, self.late, self.has_changed) = (Phase::Over, Some(outcome), false, true);
            self.closed_at = self.closed_at.or(Some(at));
            self.held.clear();
        }
    }
}

/// The rounds of a channel's record. The record may begin anywhere: a round without a known opening begins with its first vote.
#[derive(Debug, Default)]
pub(crate) struct RoundCourses {
    /// Oldest first. Finished rounds are kept until the next one opens.
    rounds: Vec<RoundCourse>,
    /// The newest statement of each companion.
    spoke: BTreeMap<CompanionId, Seq>,
    pub(crate) bids: Bids,
}

impl RoundCourses {
    /// The rounds that the last event changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &RoundCourse> {
        self.rounds.iter().filter(|round| round.has_changed)
    }

    /// Applies the next event. Returns the changes for companions.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what happens to companions is a change of their bids")]
    pub(crate) fn follow(&mut self, recorded: &Recorded) -> Vec<Change> {
        self.rounds.iter_mut().for_each(|round| round.has_changed = false);
        let at = Stamp(recorded.at);
        let changes = self.bids.apply(recorded);
        match &recorded.event {
            Event::RoundOpened(opened) => {
                self.rounds.retain(|round| round.phase != Phase::Over);
                let oldest = self.rounds.len().saturating_sub(MAX_ROUNDS - 1);
                self.rounds.drain(..oldest);
                let mut round = RoundCourse::new(recorded, opened.message);
                round.deadline = Some(opened.deadline.into());
                round.asked = opened.asked.iter().cloned().collect();
                round.awaited = round.asked.clone();
                round.states = opened.listening.iter().map(|state| (state.from.clone(), state.clone())).collect();
                self.rounds.push(round);
            }
            Event::Decided(decided) => self.decide(recorded, decided),
            Event::RoundClosed(closed) => {
                let index = self.open_round(recorded, closed.message);
                let round = &mut self.rounds[index];
                round.close(closed);
                round.closed_at = Some(at);
                round.candidates = ranked(closed.states.iter(), |companion| self.spoke.get(companion).copied());
                if let Some(selected) = &closed.selected {
                    round.select(selected, selected_by(&closed.states, selected, |who| self.spoke.get(who).copied()));
                }
            }
            Event::HeldSelected { selected, others } => {
                let takes_part = |id: &CompanionId| id == selected || others.iter().any(|other| other.companion == *id);
                let held = self.rounds.iter().flat_map(|round| round.held.iter().filter_map(|id| round.states.get(id)));
                let states: Vec<_> = held.filter(|state| takes_part(&state.from)).cloned().collect();
                // If companions were called upon in different rounds, the first one is selected regardless of the votes.
                let is_called =
                    |id: &&CompanionId, round: &RoundCourse| round.states.get(*id).is_some_and(|state| state.selected);
                let called = self.rounds.iter().filter(|round| round.held.iter().any(|id| is_called(&id, round))).count();
                let by = selected_by(&states, selected, |companion| self.spoke.get(companion).copied()).filter(|_| called < 2);
                let winner = self.rounds.iter().position(|round| round.held.contains(selected));
                for (index, round) in self.rounds.iter_mut().enumerate().filter(|(_, round)| !round.held.is_empty()) {
                    if Some(index) == winner {
                        round.select(selected, by);
                    } else {
                        round.end(Outcome::Outvoted, at);
                        round.instead = Some(selected.clone());
                    }
                }
            }
            Event::Said { message, reply: Some(_), .. } => {
                self.spoke.insert(CompanionId::from(&*message.from.id), recorded.seq);
            }
            Event::Cleared { .. } => self.rounds.iter_mut().for_each(|round| round.end(Outcome::Dropped, at)),
            Event::Left { companion } => {
                for round in &mut self.rounds {
                    if round.phase == Phase::Open {
                        round.has_changed |= round.asked.remove(companion) | round.states.remove(companion).is_some();
                        round.awaited.remove(companion);
                    }
                }
            }
            _ => {}
        }
        changes.iter().for_each(|change| self.change(change, recorded));
        for round in self.rounds.iter_mut().filter(|round| round.has_changed && round.phase == Phase::Open) {
            round.candidates = ranked(round.states.values(), |companion| self.spoke.get(companion).copied());
        }
        changes
    }

    /// Applies a companion's change to its round.
    fn change(&mut self, Change { bid: Bid { companion, phase, .. }, what }: &Change, recorded: &Recorded) {
        // The companion's vote may have been held in another round, so the round is found by the event's turn.
        let has_failed = |round: &RoundCourse| round.outcome == Some(Outcome::Failed) && round.turn == recorded.turn;
        match what {
            What::Owed | What::TookOver => {
                let takes_over = *what == What::TookOver;
                let index = if takes_over { self.rounds.iter().rposition(has_failed) } else { self.awaiting(companion) };
                if let Some(round) = index.map(|index| &mut self.rounds[index]) {
                    (round.phase, round.outcome, round.has_changed) = (Phase::Speaking, None, true);
                    round.speaker = Some(companion.clone());
                }
            }
            What::Late | What::FloorTaken => {
                if let Some(index) = self.awaiting(companion) {
                    (self.rounds[index].late, self.rounds[index].has_changed) = (*what == What::Late, true);
                }
            }
            What::Ended(ending) if *phase >= BidPhase::Selected => {
                let outcome = match ending {
                    Ending::Posted => Outcome::Posted,
                    Ending::Failed => Outcome::Failed,
                    Ending::Cancelled => Outcome::Cancelled,
                    Ending::Declined
                    | Ending::Unanswered
                    | Ending::Deleted
                    | Ending::Cleared
                    | Ending::Left
                    | Ending::Paused
                    | Ending::Closed
                    | Ending::Settled
                    | Ending::AskedAnew
                    | Ending::Replaced => Outcome::Dropped,
                };
                let index = self.awaiting(companion);
                index.into_iter().for_each(|index| self.rounds[index].end(outcome, recorded.at.into()));
            }
            What::Ended(_) => {
                let reason = if let Event::Decided(decided) = &recorded.event { Some(decided.reason) } else { None };
                self.rounds.iter_mut().for_each(|round| round.release(companion, reason));
                if matches!(recorded.event, Event::Unanswered { .. })
                    && let Some(round) = self.rounds.iter_mut().find(|round| round.awaited.contains(companion))
                {
                    round.answer(companion, recorded.seq, None);
                    round.missing.insert(companion.clone());
                }
            }
            What::Now(_) | What::BegunAgain(_) | What::Stalled | What::Interrupted => {}
        }
    }

    fn decide(&mut self, recorded: &Recorded, decided: &Decided) {
        if let Some(vote) = &decided.vote
            && let Ok(message) = vote.message_id.parse().map(Seq)
        {
            let index = self.open_round(recorded, message);
            self.rounds[index].answer(&vote.from, recorded.seq, Some(vote));
        }
        // Overflow and backchannel may settle messages before a companion answers.
        let answers = decided.decision == Decision::No && !matches!(decided.reason, Reason::Overflow | Reason::Backchannel);
        for companion in decided.companions.iter().filter(|_| answers) {
            for round in self.rounds.iter_mut().filter(|round| round.awaited.contains(companion)) {
                round.answer(companion, recorded.seq, None);
            }
        }
    }

    /// The index of the open round about a message. The round is added if its opening is not known.
    fn open_round(&mut self, recorded: &Recorded, message: Seq) -> usize {
        let is_it = |round: &RoundCourse| round.phase == Phase::Open && round.message_id == message;
        self.rounds.iter().position(is_it).unwrap_or_else(|| {
            self.rounds.push(RoundCourse::new(recorded, message));
            self.rounds.len() - 1
        })
    }

    /// The index of the round whose speaker is this companion and has not spoken yet.
    fn awaiting(&self, companion: &CompanionId) -> Option<usize> {
        self.rounds.iter().rposition(|round| round.awaits_statement() && round.speaker.as_ref() == Some(companion))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::event::samples::{decided, evaluated, recorded, reply_owed, said, with};

    #[test]
    fn a_round_goes_on_to_the_statement_of_the_selected_companion() {
        let mut rounds = Rounds::open();

        rounds.follow(vote("aria", 4.0));
        let course = rounds.follow(vote("ben", 6.0));
        assert_eq!((course.phase, course.awaited.len()), (Phase::Open, 1));
        rounds.follow(json!({ "event": "unanswered", "companion": "cleo", "ticket": 3, "trigger": "lull", "error": "timeout", "back_off": { "secs": 5, "nanos": 0 } }));
        let course = rounds.follow(closed(&[("aria", 4.0), ("ben", 6.0)], Some("ben"), &[]));
        assert_eq!(course.missing, BTreeSet::from(["cleo".into()]));
        assert_eq!((course.selected.clone(), course.reason), (Some("ben".into()), Some("important")));
        assert_eq!((&*course.candidates, course.phase), (&["ben".into(), "aria".into()][..], Phase::Waiting));
        assert_eq!((course.has_won(&"ben".into()), course.has_won(&"aria".into())), (Some(true), Some(false)));
        assert_eq!(rounds.follow(reply_owed("ben", 9, &[1])).phase, Phase::Speaking);
        assert!(rounds.follow(json!({ "event": "floor_expired", "companion": "ben", "ticket": 9 })).late);

        let course = rounds.follow(said("ben", "companion", Some(9)));

        assert_eq!((course.phase, course.outcome, course.late), (Phase::Over, Some(Outcome::Posted), false));
    }

    #[test]
    fn the_next_candidate_takes_over_when_a_reply_fails() {
        let mut rounds = Rounds::open();
        rounds.follow(with(
            closed(&[("aria", 4.0), ("ben", 6.0)], Some("ben"), &[]),
            json!({ "others": [{ "companion": "aria" }] }),
        ));
        rounds.follow(reply_owed("ben", 9, &[1]));

        let failed = json!({ "event": "reply_failed", "companion": "ben", "ticket": 9, "trigger": "lull", "error": "empty" });
        assert_eq!(rounds.follow(failed).outcome, Some(Outcome::Failed));
        let course = rounds.follow(reply_owed("aria", 10, &[1]));

        assert_eq!((course.phase, course.speaker, course.outcome), (Phase::Speaking, Some("aria".into()), None));
    }

    #[test]
    fn a_candidate_takes_over_in_the_round_of_its_turn() {
        let mut rounds = RoundCourses::default();
        let mut seq = 10;
        let mut follow = |turn: u128, event| {
            seq += 1;
            rounds.follow(&Recorded { turn: Some(TurnId(turn)), ..recorded(seq, event) });
        };
        let opened = |message, asked: &[&str]| json!({ "event": "round_opened", "message": message, "deadline": 9, "asked": asked, "listening": [] });
        let failed = |companion, ticket| json!({ "event": "reply_failed", "companion": companion, "ticket": ticket, "trigger": "lull", "error": "empty" });
        follow(1, opened(1, &["aria", "ben"]));
        follow(1, evaluated("aria", 1, &[1]));
        follow(1, evaluated("ben", 2, &[1]));
        follow(2, opened(2, &["dora"]));
        follow(2, evaluated("dora", 3, &[2]));
        follow(2, with(closed(&[("dora", 4.0)], Some("dora"), &[]), json!({ "message": 2 })));
        follow(2, reply_owed("dora", 4, &[2]));
        follow(1, closed(&[("aria", 4.0), ("ben", 6.0)], None, &["ben", "aria"]));
        follow(2, json!({ "event": "floor_expired", "companion": "dora", "ticket": 4 }));
        follow(1, json!({ "event": "held_selected", "selected": "ben", "others": [{ "companion": "aria" }] }));
        follow(1, reply_owed("ben", 5, &[1]));
        follow(2, failed("dora", 4));
        follow(1, failed("ben", 5));

        follow(1, reply_owed("aria", 6, &[1]));

        let courses: Vec<_> = rounds.rounds.iter().map(|round| (round.speaker.clone(), round.outcome)).collect();
        assert_eq!(courses, [(Some("aria".into()), None), (Some("dora".into()), Some(Outcome::Failed))]);
    }

    #[test]
    fn held_votes_wait_until_one_is_selected_or_all_are_given_up() {
        let held = || {
            let mut rounds = Rounds::open();
            rounds.follow(vote("aria", 4.0));
            assert_eq!(rounds.follow(closed(&[("aria", 4.0), ("ben", 6.0)], None, &["aria", "ben"])).phase, Phase::Held);
            rounds
        };
        let declined = |companion, reason| {
            decided(&[companion], "NO", &[], json!({ "reason": reason, "upto": u64::from(reason == "loop_guard") }))
        };
        let (mut selected, mut given_up) = (held(), held());

        let course = selected.follow(json!({ "event": "held_selected", "selected": "aria", "others": [] }));
        assert_eq!((course.phase, course.selected, course.reason), (Phase::Waiting, Some("aria".into()), Some("only")));

        given_up.follow(declined("aria", "overflow"));
        let course = given_up.follow(declined("aria", "loop_guard"));
        assert_eq!(
            (course.phase, course.has_won(&"aria".into()), course.has_won(&"ben".into())),
            (Phase::Held, Some(false), None)
        );
        let course = given_up.follow(declined("ben", "loop_guard"));
        assert_eq!((course.phase, course.declined), (Phase::Over, Some(Reason::LoopGuard)));
    }

    #[test]
    fn a_round_is_given_up_when_the_room_is_cleared_or_its_messages_are_deleted() {
        for event in [json!({ "event": "cleared" }), json!({ "event": "deleted", "messages": [1] })] {
            let mut rounds = Rounds::open();
            rounds.follow(closed(&[("aria", 4.0)], Some("aria"), &[]));

            let course = rounds.follow(event);

            assert_eq!((course.phase, course.outcome), (Phase::Over, Some(Outcome::Dropped)));
        }
    }

    #[test]
    fn a_round_whose_opening_is_not_known_begins_with_its_first_vote() {
        let mut rounds = Rounds::default();

        rounds.follow(vote("aria", 4.0));
        let course = rounds.follow(closed(&[("aria", 4.0), ("ben", 6.0)], Some("ben"), &[]));

        assert_eq!((course.deadline, course.message_id, course.asked.len()), (None, Seq(1), 2));
        assert!(course.missing.is_empty());
    }

    #[derive(Default)]
    struct Rounds {
        courses: RoundCourses,
        last: u64,
    }

    impl Rounds {
        /// A round about message 1 in which three companions are asked.
        fn open() -> Self {
            let mut rounds = Self { last: 1, ..Self::default() };
            let asked = ["aria", "ben", "cleo"];
            rounds.follow(json!({ "event": "round_opened", "message": 1, "deadline": 9, "asked": asked, "listening": [] }));
            for (companion, ticket) in asked.iter().zip(1..) {
                rounds.follow(evaluated(companion, ticket, &[1]));
            }
            rounds
        }

        /// The newest round after an event.
        fn follow(&mut self, event: Value) -> RoundCourse {
            self.last += 1;
            self.courses.follow(&recorded(self.last, event));
            self.courses.rounds.last().unwrap().clone()
        }
    }

    fn state(from: &str, importance: f64) -> Value {
        json!({ "from": from, "messageId": "1", "state": "speak", "importance": importance, "selected": false, "closing": "none" })
    }

    fn vote(companion: &str, importance: f64) -> Value {
        decided(&[companion], "YES", &[], json!({ "reason": "model_yes", "vote": state(companion, importance) }))
    }

    fn closed(states: &[(&str, f64)], selected: Option<&str>, held: &[&str]) -> Value {
        let states: Vec<_> = states.iter().map(|(from, importance)| state(from, *importance)).collect();
        json!({ "event": "round_closed", "message": 1, "states": states, "selected": selected, "held": held })
    }
}
