//! Describes a round: who was asked, who voted what, who was selected and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sentences::{line, listed};
use crate::domain::closing::Stage;
use crate::domain::event::{Event, Recorded, RoundClosed, RoundOpened};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::round::{SelectedBy, selected_by};
use crate::domain::vote::{Stance, State};
use crate::ports::backend::decisions::StoryLine;

/// The round of a vote.
pub(super) struct Ballot<'a> {
    opened: Option<(&'a Recorded, &'a RoundOpened)>,
    /// The companions that were asked and did not vote, with the reason as a stable code.
    silent: BTreeMap<CompanionId, Arc<str>>,
    /// The newest statement of each companion before the round.
    spoke: BTreeMap<CompanionId, Seq>,
    name: Box<dyn Fn(&CompanionId) -> String + Send + Sync + 'a>,
}

impl<'a> Ballot<'a> {
    /// The round of this vote. `before` are the events before the vote, oldest first.
    pub(super) fn new(vote: &State, before: &'a [Recorded], name: impl Fn(&CompanionId) -> String + Send + Sync + 'a) -> Self {
        let opened = before.iter().rev().find_map(|recorded| {
            let Event::RoundOpened(opened) = &recorded.event else { return None };
            (opened.message.to_string() == vote.message_id).then_some((recorded, opened))
        });
        let statements = before.iter().filter_map(|recorded| {
            let Event::Said { message, reply: Some(_), .. } = &recorded.event else { return None };
            Some((CompanionId::from(&*message.from.id), recorded.seq))
        });
        let mut ballot = Self { opened, silent: BTreeMap::new(), spoke: statements.collect(), name: Box::new(name) };
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

    /// Describes the opening of the round.
    pub(super) fn opened(&self) -> Option<StoryLine> {
        let (recorded, opened) = self.opened?;
        let asked = self.listed(opened.asked.iter());
        let was = if opened.asked.len() == 1 { "was" } else { "were" };
        let listening = self.listed(opened.listening.iter().map(|state| &state.from));
        let rest =
            if listening.is_empty() { String::new() } else { format!("; {listening} had no reason to speak, and listened") };
        Some(line(recorded, "round_opened", format!("A round was held: {asked} {was} asked{rest}.")))
    }

    /// Describes the votes, and who got the floor and why.
    pub(super) fn closed(&self, closed: &RoundClosed) -> String {
        let votes: Vec<_> = closed.states.iter().map(|state| self.vote(state)).collect();
        let votes = votes.join(", ");
        match &closed.selected {
            None if !closed.held.is_empty() => format!("{votes}: nobody speaks yet."),
            None => format!("{votes}: nobody speaks."),
            Some(selected) => {
                format!("{votes}. {} was selected, because {}.", (self.name)(selected), self.because(selected, &closed.states))
            }
        }
    }

    fn listed<'b>(&self, companions: impl Iterator<Item = &'b CompanionId>) -> String {
        listed(&companions.map(|companion| (self.name)(companion)).collect::<Vec<_>>())
    }

    fn vote(&self, state: &State) -> String {
        let name = (self.name)(&state.from);
        let closing = if state.closing == Stage::None { String::new() } else { format!(", {}", state.closing) };
        match (state.state, state.selected) {
            (Stance::Listen, _) => match self.silent.get(&state.from).map(|error| &**error) {
                Some("timeout") => format!("{name} did not vote in time, and listens{closing}"),
                Some(error) => format!("{name} gave no vote ({error}), and listens{closing}"),
                None => format!("{name} listens{closing}"),
            },
            (Stance::Speak, false) => format!("{name} would speak ({}{closing})", state.importance),
            (Stance::Speak, true) => format!("{name} would speak ({}, was named{closing})", state.importance),
        }
    }

    /// The rule of selection that decided (docs/design/turn-taking.md T-10).
    fn because(&self, selected: &CompanionId, states: &[State]) -> &'static str {
        match selected_by(states, selected, |companion| self.spoke.get(companion).copied()) {
            None => "nobody else could speak",
            Some(SelectedBy::Only) => "nobody else wanted to speak",
            Some(SelectedBy::Call) => "it was named",
            Some(SelectedBy::Importance) => "nobody else found it as important to speak",
            Some(SelectedBy::Patience) => "it had spoken least recently",
            Some(SelectedBy::Id) => "its id comes first where all else is equal",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::id::Ticket;
    use crate::domain::moment::Moment;
    use crate::domain::trigger::Trigger;

    #[test]
    fn the_rule_that_decided_between_the_first_two_is_named() {
        let because = |states: &[State], spoke: &[(&str, u64)]| {
            let spoke = spoke.iter().map(|(id, seq)| (CompanionId::from(*id), Seq(*seq))).collect();
            let ballot = Ballot { opened: None, silent: BTreeMap::new(), spoke, name: Box::new(ToString::to_string) };
            ballot.because(&"aria".into(), states)
        };
        let (aria, named) = (wish("aria", 5.0, false), wish("aria", 1.0, true));

        assert_eq!(because(std::slice::from_ref(&aria), &[]), "nobody else wanted to speak");
        assert_eq!(because(&[named, wish("ben", 9.0, false)], &[]), "it was named");
        assert_eq!(
            because(&[aria.clone(), wish("ben", 4.0, false), wish("cleo", 1.0, false)], &[]),
            "nobody else found it as important to speak"
        );
        assert_eq!(because(&[aria.clone(), wish("ben", 5.0, false)], &[("aria", 3), ("ben", 7)]), "it had spoken least recently");
        assert_eq!(because(&[aria.clone(), wish("ben", 5.0, false)], &[]), "its id comes first where all else is equal");
        let withdrawn = State { closing: Stage::Terminal, ..wish("ben", 9.0, true) };
        assert_eq!(because(&[aria, withdrawn], &[]), "nobody else wanted to speak");
    }

    #[test]
    fn a_round_is_described_with_every_vote() {
        let opened = RoundOpened {
            message: Seq(7),
            deadline: Moment::ZERO,
            asked: vec!["aria".into(), "ben".into()],
            listening: vec![State::listening("cleo".into(), "7".into(), false, Stage::None)],
        };
        let recorded = Recorded { seq: Seq(8), at: Moment::ZERO, handled: Seq(7), turn: None, event: Event::RoundOpened(opened) };
        let states = vec![
            wish("aria", 5.0, false),
            State { closing: Stage::PreClosing, ..wish("ben", 5.0, true) },
            State::listening("cleo".into(), "7".into(), false, Stage::None),
        ];
        let before = [recorded];
        let ballot = Ballot::new(&states[0], &before, |id| id.as_str().to_uppercase());
        let closed = |selected: Option<&str>| RoundClosed {
            held: Vec::new(),
            message: Seq(7),
            states: states.clone(),
            selected: selected.map(Into::into),
            speak_at: None,
            others: Vec::new(),
        };

        assert_eq!(
            ballot.opened().unwrap().text,
            "A round was held: ARIA and BEN were asked; CLEO had no reason to speak, and listened."
        );
        let votes = "ARIA would speak (5), BEN would speak (5, was named, pre-closing), CLEO listens";
        assert_eq!(ballot.closed(&closed(Some("ben"))), format!("{votes}. BEN was selected, because it was named."));
        assert_eq!(ballot.closed(&closed(None)), format!("{votes}: nobody speaks."));
    }

    #[test]
    fn a_missing_vote_is_distinguished_from_a_vote_to_listen() {
        let listens = |from: &str| State::listening(from.into(), "7".into(), false, Stage::None);
        let unanswered = Event::Unanswered {
            companion: "ben".into(),
            trigger: Trigger::DirectAddress,
            ticket: Ticket(1),
            error: "timeout".into(),
            back_off: Duration::from_secs(5),
        };
        let recorded = Recorded { seq: Seq(9), at: Moment::ZERO, handled: Seq(7), turn: None, event: unanswered };
        let mut ballot = Ballot::new(&wish("aria", 5.0, false), &[], |id| id.as_str().to_uppercase());

        ballot.follow(&recorded);

        let states = vec![wish("aria", 5.0, false), listens("ben"), listens("cleo")];
        let closed =
            RoundClosed { held: Vec::new(), message: Seq(7), states, selected: None, speak_at: None, others: Vec::new() };
        let expected = "ARIA would speak (5), BEN did not vote in time, and listens, CLEO listens: nobody speaks.";
        assert_eq!(ballot.closed(&closed), expected);
    }

    fn wish(from: &str, importance: f64, selected: bool) -> State {
        State {
            from: from.into(),
            message_id: "7".into(),
            state: Stance::Speak,
            importance,
            selected,
            closing: Stage::None,
            mood: 0.0,
        }
    }
}
