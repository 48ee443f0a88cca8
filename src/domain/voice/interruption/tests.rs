use super::super::segment::Kind;
use super::super::words::WordLists;
use super::*;
use crate::samples::at;

mod properties;

/// The longest wait for audio.
const ANSWER: Duration = Duration::from_secs(65);

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// A reply of aria whose effects are written down, each with its time.
struct Reply {
    machine: SpokenReply,
    log: Vec<String>,
    /// The tenths of a second up to which playback was reported, if it follows the clock.
    plays: Option<u64>,
    /// What is drawn for the next interruption.
    draw: Option<f64>,
}

impl Reply {
    /// A reply that gets the floor at 0.
    fn preparing() -> Self {
        Self::among(&[])
    }

    fn among(talkers: &[&str]) -> Self {
        let talkers = talkers.iter().map(|user| (*user).into());
        let machine = SpokenReply::new("aria".into(), 0.3, ANSWER, PlayedWords::default(), talkers, at(0.0));
        Self { machine, log: Vec::new(), plays: None, draw: None }
    }

    /// A reply that speaks since 10, with 60 s of audio, of which playback reports the position every 0.1 s.
    fn speaking() -> Self {
        let mut reply = Self::preparing();
        let text: String = (0..60).map(|number| format!(" number {number:02}.")).collect();
        reply.sentence(1.0, &text, 60.0).input(10.0, Input::FirstAudio);
        assert_eq!(reply.log, ["10 speak"]);
        reply.log.clear();
        reply.plays = Some(100);
        reply
    }

    fn sentence(&mut self, time: f64, text: &str, length: f64) -> &mut Self {
        let sentence = self.machine.script().text().matches('\u{1}').count();
        self.input(time, Input::Sentence { text: format!("{text}\u{1}").into(), words: Vec::new() });
        self.input(time, Input::Audio { sentence, length: secs(length) }).input(time, Input::Whole { sentence })
    }

    fn input(&mut self, time: f64, input: Input) -> &mut Self {
        self.run(at(time) - Duration::from_micros(1), at(time));
        let effects = self.machine.handle(at(time), input, &mut || self.draw.take());
        self.note(at(time), &effects);
        self
    }

    /// Handles all deadlines up to a moment, each in its time, and plays on.
    fn until(&mut self, end: Moment) {
        self.run(end, end);
    }

    fn run(&mut self, last_deadline: Moment, last_report: Moment) {
        loop {
            let deadline = self.machine.deadline().map(|deadline| deadline.at).filter(|at| *at <= last_deadline);
            let next = self.plays.filter(|_| self.machine.outcome().is_none());
            let report = next.map(|plays| at(0.1 * (plays + 1) as f64)).filter(|at| *at <= last_report);
            match (deadline, report) {
                (deadline, Some(report)) if deadline.is_none_or(|deadline| report <= deadline) => {
                    self.plays = self.plays.map(|plays| plays + 1);
                    if matches!(self.machine.phase, Phase::Speaking(_) | Phase::Ducked(..)) {
                        let position = self.machine.script().position() + secs(0.1);
                        let effects = self.machine.handle(report, Input::Played { position }, &mut || None);
                        self.note(report, &effects);
                    }
                }
                (Some(deadline), _) => {
                    let effects = self.machine.wake(deadline);
                    self.note(deadline, &effects);
                }
                _ => return,
            }
        }
    }

    fn starts(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Started { user: user.into(), started: at(time) })
    }

    /// For the next interruption this is drawn.
    fn draws(&mut self, draw: f64) -> &mut Self {
        self.draw = Some(draw);
        self
    }

    /// Voice from one time to another, in pieces of 0.02 s.
    fn voice(&mut self, from: f64, to: f64, user: &str) -> &mut Self {
        let pieces = ((to - from) / 0.02).round() as u32;
        for piece in 0..pieces {
            let (from, to) = (from + 0.02 * f64::from(piece), from + 0.02 * f64::from(piece + 1));
            self.input(to, Input::Voiced { user: user.into(), from: at(from), to: at(to) });
        }
        self
    }

    fn ends(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Ended { user: user.into(), ended: at(time) })
    }

    /// An onset, voice and an offset.
    fn talks(&mut self, from: f64, to: f64, user: &str) -> &mut Self {
        self.starts(from, user).voice(from, to, user).ends(to, user)
    }

    fn partial(&mut self, time: f64, user: &str, text: &str) -> &mut Self {
        self.input(time, words(user, text, time - 0.5, false))
    }

    fn final_(&mut self, time: f64, user: &str, text: &str) -> &mut Self {
        self.input(time, words(user, text, time - 0.5, true))
    }

    fn note(&mut self, time: Moment, effects: &[Effect]) {
        let time = (time.as_secs_f64() * 1_000.0).round() / 1_000.0;
        self.log.extend(effects.iter().map(|effect| format!("{time} {}", shown(effect))));
    }

    /// What happened up to a time.
    fn log(&mut self, until: f64) -> Vec<String> {
        self.until(at(until));
        std::mem::take(&mut self.log)
    }
}

/// Words of which "aria" and "mira" are companions present.
fn words(user: &str, text: &str, started: f64, is_final: bool) -> Input {
    words_of(user, text, started, is_final, Kind::Words)
}

fn words_of(user: &str, text: &str, started: f64, is_final: bool, kind: Kind) -> Input {
    let lists = WordLists::new(["stop", "wait", "hold on"], ["mhm", "yeah", "right"]);
    let is_name = |name: &str| ["aria", "mira"].contains(&name);
    let addressed = ["aria", "mira"].into_iter().filter(|name| text.contains(name)).map(CompanionId::from).collect();
    let words = Words::of(text, kind, addressed, &lists, is_name);
    Input::Words { user: user.into(), started: at(started.max(0.0)), is_final, words }
}

fn shown(effect: &Effect) -> String {
    match effect {
        Effect::Speak => "speak".to_owned(),
        Effect::Duck => "duck".to_owned(),
        Effect::Unduck => "unduck".to_owned(),
        Effect::Pause => "pause".to_owned(),
        Effect::Resume { from } => format!("resume from {}", from.as_secs_f64()),
        Effect::Finalize { user } => format!("finalize {user}"),
        Effect::Extend => "extend".to_owned(),
        Effect::SentenceDropped { sentence } => format!("dropped {sentence}"),
        Effect::Interrupted(record) => {
            let who = record.who.as_ref().map_or("nobody", |who| who.as_str());
            format!("{:?} by {who} at {}", record.verdict, record.at_ms)
        }
        Effect::Ended(Outcome::Cut { by }) => format!("cut by {}", by.as_ref().map_or("nobody", |who| who.as_str())),
        Effect::Ended(outcome) => format!("{outcome:?}").to_lowercase(),
    }
}

#[test]
fn words_are_told_apart() {
    let said = |text: &str, kind| match words_of("ana", text, 0.0, true, kind) {
        Input::Words { words, .. } => (words.said, words.stop),
        _ => unreachable!(),
    };

    assert_eq!(said("hello", Kind::Words), (Said::Words, Stop::None));
    assert_eq!(said("mhm, yeah", Kind::Words), (Said::Backchannel, Stop::None));
    assert_eq!(said(" ", Kind::Words), (Said::Nothing, Stop::None));
    assert_eq!(said("stop! wait", Kind::Words), (Said::Words, Stop::Alone));
    assert_eq!(said("aria, stop", Kind::Words), (Said::Words, Stop::First));
    assert_eq!(said("stop it", Kind::Words), (Said::Words, Stop::First));
    assert_eq!(said("hello", Kind::Noise), (Said::Nothing, Stop::None));
    assert_eq!(said("stop", Kind::Noise), (Said::Words, Stop::Alone));
    assert_eq!(said("hello", Kind::Echo), (Said::Nothing, Stop::None));
    assert_eq!(said("stop", Kind::Echo), (Said::Words, Stop::Alone));
}

// Preparing.

#[test]
fn preparing_people_who_talk_hold_the_audio_back() {
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "Hello.", 2.0).starts(2.0, "ana").input(2.2, Input::FirstAudio).voice(2.0, 3.0, "ana").ends(3.0, "ana");
    // Without a final: a second after the offset.
    assert_eq!(reply.log(9.0)[..2], ["3 finalize ana", "4 speak"]);

    let mut reply = Reply::preparing();
    reply.sentence(1.0, "Hello.", 2.0).talks(2.0, 3.0, "ana").final_(3.1, "ana", "mhm").input(3.15, Input::FirstAudio);
    // With it: after 0.3 s of silence. Backchannel does not extend.
    assert_eq!(reply.log(5.0), ["3 finalize ana", "3.3 speak"]);

    // Those who talk at the beginning count too.
    let mut reply = Reply::among(&["ana"]);
    reply.sentence(0.1, "Hello.", 2.0).input(0.2, Input::FirstAudio).voice(0.0, 0.5, "ana").ends(0.5, "ana");
    reply.input(0.6, words("ana", "", 0.0, true));
    assert_eq!(reply.log(1.0), ["0.5 finalize ana", "0.8 speak"]);
}

#[test]
fn preparing_is_not_held_by_noise() {
    let mut reply = Reply::among(&["ana"]);
    reply.voice(0.0, 2.0, "ana").input(2.0, Input::FirstAudio).input(2.1, Input::Noise { user: "ana".into() });
    reply.voice(2.0, 4.0, "ana");

    assert_eq!(reply.log(4.0), ["2.1 speak"]);
}

#[test]
fn preparing_is_posted_as_text_after_twenty_seconds_of_talk() {
    let mut reply = Reply::preparing();
    reply.starts(2.0, "ana").voice(2.0, 30.0, "ana");

    assert_eq!(reply.log(60.0), ["22 astext"]);
    assert_eq!(reply.machine.heard(), "");
}

#[test]
fn preparing_final_words_extend_the_reply_once() {
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "Old.", 2.0).talks(2.0, 3.0, "ana").input(3.0, Input::FirstAudio).final_(3.1, "ana", "and the cat?");
    assert_eq!(reply.log(4.0), ["3 finalize ana", "3.3 extend"]);
    assert_eq!(reply.machine.script().text(), "");

    // Further finals are ordinary messages. The time to answer begins anew.
    reply.talks(5.0, 6.0, "ana").final_(6.1, "ana", "and the dog?").sentence(6.2, "New.", 2.0);
    assert_eq!(reply.log(68.2), ["6 finalize ana"]);
    assert_eq!(reply.log(99.0), ["68.3 failed"]);

    // A late final that nobody holds the reply for extends it at once.
    let mut reply = Reply::preparing();
    reply.final_(1.0, "ana", "and the cat?");
    assert_eq!(reply.log(1.0), ["1 extend"]);

    // A restart does not make the reply forget that it was extended.
    let mut reply = Reply::preparing();
    reply.machine = reply.machine.extended_before();
    reply.final_(1.0, "ana", "and the cat?");
    assert!(reply.log(2.0).is_empty());
}

#[test]
fn preparing_a_stop_word_to_it_or_alone_cancels() {
    for (text, expected) in [
        ("stop", &["2.5 cancelled"][..]),
        ("aria, stop that", &["2.5 cancelled"]),
        ("mira, stop", &[]),
        ("stop the car", &[]),
        ("aria", &[]),
        ("hello", &[]),
    ] {
        let mut reply = Reply::preparing();
        reply.starts(2.0, "ana").voice(2.0, 2.5, "ana").partial(2.5, "ana", text);

        assert_eq!(reply.log(2.5), expected, "{text}");
    }
    // A recogniser without partial results.
    let mut reply = Reply::preparing();
    reply.final_(2.0, "ana", "stop");
    assert_eq!(reply.log(9.0), ["2 cancelled"]);
}

#[test]
fn preparing_fails_without_audio() {
    assert_eq!(Reply::preparing().log(99.0), ["65 failed"]);

    let mut reply = Reply::preparing();
    reply.input(3.0, Input::Finished);
    assert_eq!(reply.log(99.0), ["3 failed"]);
}

// Speaking.

#[test]
fn speaking_ducks_at_once_when_somebody_talks() {
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana");

    assert_eq!(reply.log(12.0), ["12 duck"]);
}

#[test]
fn words_begun_before_the_first_frame_are_ignored() {
    let mut reply = Reply::speaking();
    reply.input(12.0, words("ana", "aria, stop", 9.9, true)).input(12.0, words("ana", "stop", 9.9, false));

    assert_eq!(reply.log(20.0), [""; 0]);
}

#[test]
fn speaking_or_ducked_a_stop_word_or_address_cuts_when_final_and_pauses_before() {
    for (text, verdict) in [("stop that", "StopWord"), ("no, mira", "Addressed")] {
        let mut reply = Reply::speaking();
        reply.final_(12.05, "ana", text);
        assert_eq!(reply.log(30.0), [format!("12.05 {verdict} by ana at 2000"), "12.05 cut by ana".to_owned()], "{text}");

        let mut reply = Reply::speaking();
        reply.starts(12.0, "ana").final_(12.2, "ana", text);
        assert_eq!(reply.log(30.0)[1..], [format!("12.2 {verdict} by ana at 2200"), "12.2 cut by ana".to_owned()], "{text}");

        let mut reply = Reply::speaking();
        reply.partial(12.05, "ana", text);
        assert_eq!(reply.log(12.1), ["12.05 pause", "12.05 finalize ana"], "{text}");

        let mut reply = Reply::speaking();
        reply.starts(12.0, "ana").partial(12.1, "ana", text);
        assert_eq!(reply.log(12.1), ["12 duck", "12.1 pause"], "{text}");
    }
    let mut reply = Reply::speaking();
    reply.final_(12.0, "ana", "nice weather");
    assert_eq!(reply.log(20.0), [""; 0]);
}

#[test]
fn speaking_to_the_end_is_done() {
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "One.", 1.0).input(2.0, Input::FirstAudio).sentence(2.5, " Two.", 1.0).input(2.6, Input::Finished);
    reply.plays = Some(20);

    assert_eq!(reply.log(9.0), ["2 speak", "4 done"]);
    assert_eq!(reply.machine.heard(), "One.\u{1} Two.\u{1}");

    // Ducked, too.
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "One.", 1.0).input(2.0, Input::FirstAudio).input(2.6, Input::Finished);
    reply.plays = Some(20);
    reply.starts(2.8, "ana").voice(2.8, 3.2, "ana");
    assert_eq!(reply.log(9.0), ["2 speak", "2.8 duck", "3 PlayedOut by ana at 1000", "3 done"]);
}

#[test]
fn a_stalled_sentence_is_dropped() {
    let mut reply = Reply::speaking();
    reply
        .input(11.0, Input::Sentence { text: "Two.".into(), words: Vec::new() })
        .input(12.0, Input::Stall)
        .input(12.0, Input::Stall);

    assert_eq!(reply.log(13.0), ["12 dropped 1"]);
}

#[test]
fn playback_that_does_not_move_for_five_seconds_is_lost() {
    let mut reply = Reply::speaking();
    reply.until(at(12.0));
    reply.plays = None;
    reply.input(14.0, Input::Played { position: secs(2.0) });

    assert_eq!(reply.log(30.0), ["17 PlaybackLost by nobody at 2000", "17 cut by nobody"]);
}

#[test]
fn playback_that_moves_again_within_five_seconds_goes_on() {
    let mut reply = Reply::speaking();
    reply.until(at(12.0));
    reply.plays = None;
    reply.until(at(15.9));
    reply.plays = Some(159);

    assert_eq!(reply.log(60.0), [""; 0]);
    assert_eq!(reply.machine.script().position().as_millis(), 46_100);
}

#[test]
fn a_reply_whose_audio_does_not_come_ends_where_it_is() {
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "One.", 1.0).input(2.0, Input::FirstAudio);
    reply.plays = Some(20);

    assert_eq!(reply.log(99.0), ["2 speak", "68 done"]);
    assert_eq!(reply.machine.heard(), "One.\u{1}");
}

// Ducked.

#[test]
fn ducked_a_short_silence_ends_it() {
    let mut reply = Reply::speaking();
    reply.talks(12.0, 12.4, "ana");

    assert_eq!(reply.log(20.0), ["12 duck", "12.7 Unducked by ana at 2700", "12.7 unduck"]);
}

#[test]
fn ducked_the_same_talk_ducks_again_if_it_goes_on() {
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.2, "ana").voice(12.52, 12.54, "ana");

    assert_eq!(reply.log(12.6), ["12 duck", "12.5 Unducked by ana at 2500", "12.5 unduck", "12.54 duck"]);
}

#[test]
fn each_interruption_draws_anew() {
    // It was not tolerant before, and is so when the same talk goes on.
    let mut reply = Reply::speaking();
    reply.draws(0.9).starts(12.0, "ana").voice(12.0, 12.2, "ana").draws(0.1).voice(12.52, 14.0, "ana");
    assert_eq!(reply.log(14.0)[3..], ["12.54 duck"]);
    assert_eq!(reply.draw, None);

    // A stop word in a partial result interrupts without a voice.
    let mut reply = Reply::speaking();
    reply.draws(0.9).starts(12.0, "ana").voice(12.0, 12.2, "ana").ends(12.2, "ana").until(at(13.0));
    reply.draws(0.1).partial(13.0, "ana", "stop").final_(13.2, "ana", "stop");
    let Phase::Ended(_) = &reply.machine.phase else { panic!("{:?}", reply.machine.phase) };
    assert_eq!(reply.draw, None);

    // Whoever joins in is part of the same interruption, and a final cuts without one.
    let mut reply = Reply::speaking();
    reply.draws(0.9).starts(12.0, "ana").draws(0.1).starts(12.1, "bob").voice(12.1, 13.0, "bob");
    assert_eq!(reply.log(13.0), ["12 duck", "12.6 pause"]);
    let mut reply = Reply::speaking();
    reply.draws(0.1).final_(12.0, "ana", "stop");
    assert_eq!(reply.draw, Some(0.1));
}

#[test]
fn ducked_half_a_second_of_one_voice_pauses() {
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.3, "ana").voice(12.5, 12.8, "ana");
    assert_eq!(reply.log(12.8), ["12 duck", "12.7 pause"]);

    // Each person counts by himself.
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.4, "ana").starts(12.4, "bob").voice(12.4, 12.8, "bob");
    assert_eq!(reply.log(12.8), ["12 duck"]);

    // What is older than a second does not count.
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana");
    for second in 0..4 {
        let begin = 12.0 + 0.5 * f64::from(second);
        reply.voice(begin, begin + 0.22, "ana");
    }
    assert_eq!(reply.log(13.7), ["12 duck"]);
}

#[test]
fn ducked_a_tolerant_reply_pauses_after_two_seconds() {
    let mut reply = Reply::speaking();
    reply.draws(0.29).starts(12.0, "ana").voice(12.0, 15.0, "ana");
    assert_eq!(reply.log(15.0), ["12 duck", "14 pause"]);

    let mut reply = Reply::speaking();
    reply.draws(0.3).starts(12.0, "ana").voice(12.0, 15.0, "ana");
    assert_eq!(reply.log(15.0), ["12 duck", "12.5 pause"]);

    // A draw that is missing counts as 1.
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 13.0, "ana");
    assert_eq!(reply.log(13.0), ["12 duck", "12.5 pause"]);
}

#[test]
fn an_onset_draws_anew_for_a_person_whose_last_offset_was_not_found() {
    let mut reply = Reply::speaking();
    reply.draws(0.9).starts(12.0, "ana").voice(12.0, 12.2, "ana");
    assert_eq!(reply.log(13.0), ["12 duck", "12.5 Unducked by ana at 2500", "12.5 unduck"]);

    // This time it is tolerant.
    reply.draws(0.0).starts(13.0, "ana").voice(13.0, 14.9, "ana");
    assert_eq!(reply.log(14.9), ["13 duck"]);
}

#[test]
fn ducked_a_name_in_a_partial_pauses_at_once() {
    let mut reply = Reply::speaking();
    reply.draws(0.0).starts(12.0, "ana").partial(12.1, "ana", "so mira");

    assert_eq!(reply.log(12.2), ["12 duck", "12.1 pause"]);
}

// Yielded.

/// A reply that has paused at 12.5 because ana talks, until `to`.
fn yielded(to: f64) -> Reply {
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, to, "ana");
    assert_eq!(reply.log.drain(..2).collect::<Vec<_>>(), ["12 duck", "12.5 pause"]);
    reply
}

#[test]
fn yielded_nothing_said_resumes_a_second_after_the_offset() {
    let mut reply = yielded(13.0);
    reply.ends(13.0, "ana");

    let expected = ["13 finalize ana", "14 NothingSaid by ana at 2500", "14 resume from 2.1"];
    assert_eq!(round(reply.log(14.0)), expected);
}

/// The position of a resume without its last digits.
fn round(log: Vec<String>) -> Vec<String> {
    let shorten = |line: String| match line.split_once("from ") {
        Some((before, from)) => format!("{before}from {:.1}", from.parse::<f64>().unwrap()),
        None => line,
    };
    log.into_iter().map(shorten).collect()
}

#[test]
fn yielded_with_the_finals_in_the_verdict_needs_less_silence() {
    for (text, verdict) in [("mhm. yeah", "Backchannel"), ("nice weather", "FewWords"), ("", "NothingSaid")] {
        let mut reply = yielded(13.0);
        reply.ends(13.0, "ana").final_(13.2, "ana", text);

        assert_eq!(reply.log(14.0)[1], format!("13.8 {verdict} by ana at 2500"), "{text}");
    }
}

#[test]
fn yielded_a_final_after_the_silence_brings_the_verdict() {
    let mut reply = yielded(13.0);
    reply.ends(13.0, "ana").final_(13.9, "ana", "nice weather");

    assert_eq!(reply.log(14.0)[1], "13.9 FewWords by ana at 2500");
}

#[test]
fn yielded_long_words_cut() {
    let mut reply = yielded(16.1);
    reply.ends(16.1, "ana").final_(16.3, "ana", "nice weather");

    assert_eq!(reply.log(20.0), ["16.1 finalize ana", "16.9 ManyWords by ana at 2500", "16.9 cut by ana"]);
    assert_eq!(reply.machine.heard(), " number 00. number 01.");
}

#[test]
fn yielded_the_newest_partial_counts_without_a_final() {
    let mut reply = yielded(16.1);
    reply.partial(16.0, "ana", "nice weather").ends(16.1, "ana");
    assert_eq!(reply.log(20.0)[1..], ["17.1 ManyWords by ana at 2500", "17.1 cut by ana"]);

    // A stop word cuts, and a name alone does not.
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.3, "ana").partial(12.3, "ana", "wait").ends(12.3, "ana");
    assert_eq!(reply.log(20.0)[1..], ["12.3 pause", "12.3 finalize ana", "13.3 StopWord by ana at 2300", "13.3 cut by ana"]);

    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.3, "ana").partial(12.3, "ana", "mira").ends(12.3, "ana");
    assert_eq!(reply.log(13.3)[3], "13.3 FewWords by ana at 2300");

    // A final takes its place.
    let mut reply = Reply::speaking();
    reply
        .starts(12.0, "ana")
        .voice(12.0, 12.3, "ana")
        .partial(12.3, "ana", "wait")
        .ends(12.3, "ana")
        .final_(12.6, "ana", "weight");
    assert_eq!(reply.log(13.1)[3], "13.1 FewWords by ana at 2300");
}

#[test]
fn yielded_a_new_onset_stops_the_silence() {
    let mut reply = yielded(13.0);
    reply.ends(13.0, "ana").final_(13.2, "ana", "well").starts(13.7, "bob").voice(13.7, 14.0, "bob").ends(14.0, "bob");

    assert_eq!(reply.log(15.0)[..3], ["13 finalize ana", "14 finalize bob", "15 FewWords by ana at 2500"]);
}

#[test]
fn yielded_a_stop_word_or_address_in_a_final_cuts() {
    for (text, verdict) in [("stop that", "StopWord"), ("no, mira", "Addressed")] {
        let mut reply = yielded(13.0);
        reply.final_(13.0, "bob", text);

        assert_eq!(reply.log(20.0), [format!("13 {verdict} by bob at 2500"), "13 cut by bob".to_owned()], "{text}");
    }
}

#[test]
fn yielded_five_seconds_with_words_cut() {
    let mut reply = yielded(17.0);
    reply.partial(17.0, "ana", "nice weather").voice(17.0, 18.0, "ana");

    assert_eq!(reply.log(30.0), ["17.5 TookTooLong by ana at 2500", "17.5 cut by ana"]);
}

#[test]
fn yielded_five_seconds_without_words_are_noise_until_the_offset() {
    let mut reply = yielded(20.0);
    reply.ends(20.0, "ana");
    assert_eq!(round(reply.log(20.0)), ["17.5 Noise by ana at 2500", "17.5 resume from 2.1"]);

    reply.starts(21.0, "ana");
    assert_eq!(reply.log(21.0), ["21 duck"]);
}

#[test]
fn yielded_at_one_moment_the_verdict_comes_first() {
    let mut reply = yielded(16.7);
    reply.ends(16.7, "ana").final_(16.7, "ana", "mhm");

    assert_eq!(reply.log(17.5)[1], "17.5 Backchannel by ana at 2500");
}

#[test]
fn yielded_audio_and_positions_are_kept() {
    let mut reply = Reply::preparing();
    reply.sentence(1.0, "One two.", 1.0).input(2.0, Input::FirstAudio);
    reply.plays = Some(20);
    reply.starts(2.5, "ana").partial(2.6, "ana", "aria").ends(2.6, "ana");
    reply.sentence(2.7, " Three.", 1.0).input(2.8, Input::Finished).input(2.9, Input::Played { position: secs(9.0) });
    assert_eq!(reply.log(3.2), ["2 speak", "2.5 duck", "2.6 pause", "2.6 finalize ana"]);

    // Everything was played: a resume has nothing to play.
    assert_eq!(reply.log(9.0), ["3.6 FewWords by ana at 2000", "3.6 done"]);
}

// In any state.

#[test]
fn stop_and_the_end_of_the_call_cut_in_any_state() {
    for (input, verdict) in [(Input::StopPressed, "StopPressed"), (Input::CallEnded, "CallEnded")] {
        for mut reply in [Reply::preparing(), Reply::speaking(), yielded(13.0)] {
            reply.input(13.5, input.clone());
            let log = reply.log(13.5);

            assert!(log[0].starts_with(&format!("13.5 {verdict} by ")), "{log:?}");
            assert_eq!(log[1], "13.5 cut by nobody");
        }
    }
}

#[test]
fn a_reply_that_is_not_wanted_is_cut_if_anything_was_heard() {
    let mut reply = Reply::speaking();
    assert_eq!(reply.input(10.0, Input::Cancelled).log(10.0), ["10 cancelled"]);

    let mut reply = Reply::speaking();
    assert_eq!(reply.input(12.0, Input::Cancelled).log(12.0)[1], "12 cut by nobody");

    assert_eq!(Reply::preparing().input(1.0, Input::ShutDown).log(1.0), ["1 staysowed"]);
    let mut reply = Reply::speaking();
    reply.starts(11.9, "ana");
    let log = reply.input(12.0, Input::ShutDown).log(12.0);
    assert!(log.iter().any(|line| line.starts_with("12 ServerStopping by ")), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("12 restinwriting"));
    assert_eq!(Reply::speaking().input(10.0, Input::ShutDown).log(10.0), ["10 staysowed"]);
}

#[test]
fn what_nobody_hears_any_more_is_written() {
    assert_eq!(Reply::preparing().input(1.0, Input::Silenced).log(1.0), ["1 astext"]);
    assert_eq!(Reply::speaking().input(10.0, Input::Silenced).log(10.0), ["10 astext"]);
    let log = Reply::speaking().input(12.0, Input::Silenced).log(30.0);
    assert_eq!(log, ["12 Silenced by nobody at 2000", "12 restinwriting"]);
}

#[test]
fn a_player_that_was_restarted_makes_what_was_prepared_again_and_has_lost_what_was_played() {
    let mut reply = Reply::among(&["ana"]);
    reply.voice(0.0, 1.0, "ana").sentence(1.0, "One.", 1.0).input(1.0, Input::FirstAudio).voice(1.0, 2.0, "ana");
    reply.input(2.0, Input::PlayerRestarted);
    assert_eq!(reply.machine.script().text(), "", "it is told again");
    reply.voice(2.0, 3.0, "ana").ends(3.0, "ana").until(at(10.0));
    assert_eq!(reply.log, ["3 finalize ana"], "there is no audio yet");
    reply.sentence(10.0, "One.", 1.0).input(10.0, Input::FirstAudio);
    assert_eq!(reply.log(10.0).last().map(String::as_str), Some("10 speak"));

    let log = Reply::speaking().input(12.0, Input::PlayerRestarted).log(30.0);
    assert_eq!(log, ["12 PlaybackLost by nobody at 2000", "12 cut by nobody"]);
}

#[test]
fn a_reply_of_which_nothing_was_played_for_five_seconds_is_written() {
    let mut reply = Reply::speaking();
    reply.plays = None;

    assert_eq!(reply.log(30.0), ["15 astext"]);
}

#[test]
fn a_person_who_is_gone_has_ended() {
    let mut reply = Reply::speaking();
    reply.starts(12.0, "ana").voice(12.0, 12.2, "ana").input(12.4, Input::PersonGone { user: "ana".into() });

    // It is silent since the last hop.
    assert_eq!(reply.log(13.0)[1..], ["12.5 Unducked by ana at 2500", "12.5 unduck"]);
}

#[test]
fn after_the_end_nothing_has_an_effect() {
    let mut reply = Reply::speaking();
    reply.input(12.0, Input::StopPressed);
    reply.log.clear();
    reply.starts(13.0, "ana").voice(13.0, 15.0, "ana").final_(15.0, "ana", "stop").input(16.0, Input::CallEnded);

    assert_eq!(reply.log(99.0), [""; 0]);
    assert_eq!(reply.machine.deadline(), None);
}

#[test]
fn what_was_played_is_remembered_for_its_echo() {
    let mut reply = Reply::speaking();
    reply.until(at(12.0));

    assert!(reply.machine.played_words().is_echo("number 01", at(12.5)));
    assert!(!reply.machine.played_words().is_echo("number 05", at(12.5)));
}

// Readings of the rules (docs/design/voice.md).

#[test]
fn a_final_after_the_last_voiced_hop_is_the_one_that_is_awaited() {
    let ended = |time| Input::Ended { user: "ana".into(), ended: at(time) };
    let mut reply = Reply::preparing();
    reply
        .starts(2.0, "ana")
        .input(2.2, Input::FirstAudio)
        .voice(2.0, 3.0, "ana")
        .final_(3.1, "ana", "mhm")
        .input(3.3, ended(3.0));
    assert_eq!(reply.log(9.0)[..1], ["3.3 speak"]);

    // One that came before is not, and the second begins when the offset is found.
    let mut reply = Reply::preparing();
    reply
        .starts(2.0, "ana")
        .input(2.2, Input::FirstAudio)
        .voice(2.0, 2.9, "ana")
        .final_(2.9, "ana", "mhm")
        .voice(2.9, 3.0, "ana")
        .input(3.3, ended(3.0));
    assert_eq!(reply.log(9.0)[..2], ["3.3 finalize ana", "4.3 speak"]);
}

#[test]
fn talk_that_goes_on_after_a_short_silence_holds_and_ducks_again() {
    let mut reply = Reply::preparing();
    reply.starts(2.0, "ana").voice(2.0, 3.0, "ana").input(3.1, words("ana", "", 2.0, true)).input(3.2, Input::FirstAudio);
    reply.sentence(3.2, "Hello.", 9.0).log(4.0);

    // A second after the hangover nobody waits for the final any more, but the person is still known to talk.
    reply.until(at(4.4));
    reply.log.clear();
    reply.voice(4.5, 4.52, "ana");
    assert_eq!(reply.log(4.6), ["4.52 duck"]);
}

#[test]
fn words_before_an_interruption_do_not_count_for_it() {
    let mut reply = Reply::speaking();
    reply.final_(12.0, "ana", "nice weather").starts(13.0, "bob").voice(13.0, 20.0, "bob");

    assert_eq!(reply.log(20.0)[2..], ["18.5 Noise by bob at 3500", "18.5 resume from 3.086232"]);
}

#[test]
fn words_are_no_voice() {
    let mut reply = Reply::speaking();
    reply.talks(12.0, 12.4, "ana").final_(12.6, "bob", "nice weather");
    assert_eq!(reply.log(13.0), ["12 duck", "12.7 Unducked by ana at 2700", "12.7 unduck"]);

    // An empty partial result is not even words.
    let mut reply = Reply::speaking();
    reply.talks(12.0, 12.6, "ana").final_(12.7, "ana", "mhm").partial(12.8, "ana", "");
    assert_eq!(reply.log(14.0)[3..], ["13.4 Backchannel by ana at 2500", "13.4 resume from 2.087745"]);
}

#[test]
fn noise_of_a_person_who_is_silent_changes_nothing() {
    let mut reply = Reply::speaking();
    reply.talks(12.0, 12.2, "ana").input(12.3, Input::Noise { user: "ana".into() });

    assert_eq!(reply.log(13.0), ["12 duck", "12.5 Unducked by ana at 2500", "12.5 unduck"]);
}

#[test]
fn an_interruption_of_a_reply_of_which_nothing_was_heard_is_on_record() {
    let mut reply = Reply::preparing();
    reply.input(1.0, Input::FirstAudio).starts(1.1, "ana").input(1.2, Input::Cancelled);

    assert_eq!(reply.log(2.0), ["1 speak", "1.1 duck", "1.2 Cancelled by ana at 0", "1.2 cancelled"]);
}
