//! Messages that arrive long after they were said.

use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, plain};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn a_message_that_is_too_old_passes_no_row_and_settles_at_once() {
    let mut scene = Scene::new(&ALONE);

    for _ in 0..50 {
        late(&mut scene, false, 3_600);
    }

    assert_eq!(reasons(&scene), [Reason::Stale; 50]);
    assert_eq!(gate(&scene).message_counter, 0);
    assert_eq!(gate(&scene).lull_at, None);
    assert!(scene.conversation.is_at_rest());
}

#[test]
fn an_address_may_be_older_than_other_messages() {
    let mut scene = Scene::new(&ALONE);

    late(&mut scene, true, 3_601);
    let too_old = scene.conversation.open_questions().count();
    late(&mut scene, true, 1_800);

    assert_eq!((too_old, reasons(&scene)), (0, vec![Reason::Stale]));
    assert_eq!(triggers_asked(&scene), [Trigger::DirectAddress]);
}

#[test]
fn a_slightly_late_message_is_treated_like_any_other() {
    let mut scene = Scene::new(&ALONE);

    late(&mut scene, false, 500);
    scene.wait(20_000_000);

    assert_eq!((reasons(&scene), triggers_asked(&scene)), (vec![], vec![Trigger::Lull]));
}

#[test]
fn a_late_message_does_not_settle_the_messages_of_a_question_in_flight() {
    let mut scene = Scene::new(&ALONE);
    late(&mut scene, true, 1_800);

    late(&mut scene, false, 1_700);
    let while_asked = reasons(&scene);
    scene.answer(0, plain(Verdict::No));
    scene.wait(20_000_000);

    assert_eq!(while_asked, []);
    assert_eq!(triggers_asked(&scene), [Trigger::DirectAddress, Trigger::Lull]);
}

#[test]
fn catching_up_changes_nothing_but_the_handled_number() {
    let mut scene = Scene::new(&Setup { companions: 2, ..ALONE });
    late(&mut scene, false, 0);
    let before = scene.conversation.clone();

    scene.act(&Act::CatchUp);

    let position = scene.conversation.position;
    assert!(position.handled > before.handled());
    assert_eq!(scene.conversation, Conversation { position, ..before });
}

fn late(scene: &mut Scene, is_address: bool, secs: u64) {
    let companions = scene.cast.iter().take(usize::from(is_address)).cloned().collect();
    scene.say_late("ana", Address { companions, ..Address::default() }, false, false, Some(Duration::from_secs(secs)));
}

fn gate(scene: &Scene) -> &Gate {
    scene.conversation.gate(&scene.cast[0]).expect("the companion is in the channel")
}

/// The reasons of all decisions without a call.
fn reasons(scene: &Scene) -> Vec<Reason> {
    let decided = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Decided(decided) => decided.ticket.is_none().then_some(decided.reason),
        _ => None,
    });
    decided.collect()
}

fn triggers_asked(scene: &Scene) -> Vec<Trigger> {
    let asked = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Evaluated(evaluated) => Some(evaluated.trigger),
        _ => None,
    });
    asked.collect()
}
