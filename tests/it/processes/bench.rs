//! `tertulia bench`: in its own process, through a server that it starts, and through one that runs.

use serde_json::Value;

use crate::harness::Premises;

#[tokio::test]
async fn bench_reports_how_much_was_accepted_and_how_fast() {
    let report = bench(&Premises::new(), &[]).await;

    assert_eq!(report["way"], "inbound port");
    assert_eq!(
        (&report["said"], &report["accepted"], &report["refused"], &report["failed"]),
        (&20.into(), &20.into(), &0.into(), &0.into())
    );
    assert_eq!(report["acceptance"]["count"], 20);
    for figure in
        ["accepted_per_second", "commits_per_second", "events_per_second", "group_size_mean", "memory_mib", "channels_awake"]
    {
        assert!(report[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {report}");
    }
    let middle = report["acceptance"]["p50"].as_f64();
    assert!(middle.is_some() && middle <= report["acceptance"]["p99"].as_f64(), "{report}");
}

#[tokio::test]
async fn numbers_out_of_range_are_refused_with_the_allowed_range() {
    let premises = Premises::shipped();

    let too_many = premises.run(&["bench", "--companions", "99"]).await;
    let unconfigured = premises.run(&["bench", "--companions", "9"]).await;
    let no_channels = premises.run(&["bench", "--channels", "0"]).await;
    let no_load = premises.run(&["bench", "--flat-out", "0"]).await;

    assert!(too_many.stderr.contains("give a whole number from 0 to 32: no more fit into a room"), "{too_many:?}");
    let expected = "--companions 9: 3 are configured (aria, bruno, cleo); configure more in config/companions, or ask for fewer";
    assert!(unconfigured.stderr.contains(expected), "{unconfigured:?}");
    for none in [&no_channels, &no_load] {
        assert!(none.stderr.contains("give a whole number from 1 to 1000000"), "{none:?}");
    }
    assert_eq!([too_many.code, unconfigured.code, no_channels.code, no_load.code], [Some(2); 4]);
}

#[tokio::test]
async fn bench_over_http_starts_its_own_server() {
    let report = bench(&Premises::new(), &["--http"]).await;

    assert_eq!((&report["way"], &report["accepted"], &report["failed"]), (&"HTTP".into(), &20.into(), &0.into()), "{report}");
}

#[tokio::test]
async fn bench_messages_are_on_the_record_of_a_running_server() {
    let premises = Premises::new();
    let server = premises.start().await;

    let report = bench(&premises, &["--server", &server.url]).await;

    assert_eq!((&report["accepted"], &report["failed"]), (&20.into(), &0.into()), "{report}");
    let mut stored = 0;
    for room in 0..3 {
        let history = server.get(&format!("/api/rooms/bench-{room}/history")).await;
        stored += history["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user").count();
    }
    // The messages of the warm-up are stored too.
    assert_eq!(stored, 24);
    server.stop().await;
}

async fn bench(premises: &Premises, options: &[&str]) -> Value {
    let load =
        ["bench", "--rate", "200", "--secs", "0.1", "--warm-up-secs", "0.02", "--channels", "3", "--guilds", "2", "--json"];
    premises.run(&[&load[..], options].concat()).await.exits_with(0).object()
}
