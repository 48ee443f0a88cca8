//! The server is restarted while a companion prepares a spoken answer, or gives it, in a room's call.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::harness::model::Answer;
use crate::harness::parameter;

#[tokio::test]
async fn a_server_that_is_killed_while_a_companion_prepares_an_answer_speaks_it_when_somebody_is_back() {
    let model = Model::losing_the_first("main").await;
    let premises = model.serving(Premises::new());
    let server = premises.start().await;
    let mut ana = Page::enter(&server, "lobby", "Ana").await;
    ana.say(QUESTION).await;
    model.wait_for_requests("main", 1).await;

    server.kill().await;
    let server = premises.start().await;
    // The answer is there before Ana is.
    model.wait_for_requests("main", 2).await;
    let mut ana = Page::enter(&server, "lobby", "Ana").await;
    let mut watch = server.watch("lobby", Some(0)).await;
    let (packets, _) = ana.hear_reply().await;

    assert!(packets > 10, "{packets}");
    let answer = watch.event_that("message", |event| event["from"] == "aria").await;
    assert_eq!((&answer["text"], &answer["modality"]), (&json!(ANSWER), &json!("voice")));
}

/// How long the models of the trial take.
const DECIDES_IN: Duration = Duration::from_millis(300);
const WRITES_IN: Duration = Duration::from_millis(700);

/// A model that takes its time, as real ones do.
pub async fn slow_model(text: &'static str) -> Model {
    Model::start(move |body| {
        let (is_over, over) = watch::channel(false);
        let (after, text) = if body["model"] == "main" { (WRITES_IN, text) } else { (DECIDES_IN, "They call me.\nYES") };
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Who asked may have died.
            let _ = is_over.send(true);
            is_over.closed().await;
        });
        Answer::Once(over, text)
    })
    .await
}

/// Silence of a random length up to three seconds.
pub fn random_silence(rng: &mut StdRng) -> Vec<Vec<u8>> {
    vec![vec![0xf8, 0xff, 0xfe]; rng.random_range(0..150)]
}

/// `cargo test --test it -- --ignored --nocapture restarts_in_a_rooms_call` prints the figures. `TIMES` sets how many restarts, half of them by SIGKILL.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn restarts_in_a_rooms_call_within_three_seconds_of_a_question_cost_no_answer() {
    let model = slow_model("I am here. I have been here all the time, and I listen.").await;
    let (times, mut rng) = (parameter("TIMES", 20), StdRng::seed_from_u64(parameter("SEED", 1)));
    for time in 0..times {
        let premises = model.serving(Premises::new());
        let server = premises.start().await;
        let mut watch = server.watch("lobby", Some(0)).await;
        let mut ana = Page::enter(&server, "lobby", "Ana").await;
        ana.say("Aria, are you there?").await;
        watch.event_that("message", |event| event["from"] == "Ana").await;
        let silence = random_silence(&mut rng);
        ana.talk(&silence).await;

        if time % 2 == 0 {
            server.kill().await
        } else {
            server.stop().await
        };
        let server = premises.start().await;
        let back = Instant::now();
        let mut watch = server.watch("lobby", Some(0)).await;
        let mut ana = Page::enter(&server, "lobby", "Ana").await;
        let answer = tokio::select! {
            answer = watch.event_that("message", |event| event["from"] == "aria") => answer,
            _ = ana.hear_replies() => unreachable!("it hears for ever"),
        };
        println!(
            "{} {:4} ms after the question: {} after {:.1} s: {}",
            if time % 2 == 0 { "killed" } else { "stopped" },
            silence.len() * 20,
            answer["modality"].as_str().unwrap_or("text"),
            back.elapsed().as_secs_f64(),
            answer["text"],
        );
        server.stop().await;
    }
    println!("{times} of {times} answers");
}
