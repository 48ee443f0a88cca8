use std::f64::consts::TAU;

use super::*;
use crate::ports::audio::Encoder as _;

/// A packet of libopus, and what libopus decodes of it, if that is stored.
struct Stored {
    packet: Vec<u8>,
    samples: Vec<i16>,
}

pub(super) const VECTORS: [(&str, &[u8]); 4] = [
    ("browser", include_bytes!("vectors/browser.vector")),
    ("stereo", include_bytes!("vectors/stereo.vector")),
    ("fec", include_bytes!("vectors/fec.vector")),
    ("hybrid", include_bytes!("vectors/hybrid.vector")),
];

/// The packets of a vector (vectors/make.mjs).
fn read(mut bytes: &[u8]) -> Vec<Stored> {
    let mut stored = Vec::new();
    let mut take = |size: usize| {
        let (head, rest) = bytes.split_at_checked(2)?;
        let (taken, rest) = rest.split_at(size * usize::from(u16::from_le_bytes([head[0], head[1]])));
        bytes = rest;
        Some(taken)
    };
    while let (Some(packet), Some(samples)) = (take(1), take(2)) {
        let samples = samples.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        stored.push(Stored { packet: packet.to_vec(), samples });
    }
    stored
}

/// Packets of a vector from one on, each with its length before it.
pub(super) fn stream(bytes: &[u8], first: usize, count: usize) -> Vec<u8> {
    let packets = read(bytes).into_iter().map(|stored| stored.packet).skip(first).take(count);
    packets.flat_map(|packet| [&(packet.len() as u16).to_le_bytes()[..], &packet].concat()).collect()
}

/// How much stronger the signal is than what is added to it, in decibels.
fn snr(signal: &[i16], heard: &[i16]) -> f64 {
    let noise: f64 = signal.iter().zip(heard).map(|(one, other)| (f64::from(*one) - f64::from(*other)).powi(2)).sum();
    10.0 * (energy(signal) / noise.max(1e-9)).log10()
}

fn energy(samples: &[i16]) -> f64 {
    samples.iter().map(|sample| f64::from(*sample).powi(2)).sum()
}

pub(crate) fn packets_of(name: &str) -> Vec<Vec<u8>> {
    let (_, bytes) = VECTORS.iter().find(|(of, _)| *of == name).expect("a vector");
    read(bytes).into_iter().map(|stored| stored.packet).collect()
}

#[test]
fn what_libopus_encodes_is_decoded_as_by_libopus() {
    for (name, bytes) in VECTORS {
        let (mut decoder, mut theirs, mut ours) = (Decoder::new().unwrap(), Vec::new(), Vec::new());
        for (number, stored) in (0..).zip(read(bytes)) {
            let decoded = decoder.decode(number, &stored.packet).unwrap();
            assert_eq!((decoded.first, decoded.concealed, decoded.samples.len()), (number, 0, HEARD_FRAME));
            if !stored.samples.is_empty() {
                ours.extend_from_slice(decoded.samples);
                theirs.extend(stored.samples);
            }
        }

        let snr = snr(&theirs, &ours);
        println!("{name}: {snr:.1} dB over {} samples", theirs.len());
        assert!(theirs.len() >= 6 * HEARD_FRAME && snr >= 60.0, "{name}: {snr} dB");
    }
}

#[test]
fn up_to_three_lost_frames_are_concealed_and_more_are_a_gap() {
    let packets = packets_of("browser");

    for lost in 0..=5_u32 {
        let mut decoder = Decoder::new().unwrap();
        let last = 69;
        let mut before = 0.0;
        for number in 0..=last {
            before = energy(decoder.decode(number, &packets[number as usize]).unwrap().samples);
        }
        let number = last + lost + 1;
        let decoded = decoder.decode(number, &packets[number as usize]).unwrap();

        let concealed = if lost <= MOST_CONCEALED { lost } else { 0 };
        assert_eq!((decoded.first, decoded.concealed), (number - concealed, concealed), "{lost} lost");
        assert_eq!(decoded.samples.len(), (concealed as usize + 1) * HEARD_FRAME);
        if concealed > 0 {
            let first = energy(&decoded.samples[..HEARD_FRAME]);
            assert!(first > before / 30.0 && first < before * 30.0, "{lost} lost: {first} after {before}");
        }
    }
}

#[test]
fn a_lost_frame_is_restored_from_the_packet_after_it() {
    let packets = packets_of("fec");
    let decode = |skipped: Option<u32>| {
        let mut decoder = Decoder::new().unwrap();
        let numbers = (0..packets.len() as u32).filter(|number| Some(*number) != skipped);
        numbers.flat_map(|number| decoder.decode(number, &packets[number as usize]).unwrap().samples.to_vec()).collect::<Vec<_>>()
    };
    let whole = decode(None);

    let restored = decode(Some(30));

    assert_eq!(restored.len(), whole.len());
    let lost = 30 * HEARD_FRAME..31 * HEARD_FRAME;
    let snr = snr(&whole[lost.clone()], &restored[lost]);
    println!("restored with {snr:.1} dB");
    assert!(snr > 3.0, "{snr} dB");
}

#[test]
fn a_packet_that_is_no_frame_of_20_ms_is_refused_and_the_next_one_is_decoded() {
    let packets = packets_of("browser");
    let mut decoder = Decoder::new().unwrap();
    decoder.decode(7, &packets[0]).unwrap();

    // The first byte: 5 bits of configuration, stereo, 2 bits for the number of frames.
    for (packet, expected) in [
        (&[][..], "empty"),
        (&[0x78; MOST_BYTES + 1], "1276 bytes"),
        (&[2 << 3, 0], "40 ms"),
        (&[30 << 3, 0], "10 ms"),
        (&[31 << 3 | 1, 0, 0], "40 ms"),
        (&[31 << 3 | 3, 0], " 0 ms"),
        (&[31 << 3 | 3], "not valid Opus"),
        // Two frames of 10 ms, of which the first is longer than the packet.
        (&[30 << 3 | 2, 250, 0], "not valid Opus"),
    ] {
        let refused = decoder.decode(8, packet).unwrap_err();
        assert!(matches!(&refused, PacketRefused::Malformed(text) if text.contains(expected)), "{packet:?}: {refused}");
    }
    for late in [0, 7] {
        let text = format!("the Opus packet {late} comes too late: 8 is the next one");
        assert_eq!(decoder.decode(late, &packets[0]).unwrap_err(), PacketRefused::Late(text));
    }
    let decoded = decoder.decode(9, &packets[1]).unwrap();
    assert_eq!((decoded.first, decoded.concealed), (8, 1));
}

#[test]
fn a_silence_frame_of_discord_is_a_frame() {
    let mut decoder = Decoder::new().unwrap();

    let decoded = decoder.decode(0, &[0xf8, 0xff, 0xfe]).unwrap();

    assert_eq!(decoded.samples, [0; HEARD_FRAME]);
}

#[test]
fn what_is_encoded_can_be_heard_again() {
    let (mut encoder, mut decoder) = (Encoder::new().unwrap(), ropus::Decoder::new(SPOKEN_RATE, Channels::Mono).unwrap());
    let sample = |at: usize| {
        let secs = at as f64 / f64::from(SPOKEN_RATE);
        let partials = (1..20).map(|partial| (TAU * 140.0 * f64::from(partial) * secs).sin() / f64::from(partial));
        (3_000.0 * partials.sum::<f64>() * (0.6 + 0.4 * (TAU * 3.0 * secs).sin())) as i16
    };
    let said: Vec<i16> = (0..SPOKEN_FRAME * 100).map(sample).collect();

    let (mut heard, mut bytes) = (Vec::new(), 0);
    for frame in said.as_chunks().0 {
        let packet = encoder.encode(frame).unwrap();
        assert!((1..=MOST_BYTES).contains(&packet.len()));
        assert_eq!(check(&packet), Ok(()));
        bytes += packet.len();
        let mut frame = [0; SPOKEN_FRAME];
        decoder.decode(&packet, &mut frame, DecodeMode::Normal).unwrap();
        heard.extend(frame);
    }

    let kbit_per_sec = bytes as f64 * 8.0 / 1_000.0 / 2.0;
    assert!((16.0..=38.0).contains(&kbit_per_sec), "{kbit_per_sec} kbit/s");
    let settled = &said[SPOKEN_FRAME * 25..SPOKEN_FRAME * 90];
    let best = (0..SPOKEN_FRAME).map(|delay| snr(settled, &heard[SPOKEN_FRAME * 25 + delay..])).fold(f64::MIN, f64::max);
    println!("{kbit_per_sec:.1} kbit/s, {best:.1} dB");
    assert!(best > 3.0, "{best} dB");
}

#[test]
fn loud_noise_is_encoded_within_the_longest_packet() {
    let mut encoder = Encoder::new().unwrap();
    let mut state = 1_u64;

    for _ in 0..50 {
        let frame = std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 63 == 1 { i16::MAX } else { i16::MIN }
        });
        assert!((1..=MOST_BYTES).contains(&encoder.encode(&frame).unwrap().len()));
    }
}
