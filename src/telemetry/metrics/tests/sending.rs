//! Metrics over OTLP, to an endpoint on loopback.

use std::sync::mpsc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use prost::Message as _;

use super::super::super::instruments::NONE;
use super::*;

/// Series by name and labels, each with its value; of histograms, the count.
type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

#[tokio::test]
async fn exported_metrics_equal_the_exposition() {
    let collector = Collector::start().await;
    let metrics = collector.metrics();
    metrics.observe_process(&Ledger::default());
    metrics.observe_disk(|| Some(4_096), || Some(1 << 40));
    let instruments = metrics.instruments();
    instruments.messages.add(3, ["console", "user"]);
    instruments.decision_duration.record(0.7, ["lull"]);
    instruments.model_cost.add(0.25, ["small", "side", "EUR"]);
    let _held = instruments.actors.one(["channel"]);
    instruments.channels_known.set(7, NONE);

    let read = read(&metrics.exposition().unwrap());
    shutdown(metrics, Duration::from_secs(5)).await;
    let sent = collector.sent();

    // These change between reading and sending.
    let changes = |name: &String| name.starts_with("process.");
    let [read, sent] = [read, sent].map(|series| series.into_iter().filter(|((name, _), _)| !changes(name)).collect::<Series>());
    assert_eq!(sent, read);
    assert!(sent.len() > 250, "{}", sent.len());
    let total = |name: &str| sent.iter().filter(|((other, _), _)| other == name).map(|(_, value)| value).sum::<f64>();
    assert_eq!(
        ["tertulia.messages", "tertulia.model.cost", "tertulia.actors", "tertulia.store.size"].map(total),
        [3.0, 0.25, 1.0, 4_096.0]
    );
}

#[tokio::test]
async fn a_hanging_or_missing_endpoint_delays_nothing() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let hanging = format!("http://{}/v1/metrics", silent.local_addr().expect("it is bound"));

    for (endpoint, hangs) in [(hanging, true), ("http://127.0.0.1:9/v1/metrics".to_owned(), false)] {
        let plan = Target { timeout: Duration::from_secs(1), ..Target::new(Signal::Metrics, endpoint) };
        let metrics = Metrics::new(Resource::builder_empty().build(), Some(&plan)).expect("it starts");
        let provider = metrics.provider.clone();
        // A hanging flush is not joined.
        let flushing = std::thread::spawn(move || drop(provider.force_flush()));
        let being_sent = if hangs { Some(silent.accept().await.expect("somebody sends")) } else { None };
        for _ in 0..1_000 {
            metrics.instruments().http_panics.add(1, NONE);
        }

        let measured = metrics.total("tertulia_http_panics_total", &[]);
        let began = tokio::time::Instant::now();
        shutdown(metrics, Duration::from_millis(50)).await;

        assert_eq!(measured, 1_000.0);
        assert!(began.elapsed() < Duration::from_secs(4), "shutting down took {:?}", began.elapsed());
        assert!(!hangs || !flushing.is_finished(), "it was still being sent");
        drop(being_sent);
    }
}

/// Starts at once on a blocking thread, because the exporter's client blocks.
fn shutdown(metrics: Metrics, within: Duration) -> impl Future<Output = ()> {
    let ending = tokio::task::spawn_blocking(move || metrics.shutdown(within));
    async { ending.await.expect("it does not panic") }
}

/// Receives metrics over OTLP on loopback.
struct Collector {
    url: String,
    received: mpsc::Receiver<ExportMetricsServiceRequest>,
}

impl Collector {
    async fn start() -> Self {
        let (keep, received) = mpsc::channel();
        let take = async move |body: Bytes| {
            let request = ExportMetricsServiceRequest::decode(body).expect("it is OTLP");
            keep.send(request).expect("the test still looks");
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let url = format!("http://{}/v1/metrics", listener.local_addr().expect("it is bound"));
        tokio::spawn(axum::serve(listener, Router::new().route("/v1/metrics", post(take))).into_future());
        Self { url, received }
    }

    fn metrics(&self) -> Metrics {
        let plan = Target { timeout: Duration::from_secs(1), ..Target::new(Signal::Metrics, self.url.clone()) };
        Metrics::new(Resource::builder_empty().build(), Some(&plan)).expect("it starts")
    }

    /// The series as they were sent last.
    fn sent(&self) -> Series {
        let request = self.received.try_iter().last().expect("something was sent");
        let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        let mut series = Series::new();
        for metric in scopes.flat_map(|scope| scope.metrics) {
            let points: Vec<_> = match metric.data.expect("it holds data") {
                Data::Sum(sum) => sum.data_points.iter().map(|point| (labels(&point.attributes), number(point.value))).collect(),
                Data::Gauge(gauge) => {
                    gauge.data_points.iter().map(|point| (labels(&point.attributes), number(point.value))).collect()
                }
                Data::Histogram(histogram) => {
                    histogram.data_points.iter().map(|point| (labels(&point.attributes), point.count as f64)).collect()
                }
                other => panic!("unexpected data {other:?}"),
            };
            series.extend(points.into_iter().map(|(labels, value)| ((metric.name.clone(), labels), value)));
        }
        series
    }
}

fn number(value: Option<number_data_point::Value>) -> f64 {
    match value.expect("it has a value") {
        number_data_point::Value::AsDouble(value) => value,
        number_data_point::Value::AsInt(value) => value as f64,
    }
}

fn labels(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.clone().and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("unexpected value {other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.replace('.', "_"), text(attribute))).collect()
}

/// What Prometheus reads, under the names of OpenTelemetry.
fn read(exposition: &str) -> Series {
    let mut read = Series::new();
    for entry in CATALOGUE.iter().chain(OBSERVED) {
        let name = prometheus_name(entry) + if entry.kind == "Histogram" { "_count" } else { "" };
        for (labels, value) in series(exposition, &name) {
            let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
            let labels = pairs.map(|(label, value)| (label.to_owned(), value.trim_matches('"').to_owned())).collect();
            read.insert((entry.name.to_owned(), labels), value.parse().expect("it is a number"));
        }
    }
    read
}
