//! Turns at a service that can end them, and at one that cannot.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::turns::Listening;
use crate::adapters::speech::conformance::{self, conformance};
use crate::adapters::speech::deepgram::Deepgram;
use crate::adapters::speech::deepgram::fake::{Books, Fake, Habits, KEY, frame};
use crate::adapters::speech::deepgram::stream::{Output, Protocol, Sent};
use crate::adapters::speech::deepgram::trial::{Dice, assert_whole, bad_habits, record, script};
use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::speech_recognition::{Expectation, Recognised, Sound, SpeechRecognition};

conformance!(recognition: flux().await);

async fn flux() -> Deepgram {
    let fake = Fake::new(Habits { latency_ms: (0, 0), ..Habits::default() }).await;
    let ears = at(&fake.url, "flux-general-en");
    std::mem::forget(fake);
    ears
}

fn at(url: &str, model: &str) -> Deepgram {
    Deepgram::flux(conformance::at(url, model, KEY)).unwrap()
}

fn ms(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

fn info(event: &str, words: &str, end: f64) -> String {
    let all: Vec<_> = words.split(' ').map(|word| format!(r#"{{"word":"{word}","confidence":0.5}}"#)).collect();
    let trigger = if event == "EndOfTurn" { r#","trigger":"model""# } else { "" };
    format!(
        r#"{{"type":"TurnInfo","event":"{event}","turn_index":0,"audio_window_start":0.0,"audio_window_end":{end},"transcript":"{words}",
        "words":[{}],"end_of_turn_confidence":0.5{trigger}}}"#,
        all.join(",")
    )
}

fn shown(results: Vec<Recognised>) -> Vec<String> {
    let shown = |result| match result {
        Recognised::Partial { text, .. } => format!("~{text}"),
        Recognised::Final(segment) => format!("{}{}", segment.text, if segment.is_last { "." } else { "" }),
    };
    results.into_iter().map(shown).collect()
}

/// A connection that got 2 s of audio.
fn listening(ends_turns: bool) -> Listening {
    let mut listening = Listening::new(ends_turns, true);
    let audio = Sound::Audio { from: ms(1_000), samples: vec![1; 32_000].into() };
    listening.sound(&audio, Instant::now(), &mut Output::default());
    listening
}

#[tokio::test]
async fn an_eager_end_is_none_and_a_resumed_turn_goes_on() {
    let (mut listening, mut out, now) = (listening(true), Output::default(), Instant::now());

    for (event, words, end) in [
        ("StartOfTurn", "hello", 0.5),
        ("EagerEndOfTurn", "hello", 0.8),
        ("TurnResumed", "hello there", 1.2),
        ("EndOfTurn", "hello there", 1.6),
    ] {
        listening.message(&info(event, words, end), now, &mut out).unwrap();
    }

    assert_eq!(shown(out.results), ["~hello", "~hello", "~hello there", "hello there"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_after_the_end_the_newest_update_is_final_and_a_later_end_gives_only_what_is_new() {
    let (mut listening, mut out) = (listening(false), Output::default());
    let now = Instant::now();
    listening.message(&info("Update", "hello there", 1.2), now, &mut out).unwrap();
    let stretch = Stretch { started: ms(1_000), ended: ms(2_700), voiced: Duration::from_millis(1_700) };
    listening.sound(&Sound::Ended(stretch), now, &mut out);
    assert_eq!(listening.deadline(), Some(now + Duration::from_secs(1)));

    listening.wake(now + Duration::from_secs(1), &mut out);
    listening.message(&info("EndOfTurn", "hello there you", 1.9), now, &mut out).unwrap();

    assert_eq!(shown(out.results), ["~hello there", "hello there.", "you"]);
}

#[tokio::test]
async fn a_server_that_cannot_end_turns_is_not_asked_a_second_time() {
    let fake = Fake::new(Habits { latency_ms: (0, 0), ends_turns: false, ..Habits::default() }).await;
    let ears = at(&fake.url, "flux-general-multi");
    let stretch = Stretch { started: ms(1_000), ended: ms(1_200), voiced: Duration::from_millis(200) };
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let (sounds, given) = mpsc::channel(64);
        let (results, mut returned) = mpsc::channel(64);
        for position in 0..10 {
            let from = ms(1_000 + 20 * u64::try_from(position).unwrap());
            sounds.send(Sound::Audio { from, samples: frame(1, position, 10).into() }).await.unwrap();
        }
        sounds.send(Sound::Ended(stretch)).await.unwrap();
        let expectation = Expectation { language: "de".into(), names: vec!["Aria".into()] };
        let hears = async {
            let mut finals = Vec::new();
            let mut sounds = Some(sounds);
            while let Some(result) = returned.recv().await {
                // The first word is there.
                sounds = None;
                finals.extend(shown(vec![result]).into_iter().filter(|shown| !shown.starts_with('~')));
            }
            drop(sounds);
            finals
        };
        let (outcome, finals) = tokio::join!(ears.listen(expectation, given, results), hears);
        outcomes.push((outcome.map_err(|error| error.code()), finals));
    }

    assert_eq!(outcomes[0].0, Err("overloaded"));
    assert_eq!(outcomes[1], (Ok(()), vec!["word1.".to_owned()]));
    let book = fake.books.open();
    assert_eq!(book.texts.iter().filter(|text| text.contains("ForceEndTurn")).count(), 1);
    assert_eq!(
        book.asked,
        "/v2/listen?model=flux-general-multi&encoding=linear16&sample_rate=16000&language_hint=de&keyterm=Aria"
    );
}

#[tokio::test(start_paused = true)]
async fn no_word_of_turns_with_cuts_is_lost_or_doubled() {
    for ends_turns in [true, false] {
        let (mut dice, books) = (Dice(0xf10c), Books::default());
        let script = script(100, &mut dice);
        let (words, stretches) = (script.words.clone(), script.stretches);
        let habits = || Habits { ends_turns: true, ..bad_habits(&mut dice) };

        let recorded = record(script, "/v2/listen", || Listening::new(ends_turns, true), habits, || false, &books).await;

        assert_whole(&recorded, &words, stretches);
        assert!(recorded.cuts > 10, "{} cuts", recorded.cuts);
    }
}

#[tokio::test(start_paused = true)]
async fn no_word_of_turns_whose_stream_is_taken_is_lost_or_doubled() {
    let (mut dice, mut takes, books) = (Dice(0xf10d), Dice(7), Books::default());
    let script = script(100, &mut dice);
    let (words, stretches) = (script.words.clone(), script.stretches);
    let habits = || Habits { cut_after: None, ends_turns: true, ..bad_habits(&mut dice) };

    let is_taken = || takes.between(0, 700) == 0;
    let recorded = record(script, "/v2/listen", || Listening::new(true, true), habits, is_taken, &books).await;

    assert_whole(&recorded, &words, stretches);
    assert!(recorded.cuts > 10, "{} cuts", recorded.cuts);
}

/// A message whose words have times.
fn timed(event: &str, words: &[(&str, f64, f64)], end: f64) -> String {
    let texts: Vec<_> = words.iter().map(|(word, ..)| *word).collect();
    words.iter().fold(info(event, &texts.join(" "), end), |message, (word, start, end)| {
        message.replacen(&format!(r#""word":"{word}","#), &format!(r#""word":"{word}","start":{start},"end":{end},"#), 1)
    })
}

/// The same message of the second turn.
fn second_turn(message: &str, start: f64) -> String {
    let begin = format!(r#""turn_index":1,"audio_window_start":{start}"#);
    message.replace(r#""turn_index":0,"audio_window_start":0.0"#, &begin)
}

fn manual(end_of_turn: &str) -> String {
    end_of_turn.replace(r#""trigger":"model""#, r#""trigger":"manual""#)
}

#[tokio::test]
async fn words_that_the_caller_cannot_repeat_do_not_wait_for_the_end_of_the_turn() {
    for partial_results in [true, false] {
        let (mut listening, mut out, now) = (Listening::new(true, partial_results), Output::default(), Instant::now());
        listening.sound(&Sound::Audio { from: ms(1_000), samples: vec![1; 6 * 16_000].into() }, now, &mut out);

        let words = [("one", 0.5, 1.0), ("two", 1.1, 1.5), ("three", 2.5, 3.0), ("four", 3.0, 3.5), ("five", 4.6, 5.0)];
        // The times of an update are not quite those of the end.
        let later = words.map(|(word, start, end)| (word, start + 0.1, end + 0.1));
        listening.message(&timed("Update", &words[..4], 6.0), now, &mut out).unwrap();
        listening.message(&timed("EndOfTurn", &later, 6.0), now, &mut out).unwrap();

        let partials: &[&str] = if partial_results { &["~one two three four"] } else { &[] };
        assert_eq!(shown(out.results), [partials, &["one two", "three four five"]].concat());
    }
}

#[tokio::test]
async fn a_turn_that_was_ended_on_request_before_all_was_transcribed_is_not_the_last_of_its_stretch() {
    let (mut listening, mut out, now) = (listening(true), Output::default(), Instant::now());
    let stretch = Stretch { started: ms(1_000), ended: ms(2_700), voiced: Duration::from_millis(1_700) };
    listening.sound(&Sound::Ended(stretch), now, &mut out);

    listening.message(&manual(&info("EndOfTurn", "hello", 1.4)), now, &mut out).unwrap();
    listening.message(&manual(&second_turn(&info("EndOfTurn", "there", 2.0), 1.4)), now, &mut out).unwrap();

    assert_eq!(shown(out.results), ["hello", "there."]);
}

#[tokio::test]
async fn words_without_times_lie_after_the_stretch_that_is_over() {
    let (mut listening, mut out, now) = (listening(true), Output::default(), Instant::now());
    let stretch = Stretch { started: ms(1_000), ended: ms(2_700), voiced: Duration::from_millis(1_700) };
    listening.sound(&Sound::Ended(stretch), now, &mut out);
    listening.message(&manual(&info("EndOfTurn", "hello there", 1.9)), now, &mut out).unwrap();
    listening.sound(&Sound::Audio { from: ms(60_000), samples: vec![1; 16_000].into() }, now, &mut out);

    listening.message(&second_turn(&info("EndOfTurn", "you", 3.0), 1.9), now, &mut out).unwrap();

    let Some(Recognised::Final(segment)) = out.results.pop() else { panic!("{:?}", out.results) };
    assert_eq!((&*segment.text, segment.started), ("you", ms(60_000)));
}

#[tokio::test]
async fn a_long_stretch_ends_turns_only_without_partial_results() {
    let stretch = Stretch { started: ms(1_000), ended: ms(3_000), voiced: Duration::from_secs(2) };
    let sent = [true, false].map(|partial_results| {
        let (mut listening, mut out) = (Listening::new(true, partial_results), Output::default());
        listening.sound(
            &Sound::Audio { from: ms(1_000), samples: vec![1; 32_000].into() },
            Instant::now(),
            &mut Output::default(),
        );
        listening.sound(&Sound::Cut(stretch), Instant::now(), &mut out);
        out.send
    });

    assert_eq!(sent, [vec![], vec![Sent::Text(r#"{"type":"ForceEndTurn"}"#)]]);
}

#[tokio::test(start_paused = true)]
async fn words_without_times_that_come_late_are_of_the_stretch_that_is_over() {
    let (mut listening, mut out, now) = (listening(false), Output::default(), Instant::now());
    let stretch = Stretch { started: ms(1_000), ended: ms(2_700), voiced: Duration::from_millis(1_700) };
    listening.sound(&Sound::Ended(stretch), now, &mut out);
    listening.message(&info("Update", "hello", 1.2), now, &mut out).unwrap();
    listening.wake(now + Duration::from_secs(1), &mut out);

    listening.message(&info("EndOfTurn", "hello there", 2.0), now, &mut out).unwrap();

    let Some(Recognised::Final(segment)) = out.results.last() else { panic!("{:?}", out.results) };
    assert!(&*segment.text == "there" && segment.started <= ms(3_000), "{segment:?}");
    assert_eq!(shown(out.results), ["~hello", "hello.", "there"]);
}

#[tokio::test(start_paused = true)]
async fn no_word_without_times_is_lost_or_doubled() {
    let (mut dice, books) = (Dice(0xf10e), Books::default());
    let script = script(100, &mut dice);
    let (words, stretches) = (script.words.clone(), script.stretches);
    let habits = || Habits { cut_after: None, ends_turns: true, has_word_times: false, ..bad_habits(&mut dice) };

    let recorded = record(script, "/v2/listen", || Listening::new(true, true), habits, || false, &books).await;

    assert_whole(&recorded, &words, stretches);
}

#[tokio::test]
async fn times_may_count_from_the_beginning_of_the_turn() {
    let (mut listening, mut out, now) = (listening(true), Output::default(), Instant::now());
    listening.message(&info("EndOfTurn", "hello", 1.2), now, &mut out).unwrap();
    let words = [("there", 0.1, 0.3), ("you", 0.4, 0.6)];

    listening.message(&second_turn(&timed("EndOfTurn", &words, 2.0), 1.2), now, &mut out).unwrap();

    let Some(Recognised::Final(segment)) = out.results.last() else { panic!("{:?}", out.results) };
    assert_eq!((&*segment.text, segment.started), ("there you", ms(2_300)));
}
