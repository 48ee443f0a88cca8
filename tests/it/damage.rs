//! Damaged stores. The server must refuse to start, with an error that names the file and a remedy; or it must say what it cannot read; or the
//! damage must harm nothing. It must never lose anything silently, panic, or search without end.

mod backups;
mod comparison;
mod kinds;
mod lost_end;
mod sample_store;
mod undecodable;

use std::collections::BTreeMap;
use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use self::kinds::Damage;
use self::sample_store::{Left, Outcome, SampleStore};
use crate::harness::parameter;

/// One store for all of it: more than sled writes into one segment.
#[tokio::test]
async fn damage_is_reported_with_a_remedy_or_harms_nothing() {
    let store = SampleStore::prepare(120).await;
    let mut results = Results::default();

    let (of_large_values, others): (Vec<_>, Vec<_>) = kinds::each().into_iter().partition(Damage::is_in_large_values);
    for damage in others {
        results.test_where_applicable(&store, &damage).await;
    }
    // The effect on large values depends on how the store was left.
    for (left, damage) in Left::ALL.into_iter().flat_map(|left| of_large_values.iter().map(move |damage| (left, damage))) {
        results.test(&store, left, damage).await;
    }
    results.assert_inflicted();
    for (left, damage) in Left::ALL.into_iter().cycle().zip(flips(&store, 12, 3)) {
        results.add(left, &damage, store.damage_and_start(left, &damage).await);
    }

    results.assert_no_silent_loss();
}

/// `cargo test --release --test it -- --ignored --nocapture damaged_in_hundreds` prints the results of all kinds of damage and of
/// flipped bits, after some minutes. `FLIPS` sets the number of flipped bits (200), `SEED` their choice, `MESSAGES` the size of the store.
#[tokio::test]
#[ignore = "takes some minutes"]
async fn a_store_damaged_in_hundreds_of_places_never_loses_data_silently() {
    let store = SampleStore::prepare(parameter("MESSAGES", 1500)).await;
    let mut results = Results::default();
    println!("{} bytes in the database", store.db_bytes());

    for (left, damage) in Left::ALL.into_iter().flat_map(|left| kinds::each().into_iter().map(move |damage| (left, damage))) {
        results.test(&store, left, &damage).await;
        println!("| {} |", results.last());
    }
    let mut flipped = Results::default();
    for (left, damage) in Left::ALL.into_iter().cycle().zip(flips(&store, parameter("FLIPS", 200), parameter("SEED", 1))) {
        flipped.test(&store, left, &damage).await;
        eprintln!("{}", flipped.last());
    }

    println!("{flipped}");
    results.assert_no_silent_loss();
    results.assert_inflicted();
    flipped.assert_no_silent_loss();
}

/// Random flipped bits in the database.
fn flips(store: &SampleStore, times: u64, seed: u64) -> Vec<Damage> {
    let mut chance = StdRng::seed_from_u64(seed);
    let places =
        (0..times).map(|_| Damage::Flip { at: chance.random_range(0..store.db_bytes()), bit: chance.random_range(0..8) });
    places.collect()
}

/// Each damage, and the outcome.
#[derive(Default)]
struct Results(Vec<(String, Outcome)>);

impl Results {
    fn add(&mut self, left: Left, damage: &Damage, outcome: Outcome) {
        self.0.push((format!("{left:?}: {damage}"), outcome));
    }

    /// Damages a store and starts a server on it. If the server offers to accept the loss, starts one that does.
    async fn test(&mut self, store: &SampleStore, left: Left, damage: &Damage) {
        let outcome = store.damage_and_start(left, damage).await;
        let offers_to_accept_loss = outcome.offers_to_accept_loss();
        self.add(left, damage, outcome);
        if offers_to_accept_loss {
            self.0.push((format!("{left:?}: {damage}, and the loss accepted"), store.damage_and_accept_loss(left, damage).await));
        }
    }

    /// Like [`Self::test`], with the first of the stores that this damage applies to. Accepting the loss is tried only for damage to the database.
    async fn test_where_applicable(&mut self, store: &SampleStore, damage: &Damage) {
        for left in Left::ALL {
            let outcome = store.damage_and_start(left, damage).await;
            let (is_applicable, offers_to_accept_loss) =
                (!matches!(outcome, Outcome::NothingToDamage), outcome.offers_to_accept_loss());
            self.add(left, damage, outcome);
            if offers_to_accept_loss && damage.is_in_database() {
                self.0.push((
                    format!("{left:?}: {damage}, and the loss accepted"),
                    store.damage_and_accept_loss(left, damage).await,
                ));
            }
            if is_applicable {
                return;
            }
        }
    }

    /// Checks that every kind of damage applied to some store. Damage to large values must be reported for each store.
    fn assert_inflicted(&self) {
        let outcomes = |damage: &Damage| {
            let damage = damage.to_string();
            let is_this = move |label: &str| label.split_once(": ").is_some_and(|(_, applied)| applied == damage);
            self.0.iter().filter(move |(label, _)| is_this(label)).map(|(_, outcome)| outcome)
        };
        for damage in kinds::each() {
            let inflicted = outcomes(&damage).filter(|outcome| !matches!(outcome, Outcome::NothingToDamage)).count();
            assert!(inflicted > 0, "never inflicted: {damage}");
            if damage.is_in_large_values() {
                let reported =
                    outcomes(&damage).filter(|outcome| matches!(outcome, Outcome::Refused(..) | Outcome::Reported(_))).count();
                assert_eq!(reported, Left::ALL.len(), "not reported for each store: {damage}");
            }
        }
    }

    /// The last entry, with the one before if the loss was accepted.
    fn last(&self) -> String {
        let line = |(label, outcome): &(String, Outcome)| format!("{label} | {outcome}");
        let from = self.0.len() - 1 - usize::from(self.0.last().is_some_and(|(label, _)| label.ends_with("accepted")));
        self.0[from..].iter().map(line).collect::<Vec<_>>().join(" |\n| ")
    }

    fn assert_no_silent_loss(&self) {
        let silent: Vec<_> = self.0.iter().filter(|(_, outcome)| !outcome.is_reported_or_harmless()).collect();
        let lines: Vec<_> = silent.iter().map(|(label, outcome)| format!("{label}: {outcome}")).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }
}

impl fmt::Display for Results {
    /// The number of each kind of outcome, and the first one in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<(String, &str), (usize, &Outcome)> = BTreeMap::new();
        for (label, outcome) in &self.0 {
            let left = label.split(':').next().unwrap_or_default();
            let accepted = if label.ends_with("accepted") { ", loss accepted" } else { "" };
            let kind = (format!("{left}{accepted}"), outcome.kind());
            groups.entry(kind).or_insert((0, outcome)).0 += 1;
        }
        for ((left, kind), (times, first)) in groups {
            writeln!(f, "| {left} | {times} | {kind} | {first} |")?;
        }
        Ok(())
    }
}
