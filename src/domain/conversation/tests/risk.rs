//! Decisions about messages of people at risk.

use super::super::*;
use super::scene::{Scene, Setup, as_recorded, plain};
use crate::event::Decided;
use crate::message::{Address, Message, Role};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
const TWO: Setup = Setup { companions: 2, ..ALONE };
const HINT: &str = "nobody would notice if i was gone";
const CLEAR: &str = "i want to die";

fn says(scene: &mut Scene, by: &str, to: &str, text: &str) -> Seq {
    let address = Address { companions: vec![to.into()], ..Address::default() };
    let message = super::scene::message(by, Role::Person, false, address);
    scene.send(Message { text: text.into(), ..message }, None);
    scene.conversation.window().entries().next_back().expect("the message is in the window").seq
}

fn vote(verdict: Verdict, risk: Option<bool>) -> Vote {
    Vote { risk, ..plain(verdict) }
}

fn decisions(scene: &Scene) -> Vec<(Reason, Option<Seq>)> {
    let of = |Decided { reason, at_risk, .. }: &Decided| (*reason, *at_risk);
    scene
        .journal
        .iter()
        .filter_map(|recorded| if let Event::Decided(decided) = &recorded.event { Some(of(decided)) } else { None })
        .collect()
}

#[test]
fn the_vote_decides_whether_a_hint_is_meant_in_earnest() {
    for (text, risk, reason) in [
        (HINT, Some(true), Reason::Risk),
        (HINT, Some(false), Reason::ModelYes),
        (HINT, None, Reason::ModelYes),
        (CLEAR, None, Reason::Risk),
        (CLEAR, Some(false), Reason::ModelYes),
        ("how are you?", Some(true), Reason::ModelYes),
    ] {
        let mut scene = Scene::new(&ALONE);
        let said = says(&mut scene, "bob", "aria", text);
        assert_eq!(scene.conversation.may_be_at_risk(&"aria".into(), said), text != "how are you?");

        scene.answer(0, vote(Verdict::Yes, risk));

        let is_risk = reason == Reason::Risk;
        assert_eq!(decisions(&scene), [(reason, is_risk.then_some(said))], "{text} {risk:?}");
        assert_eq!(scene.conversation.turns().floor().is_none(), is_risk, "{text} {risk:?}");
        assert_eq!(as_recorded(&scene.folded()), as_recorded(&scene.conversation));
    }
}

#[test]
fn where_no_model_answers_the_clear_signs_decide_alone() {
    for (text, is_risk) in [(CLEAR, true), (HINT, false)] {
        let mut scene = Scene::new(&ALONE);
        let said = says(&mut scene, "bob", "aria", text);
        let ticket = scene.conversation.open_questions().next().expect("aria is asked").1.ticket;

        scene.step(Input::Unanswered { ticket, error: "unreachable".into() });

        let expected = if is_risk { vec![(Reason::Risk, Some(said))] } else { Vec::new() };
        assert_eq!(decisions(&scene), expected, "{text}");
    }
}

#[test]
fn nobody_else_answers_what_one_vote_found_and_who_is_called_by_others_answers_them() {
    let mut scene = Scene::new(&TWO);
    let said = says(&mut scene, "bob", "aria", HINT);
    scene.answer(0, vote(Verdict::Yes, Some(true)));
    scene.wait(120_000_000);
    while scene.conversation.open_questions().next().is_some() {
        scene.answer(0, vote(Verdict::Yes, Some(false)));
        scene.wait(120_000_000);
    }
    assert!(decisions(&scene).iter().all(|decision| *decision == (Reason::Risk, Some(said))), "{:?}", decisions(&scene));
    assert!(!scene.journal.iter().any(|recorded| matches!(recorded.event, Event::ReplyOwed { .. })));

    says(&mut scene, "carol", "aria", "what time is it?");
    scene.answer(0, vote(Verdict::Yes, None));
    scene.wait(60_000_000);

    assert!(scene.journal.iter().any(|recorded| matches!(recorded.event, Event::ReplyOwed { .. })), "carol is answered");
    assert_eq!(as_recorded(&scene.folded()), as_recorded(&scene.conversation));
}
