//! How much the last messages repeat each other.

use std::collections::BTreeSet;

/// Over this it is repetition.
pub const THRESHOLD: f64 = 0.7;

/// Mean pairwise likeness.
pub fn lexical(texts: &[&str]) -> f64 {
    let sets: Vec<BTreeSet<Vec<char>>> = texts
        .iter()
        .map(|text| {
            let chars: Vec<char> = text.to_lowercase().chars().collect();
            if chars.len() < 3 { BTreeSet::from([chars]) } else { chars.windows(3).map(<[char]>::to_vec).collect() }
        })
        .collect();
    let mut sum = 0.0;
    let mut pairs = 0;
    for (i, a) in sets.iter().enumerate() {
        for b in &sets[i + 1..] {
            sum += a.intersection(b).count() as f64 / a.union(b).count() as f64;
            pairs += 1;
        }
    }
    if pairs == 0 { 0.0 } else { sum / f64::from(pairs) }
}

/// The number on the last line.
pub fn read_score(text: &str) -> f64 {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let word = line.split_whitespace().last().unwrap_or_default().trim_matches(|c: char| !c.is_ascii_digit());
    word.parse().ok().filter(|score| (0.0..=1.0).contains(score)).unwrap_or(0.0)
}
