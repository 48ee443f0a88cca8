//! What people say under load: the same talk for the same seed, in the proportions of public group chats.

use std::sync::Arc;

/// One who wrote goes on writing: 27 to 53 of a hundred messages go on with the author's own.
const GOES_ON: f64 = 0.35;
/// Messages that a companion should answer: 6 to 14 of a hundred; here each of them names one.
const FOR_A_COMPANION: f64 = 0.10;
/// Messages meant for another person, by a mention. Not measured: chosen.
const FOR_A_PERSON: f64 = 0.25;

/// So many people talk in each room.
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

/// Something that somebody says somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Which room, by its number.
    pub room: usize,
    pub from: &'static str,
    pub text: Arc<str>,
    /// Whom it mentions, if it is meant for another person.
    pub mention: Option<&'static str>,
}

/// Talk without end in so many rooms, each as likely as the other.
pub(super) struct Talk {
    dice: Dice,
    /// Who spoke last in each room, by number.
    last: Vec<u8>,
    /// The companions that are called.
    companions: Vec<String>,
}

impl Talk {
    pub(super) fn new(seed: u64, rooms: usize, companions: Vec<String>) -> Self {
        Self { dice: Dice(seed), last: vec![0; rooms], companions }
    }

    /// The next message, some 80 characters long.
    pub(super) fn next(&mut self) -> Said {
        let room = self.dice.below(self.last.len());
        let speaker = if self.dice.fraction() < GOES_ON { self.last[room].into() } else { self.dice.below(PEOPLE.len()) };
        self.last[room] = u8::try_from(speaker).unwrap_or_default();
        let (opening, ending) = (OPENINGS[self.dice.below(OPENINGS.len())], ENDINGS[self.dice.below(ENDINGS.len())]);
        let (aim, whom) = (self.dice.fraction(), self.dice.fraction());
        let pick = |length: usize| ((whom * length as f64) as usize).min(length.saturating_sub(1));
        let number = self.dice.below(10_000);
        let mut mention = None;
        let text = if aim < FOR_A_COMPANION && !self.companions.is_empty() {
            format!("{}, {opening}, {ending} ({number})", self.companions[pick(self.companions.len())])
        } else {
            let person = PEOPLE[pick(PEOPLE.len())];
            mention = (aim < FOR_A_COMPANION + FOR_A_PERSON && person != PEOPLE[speaker]).then_some(person);
            format!("{opening}, {ending} ({number})")
        };
        Said { room, from: PEOPLE[speaker], text: text.into(), mention }
    }
}

/// SplitMix64: a generator whose numbers are the same with every version of every crate.
struct Dice(u64);

impl Dice {
    /// From 0, included, to 1, excluded.
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below this one, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        ((self.fraction() * bound as f64) as usize).min(bound - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_talks_the_same() {
        let (mut one, mut other) = (talk(7), talk(7));

        assert!((0..100).all(|_| one.next() == other.next()));
    }

    #[test]
    fn talk_keeps_its_proportions() {
        let mut talk = talk(1);

        let said: Vec<_> = (0..10_000).map(|_| talk.next()).collect();

        let share = |is: &dyn Fn(&Said) -> bool| said.iter().filter(|said| is(said)).count() as f64 / 10_000.0;
        assert!((0.08..0.12).contains(&share(&|said| said.text.starts_with("Aria, "))));
        assert!((0.15..0.25).contains(&share(&|said| said.mention.is_some())));
        let length = said.iter().map(|said| said.text.len()).sum::<usize>() / said.len();
        assert!((60..100).contains(&length), "{length}");
        assert!((0..10).all(|room| said.iter().any(|said| said.room == room)));
    }

    fn talk(seed: u64) -> Talk {
        Talk::new(seed, 10, vec!["Aria".to_owned()])
    }
}
