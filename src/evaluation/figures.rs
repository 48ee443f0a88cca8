//! Calculates the figures of decisions, such as precision and recall, with intervals by bootstrap over excerpts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::decisions::Kind;
use super::seeded::Draws;

/// The number of bootstrap samples for an interval.
const DRAWS: usize = 1_000;
/// The most points of a curve.
const MOST_POINTS: usize = 500;
/// The seed of the bootstrap.
const SEED: u64 = 1;

/// A decision together with the judgement about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The index of the excerpt.
    pub excerpt: usize,
    pub kind: Kind,
    /// Whether the companion replied.
    pub replied: bool,
    /// Whether the judgement is YES.
    pub yes: bool,
    /// The probability that the companion should speak, or any other score that grows with it.
    pub score: f64,
}

/// The figures of a set of decisions. `None` where a figure is undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    pub count: u64,
    /// The share of the decisions to which the companion replied.
    pub base_rate: Option<f64>,
    /// The share of YES.
    pub said_yes: Option<f64>,
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub balanced_accuracy: Option<f64>,
    /// Matthews' correlation coefficient.
    pub mcc: Option<f64>,
    /// The average precision. `None` if the scores are not graded.
    pub pr_auc: Option<f64>,
}

/// The 2.5th and the 97.5th percentile of the bootstrap samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval(pub f64, pub f64);

/// Values by the name of the figure.
type Named<T> = BTreeMap<&'static str, T>;

/// The figures, their intervals, and the figures by kind of message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub all: Figures,
    /// 95 % intervals by bootstrap over excerpts. Empty with a single excerpt.
    pub interval: Named<Interval>,
    pub by_kind: BTreeMap<Kind, Figures>,
    /// For unaddressed messages, by falling score: the share of messages that the model is asked about, and the share of their
    /// replies that is kept.
    pub kept: Vec<(f64, f64)>,
}

/// The difference between the figures of two settings, with the interval of a paired bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub by: f64,
    pub interval: Option<Interval>,
}

/// The counts of a contingency table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Table {
    /// YES, and the companion replied.
    hits: u64,
    /// YES, and the companion did not reply.
    false_alarms: u64,
    /// NO, and the companion replied.
    misses: u64,
    /// NO, and the companion did not reply.
    rejections: u64,
}

impl Table {
    fn count(&mut self, scored: &Scored) {
        *match (scored.yes, scored.replied) {
            (true, true) => &mut self.hits,
            (true, false) => &mut self.false_alarms,
            (false, true) => &mut self.misses,
            (false, false) => &mut self.rejections,
        } += 1;
    }

    fn add(&mut self, other: Self, times: u64) {
        self.hits += times * other.hits;
        self.false_alarms += times * other.false_alarms;
        self.misses += times * other.misses;
        self.rejections += times * other.rejections;
    }

    fn figures(self) -> Figures {
        let Self { hits, false_alarms, misses, rejections } = self;
        let count = hits + false_alarms + misses + rejections;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let recall = share(hits, hits + misses);
        let specificity = share(rejections, rejections + false_alarms);
        let root = [hits + false_alarms, hits + misses, rejections + false_alarms, rejections + misses];
        let root = root.iter().map(|side| *side as f64).product::<f64>().sqrt();
        let correlation = hits as f64 * rejections as f64 - false_alarms as f64 * misses as f64;
        Figures {
            count,
            base_rate: share(hits + misses, count),
            said_yes: share(hits + false_alarms, count),
            precision: share(hits, hits + false_alarms),
            recall,
            balanced_accuracy: recall.zip(specificity).map(|(recall, specificity)| f64::midpoint(recall, specificity)),
            // If a row or column of the table is empty, the decisions do not correlate with the replies.
            mcc: (count > 0).then(|| if root > 0.0 { correlation / root } else { 0.0 }),
            pr_auc: None,
        }
    }
}

impl Figures {
    /// The figures that have intervals, by name.
    fn named(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("precision", self.precision),
            ("recall", self.recall),
            ("balanced_accuracy", self.balanced_accuracy),
            ("mcc", self.mcc),
            ("pr_auc", self.pr_auc),
        ]
    }
}

/// Decisions, summed by excerpt, so that excerpts can be weighted.
struct Sums {
    tables: Vec<Table>,
    /// One entry per score, in falling order: the excerpts of its decisions, each with the numbers of decisions with and without
    /// a reply. Empty if the scores are not graded.
    ranks: Vec<Vec<(usize, u64, u64)>>,
}

impl Sums {
    /// `places` maps each excerpt to its index in the sums.
    fn of(scored: &[Scored], places: &BTreeMap<usize, usize>) -> Self {
        let mut tables = vec![Table::default(); places.len()];
        let mut ranks = BTreeMap::<Reverse<Ordered>, BTreeMap<usize, (u64, u64)>>::new();
        for scored in scored {
            let place = places[&scored.excerpt];
            tables[place].count(scored);
            let (replies, others) = ranks.entry(Reverse(Ordered(scored.score))).or_default().entry(place).or_default();
            *if scored.replied { replies } else { others } += 1;
        }
        let is_graded = ranks.len() > 2;
        let flat = |rank: BTreeMap<usize, (u64, u64)>| {
            rank.into_iter().map(|(place, (replies, others))| (place, replies, others)).collect()
        };
        Self { tables, ranks: ranks.into_values().filter(|_| is_graded).map(flat).collect() }
    }

    fn figures(&self, weights: &[u64]) -> Figures {
        let mut table = Table::default();
        self.tables.iter().zip(weights).for_each(|(of_excerpt, weight)| table.add(*of_excerpt, *weight));
        Figures { pr_auc: self.average_precision(weights), ..table.figures() }
    }

    /// The mean of the precisions at each reply. Decisions with equal scores count as one step.
    fn average_precision(&self, weights: &[u64]) -> Option<f64> {
        let replies_in =
            |rank: &[(usize, u64, u64)]| rank.iter().map(|(place, replies, _)| weights[*place] * replies).sum::<u64>();
        let all: u64 = self.ranks.iter().map(|rank| replies_in(rank)).sum();
        let (mut hits, mut asked, mut area) = (0, 0, 0.0);
        for rank in &self.ranks {
            let replies = replies_in(rank);
            hits += replies;
            asked += replies + rank.iter().map(|(place, _, others)| weights[*place] * others).sum::<u64>();
            if replies > 0 {
                area += replies as f64 / all as f64 * hits as f64 / asked as f64;
            }
        }
        (all > 0).then_some(area)
    }
}

/// A score as a key of a map.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Maps each excerpt of these decisions to a consecutive index.
fn places(scored: &[Scored]) -> BTreeMap<usize, usize> {
    let excerpts: std::collections::BTreeSet<_> = scored.iter().map(|scored| scored.excerpt).collect();
    excerpts.into_iter().enumerate().map(|(place, excerpt)| (excerpt, place)).collect()
}

/// The bootstrap samples: how often each excerpt is drawn. Empty with a single excerpt, which allows no interval.
fn draws(excerpts: usize) -> impl Iterator<Item = Vec<u64>> {
    let mut draws = Draws::of(SEED);
    let count = if excerpts > 1 { DRAWS } else { 0 };
    (0..count).map(move |_| {
        let mut weights = vec![0; excerpts];
        (0..excerpts).for_each(|_| weights[draws.below(excerpts)] += 1);
        weights
    })
}

fn interval(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)? as f64;
    Some(Interval(values[(0.025 * last).floor() as usize], values[(0.975 * last).ceil() as usize]))
}

/// Calculates the figures of these decisions.
pub fn measure(scored: &[Scored]) -> Measured {
    let places = places(scored);
    let sums = Sums::of(scored, &places);
    let mut drawn = Named::<Vec<f64>>::new();
    for weights in draws(places.len()) {
        for (name, value) in sums.figures(&weights).named() {
            drawn.entry(name).or_default().extend(value);
        }
    }
    let all = sums.figures(&vec![1; places.len()]);
    let defined = all.named().into_iter().filter_map(|(name, value)| value.and(drawn.remove(name)).map(|values| (name, values)));
    let interval = defined.filter_map(|(name, values)| Some((name, interval(values)?))).collect();
    let of_kind = |kind: Kind| {
        let of_kind: Vec<_> = scored.iter().filter(|scored| scored.kind == kind).copied().collect();
        let places = self::places(&of_kind);
        (kind, Sums::of(&of_kind, &places).figures(&vec![1; places.len()]))
    };
    Measured { all, interval, by_kind: Kind::ALL.map(of_kind).into(), kept: kept(scored) }
}

/// The figures of `other` minus those of `one`, with intervals of a paired bootstrap. Both have the same decisions in the same
/// order.
pub fn differences(one: &[Scored], other: &[Scored]) -> Named<Difference> {
    let places = places(one);
    let sums = [one, other].map(|scored| Sums::of(scored, &places));
    let differences = |weights: &[u64]| {
        let [one, other] = sums.each_ref().map(|sums| sums.figures(weights).named());
        let by = one.into_iter().zip(other).filter_map(|((name, one), (_, other))| Some((name, other? - one?)));
        by.collect::<Vec<_>>()
    };
    let mut drawn = Named::<Vec<f64>>::new();
    for weights in draws(places.len()) {
        for (name, by) in differences(&weights) {
            drawn.entry(name).or_default().push(by);
        }
    }
    let whole = differences(&vec![1; places.len()]);
    whole.into_iter().map(|(name, by)| (name, Difference { by, interval: drawn.remove(name).and_then(interval) })).collect()
}

/// For unaddressed messages, by falling score: the share of messages that the model is asked about, and the share of replies that
/// is kept. The curve runs from (0, 0) to (1, 1), and is empty without replies. Equal scores form one step.
/// A longer curve is thinned evenly.
fn kept(scored: &[Scored]) -> Vec<(f64, f64)> {
    let mut ranks = BTreeMap::<Reverse<Ordered>, (u64, u64)>::new();
    for scored in scored.iter().filter(|scored| scored.kind != Kind::Addressed) {
        let (messages, replies) = ranks.entry(Reverse(Ordered(scored.score))).or_default();
        *messages += 1;
        *replies += u64::from(scored.replied);
    }
    let (messages, replies) = ranks.values().fold((0, 0), |sum, rank| (sum.0 + rank.0, sum.1 + rank.1));
    if replies == 0 {
        return Vec::new();
    }
    let mut sum = (0, 0);
    let points = ranks.values().map(|rank| {
        sum = (sum.0 + rank.0, sum.1 + rank.1);
        (sum.0 as f64 / messages as f64, sum.1 as f64 / replies as f64)
    });
    let curve: Vec<_> = [(0.0, 0.0)].into_iter().chain(points).collect();
    // The ends stay.
    let last = curve.len() - 1;
    let shown = curve.len().min(MOST_POINTS);
    (0..shown).map(|point| curve[point * last / (shown - 1).max(1)]).collect()
}

/// The share of replies that a curve keeps at this share of the messages. Linear interpolation between two points assumes that
/// messages with equal scores are selected at random.
pub fn kept_at(curve: &[(f64, f64)], share: f64) -> Option<f64> {
    let place = curve.iter().position(|(asked, _)| *asked >= share)?;
    let (right, before) = (curve[place], curve[place.saturating_sub(1)]);
    if right.0 <= before.0 {
        return Some(right.1);
    }
    Some(before.1 + (right.1 - before.1) * (share - before.0) / (right.0 - before.0))
}

#[cfg(test)]
mod tests;
