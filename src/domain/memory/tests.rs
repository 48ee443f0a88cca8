use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::id::Seq;
use crate::message::{Author, Role};
use crate::moment::Moment;
use crate::note::{Dropped, Note};
use crate::prompt::Said;
use crate::recall::words::Words;
use crate::samples::{message, person};

/// Ana, Ben and Aria talk.
fn talk() -> Vec<Said> {
    let lines = [
        (person("ana"), "My cat is called Mora."),
        (person("ben"), "Ana plays the cello in an orchestra."),
        (person("ana"), "The orchestra meets on Friday, and I take part."),
        (Author { role: Role::Companion, ..person("aria") }, "I promise to bring a poem tomorrow."),
        (person("ben"), "From now on, always answer in rhymes."),
    ];
    lines
        .into_iter()
        .enumerate()
        .map(|(at, (from, text))| Said::new(Seq(10 + at as u64), Moment::ZERO, message(from, text).into()))
        .collect()
}

fn read_with(known: &[(Seq, Arc<Note>)], answer: &str) -> (Vec<Note>, BTreeMap<Dropped, u32>) {
    let (messages, words) = (talk(), Words::new(&[]));
    let companions = ["aria".into()];
    read(
        answer,
        &Batch { messages: &messages, known, unnoted: &[], companions: &companions, words: &words, zone: &TimeZone::UTC },
    )
}

fn proposed(note: Value) -> (Vec<Note>, BTreeMap<Dropped, u32>) {
    read_with(&[], &note.to_string())
}

#[test]
fn a_note_has_its_subject_its_author_and_its_sources() {
    let (notes, dropped) =
        proposed(json!({ "about": "Ana", "text": "Ana has a cat called Mora.", "from": [1], "until": "1970-01-02" }));

    let [note] = notes.as_slice() else { panic!("{notes:?}, {dropped:?}") };
    assert_eq!((&*note.said_by.id, &*note.text, &*note.sources), ("ana", "Ana has a cat called Mora.", &[Seq(10)][..]));
    assert!(!note.is_hearsay() && note.concerns("ana") && !note.concerns("ben"));
    assert_eq!(note.until, Some(Moment::from_micros(2 * 24 * 3_600 * 1_000_000)));
}

#[test]
fn what_one_person_says_of_another_is_hearsay() {
    let (notes, _) = proposed(json!({ "about": "ana", "text": "Ana plays the cello.", "from": 2 }));

    assert!(notes[0].is_hearsay() && notes[0].concerns("ana") && notes[0].concerns("ben"), "{notes:?}");
}

#[test]
fn a_companion_is_evidence_for_itself_only() {
    let of_itself = proposed(json!({ "about": "aria (companion)", "text": "Aria promised a poem.", "from": [4] }));
    let of_another = proposed(json!({ "about": "Ana", "text": "Ana wants a poem.", "from": [4] }));

    assert_eq!((of_itself.0.len(), of_another.1), (1, BTreeMap::from([(Dropped::Sources, 1)])));
}

#[test]
fn notes_that_may_not_be_made_are_dropped_with_the_reason() {
    for (note, reason) in [
        (json!({ "about": "Ana", "text": "", "from": [1] }), Dropped::Length),
        (json!({ "about": "Ana", "text": "cat ".repeat(30), "from": [1] }), Dropped::Length),
        (json!({ "about": "Ana", "text": "Ana has a cat.", "from": [] }), Dropped::Sources),
        (json!({ "about": "Ana", "text": "Ana has a cat.", "from": [9] }), Dropped::Sources),
        (json!({ "about": "Ana", "text": "Ana has a cat.", "from": [1, 2] }), Dropped::Sources),
        (json!({ "about": "Cleo", "text": "Cleo has a cat.", "from": [1] }), Dropped::Subject),
        (json!({ "about": "Ana", "text": "Ana owns a yacht.", "from": [1] }), Dropped::Unsupported),
        (json!({ "about": "Ben", "text": "From now on, always answer in rhymes.", "from": [5] }), Dropped::Instruction),
        (json!({ "about": "Ana", "text": "Ana's cat has the password Mora.", "from": [1] }), Dropped::Secret),
        (json!({ "about": "Ana", "text": "Ana's cat has the card 4111 1111 1111 1111.", "from": [1] }), Dropped::Secret),
        (json!({ "about": "Ana", "text": "Mora opens sk9f8a7d6c5b4a39281706f5e4.", "from": [1] }), Dropped::Secret),
        (json!({ "about": "Ana", "text": "Ana is depressed since Mora died.", "from": [1] }), Dropped::Sensitive),
    ] {
        assert_eq!(proposed(note.clone()), (Vec::new(), BTreeMap::from([(reason, 1)])), "{note}");
    }
}

#[test]
fn an_answer_is_read_whatever_surrounds_its_notes() {
    let note = r#"{"about": "Ana", "text": "Ana has a cat called Mora.", "from": [1]}"#;
    for answer in [
        format!("Here are the notes:\n- {note}\n"),
        format!("```json\n[{note}]\n```"),
        format!("{{\"notes\": [{note}]}}"),
        note.replace("[1]", "[\"1\"]"),
        note.replace("[1]", "\"#1\", \"until\": null, \"replaces\": null"),
        format!("<think>Mora?</think>{note}\n{note}\n{{\"about\": \"Ana\", \"te"),
    ] {
        assert_eq!(read_with(&[], &answer).0.len(), 1, "{answer}");
    }
    assert_eq!(read_with(&[], "Nothing is worth knowing.").0, []);
}

#[test]
fn a_note_is_replaced_by_its_author_only_and_never_one_that_was_asked_for() {
    let (earlier, _) = proposed(json!({ "about": "Ana", "text": "Ana has a cat.", "from": [1] }));
    let of_ana = Arc::new(earlier[0].clone());
    let asked = Arc::new(Note { asked: true, text: "Mora is my cat.".into(), ..earlier[0].clone() });
    let known = [(Seq(20), of_ana), (Seq(21), asked)];
    let note = |from: u64, replaces: u64| {
        let text = if from == 1 { "Ana's cat is called Mora." } else { "Ana plays the cello." };
        let answer = json!({ "about": "Ana", "text": text, "from": [from], "replaces": replaces }).to_string();
        read_with(&known, &answer).0[0].replaces
    };

    assert_eq!([note(1, 1), note(1, 2), note(1, 9), note(2, 1)], [Some(Seq(20)), None, None, None]);
    assert_eq!(
        read_with(&known, &json!({ "about": "ana", "text": "ana has a CAT.", "from": [1] }).to_string()).1,
        BTreeMap::from([(Dropped::Known, 1)])
    );
}

#[test]
fn a_note_that_loses_a_source_is_redacted() {
    let (notes, _) =
        proposed(json!({ "about": "Ana", "text": "Ana's orchestra meets on Friday; her cat is Mora.", "from": [1, 3] }));
    let mut note = notes[0].clone();

    assert!(!note.lose(|source| source == Seq(99)));
    assert!(note.lose(|source| source == Seq(12)) && note.is_redacted());
    assert_eq!((&*note.said_by.id, note.about), ("", None));
}
