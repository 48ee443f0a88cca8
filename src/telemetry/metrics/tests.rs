use std::collections::{BTreeMap, BTreeSet};

use super::super::export::Signal;
use super::super::instruments::{CATALOGUE, Entry, OBSERVED, platform_label};
use super::*;

mod sending;

#[test]
fn counters_and_gauges_begin_at_zero() {
    let metrics = Metrics::local();

    let text = metrics.exposition().unwrap();

    for counted in
        CATALOGUE.iter().filter(|entry| entry.kind != "Histogram" && entry.labels.iter().all(|label| !label.values.is_empty()))
    {
        let values: BTreeSet<_> = series(&text, &prometheus_name(counted)).into_values().collect();
        assert_eq!(values, BTreeSet::from(["0".to_owned()]), "{}", counted.name);
    }
}

#[test]
fn impossible_decisions_have_no_series() {
    let metrics = Metrics::local();

    let decisions = series(&metrics.exposition().unwrap(), "tertulia_decisions_total");

    let is_possible = |labels: &String| {
        let is_event = labels.contains("decision_reason=\"event\"");
        let is_external = labels.contains("YES") && labels.contains("external");
        let is_backchannel = labels.contains("decision_reason=\"backchannel\"");
        (!is_event || labels.contains("decision_trigger=\"event\""))
            && (!labels.contains("irrelevant") || ["lull", "interjection", "turn"].iter().any(|trigger| labels.contains(trigger)))
            && !(labels.contains("no_initiative")
                && (labels.contains("decision_trigger=\"event\"") || labels.contains("direct_address")))
            && !(labels.contains("\"risk\"") && labels.contains("decision_trigger=\"event\""))
            && (!is_backchannel || labels.contains("decision_trigger=\"lull\""))
            && labels.contains("\"YES\"") == (labels.contains("model_yes") || is_event || is_external)
    };
    assert_eq!(decisions.len(), 5 * 16 + 15 + 3 + 4);
    assert!(decisions.keys().all(is_possible), "{decisions:#?}");
}

#[test]
fn the_cardinality_limit_allows_every_series_of_the_labels() {
    let metrics = Metrics::local();
    let instruments = metrics.instruments();
    metrics.observe_process(&Ledger::default());
    let entry = CATALOGUE.iter().find(|entry| entry.name == "tertulia.turn.duration").unwrap();
    let values = |label: usize| entry.labels[label].values.iter().copied().chain([""]);

    for (trigger, outcome) in values(0).flat_map(|trigger| values(1).map(move |outcome| (trigger, outcome))) {
        instruments.turn_duration.record(0.1, [trigger, outcome]);
    }

    let text = metrics.exposition().unwrap();
    let all = (entry.labels[0].values.len() + 1) * (entry.labels[1].values.len() + 1);
    assert_eq!(text.lines().filter(|line| line.starts_with("tertulia_turn_duration_seconds_count")).count(), all);
    assert!(!text.contains("otel_metric_overflow"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_has_its_usual_names() {
    let metrics = Metrics::local();
    metrics.observe_process(&Ledger::default());

    let value = |name: &str| metrics.total(&format!("process_{name}"), &[]);

    let [resident, virtual_memory] = ["resident_memory_bytes", "virtual_memory_bytes"].map(value);
    assert!(0.0 < resident && resident < virtual_memory, "{resident} of {virtual_memory}");
    let [open, most] = ["open_fds", "max_fds"].map(value);
    assert!(0.0 < open && open < most, "{open} of {most}");
    assert!(value("threads") >= 1.0 && value("cpu_seconds_total") >= 0.0);
    // Seconds since 1970, of this century.
    assert!((1e9..4e9).contains(&value("start_time_seconds")), "{}", value("start_time_seconds"));
    // The earlier names.
    assert!(value("memory_usage_bytes") > 0.0 && value("open_file_descriptors") > 0.0);
    assert!(value("cpu_time_seconds_total") >= 0.0);
}

#[test]
fn an_invalid_endpoint_is_reported_without_its_secrets() {
    let plan = Target::new(Signal::Metrics, "http://ana:secret@not a host/v1/metrics");

    let error = Metrics::new(Resource::builder_empty().build(), Some(&plan)).map(drop).expect_err("the URL is invalid");

    assert!(error.to_string().starts_with("metrics cannot be exported to http://not a host/v1/metrics (OTEL"), "{error}");
    assert!(!format!("{error} {error:?} {plan:?}").contains("secret"), "{error:?} {plan:?}");
}

#[test]
fn every_exposed_metric_is_declared_once() {
    let metrics = everything();
    let declared: BTreeSet<_> = CATALOGUE.iter().chain(OBSERVED).map(prometheus_name).collect();

    let text = metrics.exposition().unwrap();

    let read: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).map(|(name, _)| name.to_owned()).collect();
    assert!(read.is_subset(&declared), "{:?}", read.difference(&declared).collect::<Vec<_>>());
    assert!(OBSERVED.iter().all(|entry| read.contains(&prometheus_name(entry))), "{read:?}");
    let names: BTreeSet<_> = CATALOGUE.iter().chain(OBSERVED).map(|entry| entry.name).collect();
    assert_eq!(names.len(), CATALOGUE.len() + OBSERVED.len(), "no name is declared twice");
}

#[test]
fn disk_figures_are_cached() {
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let metrics = Metrics::local();
    let counting = calls.clone();
    let used = move || Some(1_000 + counting.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    metrics.observe_disk(used, || None);

    let [first, second] = [(); 2].map(|()| metrics.total("tertulia_store_size_bytes", &[]));

    assert_eq!((first, second), (1_000.0, 1_000.0));
    let text = metrics.exposition().unwrap();
    assert!(!text.contains("tertulia_disk_free"), "an unknown value is left out");
}

#[test]
fn dropping_a_share_subtracts_it() {
    let metrics = Metrics::local();
    let instruments = metrics.instruments();
    let waiting = || instruments.pool_waiting.share(["side", "lull"]);
    let (mut old, mut new) = (waiting(), waiting());

    old.set(5);
    new.set(2);
    old.set(3);
    drop(old);

    assert_eq!(metrics.total("tertulia_pool_waiting", &[("model_role", "side")]), 2.0);
}

#[test]
fn an_unknown_platform_is_labelled_other() {
    assert_eq!(
        ["console", "discord", "lobby", "evil\"}", ""].map(platform_label),
        ["console", "discord", "other", "other", "other"]
    );
}

/// The metrics of a server.
fn everything() -> Metrics {
    let metrics = Metrics::local();
    metrics.observe_process(&Ledger::default());
    metrics.observe_disk(|| Some(1), || Some(2));
    metrics
}

/// The name of a counter or gauge in Prometheus text.
fn prometheus_name(entry: &Entry) -> String {
    let unit = match entry.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = if matches!(entry.kind, "Counter" | "Sum") { "_total" } else { "" };
    format!("{}{unit}{total}", entry.name.replace('.', "_"))
}

/// The series of one name: their labels as they are written, and their values.
fn series(text: &str, name: &str) -> BTreeMap<String, String> {
    let rests = text.lines().filter_map(|line| line.strip_prefix(name));
    let split = rests.filter_map(|rest| match rest.strip_prefix('{') {
        Some(rest) => rest.split_once("} ").map(|(labels, value)| (labels.to_owned(), value.to_owned())),
        None => rest.strip_prefix(' ').map(|value| (String::new(), value.to_owned())),
    });
    split.collect()
}
