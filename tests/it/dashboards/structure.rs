//! Checks of the dashboards and alerts that need no running server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tertulia::telemetry::instruments::{CATALOGUE, OBSERVED};

use super::links::{Condition, conditions, parse_link};
use super::{Board, Panel, boards, read};

const ATTRIBUTES: &str = include_str!("../../../src/telemetry/attributes.rs");
const WIDTH: u32 = 24;

#[test]
fn the_nine_dashboards_link_to_each_other() {
    let boards = boards();

    let names: Vec<&str> = boards.iter().map(|(file, _)| file.as_str()).collect();
    let expected = ["actors", "decisions", "discord", "models", "overview", "platforms", "rounds", "storage", "voice"]
        .map(|name| format!("{name}.json"));
    assert_eq!(names, expected);
    for (file, board) in &boards {
        let name = file.trim_end_matches(".json");
        assert_eq!(board.uid, format!("tertulia-{name}"));
        assert_eq!(board.title.to_lowercase(), name);
        assert!(board.description.ends_with(['.', '?']), "{file}: {}", board.description);
        assert_eq!(board.tags, ["tertulia"], "{file}");
        assert_eq!((board.refresh.as_str(), &board.time), ("30s", &json!({ "from": "now-6h", "to": "now" })), "{file}");
        assert!(board.schema_version >= 36 && board.editable && board.graph_tooltip == 1, "{file}");
        let [link] = &board.links[..] else { panic!("{file}: not one link") };
        assert_eq!((&link["type"], &link["tags"], &link["keepTime"]), (&json!("dashboards"), &json!(["tertulia"]), &json!(true)));
    }
}

#[test]
fn each_dashboard_has_variables_for_data_sources_and_servers() {
    for (file, board) in boards() {
        let variables: Vec<(&str, &str)> = board.templating.list.iter().map(|v| (v.name.as_str(), v.kind.as_str())).collect();
        let sources = ["datasource", "tempo", "loki"].map(|name| (name, "datasource"));
        assert_eq!(variables, [&sources[..], &[("job", "query"), ("instance", "query")]].concat(), "{file}");
    }
}

#[test]
fn every_panel_has_a_description_a_unit_and_queries() {
    for (file, panel) in panels() {
        let place = format!("{file}: {}", panel.title);
        if panel.is_row() {
            assert!(panel.collapsed == Some(false) && panel.panels.as_ref().is_some_and(Vec::is_empty), "{place}");
            continue;
        }
        let description = panel.description.as_deref().unwrap_or_default();
        assert!(description.len() > 40 && description.ends_with('.'), "{place}: {description:?}");
        assert_eq!(panel.datasource, Some(json!({ "type": "prometheus", "uid": "${datasource}" })), "{place}");
        let config = panel.field_config.as_ref().unwrap_or_else(|| panic!("{place}: no unit"));
        assert!(!config.defaults.unit.is_empty(), "{place}");
        assert!(panel.kind != "stat" || config.defaults.thresholds.is_some(), "{place}: no thresholds");
        assert!(panel.options.is_some() && (panel.kind == "table") == panel.transformations.is_some(), "{place}");
        assert!(!panel.targets.is_empty(), "{place}: no query");
        for (target, letter) in panel.targets.iter().zip('A'..) {
            assert_eq!(target.ref_id, letter.to_string(), "{place}");
            assert_eq!(Some(&target.datasource), panel.datasource.as_ref(), "{place}");
            let is_instant = matches!(panel.kind.as_str(), "bargauge" | "table");
            assert_eq!(
                (target.instant, target.range),
                if is_instant { (Some(true), Some(false)) } else { (None, None) },
                "{place}"
            );
            assert_eq!(target.format.as_deref(), (panel.kind == "table").then_some("table"), "{place}");
        }
        let overrides_contain = |field: &str| config.overrides.iter().any(|value| value.to_string().contains(field));
        assert!(!overrides_contain("\"unit\"") && !overrides_contain("axisPlacement"), "{place}: a second axis");
    }
}

#[test]
fn panels_do_not_overlap() {
    for (file, board) in boards() {
        let mut ids = BTreeSet::new();
        let mut taken = BTreeMap::new();
        for panel in &board.panels {
            let place = panel.grid_pos;
            assert!(ids.insert(panel.id), "{file}: {} has the id of another", panel.title);
            assert!(place.x + place.w <= WIDTH && place.w > 0 && place.h > 0, "{file}: {} {place:?}", panel.title);
            assert!(!panel.is_row() || (place.w, place.h) == (WIDTH, 1), "{file}: {} {place:?}", panel.title);
            for cell in (place.x..place.x + place.w).flat_map(|x| (place.y..place.y + place.h).map(move |y| (x, y))) {
                let other = taken.insert(cell, &panel.title);
                assert_eq!(other, None, "{file}: {} overlaps it at {cell:?}", panel.title);
            }
        }
    }
}

#[test]
fn every_query_reads_existing_metrics_and_labels() {
    let catalogue = Catalogue::new();
    let mut wrong = Vec::new();
    let mut queries = 0;
    for (file, panel) in panels() {
        for target in &panel.targets {
            queries += 1;
            wrong.extend(catalogue.faults(&target.expr).into_iter().map(|fault| format!("{file}: {}: {fault}", panel.title)));
        }
    }
    for expression in alert_expressions() {
        queries += 1;
        wrong.extend(catalogue.faults(&expression).into_iter().map(|fault| format!("alerts.yaml: {fault}")));
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(queries > 100, "{queries}");
}

#[test]
fn every_panel_query_filters_by_the_selected_servers() {
    for (file, panel) in panels() {
        for target in &panel.targets {
            for (metric, matchers) in series(&target.expr) {
                for label in ["job", "instance"] {
                    assert!(
                        matchers.contains(&format!("{label}=~\"${label}\"")),
                        "{file}: {}: {metric} without {label}",
                        panel.title
                    );
                }
            }
        }
    }
}

#[test]
fn labels_named_in_legends_and_links_exist() {
    for (file, panel) in panels() {
        for target in &panel.targets {
            let place = format!("{file}: {}: {}", panel.title, target.expr);
            let grouped: BTreeSet<&str> = grouped_by(&target.expr).collect();
            for label in between(&target.legend_format, "{{", "}}") {
                assert!(grouped.contains(label), "{place}: the legend names {label}");
            }
            let (titles, urls): (Vec<&str>, Vec<&str>) = panel.all_links().map(|link| (&*link.title, &*link.url)).unzip();
            for label in titles.iter().chain(&urls).flat_map(|text| between(text, "${__field.labels.", "}")) {
                assert!(grouped.contains(label), "{place}: a link names {label}");
            }
        }
    }
}

#[test]
fn every_link_leads_to_existing_spans_or_to_the_log() {
    let known: BTreeMap<&str, &str> = ATTRIBUTES.lines().filter_map(constant).collect();
    let spans: BTreeSet<&str> = known.iter().filter(|(name, _)| name.starts_with("SPAN_")).map(|(_, value)| *value).collect();
    let attributes: BTreeSet<&str> = known.values().copied().filter(|value| !spans.contains(value)).collect();
    let mut trace_links = 0;
    for (file, panel) in panels() {
        for link in panel.all_links() {
            let place = format!("{file}: {}: {}", panel.title, link.title);
            assert!(link.target_blank, "{place}");
            let link_query = parse_link(&link.url).unwrap_or_else(|error| panic!("{place}: {error}"));
            if link_query.datasource == "loki" {
                assert!(
                    link.title.starts_with("Logs: ") && link_query.query.starts_with("{service_name=\"tertulia\"} |"),
                    "{place}"
                );
                continue;
            }
            trace_links += 1;
            assert!(link.title.starts_with("Traces: "), "{place}");
            for condition in conditions(&link_query.query).unwrap_or_else(|error| panic!("{place}: {error}")) {
                let Condition { field, value, .. } = &condition;
                let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                let is_true = match (field.strip_prefix("span."), field.as_str()) {
                    (Some(attribute), _) => {
                        // A value from a label must come from the label of the same attribute.
                        let label = text.and_then(|text| between(text, "${__field.labels.", "}").next());
                        attributes.contains(attribute) && label.is_none_or(|label| label == attribute.replace('.', "_"))
                    }
                    (None, "name") => text.is_some_and(|text| spans.contains(text)),
                    (None, "status") => value == "error",
                    (None, "duration") => value.strip_suffix('s').is_some_and(|secs| secs.parse::<u32>().is_ok()),
                    _ => false,
                };
                assert!(is_true, "{place}: {condition:?}");
            }
        }
    }
    assert!(trace_links > 30, "{trace_links}");
}

#[test]
fn every_alert_compares_a_series_with_a_number_and_is_tested_both_ways() {
    let alerts = lines_after("alerts.yaml", "- alert: ");
    let tests = read("alerts_test.yaml");
    // Each test has the same form: the name, and below it the expected alerts.
    let mut expected: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    let lines: Vec<&str> = tests.lines().map(str::trim).collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_prefix("alertname: ") {
            let fires = lines[index..].iter().find_map(|line| line.strip_prefix("exp_alerts:")).expect("what is expected");
            expected.entry(name).or_default().push(fires.trim() != "[]");
        }
    }

    assert!(alerts.len() >= 20 && alerts.iter().collect::<BTreeSet<_>>().len() == alerts.len(), "{alerts:?}");
    for alert in &alerts {
        let tried = expected.remove(alert.as_str()).unwrap_or_default();
        assert!(tried.contains(&true) && tried.contains(&false), "{alert} is tested as {tried:?}");
    }
    assert!(expected.is_empty(), "{expected:?}");
    for expression in alert_expressions() {
        assert!(compared(&expression).is_some(), "{expression}");
    }
    assert_eq!(alert_expressions().len(), alerts.len());
}

/// The metrics in Prometheus, with their labels and the allowed values of each label (empty: any value).
pub struct Catalogue(pub BTreeMap<String, BTreeMap<String, &'static [&'static str]>>);

impl Catalogue {
    pub fn new() -> Self {
        let mut metrics = BTreeMap::new();
        let mut add = |name: String, labels: &[(&str, &'static [&'static str])]| {
            let everywhere = [("job", &[][..]), ("instance", &[][..])];
            let labels = labels.iter().chain(&everywhere).map(|(label, values)| (label.replace('.', "_"), *values)).collect();
            metrics.insert(name, labels);
        };
        for entry in CATALOGUE.iter().chain(OBSERVED) {
            let unit = match entry.unit {
                "s" => "_seconds",
                "By" => "_bytes",
                "1" => "_ratio",
                _ => "",
            };
            let name = format!("{}{unit}", entry.name.replace('.', "_"));
            let mut labels: Vec<_> = entry.labels.iter().map(|label| (label.name, label.values)).collect();
            match entry.kind {
                "Counter" | "Sum" => add(format!("{name}_total"), &labels),
                "UpDown" | "Gauge" => add(name, &labels),
                "Histogram" => {
                    add(format!("{name}_sum"), &labels);
                    add(format!("{name}_count"), &labels);
                    labels.push(("le", &[]));
                    add(format!("{name}_bucket"), &labels);
                }
                kind => panic!("{kind} is unknown"),
            }
        }
        // Prometheus adds these itself.
        add("up".to_owned(), &[]);
        add("ALERTS".to_owned(), &[("alertname", &[]), ("alertstate", &["firing", "pending"]), ("severity", &[])]);
        Self(metrics)
    }

    /// The faults of an expression: metrics, labels and values that do not exist. Whether it is well-formed, a real Prometheus tells.
    fn faults(&self, expression: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut known = BTreeSet::new();
        for (metric, matchers) in series(expression) {
            let Some(labels) = self.0.get(metric) else {
                faults.push(format!("{metric} is no metric"));
                continue;
            };
            known.extend(labels.keys().map(String::as_str));
            for matcher in matchers.split(", ").filter(|matcher| !matcher.is_empty()) {
                let (label, value) = matcher.split_once(['=', '!']).expect("a matcher");
                let Some(values) = labels.get(label) else {
                    faults.push(format!("{metric} has no label {label}"));
                    continue;
                };
                let parts = value.trim_start_matches(['=', '~']).trim_matches('"').split('|');
                let is_value = |part: &&str| values.is_empty() || part.is_empty() || part.contains('.') || values.contains(part);
                faults.extend(parts.filter(|part| !is_value(part)).map(|part| format!("{label} of {metric} is never {part}")));
            }
        }
        faults.extend(
            grouped_by(expression).filter(|label| !known.contains(label)).map(|label| format!("nothing has a label {label}")),
        );
        if known.is_empty() && faults.is_empty() { vec![format!("{expression} reads no series")] } else { faults }
    }
}

/// The series that an expression reads, each with its matchers: the names of several words that are no functions, variables or labels.
fn series(mut rest: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
        let (word, after) = rest[start..].split_at(length);
        rest = after;
        if ["by", "without"].contains(&word) {
            rest = after.split_once(')').map_or("", |(_, after)| after);
        } else if ["up", "ALERTS"].contains(&word) || (word.contains('_') && !word.starts_with('_') && !after.starts_with('(')) {
            let (matchers, after) = after.strip_prefix('{').and_then(|matchers| matchers.split_once('}')).unwrap_or(("", after));
            found.push((word, matchers));
            rest = after;
        }
    }
    found
}

/// The labels by which an expression groups.
fn grouped_by(expression: &str) -> impl Iterator<Item = &str> {
    between(expression, "by (", ")").chain(between(expression, "without (", ")")).flat_map(|labels| labels.split(", "))
}

/// The series that an alert compares with a number.
pub fn compared(expression: &str) -> Option<&str> {
    let (comparison, number) = expression.rsplit_once(' ')?;
    let (series, operator) = comparison.rsplit_once(' ')?;
    (number.parse::<f64>().is_ok() && matches!(operator, "<" | ">" | "<=" | ">=" | "==" | "!=")).then_some(series)
}

fn panels() -> Vec<(String, Panel)> {
    let panels_of = |(file, board): (String, Board)| board.panels.into_iter().map(move |panel| (file.clone(), panel));
    boards().into_iter().flat_map(panels_of).collect()
}

/// The expressions of `alerts.yaml`, which holds each in one line, or in an indented block.
fn alert_expressions() -> Vec<String> {
    let text = read("alerts.yaml");
    let mut lines = text.lines().peekable();
    let mut expressions = Vec::new();
    while let Some(line) = lines.next() {
        let Some(expression) = line.strip_prefix("        expr: ") else { continue };
        let mut expression = if expression == "|-" { String::new() } else { expression.to_owned() };
        while let Some(more) = lines.next_if(|line| line.starts_with("          ")) {
            expression.push(' ');
            expression.push_str(more.trim());
        }
        expressions.push(expression);
    }
    expressions
}

/// The rest of each line of a file that begins with this prefix.
fn lines_after(file: &str, prefix: &str) -> Vec<String> {
    read(file).lines().filter_map(|line| line.trim().strip_prefix(prefix)).map(str::to_owned).collect()
}

/// `pub const NAME: &str = "value";`
fn constant(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("pub const ")?.split_once(": &str = \"")?;
    Some((name, value.strip_suffix("\";")?))
}

/// The texts between the two delimiters.
fn between<'a>(text: &'a str, opening: &'static str, closing: &'static str) -> impl Iterator<Item = &'a str> {
    text.split(opening).skip(1).filter_map(move |rest| rest.split(closing).next())
}
