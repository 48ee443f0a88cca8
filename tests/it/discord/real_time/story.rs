//! A companion that tells a story of ten minutes when it is asked for one.

use tertulia::adapters::speech::rehearsal::Voice;

use crate::harness::Premises;
use crate::harness::model::{Model, prompt};

/// What it is asked with, in writing.
pub const ASK: &str = "Aria, tell us more.";
const PARTS: usize = 120;

/// A server with that companion, which never speaks unasked.
pub async fn premises() -> Premises {
    let model = Model::start(|body| match body["model"].as_str() {
        Some("main") => sentences().collect::<Vec<_>>().join(" "),
        _ if prompt(body).contains(ASK) => "They ask me.\nYES".to_owned(),
        _ => "Not mine.\nNO".to_owned(),
    })
    .await;
    let premises = Premises::shipped().with_companion("aria", "name = \"Aria\"\ninterjection = \"very_quiet\"\n");
    model.serving(premises).with("voice.max_spoken_chars", "10000").with("repetition.enabled", "false")
}

pub fn sentences() -> impl Iterator<Item = String> {
    (1..=PARTS).map(|part| format!("This is part {part} of a long story about people who meet in a café and talk."))
}

/// The voice in which it is told.
pub fn voice() -> Voice {
    Voice::of("aria", 1.0)
}
