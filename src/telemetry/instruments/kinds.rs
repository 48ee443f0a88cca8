//! The kinds of instruments. The compiler checks that each gets as many label values as it has labels.

use opentelemetry::metrics::{self, Meter};
use opentelemetry::{KeyValue, StringValue};

use super::{Entry, values};

/// The label values of an instrument without labels.
pub const NONE: [&str; 0] = [];

/// A label and its possible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: &'static str,
    /// The closed list of values. Empty for a label whose values come from the settings, such as names of models.
    pub values: &'static [&'static str],
}

pub(super) struct Declared {
    pub name: &'static str,
    pub unit: &'static str,
    pub help: &'static str,
}

/// Reports a value of an observed instrument, with its label values in order.
pub type Report<'a> = dyn Fn(f64, &[&str]) + 'a;

/// Registers an instrument whose values are computed whenever it is read.
pub(crate) fn observe(meter: &Meter, entry: Entry, compute: impl Fn(&Report<'_>) + Send + Sync + 'static) {
    let callback = move |observer: &dyn metrics::AsyncInstrument<f64>| {
        compute(&|value, values| {
            let labels = entry.labels.iter().zip(values);
            let attributes: Vec<_> = labels.map(|(label, value)| KeyValue::new(label.name, (*value).to_owned())).collect();
            observer.observe(value, &attributes);
        });
    };
    if entry.kind == "Counter" {
        let counter = meter.f64_observable_counter(entry.name).with_description(entry.help).with_callback(callback);
        if entry.unit.is_empty() { counter } else { counter.with_unit(entry.unit) }.build();
    } else {
        let gauge = meter.f64_observable_gauge(entry.name).with_description(entry.help).with_callback(callback);
        if entry.unit.is_empty() { gauge } else { gauge.with_unit(entry.unit) }.build();
    }
}

#[derive(Debug)]
pub struct Counter<const N: usize>(metrics::Counter<u64>, [Label; N]);

/// A counter of amounts that are not whole numbers.
#[derive(Debug)]
pub struct Sum<const N: usize>(metrics::Counter<f64>, [Label; N]);

/// A number that goes up and down.
#[derive(Debug)]
pub struct UpDown<const N: usize>(metrics::UpDownCounter<i64>, [Label; N]);

/// A current value.
#[derive(Debug)]
pub struct Gauge<const N: usize>(metrics::Gauge<u64>, [Label; N]);

#[derive(Debug)]
pub struct Histogram<const N: usize>(metrics::Histogram<f64>, [Label; N]);

impl<const N: usize> Counter<N> {
    pub(super) fn new(meter: &Meter, declared: Declared, labels: [Label; N]) -> Self {
        let Declared { name, unit, help } = declared;
        let counter = meter.u64_counter(name).with_unit(unit).with_description(help).build();
        for_each_combination(name, &labels, |attributes| counter.add(0, attributes));
        Self(counter, labels)
    }

    pub fn add<V: Into<StringValue>>(&self, more: u64, values: [V; N]) {
        self.0.add(more, &attributes(&self.1, values));
    }
}

impl<const N: usize> Sum<N> {
    pub(super) fn new(meter: &Meter, declared: Declared, labels: [Label; N]) -> Self {
        let counter = meter.f64_counter(declared.name).with_description(declared.help);
        let counter = if declared.unit.is_empty() { counter } else { counter.with_unit(declared.unit) }.build();
        for_each_combination(declared.name, &labels, |attributes| counter.add(0.0, attributes));
        Self(counter, labels)
    }

    /// Adds an amount. Negative, infinite and NaN amounts are ignored.
    pub fn add<V: Into<StringValue>>(&self, more: f64, values: [V; N]) {
        if more >= 0.0 && more.is_finite() {
            self.0.add(more, &attributes(&self.1, values));
        }
    }
}

impl<const N: usize> UpDown<N> {
    pub(super) fn new(meter: &Meter, declared: Declared, labels: [Label; N]) -> Self {
        let Declared { name, unit, help } = declared;
        let counter = meter.i64_up_down_counter(name).with_unit(unit).with_description(help).build();
        for_each_combination(name, &labels, |attributes| counter.add(0, attributes));
        Self(counter, labels)
    }

    /// Adds one until the returned guard is dropped. The count is therefore correct on every path, including a panic and a killed
    /// actor.
    #[must_use]
    pub fn one<V: Into<StringValue>>(&self, values: [V; N]) -> Counted {
        let attributes = attributes(&self.1, values).to_vec();
        self.0.add(1, &attributes);
        Counted { counter: self.0.clone(), attributes }
    }
}

impl<const N: usize> UpDown<N> {
    /// A part of the total that its holder sets whenever it changes. Dropping it subtracts it, on every path.
    pub fn share<V: Into<StringValue>>(&self, values: [V; N]) -> Share {
        Share { counter: self.0.clone(), attributes: attributes(&self.1, values).to_vec(), now: 0 }
    }
}

/// A holder's part of a total. The parts of several holders, such as an actor and its successor, add up.
#[derive(Debug)]
pub struct Share {
    counter: metrics::UpDownCounter<i64>,
    attributes: Vec<KeyValue>,
    now: i64,
}

impl Share {
    pub fn set(&mut self, now: usize) {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if now != self.now {
            self.counter.add(now - self.now, &self.attributes);
            self.now = now;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A guard that counts as one until it is dropped.
#[derive(Debug)]
pub struct Counted {
    counter: metrics::UpDownCounter<i64>,
    attributes: Vec<KeyValue>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counter.add(-1, &self.attributes);
    }
}

impl<const N: usize> Gauge<N> {
    pub(super) fn new(meter: &Meter, declared: Declared, labels: [Label; N]) -> Self {
        let Declared { name, unit, help } = declared;
        let gauge = meter.u64_gauge(name).with_unit(unit).with_description(help).build();
        for_each_combination(name, &labels, |attributes| gauge.record(0, attributes));
        Self(gauge, labels)
    }

    pub fn set<V: Into<StringValue>>(&self, now: u64, values: [V; N]) {
        self.0.record(now, &attributes(&self.1, values));
    }
}

impl<const N: usize> Histogram<N> {
    pub(super) fn new(meter: &Meter, declared: Declared, labels: [Label; N], bounds: &[f64]) -> Self {
        let Declared { name, unit, help } = declared;
        let histogram = meter.f64_histogram(name).with_unit(unit).with_description(help);
        Self(histogram.with_boundaries(bounds.to_vec()).build(), labels)
    }

    /// Records a value. A label with an empty value is left out.
    pub fn record<V: Into<StringValue>>(&self, value: f64, values: [V; N]) {
        let attributes = attributes(&self.1, values);
        let is_empty = |attribute: &KeyValue| attribute.value.as_str().is_empty();
        if attributes.iter().any(is_empty) {
            let attributes: Vec<_> = attributes.into_iter().filter(|attribute| !is_empty(attribute)).collect();
            self.0.record(value, &attributes);
        } else {
            self.0.record(value, &attributes);
        }
    }
}

fn attributes<V: Into<StringValue>, const N: usize>(labels: &[Label; N], values: [V; N]) -> [KeyValue; N] {
    let mut labels = labels.iter();
    values.map(|value| KeyValue::new(labels.next().map_or("", |label| label.name), value.into()))
}

/// Calls a function for every possible combination of label values, if all labels are closed.
fn for_each_combination(instrument: &str, labels: &[Label], mut each: impl FnMut(&[KeyValue])) {
    if labels.iter().any(|label| label.values.is_empty()) {
        return;
    }
    let mut combinations: Vec<Vec<&'static str>> = vec![Vec::new()];
    for label in labels {
        let extended =
            |prefix: &Vec<_>| label.values.iter().map(|value| [prefix.as_slice(), &[*value]].concat()).collect::<Vec<_>>();
        combinations = combinations.iter().flat_map(extended).collect();
    }
    for values in combinations.into_iter().filter(|values| values::is_possible(instrument, values)) {
        let attributes: Vec<_> = labels.iter().zip(values).map(|(label, value)| KeyValue::new(label.name, value)).collect();
        each(&attributes);
    }
}
