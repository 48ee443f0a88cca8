//! Everybody once, where votes decide the order (docs/design/turn-taking.md T-25).

use super::super::*;
use super::scene::{Act, Scene, Setup, as_recorded, plain};

const TWO: Setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn everybody_once_goes_by_the_votes_of_an_open_round() {
    let mut scene = Scene::new(&TWO);
    scene.act(&Act::Say { to: None, elsewhere: false, voice: false, bot: false, late: None, stop: false });
    scene.wait(15_000_000);
    assert_eq!(scene.conversation.open_questions().count(), 2);

    scene.receive(Event::Chosen { companions: vec!["aria".into(), "ben".into()], everybody: true, by: None });
    scene.answer(0, plain(Verdict::No));
    let before = speakers(&scene);
    scene.answer(0, plain(Verdict::Yes));
    scene.act(&Act::Write(0));
    scene.act(&Act::Write(0));

    assert_eq!((before, speakers(&scene)), (Vec::new(), vec![CompanionId::from("ben"), "aria".into()]));
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

/// The companions that got the floor, in their order.
fn speakers(scene: &Scene) -> Vec<CompanionId> {
    let owed = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::ReplyOwed { companion, .. } => Some(companion.clone()),
        _ => None,
    });
    owed.collect()
}
