//! The gate, names and whole conversations.

use divan::Bencher;
use divan::counter::ItemsCount;
use tertulia::domain::names::Names;

use super::room::Room;

/// Messages per sample. A small sample would contain only the common messages, and not those that trigger an evaluation.
const MANY: u32 = 10_000;
const SAMPLES: u32 = 30;

/// Messages until the first check, by interjection level.
const TIERS: [(&str, u64); 5] = [("very_quiet", 15), ("quiet", 12), ("average", 9), ("eager", 6), ("very_eager", 3)];

/// From a message to the decision about it, by one companion of each interjection level. No message addresses it, and all interjections are
/// declined.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = ["very_quiet", "quiet", "average", "eager", "very_eager"])]
fn gate(bencher: Bencher<'_, '_>, tier: &str) {
    let interval = TIERS.iter().find(|(name, _)| *name == tier).map_or(9, |(_, interval)| *interval);
    let mut room = Room::new(1, interval);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| room.handle_message(None));
}

/// Only making the message and its record, and dropping them. It is part of all other figures here.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES)]
fn message_alone(bencher: Bencher<'_, '_>) {
    let mut room = Room::new(1, 9);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| room.said(None));
}

/// `gate` with one message in ten addressing the companion, and evaluations only about those. (In `gate` every third message is evaluated,
/// because each declined check makes the next one earlier.)
#[divan::bench(sample_size = MANY, sample_count = SAMPLES)]
fn gate_called_by_one_in_ten(bencher: Bencher<'_, '_>) {
    let mut room = Room::new(1, 15);
    let called = room.companion(0);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        room.handle_message((turn % 10 == 0).then_some(&called))
    });
}

/// The same, with names matched in each text of 80 characters.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 10, 1_000])]
fn gate_with_names(bencher: Bencher<'_, '_>, names: usize) {
    let names = all_names(names);
    let mut room = Room::new(1, 9);
    let texts = texts(true);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        let found = names.find(&texts[turn % texts.len()]);
        room.handle_message(found.first())
    });
}

/// Only matching names, in texts of 80 characters. One text in ten contains a name.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 10, 1_000])]
fn names(bencher: Bencher<'_, '_>, names: usize) {
    let names = all_names(names);
    let texts = texts(true);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        names.find(&texts[turn % texts.len()])
    });
}

/// The same in texts that are not ASCII.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 10, 1_000])]
fn names_beyond_ascii(bencher: Bencher<'_, '_>, names: usize) {
    let names = all_names(names);
    let texts: Vec<_> = texts(true).into_iter().map(|text| text.replace("bread", "Gebäck für später")).collect();
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        names.find(&texts[turn % texts.len()])
    });
}

/// From a message to the decisions about it in a room with several companions. One message in ten addresses one of them. Rounds are held, and
/// all answers are NO.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 3, 8])]
fn conversation(bencher: Bencher<'_, '_>, companions: usize) {
    let mut room = Room::new(companions, 9);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        let called = (turn % 10 == 0).then(|| room.companion(turn / 10));
        room.handle_message(called.as_ref())
    });
}

/// Companions named `name0`, `name1`, …, in one guild.
fn all_names(count: usize) -> Names {
    let ids: Vec<String> = (0..count).map(|number| format!("name{number}")).collect();
    Names::new(ids.iter().map(|id| (id.as_str().into(), [id.as_str()]))).expect("no two share a name")
}

/// Texts of about 80 characters. If `named`, one in ten contains a name.
fn texts(named: bool) -> Vec<String> {
    (0..50)
        .map(|number| match number % 10 {
            0 if named => {
                format!("well, name{} what do you think of bread that has been kept for so many days? {number:02}", number % 7)
            }
            _ => format!("I thought that the bread would be done by now, but nobody opened the oven since {number:02}"),
        })
        .collect()
}
