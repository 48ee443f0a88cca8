//! Detects votes that cannot count in the open rounds.

use crate::actors::messages::turn_taking_manager::VoteError;
use crate::domain::round::Round;
use crate::domain::vote::State;

impl VoteError {
    /// Why a vote cannot count in these open rounds, oldest first. `None` if it can count. Companions that were not asked in a round have a listening
    /// State in it.
    pub fn of_vote<'a>(ballot: &State, rounds: impl Iterator<Item = &'a Round>, is_external: bool) -> Option<Self> {
        let from = ballot.from.clone();
        let mut newest = None;
        let is_for = |round: &&Round| {
            newest = Some(round.message_id());
            round.message_id() == ballot.message_id
        };
        let Some(round) = rounds.filter(is_for).last() else {
            let other = |open| Self::OtherRound { given: ballot.message_id.clone(), open };
            return Some(newest.map_or(Self::NoRound, other));
        };
        let has_voted = round.states().any(|known| known.from == from);
        if !is_external && (has_voted || round.awaits(&from)) {
            Some(Self::NotExternal { from })
        } else if has_voted && round.asked.contains(&from) {
            Some(Self::Twice { from })
        } else if !round.awaits(&from) {
            Some(Self::NotAsked { from })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::closing::Stage;
    use crate::domain::id::{CompanionId, Seq};
    use crate::domain::moment::Moment;
    use crate::domain::round::listening;

    #[test]
    fn only_a_vote_that_the_round_awaits_counts() {
        let known = listening(&"cleo".into(), Seq(7), false, Stage::None);
        let asked = ["aria", "ben", "zed"].map(CompanionId::from);
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[known], &asked);
        round.submit(listening(&"ben".into(), Seq(7), false, Stage::None));
        let older = Round::new(Seq(5), Moment::ZERO, Moment::ZERO, &[], &["vera".into()]);
        let vote_error = |from: &str, message: u64, is_external| {
            VoteError::of_vote(
                &listening(&from.into(), Seq(message), false, Stage::None),
                [&older, &round].into_iter(),
                is_external,
            )
        };

        assert_eq!(vote_error("zed", 7, true), None);
        assert_eq!(vote_error("zed", 6, true), Some(VoteError::OtherRound { given: "6".into(), open: "7".into() }));
        assert_eq!(vote_error("aria", 7, false), Some(VoteError::NotExternal { from: "aria".into() }));
        assert_eq!(vote_error("ben", 7, true), Some(VoteError::Twice { from: "ben".into() }));
        assert_eq!(vote_error("cleo", 7, true), Some(VoteError::NotAsked { from: "cleo".into() }));
        assert_eq!(vote_error("vera", 7, true), Some(VoteError::NotAsked { from: "vera".into() }));
        assert_eq!(vote_error("vera", 5, true), None);
    }
}
