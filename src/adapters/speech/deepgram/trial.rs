//! Hundreds of utterances over connections that are cut at random, to a service that makes all known mistakes: no word is lost, and none is doubled.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::fake::{Books, Habits, frame, serve, text};
use super::results::Listening;
use super::stream::{Protocol, run};
use super::table::duration;
use super::{CLOSING, MAX_MESSAGE_BYTES};
use crate::adapters::endpoint::failure::Failures;
use crate::adapters::web_socket::WebSocket;
use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::ports::speech_recognition::{Recognised, Segment, Sound};

const PACKET: Duration = Duration::from_millis(20);
/// As in the recognition of calls.
const KEPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(1);
const PRE_ROLL: u64 = 20;
const HANGOVER: u64 = 15;

/// Random numbers that are always the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least + 1)
    }
}

/// What a person says, in order of the moments at which it is known.
pub struct Script {
    pub sounds: VecDeque<(Moment, Sound)>,
    pub words: Vec<i16>,
    pub stretches: usize,
}

/// Utterances of some words each, now and then a long one, with pauses of any length.
pub fn script(utterances: usize, dice: &mut Dice) -> Script {
    let mut script = Script { sounds: VecDeque::new(), words: Vec::new(), stretches: 0 };
    let mut packet = 100_u64;
    let at = |packet: u64| Moment::ZERO + PACKET * u32::try_from(packet).expect("short");
    let mut heard_until = 0;
    for number in 0..utterances {
        let words = if number % 20 == 7 { dice.between(15, 25) } else { dice.between(1, 8) };
        let mut frames = Vec::new();
        for word in 0..words {
            let (length, gap) = (dice.between(8, 25) as i16, dice.between(0, 12));
            script.words.push(script.words.len() as i16 + 1);
            let name = *script.words.last().expect("one");
            frames.extend((0..length).map(|position| frame(name, position, length)));
            if word + 1 < words {
                frames.extend((0..gap).map(|_| frame(0, 0, 0)));
            }
        }
        let started = packet;
        let ended = started + frames.len() as u64;
        let from = started.saturating_sub(PRE_ROLL).max(heard_until);
        let silence = |count: u64| (0..count).map(|_| frame(0, 0, 0)).collect::<Vec<_>>();
        let all = [silence(started - from), frames, silence(HANGOVER)].concat();
        for (place, samples) in all.into_iter().enumerate() {
            let said = from + place as u64;
            // What was said before the onset is sent at the onset.
            let known = said.max(started) + 1;
            script.sounds.push_back((at(known), Sound::Audio { from: at(said), samples: samples.into() }));
        }
        // A hop ends a little before or after the packet.
        let stretch = Stretch {
            started: at(started),
            ended: at(ended) - Duration::from_millis(dice.between(0, 12)),
            voiced: at(ended).since(at(started)),
        };
        script.sounds.push_back((at(ended + HANGOVER), Sound::Ended(stretch)));
        script.stretches += 1;
        heard_until = ended + HANGOVER;
        packet = heard_until + if dice.between(0, 9) == 0 { dice.between(300, 900) } else { dice.between(2, 150) };
    }
    script
}

/// What was recorded.
#[derive(Default)]
pub struct Recorded {
    pub segments: Vec<Segment>,
    pub cuts: usize,
}

/// Has a script recognised as the recognition of calls does it: a connection that fails, or that somebody else takes, is opened again after a second,
/// and gets the audio since the last final again, of 5 s at most.
pub async fn record<P: Protocol + 'static>(
    script: Script,
    path: &'static str,
    new: impl Fn() -> P,
    mut habits: impl FnMut() -> Habits,
    mut is_taken: impl FnMut() -> bool,
    books: &Books,
) -> Recorded {
    let begin = Instant::now();
    let mut recorded = Recorded::default();
    let (mut fresh, mut taken): (VecDeque<Sound>, VecDeque<Sound>) = Default::default();
    let mut sounds = script.sounds;
    let (report, mut reports) = mpsc::unbounded_channel::<(usize, Option<Result<Recognised, bool>>)>();
    let mut stream: Option<(mpsc::Sender<Sound>, AbortHandle)> = None;
    let (mut number, mut again) = (0, None::<Instant>);
    let (mut asked, mut last) = (0_usize, 0_usize);
    loop {
        let next = sounds.front().map(|(at, _)| begin + at.since(Moment::ZERO));
        let due = [next, again].into_iter().flatten().min();
        if due.is_none() {
            // Nothing more is said. The results that are left end the loop.
            stream = None;
        }
        tokio::select! {
            biased;
            report = reports.recv() => match report.expect("one sender is kept") {
                (from, Some(Ok(Recognised::Final(segment)))) if from == number => {
                    taken.retain(|sound| end_of(sound).is_some_and(|end| end > segment.ended));
                    last += usize::from(segment.is_last);
                    recorded.segments.push(segment);
                }
                (from, Some(Err(is_failure))) if from == number => {
                    assert!(last <= asked && (is_failure || last == asked), "{last} of {asked} stretches are over");
                    if !is_failure {
                        return recorded;
                    }
                    recorded.cuts += 1;
                    number += 1;
                    (stream, again) = (None, Some(Instant::now() + PAUSE));
                    continue;
                }
                _ => {}
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if again.is_some_and(|again| again <= Instant::now()) {
                    again = None;
                }
                if sounds.front().is_some_and(|(at, _)| begin + at.since(Moment::ZERO) <= Instant::now())
                    && let Some((_, sound)) = sounds.pop_front()
                {
                    fresh.push_back(sound);
                    keep(&mut fresh);
                }
                if again.is_some() || fresh.is_empty() && taken.is_empty() {
                    continue;
                }
                let is_new = stream.is_none();
                let (sender, task) = stream.get_or_insert_with(|| {
                    let (sender, given) = mpsc::channel(512);
                    (asked, last) = (0, 0);
                    let (ours, theirs) = tokio::io::duplex(64 * 1024);
                    let (habits, books) = (habits(), books.clone());
                    tokio::spawn(async move {
                        serve(WebSocketStream::from_raw_socket(theirs, Role::Server, None).await, path, habits, books).await;
                    });
                    let (mut protocol, report) = (new(), report.clone());
                    let task = tokio::spawn(async move {
                        let (results, mut returned) = mpsc::channel(64);
                        let socket = WebSocket::over(ours, MAX_MESSAGE_BYTES);
                        let failures = Failures::new("fake".into(), None);
                        let listening = async { run(socket, &mut protocol, given, &{ results }, &failures, CLOSING).await };
                        let reporting = async {
                            while let Some(result) = returned.recv().await {
                                let _ = report.send((number, Some(Ok(result))));
                            }
                        };
                        let (outcome, ()) = tokio::join!(listening, reporting);
                        let _ = report.send((number, Some(Err(outcome.is_err()))));
                    });
                    (sender, task.abort_handle())
                });
                if is_new {
                    let before = std::mem::take(&mut taken);
                    fresh = before.into_iter().chain(fresh.drain(..)).collect();
                }
                for sound in fresh.drain(..) {
                    asked += usize::from(matches!(sound, Sound::Ended(_)));
                    taken.push_back(sound.clone());
                    sender.try_send(sound).expect("it takes in what is said");
                }
                keep(&mut taken);
                if is_taken() {
                    task.abort();
                    recorded.cuts += 1;
                    number += 1;
                    (stream, again) = (None, Some(Instant::now() + PAUSE));
                }
            }
        }
    }
}

fn keep(sounds: &mut VecDeque<Sound>) {
    let Some(newest) = sounds.iter().rev().find_map(end_of) else { return };
    while sounds.front().is_some_and(|sound| end_of(sound).is_none_or(|end| newest.since(end) >= KEPT)) {
        sounds.pop_front();
    }
}

fn end_of(sound: &Sound) -> Option<Moment> {
    match sound {
        Sound::Audio { from, samples } => Some(*from + duration(samples.len() as u64)),
        Sound::Ended(stretch) | Sound::Cut(stretch) => Some(stretch.ended),
        Sound::Finalize => None,
    }
}

/// Every word was recorded once and in order, every stretch has a last final, and no id comes twice.
pub fn assert_whole(recorded: &Recorded, words: &[i16], stretches: usize) {
    let segments = &recorded.segments;
    let got: Vec<_> = segments.iter().flat_map(|segment| segment.text.split_whitespace()).collect();
    let said: Vec<_> = words.iter().map(|word| text(*word)).collect();
    let differs = (0..got.len().max(said.len())).find(|at| got.get(*at).copied() != said.get(*at).map(String::as_str));
    let around = differs
        .map(|at| (&got[at.saturating_sub(3)..got.len().min(at + 5)], &said[at.saturating_sub(3)..said.len().min(at + 5)]));
    assert_eq!(around, None, "word {differs:?}, {} of {}", got.len(), said.len());
    assert!(segments.iter().filter(|segment| segment.is_last).count() >= stretches);
    assert!(segments.is_sorted_by_key(|segment| segment.started));
    let ids: BTreeSet<_> = segments.iter().map(|segment| (&segment.id, segment.text.is_empty())).collect();
    assert_eq!(
        ids.iter().filter(|(_, is_empty)| !is_empty).count(),
        segments.iter().filter(|segment| !segment.text.is_empty()).count()
    );
}

/// Habits with everything that goes wrong.
pub fn bad_habits(dice: &mut Dice) -> Habits {
    Habits {
        seed: dice.between(1, 1 << 40),
        latency_ms: (60, 450),
        unanswered: 0.15,
        late: 0.1,
        doubled: 0.1,
        answers_nothing: dice.between(0, 1) == 1,
        cut_after: Some(dice.between(10, 1_500)),
        endpoint: dice.between(10, 40),
        longest: dice.between(150, 400),
        shift_ms: 30,
        ends_turns: dice.between(0, 1) == 1,
        ..Habits::default()
    }
}

#[tokio::test(start_paused = true)]
async fn of_hundreds_of_utterances_with_cuts_no_word_is_lost_or_doubled() {
    let (mut dice, books) = (Dice(0x5eed), Books::default());
    let script = script(250, &mut dice);
    let (words, stretches) = (script.words.clone(), script.stretches);

    let recorded = record(script, "/v1/listen", Listening::default, || bad_habits(&mut dice), || false, &books).await;

    assert_whole(&recorded, &words, stretches);
    assert!(recorded.cuts > 25, "{} cuts", recorded.cuts);
    let heard = books.open().heard.len();
    assert!(heard > words.len() + recorded.cuts / 2, "words were heard again: {heard}");
}

#[tokio::test(start_paused = true)]
async fn no_word_of_a_stream_that_is_taken_is_lost_or_doubled() {
    let (mut dice, mut takes, books) = (Dice(0x5eee), Dice(7), Books::default());
    let script = script(100, &mut dice);
    let (words, stretches) = (script.words.clone(), script.stretches);
    let habits = || Habits { cut_after: None, ..bad_habits(&mut dice) };

    let recorded = record(script, "/v1/listen", Listening::default, habits, || takes.between(0, 700) == 0, &books).await;

    assert_whole(&recorded, &words, stretches);
    assert!(recorded.cuts > 10, "{} cuts", recorded.cuts);
}
