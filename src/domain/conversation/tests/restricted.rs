//! Messages by people who may not address companions, by the roles that the managers of their guild chose.

use super::super::super::message::{Address, Role, Standing};
use super::super::*;
use super::scene::{Scene, Setup, as_recorded, message, plain};

const ALONE: Setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn talk_by_people_who_may_not_address_companions_is_read_and_never_answered_by_itself() {
    for skips in [true, false] {
        for standing in [Standing::MayNotAddress, Standing::NeverAnswered] {
            let mut scene = Scene::new(&ALONE);
            scene.settings.gate.skip_when_other_addressed = skips;

            say(&mut scene, standing);
            scene.wait(60_000_000);

            assert_eq!(decided(&scene), [(Reason::OtherAddressed, true, 1)], "{standing:?}");
            assert!(scene.conversation.window().entries().any(|entry| entry.message.address.standing == standing));
            assert_eq!(scene.folded(), as_recorded(&scene.conversation));
        }
    }
}

#[test]
fn only_talk_that_may_be_answered_counts_for_an_interjection() {
    for (standing, is_asked) in [(Standing::MayNotAddress, true), (Standing::NeverAnswered, false)] {
        let mut scene = Scene::new(&ALONE);

        // Without a pause, nothing but an interjection is due.
        (0..11).for_each(|_| say(&mut scene, standing));

        assert_eq!(scene.conversation.open_questions().count() > 0, is_asked, "{standing:?}");
        scene.answer(0, plain(Verdict::No));
        assert_eq!(scene.folded(), as_recorded(&scene.conversation));
    }
}

fn say(scene: &mut Scene, standing: Standing) {
    let address = Address { companions: vec!["aria".into()], ..Address::default() }.by(standing);
    scene.send(message("ana", Role::Person, false, address), None);
}

fn decided(scene: &Scene) -> Vec<(Reason, bool, usize)> {
    let of = |recorded: &Recorded| match &recorded.event {
        Event::Decided(decided) => Some((decided.reason, decided.by_role, decided.messages.len())),
        _ => None,
    };
    scene.journal.iter().filter_map(of).collect()
}
