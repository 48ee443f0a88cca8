//! Baseline rules that decide without a model, for comparison.

use std::collections::BTreeSet;

use super::cast::{addressee, is_named};
use super::excerpts::{Excerpt, Message};
use crate::domain::relevance::{Features, Heard, Named, Relevance, THRESHOLD};

/// A rule that decides without a model. For message n it may use the time, author and text of messages 0 to n, but never
/// `replies_to`.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The name in reports.
    pub name: &'static str,
    /// An explanation for people.
    pub about: &'static str,
    /// The minimum probability for a YES.
    pub threshold: f64,
    /// The probability for each message of the excerpt. The values for the author's own messages are ignored.
    pub probabilities: fn(&Talk<'_>) -> Vec<f64>,
}

/// An excerpt with one author in the companion's role.
#[derive(Clone, Copy)]
pub struct Talk<'a> {
    pub excerpt: &'a Excerpt,
    pub companion: &'a str,
    /// The texts in lower case.
    pub lower: &'a [String],
}

/// All rules, in the order of reports.
pub const RULES: &[Rule] = &[
    Rule { name: "never", about: "always NO", threshold: 0.5, probabilities: |talk| vec![0.0; talk.lower.len()] },
    Rule { name: "named", about: "YES when named", threshold: 0.5, probabilities: |talk| decided(&named(talk)) },
    Rule {
        name: "named-or-next",
        about: "YES when named, or when the companion spoke just before this author, unless somebody else is named",
        threshold: 0.5,
        probabilities: |talk| decided(&named_or_next(talk)),
    },
    Rule {
        name: "pre-gate",
        about: "YES where gate.pre_gate would ask with its default threshold, at 50 %",
        threshold: 0.5,
        probabilities: pre_gate,
    },
];

fn decided(says: &[bool]) -> Vec<f64> {
    says.iter().map(|says| f64::from(u8::from(*says))).collect()
}

fn named(talk: &Talk<'_>) -> Vec<bool> {
    let name = talk.companion.to_lowercase();
    talk.lower.iter().map(|text| is_named(text, &name)).collect()
}

fn named_or_next(talk: &Talk<'_>) -> Vec<bool> {
    let mut says = named(talk);
    let mut authors = BTreeSet::new();
    // The last author, and the author before that one's run of messages.
    let (mut last, mut before) = (None, None);
    for (message, says) in talk.excerpt.messages.iter().zip(&mut says) {
        let author = &*message.from;
        if last != Some(author) {
            (before, last) = (last, Some(author));
        }
        authors.insert(author.to_lowercase());
        let other = addressee(&talk.lower[message.n]).filter(|name| *name != author.to_lowercase());
        let names_other = other.is_some_and(|name| authors.contains(name));
        *says |= before == Some(talk.companion) && !names_other;
    }
    says
}

fn pre_gate(talk: &Talk<'_>) -> Vec<f64> {
    let probability = |features: Features| 1.0 / (1.0 + f64::from(THRESHOLD - features.logit()).exp());
    features(talk).into_iter().map(|features| features.map_or(0.0, probability)).collect()
}

/// The features of each message for the pre-gate. `None` for the companion's own messages.
pub fn features(talk: &Talk<'_>) -> Vec<Option<Features>> {
    let mut memory = Relevance::default();
    let of = |(message, is_named): (&Message, bool)| {
        if *message.from == *talk.companion {
            memory.speak(&message.from, &message.text);
            return None;
        }
        let named = if is_named { Named::Me } else { Named::Unknown };
        let heard = Heard { from: &message.from, is_person: true, text: &message.text, named };
        memory.record_message(&heard);
        Some(memory.features(&heard))
    };
    talk.excerpt.messages.iter().zip(named(talk)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::{lowered, tests::excerpt};

    #[test]
    fn the_next_after_the_companion_is_meant_unless_somebody_else_is_named() {
        let excerpt = excerpt(&[
            ("bo", "hello", &[]),
            ("al", "hi", &[]),
            ("bo", "how are you", &[]),
            ("bo", "all well?", &[]),
            ("cy", "al: yes?", &[]),
            ("al", "fine", &[]),
            ("cy", "bo: really?", &[]),
            ("bo", "yes", &[]),
        ]);
        let lower = lowered(&excerpt);
        let talk = Talk { excerpt: &excerpt, companion: "al", lower: &lower };

        assert_eq!(named(&talk), [false, false, false, false, true, false, false, false]);
        let says = named_or_next(&talk);
        assert_eq!([2, 3, 4, 6, 7].map(|n: usize| says[n]), [true, true, true, false, false]);
    }

    #[test]
    fn what_is_said_later_changes_no_decision() {
        let said: [(&str, &str, &[usize]); 6] = [
            ("bo", "my disk is full", &[]),
            ("al", "bo: which disk?", &[0]),
            ("bo", "the old one", &[1]),
            ("cy", "haha", &[]),
            ("cy", "al: is it mounted?", &[]),
            ("bo", "what do you mean?", &[2]),
        ];
        let probabilities = |rule: &Rule, said: &[(&str, &str, &[usize])]| {
            let excerpt = excerpt(said);
            let lower = lowered(&excerpt);
            (rule.probabilities)(&Talk { excerpt: &excerpt, companion: "al", lower: &lower })
        };
        for rule in RULES {
            let whole = probabilities(rule, &said);
            for n in 0..said.len() {
                let mut other = said;
                other[n + 1..].fill(("di", "al, bo, cy: haha, which disk is the old one?", &[]));

                assert_eq!(probabilities(rule, &other)[..=n], whole[..=n], "{} after {n}", rule.name);
                assert_eq!(probabilities(rule, &said[..=n]), whole[..=n], "{} up to {n}", rule.name);
            }
        }
    }
}
