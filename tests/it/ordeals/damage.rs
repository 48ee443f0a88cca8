//! What a damaged store does. Damage is refused, with words that name the file and a way out, or it harms nothing: never is anything lost
//! in silence, and never does the program panic or search for ever.

mod ends;
mod holes;
mod kinds;
mod model_home;
mod telling;

use std::collections::BTreeMap;
use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use self::kinds::Damage;
use self::model_home::{Fate, Left, ModelHome};
use crate::harness::chosen;

#[tokio::test]
async fn each_kind_of_damage_is_refused_with_a_way_out_or_harms_nothing() {
    let home = ModelHome::furnish(60).await;
    let mut table = Table::default();

    let (of_large_values, others): (Vec<_>, Vec<_>) = kinds::each().into_iter().partition(Damage::is_in_large_values);
    for damage in others {
        table.suffer_somehow(&home, &damage).await;
    }
    // What becomes of a large value depends on how the store was left.
    for (left, damage) in Left::ALL.into_iter().flat_map(|left| of_large_values.iter().map(move |damage| (left, damage))) {
        table.suffer(&home, left, damage).await;
    }

    table.assert_honest();
    table.assert_inflicted();
}

#[tokio::test]
async fn bits_that_flip_here_and_there_are_refused_or_harm_nothing() {
    // More than sled writes into one segment.
    let home = ModelHome::furnish(240).await;
    let mut table = Table::default();

    for (left, damage) in Left::ALL.into_iter().cycle().zip(flips(&home, 12, 3)) {
        table.enter(left, &damage, home.suffer(left, &damage).await);
    }

    table.assert_honest();
}

/// `cargo test --release --test it -- --ignored --nocapture damaged_in_hundreds` prints the table of all kinds and of bits that flip at
/// seeded places, after some minutes. `FLIPS` is another number of them (200), `SEED` another choice, `MESSAGES` another size of the store.
#[tokio::test]
#[ignore = "takes some minutes"]
async fn a_store_that_is_damaged_in_hundreds_of_places_never_loses_anything_in_silence() {
    let home = ModelHome::furnish(chosen("MESSAGES", 1500)).await;
    let mut table = Table::default();
    println!("{} bytes in the database", home.db_bytes());

    for (left, damage) in Left::ALL.into_iter().flat_map(|left| kinds::each().into_iter().map(move |damage| (left, damage))) {
        table.suffer(&home, left, &damage).await;
        println!("| {} |", table.last());
    }
    let mut flipped = Table::default();
    for (left, damage) in Left::ALL.into_iter().cycle().zip(flips(&home, chosen("FLIPS", 200), chosen("SEED", 1))) {
        flipped.suffer(&home, left, &damage).await;
        eprintln!("{}", flipped.last());
    }

    println!("{flipped}");
    table.assert_honest();
    table.assert_inflicted();
    flipped.assert_honest();
}

/// Bits anywhere in the database.
fn flips(home: &ModelHome, times: u64, seed: u64) -> Vec<Damage> {
    let mut chance = StdRng::seed_from_u64(seed);
    let places = (0..times).map(|_| Damage::Flip { at: chance.random_range(0..home.db_bytes()), bit: chance.random_range(0..8) });
    places.collect()
}

/// What was done, and what came of it.
#[derive(Default)]
struct Table(Vec<(String, Fate)>);

impl Table {
    fn enter(&mut self, left: Left, damage: &Damage, fate: Fate) {
        self.0.push((format!("{left:?}: {damage}"), fate));
    }

    /// Damages a store, starts a server on it, and, where that is offered, one that goes on with what is left.
    async fn suffer(&mut self, home: &ModelHome, left: Left, damage: &Damage) {
        let fate = home.suffer(left, damage).await;
        let goes_on = fate.offers_to_go_on();
        self.enter(left, damage, fate);
        if goes_on {
            self.0.push((format!("{left:?}: {damage}, and the loss accepted"), home.accept(left, damage).await));
        }
    }

    /// Damages a store as it was left where that is possible, and starts a server on it. Of the damages that leave something to go on with,
    /// that is tried with those of the database.
    async fn suffer_somehow(&mut self, home: &ModelHome, damage: &Damage) {
        for left in Left::ALL {
            let fate = home.suffer(left, damage).await;
            let (is_spared, goes_on) = (matches!(fate, Fate::Spared), fate.offers_to_go_on());
            self.enter(left, damage, fate);
            if goes_on && damage.is_in_database() {
                self.0.push((format!("{left:?}: {damage}, and the loss accepted"), home.accept(left, damage).await));
            }
            if !is_spared {
                return;
            }
        }
    }

    /// Every damage was done to something; that to large values however the store was left: each time somebody was told, and what was left
    /// could be kept.
    fn assert_inflicted(&self) {
        let of = |damage: &Damage| {
            let damage = damage.to_string();
            let is_it = move |what: &str| what.split_once(": ").is_some_and(|(_, done)| done == damage);
            self.0.iter().filter(move |(what, _)| is_it(what)).map(|(_, fate)| fate)
        };
        for damage in kinds::each() {
            let inflicted = of(&damage).filter(|fate| !matches!(fate, Fate::Spared)).count();
            assert!(inflicted > 0, "never inflicted: {damage}");
            if damage.is_in_large_values() {
                let told = of(&damage).filter(|fate| matches!(fate, Fate::Refused(..) | Fate::Told(_))).count();
                assert_eq!(told, Left::ALL.len(), "not noticed each time: {damage}");
                let accepted = format!("{damage}, and the loss accepted");
                let accepted: Vec<_> =
                    self.0.iter().filter(|(what, _)| what.ends_with(&accepted)).map(|(_, fate)| fate).collect();
                let refused = accepted.iter().find(|fate| matches!(fate, Fate::Refused(..)));
                assert!(
                    !accepted.is_empty() && refused.is_none(),
                    "it cost the whole store: {damage}: {}",
                    refused.map_or_else(String::new, ToString::to_string)
                );
            }
        }
    }

    /// What was entered last.
    fn last(&self) -> String {
        let of_one = |(what, fate): &(String, Fate)| format!("{what} | {fate}");
        let from = self.0.len() - 1 - usize::from(self.0.last().is_some_and(|(what, _)| what.ends_with("accepted")));
        self.0[from..].iter().map(of_one).collect::<Vec<_>>().join(" |\n| ")
    }

    fn assert_honest(&self) {
        let dishonest: Vec<_> = self.0.iter().filter(|(_, fate)| !fate.is_honest()).collect();
        let told: Vec<_> = dishonest.iter().map(|(what, fate)| format!("{what}: {fate}")).collect();
        assert!(told.is_empty(), "{}", told.join("\n"));
    }
}

impl fmt::Display for Table {
    /// How many there were of each fate, and the words of the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fates: BTreeMap<(String, &str), (usize, &Fate)> = BTreeMap::new();
        for (what, fate) in &self.0 {
            let left = what.split(':').next().unwrap_or_default();
            let accepted = if what.ends_with("accepted") { ", loss accepted" } else { "" };
            let kind = (format!("{left}{accepted}"), fate.kind());
            fates.entry(kind).or_insert((0, fate)).0 += 1;
        }
        for ((left, kind), (times, first)) in fates {
            writeln!(f, "| {left} | {times} | {kind} | {first} |")?;
        }
        Ok(())
    }
}
