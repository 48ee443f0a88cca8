//! Trains and scores the model of the pre-gate (docs/relevance.md) on group chat with reply links.
//!
//! `cargo bench --bench relevance -- train FILE` trains on the excerpts of FILE (JSON lines, also gzipped), chooses the threshold by cross-validation
//! over excerpts, prints the report, and writes `src/domain/relevance/weights.rs`. `-- shuffled FILE` does the same with shuffled labels, and writes
//! nothing. `-- score FILE` scores the weights in the source.

use std::path::Path;

use anyhow::{Context as _, bail};
use tertulia::domain::relevance::{FEATURES, Feature, THRESHOLD, WEIGHTS};
use tertulia::evaluation::decisions::{Decision, Kind, decisions, lowered};
use tertulia::evaluation::excerpts::{Excerpt, read};
use tertulia::evaluation::figures::{Scored, differences, kept_at, measure};
use tertulia::evaluation::rules::{RULES, Talk, features};

/// The authors of an excerpt who become the companion in turn: those with the most annotated messages.
const AUTHORS: usize = 3;
const FOLDS: usize = 10;
/// The threshold is the one with the best balanced accuracy whose precision is at least this one.
const LEAST_PRECISION: f64 = 0.47;
const PENALTY: f64 = 1.0;
const WRITTEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/domain/relevance/weights.rs");

type Row = [f64; FEATURES];

/// A decision with the features of its message, and what the rules beside the model say of it.
struct Point {
    decision: Decision,
    row: Row,
    by_rule: Vec<f64>,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [command, file] = &arguments[..] else {
        println!("nothing is trained: give a command and a file, as in `cargo bench --bench relevance -- score dev.jsonl.gz`");
        return Ok(());
    };
    let mut points = points(&read(&[Path::new(file)]).map_err(anyhow::Error::msg)?);
    println!("{} decisions, {} of them answered", points.len(), points.iter().filter(|point| point.decision.replied).count());
    match &**command {
        "train" => {
            let (weights, threshold) = train(&points);
            std::fs::write(WRITTEN, source(&weights, threshold)).with_context(|| format!("{WRITTEN} cannot be written"))?;
        }
        "shuffled" => {
            let mut random = Random(1);
            for at in (1..points.len()).rev() {
                let (other, replied) = (random.below(at + 1), points[at].decision.replied);
                points[at].decision.replied = std::mem::replace(&mut points[other].decision.replied, replied);
            }
            train(&points);
        }
        "score" => {
            let weights = WEIGHTS.map(f64::from);
            report(&points, &points.iter().map(|point| logit(&weights, &point.row)).collect::<Vec<_>>(), THRESHOLD.into());
        }
        other => bail!("{other} is no command; the commands are train, shuffled and score"),
    }
    Ok(())
}

fn points(excerpts: &[Excerpt]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut known = None;
    for decision in decisions(excerpts, AUTHORS, &[], None) {
        let (excerpt, companion) = (decision.excerpt, decision.companion.clone());
        let (_, features, rules) = known.take().filter(|(of, _, _)| *of == (excerpt, companion.clone())).unwrap_or_else(|| {
            let excerpt_of = &excerpts[excerpt];
            let talk = Talk { excerpt: excerpt_of, companion: &companion, lower: &lowered(excerpt_of) };
            let rules: Vec<Vec<f64>> = RULES.iter().map(|rule| (rule.probabilities)(&talk)).collect();
            ((excerpt, companion.clone()), features(&talk), rules)
        });
        if let Some(row) = features[decision.n].map(|features| features.0.map(f64::from)) {
            let by_rule = rules.iter().map(|rule| rule[decision.n]).collect();
            points.push(Point { decision, row, by_rule });
        }
        known = Some(((excerpt, companion), features, rules));
    }
    points
}

/// Chooses a threshold by cross-validation, and trains on everything.
fn train(points: &[Point]) -> (Row, f64) {
    let mut logits = vec![0.0; points.len()];
    for fold in 0..FOLDS {
        let others: Vec<&Point> = points.iter().filter(|point| point.decision.excerpt % FOLDS != fold).collect();
        let weights = fitted(&others);
        for (logit_of, point) in logits.iter_mut().zip(points).filter(|(_, point)| point.decision.excerpt % FOLDS == fold) {
            *logit_of = logit(&weights, &point.row);
        }
    }
    let candidates = (-400..200).map(|at| f64::from(at) / 100.0);
    let answered = points.iter().filter(|point| point.decision.replied).count() as f64;
    let good = candidates.filter_map(|threshold| {
        let said = points.iter().zip(&logits).filter(|(_, logit)| **logit >= threshold);
        let (right, wrong) =
            said.fold(
                (0.0, 0.0),
                |(right, wrong), (point, _)| {
                    if point.decision.replied { (right + 1.0, wrong) } else { (right, wrong + 1.0) }
                },
            );
        let specificity = 1.0 - wrong / (points.len() as f64 - answered);
        (right / (right + wrong) >= LEAST_PRECISION).then_some((f64::midpoint(right / answered, specificity), threshold))
    });
    let threshold = good.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(0.0, |(_, threshold)| threshold);
    println!("cross-validated over excerpts, {FOLDS} folds:");
    report(points, &logits, threshold);
    let weights = fitted(&points.iter().collect::<Vec<_>>());
    println!("| feature | weight |\n| --- | ---: |");
    for (feature, weight) in Feature::ALL.iter().zip(weights) {
        println!("| {feature} | {weight:.3} |");
    }
    (weights, threshold)
}

fn logit(weights: &Row, row: &Row) -> f64 {
    weights.iter().zip(row).map(|(weight, value)| weight * value).sum()
}

/// The weights of a logistic regression with a quadratic penalty, by Newton's method.
fn fitted(points: &[&Point]) -> Row {
    let mut weights = [0.0; FEATURES];
    for _ in 0..12 {
        let (mut curvature, mut slope) = ([[0.0; FEATURES]; FEATURES], [0.0; FEATURES]);
        for point in points {
            let probability = 1.0 / (1.0 + (-logit(&weights, &point.row)).exp());
            let (error, spread) = (f64::from(u8::from(point.decision.replied)) - probability, probability * (1.0 - probability));
            for (at, value) in point.row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                slope[at] += error * value;
                for (other, more) in point.row.iter().enumerate().take(at + 1) {
                    curvature[at][other] += spread * value * more;
                }
            }
        }
        for at in 0..FEATURES {
            let row = curvature[at];
            row.iter().enumerate().take(at).for_each(|(other, value)| curvature[other][at] = *value);
            curvature[at][at] += PENALTY;
            slope[at] -= if at == 0 { 0.0 } else { PENALTY * weights[at] };
        }
        let step = solved(curvature, slope);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
        if step.iter().all(|step| step.abs() < 1e-6) {
            break;
        }
    }
    weights
}

/// Solves linear equations by elimination. The penalty keeps the pivots away from zero.
fn solved(mut matrix: [Row; FEATURES], mut right: Row) -> Row {
    for at in 0..FEATURES {
        for below in at + 1..FEATURES {
            let factor = matrix[below][at] / matrix[at][at];
            let pivot = matrix[at];
            matrix[below].iter_mut().zip(pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            right[below] -= factor * right[at];
        }
    }
    let mut solution = [0.0; FEATURES];
    for at in (0..FEATURES).rev() {
        let known: f64 = (at + 1..FEATURES).map(|other| matrix[at][other] * solution[other]).sum();
        solution[at] = (right[at] - known) / matrix[at][at];
    }
    solution
}

fn report(points: &[Point], logits: &[f64], threshold: f64) {
    let scored = |point: &Point, score: f64, least: f64| {
        let Decision { excerpt, kind, replied, .. } = point.decision;
        Scored { excerpt, kind, replied, yes: score >= least, score }
    };
    let model: Vec<_> = points.iter().zip(logits).map(|(point, logit)| scored(point, *logit, threshold)).collect();
    println!("threshold: a logit of {threshold:.2}");
    println!("| rule | precision | recall | balanced accuracy | MCC | the model exceeds it by, 95 %: balanced accuracy, MCC |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
    let measured = measure(&model);
    let row = |name: &str, decisions: &[Scored], advantage: &str| {
        let all = measure(decisions).all;
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        let (precision, recall) = (shown(all.precision), shown(all.recall));
        println!("| {name} | {precision} | {recall} | {} | {} | {advantage} |", shown(all.balanced_accuracy), shown(all.mcc));
    };
    row("model", &model, "");
    for (place, rule) in RULES.iter().enumerate() {
        let decisions: Vec<_> = points.iter().map(|point| scored(point, point.by_rule[place], rule.threshold)).collect();
        let by = differences(&decisions, &model);
        let advantage = ["balanced_accuracy", "mcc"].map(|figure| match by.get(figure).and_then(|by| by.interval) {
            Some(interval) => format!("{:+.3} to {:+.3}", interval.0, interval.1),
            None => "–".to_owned(),
        });
        row(rule.name, &decisions, &advantage.join(", "));
    }
    let kept = [0.1, 0.2, 0.3, 0.5]
        .map(|share| format!("{:.0} % at {:.0} %", kept_at(&measured.kept, share).unwrap_or_default() * 100.0, share * 100.0));
    println!("answers kept among messages that do not name the companion, by the share of calls: {}", kept.join(", "));
    println!("| threshold | calls, % | answers kept, % |\n| ---: | ---: | ---: |");
    let open: Vec<&Scored> = model.iter().filter(|scored| scored.kind != Kind::Addressed).collect();
    for threshold in [-4.5, -4.0, -3.5, -3.0, -2.5, threshold] {
        let asked = open.iter().filter(|scored| scored.score >= threshold).count() as f64 / open.len() as f64;
        let kept = kept_at(&measured.kept, asked).unwrap_or_default();
        println!("| {threshold:.2} | {:.1} | {:.0} |", asked * 100.0, kept * 100.0);
    }
}

/// The source of the weights.
fn source(weights: &Row, threshold: f64) -> String {
    let weights: String =
        Feature::ALL.iter().zip(weights).map(|(feature, weight)| format!("    {weight:.4}, // {feature}\n")).collect();
    format!(
        "//! Written by `cargo bench --bench relevance -- train FILE` (docs/relevance.md).\n//!\n\
         //! Trained on the data of Kummerfeld, Gouravajhala, Peper, Athreya, Gunasekara, Ganhotra, Patel, Polymenakos and Lasecki: \"A Large-Scale Corpus\n\
         //! for Conversation Disentanglement\", ACL 2019, <https://aclweb.org/anthology/P19-1374>, CC-BY-4.0 (<https://creativecommons.org/licenses/by/4.0/>):\n\
         //! 60 excerpts of its training data, changed as docs/relevance.md says.\n\n\
         use super::FEATURES;\n\n/// A weight for each feature.\n#[rustfmt::skip]\npub const WEIGHTS: [f32; FEATURES] = [\n{weights}];\n\n\
         /// From this logit on a message counts as one that the companion would answer.\npub const THRESHOLD: f32 = {threshold:.2};\n"
    )
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ value >> 31) % bound as u64) as usize
    }
}
