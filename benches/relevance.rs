//! Trains and scores the model of the pre-gate (docs/relevance.md) on group chat with reply links.
//!
//! `cargo bench --bench relevance -- train FILE` trains on the excerpts of FILE (JSON lines, also gzipped), chooses the threshold by cross-validation
//! over excerpts, prints the report, and writes `src/domain/relevance/weights.rs`. `-- shuffled FILE` does the same with shuffled labels, and writes
//! nothing. `-- score FILE` scores the weights in the source.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tertulia::domain::relevance::{FEATURES, Feature, Heard, Named, Relevance, THRESHOLD, WEIGHTS};

/// The authors of an excerpt who become the companion in turn: those with the most annotated messages.
const AUTHORS: usize = 3;
/// Programs that speak on command.
const PROGRAMS: &[&str] = &[
    "eval",
    "floodbot1",
    "floodbot2",
    "floodbot3",
    "floodbot4",
    "gerrit-wm",
    "mootbot",
    "rustbot",
    "ubot3",
    "ubotu",
    "ubottu",
    "ubugtu",
    "wikibugs",
    "wm-bot",
    "wmdsbot",
];
const FOLDS: usize = 10;
/// The threshold is the one with the best balanced accuracy whose precision is at least this one.
const LEAST_PRECISION: f64 = 0.47;
const PENALTY: f64 = 1.0;
const DRAWS: usize = 1_000;
const WRITTEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/domain/relevance/weights.rs");

type Row = [f64; FEATURES];

#[derive(Deserialize)]
struct Excerpt {
    messages: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    from: String,
    text: String,
    replies_to: Vec<usize>,
    annotated: bool,
}

/// One decision: whether an author answers a message of somebody else.
struct Point {
    excerpt: usize,
    row: Row,
    answers: bool,
    named_or_next: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [command, file] = &arguments[..] else {
        println!("nothing is trained: give a command and a file, as in `cargo bench --bench relevance -- score dev.jsonl.gz`");
        return Ok(());
    };
    let mut points = points(&read(Path::new(file))?);
    println!("{} decisions, {} of them answered", points.len(), points.iter().filter(|point| point.answers).count());
    match &**command {
        "train" => {
            let (weights, threshold) = train(&points);
            std::fs::write(WRITTEN, source(&weights, threshold)).with_context(|| format!("{WRITTEN} cannot be written"))?;
        }
        "shuffled" => {
            let mut random = Random(1);
            for at in (1..points.len()).rev() {
                let other = random.below(at + 1);
                let answers = points[at].answers;
                points[at].answers = std::mem::replace(&mut points[other].answers, answers);
            }
            train(&points);
        }
        "score" => report(
            &points,
            &points.iter().map(|point| logit(&WEIGHTS.map(f64::from), &point.row)).collect::<Vec<_>>(),
            THRESHOLD.into(),
        ),
        other => bail!("{other} is no command; the commands are train, shuffled and score"),
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<Excerpt>> {
    let bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::MultiGzDecoder::new(&*bytes).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes)?;
    }
    let excerpt = |(at, line)| serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), at + 1));
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(excerpt).collect()
}

/// The decisions of each author who becomes the companion.
fn points(excerpts: &[Excerpt]) -> Vec<Point> {
    let mut points = Vec::new();
    for (excerpt, Excerpt { messages }) in excerpts.iter().enumerate() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in messages.iter().filter(|line| line.annotated && !PROGRAMS.contains(&&*line.from.to_lowercase())) {
            *counts.entry(&line.from).or_default() += 1;
        }
        let mut authors: Vec<_> = counts.into_iter().collect();
        authors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut answers: HashMap<usize, Vec<&str>> = HashMap::new();
        for line in messages {
            line.replies_to.iter().for_each(|answered| answers.entry(*answered).or_default().push(&line.from));
        }
        for (companion, _) in authors.into_iter().take(AUTHORS) {
            let mut memory = Relevance::default();
            for (n, line) in messages.iter().enumerate() {
                if line.from == companion {
                    memory.speak(&line.from, &line.text);
                    continue;
                }
                let named = if names(&line.text, companion) { Named::Me } else { Named::Unknown };
                let heard = Heard { from: &line.from, is_person: true, text: &line.text, named };
                memory.hear(&heard);
                if line.annotated {
                    let features = memory.features(&heard);
                    let answers = answers.get(&n).is_some_and(|answers| answers.contains(&companion));
                    let named_or_next = named == Named::Me || features.get(Feature::JustBefore) > 0.0;
                    points.push(Point { excerpt, row: features.0.map(f64::from), answers, named_or_next });
                }
            }
        }
    }
    points
}

/// Whether a text has a nick as a word of its own.
fn names(text: &str, nick: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "_[]\\`^{}|-".contains(char);
    let (text, nick) = (text.to_lowercase(), nick.to_lowercase());
    text.match_indices(&nick).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part) && !text[at + nick.len()..].chars().next().is_some_and(is_part)
    })
}

/// Chooses a threshold by cross-validation, and trains on everything.
fn train(points: &[Point]) -> (Row, f64) {
    let mut logits = vec![0.0; points.len()];
    for fold in 0..FOLDS {
        let others: Vec<&Point> = points.iter().filter(|point| point.excerpt % FOLDS != fold).collect();
        let weights = fitted(&others);
        for (logit_of, point) in logits.iter_mut().zip(points).filter(|(_, point)| point.excerpt % FOLDS == fold) {
            *logit_of = logit(&weights, &point.row);
        }
    }
    let candidates = (-400..200).map(|at| f64::from(at) / 100.0);
    let good = candidates.filter_map(|threshold| {
        let figures = figures(points.iter().zip(&logits).map(|(point, logit)| (*logit >= threshold, point.answers)));
        (figures.precision >= LEAST_PRECISION).then_some((figures.balanced_accuracy, threshold))
    });
    let threshold = good.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(0.0, |(_, threshold)| threshold);
    println!("cross-validated over excerpts, {FOLDS} folds:");
    report(points, &logits, threshold);
    let weights = fitted(&points.iter().collect::<Vec<_>>());
    println!("| feature | weight |\n| --- | ---: |");
    for (feature, weight) in Feature::ALL.iter().zip(weights) {
        println!("| {feature:?} | {weight:.3} |");
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
            let (error, spread) = (f64::from(u8::from(point.answers)) - probability, probability * (1.0 - probability));
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

#[derive(Clone, Copy)]
struct Figures {
    precision: f64,
    recall: f64,
    balanced_accuracy: f64,
    mcc: f64,
}

/// The figures of decisions: each what was said, and what is true.
fn figures(decisions: impl Iterator<Item = (bool, bool)>) -> Figures {
    let mut table = [0.0; 4];
    decisions.for_each(|(said, is_true)| table[usize::from(said) * 2 + usize::from(is_true)] += 1.0);
    let [true_no, false_no, false_yes, true_yes] = table;
    let (recall, specificity) = (true_yes / (true_yes + false_no), true_no / (true_no + false_yes));
    let all = (true_yes + false_yes) * (true_yes + false_no) * (true_no + false_yes) * (true_no + false_no);
    Figures {
        precision: true_yes / (true_yes + false_yes),
        recall,
        balanced_accuracy: f64::midpoint(recall, specificity),
        mcc: if all == 0.0 { 0.0 } else { (true_yes * true_no - false_yes * false_no) / all.sqrt() },
    }
}

/// A way to decide, by point.
type Rule<'a> = (&'a str, Box<dyn Fn(usize) -> bool + 'a>);

fn report(points: &[Point], logits: &[f64], threshold: f64) {
    let rules: [Rule<'_>; 3] = [
        ("model", Box::new(|at| logits[at] >= threshold)),
        ("named", Box::new(|at| points[at].row[Feature::Named as usize] > 0.0)),
        ("named or next", Box::new(|at| points[at].named_or_next)),
    ];
    println!("threshold: a logit of {threshold:.2}");
    println!("| rule | precision | recall | balanced accuracy | MCC | model's advantage, 95 %: balanced accuracy, MCC |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
    let by_excerpt = points.iter().enumerate().fold(BTreeMap::<usize, Vec<usize>>::new(), |mut all, (at, point)| {
        all.entry(point.excerpt).or_default().push(at);
        all
    });
    let excerpts: Vec<&Vec<usize>> = by_excerpt.values().collect();
    for (name, rule) in &rules {
        let of = |rule: &dyn Fn(usize) -> bool, at: &[usize]| figures(at.iter().map(|at| (rule(*at), points[*at].answers)));
        let all: Vec<usize> = (0..points.len()).collect();
        let Figures { precision, recall, balanced_accuracy, mcc } = of(rule, &all);
        let mut random = Random(1);
        let (mut accuracies, mut correlations): (Vec<f64>, Vec<f64>) = (0..DRAWS)
            .map(|_| {
                let drawn: Vec<usize> =
                    (0..excerpts.len()).flat_map(|_| excerpts[random.below(excerpts.len())]).copied().collect();
                let (ours, other) = (of(&rules[0].1, &drawn), of(rule, &drawn));
                (ours.balanced_accuracy - other.balanced_accuracy, ours.mcc - other.mcc)
            })
            .unzip();
        let interval = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            format!("{:+.3} to {:+.3}", values[DRAWS / 40], values[DRAWS - 1 - DRAWS / 40])
        };
        let advantage = format!("{}, {}", interval(&mut accuracies), interval(&mut correlations));
        println!("| {name} | {precision:.3} | {recall:.3} | {balanced_accuracy:.3} | {mcc:.3} | {advantage} |");
    }
    let mut open: Vec<(f64, bool)> = (0..points.len())
        .filter(|at| points[*at].row[Feature::Named as usize] == 0.0)
        .map(|at| (logits[at], points[at].answers))
        .collect();
    open.sort_by(|one, other| other.0.total_cmp(&one.0));
    let answered = |some: &[(f64, bool)]| some.iter().filter(|(_, answers)| *answers).count() as f64;
    let kept = |share: usize| answered(&open[..open.len() * share / 100]) / answered(&open) * 100.0;
    let kept = [10, 20, 30, 50].map(|share| format!("{:.0} % at {share} %", kept(share)));
    println!("answers kept among messages that do not name the companion, by the share of calls: {}", kept.join(", "));
    println!("| threshold | calls, % | answers kept, % |\n| ---: | ---: | ---: |");
    for threshold in [-4.5, -4.0, -3.5, -3.0, -2.5, threshold] {
        let asked = open.iter().filter(|(logit, _)| *logit >= threshold).count();
        let (share, kept) = (asked as f64 / open.len() as f64 * 100.0, answered(&open[..asked]) / answered(&open) * 100.0);
        println!("| {threshold:.2} | {share:.1} | {kept:.0} |");
    }
}

/// The source of the weights.
fn source(weights: &Row, threshold: f64) -> String {
    let weights: String =
        Feature::ALL.iter().zip(weights).map(|(feature, weight)| format!("    {weight:.4}, // {feature:?}\n")).collect();
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
