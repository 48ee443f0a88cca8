//! Draws spans and metrics so that every name and value of them can be read and compared.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::time::SystemTime;

use opentelemetry::Value;
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceId};
use opentelemetry_sdk::trace::SpanData;

use crate::domain::moment::Moment;
use crate::telemetry::instruments::{CATALOGUE, Entry, OBSERVED};

/// The width of a line of attributes.
const WIDE: usize = 150;

/// All spans of an evening, by trace.
pub(super) struct Traces {
    /// In the order in which they began.
    traces: Vec<Trace>,
    numbers: HashMap<TraceId, usize>,
}

struct Trace {
    began: SystemTime,
    /// By their beginning, then by their end.
    spans: Vec<SpanData>,
}

impl Traces {
    pub(super) fn of(spans: Vec<SpanData>) -> Self {
        let mut by_id: HashMap<TraceId, Vec<SpanData>> = HashMap::new();
        for span in spans {
            assert!(span.events.is_empty() && span.dropped_attributes_count == 0, "nothing here has span events: {span:?}");
            by_id.entry(span.span_context.trace_id()).or_default().push(span);
        }
        let mut ordered: Vec<_> = by_id
            .into_iter()
            .map(|(id, mut spans)| {
                spans.sort_by_cached_key(|span| (span.start_time, span.end_time, span.name.to_string(), attributes(span)));
                // The id of a trace with one span is random, and must not decide its position.
                let began = (spans[0].start_time, spans[0].name.to_string(), attributes(&spans[0]));
                (began, id, spans)
            })
            .collect();
        ordered.sort_by(|one, other| one.0.cmp(&other.0));
        let numbers = ordered.iter().enumerate().map(|(at, (_, id, _))| (*id, at + 1)).collect();
        let traces = ordered.into_iter().map(|((began, ..), _, spans)| Trace { began, spans }).collect();
        Self { traces, numbers }
    }

    /// The traces that began in this time, with times in seconds since it began.
    pub(super) fn drawn(&self, from: Moment, to: Option<Moment>) -> String {
        let mut drawing = String::new();
        for (at, trace) in self.traces.iter().enumerate() {
            if trace.began >= time(from) && to.is_none_or(|to| trace.began < time(to)) {
                writeln!(drawing, "\ntrace {}", at + 1).unwrap();
                let other: HashSet<_> = trace.spans.iter().map(|span| span.span_context.span_id()).collect();
                for top in trace.spans.iter().filter(|span| !other.contains(&span.parent_span_id)) {
                    self.draw(top, trace, time(from), 1, &mut drawing);
                }
            }
        }
        drawing
    }

    fn draw(&self, span: &SpanData, trace: &Trace, zero: SystemTime, depth: usize, drawing: &mut String) {
        let is_orphan = depth == 1 && span.parent_span_id != SpanId::INVALID;
        let mut head = format!("{}{}", "  ".repeat(depth), span.name);
        if span.span_kind != SpanKind::Internal {
            write!(head, " ({})", format!("{:?}", span.span_kind).to_lowercase()).unwrap();
        }
        write!(head, "  {}", lasted(span, zero)).unwrap();
        match &span.status {
            Status::Unset => {}
            Status::Ok => head.push_str("  OK"),
            Status::Error { description } => write!(head, "  ERROR: {description}").unwrap(),
        }
        for link in span.links.iter() {
            assert!(link.attributes.is_empty(), "no link here has attributes: {link:?}");
            write!(head, "  follows {}", self.linked(link.span_context.trace_id(), link.span_context.span_id())).unwrap();
        }
        if is_orphan {
            head.push_str("  ITS PARENT IS MISSING");
        }
        writeln!(drawing, "{head}").unwrap();
        let indent = "  ".repeat(depth + 2);
        for line in attributes(span) {
            writeln!(drawing, "{indent}{line}").unwrap();
        }
        for child in trace.spans.iter().filter(|child| child.parent_span_id == span.span_context.span_id()) {
            self.draw(child, trace, zero, depth + 1, drawing);
        }
    }

    fn linked(&self, to: TraceId, span: SpanId) -> String {
        let Some(number) = self.numbers.get(&to) else { return "A TRACE THAT NOBODY KNOWS".to_owned() };
        let spans = &self.traces[number - 1].spans;
        match spans.iter().find(|other| other.span_context.span_id() == span) {
            Some(other) if other.parent_span_id == SpanId::INVALID => format!("trace {number}"),
            Some(other) => format!("{} of trace {number}", other.name),
            // A killed system has not written the root of a trace that was open.
            None if spans.iter().any(|other| other.parent_span_id == span) => format!("trace {number}"),
            None => format!("A SPAN THAT NOBODY KNOWS of trace {number}"),
        }
    }

    /// Spans whose parent was never written. In the trace of a turn that was cut short by a death they are expected: another trace follows it.
    pub(super) fn lost(&self) -> Vec<String> {
        let all = || self.traces.iter().flat_map(|trace| &trace.spans);
        let followed: HashSet<_> = all().flat_map(|span| span.links.iter()).map(|link| link.span_context.trace_id()).collect();
        let is_whole = |trace: &&Trace| {
            let is_cut_short = trace.spans.iter().all(|span| span.parent_span_id != SpanId::INVALID);
            !is_cut_short || !followed.contains(&trace.spans[0].span_context.trace_id())
        };
        let lost_of = |trace: &Trace| {
            let other: HashSet<_> = trace.spans.iter().map(|span| span.span_context.span_id()).collect();
            let is_lost = |span: &&SpanData| span.parent_span_id != SpanId::INVALID && !other.contains(&span.parent_span_id);
            trace.spans.iter().filter(is_lost).map(|span| format!("{} {:?}", span.name, attributes(span))).collect::<Vec<_>>()
        };
        self.traces.iter().filter(is_whole).flat_map(lost_of).collect()
    }
}

/// When a span began and ended, in seconds.
fn lasted(span: &SpanData, zero: SystemTime) -> String {
    let secs = |time: SystemTime| time.duration_since(zero).map_or(-1.0, |since| since.as_secs_f64());
    format!("{:.3} – {:.3}", secs(span.start_time), secs(span.end_time))
}

fn time(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(moment.as_micros())
}

/// All attributes: first location and companion, then the others by the first part of their names, one line or more for each group.
fn attributes(span: &SpanData) -> Vec<String> {
    let mut groups: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
    for attribute in &span.attributes {
        let name = attribute.key.as_str();
        let first = name.split('.').next().unwrap_or_default();
        let is_place = matches!(name, "guild.id" | "channel.id" | "companion.id" | "turn.id");
        let group = (!is_place, if is_place { String::new() } else { first.to_owned() });
        groups.entry(group).or_default().push(format!("{name}={}", valued(&attribute.value)));
    }
    groups.into_values().flat_map(wrapped).collect()
}

/// Text is shown as it is. Other types are marked, so that a change of type shows.
fn valued(value: &Value) -> String {
    match value {
        Value::String(text) if text.as_str().contains(' ') => format!("\"{text}\""),
        Value::String(text) => text.to_string(),
        Value::F64(number) => format!("{number:?}"),
        Value::Bool(_) | Value::I64(_) => value.to_string(),
        other => format!("list {other}"),
    }
}

fn wrapped(mut pairs: Vec<String>) -> Vec<String> {
    pairs.sort();
    let mut lines = vec![String::new()];
    for pair in pairs {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            *line = pair;
        } else if line.chars().count() + pair.chars().count() + 2 <= WIDE {
            write!(line, "  {pair}").unwrap();
        } else {
            lines.push(pair);
        }
    }
    lines
}

/// The output of `/metrics`, by name: every series that is not zero, histograms with their counts and sums; then the names without
/// values.
pub(super) fn metrics(exposition: &str) -> String {
    let (mut drawing, mut silent) = (String::new(), Vec::new());
    for family in exposition.split("# HELP ").skip(1) {
        let name = family.split(' ').next().unwrap_or_default();
        let kind = family.split("# TYPE ").nth(1).and_then(|typed| typed.lines().next()?.rsplit(' ').next()).unwrap_or_default();
        let samples = family.lines().skip(1).filter(|line| line.starts_with(name) && !line.ends_with(" 0"));
        let samples: Vec<_> = samples.filter_map(|line| line.strip_prefix(name)?.rsplit_once(' ')).collect();
        if samples.is_empty() {
            silent.push(name);
        } else if kind == "histogram" {
            writeln!(drawing, "\n{name}: histogram, {}", bounds(family)).unwrap();
            let of =
                |end: &'static str| samples.iter().filter_map(move |(series, value)| Some((series.strip_prefix(end)?, *value)));
            let sums: BTreeMap<_, _> = of("_sum").collect();
            for (labels, count) in of("_count") {
                let sum = rounded(sums.get(labels).unwrap_or(&"0"));
                writeln!(drawing, "  count {count}, sum {sum}{}", spaced(labels)).unwrap();
            }
        } else {
            writeln!(drawing, "\n{name}: {kind}").unwrap();
            for (labels, value) in samples {
                writeln!(drawing, "  {}{}", rounded(value), spaced(labels)).unwrap();
            }
        }
    }
    writeln!(drawing, "\nat zero, or without values:\n  {}", silent.join("\n  ")).unwrap();
    drawing
}

/// The bounds of a histogram's buckets.
fn bounds(family: &str) -> String {
    let mut bounds: Vec<&str> = Vec::new();
    for bound in
        family.split(['{', ',']).filter_map(|label| label.strip_prefix("le=\"")).filter_map(|rest| rest.split('"').next())
    {
        if bounds.contains(&bound) {
            break;
        }
        bounds.push(bound);
    }
    bounds.join(" ")
}

/// Rounds to nine digits, because sums of fractions have a meaningless tail.
fn rounded(value: &str) -> String {
    let value: f64 = value.parse().expect("a number");
    let digits = format!("{value:.9}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn spaced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("  {}", labels.replace("\",", "\", ")) }
}

/// Every instrument: kind, name, unit, labels with their closed lists, and description.
pub(super) fn instruments() -> String {
    CATALOGUE.iter().chain(OBSERVED).map(instrument).collect()
}

fn instrument(entry: &Entry) -> String {
    let Entry { kind, name, unit, labels, help } = entry;
    let unit = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
    let mut drawing = format!("\n{name}: {kind}{unit}\n  {help}\n");
    for label in *labels {
        // The version changes daily, so it is no part of the contract.
        let values = match label.values {
            [] => "whatever the settings name".to_owned(),
            _ if label.name == "service.version" => "the version".to_owned(),
            values => values.join(" | "),
        };
        writeln!(drawing, "  by {}: {values}", label.name).unwrap();
    }
    drawing
}
