//! Events that must be acknowledged, where recorded talks cannot show them: pauses, departures, deletions, restarts.

use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, as_recorded, plain};

const TWO: Setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn a_paused_companion_does_not_acknowledge_while_another_can() {
    let mut scene = Scene::new(&TWO);
    scene.act(&Act::Pause { target: Some(0), paused: true });

    scene.happen(Address::default());

    assert_eq!(acknowledging(&scene), ["ben"]);
    assert_fold_matches(&scene);
}

#[test]
fn where_all_that_may_acknowledge_are_paused_the_chosen_one_declines_visibly() {
    for named in [vec![], vec![CompanionId::from("ben")]] {
        let mut scene = Scene::new(&TWO);
        scene.act(&Act::Pause { target: if named.is_empty() { None } else { Some(1) }, paused: true });
        let chosen = named.first().map_or("aria", CompanionId::as_str).to_owned();

        scene.happen(Address { companions: named, ..Address::default() });

        let declined: Vec<_> = decisions(&scene).filter(|decided| decided.trigger == Trigger::Event).collect();
        let [declined] = &declined[..] else { panic!("not one decision: {declined:?}") };
        assert_eq!((declined.decision, declined.reason), (Decision::No, Reason::Paused));
        assert_eq!(declined.companions, [CompanionId::from(&*chosen)]);
        assert_fold_matches(&scene);
    }
}

#[test]
fn a_pause_before_the_statement_declines_the_event_visibly() {
    let mut scene = Scene::new(&TWO);
    scene.call("bob", "ben", true);
    scene.happen(Address::default());

    scene.act(&Act::Pause { target: None, paused: true });

    let about_event: Vec<_> = decisions(&scene).filter(|decided| decided.trigger == Trigger::Event).collect();
    assert_eq!(about_event.iter().map(|decided| decided.reason).collect::<Vec<_>>(), [Reason::Event, Reason::Paused]);
    assert_fold_matches(&scene);
}

#[test]
fn who_leaves_before_it_has_acknowledged_is_replaced() {
    let mut scene = Scene::new(&TWO);
    scene.call("bob", "ben", true);
    scene.happen(Address { companions: vec!["aria".into()], ..Address::default() });

    scene.act(&Act::Leave(0));
    scene.answer(0, plain(Verdict::No));
    scene.wait(30_000_000);

    assert_eq!(acknowledging(&scene), ["aria", "ben"]);
    assert_fold_matches(&scene);
}

#[test]
fn after_the_newest_event_was_deleted_the_one_before_it_is_acknowledged() {
    let mut scene = Scene::new(&TWO);
    scene.call("bob", "ben", true);
    scene.happen(Address::default());
    scene.happen(Address::default());
    let newest = scene.conversation.window().entries().next_back().map(|entry| entry.seq);

    scene.act(&Act::Delete(2));
    assert!(newest.is_some_and(|newest| scene.conversation.window().get(newest).is_none()));
    scene.answer(0, plain(Verdict::No));

    assert_eq!(acknowledging(&scene), ["aria"]);
    assert_fold_matches(&scene);
}

#[test]
fn an_address_outlives_an_event_that_another_companion_acknowledges() {
    let mut scene = Scene::new(&TWO);
    for companion in ["aria", "ben"] {
        scene.happen(Address { companions: vec![companion.into()], ..Address::default() });
        scene.wait(3_000_000);
        scene.act(&Act::Write(2));
        scene.answer(0, plain(Verdict::No));
        scene.wait(if companion == "aria" { 30_000_000 } else { 0 });
    }
    for companion in ["aria", "ben"] {
        scene.happen(Address { companions: vec![companion.into()], ..Address::default() });
    }
    let both = ["aria", "ben"].map(CompanionId::from).to_vec();
    scene.say(Address { companions: both, ..Address::default() }, false, false);
    scene.wait(3_000_000);
    scene.act(&Act::Write(2));

    assert_eq!(acknowledging(&scene), ["aria", "ben", "aria"]);
    let (companion, asked) = scene.conversation.open_questions().next().expect("ben is asked");
    assert_eq!((companion.as_str(), asked.trigger), ("ben", Trigger::DirectAddress));
    assert_fold_matches(&scene);
}

#[test]
fn events_that_wait_for_their_budget_are_acknowledged_together_after_a_restart() {
    let mut scene = Scene::new(&TWO);
    for _ in 0..3 {
        scene.happen(Address { companions: vec!["aria".into()], ..Address::default() });
        scene.wait(3_000_000);
        scene.act(&Act::Write(2));
        scene.answer(0, plain(Verdict::No));
    }
    assert_eq!(acknowledging(&scene).len(), 1, "two are allowed in a minute, half a minute apart");

    scene.restart(Duration::from_secs(100));

    assert_eq!(acknowledging(&scene).len(), 2);
    scene.wait(300_000_000);
    assert_eq!(acknowledging(&scene).len(), 2, "once");
}

#[test]
fn a_silence_that_ended_while_no_process_ran_fires_once() {
    let mut scene = Scene::new(&Setup { equal_timeouts: false, ..TWO });
    scene.say(Address::default(), false, false);
    scene.wait(20_000_000);
    scene.answer(0, plain(Verdict::No));
    scene.answer(0, plain(Verdict::No));
    assert!(
        scene.conversation.is_at_rest() && scene.conversation.silence_at().is_some(),
        "it may sleep until the silence is over"
    );

    scene.restart(Duration::from_secs(5_000));
    scene.restart(Duration::from_secs(5_000));

    let fired = scene.journal.iter().filter(|recorded| matches!(recorded.event, Event::SilenceFired { .. })).count();
    let (_, asked) = scene.conversation.open_questions().next().expect("aria is asked");
    assert_eq!((fired, asked.trigger), (1, Trigger::Silence));
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(3_000_000);
    let floor = scene.conversation.turns().floor().expect("aria starts a conversation");
    assert_eq!((floor.trigger, floor.messages.len()), (Trigger::Silence, 0));
    assert!(!Trigger::Silence.is_unsolicited());
}

fn decisions(scene: &Scene) -> impl Iterator<Item = &super::super::super::event::Decided> {
    scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Decided(decided) => Some(decided),
        _ => None,
    })
}

/// The companions that were selected to acknowledge events.
fn acknowledging(scene: &Scene) -> Vec<&str> {
    let yes = decisions(scene).filter(|decided| decided.reason == Reason::Event && decided.decision == Decision::Yes);
    yes.flat_map(|decided| &decided.companions).map(CompanionId::as_str).collect()
}

fn assert_fold_matches(scene: &Scene) {
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}
