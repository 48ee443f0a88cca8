//! The gate, names and whole conversations.

use divan::Bencher;
use divan::counter::ItemsCount;
use tertulia::domain::names::Names;

use super::room::Room;

/// So many messages are a sample: of a few only the common ones would count, and not those about which somebody is asked.
const MANY: u32 = 10_000;
const SAMPLES: u32 = 30;

/// Messages until the first check, as the tiers have it.
const TIERS: [(&str, u64); 5] = [("very_quiet", 15), ("quiet", 12), ("average", 9), ("eager", 6), ("very_eager", 3)];

/// From a message to what is decided about it, by one companion of each tier: names are matched, nobody is called, all interjections are
/// declined.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = ["very_quiet", "quiet", "average", "eager", "very_eager"])]
fn gate(bencher: Bencher<'_, '_>, tier: &str) {
    let interval = TIERS.iter().find(|(name, _)| *name == tier).map_or(9, |(_, interval)| *interval);
    let mut room = Room::new(1, interval);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| room.hear(None));
}

/// The same where one message in ten calls the companion, and is all that it is asked about. (In `gate` it comes to be asked about every third,
/// because each check that is declined brings the next one nearer.)
#[divan::bench(sample_size = MANY, sample_count = SAMPLES)]
fn gate_called_by_one_in_ten(bencher: Bencher<'_, '_>) {
    let mut room = Room::new(1, 15);
    let called = room.companion(0);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        room.hear((turn % 10 == 0).then_some(&called))
    });
}

/// The same, with names to be matched in each text of 80 characters.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 10, 1_000])]
fn gate_with_names(bencher: Bencher<'_, '_>, names: usize) {
    let names = all_names(names);
    let mut room = Room::new(1, 9);
    let texts = texts(true);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        let found = names.find(&texts[turn % texts.len()]);
        room.hear(found.first())
    });
}

/// Names alone, in texts of 80 characters of which one in ten holds one.
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

/// The same in a text that is no ASCII.
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

/// From a message to what is decided about it in a room of several: one message in ten calls one of them; rounds are held, and answered
/// with NO.
#[divan::bench(sample_size = MANY, sample_count = SAMPLES, args = [1, 3, 8])]
fn conversation(bencher: Bencher<'_, '_>, companions: usize) {
    let mut room = Room::new(companions, 9);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        turn += 1;
        let called = (turn % 10 == 0).then(|| room.companion(turn / 10));
        room.hear(called.as_ref())
    });
}

/// Companions named `name7`, each in the guild.
fn all_names(count: usize) -> Names {
    let ids: Vec<String> = (0..count).map(|number| format!("name{number}")).collect();
    Names::new(ids.iter().map(|id| (id.as_str().into(), [id.as_str()]))).expect("no two share a name")
}

/// Texts of about 80 characters; if asked for, one in ten has a name.
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
