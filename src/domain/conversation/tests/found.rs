//! Conversations that a fold once gave back otherwise than they were lived through.

use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, plain, without_what_is_not_on_record};

const THREE: Setup =
    Setup { companions: 3, judge: "lexical", max_turns: None, streak: 1, equal_timeouts: false, external: false };

#[test]
fn who_has_nothing_to_ask_again_waits_for_quiet_from_the_end_of_its_back_off() {
    let mut scene = Scene::new(&THREE);
    let answers = |closing| Act::Answer { whose: 0, verdict: Verdict::Yes, importance: 0, selected: false, closing };
    // Cleo's question gets no answer while ben wants to speak; then there is a turn to be asked about, until it is taken back.
    say(&mut scene, None);
    scene.wait(39_000_000);
    scene.act(&answers(Stage::None));
    say(&mut scene, None);
    scene.wait(12_500_000);
    say(&mut scene, None);
    scene.act(&Act::Write(0));
    let statement = scene.conversation.window().entries().count() - 1;
    scene.act(&Act::Delete(statement as u8));
    scene.act(&answers(Stage::Terminal));
    let before = gate(&scene, "cleo").lull_at;

    // Meanwhile it is quiet for long enough for ben, who is asked: what happens next happens in a round.
    scene.wait(11_000_000);

    let back_off = gate(&scene, "cleo").back_off.map(|back_off| back_off.until);
    assert_eq!((before, back_off), (None, Some(None)));
    assert!(scene.conversation.round().is_some() && gate(&scene, "cleo").lull_at.is_some());
    is_folded_alike(&scene);
}

#[test]
fn of_those_whose_back_offs_end_together_nobody_waits_for_quiet_while_another_is_asked_again() {
    let mut scene = Scene::new(&THREE);
    // Cleo, who was called, does not answer twice: 14 and 28 seconds. Then aria does not, about what is taken back meanwhile: 8 seconds.
    say(&mut scene, Some("cleo"));
    scene.wait(27_000_000);
    say(&mut scene, Some("ben"));
    scene.answer(0, Vote { closing: Stage::Terminal, ..plain(Verdict::Yes) });
    say(&mut scene, None);
    scene.wait(27_000_000);
    scene.act(&Act::Delete(2));

    scene.wait(28_000_000);

    let back_offs = ["aria", "cleo"].map(|id| gate(&scene, id).back_off);
    assert!(back_offs.iter().all(|back_off| back_off.is_some_and(|back_off| back_off.until.is_none())), "{back_offs:?}");
    let aria = gate(&scene, "aria");
    assert_eq!((asked(&scene), aria.lull_at, aria.waiting), (vec!["cleo"], None, None));
    is_folded_alike(&scene);
}

#[test]
fn a_lull_that_is_over_is_dropped_when_back_offs_end_with_a_question_for_another() {
    let mut scene = Scene::new(&Setup { equal_timeouts: true, ..THREE });
    say(&mut scene, None);
    scene.say(Address::default(), true, false);
    scene.act(&Act::Delete(1));
    say(&mut scene, None);
    // Nobody answers about what is gone, and the next message has been quiet for long enough meanwhile.
    scene.wait(24_000_000);
    let lulls = ["aria", "cleo"].map(|id| gate(&scene, id).waiting.map(|waiting| waiting.trigger));
    say(&mut scene, None);
    say(&mut scene, None);

    scene.wait(6_000_000);

    assert_eq!((lulls, asked(&scene)), ([Some(Trigger::Lull); 2], vec!["ben"]));
    assert_eq!(["aria", "cleo"].map(|id| gate(&scene, id).waiting), [None; 2]);
    is_folded_alike(&scene);
}

#[test]
fn a_lull_that_the_end_of_a_back_off_arms_for_its_own_moment_has_fired_when_it_is_asked_about() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, None);
    say(&mut scene, Some("aria"));
    scene.act(&Act::Error(0));
    scene.act(&Act::Delete(1));

    scene.wait(8_000_000);

    assert_eq!((asked(&scene), gate(&scene, "aria").lull_at), (vec!["aria"], None));
    is_folded_alike(&scene);
}

#[test]
fn a_back_off_and_a_lull_that_both_ended_while_nobody_was_there_are_the_same_to_the_next_process_and_the_one_after() {
    let mut scene = Scene::new(&THREE);
    say(&mut scene, None);
    scene.wait(1_000_000);
    say(&mut scene, None);
    // Aria is asked after eight seconds, about what is taken back, and does not answer: eight seconds more. Ben's lull is due in between.
    scene.wait(8_000_000);
    scene.act(&Act::Delete(1));
    scene.act(&Act::Error(0));

    scene.restart(Duration::from_secs(11));

    assert!(scene.conversation.round().is_some());
    is_folded_alike(&scene);
}

#[test]
fn whose_lull_ends_at_the_moment_of_what_wakes_the_others_is_asked_with_them() {
    let mut scene = Scene::new(&THREE);
    say(&mut scene, None);
    // Aria's and ben's lulls ended meanwhile; cleo's ends now.
    scene.act(&Act::Stall(14_000_000));

    scene.act(&Act::CatchUp);

    assert_eq!(asked(&scene), ["aria", "ben", "cleo"]);
    is_folded_alike(&scene);
}

#[test]
fn whose_lull_ends_at_the_moment_of_its_own_question_has_no_lull_left() {
    let mut scene = Scene::new(&THREE);
    say(&mut scene, Some("cleo"));
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(2_000_000);
    // While cleo writes, what is heard calls aria and lets the others be asked; then aria waits for quiet, too.
    scene.say(Address { companions: vec!["aria".into()].into_iter().collect(), others: false }, true, false);
    say(&mut scene, None);
    let lull = gate(&scene, "aria").lull_at;
    scene.act(&Act::Stall(8_000_000));

    scene.act(&Act::FailReply);

    assert_eq!(lull, Some(scene.now));
    assert_eq!((asked(&scene), gate(&scene, "aria").lull_at), (vec!["aria", "ben", "cleo"], None));
    is_folded_alike(&scene);
}

#[test]
fn quiet_counts_from_the_end_of_a_back_off_however_late_that_is_noticed() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, None);
    scene.wait(3_000_000);
    say(&mut scene, Some("aria"));
    scene.act(&Act::Delete(1));
    // The back-off ends after eleven seconds, when it has been quiet for long enough.
    scene.act(&Act::Error(0));

    scene.act(&Act::Stall(8_100_000));
    scene.act(&Act::CatchUp);

    assert_eq!(asked(&scene), ["aria"]);
    is_folded_alike(&scene);
}

#[test]
fn what_is_stale_at_the_end_of_a_back_off_settles_though_something_is_heard_before_that_is_noticed() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, Some("aria"));
    say(&mut scene, None);
    // Eight seconds, sixteen and so on, until the next would be 512; then what it was asked about is taken back.
    for _ in 0..6 {
        scene.act(&Act::Error(0));
        scene.wait(pause(&scene));
    }
    scene.act(&Act::Error(0));
    scene.act(&Act::Delete(0));

    scene.act(&Act::Stall(pause(&scene) + 5_000));
    say(&mut scene, None);

    let reasons = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Decided(decided) => Some((decided.reason, decided.messages.len())),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), [(Reason::Stale, 1)]);
    is_folded_alike(&scene);
}

#[test]
fn a_back_off_that_an_address_cut_short_stays_over_though_the_address_is_taken_back() {
    let mut scene = Scene::new(&Setup { companions: 2, equal_timeouts: true, ..THREE });
    say(&mut scene, None);
    scene.wait(10_000_000);
    // Aria gets no answer, and goes on at once: it was called. While ben is asked still, the call is taken back.
    say(&mut scene, Some("aria"));
    scene.act(&Act::Error(0));
    scene.act(&Act::Delete(1));

    let aria = gate(&scene, "aria");
    assert_eq!((asked(&scene), aria.waiting.map(|waiting| waiting.message)), (vec!["ben"], None));
    assert!(aria.back_off.is_some_and(|back_off| back_off.until.is_none()));
    is_folded_alike(&scene);
}

fn say(scene: &mut Scene, to: Option<&str>) {
    let companions = to.map(CompanionId::from).into_iter().collect();
    scene.say(Address { companions, others: false }, false, false);
}

fn gate<'a>(scene: &'a Scene, companion: &str) -> &'a Gate {
    scene.conversation.gate(&companion.into()).expect("it is here")
}

/// How long aria's back-off is, in microseconds.
fn pause(scene: &Scene) -> u64 {
    gate(scene, "aria").back_off.map_or(0, |back_off| back_off.pause.as_micros() as u64)
}

fn asked(scene: &Scene) -> Vec<&str> {
    scene.conversation.open_questions().map(|(companion, _)| companion.as_str()).collect()
}

fn is_folded_alike(scene: &Scene) {
    assert_eq!(scene.folded(), without_what_is_not_on_record(&scene.conversation));
}
