//! Compares the decisions of two settings about the same messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::decisions::{Decision, Kind};
use super::excerpts::Excerpt;
use super::figures::{Difference, Scored, differences};
use super::questions::Judged;
use super::seeded::sample;

/// The maximum number of example messages.
const MOST_EXAMPLES: usize = 20;

/// The differences between the decisions of two settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub both_yes: u64,
    pub both_no: u64,
    /// The messages for which only the first setting says YES.
    pub only_first: Disagreement,
    /// The messages for which only the second setting says YES.
    pub only_second: Disagreement,
    /// The figures of the second setting minus those of the first.
    pub differences: BTreeMap<&'static str, Difference>,
    /// A sample of the messages with different decisions.
    pub examples: Vec<Example>,
}

/// Messages for which only one setting says YES.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    pub count: u64,
    /// The number of those to which the companion replied.
    pub replied: u64,
}

/// A message with different decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    pub excerpt: Arc<str>,
    pub n: usize,
    pub companion: Arc<str>,
    pub from: Arc<str>,
    pub text: Arc<str>,
    pub kind: Kind,
    pub replied: bool,
    /// Whether the second setting says YES and the first says NO.
    pub second_says_yes: bool,
    /// The reasons of the first and the second setting.
    pub why: [Option<String>; 2],
}

/// Combines decisions and judgements for the calculation of figures.
pub fn scored(decisions: &[&Decision], judged: &[Judged]) -> Vec<Scored> {
    let scored = |(decision, judged): (&&Decision, &Judged)| Scored {
        excerpt: decision.excerpt,
        kind: decision.kind,
        replied: decision.replied,
        yes: judged.yes,
        score: judged.score,
    };
    decisions.iter().zip(judged).map(scored).collect()
}

/// Compares two settings by their judgements about all of these messages.
pub fn compare(excerpts: &[Excerpt], decisions: &[&Decision], first: &[Judged], second: &[Judged]) -> Comparison {
    let (mut both_yes, mut both_no) = (0, 0);
    let (mut only_first, mut only_second) = (Disagreement::default(), Disagreement::default());
    let mut differing = Vec::new();
    for ((decision, first), second) in decisions.iter().zip(first).zip(second) {
        let disagreement = match (first.yes, second.yes) {
            (true, true) => {
                both_yes += 1;
                continue;
            }
            (false, false) => {
                both_no += 1;
                continue;
            }
            (true, false) => &mut only_first,
            (false, true) => &mut only_second,
        };
        disagreement.count += 1;
        disagreement.replied += u64::from(decision.replied);
        differing.push((decision, first, second));
    }
    let example = |(decision, first, second): (&&Decision, &Judged, &Judged)| {
        let excerpt = &excerpts[decision.excerpt];
        let message = &excerpt.messages[decision.n];
        Example {
            excerpt: excerpt.id.clone(),
            n: decision.n,
            companion: decision.companion.clone(),
            from: message.from.clone(),
            text: message.text.clone(),
            kind: decision.kind,
            replied: decision.replied,
            second_says_yes: second.yes,
            why: [first.why.clone(), second.why.clone()],
        }
    };
    let examples = sample(differing, Some(MOST_EXAMPLES)).into_iter().map(example).collect();
    let differences = differences(&scored(decisions, first), &scored(decisions, second));
    Comparison { both_yes, both_no, only_first, only_second, differences, examples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::{decisions, tests::excerpt};

    #[test]
    fn disagreements_are_counted_and_shown_with_both_reasons() {
        let excerpts = [excerpt(&[("al", "1", &[]), ("bo", "2", &[]), ("cy", "3", &[]), ("bo", "4", &[]), ("al", "5", &[1])])];
        let decisions = decisions(&excerpts, 1, &[], None);
        let decisions: Vec<_> = decisions.iter().collect();
        let judged = |says: [bool; 3], why: &str| {
            says.map(|yes| Judged { yes, score: f64::from(u8::from(yes)), is_readable: true, why: Some(why.to_owned()) })
        };

        let compared = compare(&excerpts, &decisions, &judged([true, true, false], "a"), &judged([false, true, true], "b"));

        assert_eq!((compared.both_yes, compared.both_no), (1, 0));
        assert_eq!(compared.only_first, Disagreement { count: 1, replied: 1 });
        assert_eq!(compared.only_second, Disagreement { count: 1, replied: 0 });
        let shown: Vec<_> = compared.examples.iter().map(|example| (&*example.text, example.second_says_yes)).collect();
        assert_eq!(shown, [("2", false), ("4", true)]);
        assert_eq!(compared.examples[0].why, [Some("a".to_owned()), Some("b".to_owned())]);
        assert_eq!(compared.differences["recall"], Difference { by: -1.0, interval: None });
    }
}
