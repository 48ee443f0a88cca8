//! Conversations for which a fold of the journal once differed from the original.

use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, as_recorded, plain};

const THREE: Setup =
    Setup { companions: 3, judge: "lexical", max_turns: None, streak: 1, equal_timeouts: false, external: false };

#[test]
fn a_companion_with_nothing_to_ask_again_waits_for_a_lull_from_the_end_of_its_back_off() {
    let mut scene = Scene::new(&THREE);
    scene.settings.reply.max_replans = 0;
    let answers = |closing| Act::Answer { index: 0, verdict: Verdict::Yes, importance: 0, selected: false, closing };
    // Cleo's question gets no answer while ben wants to speak. Then there is a turn to ask about, until it is deleted.
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

    // In the meantime ben's lull is over and ben is asked, so the next events happen in a round.
    scene.wait(11_000_000);

    let back_off = gate(&scene, "cleo").back_off.map(|back_off| back_off.until);
    assert_eq!((before, back_off), (None, Some(None)));
    assert!(!scene.conversation.turns().rounds().is_empty() && gate(&scene, "cleo").lull_at.is_some());
    assert_fold_matches(&scene);
}

#[test]
fn when_back_offs_end_together_no_lull_timer_is_armed_while_a_companion_is_asked_again() {
    let mut scene = Scene::new(&THREE);
    // Cleo was called and gives no answer. Then neither aria nor cleo gives one, about a message that is deleted in the meantime.
    say(&mut scene, Some("cleo"));
    scene.act(&Act::Error(0));
    say(&mut scene, None);
    scene.wait(8_000_000);
    (0..2).for_each(|_| scene.act(&Act::Error(0)));
    scene.act(&Act::Delete(1));

    scene.act(&Act::ReplaceModels);

    let back_offs = ["aria", "cleo"].map(|id| gate(&scene, id).back_off);
    assert!(back_offs.iter().all(|back_off| back_off.is_some_and(|back_off| back_off.until.is_none())), "{back_offs:?}");
    let aria = gate(&scene, "aria");
    assert_eq!((asked_companions(&scene), aria.lull_at, aria.waiting), (vec!["cleo"], None, None));
    assert_fold_matches(&scene);
}

#[test]
fn a_finished_lull_is_dropped_when_back_offs_end_with_a_question_for_another_companion() {
    let mut scene = Scene::new(&Setup { equal_timeouts: true, ..THREE });
    say(&mut scene, None);
    scene.say(Address::default(), true, false);
    scene.act(&Act::Delete(1));
    say(&mut scene, None);
    // Nobody answers about the deleted message. In the meantime the lull after the next message is over.
    scene.wait(24_000_000);
    let lulls = ["aria", "cleo"].map(|id| gate(&scene, id).waiting.map(|waiting| waiting.trigger));
    say(&mut scene, None);
    say(&mut scene, None);

    scene.wait(6_000_000);

    assert_eq!((lulls, asked_companions(&scene)), ([Some(Trigger::Lull); 2], vec!["ben"]));
    assert_eq!(["aria", "cleo"].map(|id| gate(&scene, id).waiting), [None; 2]);
    assert_fold_matches(&scene);
}

#[test]
fn a_lull_armed_for_the_moment_when_a_back_off_ends_has_fired_when_the_companion_is_asked() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, None);
    say(&mut scene, Some("aria"));
    scene.act(&Act::Error(0));
    scene.act(&Act::Delete(1));

    scene.wait(8_000_000);

    assert_eq!((asked_companions(&scene), gate(&scene, "aria").lull_at), (vec!["aria"], None));
    assert_fold_matches(&scene);
}

#[test]
fn a_back_off_and_a_lull_that_ended_while_no_process_ran_are_folded_the_same_after_every_restart() {
    let mut scene = Scene::new(&THREE);
    say(&mut scene, None);
    scene.wait(1_000_000);
    say(&mut scene, None);
    // Aria is asked after eight seconds, about a message that is deleted, and gives no answer: eight seconds more. Ben's lull is due in between.
    scene.wait(8_000_000);
    scene.act(&Act::Delete(1));
    scene.act(&Act::Error(0));

    scene.restart(Duration::from_secs(11));

    assert!(!scene.conversation.turns().rounds().is_empty());
    assert_fold_matches(&scene);
}

#[test]
fn companions_whose_lulls_end_at_the_same_moment_are_asked_together() {
    let mut scene = Scene::new(&THREE);
    say(&mut scene, None);
    // Aria's and ben's lulls ended in the meantime; cleo's ends now.
    scene.act(&Act::Stall(14_000_000));

    scene.act(&Act::CatchUp);

    assert_eq!(asked_companions(&scene), ["aria", "ben", "cleo"]);
    assert_fold_matches(&scene);
}

#[test]
fn a_lull_that_ends_at_the_moment_of_the_companions_own_question_is_dropped() {
    let mut scene = Scene::new(&THREE);
    scene.settings.reply.max_replans = 0;
    say(&mut scene, Some("cleo"));
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(2_000_000);
    // While cleo writes, a bot calls aria, and a message fires the others' triggers; then aria waits for a lull, too.
    scene.say(Address { companions: vec!["aria".into()].into_iter().collect(), ..Address::default() }, true, true);
    say(&mut scene, None);
    let lull = gate(&scene, "aria").lull_at;
    scene.act(&Act::Stall(8_000_000));

    scene.act(&Act::FailReply(0));

    assert_eq!(lull, Some(scene.now));
    assert_eq!((asked_companions(&scene), gate(&scene, "aria").lull_at), (vec!["aria", "ben", "cleo"], None));
    assert_fold_matches(&scene);
}

#[test]
fn a_lull_counts_from_the_end_of_a_back_off_however_late_that_is_noticed() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, None);
    scene.wait(3_000_000);
    say(&mut scene, Some("aria"));
    scene.act(&Act::Delete(1));
    // The back-off ends after eleven seconds, when the lull is over, too.
    scene.act(&Act::Error(0));

    scene.act(&Act::Stall(8_100_000));
    scene.act(&Act::CatchUp);

    assert_eq!(asked_companions(&scene), ["aria"]);
    assert_fold_matches(&scene);
}

#[test]
fn stale_messages_settle_at_the_end_of_a_back_off_even_if_a_message_arrives_first() {
    let mut scene = Scene::new(&Setup { companions: 1, ..THREE });
    say(&mut scene, Some("aria"));
    say(&mut scene, None);
    // Eight seconds, sixteen and so on, until the next would be 512. Then the message of the question is deleted.
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
    assert_fold_matches(&scene);
}

#[test]
fn a_back_off_that_an_address_cut_short_stays_ended_after_the_address_is_deleted() {
    let mut scene = Scene::new(&Setup { companions: 2, equal_timeouts: true, ..THREE });
    say(&mut scene, None);
    scene.wait(10_000_000);
    // Aria's question gets no answer, and it is asked at once because it was called. While that question is in flight, the call is deleted.
    say(&mut scene, Some("aria"));
    scene.act(&Act::Error(0));
    scene.act(&Act::Delete(1));

    let aria = gate(&scene, "aria");
    assert_eq!((asked_companions(&scene), aria.waiting.map(|waiting| waiting.message)), (vec!["aria", "ben"], None));
    assert!(aria.back_off.is_some_and(|back_off| back_off.until.is_none()));
    assert_fold_matches(&scene);
}

#[test]
fn the_last_statement_is_waited_for_if_it_is_late() {
    let mut scene = Scene::new(&Setup { companions: 2, max_turns: Some(2), ..THREE });
    say(&mut scene, Some("aria"));
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(15_000_000);
    say(&mut scene, Some("ben"));
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(10_000_000);
    assert!(scene.conversation.turns.late.len() == 1 && scene.conversation.turns().floor().is_some());

    scene.act(&Act::Write(0));
    say(&mut scene, Some("ben"));
    let asked_meanwhile = asked_companions(&scene).len();
    scene.act(&Act::Write(3));

    let posted = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Said { message, reply: Some(_), .. } => Some(&*message.from.id),
        _ => None,
    });
    assert_eq!((posted.collect::<Vec<_>>(), asked_meanwhile), (vec!["ben", "aria"], 0));
    let stages = ["aria", "ben"].map(|id| gate(&scene, id).stage);
    assert_eq!((stages, asked_companions(&scene)), ([Stage::Terminal, Stage::None], vec!["ben"]), "ben was called meanwhile");
    assert_fold_matches(&scene);
}

fn say(scene: &mut Scene, to: Option<&str>) {
    let companions = to.map(CompanionId::from).into_iter().collect();
    scene.say(Address { companions, ..Address::default() }, false, false);
}

fn gate<'a>(scene: &'a Scene, companion: &str) -> &'a Gate {
    scene.conversation.gate(&companion.into()).expect("the companion is in the channel")
}

/// The length of aria's back-off, in microseconds.
fn pause(scene: &Scene) -> u64 {
    gate(scene, "aria").back_off.map_or(0, |back_off| back_off.pause.as_micros() as u64)
}

fn asked_companions(scene: &Scene) -> Vec<&str> {
    scene.conversation.open_questions().map(|(companion, _)| companion.as_str()).collect()
}

fn assert_fold_matches(scene: &Scene) {
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}
