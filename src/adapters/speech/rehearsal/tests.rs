use std::collections::BTreeSet;

use super::*;

const EVENING: &str = "Good evening, everyone. I have been listening for a while, and I think I understand what you mean. The old harbour was never \
    really closed, was it? People kept going there in summer, with bread and a little wine, and they watched the boats come in. So let us not hurry! \
    Tomorrow we could walk along the wall, look at the new houses, and decide whether the plan makes sense.";

fn spoken(id: &str, text: &str) -> Vec<i16> {
    Voice::of(id, 1.0).speak(text).flatten().collect()
}

/// How long the audio of a text is.
fn lasts(voice: Voice, text: &str) -> Duration {
    Duration::from_millis(20) * voice.speak(text).count() as u32
}

/// The root of the mean square, in decibels below full scale.
fn level(samples: &[i16]) -> f64 {
    let square: f64 = samples.iter().map(|sample| (f64::from(*sample) / 32_768.0).powi(2)).sum();
    10.0 * (square / samples.len() as f64).max(1e-12).log10()
}

#[test]
fn every_voice_is_as_loud_as_speech_and_never_distorts_or_clicks() {
    let (text, _) = EVENING.split_at(EVENING.find(" The old").unwrap());
    for number in 0..10 {
        let id = format!("companion{number}");
        let samples = spoken(&id, text);

        let peak = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
        let mean = samples.iter().map(|sample| f64::from(*sample)).sum::<f64>() / samples.len() as f64;
        let jump = samples.windows(2).map(|pair| (i32::from(pair[0]) - i32::from(pair[1])).abs()).max().unwrap();
        let seen = format!("{:?}: {:.1} dBFS, peak {peak}, mean {mean:.1}, jump {jump}", Voice::of(&id, 1.0), level(&samples));
        println!("{seen}");
        assert!((-22.0..=-18.5).contains(&level(&samples)), "{seen}");
        // −3 dBFS.
        assert!(peak < 23_198, "{seen}");
        assert!(mean.abs() < 20.0, "{seen}");
        // A pulse of the voice is a fifth of full scale in one sample at most.
        assert!(jump < 6_600, "{seen}");
    }
}

/// Writes it to the file of `TERTULIA_WAV`, if that is set.
#[test]
fn a_minute_of_the_voice_is_as_long_as_planned() {
    let text = EVENING.repeat(2);
    let voice = Voice::of("mira", 1.0);
    let samples: Vec<u8> = voice.speak(&*text).flatten().flat_map(i16::to_le_bytes).collect();

    let end = voice.words(&*text).last().unwrap().end;
    assert!((200..=400).contains(&(duration(samples.len() as u64 / 2) - end).as_millis()));
    let Some(path) = std::env::var_os("TERTULIA_WAV") else { return };
    let size = samples.len() as u32;
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // PCM, mono, 24 kHz, 48,000 bytes a second, 2 bytes a sample of 16 bits.
    let format = words(&[16, 1 << 16 | 1, SAMPLE_RATE, SAMPLE_RATE * 2, 16 << 16 | 2]);
    let parts = [&b"RIFF"[..], &words(&[36 + size]), b"WAVEfmt ", &format, b"data", &words(&[size]), &samples];
    std::fs::write(path, parts.concat()).expect("the file of TERTULIA_WAV");
}

#[test]
fn a_text_begins_and_ends_in_silence() {
    let samples = spoken("aria", "So it is.");

    assert!(samples[0].abs() < 10, "{}", samples[0]);
    let (end, before) = (&samples[samples.len() - 2_400..], &samples[samples.len() - 9_600..samples.len() - 7_200]);
    assert!(level(end) < -80.0 && level(before) > -40.0, "{} after {}", level(end), level(before));
}

#[test]
fn people_speak_at_two_and_a_half_words_a_second_with_different_voices() {
    let ids: Vec<String> = (0..40).map(|number| format!("companion{number}")).collect();
    let pace = |id: &String| EVENING.split_whitespace().count() as f64 / lasts(Voice::of(id, 1.0), EVENING).as_secs_f64();

    let paces: Vec<f64> = ids.iter().step_by(10).map(pace).collect();
    let pitches: BTreeSet<u64> = ids.iter().map(|id| Voice::of(id, 1.0).pitch as u64).collect();

    let mean = paces.iter().sum::<f64>() / paces.len() as f64;
    assert!((2.3..=2.7).contains(&mean), "{mean} words a second");
    assert!(paces.iter().all(|pace| (2.1..=2.9).contains(pace)), "{paces:?}");
    assert!(pitches.len() > 25 && pitches.iter().all(|pitch| (95..=215).contains(pitch)), "{pitches:?}");
    assert_eq!(Voice::of("aria", 1.0), Voice::of("aria", 1.0));
}

#[test]
fn speed_changes_the_duration_and_not_the_pitch() {
    let lasts = |speed| lasts(Voice::of("aria", speed), EVENING).as_secs_f64();
    let [half, normal, double] = [0.5, 1.0, 2.0].map(lasts);

    assert!((double / normal - 0.5).abs() < 0.01 && (half / normal - 2.0).abs() < 0.01);
    assert_eq!(lasts(f64::NAN), normal);
    assert_eq!(lasts(1e9), double);
    assert_eq!(Voice::of("aria", 2.0).pitch, Voice::of("aria", 0.5).pitch);
}

#[test]
fn word_times_are_those_of_the_audio() {
    let text = "Mama, oho! 東京は 7";
    let voice = Voice::of("aria", 1.0);
    let words: Vec<WordTime> = voice.words(text).collect();
    let samples = spoken("aria", text);

    let ends: Vec<&str> = words.iter().map(|word| &text[..word.text_end]).collect();
    assert_eq!(ends, ["Mama,", "Mama, oho!", "Mama, oho! 東", "Mama, oho! 東京", "Mama, oho! 東京は", text]);
    let at = |time: Duration| time.as_micros() as usize * 24 / 1_000;
    for (word, next) in words.iter().zip(words.iter().skip(1)) {
        assert!(level(&samples[at(word.start)..at(word.end)]) > -30.0, "{word:?} is heard");
        if next.start > word.end {
            let late = at(next.start) - 480..at(next.start);
            assert!(level(&samples[late]) < -55.0, "between {word:?} and {next:?} is silence");
        }
    }
    let last = words.last().unwrap();
    assert!(last.end + Duration::from_millis(200) < duration(samples.len() as u64));
}

#[test]
fn any_text_is_spoken() {
    let voice = Voice::of("", 1.0);
    let count = |text: &str| voice.speak(text).count() as u32;

    for blank in ["", " \n\t", "\u{a0}"] {
        assert_eq!(count(blank), 0, "{blank:?}");
    }
    for text in [
        "a",
        "?!",
        "👍🏽",
        "— …",
        "3.14 €",
        "brr",
        "ß",
        "ʘ",
        "สวัสดีอาเรีย",
        "안녕하세요",
        "привет, мир",
        "مرحبا",
        "e\u{301}t\u{301}",
        "\u{200d}",
    ] {
        assert!(count(text) >= 10, "{text:?}");
        assert!(voice.words(text).all(|word| word.end <= lasts(voice, text)));
    }
}

#[test]
fn a_text_without_end_is_planned_in_a_moment() {
    let voice = Voice::of("aria", 1.0);

    for piece in ["a", "ab", "a ", "東", "\u{301}", "— ", "👍", ".", " "] {
        let text: Arc<str> = piece.repeat(if piece == "ab" { 1 << 19 } else { 1 << 14 }).into();
        assert!(voice.words(text.clone()).all(|word| word.end - word.start < Duration::from_secs(10)), "{piece:?}");
        assert!(voice.speak(text).take(3).flatten().all(|sample| sample.unsigned_abs() < 23_198));
    }
}

#[test]
fn the_words_of_unrecognised_speech_are_its_duration() {
    assert_eq!(unrecognised(Duration::from_micros(2_345_678)), "(speech, 2.3 s)");
    assert_eq!(unrecognised(Duration::from_millis(960)), "(speech, 1.0 s)");
}
