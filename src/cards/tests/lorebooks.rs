//! Lorebooks in the forms of five programs.

use serde_json::{Value, json};

use super::*;
use crate::domain::lore::{Book, Entry, Logic};
use crate::lorebook::{Form, Lost, Read, write};

fn read_book(file: &Value) -> Read {
    crate::lorebook::read(file.to_string().as_bytes()).expect("it is a lorebook")
}

/// What every form has.
fn simple() -> Entry {
    Entry {
        name: "Mill".into(),
        keys: ["mill".into(), "old mill".into()].into(),
        content: "It burned down.".into(),
        insertion_order: 7,
        priority: Some(7),
        ..Entry::default()
    }
}

#[test]
fn what_a_form_has_is_the_same_after_an_export_and_an_import() {
    let full = Entry {
        secondary_keys: ["north".into()].into(),
        selective: true,
        logic: Logic::NotAll,
        case_sensitive: true,
        scan_depth: Some(3),
        ..simple()
    };
    let off = Entry { enabled: false, ..simple() };
    let book = |entries| Book { name: "World".into(), entries, ..Book::default() };
    let settings = Book { scan_depth: Some(9), token_budget: Some(300), recursive_scanning: true, ..book(Vec::new()) };
    let plain = Entry { whole_words: false, priority: None, ..simple() };
    let novel = Entry { insertion_order: 100, scan_depth: Some(20), ..simple() };
    let cases = [
        (Form::Card, Book { entries: vec![full.clone(), off.clone(), plain.clone()], ..settings.clone() }),
        (Form::SillyTavern, Book { scan_depth: Some(2), ..book(vec![full, off.clone(), Entry { constant: true, ..simple() }]) }),
        (
            Form::NovelAi,
            Book { name: "".into(), ..book(vec![Entry { constant: true, ..novel.clone() }, Entry { enabled: false, ..novel }]) },
        ),
        (Form::Agnai, Book { entries: vec![simple(), off], ..settings }),
        (
            Form::Risu,
            Book {
                name: "".into(),
                scan_depth: Some(5),
                ..book(vec![Entry { secondary_keys: ["north".into()].into(), selective: true, ..plain }])
            },
        ),
    ];
    for (form, book) in cases {
        let read = read_book(&write(&book, form));

        assert_eq!((read.form, read.book, read.lost.len()), (form, book, 0));
    }
}

#[test]
fn what_programs_write_is_understood_and_what_is_lost_is_told() {
    let tavern = read_book(
        &json!({ "entries": { "1": { "uid": 1, "key": ["b"], "content": "x", "disable": true, "order": "5" }, "0": {
        "uid": 0, "key": ["a"], "keysecondary": [], "content": "@@depth 4\n@@activate\n\nx", "probability": 40, "useProbability": true,
        "group": "g", "sticky": 2, "caseSensitive": null, "matchWholeWords": null,
    } } }),
    );
    let novel = read_book(&json!({ "lorebookVersion": 5, "entries": [{
        "text": "text", "displayName": "Name", "keys": ["key"], "forceActivation": true,
        "contextConfig": { "prefix": "[", "suffix": "]\n", "budgetPriority": 400 },
    }] }));
    let risu = read_book(&json!({ "type": "risu", "ver": 1, "data": [
        { "key": "one, two,x", "comment": "Name", "content": "x", "insertorder": 3, "mode": "normal" },
        { "key": "", "comment": "A folder", "mode": "folder" },
        { "key": "/a,b/i", "useRegex": true, "content": "x" },
    ] }));

    let [first, second] = &tavern.book.entries[..] else { panic!("{tavern:?}") };
    assert_eq!(
        (&*first.content, first.constant, first.whole_words, &*second.keys[0], second.enabled),
        ("x", true, false, "b", false)
    );
    assert_eq!(tavern.lost, [(Lost::Chance, 1), (Lost::Group, 1), (Lost::Timing, 1), (Lost::Decorator, 1)].into());
    let [entry] = &novel.book.entries[..] else { panic!("{novel:?}") };
    assert_eq!((&*entry.content, entry.constant, entry.priority), ("[text]", true, Some(400)));
    let keys: Vec<_> = risu.book.entries.iter().map(|entry| entry.keys.iter().map(|key| &**key).collect::<Vec<_>>()).collect();
    assert_eq!(keys, [vec!["one", "two"], vec!["/a,b/i"]]);
}

#[test]
fn the_book_of_a_card_is_read_and_other_files_are_refused() {
    let of_card = read_book(&full());
    let many = json!({ "entries": vec![json!({ "keys": ["k"], "content": "x".repeat(10_000) }); 300] });

    assert_eq!((of_card.form, &*of_card.book.name, &*of_card.book.entries[0].keys[0]), (Form::Card, "lore", "sun"));
    let large = read_book(&many);
    assert!(large.book.check().is_err_and(|problem| problem.key == "name"), "only the name is missing");
    assert_eq!(large.lost[&Lost::TooLarge] + large.book.entries.len(), 300);
    for other in ["{}", "[]", "", "{\"entries\":", "\u{89}PNG", "{\"name\": \"A\", \"description\": \"b\"}"] {
        assert!(crate::lorebook::read(other.as_bytes()).is_err(), "{other}");
    }
}
