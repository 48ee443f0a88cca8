//! Closing stages: who becomes terminal, what goes on nevertheless, and forced stages.

use super::super::super::gate::{Check, Waiting};
use super::super::super::message::Address;
use super::super::*;
use super::scene::{Act, Scene, Setup, plain};

const PAIR: Setup = Setup { companions: 2, judge: "model", max_turns: None, streak: 9, equal_timeouts: true, external: false };

fn to(companions: &[&str]) -> Address {
    Address { companions: companions.iter().map(|companion| (*companion).into()).collect(), ..Address::default() }
}

/// Forces `terminal` on all companions, as after the last statement of `max_turns`.
fn end(scene: &mut Scene) -> Vec<Output> {
    end_since(scene, scene.conversation.position.handled)
}

/// The same, after a statement whose round opened at this event.
fn end_since(scene: &mut Scene, opened: Seq) -> Vec<Output> {
    let (mut conversation, all) = (scene.conversation.clone(), scene.cast.clone());
    let out = scene.with_world(|world| {
        let mut step = Step::new(&mut conversation, world);
        step.change_stages(all, Stage::Terminal, Cause::MaxTurns, opened);
        step.out
    });
    scene.conversation = conversation;
    out
}

fn stages(scene: &Scene) -> Vec<Stage> {
    scene.conversation.companions().map(|view| view.gate.stage).collect()
}

fn cancelled(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Cancel { .. })).count()
}

#[test]
fn a_question_in_flight_ends_without_an_error() {
    let mut scene = Scene::new(&PAIR);
    scene.say(to(&[]), false, false);
    scene.wait(10_000_000);
    assert_eq!(scene.conversation.open_questions().count(), 2);

    let outputs = end(&mut scene);

    let is_error = |output: &Output| matches!(output, Output::Made(made) if matches!(made.event, Event::Unanswered { .. }));
    assert_eq!((cancelled(&outputs), outputs.iter().any(is_error)), (2, false));
    assert_eq!(scene.conversation.open_questions().count(), 0);
    assert_eq!(
        scene.conversation.turns().rounds().iter().map(|round| round.missing().count()).collect::<Vec<_>>(),
        [0],
        "both companions listen"
    );
    assert_eq!(stages(&scene), [Stage::Terminal; 2]);
}

#[test]
fn a_question_about_a_persons_address_goes_on_and_opens_the_companion_again() {
    let mut scene = Scene::new(&PAIR);
    scene.say(to(&["aria"]), false, false);

    let outputs = end(&mut scene);

    assert_eq!((cancelled(&outputs), stages(&scene)), (0, vec![Stage::None, Stage::Terminal]));
    assert_eq!(scene.conversation.open_questions().count(), 1);
    let changes = outputs.iter().filter_map(|output| match output {
        Output::Made(made) => match &made.event {
            Event::StageChanged { companion, to, .. } => Some((companion.as_str(), *to)),
            _ => None,
        },
        _ => None,
    });
    let changes: Vec<_> = changes.collect();
    assert_eq!(
        changes,
        [("aria", Stage::Terminal), ("ben", Stage::Terminal), ("aria", Stage::None)],
        "first all become terminal"
    );
}

#[test]
fn who_becomes_terminal_before_it_speaks_loses_the_floor() {
    let mut scene = Scene::new(&PAIR);
    scene.say(to(&[]), false, false);
    scene.wait(10_000_000);
    scene.answer(0, plain(Verdict::Yes));
    scene.answer(0, plain(Verdict::No));
    assert!(scene.conversation.turns().selected().is_some());

    end(&mut scene);

    assert_eq!(scene.conversation.turns().selected(), None);
    assert!(scene.conversation.is_at_rest());
}

#[test]
fn a_silence_that_nobody_has_considered_yet_ends_with_the_conversation() {
    let mut scene = Scene::new(&PAIR);
    let waiting = Waiting { trigger: Trigger::Silence, message: Seq::NONE, check: Check::Unsettled, urgent: false };
    scene.conversation.gates.iter_mut().for_each(|(_, gate)| gate.waiting = Some(waiting));

    end(&mut scene);

    assert!(scene.conversation.is_at_rest());
}

#[test]
fn a_call_that_was_about_to_be_answered_is_asked_about_again() {
    let mut scene = Scene::new(&PAIR);
    scene.say(to(&["aria"]), false, false);
    scene.answer(0, plain(Verdict::Yes));
    assert!(scene.conversation.turns().selected().is_some());

    end_since(&mut scene, Seq::NONE);
    scene.wait(1);

    assert_eq!((scene.conversation.turns().selected(), stages(&scene)), (None, vec![Stage::None, Stage::Terminal]));
    let asked: Vec<_> = scene.conversation.open_questions().map(|(_, question)| question.trigger).collect();
    let waiting = scene.conversation.companions().filter_map(|view| view.gate.waiting).map(|waiting| waiting.trigger);
    assert_eq!(asked.into_iter().chain(waiting).collect::<Vec<_>>(), [Trigger::DirectAddress]);
}

#[test]
fn a_statement_whose_call_has_begun_is_made() {
    let mut scene = Scene::new(&PAIR);
    scene.say(to(&["aria"]), false, false);
    scene.answer(0, plain(Verdict::Yes));
    scene.wait(2_000_000);
    assert!(scene.conversation.turns().floor().is_some());

    let outputs = end(&mut scene);
    scene.act(&Act::Write(0));

    assert_eq!((cancelled(&outputs), scene.statements), (0, 1));
    assert_eq!(stages(&scene), [Stage::Terminal; 2]);
}

#[test]
fn the_next_stage_is_forced_after_a_statement_under_the_last_one() {
    let mut scene = Scene::new(&PAIR);
    let mut forced = Vec::new();

    for statement in 0..6 {
        speak(&mut scene, &format!("person {statement}"));
        let floor = scene.conversation.turns.floor.as_mut().expect("aria has the floor");
        floor.trigger = Trigger::Turn;
        if statement == 3 {
            // Its call began before a stage was forced.
            floor.forced = Stage::None;
        }
        scene.act(&Act::Write(0));
        scene.act(&Act::Judge(9));
        scene.answer(0, plain(Verdict::No));
        forced.push((scene.conversation.tally().detections, scene.conversation.tally().forced));
    }

    let (none, pre_closing, closing) = (Stage::None, Stage::PreClosing, Stage::Closing);
    assert_eq!(forced, [(0, none), (0, none), (1, pre_closing), (2, pre_closing), (3, closing), (4, closing)]);
}

#[test]
fn a_minimum_stage_ends_with_the_companions_own_statement_or_an_address_of_it() {
    let mut scene = Scene::new(&PAIR);
    let minimum_stages = |scene: &Scene| scene.conversation.companions().map(|view| view.gate.minimum_stage).collect::<Vec<_>>();
    speak(&mut scene, "ana");
    scene.conversation.gates.values_mut().for_each(|gate| gate.stage = Stage::Closing);
    scene.conversation.apply_judged(0.9, 2, Stage::Closing, &[]);
    // A statement that answers a person ends those of all.
    scene.conversation.turns.floor.as_mut().expect("aria has the floor").trigger = Trigger::Turn;

    scene.act(&Act::Write(0));
    let after_statement = minimum_stages(&scene);
    scene.say(to(&["ben"]), false, false);

    assert_eq!((after_statement, minimum_stages(&scene)), (vec![Stage::None, Stage::Closing], vec![Stage::None; 2]));
}

/// A person calls Aria, and she takes the floor.
fn speak(scene: &mut Scene, person: &str) {
    scene.say_late(person, to(&["aria"]), false, false, None);
    scene.answer(0, plain(Verdict::Yes));
    // Ben may be asked about an interjection.
    scene.answer(0, plain(Verdict::No));
    scene.wait(2_000_000);
}

#[test]
fn a_companion_that_is_alone_is_terminal_after_its_goodbye_also_after_a_crash() {
    let mut scene = Scene::new(&Setup { companions: 1, ..PAIR });
    scene.say(to(&["aria"]), false, false);
    scene.answer(0, Vote { closing: Stage::Terminal, ..plain(Verdict::Yes) });
    assert_eq!(stages(&scene), [Stage::Closing]);

    scene.restart(Duration::from_secs(1));
    scene.act(&Act::Write(0));

    assert_eq!((stages(&scene), scene.statements), (vec![Stage::Terminal], 1));
}

#[test]
fn a_companion_that_other_settings_open_again_after_a_restart_is_opened_before_its_silence_ends() {
    let mut scene = Scene::new(&Setup { companions: 1, equal_timeouts: false, ..PAIR });
    scene.say(to(&["aria"]), false, false);
    scene.answer(0, Vote { closing: Stage::Terminal, ..plain(Verdict::No) });
    scene.wait(60_000_000);
    scene.say(to(&[]), false, false);
    assert_eq!(stages(&scene), [Stage::Terminal]);
    let before = scene.journal.len();

    // Now a message after a minute begins a new episode.
    scene.settings.closing.episode_idle_secs = 50.0;
    scene.restart(Duration::from_secs(200));

    let made = |is_it: fn(&Event) -> bool| scene.journal[before..].iter().position(|recorded| is_it(&recorded.event));
    let opened = made(|event| matches!(event, Event::StageChanged { cause: Cause::NewEpisode, .. }));
    let silence = made(|event| matches!(event, Event::SilenceFired { .. }));
    assert!(opened.is_some() && silence.is_some() && opened < silence, "{:?}", &scene.journal[before..]);
}
