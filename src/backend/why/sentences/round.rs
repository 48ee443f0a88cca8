//! A round in words: who was asked, who voted what, who was selected and why.

use super::listed;
use crate::backend::why::round::Ballot;
use crate::domain::closing::Stage;
use crate::domain::event::{RoundClosed, RoundOpened};
use crate::domain::id::CompanionId;
use crate::domain::round::SelectedBy;
use crate::domain::vote::{Stance, State};

type Name<'a> = &'a dyn Fn(&CompanionId) -> String;

pub(in crate::backend::why) fn opened(opened: &RoundOpened, name: Name<'_>) -> String {
    let asked = listed(&opened.asked.iter().map(name).collect::<Vec<_>>());
    let was = if opened.asked.len() == 1 { "was" } else { "were" };
    let listening = listed(&opened.listening.iter().map(|state| name(&state.from)).collect::<Vec<_>>());
    let rest = if listening.is_empty() { String::new() } else { format!("; {listening} had no reason to speak, and listened") };
    format!("A round was held: {asked} {was} asked{rest}.")
}

/// The votes, and who got the floor and why.
pub(in crate::backend::why) fn closed(ballot: &Ballot<'_>, closed: &RoundClosed, name: Name<'_>) -> String {
    let votes: Vec<_> = closed.states.iter().map(|state| vote(ballot, state, &name(&state.from))).collect();
    let votes = votes.join(", ");
    match &closed.selected {
        None if !closed.held.is_empty() => format!("{votes}: nobody speaks yet."),
        None => format!("{votes}: nobody speaks."),
        Some(selected) => {
            let because = because(ballot.selected_by(selected, &closed.states));
            format!("{votes}. {} was selected, because {because}.", name(selected))
        }
    }
}

fn vote(ballot: &Ballot<'_>, state: &State, name: &str) -> String {
    let closing = if state.closing == Stage::None { String::new() } else { format!(", {}", state.closing) };
    match (state.state, state.selected) {
        (Stance::Listen, _) => match ballot.silent.get(&state.from).map(|error| &**error) {
            Some("timeout") => format!("{name} did not vote in time, and listens{closing}"),
            Some(error) => format!("{name} gave no vote ({error}), and listens{closing}"),
            None => format!("{name} listens{closing}"),
        },
        (Stance::Speak, false) => format!("{name} would speak ({}{closing})", state.importance),
        (Stance::Speak, true) => format!("{name} would speak ({}, was named{closing})", state.importance),
    }
}

const fn because(selected_by: Option<SelectedBy>) -> &'static str {
    match selected_by {
        None => "nobody else could speak",
        Some(SelectedBy::Only) => "nobody else wanted to speak",
        Some(SelectedBy::Call) => "it was named",
        Some(SelectedBy::Importance) => "nobody else found it as important to speak",
        Some(SelectedBy::Patience) => "it had spoken least recently",
        Some(SelectedBy::Id) => "its id comes first where all else is equal",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::event::{Event, Recorded};
    use crate::domain::id::{Seq, Ticket};
    use crate::domain::moment::Moment;
    use crate::domain::round::selected_by;
    use crate::domain::samples::wish;
    use crate::domain::trigger::Trigger;

    #[test]
    fn the_rule_that_decided_between_the_first_two_is_named() {
        let because = |states: &[State], spoke: &[(&str, u64)]| {
            let spoke = |id: &CompanionId| spoke.iter().find(|(from, _)| *from == id.as_str()).map(|(_, seq)| Seq(*seq));
            because(selected_by(states, &"aria".into(), spoke))
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
        let states = vec![
            wish("aria", 5.0, false),
            State { closing: Stage::PreClosing, ..wish("ben", 5.0, true) },
            State::listening("cleo".into(), "7".into(), false, Stage::None),
        ];
        let ballot = Ballot::new(&states[0], &[]);

        assert_eq!(
            super::opened(&opened, &upper),
            "A round was held: ARIA and BEN were asked; CLEO had no reason to speak, and listened."
        );
        let votes = "ARIA would speak (5), BEN would speak (5, was named, pre-closing), CLEO listens";
        assert_eq!(told(&ballot, &states, Some("ben")), format!("{votes}. BEN was selected, because it was named."));
        assert_eq!(told(&ballot, &states, None), format!("{votes}: nobody speaks."));
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
        let mut ballot = Ballot::new(&wish("aria", 5.0, false), &[]);

        ballot.follow(&recorded);

        let states = vec![wish("aria", 5.0, false), listens("ben"), listens("cleo")];
        let expected = "ARIA would speak (5), BEN did not vote in time, and listens, CLEO listens: nobody speaks.";
        assert_eq!(told(&ballot, &states, None), expected);
    }

    fn upper(id: &CompanionId) -> String {
        id.as_str().to_uppercase()
    }

    fn told(ballot: &Ballot<'_>, states: &[State], selected: Option<&str>) -> String {
        let (states, selected) = (states.to_vec(), selected.map(Into::into));
        let closed = RoundClosed { held: Vec::new(), message: Seq(7), states, selected, speak_at: None, others: Vec::new() };
        super::closed(ballot, &closed, &upper)
    }
}
