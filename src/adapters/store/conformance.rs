//! The tests that every store has to pass.

use crate::domain::id::{Seq, Ward};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::{Append, Batch, Refusal, Store, Term, Value, Write};

/// A store under test.
pub(super) trait Subject {
    fn store(&self) -> &dyn Store;

    /// Closes the store and opens it again with its committed data.
    fn reopen(&mut self);
}

/// Generates one test for each rule. The expression creates the store.
///
/// With `found:`, the expression is an option: `None` where a machine has no such store.
macro_rules! conformance {
    ($subject:expr) => {
        conformance!(found: Some($subject));
    };
    (found: $subject:expr) => {
        conformance!($subject;
            a_stored_batch_is_complete,
            a_batch_without_an_append_or_writes_is_stored,
            events_are_numbered_in_order_and_the_head_follows,
            a_group_is_stored_in_order,
            later_batches_see_what_earlier_ones_wrote,
            the_last_of_several_writes_to_a_key_wins,
            a_term_that_was_never_taken_is_refused,
            a_second_taking_ends_the_first,
            taking_one_ward_leaves_the_others,
            a_gap_is_refused_with_both_numbers,
            a_repeated_append_is_refused,
            a_key_that_had_to_be_new_is_refused_with_its_value,
            a_refused_batch_leaves_nothing_and_the_others_are_stored,
            a_removed_key_is_gone_and_may_be_new_again,
            a_scan_gives_keys_in_order_within_its_bounds,
            a_scan_newest_first_begins_at_the_end,
            a_scan_stops_at_its_limit,
            a_scan_of_nothing_is_empty,
            reopening_keeps_everything,
            reopening_ends_all_terms,
        );
    };
    ($subject:expr; $($rule:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $rule() {
                if let Some(subject) = $subject {
                    $crate::conformance::$rule(subject).await;
                }
            }
        )*
    };
}
pub(super) use conformance;

pub(super) const WARD: Ward = Ward(7);
pub(super) const CHANNEL: ChannelNo = ChannelNo(1);

pub(super) async fn a_stored_batch_is_complete(subject: impl Subject) {
    let store = subject.store();
    let mut batch = append(taken(store).await, 0, ["hello", "there"]);
    batch.writes = vec![put("a", "1"), put("b", "2")];

    let outcomes = store.commit(vec![batch]).await.unwrap();

    assert_eq!(outcomes, [Ok(())]);
    assert_eq!(journal(store).await, ["hello", "there"]);
    assert_eq!(value(store, "a").await.as_deref(), Some("1"));
    assert_eq!(value(store, "b").await.as_deref(), Some("2"));
}

pub(super) async fn a_batch_without_an_append_or_writes_is_stored(subject: impl Subject) {
    let store = subject.store();
    let batch = writes(taken(store).await, []);

    let outcomes = store.commit(vec![batch]).await.unwrap();

    assert_eq!(outcomes, [Ok(())]);
}

pub(super) async fn events_are_numbered_in_order_and_the_head_follows(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;

    store.commit(vec![append(term, 0, ["one", "two"])]).await.unwrap();
    store.commit(vec![append(term, 2, ["three"])]).await.unwrap();

    assert_eq!(store.get(Key::event(WARD, CHANNEL, Seq(3))).await.unwrap(), Some(b"three".to_vec()));
    assert_eq!(head(store).await, Some(3));
}

pub(super) async fn a_group_is_stored_in_order(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;

    let group = vec![append(term, 0, ["one"]), append(term, 1, ["two"]), append(term, 2, ["three"])];
    let outcomes = store.commit(group).await.unwrap();

    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())]);
    assert_eq!(journal(store).await, ["one", "two", "three"]);
}

pub(super) async fn later_batches_see_what_earlier_ones_wrote(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    let mut second = writes(term, [put("id", "second")]);
    second.fresh = vec![key("id")];

    let outcomes = store.commit(vec![writes(term, [put("id", "first")]), second]).await.unwrap();

    assert_eq!(outcomes, [Ok(()), Err(Refusal::Exists { key: key("id"), value: b"first".to_vec() })]);
}

pub(super) async fn the_last_of_several_writes_to_a_key_wins(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;

    store.commit(vec![writes(term, [put("a", "1"), Write::Remove(key("a")), put("a", "2")])]).await.unwrap();
    store.commit(vec![writes(term, [put("b", "1"), Write::Remove(key("b"))])]).await.unwrap();

    assert_eq!(value(store, "a").await.as_deref(), Some("2"));
    assert_eq!(value(store, "b").await, None);
}

pub(super) async fn a_term_that_was_never_taken_is_refused(subject: impl Subject) {
    let store = subject.store();

    for named in [Term(0), Term(1), Term(99)] {
        let outcomes = store.commit(vec![append(named, 0, ["hello"])]).await.unwrap();

        assert_eq!(outcomes, [Err(Refusal::OldTerm { ward: WARD, named, current: Term(0) })]);
    }
    assert_eq!(head(store).await, None);
}

pub(super) async fn a_second_taking_ends_the_first(subject: impl Subject) {
    let store = subject.store();
    let first = taken(store).await;
    let second = taken(store).await;

    let outcomes = store.commit(vec![append(first, 0, ["old"]), append(second, 0, ["new"])]).await.unwrap();

    assert!(second > first);
    assert_eq!(outcomes, [Err(Refusal::OldTerm { ward: WARD, named: first, current: second }), Ok(())]);
    assert_eq!(journal(store).await, ["new"]);
}

pub(super) async fn taking_one_ward_leaves_the_others(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.acquire_ward(Ward(8)).await.unwrap();
    store.acquire_ward(Ward(8)).await.unwrap();

    let outcomes = store.commit(vec![append(term, 0, ["hello"])]).await.unwrap();

    assert_eq!(outcomes, [Ok(())]);
}

pub(super) async fn a_gap_is_refused_with_both_numbers(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![append(term, 0, ["one"])]).await.unwrap();

    let outcomes = store.commit(vec![append(term, 2, ["three"])]).await.unwrap();

    assert_eq!(outcomes, [Err(Refusal::Gap { channel: CHANNEL, named: Seq(2), last: Seq(1) })]);
    assert_eq!(journal(store).await, ["one"]);
}

pub(super) async fn a_repeated_append_is_refused(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![append(term, 0, ["one"])]).await.unwrap();

    let outcomes = store.commit(vec![append(term, 0, ["one"])]).await.unwrap();

    assert_eq!(outcomes, [Err(Refusal::Gap { channel: CHANNEL, named: Seq::NONE, last: Seq(1) })]);
}

pub(super) async fn a_key_that_had_to_be_new_is_refused_with_its_value(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    let batch = Batch { fresh: vec![key("id")], ..writes(term, [put("id", "1")]) };

    let first = store.commit(vec![batch.clone()]).await.unwrap();
    let second = store.commit(vec![batch]).await.unwrap();

    assert_eq!(first, [Ok(())]);
    assert_eq!(second, [Err(Refusal::Exists { key: key("id"), value: b"1".to_vec() })]);
}

pub(super) async fn a_refused_batch_leaves_nothing_and_the_others_are_stored(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    let refused = Batch { fresh: vec![key("a")], writes: vec![put("a", "2"), put("b", "2")], ..append(term, 1, ["no"]) };

    let first = Batch { writes: vec![put("a", "1")], ..append(term, 0, ["one"]) };
    let outcomes = store.commit(vec![first, refused, append(term, 1, ["two"])]).await.unwrap();

    assert_eq!(outcomes, [Ok(()), Err(Refusal::Exists { key: key("a"), value: b"1".to_vec() }), Ok(())]);
    assert_eq!(journal(store).await, ["one", "two"]);
    assert_eq!(value(store, "a").await.as_deref(), Some("1"));
    assert_eq!(value(store, "b").await, None);
}

pub(super) async fn a_removed_key_is_gone_and_may_be_new_again(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![writes(term, [put("a", "1")])]).await.unwrap();

    let removal = writes(term, [Write::Remove(key("a")), Write::Remove(key("never there"))]);
    let again = Batch { fresh: vec![key("a")], ..writes(term, [put("a", "2")]) };
    let outcomes = store.commit(vec![removal, again]).await.unwrap();

    assert_eq!(outcomes, [Ok(()), Ok(())]);
    assert_eq!(value(store, "a").await.as_deref(), Some("2"));
}

pub(super) async fn a_scan_gives_keys_in_order_within_its_bounds(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![writes(term, ["e", "c", "a", "d", "b"].map(|name| put(name, name)))]).await.unwrap();

    let found = store.scan(key("b"), key("e"), false, 100).await.unwrap();

    assert_eq!(texts(found), ["b", "c", "d"]);
}

pub(super) async fn a_scan_newest_first_begins_at_the_end(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![append(term, 0, ["one", "two", "three"])]).await.unwrap();

    let journal = Key::new(WARD, Kind::Journal).channel(CHANNEL);
    let found = store.scan(journal.clone(), journal.end(), true, 2).await.unwrap();

    assert_eq!(texts(found), ["three", "two"]);
}

pub(super) async fn a_scan_stops_at_its_limit(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![writes(term, ["a", "b", "c"].map(|name| put(name, name)))]).await.unwrap();

    assert_eq!(texts(store.scan(key("a"), key("z"), false, 2).await.unwrap()), ["a", "b"]);
    assert!(store.scan(key("a"), key("z"), false, 0).await.unwrap().is_empty());
}

pub(super) async fn a_scan_of_nothing_is_empty(subject: impl Subject) {
    let store = subject.store();
    let term = taken(store).await;
    store.commit(vec![writes(term, ["a", "b"].map(|name| put(name, name)))]).await.unwrap();

    for (from, to) in [("b", "a"), ("a", "a"), ("c", "d")] {
        for newest_first in [true, false] {
            assert!(store.scan(key(from), key(to), newest_first, 9).await.unwrap().is_empty(), "{from} to {to}");
        }
    }
}

pub(super) async fn reopening_keeps_everything(mut subject: impl Subject) {
    let term = taken(subject.store()).await;
    let batch = Batch { writes: vec![put("a", "1")], ..append(term, 0, ["one", "two"]) };
    subject.store().commit(vec![batch]).await.unwrap();

    subject.reopen();
    let store = subject.store();
    let term = taken(store).await;
    let outcomes = store.commit(vec![append(term, 2, ["three"])]).await.unwrap();

    assert_eq!(outcomes, [Ok(())]);
    assert_eq!(journal(store).await, ["one", "two", "three"]);
    assert_eq!(value(store, "a").await.as_deref(), Some("1"));
}

pub(super) async fn reopening_ends_all_terms(mut subject: impl Subject) {
    let before = [taken(subject.store()).await, taken(subject.store()).await];

    subject.reopen();
    let store = subject.store();
    let untaken = store.commit(vec![append(before[1], 0, ["old"])]).await.unwrap();
    let after = taken(store).await;
    let old = store.commit(vec![append(before[0], 0, ["old"]), append(before[1], 0, ["old"])]).await.unwrap();

    assert!(after > before[1]);
    assert_eq!(untaken, [Err(Refusal::OldTerm { ward: WARD, named: before[1], current: Term(0) })]);
    assert_eq!(old, before.map(|named| Err(Refusal::OldTerm { ward: WARD, named, current: after })));
}

pub(super) async fn taken(store: &dyn Store) -> Term {
    store.acquire_ward(WARD).await.unwrap()
}

pub(super) fn append<const N: usize>(term: Term, after: u64, records: [&str; N]) -> Batch {
    let records = records.map(|record| record.as_bytes().to_vec()).into();
    Batch { append: Some(Append { channel: CHANNEL, after: Seq(after), records }), ..writes(term, []) }
}

pub(super) fn writes<const N: usize>(term: Term, writes: [Write; N]) -> Batch {
    Batch { ward: WARD, term, append: None, fresh: Vec::new(), writes: writes.into() }
}

pub(super) fn put(name: &str, value: &str) -> Write {
    Write::Put(key(name), value.as_bytes().to_vec())
}

pub(super) fn key(name: &str) -> Key {
    Key::new(WARD, Kind::Setting).text(name)
}

pub(super) async fn value(store: &dyn Store, name: &str) -> Option<String> {
    store.get(key(name)).await.unwrap().map(text)
}

pub(super) async fn journal(store: &dyn Store) -> Vec<String> {
    let journal = Key::new(WARD, Kind::Journal).channel(CHANNEL);
    texts(store.scan(journal.clone(), journal.end(), false, usize::MAX).await.unwrap())
}

async fn head(store: &dyn Store) -> Option<u64> {
    store.get(Key::head(WARD, CHANNEL)).await.unwrap().map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

fn texts(found: Vec<(Key, Value)>) -> Vec<String> {
    found.into_iter().map(|(_, value)| text(value)).collect()
}

fn text(value: Value) -> String {
    String::from_utf8(value).unwrap()
}
