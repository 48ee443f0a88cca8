use std::f64::consts::TAU;

use super::*;
use crate::adapters::audio::opus;
use crate::adapters::speech::rehearsal::Voice;
use crate::domain::moment::Moment;
use crate::domain::voice::speech::{HOP, Pulse, Speech, VOICED_SCORE};
use crate::ports::audio::{HEARD_FRAME, HEARD_RATE};

fn scores(samples: &[i16]) -> Vec<Score> {
    let (mut detector, mut scores) = (Detector::default(), Vec::new());
    detector.score(samples, |score| scores.push(score));
    scores
}

/// What the domain makes of the scores.
fn pulses(samples: &[i16]) -> Vec<Pulse> {
    let mut speech = Speech::default();
    let at = |samples: u64| Moment::from_micros(samples * 1_000_000 / u64::from(HEARD_RATE));
    let mut pulses: Vec<Pulse> = scores(samples).iter().filter_map(|score| speech.hop(at(score.from), score.score)).collect();
    pulses.extend(speech.stop());
    pulses
}

fn onsets(samples: &[i16]) -> Vec<Moment> {
    let started = |pulse| match pulse {
        Pulse::Started { started, .. } => Some(started),
        _ => None,
    };
    pulses(samples).into_iter().filter_map(started).collect()
}

/// Speech of espeak-ng, which begins after 0.3 s of silence and ends 0.2 s before the end.
fn speech() -> Vec<i16> {
    let mut decoder = opus::Decoder::new().unwrap();
    let packets = opus::tests::packets_of("browser");
    (0..).zip(packets).flat_map(|(number, packet)| decoder.decode(number, &packet).unwrap().samples.to_vec()).collect()
}

#[test]
fn a_hop_of_the_detector_is_a_hop_of_the_domain() {
    assert_eq!(HOP.as_micros() as usize * HEARD_RATE as usize, HOP_SAMPLES * 1_000_000);
}

#[test]
fn samples_are_scored_hop_by_hop_in_whatever_pieces_they_come() {
    let samples = speech();
    let whole = scores(&samples);

    assert_eq!(whole.len(), samples.len() / HOP_SAMPLES);
    for piece in [1, 100, 255, 256, 257, HEARD_FRAME, 5_000] {
        let (mut detector, mut pieces) = (Detector::default(), Vec::new());
        samples.chunks(piece).for_each(|piece| detector.score(piece, |score| pieces.push(score)));
        assert_eq!(pieces, whole, "in pieces of {piece}");
    }
    assert!(whole.iter().zip(0..).all(|(score, hop)| score.from == hop * 256 && (0.0..=1.0).contains(&score.score)));
}

#[test]
fn a_reset_detector_is_as_new() {
    let samples = speech();
    let mut detector = Detector::default();
    detector.score(&samples[..20_001], |_| {});

    detector.reset();
    let mut again = Vec::new();
    detector.score(&samples, |score| again.push(score));

    assert_eq!(again, scores(&samples));
}

#[test]
fn speech_is_found_where_it_is() {
    let samples = speech();
    // Louder than −45 dBFS.
    let is_loud = |hop: &[i16]| hop.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() > 256.0 * 184.0 * 184.0;
    let loud: Vec<usize> = (0..).zip(samples.chunks_exact(256)).filter(|(_, hop)| is_loud(hop)).map(|(hop, _)| hop).collect();
    let secs = |hop: usize| hop as f64 * 0.016;
    let (begins, ends) = (secs(loud[0]), secs(loud[loud.len() - 1] + 1));

    let onsets = onsets(&samples);
    let pulses = pulses(&samples);

    let Some(Pulse::Ended(stretch)) = pulses.last() else { panic!("{pulses:?}") };
    let (started, ended) = (onsets[0].as_secs_f64(), stretch.ended.as_secs_f64());
    println!("speech from {begins:.3} to {ends:.3} s, found from {started:.3} to {ended:.3} s, {} onsets", onsets.len());
    assert!((started - begins).abs() < 0.1 && (ended - ends).abs() < 0.15, "{started} to {ended} instead of {begins} to {ends}");
}

#[test]
fn silence_a_tone_and_noise_are_no_speech() {
    let count = 16_000 * 4;
    let mut state = 1_u64;
    let noise: Vec<i16> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 52) as i16 - 2_048
        })
        .collect();
    let tone: Vec<i16> = (0..count).map(|at| (6_000.0 * (TAU * 1_000.0 * f64::from(at) / 16_000.0).sin()) as i16).collect();

    let late = |samples: &[i16]| onsets(samples).into_iter().filter(|onset| onset.as_secs_f64() > 0.1).collect::<Vec<_>>();
    assert_eq!((onsets(&[0; 16_000 * 4]), onsets(&tone)), (vec![], vec![]));
    // That noise begins may sound like speech for a moment.
    assert_eq!(late(&noise), []);
    assert_eq!(late(&[noise, speech()].concat()).len(), 1);
}

#[test]
fn the_built_in_voice_is_speech_to_the_detector() {
    for id in ["aria", "bruno", "mira", "kai"] {
        let said: Vec<i16> =
            Voice::of(id, 1.0).speak("So let us walk along the wall and look at the new houses.").flatten().collect();
        // From 24 kHz to 16 kHz: good enough for a detector.
        let heard: Vec<i16> = (0..said.len() * 2 / 3).map(|at| said[at * 3 / 2]).collect();

        let scores = scores(&heard);
        let voiced = scores.iter().filter(|score| score.score >= VOICED_SCORE).count();
        let share = voiced as f64 / scores.len() as f64;
        println!("{id}: {share:.2} of the hops");
        assert!(share > 0.5, "{id}: {share}");
    }
}
