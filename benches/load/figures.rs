//! Reads a server's metrics from Prometheus text, and computes their differences between two moments.

use std::collections::BTreeMap;

/// The size of the store on disk, in bytes.
pub(super) const STORE_SIZE: &str = "tertulia_store_size_bytes";

/// The values of all series at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(BTreeMap<String, f64>);

/// A histogram's distribution, at the resolution of its buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub count: f64,
    pub sum: f64,
    /// Upper bounds, and the number of values at or below each.
    buckets: Vec<(f64, f64)>,
}

impl Figures {
    /// Reads an exposition, and ignores lines that are not series.
    pub(super) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        Self(series.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect())
    }

    /// Sets the value of a series that the bench measures itself.
    pub(super) fn with(mut self, series: &str, value: Option<u64>) -> Self {
        self.0.extend(value.map(|value| (series.to_owned(), value as f64)));
        self
    }

    /// The differences since an earlier moment, of gauges too.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let since =
            |(series, value): (&String, &f64)| (series.clone(), value - earlier.0.get(series).copied().unwrap_or_default());
        Self(self.0.iter().map(since).collect())
    }

    /// The sum of the series of this name whose labels contain this text (`outcome="posted"`; empty: all).
    pub(super) fn sum(&self, name: &str, label: &str) -> f64 {
        self.named(name, label).map(|(_, value)| value).sum()
    }

    /// The sum of the histograms of this name whose labels contain this text.
    pub(super) fn spread(&self, name: &str, label: &str) -> Spread {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (labels, value) in self.named(&format!("{name}_bucket"), label) {
            let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next());
            let Some(bound) = bound.and_then(|bound| bound.parse().ok()) else { continue };
            match buckets.iter_mut().find(|(other, _)| *other == bound) {
                Some((_, count)) => *count += value,
                None => buckets.push((bound, value)),
            }
        }
        buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Spread { count: self.sum(&format!("{name}_count"), label), sum: self.sum(&format!("{name}_sum"), label), buckets }
    }

    fn named<'a>(&'a self, name: &'a str, label: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        let series = self.0.range(name.to_owned()..).take_while(move |(series, _)| series.starts_with(name));
        let labels = series.filter_map(move |(series, value)| Some((series.strip_prefix(name)?, *value)));
        labels.filter(move |(labels, _)| (labels.is_empty() || labels.starts_with('{')) && labels.contains(label))
    }
}

impl Spread {
    /// The quantile for a part from 0 to 1, interpolated within its bucket. `None` without values, or above the last finite bound.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = self.count * part;
        let (mut low, mut before) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if *count >= rank && *count > before {
                return bound.is_finite().then(|| low + (bound - low) * (rank - before) / (count - before));
            }
            (low, before) = (*bound, *count);
        }
        None
    }

    /// The mean, or `None` without values.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}
