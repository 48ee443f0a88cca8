//! Journals that lost some of their events, where the operator accepted the loss.

use super::super::super::event::RoundOpened;
use super::super::super::message::Address;
use super::super::*;
use super::scene::{Scene, Setup, plain};

const PAIR: Setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn a_round_with_a_companion_that_never_joined_ends_with_the_companions_in_the_channel() {
    let mut scene = Scene::new(&PAIR);
    open_round(&mut scene, &["aria", "zoe"]);

    scene.wait(60_000_000);
    let is_over = scene.conversation.turns().rounds().is_empty();
    scene.say(Address { companions: ["ben".into()].into(), ..Address::default() }, false, false);

    assert!(is_over);
    assert_eq!(scene.conversation.open_questions().map(|(companion, _)| companion.as_str()).collect::<Vec<_>>(), ["ben"]);
}

#[test]
fn a_companion_that_never_joined_is_not_selected_even_if_its_wish_is_on_record() {
    let mut scene = Scene::new(&PAIR);
    scene.say(Address { companions: ["aria".into()].into(), ..Address::default() }, false, false);
    let opened = scene.conversation.turns.rounds.pop().expect("two companions are in the channel");
    let wishes = ["yan", "zoe"].map(|lost| {
        let vote = Vote { importance: 10.0, ..plain(Verdict::Yes) };
        State::voted(&vote, lost.into(), opened.message_id(), true)
    });
    let asked = ["aria".into()];
    scene.conversation.turns.rounds =
        vec![crate::round::Round::new(opened.message, opened.opened_at, opened.deadline, &wishes, &asked)];

    scene.answer(0, plain(Verdict::Yes));
    scene.wait(5_000_000);

    assert_eq!(scene.conversation.turns().floor().map(|floor| floor.companion.as_str()), Some("aria"));
}

/// Journals the opening of a round, as if the events about its companions had been lost.
fn open_round(scene: &mut Scene, asked: &[&str]) {
    let opened = RoundOpened {
        message: Seq(1),
        deadline: scene.now + Duration::from_secs(15),
        asked: asked.iter().map(|id| CompanionId::from(*id)).collect(),
        listening: Vec::new(),
    };
    let (at, seq) = (scene.now, Seq(scene.journal.len() as u64 + 1));
    let recorded = Recorded { seq, at, handled: seq, turn: None, event: Event::RoundOpened(opened) };
    scene.journal.push(recorded.clone());
    let mut conversation = std::mem::take(&mut scene.conversation);
    scene.with_world(|world| conversation.fold(&recorded, world));
    scene.conversation = conversation;
}
