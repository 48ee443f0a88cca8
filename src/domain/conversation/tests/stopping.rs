//! What stop phrases cancel, and what they leave.

use super::super::super::message::{Address, Message, Role};
use super::super::*;
use super::scene::{Scene, Setup, as_recorded, message, plain};

const TWO: Setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn an_address_that_came_during_a_cancelled_reply_is_asked_about_after_another_phrase() {
    let mut scene = Scene::new(&Setup { companions: 1, ..TWO });
    scene.call("alice", "aria", true);
    scene.answer(0, plain(Verdict::Yes));
    let call = scene.call("bob", "aria", true);
    scene.call("carol", "aria", true);

    // The first phrase cancels the reply to alice, the second one the question about what bob and carol said.
    stop(&mut scene, "carol", &["aria"]);
    stop(&mut scene, "carol", &["aria"]);

    assert_eq!(asked(&scene), [("aria", Trigger::DirectAddress, call)]);
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

#[test]
fn what_a_phrase_cancelled_for_a_selected_companion_is_no_address_any_more() {
    let mut scene = Scene::new(&TWO);
    scene.call("alice", "aria", true);
    scene.answer(0, plain(Verdict::Yes));
    let others = scene.call("bob", "aria", true);

    // Aria has not begun to speak. Bob called it after it was selected.
    stop(&mut scene, "alice", &["aria"]);
    assert_eq!(asked(&scene), [("aria", Trigger::DirectAddress, others)]);
    stop(&mut scene, "bob", &["aria"]);

    let is_address = asked(&scene).iter().any(|(_, trigger, _)| *trigger == Trigger::DirectAddress);
    assert!(!is_address, "alice had cancelled hers: {:?}", asked(&scene));
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

#[test]
fn an_address_that_merged_with_a_cancelled_event_waits_in_its_place() {
    let mut scene = Scene::new(&TWO);
    scene.say(to(&["aria", "ben"]), false, false);
    scene.answer(0, Vote { importance: 9.0, ..plain(Verdict::Yes) });
    scene.happen(to(&["ben"]));
    scene.answer(0, Vote { importance: 1.0, ..plain(Verdict::Yes) });
    scene.wait(3_000_000);
    let floor = scene.conversation.turns().floor();
    assert_eq!(floor.map(|floor| floor.companion.as_str()), Some("aria"));
    let call = scene.call("bob", "ben", true);

    stop(&mut scene, "ana", &[]);

    assert_eq!(asked(&scene), [("ben", Trigger::DirectAddress, call)]);
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

#[test]
fn what_came_during_a_question_about_others_and_was_taken_back_is_not_answered() {
    for yes_waits in [false, true] {
        let mut scene = Scene::new(&TWO);
        let others = scene.call("alice", "ben", true);
        scene.answer(0, plain(Verdict::Yes));
        // Ben writes. If aria answers now, she waits for the floor.
        let question = scene.call("bob", "aria", true);
        if yes_waits {
            scene.answer(0, plain(Verdict::Yes));
        }
        scene.call("carol", "aria", true);
        scene.call("carol", "aria", true);

        stop(&mut scene, "carol", &[]);

        if !yes_waits {
            assert_eq!(asked(&scene), [("aria", Trigger::DirectAddress, question)]);
            scene.answer(0, plain(Verdict::Yes));
        }
        let unsettled: Vec<_> = scene.conversation.buffer(&"aria".into()).map(|entry| entry.seq).collect();
        assert_eq!(unsettled, [others, question], "only carol's words are settled");
        assert_eq!(scene.folded(), as_recorded(&scene.conversation));
    }
}

#[test]
fn two_redacted_messages_are_by_nobody_known() {
    let mut redacted = message("", Role::Person, false, Address::default());
    redacted.text = "".into();
    let known = message("ana", Role::Person, false, Address::default());

    assert!(known.is_by_author_of(&known));
    assert!(!redacted.is_by_author_of(&redacted) && !redacted.is_by_author_of(&known));
}

fn to(companions: &[&str]) -> Address {
    Address { companions: companions.iter().map(|companion| (*companion).into()).collect(), ..Address::default() }
}

fn stop(scene: &mut Scene, by: &str, companions: &[&str]) {
    scene.send(Message { asks_to_stop: true, ..message(by, Role::Person, false, to(companions)) }, None);
}

/// The questions in flight: who is asked, because of what, and about which message.
fn asked(scene: &Scene) -> Vec<(&str, Trigger, Seq)> {
    let questions = scene.conversation.open_questions();
    questions.map(|(companion, asked)| (companion.as_str(), asked.trigger, asked.message)).collect()
}
