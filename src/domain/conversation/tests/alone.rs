//! Properties of a companion that is alone in its channel.

use proptest::prelude::*;

use super::super::*;
use super::room::{config, is_settled_once_and_restored};
use super::scene::{Act, Scene, Setup, acts, plain};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn whatever_happens_to_a_companion_is_settled_once_and_restored_from_its_record(mut acts in acts()) {
        acts.push(Act::Join(0));
        is_settled_once_and_restored(&ALONE, &acts)?;
    }

    #[test]
    fn after_a_crash_the_conversation_continues(acts in acts(), away in 0_u64..20_000_000_000) {
        let mut scene = Scene::new(&ALONE);
        for act in &acts {
            scene.act(act);
        }

        let now = scene.now + Duration::from_micros(away);
        let (resumed, outputs) = scene.with_world(|world| scene.resumed(now, world));

        let asked = outputs.iter().filter(|output| matches!(output, Output::Made(made) if matches!(made.event, Event::Evaluated(_)))).count();
        prop_assert!(asked <= 1);
        // Events may have waited for their budget until now.
        let (before, after) = (scene.conversation.turns().floor(), resumed.turns().floor());
        let is_new = before.is_none() && after.is_some_and(|floor| floor.trigger == Trigger::Event);
        prop_assert!(is_new || after.map(|floor| floor.messages.first()) == before.map(|floor| floor.messages.first()));
        let is_same = after.map(|floor| floor.ticket) == before.map(|floor| floor.ticket);
        prop_assert!(is_new || is_same || after.map(|floor| floor.replans) > before.map(|floor| floor.replans));
        let is_watched = resumed.turns().floor().is_some() || resumed.open_questions().next().is_some() || resumed.wake_at().is_some();
        prop_assert!(is_watched || resumed.is_at_rest(), "nothing will ever consider the unsettled messages");
    }
}

#[test]
fn an_unanswered_question_is_not_asked_again_about_a_deleted_message() {
    for more in [false, true] {
        let mut scene = Scene::new(&ALONE);
        let say = |to| Act::Say { to, elsewhere: false, voice: false, bot: false, late: None, stop: false };
        scene.act(&say(Some(0)));
        if more {
            scene.act(&say(None));
        }

        scene.act(&Act::Delete(0));
        scene.act(&Act::Error(0));
        scene.wait(700_000_000);

        let asked = scene.journal.iter().filter_map(|recorded| match &recorded.event {
            Event::Evaluated(evaluated) => Some(evaluated.trigger),
            _ => None,
        });
        let about_the_rest = more.then_some(Trigger::Lull);
        assert_eq!(
            asked.collect::<Vec<_>>(),
            [Some(Trigger::DirectAddress), about_the_rest].into_iter().flatten().collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_mood_of_the_newest_answer_is_kept() {
    for setup in [ALONE, Setup { companions: 3, ..ALONE }, Setup { companions: 2, external: true, ..ALONE }] {
        let mut scene = Scene::new(&setup);
        let aria = scene.conversation.companions().next().unwrap().companion.clone();
        for (verdict, expected) in [(Verdict::No, 0.0), (Verdict::Yes, 0.1)] {
            scene.call("ana", aria.as_str(), true);
            scene.answer(0, plain(verdict));

            assert_eq!(scene.conversation.gate(&aria).map(|gate| gate.mood), Some(expected), "{setup:?}");
        }
    }
}
