//! Properties of rooms with several or external companions, whatever the models answer, and whenever they do.
//!
//! Every step of every scene asserts four rules. At most one companion has the floor. A companion that ended the conversation never speaks.
//! Companions make no more statements than allowed without a person. A round ends by its deadline.

use proptest::prelude::*;

use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, acts, as_recorded, plain};

fn setups() -> impl Strategy<Value = Setup> {
    let judge = prop_oneof![Just("lexical"), Just("model"), Just("both")];
    let cast = (1_usize..=5, prop::bool::weighted(0.4));
    (cast, judge, prop::option::weighted(0.3, 1_u32..5), 1_u32..=4, any::<bool>()).prop_map(
        |((companions, external), judge, max_turns, streak, equal_timeouts)| Setup {
            companions,
            judge,
            max_turns,
            streak,
            equal_timeouts,
            external,
        },
    )
}

/// Each property is tested on so many rooms. `PROPTEST_CASES` sets another number.
pub(super) fn config(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { cases };
    ProptestConfig { cases, ..config }
}

/// No companion has two questions at once. Every message settles once for each companion, and is considered in the end. A fold of the journal
/// restores the conversation at any moment, whatever limits are in force, and a snapshot loses nothing of it.
pub(super) fn is_settled_once_and_restored(setup: &Setup, acts: &[Act]) -> Result<(), TestCaseError> {
    let mut scene = Scene::new(setup);

    for act in acts {
        scene.act(act);
        prop_assert_eq!(scene.folded(), as_recorded(&scene.conversation), "the fold after {:?}", act);
    }

    scene.check_every_message_settles_once();
    scene.check_bids();
    let mut settings = scene.settings.clone();
    settings.turn_taking.max_turns = settings.turn_taking.max_turns.is_none().then_some(1);
    settings.repetition.enabled = false;
    let mut policies = scene.policies.clone();
    for policy in policies.values_mut() {
        policy.max_turns = policy.max_turns.is_none().then_some(1);
        policy.repetition = !policy.repetition;
    }
    prop_assert_eq!(scene.folded_under(&settings, &policies), scene.folded(), "the fold under other limits");
    let written = serde_json::to_string(&scene.conversation).unwrap();
    let read: Conversation = serde_json::from_str(&written).unwrap();
    prop_assert_eq!(read, as_recorded(&scene.conversation), "the snapshot");

    scene.act(&Act::Pause { target: None, paused: false });
    for _ in 0..60 {
        for whose in 0..5 {
            scene.answer(whose, plain(Verdict::No));
        }
        (0..5).for_each(|_| scene.act(&Act::FailReply(0)));
        scene.act(&Act::Judge(0));
        scene.wait(700_000_000);
    }
    for view in scene.conversation.companions() {
        prop_assert_eq!(scene.conversation.buffer(view.companion).count(), 0, "{} has not considered everything", view.companion);
    }
    prop_assert!(scene.conversation.is_at_rest());
    Ok(())
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn whatever_happens_in_a_room_is_settled_once_and_restored_from_its_record(setup in setups(), acts in acts()) {
        is_settled_once_and_restored(&setup, &acts)?;
    }

    #[test]
    fn after_the_last_human_message_the_room_falls_silent_whatever_the_models_answer(
        setup in setups(),
        before in acts(),
        endless in prop::collection::vec((any::<u8>(), 0_u8..=10, any::<bool>()), 1..40),
        failing in any::<bool>(),
    ) {
        let mut scene = Scene::new(&setup);
        for act in &before {
            scene.act(act);
        }
        for target in 0..setup.companions {
            scene.act(&Act::Join(target as u8));
        }
        scene.act(&Act::Pause { target: None, paused: false });
        scene.say(Address { companions: scene.cast.clone(), ..Address::default() }, false, false);
        let conversation = &scene.conversation;
        let selected_before = conversation.turns().owed_replies().count() as u64 + u64::from(conversation.turns().selected().is_some());
        let (statements_before, owed_before) = (scene.statements, selected_before);
        let acknowledgements_before = scene.acknowledgements;

        // Every companion always wants to speak, and repeats itself.
        for round in 0..400 {
            let (whose, importance, selected) = endless[round % endless.len()];
            let vote = Vote { importance: importance.into(), selected, ..plain(Verdict::Yes) };
            scene.answer(whose, vote);
            let act = if failing && round % 3 == 0 { Act::FailReply(whose) } else { Act::Write(whose) };
            scene.act(&act);
            scene.act(&Act::Judge(9));
            scene.wait(25_000_000);
        }

        // Companions that were selected before the last human message may still speak, and events are acknowledged whatever the streak is.
        let acknowledgements = scene.acknowledgements - acknowledgements_before;
        let most = u64::from(setup.streak) + owed_before.max(1) + acknowledgements;
        prop_assert!(scene.statements - statements_before <= most, "{} statements", scene.statements - statements_before);
        prop_assert!(scene.conversation.is_at_rest(), "after ten thousand seconds the room is still not at rest");
    }

    #[test]
    fn after_a_crash_the_round_is_held_again_or_the_statement_is_made_once(
        setup in setups(),
        acts in acts(),
        away in 0_u64..20_000_000_000,
    ) {
        let mut scene = Scene::new(&setup);
        for act in &acts {
            scene.act(act);
        }

        let now = scene.now + Duration::from_micros(away);
        let (resumed, outputs) = scene.with_world(|world| scene.resumed(now, world));

        let original = &scene.conversation;
        let begins_to_speak = outputs.iter().any(|output| matches!(output, Output::Made(made) if matches!(made.event, Event::ReplyOwed { .. })));
        let dropped: Vec<_> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Made(made) => match &made.event {
                    Event::ReplyFailed { ticket, error, .. } if **error == *CLOSED => Some(*ticket),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        for owed in original.turns().owed_replies() {
            // It may have been begun again in the meantime.
            let still_owed = resumed.turns().owed_replies().find(|floor| floor.companion == owed.companion);
            let is_still_owed = still_owed.is_some_and(|floor| floor.ticket == owed.ticket || floor.replans > owed.replans);
            // A late reply of a companion that was silenced is dropped.
            let is_silent = original.companions().any(|view| view.companion == &owed.companion && view.gate.is_silent());
            prop_assert!(is_still_owed || is_silent && dropped.contains(&owed.ticket));
        }
        if resumed.turns().floor().is_some_and(|floor| original.turns().owed_reply(floor.ticket).is_some()) {
            prop_assert!(!begins_to_speak);
        }
        if let Some(turn) = original.turns().selected() {
            let waits = resumed.turns().selected().map(|turn| &turn.candidate.companion);
            let speaks = resumed.turns().floor().map(|floor| &floor.companion);
            prop_assert_eq!(waits.or(speaks), Some(&turn.candidate.companion));
        }
        for (companion, _) in resumed.open_questions() {
            let is_alone = resumed.turns().rounds().is_empty();
            prop_assert!(is_alone || resumed.turns().round_awaiting(companion).is_some(), "{companion} is asked outside a round");
        }
        for round in resumed.turns().rounds() {
            prop_assert!(round.deadline > resumed.clock(), "nobody has time to answer again");
        }
        let is_watched = resumed.turns().owed_replies().next().is_some() || resumed.open_questions().next().is_some() || resumed.wake_at().is_some();
        prop_assert!(is_watched || resumed.turns().open_judgement().is_some() || resumed.is_at_rest(), "nothing will ever consider the unsettled messages");
    }
}

#[test]
fn messages_accepted_while_no_process_ran_settle_as_overflow_beyond_a_full_buffer() {
    let setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let mut scene = Scene::new(&setup);
    for _ in 0..30 {
        scene.say(Address::default(), false, false);
    }
    scene.journal.retain(|recorded| recorded.event.is_inbound());

    let (resumed, _) = scene.with_world(|world| scene.resumed(scene.now, world));

    for companion in &scene.cast {
        assert_eq!(resumed.buffer(companion).count(), scene.settings.gate.max_buffer);
    }
}

#[test]
fn after_a_restart_a_stop_phrase_leaves_an_address_that_it_does_not_cancel() {
    let setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let mut scene = Scene::new(&setup);
    scene.call("bob", "aria", true);
    scene.answer(0, plain(Verdict::Yes));
    let alices = scene.call("alice", "aria", false);
    scene.call("bob", "aria", false);
    if let Some(Recorded { event: Event::Said { message, .. }, .. }) = scene.journal.last_mut() {
        message.asks_to_stop = true;
    }

    let (resumed, _) = scene.with_world(|world| scene.resumed(scene.now, world));

    let asked: Vec<_> = resumed.open_questions().map(|(_, asked)| (asked.trigger, asked.message)).collect();
    assert_eq!((resumed.turns().floor(), asked), (None, vec![(Trigger::DirectAddress, alices)]));
}

#[test]
fn a_reopened_stage_is_recorded_even_if_the_server_died_in_between() {
    let setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let mut scene = Scene::new(&setup);
    let to_aria = || Address { companions: ["aria".into()].into(), ..Address::default() };
    let opened_again =
        Event::StageChanged { companion: "aria".into(), from: Stage::Terminal, to: Stage::None, cause: Cause::DirectAddress };
    scene.say(to_aria(), false, false);
    scene.answer(0, Vote { closing: Stage::Terminal, ..plain(Verdict::No) });
    scene.say(to_aria(), false, false);
    let newest = scene.conversation.handled();
    let recorded_before = scene.journal.iter().filter(|recorded| recorded.event == opened_again).count();

    scene.journal.retain(|recorded| recorded.event.is_inbound() || recorded.handled < newest);
    let (mut resumed, outputs) = scene.with_world(|world| scene.resumed(scene.now, world));
    let again = scene.with_world(|world| resumed.resume(scene.now, Vec::new(), world));

    let reopened_events = |outputs: &[Output]| {
        outputs.iter().filter(|output| matches!(output, Output::Made(made) if made.event == opened_again)).count()
    };
    assert_eq!((recorded_before, reopened_events(&outputs), reopened_events(&again)), (1, 1, 0));
}

#[test]
fn a_companion_that_left_before_a_crash_is_not_reopened_after_it() {
    let setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let mut scene = Scene::new(&setup);
    let to_aria = || Address { companions: ["aria".into()].into(), ..Address::default() };
    scene.say(to_aria(), false, false);
    scene.answer(0, Vote { closing: Stage::Terminal, ..plain(Verdict::No) });
    scene.say(to_aria(), false, false);
    let newest = scene.conversation.handled();
    scene.journal.retain(|recorded| recorded.event.is_inbound() || recorded.handled < newest);
    let resume_after = |event| {
        let mut resumed = scene.folded();
        scene.with_world(|world| {
            resumed.fold(&Recorded { seq: newest.next(), at: scene.now, handled: newest.next(), turn: None, event }, world);
            resumed.resume(scene.now, Vec::new(), world)
        })
    };

    let outputs = [resume_after(Event::Left { companion: "aria".into() }), resume_after(Event::cleared())].concat();

    let is_reopening = |output: &Output| matches!(output, Output::Made(made) if matches!(made.event, Event::StageChanged { .. }));
    assert!(!outputs.iter().any(is_reopening), "{outputs:?}");
}

#[test]
fn a_statement_that_became_a_dead_letter_is_not_made_again() {
    let setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let mut scene = Scene::new(&setup);
    scene.say(Address { companions: ["aria".into()].into(), ..Address::default() }, false, false);
    scene.answer(0, plain(Verdict::Yes));
    let owed = scene.conversation.turns().floor().map(|floor| floor.ticket);
    let mut resumed = scene.folded();
    scene.act(&Act::Write(0));
    let statement = scene.journal.last().cloned().expect("a statement was posted");

    resumed.skip(&statement);
    scene.with_world(|world| resumed.resume(scene.now, Vec::new(), world));

    assert!(owed.is_some() && matches!(statement.event, Event::Said { reply, .. } if reply == owed));
    assert_eq!(resumed.turns().floor(), None);
}
