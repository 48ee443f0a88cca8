//! Sentences about a round: the votes, the selected speaker, and the rule.

use super::{Name, listed};
use crate::domain::event::RoundClosed;
use crate::domain::round::SelectedBy;
use crate::domain::vote::{Stance, State};
use crate::story::rounds::RoundCourse;
use crate::texts::Language;

/// The votes of the companions that were asked, and the selected speaker. `None` if only one was asked, because its decision has
/// the same content.
pub(crate) fn closed(round: &RoundCourse, closed: &RoundClosed, name: Name<'_>, language: Language) -> Option<String> {
    if closed.states.iter().filter(|state| round.was_asked(&state.from)).count() < 2 {
        return None;
    }
    let (mut wishes, mut silent, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for state in closed.states.iter().filter(|state| round.was_asked(&state.from)) {
        match state.state {
            Stance::Speak => wishes.push(state),
            Stance::Listen if round.has_failed_to_vote(&state.from) => late.push(name(&state.from)),
            Stance::Listen => silent.push(name(&state.from)),
        }
    }
    let is_contest = wishes.len() > 1;
    let wish = |state: &&State| {
        let (name, importance) = (name(&state.from), &state.importance);
        if is_contest { language.say("why.round.wish", &[("name", &name), ("importance", importance)]) } else { name }
    };
    let groups =
        [("why.round.wanted", wishes.iter().map(wish).collect()), ("why.round.silent", silent), ("why.round.late", late)];
    let groups = groups.into_iter().filter(|(_, names)| !names.is_empty());
    let outcome = match &closed.selected {
        None if !closed.held.is_empty() => language.say("why.round.held", &[]),
        None => language.say("why.round.nobody", &[]),
        Some(selected) => language.say(&format!("why.chosen.{}", rule(round.by)), &[("name", &name(selected))]),
    };
    let said = groups.map(|(key, names): (_, Vec<String>)| {
        language.say(key, &[("names", &listed(&names, language)), ("count", &names.len())])
    });
    Some(said.chain([outcome]).collect::<Vec<_>>().join(" "))
}

const fn rule(selected_by: Option<SelectedBy>) -> &'static str {
    match selected_by {
        None => "alone",
        Some(SelectedBy::Only) => "only",
        Some(SelectedBy::Call) => "call",
        Some(SelectedBy::Importance) => "importance",
        Some(SelectedBy::Patience) => "patience",
        Some(SelectedBy::Id) => "id",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::closing::Stage;
    use crate::domain::event::{Event, RoundOpened, samples};
    use crate::domain::id::{CompanionId, Seq, Ticket};
    use crate::domain::moment::Moment;
    use crate::domain::round::selected_by;
    use crate::domain::samples::wish;
    use crate::domain::trigger::Trigger;
    use crate::samples::recorded;
    use crate::story::rounds::RoundCourses;

    #[test]
    fn the_rule_that_decided_between_the_first_two_is_named() {
        let rule = |states: &[State], spoke: &[(&str, u64)]| {
            let spoke = |id: &CompanionId| spoke.iter().find(|(from, _)| *from == id.as_str()).map(|(_, seq)| Seq(*seq));
            rule(selected_by(states, &"aria".into(), spoke))
        };
        let (aria, named) = (wish("aria", 5.0, false), wish("aria", 1.0, true));

        assert_eq!(rule(std::slice::from_ref(&aria), &[]), "only");
        assert_eq!(rule(&[named, wish("ben", 9.0, false)], &[]), "call");
        assert_eq!(rule(&[aria.clone(), wish("ben", 4.0, false), wish("cleo", 1.0, false)], &[]), "importance");
        assert_eq!(rule(&[aria.clone(), wish("ben", 5.0, false)], &[("aria", 3), ("ben", 7)]), "patience");
        assert_eq!(rule(&[aria.clone(), wish("ben", 5.0, false)], &[]), "id");
        let withdrawn = State { closing: Stage::Terminal, ..wish("ben", 9.0, true) };
        assert_eq!(rule(&[aria, withdrawn], &[]), "only");
    }

    #[test]
    fn a_round_says_who_wanted_to_speak_and_who_was_chosen() {
        let states = vec![wish("aria", 5.0, false), wish("ben", 5.5, true), listens("cleo")];

        let chosen = closes(&mut round(), &states, Some("ben"), Language::English);
        assert_eq!(
            chosen,
            "ARIA (5 of 10) and BEN (5.5 of 10) wanted to speak. BEN was chosen, because the message was for BEN."
        );
        let nobody = closes(&mut round(), &[listens("aria"), listens("ben")], None, Language::German);
        assert_eq!(nobody, "ARIA und BEN haben nicht geantwortet. Darum hat niemand gesprochen.");
        assert_eq!(closes(&mut round(), &[wish("ben", 5.0, false), listens("cleo")], Some("ben"), Language::English), "");
    }

    #[test]
    fn a_missing_vote_is_distinguished_from_a_decision_to_stay_silent() {
        let mut rounds = round();
        rounds.follow(&samples::recorded(8, samples::evaluated("ben", 1, &[7])));
        let declined = samples::decided(&["aria"], "NO", &[7], serde_json::json!({ "reason": "model_no" }));
        rounds.follow(&samples::recorded(8, declined));
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

        let states = [listens("aria"), listens("ben"), listens("cleo")];
        let told = closes(&mut rounds, &states, None, Language::English);

        assert_eq!(told, "ARIA decided to stay silent. BEN gave no answer. So nobody spoke.");
    }

    fn listens(from: &str) -> State {
        State::listening(from.into(), "7".into(), false, Stage::None)
    }

    /// A round in which Aria and Ben were asked.
    fn round() -> RoundCourses {
        let asked = vec!["aria".into(), "ben".into()];
        let opened = RoundOpened { message: Seq(7), deadline: Moment::ZERO, asked, listening: vec![listens("cleo")] };
        let mut rounds = RoundCourses::default();
        rounds.follow(&recorded(8, Event::RoundOpened(opened)));
        rounds
    }

    fn closes(rounds: &mut RoundCourses, states: &[State], selected: Option<&str>, language: Language) -> String {
        let (states, selected) = (states.to_vec(), selected.map(Into::into));
        let closed = RoundClosed { held: Vec::new(), message: Seq(7), states, selected, speak_at: None, others: Vec::new() };
        rounds.follow(&recorded(10, Event::RoundClosed(closed.clone())));
        let round = rounds.changed().next().unwrap();
        super::closed(round, &closed, &|id| id.as_str().to_uppercase(), language).unwrap_or_default()
    }
}
