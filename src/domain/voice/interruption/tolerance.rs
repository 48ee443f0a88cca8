//! Computes how likely a companion pushes through when a person talks during its reply (docs/design/voice.md A-32).

use crate::policy::interjection::Interjection;
use crate::vote::MOST_MOOD;

const MOST: f64 = 0.9;
/// The addition for an unsolicited reply.
const UNSOLICITED: f64 = 0.35;

/// The probability that a companion with this interjection level pushes through, from 0 to 0.9. `mood` is from −0.2 to 0.2. A mood out of range is
/// clamped; NaN counts as 0.
pub fn probability(level: Interjection, mood: f64, is_unsolicited: bool) -> f64 {
    let base = match level {
        Interjection::VeryQuiet => 0.10,
        Interjection::Quiet => 0.20,
        Interjection::Average => 0.30,
        Interjection::Eager => 0.45,
        Interjection::VeryEager => 0.60,
    };
    let mood = if mood.is_nan() { 0.0 } else { mood.clamp(-MOST_MOOD, MOST_MOOD) };
    let bias = if is_unsolicited { UNSOLICITED } else { 0.0 };
    (base + mood + bias).clamp(0.0, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_follows_the_level_the_mood_and_whether_it_was_asked_for() {
        for (level, mood, is_unsolicited, expected) in [
            (Interjection::VeryQuiet, 0.0, false, 0.10),
            (Interjection::Quiet, 0.0, false, 0.20),
            (Interjection::Average, 0.0, false, 0.30),
            (Interjection::Eager, 0.0, false, 0.45),
            (Interjection::VeryEager, 0.0, false, 0.60),
            (Interjection::VeryQuiet, -0.2, false, 0.0),
            (Interjection::Average, 0.2, false, 0.5),
            (Interjection::Average, 9.0, false, 0.5),
            (Interjection::Average, f64::NAN, false, 0.30),
            (Interjection::Average, 0.0, true, 0.65),
            (Interjection::VeryEager, 0.2, true, 0.9),
        ] {
            let found = probability(level, mood, is_unsolicited);
            assert!((found - expected).abs() < 1e-9, "{level} {mood} {is_unsolicited}: {found}");
        }
    }
}
