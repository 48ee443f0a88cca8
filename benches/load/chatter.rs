//! Generates people's messages for a load, in the proportions of public group chats. The same seed gives the same messages.

use std::sync::Arc;

/// The share of messages by the author of the message before. Measured: 27 to 53 in a hundred.
const SAME_AUTHOR: f64 = 0.35;
/// The share of messages that a companion should answer. Measured: 6 to 14 in a hundred. Here each of them names a companion.
const FOR_A_COMPANION: f64 = 0.10;
/// The share of messages that mention another person. Chosen, not measured.
const FOR_A_PERSON: f64 = 0.25;

/// The people of each room.
const PEOPLE: [&str; 6] = ["Rosa", "Duarte", "Ines", "Tome", "Vera", "Kai"];
const OPENINGS: [&str; 12] = [
    "the bus was late again this morning",
    "I finally fixed the bike with the part that came",
    "my sourdough did not rise at all",
    "the new map pack is out and it is huge",
    "that ending was too long for my taste",
    "rain all weekend, or so they say on the radio",
    "we lost by one point in the very last minute",
    "somebody parked in front of the gate again",
    "who is in on Saturday, same place as ever?",
    "has anyone seen the second part already?",
    "which train is the good one in the evening?",
    "does anyone have a spare charger to lend?",
];
const ENDINGS: [&str; 12] = [
    "and nobody can tell me why",
    "so I will try once more tomorrow",
    "which is a pity, really",
    "at least that is what I heard",
    "but do not take my word for it",
    "and I have pictures to prove it",
    "though it was better last year",
    "no idea how that could happen",
    "and then it all went quiet",
    "so much for the good plan",
    "never again, I promise",
    "sorry, had to say it",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The room's number.
    pub room: usize,
    pub from: &'static str,
    pub text: Arc<str>,
    /// The mentioned person, if the message is meant for one.
    pub mention: Option<&'static str>,
}

/// Endless messages in a number of rooms, all equally likely.
pub(super) struct Chatter {
    dice: Dice,
    /// The last speaker of each room, as an index into [`PEOPLE`].
    last: Vec<u8>,
    /// The names of companions that messages address.
    companions: Vec<String>,
}

impl Chatter {
    pub(super) fn new(seed: u64, rooms: usize, companions: Vec<String>) -> Self {
        Self { dice: Dice(seed), last: vec![0; rooms], companions }
    }

    /// Generates the next message, about 80 characters long.
    pub(super) fn next(&mut self) -> Message {
        let room = self.dice.below(self.last.len());
        let speaker = if self.dice.fraction() < SAME_AUTHOR { self.last[room].into() } else { self.dice.below(PEOPLE.len()) };
        self.last[room] = u8::try_from(speaker).unwrap_or_default();
        let (opening, ending) = (OPENINGS[self.dice.below(OPENINGS.len())], ENDINGS[self.dice.below(ENDINGS.len())]);
        let (aim, choice) = (self.dice.fraction(), self.dice.fraction());
        let pick = |length: usize| ((choice * length as f64) as usize).min(length.saturating_sub(1));
        let number = self.dice.below(10_000);
        let mut mention = None;
        let text = if aim < FOR_A_COMPANION && !self.companions.is_empty() {
            format!("{}, {opening}, {ending} ({number})", self.companions[pick(self.companions.len())])
        } else {
            let person = PEOPLE[pick(PEOPLE.len())];
            mention = (aim < FOR_A_COMPANION + FOR_A_PERSON && person != PEOPLE[speaker]).then_some(person);
            format!("{opening}, {ending} ({number})")
        };
        Message { room, from: PEOPLE[speaker], text: text.into(), mention }
    }
}

/// SplitMix64. It is written here, so that its numbers do not change with a crate's version.
struct Dice(u64);

impl Dice {
    /// A number from 0 (included) to 1 (excluded).
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below the bound. The bound must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        ((self.fraction() * bound as f64) as usize).min(bound - 1)
    }
}
