//! Follows a round: who was asked, who did not vote, who was selected and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::event::{Event, Recorded, RoundOpened};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::round::{SelectedBy, selected_by};
use crate::domain::vote::State;

/// The round of a vote.
pub(super) struct Ballot<'a> {
    pub(super) opened: Option<(&'a Recorded, &'a RoundOpened)>,
    /// The companions that were asked and did not vote, with the reason as a stable code.
    pub(super) silent: BTreeMap<CompanionId, Arc<str>>,
    /// The newest statement of each companion before the round.
    spoke: BTreeMap<CompanionId, Seq>,
}

impl<'a> Ballot<'a> {
    /// The round of this vote. `before` are the events before the vote, oldest first.
    pub(super) fn new(vote: &State, before: &'a [Recorded]) -> Self {
        let opened = before.iter().rev().find_map(|recorded| {
            let Event::RoundOpened(opened) = &recorded.event else { return None };
            (opened.message.to_string() == vote.message_id).then_some((recorded, opened))
        });
        let statements = before.iter().filter_map(|recorded| {
            let Event::Said { message, reply: Some(_), .. } = &recorded.event else { return None };
            Some((CompanionId::from(&*message.from.id), recorded.seq))
        });
        let mut ballot = Self { opened, silent: BTreeMap::new(), spoke: statements.collect() };
        if let Some((recorded, _)) = opened {
            before.iter().filter(|later| later.seq > recorded.seq).for_each(|later| ballot.follow(later));
        }
        ballot
    }

    /// Notes companions that do not vote.
    pub(super) fn follow(&mut self, recorded: &Recorded) {
        if let Event::Unanswered { companion, error, .. } = &recorded.event {
            self.silent.insert(companion.clone(), error.clone());
        }
    }

    /// The rule of selection that decided (docs/design/turn-taking.md T-10). None: nobody else could speak.
    pub(super) fn selected_by(&self, selected: &CompanionId, states: &[State]) -> Option<SelectedBy> {
        selected_by(states, selected, |companion| self.spoke.get(companion).copied())
    }
}
