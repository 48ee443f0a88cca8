//! A round in words: who was asked, who voted what, who was selected and why.

use super::{Name, listed};
use crate::domain::closing::Stage;
use crate::domain::event::RoundClosed;
use crate::domain::round::SelectedBy;
use crate::domain::vote::{Stance, State};
use crate::ports::backend::decisions::StoryLine;
use crate::story::rounds::RoundCourse;

/// Who was asked in a round, and who only listened. None if its opening is not known.
pub(crate) fn opened(round: &RoundCourse, name: Name<'_>) -> Option<StoryLine> {
    let (asked, listening) = round.opening()?;
    let asked: Vec<_> = asked.map(name).collect();
    let was = if asked.len() == 1 { "was" } else { "were" };
    let listening = listed(&listening.map(name).collect::<Vec<_>>());
    let rest = if listening.is_empty() { String::new() } else { format!("; {listening} had no reason to speak, and listened") };
    let text = format!("A round was held: {} {was} asked{rest}.", listed(&asked));
    Some(StoryLine { at: round.at, seq: Some(round.seq), event: "round_opened".into(), text })
}

/// The votes, and who got the floor and why.
pub(crate) fn closed(round: &RoundCourse, closed: &RoundClosed, name: Name<'_>) -> String {
    let votes: Vec<_> = closed.states.iter().map(|state| vote(round, state, &name(&state.from))).collect();
    let votes = votes.join(", ");
    match &closed.selected {
        None if !closed.held.is_empty() => format!("{votes}: nobody speaks yet."),
        None => format!("{votes}: nobody speaks."),
        Some(selected) => format!("{votes}. {} was selected, because {}.", name(selected), because(round.by)),
    }
}

fn vote(round: &RoundCourse, state: &State, name: &str) -> String {
    let closing = if state.closing == Stage::None { String::new() } else { format!(", {}", state.closing) };
    match (state.state, state.selected) {
        (Stance::Listen, _) => match round.error_of(&state.from) {
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
    use crate::domain::event::{Event, Recorded, RoundOpened};
    use crate::domain::id::{CompanionId, Seq, Ticket};
    use crate::domain::moment::Moment;
    use crate::domain::round::selected_by;
    use crate::domain::samples::wish;
    use crate::domain::trigger::Trigger;
    use crate::samples::recorded;
    use crate::story::rounds::RoundCourses;

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
        let listening = State::listening("cleo".into(), "7".into(), false, Stage::None);
        let states =
            vec![wish("aria", 5.0, false), State { closing: Stage::PreClosing, ..wish("ben", 5.0, true) }, listening.clone()];
        let mut rounds = round(vec![listening]);

        let opened = rounds.round_of(&states[0]).and_then(|round| super::opened(round, &upper)).unwrap();
        assert_eq!(opened.text, "A round was held: ARIA and BEN were asked; CLEO had no reason to speak, and listened.");
        let votes = "ARIA would speak (5), BEN would speak (5, was named, pre-closing), CLEO listens";
        assert_eq!(closes(&mut rounds, &states, Some("ben")), format!("{votes}. BEN was selected, because it was named."));
        assert_eq!(closes(&mut rounds, &states, None), format!("{votes}: nobody speaks."));
    }

    #[test]
    fn a_missing_vote_is_distinguished_from_a_vote_to_listen() {
        let listens = |from: &str| State::listening(from.into(), "7".into(), false, Stage::None);
        let mut rounds = round(vec![listens("cleo")]);
        rounds.follow(&evaluated());
        rounds.follow(&recorded(
            9,
            Event::Unanswered {
                companion: "ben".into(),
                trigger: Trigger::DirectAddress,
                ticket: Ticket(1),
                error: "timeout".into(),
                back_off: Duration::from_secs(5),
            },
        ));

        let states = vec![wish("aria", 5.0, false), listens("ben"), listens("cleo")];
        let expected = "ARIA would speak (5), BEN did not vote in time, and listens, CLEO listens: nobody speaks.";
        assert_eq!(closes(&mut rounds, &states, None), expected);
    }

    /// A round in which Aria and Ben were asked.
    fn round(listening: Vec<State>) -> RoundCourses {
        let asked = vec!["aria".into(), "ben".into()];
        let opened = RoundOpened { message: Seq(7), deadline: Moment::ZERO, asked, listening };
        let mut rounds = RoundCourses::default();
        rounds.follow(&recorded(8, Event::RoundOpened(opened)));
        rounds
    }

    fn evaluated() -> Recorded {
        crate::domain::event::samples::recorded(8, crate::domain::event::samples::evaluated("ben", 1, &[7]))
    }

    fn upper(id: &CompanionId) -> String {
        id.as_str().to_uppercase()
    }

    fn closes(rounds: &mut RoundCourses, states: &[State], selected: Option<&str>) -> String {
        let (states, selected) = (states.to_vec(), selected.map(Into::into));
        let closed = RoundClosed { held: Vec::new(), message: Seq(7), states, selected, speak_at: None, others: Vec::new() };
        rounds.follow(&recorded(10, Event::RoundClosed(closed.clone())));
        let round = rounds.changed().next().unwrap();
        super::closed(round, &closed, &upper)
    }
}
