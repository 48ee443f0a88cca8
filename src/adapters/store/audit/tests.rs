use super::*;
use crate::manifest::Counts;
use crate::ports::store::StoreError;

const WARD: Ward = Ward(3);
const CHANNEL: ChannelNo = ChannelNo(9);

#[test]
fn a_complete_journal_is_sound() {
    let report = read([counts(4), event(1), event(2), event(3), head(3)]);

    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!((report.records, report.events, report.channels), (5, 3, 1));
}

#[test]
fn each_contradiction_is_a_problem() {
    let malformed = Key::new(WARD, Kind::Journal).channel(CHANNEL);
    let beyond = Problem::BeyondHead { channel: label(), head: Seq(1), last: Seq(2) };
    for (what, records, problems) in [
        ("an event is missing in the middle", vec![counts(4), event(1), event(4), head(4)], vec![missing(2, 3)]),
        ("events are missing at the end", vec![counts(4), event(1), head(4)], vec![missing(2, 4)]),
        ("a journal is lost", vec![counts(4), head(4)], vec![missing(1, 4)]),
        (
            "a low-water mark explains what is missing below it",
            vec![counts(4), event(2), event(4), head(4), lowest_kept(4)],
            vec![],
        ),
        ("and nothing above it", vec![counts(9), event(5), event(7), head(7), lowest_kept(5)], vec![missing(6, 6)]),
        ("a tombstone above the head explains a deleted journal", vec![counts(4), head(4), lowest_kept(5)], vec![]),
        ("an event is beyond the head", vec![counts(4), event(1), event(2), head(1)], vec![beyond]),
        (
            "there are more events than were appended",
            vec![counts(1), event(1), event(2), head(2)],
            vec![Problem::Miscounted { found: 2, counted: 1 }],
        ),
        ("a key is malformed", vec![(malformed.clone(), Vec::new())], vec![Problem::Malformed(malformed)]),
    ] {
        assert_eq!(read(records).problems, problems, "{what}");
    }
}

#[test]
fn all_problems_are_counted_and_the_first_are_stored() {
    let events = (1..=300).map(|number| event(2 * number));

    let report = read([counts(600)].into_iter().chain(events).chain([head(600)]));

    assert_eq!(report.problem_count, 300);
    assert_eq!(report.problems.len(), PROBLEMS_KEPT);
}

/// Decodes events as digits, and takes the values of names for names.
struct Digits;

impl Inspect for Digits {
    fn fault(&self, key: &Key, value: &[u8]) -> Option<Fault> {
        let is_event = key.as_bytes()[1] == Kind::Journal as u8;
        let detail = "it is no digit".to_owned();
        let what = format!("event {}", key.last_number().unwrap_or_default());
        (is_event && !value.iter().all(u8::is_ascii_digit)).then_some(Fault { what, channel: Some(CHANNEL), detail })
    }

    fn named(&self, key: &Key, value: &[u8]) -> Option<(ChannelNo, String)> {
        let is_name = [Kind::ChannelOf, Kind::ChannelName].map(|kind| kind as u8).contains(&key.as_bytes()[1]);
        is_name.then(|| (CHANNEL, String::from_utf8_lossy(value).into_owned()))
    }
}

#[test]
fn every_problem_of_a_channel_is_reported_with_its_name_and_a_missing_name_is_one() {
    let name = |kind| (Key::new(WARD, kind).channel(CHANNEL), b"the lobby".to_vec());
    let unreadable = |ward| (Key::event(ward, CHANNEL, Seq(2)), b"?".to_vec());
    let other = Ward(4);
    let records = [counts(9), event(1), unreadable(WARD), head(3), name(Kind::ChannelName), name(Kind::ChannelOf)];
    let records = records.into_iter().chain([unreadable(other), (Key::head(other, CHANNEL), 1_u64.to_be_bytes().to_vec())]);

    let report = Audit::inspecting(Digits).run(records.map(Ok::<_, StoreError>), |_| {}).unwrap();

    let messages: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "event 2 of the lobby cannot be read: it is no digit",
        "ward 3, channel 9 (the lobby): the events 3 to 3 are missing",
        "event 2 of ward 4, channel 9 cannot be read: it is no digit",
        "a record of the name of ward 4, channel 9 cannot be read: it is missing, so the channel may not be found under its name",
        "ward 4, channel 9: the journal ends at 2, its head is 1",
        "ward 4, channel 9: the events 1 to 1 are missing",
    ];
    assert_eq!((messages, report.illegible, report.problem_count), (expected.map(str::to_owned).to_vec(), 3, 6));
}

fn read(records: impl IntoIterator<Item = (Key, Value)>) -> Report {
    Audit::default().run(records.into_iter().map(Ok::<_, StoreError>), |_| {}).unwrap()
}

fn missing(from: u64, to: u64) -> Problem {
    Problem::Missing { channel: label(), from: Seq(from), to: Seq(to) }
}

fn label() -> ChannelLabel {
    ChannelLabel { ward: WARD, channel: CHANNEL, name: None }
}

fn counts(events: u64) -> (Key, Value) {
    (counts_key(), crate::sled::facts::counts_bytes(Counts { groups: 1, events }))
}

fn event(number: u64) -> (Key, Value) {
    (Key::event(WARD, CHANNEL, Seq(number)), b"7".to_vec())
}

fn head(number: u64) -> (Key, Value) {
    (Key::head(WARD, CHANNEL), number.to_be_bytes().to_vec())
}

fn lowest_kept(number: u64) -> (Key, Value) {
    (Key::new(WARD, Kind::Tombstone).channel(CHANNEL), number.to_be_bytes().to_vec())
}
