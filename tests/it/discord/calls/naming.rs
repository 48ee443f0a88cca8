//! Everybody is heard under the own name.

use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::time::Duration;

use axum::body::Bytes;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;
use tertulia::adapters::audio::opus;
use tertulia::adapters::speech::rehearsal::Voice;
use tertulia::ports::audio::{Encoder, SPOKEN_FRAME, SPOKEN_RATE};
use tokio::time::timeout;

use super::super::counterpart::voice::{Person, Speaking};
use super::{Scene, rules};
use crate::harness::{PATIENCE, serve};

/// Names with the tone, in hertz, that is mixed into the person's voice.
const TONES: [(&str, f64); 3] = [("Ana", 2600.0), ("Ben", 3100.0), ("Cleo", 3700.0)];

#[tokio::test]
async fn three_who_talk_at_once_are_named_whatever_the_server_says_of_who_speaks() {
    // An ear that writes whose tone it hears.
    let whose = async |body: Bytes| Json(json!({ "text": whose_tone(&body) }));
    let ear = serve(Router::new().route("/v1/audio/transcriptions", post(whose))).await;
    let scene = Scene::with(rules(), |premises| {
        let premises = premises.with("speech.recognition", r#"["ear"]"#).with("speech.services.ear.api", "openai");
        premises.with("speech.services.ear.base_url", &format!("{ear}/v1")).with("speech.services.ear.model", "whisper-1")
    });
    let scene = scene.await;
    let Scene { home, harbour, .. } = &scene;
    let [ben, cleo] = ["Ben", "Cleo"].map(|name| home.discord.member(home.guild, name));
    let mut watch = scene.watch(*harbour).await;
    let ana = scene.call(home.ana, *harbour).await;
    let voice = home.discord.voice();
    voice.set_speaking(*harbour, home.ana, Speaking::Names(ben));
    voice.set_speaking(*harbour, ben, Speaking::Missing);
    voice.set_speaking(*harbour, cleo, Speaking::Late(Duration::from_secs(1)));
    let ben = home.discord.call(ben, *harbour).await;
    let cleo = home.discord.call(cleo, *harbour).await;
    for person in [&ana, &ben, &cleo] {
        person.grouped(4).await;
    }
    // In any order.
    let mut entering = BTreeSet::from(TONES.map(|(name, _)| name));
    while !entering.is_empty() {
        let event = watch.event("voice_joined").await;
        entering.remove(event["name"].as_str().expect("a name"));
    }

    // A machine that stalls loses speech, so they talk until each was heard.
    let talking = async |person: &Person, (name, tone)| {
        let speech = speech(name, tone);
        loop {
            person.talk(&speech).await;
        }
    };
    let all_heard = async {
        let mut unheard = BTreeSet::from(TONES.map(|(name, _)| name));
        while !unheard.is_empty() {
            let segment = watch.event_that("segment", |event| event["kind"] == "words").await;
            let (from, whose) = (&segment["from"], segment["text"].as_str().expect("text"));
            assert_eq!(from, whose, "each is heard under their own name");
            unheard.remove(whose);
        }
    };
    tokio::select! {
        heard = timeout(PATIENCE, all_heard) => heard.expect("each is heard in time"),
        () = talking(&ana, TONES[0]) => {}
        () = talking(&ben, TONES[1]) => {}
        () = talking(&cleo, TONES[2]) => {}
    }
}

/// Packets with a few words and a pause, in a voice with this tone.
fn speech(name: &str, tone: f64) -> Vec<Vec<u8>> {
    let said = Voice::of(name, 1.0).speak("So let us walk along the wall.").flatten();
    let pause = std::iter::repeat_n(0, SPOKEN_RATE as usize * 2);
    let with_tone = |(at, sample): (usize, i16)| {
        let turn = at as f64 * tone / f64::from(SPOKEN_RATE);
        sample / 2 + ((turn * TAU).sin() * 2000.0) as i16
    };
    let samples: Vec<i16> = said.enumerate().map(with_tone).chain(pause).collect();
    let mut encoder = opus::Encoder::new().expect("an encoder");
    let frames = samples.as_chunks::<SPOKEN_FRAME>().0;
    frames.iter().map(|frame| encoder.encode(frame).expect("a packet")).collect()
}

/// The name of the person whose tone is loudest in a form with a WAV file of 16 kHz (Goertzel's algorithm, in frames of 20 ms).
fn whose_tone(form: &[u8]) -> &'static str {
    let head = form.windows(4).position(|bytes| bytes == b"RIFF").expect("a WAV file") + 44;
    let samples: Vec<f64> = form[head..].as_chunks().0.iter().map(|pair| f64::from(i16::from_le_bytes(*pair))).collect();
    let loudness = |tone: f64| {
        let factor = 2.0 * (TAU * tone / 16_000.0).cos();
        let power = |frame: &[f64]| {
            let (last, before) = frame.iter().fold((0.0, 0.0), |(last, before), sample| (sample + factor * last - before, last));
            last * last + before * before - factor * last * before
        };
        samples.chunks_exact(320).map(power).sum::<f64>()
    };
    TONES.into_iter().max_by(|(_, one), (_, other)| loudness(*one).total_cmp(&loudness(*other))).expect("three").0
}
