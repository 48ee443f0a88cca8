//! The metrics of the running program, as a scraper reads them.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::json;

use crate::dashboards::structure::Catalogue;
use crate::harness::{Premises, QUICK, Server};

/// The prefix of all outside text in this test. No label may contain it.
const PLANTED: &str = "planted";

#[tokio::test]
async fn no_outside_text_becomes_a_series() {
    let premises = Premises::new().with_companion("aria", QUICK);
    let server = premises.start().await;
    server.exchange("lobby", "Aria, are you there?").await;
    send_varied_requests(&server, 0..10).await;
    // The first scrape adds series of its own.
    series(&server).await;
    let before = series(&server).await;

    send_varied_requests(&server, 10..100).await;

    let after = series(&server).await;
    let contains_planted =
        |(name, labels): &&Named| name.contains(PLANTED) || labels.values().any(|value| value.contains(PLANTED));
    assert_eq!(after.keys().find(contains_planted), None);
    // Companions may add series meanwhile. Requests add none: each kind was sent before.
    let http_series = |series: &Series| series.keys().filter(|(name, _)| name.contains("http")).cloned().collect::<BTreeSet<_>>();
    assert_eq!(http_series(&after).difference(&http_series(&before)).collect::<Vec<_>>(), Vec::<&Named>::new());
    let catalogue = Catalogue::new();
    for ((name, labels), value) in &after {
        let declared = catalogue.0.get(name).unwrap_or_else(|| panic!("{name} is not declared"));
        for (label, values) in declared.iter().filter(|(_, values)| !values.is_empty()) {
            let value = labels.get(label);
            assert!(value.is_none_or(|value| values.contains(&value.as_str())), "{name} {labels:?}");
        }
        assert!(value.is_finite(), "{name} {labels:?}");
    }
    let total = |name: &str| after.iter().filter(|((other, _), _)| other == name).map(|(_, value)| value).sum::<f64>();
    assert!(total("tertulia_messages_total") >= 101.0);
    assert!(total("tertulia_journal_commit_duration_seconds_count") > 0.0);
    assert!(total("tertulia_store_size_bytes") > 0.0 && total("tertulia_disk_free_bytes") > 0.0);
    assert_eq!(total("tertulia_channels_known"), 11.0);
    server.stop().await;
}

/// Sends requests whose people, rooms, ids, paths and methods all differ.
async fn send_varied_requests(server: &Server, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let room = format!("{PLANTED}{}", number / 10);
        if number % 10 == 0 {
            let plan = json!({ "guild": format!("{PLANTED}{number}"), "companions": ["aria"] });
            server.done(Method::PUT, &format!("/api/rooms/{room}"), Some(plan)).await;
        }
        let from = [format!("{PLANTED}{number}"), format!("{PLANTED}\"}} 1 {number}"), format!("{PLANTED}\\{number}{{a=\"b\"}}")];
        let message = json!({
            "from": from[number as usize % 3],
            "text": format!("{PLANTED}_total{{a=\"{number}\"}} 1"),
            "id": format!("{PLANTED}-{number}"),
        });
        server.done(Method::POST, &format!("/api/rooms/{room}/messages"), Some(message)).await;
        for (method, path) in [
            (Method::GET, format!("/{PLANTED}/{number}")),
            (Method::GET, format!("/api/rooms/{PLANTED}-{number}")),
            (Method::from_bytes(format!("PLANTED{number}").as_bytes()).expect("a method"), "/api/rooms".to_owned()),
        ] {
            let (status, _) = server.ask(method, &path, None).await;
            assert!(status.is_client_error(), "{path}: {status}");
        }
    }
}

/// A metric's name and its labels.
type Named = (String, BTreeMap<String, String>);

/// The values of all series, by name and labels.
type Series = BTreeMap<Named, f64>;

async fn series(server: &Server) -> Series {
    let text = server.get("/metrics").await;
    let lines = text.as_str().expect("text").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("invalid line: {line}"))).collect()
}

/// Parses one line of Prometheus text. It handles no escapes, because only outside text would need them.
fn parse(line: &str) -> Option<(Named, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}')?.split(',').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (label, value) = pair.split_once('=')?;
        Some((label.to_owned(), value.strip_prefix('"')?.strip_suffix('"')?.to_owned()))
    };
    Some(((name.to_owned(), labels.map(pair).collect::<Option<_>>()?), value.parse().ok()?))
}
