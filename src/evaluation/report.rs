//! The report of an evaluation, and its text form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::comparison::{Comparison, Example, scored};
use super::decisions::{Decision, Kind, lowered};
use super::excerpts::{Excerpt, Label};
use super::figures::{Figures, Interval, Measured, Scored, kept_at, measure};
use super::free_run::Played;
use super::questions::Judged;
use super::rules::{RULES, Talk};
use crate::domain::token_usage::TokenUsage;

/// The shares of calls for which the report states the share of kept replies.
pub const SHARES: [f64; 4] = [0.1, 0.2, 0.3, 0.5];

/// The fewest replies, and the fewest other messages, of a sample that says something.
const LEAST: u64 = 10;

/// The results of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub excerpts: usize,
    /// The number of authors in the companion's role, counted separately in each excerpt.
    pub companions: usize,
    pub decisions: usize,
    /// The number of decisions that every setting answered. The figures are about these.
    pub measured: usize,
    /// The labels that replace the truth, with the number of excerpts for each.
    pub labels: BTreeMap<Label, usize>,
    /// The settings, followed by the rules without a model.
    pub rows: Vec<Row>,
    /// The requests of each setting.
    pub asked: Vec<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// The figures of one setting or rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    /// An explanation for people.
    pub about: String,
    pub is_rule: bool,
    #[serde(flatten)]
    pub measured: Measured,
}

/// The requests of one setting, and their cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Asked {
    pub name: String,
    /// The model and its endpoint.
    pub model: String,
    /// The number of questions with an answer.
    pub answered: u64,
    /// The number of answers from this run. The others were cached.
    pub new: u64,
    /// The number of answers that were unreadable even when the question was repeated. They count as NO.
    pub unreadable: u64,
    /// The number of questions without an answer in this run.
    pub failed: u64,
    /// The number of calls for all answers, including those of earlier runs.
    pub calls: u64,
    #[serde(flatten)]
    pub usage: TokenUsage,
    /// The cost of these tokens. `None` if the model has no price.
    pub cost: Option<f64>,
    pub currency: String,
    /// The time of a decision in milliseconds: the mean, and the 95th percentile.
    pub mean_ms: Option<f64>,
    pub p95_ms: Option<u64>,
}

/// The results of free runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FreeReport {
    pub excerpts: usize,
    pub companions: usize,
    #[serde(flatten)]
    pub played: Played,
    /// The requests to the model.
    pub usage: Asked,
}

/// A setting and its judgements of the measured decisions.
pub struct Setting<'a> {
    pub name: &'a str,
    pub about: &'a str,
    pub judged: &'a [Judged],
}

/// Calculates the figures of settings and rules for the same decisions.
pub fn rows(excerpts: &[Excerpt], decisions: &[&Decision], settings: &[Setting<'_>]) -> Vec<Row> {
    let of_setting = |setting: &Setting<'_>| Row {
        name: setting.name.to_owned(),
        about: setting.about.to_owned(),
        is_rule: false,
        measured: measure(&scored(decisions, setting.judged)),
    };
    let rules = by_rules(excerpts, decisions).into_iter().zip(RULES).map(|(scored, rule)| Row {
        name: rule.name.to_owned(),
        about: rule.about.to_owned(),
        is_rule: true,
        measured: measure(&scored),
    });
    settings.iter().map(of_setting).chain(rules).collect()
}

/// The decisions of each rule.
fn by_rules(excerpts: &[Excerpt], decisions: &[&Decision]) -> Vec<Vec<Scored>> {
    let mut scored = vec![Vec::with_capacity(decisions.len()); RULES.len()];
    for talk in decisions.chunk_by(|one, other| (one.excerpt, &one.companion) == (other.excerpt, &other.companion)) {
        let excerpt = &excerpts[talk[0].excerpt];
        let lower = lowered(excerpt);
        for (rule, scored) in RULES.iter().zip(&mut scored) {
            let probabilities = (rule.probabilities)(&Talk { excerpt, companion: &talk[0].companion, lower: &lower });
            scored.extend(talk.iter().map(|decision| {
                let score = probabilities[decision.n];
                let (excerpt, kind, replied) = (decision.excerpt, decision.kind, decision.replied);
                Scored { excerpt, kind, replied, yes: score >= rule.threshold, score }
            }));
        }
    }
    scored
}

/// The number of authors in the companion's role, counted separately in each excerpt.
pub fn companions(decisions: &[Decision]) -> usize {
    decisions.iter().map(|decision| (decision.excerpt, &decision.companion)).collect::<BTreeSet<_>>().len()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { excerpts, companions, decisions, measured, .. } = self;
        writeln!(f, "{}", counted(&[(*excerpts, "excerpt"), (*companions, "companion"), (*decisions, "decision")]))?;
        if measured < decisions {
            writeln!(f, "the figures are about the {measured} decisions that were answered")?;
        }
        for warning in self.warnings() {
            writeln!(f, "{warning}")?;
        }
        for (label, excerpts) in &self.labels {
            writeln!(f, "label {} ({}): {}", label.as_str(), counted(&[(*excerpts, "excerpt")]), label.sentence())?;
        }
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default().max(12);
        write!(f, "\n{:<width$}", "")?;
        for title in ["count", "base", "yes", "prec", "recall", "bal.acc", "MCC", "PR-AUC"] {
            write!(f, " {title:>7}")?;
        }
        writeln!(f)?;
        for row in &self.rows {
            write_figures(f, &row.name, width, &row.measured.all)?;
            for (kind, figures) in &row.measured.by_kind {
                write_figures(f, &format!("  {}", kind.as_str()), width, figures)?;
            }
            if !row.measured.interval.is_empty() {
                let shown = |(name, Interval(low, high)): (&&str, &Interval)| format!("{} {low:.3} to {high:.3}", spaced(name));
                writeln!(f, "  95 %: {}", row.measured.interval.iter().map(shown).collect::<Vec<_>>().join(", "))?;
            }
            if let Some(kept) = kept(&row.measured.kept) {
                writeln!(f, "  {kept}")?;
            }
        }
        for asked in &self.asked {
            write!(f, "\n{asked}")?;
        }
        match &self.comparison {
            Some(comparison) => write_comparison(f, comparison),
            None => Ok(()),
        }
    }
}

impl Report {
    /// What makes the figures doubtful: unreadable answers, and too few replies or other messages.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let Figures { count, base_rate, .. } = self.rows.first().map(|row| row.measured.all).unwrap_or_default();
        let replied = (count as f64 * base_rate.unwrap_or_default()).round() as u64;
        let is_empty = replied.min(count - replied) < LEAST;
        let empty = is_empty.then(|| {
            format!(
                "Warning: This sample says nothing: it has {replied} replies and {} other messages, and needs {LEAST} of each.",
                count - replied
            )
        });
        self.asked.iter().filter_map(Asked::warning).chain(empty)
    }
}

/// The text for the shares of unaddressed replies that are kept at [`SHARES`] of the calls. `None` for a curve without points
/// between its ends.
fn kept(curve: &[(f64, f64)]) -> Option<String> {
    if curve.len() <= 2 {
        return None;
    }
    let shares = SHARES.map(|share| kept_at(curve, share).map_or_else(|| "-".to_owned(), |kept| format!("{:.0}", kept * 100.0)));
    Some(format!(
        "unaddressed replies kept by asking about 10, 20, 30, 50 % of the unaddressed messages: {} %",
        shares.join(", ")
    ))
}

/// Formats counts: `1 excerpt, 3 companions`.
pub(super) fn counted(things: &[(usize, &str)]) -> String {
    let counted = |(count, what): &(usize, &str)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" });
    things.iter().map(counted).collect::<Vec<_>>().join(", ")
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

fn write_figures(f: &mut fmt::Formatter<'_>, name: &str, width: usize, figures: &Figures) -> fmt::Result {
    write!(f, "{name:<width$} {:>7}", figures.count)?;
    let Figures { base_rate, said_yes, precision, recall, balanced_accuracy, mcc, pr_auc, .. } = *figures;
    for value in [base_rate, said_yes, precision, recall, balanced_accuracy, mcc, pr_auc] {
        write!(f, " {:>7}", shown(value))?;
    }
    writeln!(f)
}

/// Formats a figure with three decimals.
pub(super) fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

fn write_comparison(f: &mut fmt::Formatter<'_>, comparison: &Comparison) -> fmt::Result {
    let Comparison { both_yes, both_no, only_first, only_second, differences, examples } = comparison;
    writeln!(f, "\nsettings against each other: both YES {both_yes}, both NO {both_no}")?;
    for (which, disagreement) in [("first", only_first), ("second", only_second)] {
        writeln!(f, "  only the {which} says YES: {}, of which {} were replied to", disagreement.count, disagreement.replied)?;
    }
    for (name, difference) in differences {
        let interval = difference.interval.map(|Interval(low, high)| format!(" (95 %: {low:+.3} to {high:+.3})"));
        writeln!(f, "  {}: second − first {:+.3}{}", spaced(name), difference.by, interval.unwrap_or_default())?;
    }
    for example in examples {
        let Example { excerpt, n, companion, from, text, kind, replied, second_says_yes, why } = example;
        let (first, second) = if *second_says_yes { ("NO", "YES") } else { ("YES", "NO") };
        let replied = if *replied { "replied" } else { "did not reply" };
        writeln!(f, "  {excerpt} #{n} {from}: {text}\n    {companion} {replied} ({})", kind.as_str())?;
        for (verdict, why) in [first, second].into_iter().zip(why) {
            writeln!(f, "    {verdict}: {}", why.as_deref().unwrap_or("no reason"))?;
        }
    }
    Ok(())
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, model, answered, new, unreadable, failed, calls, usage, .. } = self;
        let TokenUsage { input_tokens, output_tokens, .. } = usage;
        writeln!(
            f,
            "{name} ({model}): {answered} answers, {new} of them new, {unreadable} unreadable; {failed} questions failed"
        )?;
        let cached =
            usage.cached_share().map(|share| format!(" ({:.0} % of the input cached)", share * 100.0)).unwrap_or_default();
        write!(f, "  {calls} calls, {input_tokens} and {output_tokens} tokens{cached}, {}", self.cost())?;
        if let (Some(mean), Some(p95)) = (self.mean_ms, self.p95_ms) {
            let each =
                self.cost.map(|cost| format!(", {} {}", money(cost / *answered as f64), self.currency)).unwrap_or_default();
            write!(f, "; a decision: {:.2} s (95 % within {:.2} s){each}", mean / 1e3, p95 as f64 / 1e3)?;
        }
        writeln!(f)
    }
}

impl Asked {
    /// A warning if more than one answer in twenty was unreadable.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { name, unreadable, answered, .. } = self;
        let is_wrong = unreadable * 20 > *answered;
        is_wrong.then(|| format!("Warning: {unreadable} of {answered} answers of {name} could not be read, and count as NO."))
    }

    /// The cost as text.
    pub(super) fn cost(&self) -> String {
        self.cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("{} {}", money(cost), self.currency))
    }
}

/// Formats an amount with as many digits as it needs.
fn money(amount: f64) -> String {
    let digits = if amount == 0.0 || amount >= 1.0 { 2 } else { 2 + amount.log10().abs().ceil().min(9.0) as usize };
    format!("{amount:.digits$}")
}

impl fmt::Display for FreeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { excerpts, companions, played, usage } = self;
        let counts = |counts: &[(&str, u64)]| {
            let each = counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ");
            if each.is_empty() { "none".to_owned() } else { each }
        };
        let by_trigger = |by: &BTreeMap<crate::domain::trigger::Trigger, u64>| {
            counts(&by.iter().map(|(trigger, count)| (trigger.as_str(), *count)).collect::<Vec<_>>())
        };
        let by_reason: Vec<_> = played.unasked.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        let each_100 = 100.0 * played.calls() as f64 / played.messages.max(1) as f64;
        let messages = (played.messages as usize, "message");
        writeln!(f, "free run, not scored: {}", counted(&[(*excerpts, "excerpt"), (*companions, "companion"), messages]))?;
        writeln!(f, "  {} questions, {each_100:.1} for 100 messages: {}", played.calls(), by_trigger(&played.asked))?;
        writeln!(f, "  judgements of repetition, counted and not asked: {}", played.judgements)?;
        writeln!(f, "  YES: {}", by_trigger(&played.yes))?;
        writeln!(f, "  decided without a question: {}", counts(&by_reason))?;
        writeln!(f, "  {} statements; {} questions without an answer", played.statements, played.errors)?;
        write!(f, "\n{usage}")
    }
}

impl Row {
    /// The figures for one kind of message.
    pub(super) fn of(&self, kind: Kind) -> Figures {
        self.measured.by_kind.get(&kind).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::{decisions, tests::excerpt};

    #[test]
    fn rules_and_settings_are_measured_by_the_same_decisions() {
        let excerpts = [excerpt(&[("bo", "al: hi", &[]), ("al", "hello", &[0]), ("bo", "well?", &[1]), ("al", "well", &[2])])];
        let decisions = decisions(&excerpts, 1, &["bo".to_owned()], None);
        let decisions: Vec<_> = decisions.iter().collect();
        let judged = [true, false].map(|yes| Judged { yes, score: f64::from(u8::from(yes)), is_readable: true, why: None });

        let rows = rows(&excerpts, &decisions, &[Setting { name: "mine", about: "a model", judged: &judged }]);

        let recall: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.measured.all.recall)).collect();
        assert_eq!(recall[..4], [("mine", Some(0.5)), ("never", Some(0.0)), ("named", Some(0.5)), ("named-or-next", Some(1.0))]);
    }

    #[test]
    fn amounts_keep_the_digits_that_say_something() {
        assert_eq!([0.0, 12.345, 0.5, 0.000_123].map(money), ["0.00", "12.35", "0.500", "0.000123"]);
    }
}
