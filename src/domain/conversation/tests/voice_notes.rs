//! Voice notes: what happens while their words are awaited, and when they come (docs/design/voice.md A-78).

use super::super::super::message::{Address, Message, NoteWords, Role, VoiceNote};
use super::super::*;
use super::scene::{Scene, Setup, as_recorded, message, plain};

const TWO: Setup = Setup { companions: 2, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };

#[test]
fn an_awaited_note_triggers_nothing_and_its_words_are_asked_about_once() {
    let mut scene = Scene::new(&TWO);

    let note = send(&mut scene, "ana", NoteWords::Awaited);
    scene.wait(60_000_000);

    assert_eq!((scene.conversation.open_questions().count(), buffered(&scene)), (0, vec![]));
    assert!(!scene.conversation.is_at_rest(), "the channel waits for the words");
    assert_eq!(scene.conversation.needed_from(), note);
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
    let words = send(&mut scene, "ana", heard(note));

    let asked: Vec<_> =
        scene.conversation.open_questions().map(|(who, asked)| (who.as_str(), asked.trigger, asked.message)).collect();
    assert_eq!(asked, [("aria", Trigger::DirectAddress, words)]);
    assert_eq!(buffered(&scene), [words], "the words take the place of the note");
    assert!(scene.conversation.window.get(note).is_none());
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

#[test]
fn a_restart_awaits_the_words_of_the_same_notes() {
    let mut scene = Scene::new(&TWO);
    let first = send(&mut scene, "ana", NoteWords::Awaited);
    let second = send(&mut scene, "bob", NoteWords::Awaited);
    send(&mut scene, "ana", heard(first));

    scene.restart(Duration::from_secs(5));

    assert_eq!(*scene.conversation.awaited_notes(), [second].into());
}

#[test]
fn nobody_awaits_the_words_of_a_note_that_was_deleted_or_cleared() {
    for event in [Event::deleted(vec![Seq(1)]), Event::cleared()] {
        let mut scene = Scene::new(&Setup { companions: 1, ..TWO });
        let note = send(&mut scene, "ana", NoteWords::Awaited);
        let event = if matches!(event, Event::Cleared { .. }) { event } else { Event::deleted(vec![note]) };

        scene.receive(event);

        assert!(scene.conversation.awaited_notes().is_empty() && scene.conversation.is_at_rest());
        assert_eq!(scene.folded(), as_recorded(&scene.conversation));
    }
}

#[test]
fn an_awaited_note_does_not_end_the_wait_for_a_lull() {
    let mut scene = Scene::new(&Setup { companions: 1, ..TWO });
    scene.say(Address::default(), false, false);

    scene.wait(2_000_000);
    send(&mut scene, "bob", NoteWords::Awaited);
    scene.wait(60_000_000);

    let asked: Vec<_> = scene.conversation.open_questions().map(|(_, asked)| asked.trigger).collect();
    assert_eq!(asked, [Trigger::Lull]);
    scene.answer(0, plain(Verdict::No));
    assert_eq!(scene.folded(), as_recorded(&scene.conversation));
}

/// Sends a voice note to Aria, or its words.
fn send(scene: &mut Scene, by: &str, words: NoteWords) -> Seq {
    let to_aria = Address { companions: vec!["aria".into()], ..Address::default() };
    let voice_note = Some(Box::new(VoiceNote { ms: 2_000, words: Some(words) }));
    let seq = Seq(scene.journal.len() as u64 + 1);
    let message = Message { voice_note, ..message(by, Role::Person, false, to_aria) };
    scene.receive(Event::Said { message, reply_to: None, reply: None, said_at: None });
    seq
}

fn heard(note: Seq) -> NoteWords {
    NoteWords::Heard { note, provider: "ears".into(), confidence: None }
}

/// What Aria has not settled.
fn buffered(scene: &Scene) -> Vec<Seq> {
    scene.conversation.buffer(&"aria".into()).map(|entry| entry.seq).collect()
}
