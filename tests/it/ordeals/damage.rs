//! What a damaged store does. Damage is refused, with words that name the file and a way out, or it harms nothing: never is anything lost
//! in silence, and never does the program panic or search for ever.

mod kinds;
mod model_home;

use std::collections::BTreeMap;
use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use self::kinds::Damage;
use self::model_home::{Fate, ModelHome};
use crate::harness::chosen;

#[tokio::test]
async fn each_kind_of_damage_is_refused_with_a_way_out_or_harms_nothing() {
    let home = ModelHome::furnish(60).await;
    let mut table = Table::default();

    for damage in kinds::each() {
        table.enter(damage.to_string(), home.suffer(&damage).await);
    }

    table.assert_honest();
}

#[tokio::test]
async fn bits_that_flip_here_and_there_are_refused_or_harm_nothing() {
    let home = ModelHome::furnish(60).await;
    let mut table = Table::default();

    for damage in flips(&home, 12, 3) {
        table.enter(damage.to_string(), home.suffer(&damage).await);
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
    println!("{} bytes in the database, {} of them since sled noted its state last", home.db_bytes(), home.fresh_bytes());

    for damage in kinds::each() {
        let fate = home.suffer(&damage).await;
        println!("| {damage} | {fate} |");
        table.enter(damage.to_string(), fate);
    }
    let mut flipped = Table::default();
    for damage in flips(&home, chosen("FLIPS", 200), chosen("SEED", 1)) {
        let fate = home.suffer(&damage).await;
        eprintln!("{damage}: {fate}");
        flipped.enter(damage.to_string(), fate);
    }

    println!("{flipped}");
    table.assert_honest();
    flipped.assert_honest();
}

/// Bits in the database, most of them where something lies.
fn flips(home: &ModelHome, times: u64, seed: u64) -> Vec<Damage> {
    let mut chance = StdRng::seed_from_u64(seed);
    let places = (0..times).map(|_| Damage::Flip { at: chance.random_range(0..home.db_bytes()), bit: chance.random_range(0..8) });
    places.collect()
}

/// What was done, and what came of it.
#[derive(Default)]
struct Table(Vec<(String, Fate)>);

impl Table {
    fn enter(&mut self, what: String, fate: Fate) {
        self.0.push((what, fate));
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
        let mut fates: BTreeMap<&str, (usize, &Fate)> = BTreeMap::new();
        for (_, fate) in &self.0 {
            fates.entry(fate.kind()).or_insert((0, fate)).0 += 1;
        }
        for (kind, (times, first)) in fates {
            writeln!(f, "| {times} | {kind} | {first} |")?;
        }
        Ok(())
    }
}
