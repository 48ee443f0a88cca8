//! `tertulia bench`: in its own process, through a server that it starts, and through one that runs.

use serde_json::Value;

use crate::harness::{Premises, Ran};

#[tokio::test]
async fn a_load_tells_how_much_was_taken_and_how_long_it_took() {
    let told = bench(&Premises::new(), &[]).await;

    assert_eq!(told["way"], "inbound port");
    assert_eq!(
        (&told["said"], &told["accepted"], &told["refused"], &told["failed"]),
        (&20.into(), &20.into(), &0.into(), &0.into())
    );
    assert_eq!(told["acceptance"]["count"], 20);
    for figure in
        ["accepted_per_second", "commits_per_second", "events_per_second", "group_size_mean", "memory_mib", "channels_awake"]
    {
        assert!(told[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {told}");
    }
    let middle = told["acceptance"]["p50"].as_f64();
    assert!(middle.is_some() && middle <= told["acceptance"]["p99"].as_f64(), "{told}");
}

#[tokio::test]
async fn more_companions_than_there_are_or_fit_in_are_refused_with_what_may_be_asked_for() {
    let premises = Premises::shipped();

    let crowd = premises.run(&["bench", "--companions", "99"]).await;
    let more = premises.run(&["bench", "--companions", "9"]).await;
    let nowhere = premises.run(&["bench", "--channels", "0"]).await;
    let nothing = premises.run(&["bench", "--flat-out", "0"]).await;

    assert!(crowd.stderr.contains("give a whole number from 0 to 32: no more fit into a room"), "{crowd:?}");
    let there = "--companions 9: 3 are configured (aria, bruno, cleo); configure more in config/companions, or ask for fewer";
    assert!(more.stderr.contains(there), "{more:?}");
    for none in [&nowhere, &nothing] {
        assert!(none.stderr.contains("give a whole number from 1 to 1000000"), "{none:?}");
    }
    assert_eq!([crowd.code, more.code, nowhere.code, nothing.code], [Some(2); 4]);
}

#[tokio::test]
async fn a_load_over_http_is_taken_by_a_server_of_its_own() {
    let told = bench(&Premises::new(), &["--http"]).await;

    assert_eq!((&told["way"], &told["accepted"], &told["failed"]), (&"HTTP".into(), &20.into(), &0.into()), "{told}");
}

#[tokio::test]
async fn a_load_on_a_server_that_runs_is_on_its_record() {
    let premises = Premises::new();
    let server = premises.start().await;

    let told = bench(&premises, &["--server", &server.url]).await;

    assert_eq!((&told["accepted"], &told["failed"]), (&20.into(), &0.into()), "{told}");
    let mut kept = 0;
    for room in 0..3 {
        let history = server.get(&format!("/api/rooms/bench-{room}/history")).await;
        kept += history["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user").count();
    }
    // Those that it was warmed up with, too.
    assert_eq!(kept, 24);
    server.stop().await;
}

#[tokio::test]
async fn more_companions_than_there_are_are_refused() {
    let ran = Premises::new().run(&["bench", "--companions", "9"]).await;

    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--companions 9"), "{ran:?}");
}

async fn bench(premises: &Premises, more: &[&str]) -> Value {
    let load =
        ["bench", "--rate", "200", "--secs", "0.1", "--warm-up-secs", "0.02", "--channels", "3", "--guilds", "2", "--json"];
    let ran: Ran = premises.run(&[&load[..], more].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.object()
}
