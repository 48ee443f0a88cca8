use super::*;
use crate::adapters::store::manifest::Counts;

const WARD: Ward = Ward(3);
const CHANNEL: ChannelNo = ChannelNo(9);

#[test]
fn a_whole_journal_is_sound() {
    let report = read([counts(4), event(1), event(2), event(3), head(3)]);

    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.records, report.events, report.channels), (5, 3, 1));
}

#[test]
fn an_event_missing_in_the_middle_is_a_problem() {
    let report = read([counts(4), event(1), event(4), head(4)]);

    assert_eq!(report.problems, [missing(2, 3)]);
}

#[test]
fn an_event_missing_at_the_end_is_a_problem() {
    let report = read([counts(4), event(1), head(4)]);

    assert_eq!(report.problems, [missing(2, 4)]);
}

#[test]
fn a_journal_that_is_gone_is_a_problem() {
    let report = read([counts(4), head(4)]);

    assert_eq!(report.problems, [missing(1, 4)]);
}

#[test]
fn a_low_water_mark_explains_what_is_missing_below_it() {
    let report = read([counts(4), event(2), event(4), head(4), lowest_kept(4)]);

    assert!(report.is_sound(), "{:?}", report.problems);
}

#[test]
fn a_low_water_mark_explains_nothing_above_it() {
    let report = read([counts(9), event(5), event(7), head(7), lowest_kept(5)]);

    assert_eq!(report.problems, [missing(6, 6)]);
}

#[test]
fn a_tombstone_above_the_head_explains_a_deleted_journal() {
    let report = read([counts(4), head(4), lowest_kept(5)]);

    assert!(report.is_sound(), "{:?}", report.problems);
}

#[test]
fn an_event_beyond_the_head_is_a_problem() {
    let report = read([counts(4), event(1), event(2), head(1)]);

    let beyond = Problem::BeyondHead { ward: WARD, channel: CHANNEL, head: Seq(1), last: Seq(2) };
    assert_eq!(report.problems, [beyond]);
}

#[test]
fn more_events_than_were_appended_are_a_problem() {
    let report = read([counts(1), event(1), event(2), head(2)]);

    assert_eq!(report.problems, [Problem::Miscounted { found: 2, counted: 1 }]);
}

#[test]
fn a_key_of_another_shape_is_a_problem() {
    let odd = Key::new(WARD, Kind::Journal).channel(CHANNEL);

    let report = read([(odd.clone(), Vec::new())]);

    assert_eq!(report.problems, [Problem::Malformed(odd)]);
}

#[test]
fn many_problems_are_counted_and_the_first_are_kept() {
    let events = (1..=300).map(|number| event(2 * number));

    let report = read([counts(600)].into_iter().chain(events).chain([head(600)]));

    assert_eq!(report.problem_count, 300);
    assert_eq!(report.problems.len(), PROBLEMS_KEPT);
}

fn read(records: impl IntoIterator<Item = (Key, Value)>) -> Report {
    Audit::default().run(records.into_iter().map(Ok::<_, StoreError>), |_| {}).unwrap()
}

fn missing(from: u64, to: u64) -> Problem {
    Problem::Missing { ward: WARD, channel: CHANNEL, from: Seq(from), to: Seq(to) }
}

fn counts(events: u64) -> (Key, Value) {
    (counts_key(), crate::adapters::store::sled::facts::counts_bytes(Counts { groups: 1, events }))
}

fn event(number: u64) -> (Key, Value) {
    (Key::event(WARD, CHANNEL, Seq(number)), b"{}".to_vec())
}

fn head(number: u64) -> (Key, Value) {
    (Key::head(WARD, CHANNEL), number.to_be_bytes().to_vec())
}

fn lowest_kept(number: u64) -> (Key, Value) {
    (Key::new(WARD, Kind::Tombstone).channel(CHANNEL), number.to_be_bytes().to_vec())
}
