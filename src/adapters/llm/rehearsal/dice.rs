//! Deterministic pseudorandom numbers that depend only on the question.

use crate::domain::question_context::{Purpose, QuestionContext};
use crate::ports::language_model::Request;

/// A sequence of numbers that is always the same for the same question.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// A sequence seeded by the settings' seed, the companion, the purpose and the newest messages.
    pub fn of(seed: u64, request: &Request, context: &QuestionContext) -> Self {
        let purpose = match context.purpose {
            Purpose::Vote { .. } => "vote",
            Purpose::Votes { .. } => "votes",
            Purpose::Statement { .. } => "statement",
            Purpose::Summary => "summary",
            Purpose::Notes => "notes",
            Purpose::Brief => "brief",
            Purpose::Caption => "caption",
            Purpose::Judgement => "judgement",
        };
        let companion = request.companion.as_ref().map_or("", |companion| companion.id.as_str());
        let user = request.user();
        let lines = context.newest.iter().flat_map(|line| [&*line.from.name, &*line.text]);
        // 64-bit FNV-1a over the parts, each with a terminator so that two parts cannot run together.
        let parts = [companion, purpose].into_iter().chain(lines).chain(context.newest.is_empty().then_some(&*user));
        let bytes = parts.flat_map(|part| part.bytes().chain([0]));
        Self(bytes.fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// A fraction in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the range `least..most`.
    pub fn between(&mut self, (least, most): (f64, f64)) -> f64 {
        least + (most - least) * self.fraction()
    }

    /// Picks one of the choices. Empty if there are none.
    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        self.pick_after(choices, 0)
    }

    /// Picks a choice, and returns the one `places` positions after it. Empty if there are none.
    pub fn pick_after<'a>(&mut self, choices: &[&'a str], places: u32) -> &'a str {
        let count = choices.len().max(1) as u64;
        let number = (self.next() % count + u64::from(places)) % count;
        choices.get(number as usize).copied().unwrap_or_default()
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
