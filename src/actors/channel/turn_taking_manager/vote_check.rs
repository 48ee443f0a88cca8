//! Which votes cannot count in a round.

use crate::actors::messages::turn_taking_manager::VoteError;
use crate::domain::id::CompanionId;
use crate::domain::round::Round;
use crate::domain::vote::State;

impl VoteError {
    /// Why a vote cannot count in this round, or `None` if it can. `asked` are the companions that were asked in the round. The others have a
    /// State in it too: they listen.
    pub fn of_vote(ballot: &State, round: &Round, asked: &[CompanionId], is_external: bool) -> Option<Self> {
        let from = ballot.from.clone();
        let has_voted = round.states().any(|known| known.from == from);
        if ballot.message_id != round.message_id() {
            Some(Self::OtherRound { given: ballot.message_id.clone(), open: round.message_id() })
        } else if !is_external && (has_voted || round.awaits(&from)) {
            Some(Self::NotExternal { from })
        } else if has_voted && asked.contains(&from) {
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
    use crate::domain::id::Seq;
    use crate::domain::moment::Moment;
    use crate::domain::round::listening;

    #[test]
    fn only_a_vote_that_the_round_awaits_counts() {
        let known = listening(&"cleo".into(), Seq(7), false, Stage::None);
        let asked = ["aria", "ben", "zed"].map(CompanionId::from);
        let mut round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[known], &asked);
        round.submit(listening(&"ben".into(), Seq(7), false, Stage::None));
        let vote_error = |from: &str, message: u64, is_external| {
            VoteError::of_vote(&listening(&from.into(), Seq(message), false, Stage::None), &round, &asked, is_external)
        };

        assert_eq!(vote_error("zed", 7, true), None);
        assert_eq!(vote_error("zed", 6, true), Some(VoteError::OtherRound { given: "6".into(), open: "7".into() }));
        assert_eq!(vote_error("aria", 7, false), Some(VoteError::NotExternal { from: "aria".into() }));
        assert_eq!(vote_error("ben", 7, true), Some(VoteError::Twice { from: "ben".into() }));
        assert_eq!(vote_error("cleo", 7, true), Some(VoteError::NotAsked { from: "cleo".into() }));
        assert_eq!(vote_error("vera", 7, true), Some(VoteError::NotAsked { from: "vera".into() }));
    }
}
