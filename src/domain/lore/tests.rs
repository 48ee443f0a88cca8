use std::sync::Arc;

use super::matching::{Compiled, fired};
use super::{Book, Entry, Logic, Why};

fn entry(name: &str, keys: &[&str]) -> Entry {
    Entry {
        name: name.into(),
        keys: keys.iter().map(|key| (*key).into()).collect(),
        content: format!("About {name}.").into(),
        ..Entry::default()
    }
}

fn book(entries: Vec<Entry>) -> Book {
    Book { name: "World".into(), entries, ..Book::default() }
}

/// The names of the entries that are found in these messages, of which the last one is answered.
fn found(book: &Book, messages: &[&str]) -> Vec<String> {
    let compiled = [Arc::new(Compiled::new(book.clone()))];
    let fired = fired(&compiled, messages, 1, str::to_owned);
    fired.into_iter().map(|fired| fired.name.trim_start_matches("World: ").to_owned()).collect()
}

#[test]
fn a_key_is_a_whole_word_in_any_case_unless_the_entry_says_otherwise() {
    let exact = Entry { case_sensitive: true, ..entry("exact", &["Will"]) };
    let part = Entry { whole_words: false, ..entry("part", &["mill"]) };
    let book = book(vec![entry("mill", &["Mill", "Mühle"]), exact, part, entry("東京", &["東京"]), entry("c++", &["c++"])]);

    assert_eq!(found(&book, &["The mill, she said."]), ["mill", "part"]);
    assert_eq!(found(&book, &["A million reasons, and a windmill"]), ["part"]);
    assert_eq!(found(&book, &["ALTE MÜHLE"]), ["mill"]);
    assert_eq!(found(&book, &["alte Mu\u{308}hle"]), ["mill"], "written with a combining mark");
    assert_eq!((found(&book, &["will it rain?"]).len(), found(&book, &["Will it rain?"])), (0, vec!["exact".to_owned()]));
    assert_eq!(found(&book, &["昨日東京に行った", "I know C++."]), ["東京", "c++"]);
}

#[test]
fn only_the_newest_messages_are_searched_and_all_that_are_answered() {
    let shallow = Entry { scan_depth: Some(1), ..entry("shallow", &["mill"]) };
    let book = Book { scan_depth: Some(2), ..book(vec![entry("mill", &["mill"]), shallow]) };

    assert_eq!(found(&book, &["the mill", "yes", "no"]), [""; 0]);
    assert_eq!(found(&book, &["the mill", "no"]), ["mill"]);
    let compiled = [Arc::new(Compiled::new(book))];
    assert_eq!(fired(&compiled, &["the mill", "yes", "no"], 3, str::to_owned).len(), 2);
    assert_eq!(fired(&compiled, &[], 0, str::to_owned), []);
}

#[test]
fn secondary_keys_count_as_their_logic_says_and_only_in_selective_entries() {
    let names = ["any", "all", "not_any", "not_all"];
    let of = |logic: Logic| Entry {
        secondary_keys: ["north".into(), "south".into()].into(),
        selective: true,
        logic,
        ..entry(logic.as_str(), &["gate"])
    };
    let plain = Entry { secondary_keys: ["never".into()].into(), ..entry("plain", &["gate"]) };
    let book = book(Logic::ALL.into_iter().map(of).chain([plain]).collect());
    let expect = |text: &str, expected: &[&str]| {
        let mut found = found(&book, &[text]);
        found.retain(|name| names.contains(&&**name));
        assert_eq!(found, expected, "{text}");
    };

    expect("the gate", &["not_any", "not_all"]);
    expect("the north gate", &["any", "not_all"]);
    expect("the north and south gate", &["any", "all"]);
    expect("north and south", &[]);
    assert!(found(&book, &["the gate"]).contains(&"plain".to_owned()));
}

#[test]
fn texts_of_entries_are_searched_only_if_the_book_says_so_and_circles_end() {
    let entries = vec![
        Entry { content: "The king owns the ring.".into(), ..entry("king", &["king"]) },
        Entry { content: "The ring fears the king.".into(), ..entry("ring", &["ring"]) },
        Entry { enabled: false, ..entry("off", &["king"]) },
        Entry { constant: true, ..entry("always", &[]) },
    ];
    let plain = book(entries);
    let blank = book(vec![entry("blank", &[" ", "\n", ""])]);
    assert_eq!(Compiled::new(blank.clone()).unusable[0].why, Why::NoKeys);
    assert_eq!(found(&blank, &["a b", "c"]), [""; 0]);

    assert_eq!(found(&plain, &["the king"]), ["always", "king"]);
    assert_eq!(found(&Book { recursive_scanning: true, ..plain }, &["the king"]), ["always", "king", "ring"]);
}

#[test]
fn what_has_the_least_priority_exceeds_the_budget_first() {
    let of = |name: &str, priority, insertion_order| Entry { priority, insertion_order, ..entry(name, &["x"]) };
    let too_long = Entry { content: "long ".repeat(100).into(), ..of("huge", Some(99), 0) };
    let book = Book { token_budget: Some(5), ..book(vec![of("a", None, 1), of("b", Some(9), 0), of("c", None, 5), too_long]) };

    assert_eq!(found(&book, &["x"]), ["b", "c"]);
}

#[test]
fn regular_expressions_are_linear_and_what_they_cannot_do_is_named() {
    let exploding = "(a*)*(a*)*(a*)*b".to_owned();
    let keys = ["/drag(on|ons)\\b/i", "/(?=x)y/", "/(a)\\1/", "/[/", "/a{1000}{1000}/", "/x/q", "/usr/bin/env", &exploding];
    let patterns = Entry { use_regex: true, ..entry("patterns", &keys[..7]) };
    let bare = Entry { use_regex: true, ..entry("bare", &[keys[7]]) };
    let book = book(vec![patterns, bare]);
    let why: Vec<_> = Compiled::new(book.clone()).unusable.into_iter().map(|unusable| unusable.why).collect();

    assert_eq!(why, [Why::LookAround, Why::BackReference, Why::NotRegex, Why::TooLarge]);
    assert_eq!(found(&book, &["DRAGONS!"]), ["patterns"]);
    assert_eq!(found(&book, &[&"a".repeat(30_000)]), [""; 0]);
}
