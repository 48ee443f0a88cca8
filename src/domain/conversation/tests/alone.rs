//! Properties of a companion that is alone in its channel.

use proptest::prelude::*;

use super::super::*;
use super::scene::{Act, Scene, Setup, acts, as_recorded, plain};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

proptest! {
    #[test]
    fn a_gate_is_never_asked_twice_at_once_and_every_message_settles_once_in_order(acts in acts()) {
        let mut scene = Scene::new(&ALONE);

        for act in &acts {
            scene.act(act);
        }

        scene.check_every_message_settles_once();
    }

    #[test]
    fn a_fold_of_the_journal_restores_the_conversation(acts in acts()) {
        let mut scene = Scene::new(&ALONE);

        for act in &acts {
            scene.act(act);
            prop_assert_eq!(scene.folded(), as_recorded(&scene.conversation), "after {:?}", act);
        }
    }

    #[test]
    fn a_snapshot_loses_nothing(acts in acts()) {
        let mut scene = Scene::new(&ALONE);

        for act in &acts {
            scene.act(act);
        }
        let written = serde_json::to_string(&scene.conversation).unwrap();
        let read: Conversation = serde_json::from_str(&written).unwrap();

        prop_assert_eq!(read, as_recorded(&scene.conversation));
    }

    #[test]
    fn every_unsettled_message_is_considered_in_the_end(acts in acts()) {
        let mut scene = Scene::new(&ALONE);
        for act in &acts {
            scene.act(act);
        }
        scene.act(&Act::Join(0));
        scene.act(&Act::Pause { target: None, paused: false });

        for _ in 0..40 {
            scene.answer(0, plain(Verdict::No));
            scene.act(&Act::FailReply(0));
            scene.wait(700_000_000);
        }

        prop_assert_eq!(scene.conversation.buffer(&scene.cast[0]).count(), 0);
        prop_assert!(scene.conversation.is_at_rest());
    }

    #[test]
    fn after_a_crash_the_conversation_continues(acts in acts(), away in 0_u64..20_000_000_000) {
        let mut scene = Scene::new(&ALONE);
        for act in &acts {
            scene.act(act);
        }

        let mut resumed = scene.folded();
        let now = scene.now + Duration::from_micros(away);
        let outputs = scene.with_world(|world| resumed.resume(now, world));

        let asked = outputs.iter().filter(|output| matches!(output, Output::Made(made) if matches!(made.event, Event::Evaluated(_)))).count();
        prop_assert!(asked <= 1);
        // Events may have waited for their budget until now.
        let (before, after) = (scene.conversation.floor(), resumed.floor());
        let is_new = before.is_none() && after.is_some_and(|floor| floor.trigger == Trigger::Event);
        prop_assert!(is_new || after.map(|floor| floor.messages.first()) == before.map(|floor| floor.messages.first()));
        let is_same = after.map(|floor| floor.ticket) == before.map(|floor| floor.ticket);
        prop_assert!(is_new || is_same || after.map(|floor| floor.replans) > before.map(|floor| floor.replans));
        let is_watched = resumed.floor().is_some() || resumed.open_questions().next().is_some() || resumed.wake_at().is_some();
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
