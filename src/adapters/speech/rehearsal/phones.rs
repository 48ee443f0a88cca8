//! The sounds that the built-in voice has, and which letters make them.

use unicode_normalization::char::decompose_canonical;

/// The shape of a sound: what the vocal tract does, for a long tract and at a usual pace.
#[derive(Debug, PartialEq)]
pub(super) struct Shape {
    /// The three lowest formants, in hertz.
    pub(super) formants: [f64; 3],
    /// The level of the voice, 1 for an open vowel.
    pub(super) voice: f64,
    /// The level of the noise of a narrow place.
    pub(super) noise: f64,
    /// The middle of that noise, in hertz.
    pub(super) noise_at: f64,
    /// Its length.
    pub(super) millis: f64,
}

const fn vowel(formants: [f64; 3], voice: f64) -> Shape {
    Shape { formants, voice, noise: 0.0, noise_at: 2_500.0, millis: 146.0 }
}

const fn consonant(formants: [f64; 3], voice: f64, noise: f64, noise_at: f64, millis: f64) -> Shape {
    Shape { formants, voice, noise, noise_at, millis }
}

/// The vowels a, e, i, o and u (Peterson and Barney 1952, men, a little towards the middle).
pub(super) static VOWELS: [Shape; 5] = [
    vowel([700.0, 1_150.0, 2_440.0], 1.0),
    vowel([520.0, 1_750.0, 2_450.0], 1.0),
    vowel([330.0, 2_050.0, 2_700.0], 1.0),
    vowel([520.0, 920.0, 2_400.0], 1.0),
    vowel([350.0, 980.0, 2_300.0], 1.0),
];

/// Consonants: m, n, l, r, w, y; b, d, g; p, t, k; s, f, h, v.
pub(super) static CONSONANTS: [Shape; 16] = [
    consonant([280.0, 1_000.0, 2_200.0], 0.45, 0.0, 2_500.0, 58.0),
    consonant([280.0, 1_500.0, 2_400.0], 0.45, 0.0, 2_500.0, 55.0),
    consonant([380.0, 1_200.0, 2_600.0], 0.6, 0.0, 2_500.0, 52.0),
    consonant([420.0, 1_250.0, 1_800.0], 0.6, 0.0, 2_500.0, 50.0),
    consonant([330.0, 800.0, 2_200.0], 0.6, 0.0, 2_500.0, 52.0),
    consonant([300.0, 2_000.0, 2_700.0], 0.6, 0.0, 2_500.0, 50.0),
    consonant([250.0, 900.0, 2_200.0], 0.12, 0.0, 2_500.0, 50.0),
    consonant([250.0, 1_600.0, 2_500.0], 0.12, 0.0, 2_500.0, 48.0),
    consonant([250.0, 1_900.0, 2_300.0], 0.12, 0.0, 2_500.0, 50.0),
    consonant([350.0, 900.0, 2_200.0], 0.0, 0.02, 1_200.0, 58.0),
    consonant([350.0, 1_600.0, 2_500.0], 0.0, 0.03, 3_200.0, 55.0),
    consonant([350.0, 1_800.0, 2_300.0], 0.0, 0.03, 1_900.0, 58.0),
    consonant([350.0, 1_600.0, 2_500.0], 0.0, 0.1, 4_300.0, 78.0),
    consonant([350.0, 1_100.0, 2_300.0], 0.05, 0.05, 3_000.0, 66.0),
    consonant([500.0, 1_500.0, 2_500.0], 0.15, 0.05, 1_700.0, 48.0),
    consonant([300.0, 1_100.0, 2_300.0], 0.3, 0.03, 3_000.0, 52.0),
];

/// What a letter or a digit sounds like.
pub(super) enum Sound {
    /// A vowel, by its number. Vowels after each other are one syllable.
    Vowel(usize),
    /// A consonant, by its number.
    Consonant(usize),
    /// A syllable of its own: a consonant and a vowel.
    Syllable(usize, usize),
    /// A letter of a script whose sounds are not known. Vowels and consonants take turns.
    Letter(usize),
}

/// The sound of a character. `None` for what is not spoken.
pub(super) fn sound(c: char, is_unspaced: bool) -> Option<Sound> {
    let mut base = None;
    decompose_canonical(c.to_lowercase().next().unwrap_or(c), |part| base = base.or(Some(part)));
    let base = base.unwrap_or(c);
    if let Some(vowel) = "aeiou".find(base) {
        return Some(Sound::Vowel(vowel));
    }
    if base.is_ascii_alphabetic() {
        let consonant = match base {
            'm' => 0,
            'n' => 1,
            'l' => 2,
            'r' => 3,
            'w' => 4,
            'y' | 'j' => 5,
            'b' => 6,
            'd' => 7,
            'g' => 8,
            'p' => 9,
            't' => 10,
            's' | 'z' | 'x' => 12,
            'f' => 13,
            'h' => 14,
            'v' => 15,
            // c, k, q
            _ => 11,
        };
        return Some(Sound::Consonant(consonant));
    }
    let number = c as usize;
    match c {
        '\u{ac00}'..='\u{d7a3}' => Some(Sound::Syllable(number / 588 % CONSONANTS.len(), number / 28 % VOWELS.len())),
        _ if c.is_numeric() || is_unspaced && c.is_alphabetic() => {
            Some(Sound::Syllable(number * 7 % CONSONANTS.len(), number % VOWELS.len()))
        }
        _ if c.is_alphabetic() => Some(Sound::Letter(number)),
        _ => None,
    }
}
