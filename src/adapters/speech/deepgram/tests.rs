//! The traps of the protocol, over a socket of the test's own or the fake on loopback.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::fake::{Books, Fake, Habits, KEY, frame, serve};
use super::results::Listening;
use super::stream::{Output, Protocol, Sent, run};
use super::{CLOSING, Deepgram, MAX_MESSAGE_BYTES};
use crate::adapters::endpoint::failure::Failures;
use crate::adapters::speech::conformance::{at, conformance};
use crate::adapters::speech::service::At;
use crate::adapters::speech::trial::try_recognition;
use crate::adapters::web_socket::WebSocket;
use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};

conformance!(recognition: deepgram(Habits { answers_nothing: true, ..quick() }).await);

fn quick() -> Habits {
    Habits { latency_ms: (0, 0), ..Habits::default() }
}

/// Ears at a fake of their own, which lives as long as the test.
async fn deepgram(habits: Habits) -> Deepgram {
    let fake = Fake::new(habits).await;
    let ears = Deepgram::new(at(&fake.url, "nova-3", KEY)).unwrap();
    std::mem::forget(fake);
    ears
}

fn ms(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

fn stretch(started: u64, ended: u64) -> Stretch {
    Stretch { started: ms(started), ended: ms(ended), voiced: Duration::from_millis(ended - started) }
}

/// Sounds that a test gives to a connection in paused time, and what it returns.
struct Call {
    sounds: mpsc::Sender<Sound>,
    results: mpsc::Receiver<Recognised>,
    outcome: tokio::task::JoinHandle<Result<(), NoAnswer>>,
    books: Books,
    begin: Instant,
}

impl Call {
    fn new(habits: Habits) -> Self {
        let (sounds, given) = mpsc::channel(512);
        let (results, returned) = mpsc::channel(64);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let books = Books::default();
        let book = books.clone();
        tokio::spawn(async move {
            serve(WebSocketStream::from_raw_socket(theirs, Role::Server, None).await, "/v1/listen", habits, book).await;
        });
        let outcome = tokio::spawn(async move {
            let failures = Failures::new("fake".into(), None);
            let mut listening = Listening::default();
            run(WebSocket::over(ours, MAX_MESSAGE_BYTES), &mut listening, given, &results, &failures, CLOSING).await
        });
        Self { sounds, results: returned, outcome, books, begin: Instant::now() }
    }

    /// Says words of 200 ms from this moment on, without the end of the stretch. Returns the end.
    async fn says(&mut self, from: u64, words: std::ops::Range<i16>) -> u64 {
        let mut moment = from;
        for word in words {
            for position in 0..10 {
                self.sends(moment, frame(word, position, 10)).await;
                moment += 20;
            }
        }
        moment
    }

    async fn sends(&mut self, from: u64, samples: Vec<i16>) {
        // Nobody takes them after a cut.
        let _ = self.sounds.send(Sound::Audio { from: ms(from), samples: samples.into() }).await;
        sleep(Duration::from_millis(20)).await;
    }

    async fn is_silent(&mut self, from: u64, packets: u64) {
        for packet in 0..packets {
            self.sends(from + 20 * packet, frame(0, 0, 0)).await;
        }
    }

    async fn ends(&mut self, started: u64, ended: u64) {
        self.sounds.send(Sound::Ended(stretch(started, ended))).await.unwrap();
    }

    /// The next final, and after how many milliseconds of the call.
    async fn next(&mut self) -> (Segment, u128) {
        loop {
            match self.results.recv().await.expect("it listens") {
                Recognised::Final(segment) => return (segment, self.begin.elapsed().as_millis()),
                Recognised::Partial { .. } => {}
            }
        }
    }

    async fn text(&mut self) -> (String, bool) {
        let (segment, _) = self.next().await;
        (segment.text.to_string(), segment.is_last)
    }

    /// The finals until the connection ends, and how it does.
    async fn closes(mut self) -> (Vec<(String, bool)>, Result<(), NoAnswer>) {
        drop(self.sounds);
        let mut finals = Vec::new();
        while let Some(result) = self.results.recv().await {
            if let Recognised::Final(segment) = result {
                finals.push((segment.text.to_string(), segment.is_last));
            }
        }
        (finals, self.outcome.await.unwrap())
    }
}

fn said(text: &str, is_last: bool) -> (String, bool) {
    (text.to_owned(), is_last)
}

#[tokio::test(start_paused = true)]
async fn a_finalize_without_an_answer_is_closed_after_a_second_and_asked_again() {
    let mut call = Call::new(Habits { unanswered: 1.0, ..quick() });
    let ended = call.says(1_000, 1..3).await;
    // No silence follows, so the endpoint does not come.
    call.ends(1_000, ended).await;

    let (empty, after) = call.next().await;
    let late = call.text().await;

    assert_eq!((&*empty.text, empty.is_last, after), ("", true, 1_400));
    // Nothing of it is covered, so that it is recognised again if the connection fails.
    assert_eq!(empty.ended, ms(1_000));
    assert_eq!(late, said("word1 word2", false));
    assert_eq!(call.books.open().texts.iter().filter(|text| text.contains("Finalize")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_service_has_not_answered_says_so() {
    let nothing =
        r#"{"type":"Results","start":0.0,"duration":1.0,"is_final":false,"channel":{"alternatives":[{"transcript":""}]}}"#;
    for message in [None, Some(nothing)] {
        let (mut listening, mut out, now) = (Listening::default(), Output::default(), Instant::now());
        listening.sound(&Sound::Audio { from: ms(1_000), samples: vec![1; 32_000].into() }, now, &mut out);
        listening.sound(&Sound::Ended(stretch(1_000, 2_500)), now, &mut out);
        if let Some(message) = message {
            listening.message(message, now, &mut out).unwrap();
        }

        listening.wake(now + Duration::from_secs(1), &mut out);

        let [Recognised::Final(segment)] = &out.results[..] else { panic!("{:?}", out.results) };
        assert_eq!((segment.is_last, segment.is_answer), (true, message.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_speech_is_kept_alive_and_no_empty_frame_is_sent() {
    let mut call = Call::new(quick());
    call.sounds.send(Sound::Audio { from: ms(1_000), samples: Arc::from([]) }).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    let ended = call.says(61_000, 1..2).await;
    call.ends(61_000, ended).await;

    assert_eq!(call.text().await, said("word1", true));
    assert_eq!(call.books.open().texts.iter().filter(|text| text.contains("KeepAlive")).count(), 15);
    assert_eq!(call.closes().await.1, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_cut_connection_is_an_error_at_once_with_the_words_that_cannot_be_repeated() {
    // 7 s of speech without an end, and the connection is cut.
    let mut call = Call::new(Habits { cut_after: Some(350), ..quick() });
    for word in 1..40 {
        if call.sounds.is_closed() {
            break;
        }
        call.says(1_000 + 200 * word as u64, word..word + 1).await;
    }
    let end = call.begin.elapsed();

    let (finals, outcome) = call.closes().await;

    assert!(matches!(outcome, Err(NoAnswer::Unreachable { .. })), "{outcome:?}");
    assert!(end <= Duration::from_millis(7_600), "{end:?}");
    let words = finals[0].0.split(' ').count();
    assert!(finals.len() == 1 && (10..=21).contains(&words), "{finals:?}");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_service_are_told_apart() {
    let error = r#"{"type":"Error","description":"Something went wrong","message":"details","variant":"Internal"}"#;
    let data = r#"{"type":"Error","description":"DATA-0000: not audio","message":"","variant":""}"#;
    let mut codes = Vec::new();
    for first in [error, data, "{", r#"{"type":"Results","is_final":true,"start":-1e300,"duration":"x","channel":[]}"#] {
        let call = Call::new(Habits { begins_with: Some(first), ..quick() });
        sleep(Duration::from_millis(10)).await;
        codes.push(call.closes().await.1.map_err(|error| error.code()));
    }

    assert_eq!(codes, [Err("overloaded"), Err("refused"), Err("refused"), Ok(())]);
}

#[tokio::test]
async fn a_refused_upgrade_says_why() {
    let refused = async |habits: Habits, model: &str, key: &str| {
        let fake = Fake::new(habits).await;
        try_recognition(&Deepgram::new(at(&fake.url, model, key)).unwrap())
            .await
            .map_err(|error| (error.code(), error.to_string()))
    };
    let with = |refuses| Habits { refuses: Some(refuses), ..quick() };

    let full = refused(with((429, "TOO_MANY_REQUESTS")), "nova-3", KEY).await.unwrap_err();
    let model = refused(quick(), "no-such", KEY).await.unwrap_err();
    let bare = refused(with((400, "")), "nova-3", KEY).await.unwrap_err();
    let key = refused(quick(), "nova-3", "bad").await.unwrap_err();
    let good = refused(quick(), "nova-3", KEY).await;
    let older = refused(quick(), "nova-2", KEY).await;

    assert_eq!([full.0, model.0, bare.0, key.0], ["overloaded", "unknown_model", "refused", "key_rejected"]);
    assert!(model.1.contains("No such model/language/tier combination found."), "{}", model.1);
    assert_eq!((good, older), (Ok(()), Ok(())));
}

#[tokio::test]
async fn the_query_is_the_one_that_the_documentation_describes() {
    let fake = Fake::new(quick()).await;
    let ears = |partial_results| Deepgram::new(At { partial_results, ..at(&fake.url, "nova-3", KEY) }).unwrap();
    let expectation = Expectation { language: "en".into(), names: vec!["Aria".into(), "Zoë B".into()] };
    let asked = async |partial_results: bool| {
        let ears = ears(partial_results);
        let (results, _returned) = mpsc::channel(1);
        let (_, sounds) = mpsc::channel(1);
        ears.listen(expectation.clone(), sounds, results).await.unwrap();
        fake.books.open().asked.clone()
    };

    let with = asked(true).await;
    let without = asked(false).await;

    let shown = "/v1/listen?model=nova-3&encoding=linear16&sample_rate=16000&channels=1&interim_results=true&vad_events=true&endpointing=300\
                 &utterance_end_ms=1000&language=en&keyterm=Aria&keyterm=Zo%C3%AB+B";
    assert_eq!(with, shown);
    assert_eq!(without, shown.replace("results=true", "results=false").replace("&utterance_end_ms=1000", ""));
    assert_eq!((ears(true).host(), ears(true).has_partials(), ears(false).has_partials()), (None, true, false));
}

/// What a connection that got this audio returns for a message.
fn heard(samples: usize, message: &str) -> Vec<Recognised> {
    let (mut listening, mut out) = (Listening::default(), Output::default());
    let now = Instant::now();
    listening.sound(&Sound::Audio { from: ms(1_000), samples: vec![1; samples].into() }, now, &mut out);
    listening.message(message, now, &mut out).unwrap();
    assert!(matches!(out.send[..], [Sent::Audio(_)]));
    out.results
}

#[tokio::test]
async fn times_that_cannot_be_lie_within_the_audio() {
    for (start, end) in [("-5", "1e308"), ("3e9", "1"), ("null", "\"x\""), ("0.9", "0.1"), ("1e18", "1e19")] {
        let message = format!(
            r#"{{"type":"Results","start":{start},"duration":{end},"is_final":true,"channel":{{"alternatives":[{{"transcript":"a b",
            "confidence":7,"words":[{{"word":"a","start":{start},"end":{end}}},{{"word":5}},{{"word":"b","start":{end},"end":{start}}}]}}]}}}}"#
        );

        for result in heard(16_000, &message) {
            let Recognised::Final(segment) = result else { panic!("{result:?}") };
            assert!(
                ms(1_000) <= segment.started && segment.started <= segment.ended && segment.ended <= ms(2_000),
                "{segment:?}"
            );
            assert_eq!(segment.confidence, Some(1_000));
        }
    }
}

#[tokio::test]
async fn a_text_without_words_has_the_time_of_its_result() {
    let results = heard(
        32_000,
        r#"{"type":"Results","start":0.5,"duration":1.0,"is_final":true,"channel":{"alternatives":[{"transcript":" hello there ","confidence":0.5}]}}"#,
    );

    let [Recognised::Final(segment)] = &results[..] else { panic!("{results:?}") };
    assert_eq!(
        (&*segment.text, segment.started, segment.ended, segment.confidence),
        ("hello there", ms(1_500), ms(2_500), Some(500))
    );
}

#[tokio::test(start_paused = true)]
async fn words_of_two_stretches_that_come_together_are_credited_to_each() {
    // The endpoint is held, and `Finalize` has no answer, until the second stretch ends.
    let mut call = Call::new(Habits { endpoint: 100, unanswered: 1.0, ..quick() });
    let ended = call.says(1_000, 1..3).await;
    call.is_silent(ended, 15).await;
    call.ends(1_000, ended).await;
    let again = call.says(1_800, 3..5).await;
    call.is_silent(again, 15).await;
    call.ends(1_800, again).await;

    let mut all = Vec::new();
    while all.len() < 3 {
        all.push(call.next().await.0);
    }
    let shown: Vec<_> = all.iter().map(|segment| (&*segment.text, segment.started, segment.is_last)).collect();
    assert_eq!(shown.iter().filter(|(.., is_last)| *is_last).count(), 2, "{shown:?}");
    assert_eq!(shown.iter().map(|(text, ..)| *text).collect::<Vec<_>>().join(" ").trim(), "word1 word2 word3 word4");
}

#[tokio::test]
async fn a_word_that_is_said_to_last_beyond_its_result_hides_no_word_of_the_next() {
    let (mut listening, mut out, now) = (Listening::default(), Output::default(), Instant::now());
    listening.sound(&Sound::Audio { from: ms(1_000), samples: vec![1; 32_000].into() }, now, &mut out);

    for (start, word, from, to) in [(0, "long", 0.7, 1.3), (1, "short", 1.05, 1.2)] {
        let message = format!(
            r#"{{"type":"Results","start":{start},"duration":1.0,"is_final":true,"channel":{{"alternatives":[{{"transcript":"{word}",
            "words":[{{"word":"{word}","start":{from},"end":{to}}}]}}]}}}}"#
        );
        listening.message(&message, now, &mut out).unwrap();
    }

    let texts: Vec<_> =
        out.results.iter().map(|result| if let Recognised::Final(segment) = result { &*segment.text } else { "" }).collect();
    assert_eq!(texts, ["long", "short"]);
}

#[tokio::test]
async fn the_end_of_a_stretch_that_is_being_finished_asks_for_nothing_again() {
    let (mut listening, mut out, now) = (Listening::default(), Output::default(), Instant::now());
    let audio = |from| Sound::Audio { from: ms(from), samples: vec![1; 16_000].into() };
    let end = |from| Sound::Ended(stretch(from, from + 700));

    for sound in [audio(1_000), Sound::Finalize, end(1_000), audio(5_000), end(5_000)] {
        listening.sound(&sound, now, &mut out);
    }

    let texts = out.send.iter().filter(|sent| matches!(sent, Sent::Text(text) if text.contains("Finalize"))).count();
    assert_eq!(texts, 2);
}
