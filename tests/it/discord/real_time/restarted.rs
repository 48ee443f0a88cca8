//! The server is restarted while a companion prepares a spoken answer, or gives it.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::super::calls::with_ear;
use super::call::{Call, rules};
use crate::harness::call::sentence;
use crate::harness::{Premises, parameter};
use crate::speech::restarting::{random_silence, slow_model};

/// `cargo test --test it -- --ignored --nocapture restarts_in_a_voice_channel` prints the figures. `TIMES` sets how many restarts, half of them by SIGKILL.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes three minutes"]
async fn restarts_in_a_voice_channel_within_three_seconds_of_a_question_cost_no_answer() {
    let model = slow_model("I am here. I have been here all the time, and I listen.").await;
    let (times, mut rng) = (parameter("TIMES", 20), StdRng::seed_from_u64(parameter("SEED", 2)));
    for time in 0..times {
        let mut call = Call::begin(rules(), with_ear(&model).await(Premises::shipped())).await;
        let ana = call.enter().await;
        ana.talk(&sentence()).await;
        let asked = call.watch.event_that("message", |event| event["modality"] == "voice").await;
        let silence = random_silence(&mut rng);
        ana.talk(&silence).await;

        let Call { home, channel, server, premises, .. } = call;
        if time % 2 == 0 {
            server.kill().await
        } else {
            server.stop().await
        };
        let server = premises.start().await;
        let back = Instant::now();
        let mut watch = server.watch(&format!("discord:{channel}"), asked["seq"].as_u64()).await;
        let answer = watch.event_that("message", |event| event["from"] == "aria").await;
        println!(
            "{} {:4} ms after the question: {} after {:.1} s: {}",
            if time % 2 == 0 { "killed" } else { "stopped" },
            silence.len() * 20,
            answer["modality"].as_str().unwrap_or("text"),
            back.elapsed().as_secs_f64(),
            answer["text"],
        );
        drop((ana, home));
        server.stop().await;
    }
    println!("{times} of {times} answers");
}
