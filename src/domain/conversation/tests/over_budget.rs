//! A person addresses companions more often than `gate.addresses_per_minute` allows (three times in these tests), or companions have said enough.

use proptest::prelude::*;

use super::super::*;
use super::scene::{Act, Drawn, Scene, Setup, as_recorded, plain, with_world};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
const TWO: Setup = Setup { companions: 2, ..ALONE };

#[test]
fn quick_addresses_are_asked_about_within_the_budget_and_declined_one_by_one_over_it() {
    let mut scene = Scene::new(&ALONE);

    let calls: Vec<_> = (0..8).map(|_| scene.call("bob", "aria", true)).collect();
    scene.answer(0, plain(Verdict::No));
    scene.answer(0, plain(Verdict::No));

    let of_budget: Vec<_> = calls[3..].iter().map(|seq| (Reason::Budget, vec![*seq])).collect();
    let of_model = [(Reason::ModelNo, vec![calls[0]]), (Reason::ModelNo, calls[1..3].to_vec())];
    assert_eq!(declined(&scene, "aria"), [of_budget, of_model.to_vec()].concat());
}

#[test]
fn an_address_over_the_budget_neither_replaces_nor_declines_that_of_another_person() {
    for is_asked_first in [true, false] {
        let mut scene = Scene::new(&ALONE);
        for _ in 0..3 {
            scene.call("bob", "aria", true);
            scene.answer(0, plain(Verdict::No));
        }
        if is_asked_first {
            scene.call("carol", "aria", true);
        }
        let alices = scene.call("alice", "aria", true);
        for _ in 0..45 {
            scene.call("bob", "aria", true);
        }
        if is_asked_first {
            scene.answer(0, plain(Verdict::No));
        }

        let (_, asked) = scene.conversation.open_questions().next().expect("aria is asked about what alice said");
        assert_eq!((asked.trigger, asked.message), (Trigger::DirectAddress, alices));
        scene.answer(0, plain(Verdict::Yes));
        let floor = scene.conversation.turns().floor().expect("aria answers");
        assert_eq!(floor.messages, [alices]);
        assert!(scene.conversation.window().entries().count() < 30, "declined messages leave the window");
        assert_fold_matches(&scene);
    }
}

#[test]
fn an_address_over_the_budget_ends_no_lull_and_is_not_counted() {
    let mut scene = Scene::new(&ALONE);
    for _ in 0..3 {
        scene.call("bob", "aria", true);
        scene.answer(0, plain(Verdict::No));
    }
    scene.say(Default::default(), false, false);
    scene.wait(4_000_000);
    let before = gate(&scene, "aria").clone();

    scene.call("bob", "aria", true);

    assert!(before.lull_at.is_some());
    assert_eq!(*gate(&scene, "aria"), before);
    scene.wait(6_000_000);
    let asked: Vec<_> = scene.conversation.open_questions().map(|(_, asked)| asked.trigger).collect();
    assert_eq!(asked, [Trigger::Lull]);
    assert_fold_matches(&scene);
}

#[test]
fn an_address_over_the_budget_is_an_ordinary_message_for_other_companions() {
    let mut scene = Scene::new(&TWO);
    for _ in 0..3 {
        scene.call("bob", "aria", true);
    }
    let before = gate(&scene, "ben").message_counter;

    let refused = scene.call("bob", "aria", true);

    assert_eq!(gate(&scene, "ben").message_counter, before + 1);
    assert!(scene.conversation.buffer(&"ben".into()).any(|entry| entry.seq == refused));
    assert!(scene.conversation.buffer(&"aria".into()).all(|entry| entry.seq != refused));
}

proptest! {
    #[test]
    fn the_address_of_one_person_is_asked_about_whatever_another_person_says(
        acts in prop::collection::vec(0_u8..6, 20..90),
        alices_turn in 0_usize..20,
    ) {
        let mut scene = Scene::new(&ALONE);
        let mut alices = Seq::NONE;
        for (turn, act) in acts.iter().enumerate() {
            scene.wait(100_000);
            if turn == alices_turn {
                alices = scene.call("alice", "aria", true);
            }
            match act {
                0..=3 => {
                    scene.call("bob", "aria", true);
                }
                4 => scene.answer(0, plain(Verdict::No)),
                _ => {
                    scene.answer(0, plain(Verdict::Yes));
                    scene.act(&Act::Write(0));
                }
            }
            prop_assert_eq!(scene.folded(), as_recorded(&scene.conversation));
        }

        for _ in 0..3 {
            scene.answer(0, plain(Verdict::No));
            scene.act(&Act::Write(0));
        }

        let is_asked_about = |recorded: &Recorded| match &recorded.event {
            Event::Evaluated(evaluated) => evaluated.messages.contains(&alices),
            Event::ReplyOwed { messages, .. } => messages.contains(&alices),
            _ => false,
        };
        prop_assert!(scene.journal.iter().any(is_asked_about));
    }
}

#[test]
fn after_a_restart_an_earlier_call_replaces_a_later_one_over_the_budget() {
    let mut scene = Scene::new(&ALONE);
    let alices = scene.call("alice", "aria", false);
    let bobs = scene.call("bob", "aria", false);
    let mut ledger = Ledger::default();
    let (bob, den) = ("bob".into(), "den".into());
    for message in 1..=3 {
        ledger.count(Use::Address { person: &bob, channel: &den, message: Seq(message) }, scene.now, &scene.settings.gate);
    }

    let (resumed, outputs) =
        with_world(&scene.settings, &scene.policies, &mut ledger, &mut Drawn::default(), |world| scene.resumed(scene.now, world));

    let asked: Vec<_> = resumed.open_questions().map(|(_, asked)| asked.message).collect();
    let declined: Vec<_> = outputs.iter().filter_map(declined_decision).map(|decided| decided.messages.clone()).collect();
    assert_eq!((asked, declined), (vec![alices], vec![vec![bobs]]));
}

#[test]
fn addresses_that_were_redacted_before_they_are_handled_are_nobodys() {
    let mut scene = Scene::new(&ALONE);
    for _ in 0..8 {
        scene.call("", "aria", false);
    }

    scene.restart(Duration::from_secs(1));

    assert_eq!(declined(&scene, "aria"), []);
    assert_fold_matches(&scene);
}

#[test]
fn statements_of_one_moment_count_each() {
    // Times of a record never go back. After the clock was set back, everything is of one moment.
    let mut scene = Scene::new(&ALONE);
    scene.settings.gate.guild_statements_per_day = 2;

    let calls = [0; 3].map(|_| {
        let call = scene.call("alice", "aria", true);
        scene.answer(0, plain(Verdict::Yes));
        scene.act(&Act::Write(0));
        call
    });

    assert_eq!((scene.statements, declined(&scene, "aria").pop()), (2, Some((Reason::Budget, vec![calls[2]]))));
}

fn declined_decision(output: &Output) -> Option<&super::super::super::event::Decided> {
    match output {
        Output::Made(made) => match &made.event {
            Event::Decided(decided) if decided.decision == Decision::No => Some(decided),
            _ => None,
        },
        _ => None,
    }
}

fn declined(scene: &Scene, companion: &str) -> Vec<(Reason, Vec<Seq>)> {
    let includes_it = |companions: &[CompanionId]| companions.iter().any(|id| id.as_str() == companion);
    let decided = scene.journal.iter().filter_map(|recorded| match &recorded.event {
        Event::Decided(decided) if includes_it(&decided.companions) => Some((decided.reason, decided.messages.clone())),
        _ => None,
    });
    decided.collect()
}

fn gate<'a>(scene: &'a Scene, companion: &str) -> &'a Gate {
    scene.conversation.gate(&companion.into()).expect("the companion is in the channel")
}

fn assert_fold_matches(scene: &Scene) {
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}
