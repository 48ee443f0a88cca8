//! Plays a script through the machine that decides what happens to a spoken reply when people talk.

use std::collections::BTreeMap;
use std::time::Duration;

use tertulia::domain::id::{CompanionId, PersonId};
use tertulia::domain::moment::Moment;
use tertulia::domain::voice::echo::PlayedWords;
use tertulia::domain::voice::heard::WordTime;
use tertulia::domain::voice::interruption::{self, Outcome, SpokenReply, Verdict, Words, tolerance};
use tertulia::domain::voice::segment::Kind;

use super::{Event, Log, Names, lists, onset};

struct Reply {
    machine: SpokenReply,
    names: Names,
    /// The sentences of the answer that is spoken: their numbers in the script, in order.
    sentences: Vec<u64>,
    log: Log,
}

/// The effects of a script, with their moments.
pub fn run(config: &Event, events: &[Event]) -> Log {
    let level = serde_json::from_value(config.get("tier").clone()).expect("an interjection level");
    let mood = config.get("mood").as_f64().unwrap_or_default();
    let tolerance = tolerance::probability(level, mood, config.is("unsolicited").unwrap_or(false));
    let timeout = Duration::from_micros(config.number("main_timeout_us").unwrap_or(60_000_000)) + Duration::from_secs(5);
    let talking: Vec<_> = config.texts("talking").iter().map(|user| PersonId::from(user.as_str())).collect();
    let companion = config.text("companion").into();
    let machine = SpokenReply::new(companion, tolerance, timeout, PlayedWords::default(), talking, Moment::ZERO);
    let mut names = Names::default();
    let companions: BTreeMap<String, Vec<String>> = serde_json::from_value(config.get("companions").clone()).expect("names");
    companions.iter().for_each(|(companion, all)| names.join(companion, all));

    let mut reply = Reply { machine, names, sentences: Vec::new(), log: Vec::new() };
    for event in events {
        reply.wait_until(event.at());
        reply.take(event);
    }
    reply.wait_until(u64::MAX);
    reply.log
}

impl Reply {
    /// Does what is due before a moment.
    fn wait_until(&mut self, end: u64) {
        while let Some(deadline) = self.machine.deadline().filter(|deadline| deadline.at.as_micros() < end) {
            let effects = self.machine.wake(deadline.at);
            self.follow(deadline.at.as_micros(), effects);
        }
    }

    fn tell(&mut self, at: u64, input: interruption::Input, draw: Option<f64>) {
        let effects = self.machine.handle(Moment::from_micros(at), input, &mut || draw);
        self.follow(at, effects);
    }

    fn take(&mut self, event: &Event) {
        let (at, user) = (event.at(), PersonId::from(event.text("user")));
        let now = Moment::from_micros(at);
        let sentence = event.number("sentence").and_then(|number| self.sentences.iter().position(|one| *one == number));
        let draw = event.get("draw").as_f64();
        let millis = |key: &str| Duration::from_millis(event.number(key).unwrap_or_default());
        let input = match event.text("input") {
            "started" => {
                // As the detector reports it: the onset, and that it was voiced.
                let started = event.moment("started").unwrap_or(Moment::from_micros(at - onset().min(at)));
                self.tell(at, interruption::Input::Started { user: user.clone(), started }, draw);
                interruption::Input::Voiced { user, from: started, to: now }
            }
            "voiced" => interruption::Input::Voiced {
                user,
                from: event.moment("from").unwrap_or(now),
                to: event.moment("to").unwrap_or(now),
            },
            "ended" => interruption::Input::Ended { user, ended: event.moment("ended").unwrap_or(now) },
            "person_gone" => interruption::Input::PersonGone { user },
            "noise" => interruption::Input::Noise { user },
            "words" => self.words(event),
            "sentence" => {
                self.sentences.push(event.number("sentence").unwrap_or_default());
                let text = event.text("text");
                interruption::Input::Sentence { text: text.into(), words: word_times(event, text) }
            }
            "audio" => match sentence {
                Some(sentence) => interruption::Input::Audio { sentence, length: millis("ms") },
                None => return,
            },
            "whole" => match sentence {
                Some(sentence) => interruption::Input::Whole { sentence },
                None => return,
            },
            "first_audio" => interruption::Input::FirstAudio,
            "finished" => interruption::Input::Finished,
            "stall" => interruption::Input::Stall,
            "played" => interruption::Input::Played { position: millis("ms") },
            "stop_pressed" => interruption::Input::StopPressed,
            "typed" if lists().is_only_stop(event.text("text")) => interruption::Input::StopPressed,
            "call_ended" => interruption::Input::CallEnded,
            "cancelled" => interruption::Input::Cancelled,
            "companion_joined" => return self.names.join(event.text("companion"), &event.texts("names")),
            "companion_left" => return self.names.leave(event.text("companion")),
            _ => return,
        };
        self.tell(at, input, draw);
    }

    fn words(&self, event: &Event) -> interruption::Input {
        let (text, is_final) = (event.text("text"), event.is("is_final").unwrap_or(false));
        let started = event.moment("started").unwrap_or(Moment::from_micros(event.at()));
        let kind = match () {
            () if is_final && event.is("greyed").unwrap_or(false) => Kind::Noise,
            () if self.machine.played_words().is_echo(text, started) => Kind::Echo,
            () => Kind::Words,
        };
        let addressed = self.names.in_text(text).iter().map(|companion| CompanionId::from(companion.as_str())).collect();
        let words = Words::of(text, kind, addressed, &lists(), |name| self.names.contain(name));
        interruption::Input::Words { user: event.text("user").into(), started, is_final, words }
    }

    fn follow(&mut self, at: u64, effects: Vec<interruption::Effect>) {
        let mut verdict = None;
        for effect in effects {
            let line = match effect {
                interruption::Effect::Speak => "speak".to_owned(),
                interruption::Effect::Duck => "duck".to_owned(),
                interruption::Effect::Unduck => "unduck".to_owned(),
                interruption::Effect::Pause => "pause".to_owned(),
                interruption::Effect::Resume { from } => format!("resume from {}", from.as_millis()),
                interruption::Effect::Finalize { .. } => continue,
                interruption::Effect::Extend => {
                    self.sentences.clear();
                    "extend".to_owned()
                }
                interruption::Effect::SentenceDropped { sentence } => format!("dropped {}", self.sentences[sentence]),
                interruption::Effect::Interrupted(record) => {
                    verdict = Some(record.verdict);
                    let is_cut = matches!(self.machine.outcome(), Some(Outcome::Cut { .. }));
                    let Some(verdict) = going_on(record.verdict).filter(|_| !is_cut) else { continue };
                    let who = record.who.as_ref().map_or("nobody", PersonId::as_str);
                    format!("interrupted by {who} at {}: {verdict}", record.at_ms)
                }
                interruption::Effect::Ended(outcome) => {
                    let heard = self.machine.heard();
                    let heard = heard.trim();
                    match outcome {
                        Outcome::Done => format!("done, heard {heard:?}"),
                        Outcome::Cut { .. } => format!("cut for {}, heard {heard:?}", verdict.map_or("no reason", reason)),
                        Outcome::Cancelled => "cancelled".to_owned(),
                        Outcome::AsText => "talked over".to_owned(),
                        Outcome::Failed => "failed".to_owned(),
                        Outcome::StaysOwed => "stays owed".to_owned(),
                        Outcome::RestInWriting => "rest in writing".to_owned(),
                    }
                }
            };
            self.log.push((at, line));
        }
    }
}

/// How an interruption comes out that does not cut the reply.
fn going_on(verdict: Verdict) -> Option<&'static str> {
    Some(match verdict {
        Verdict::Unducked => "unduck",
        Verdict::PlayedOut => "done",
        Verdict::NothingSaid => "nothing",
        Verdict::Backchannel => "backchannel",
        Verdict::FewWords => "short",
        Verdict::Noise => "noise",
        Verdict::Cancelled => "cancelled",
        _ => return None,
    })
}

fn reason(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::StopWord => "stop_word",
        Verdict::Addressed => "address",
        Verdict::ManyWords => "talk",
        Verdict::TookTooLong => "limit",
        Verdict::StopPressed => "stop_pressed",
        Verdict::CallEnded => "call_ended",
        Verdict::PlaybackLost => "playback_lost",
        Verdict::ServerStopping => "cancelled",
        Verdict::Cancelled => "cancelled",
        _ => "another reason",
    }
}

/// The times of a sentence's words: for each one the beginning and the end in milliseconds, and the number of characters up to its end.
fn word_times(event: &Event, text: &str) -> Vec<WordTime> {
    let ends: Vec<_> = text.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let time = |word: &serde_json::Value| {
        let [start, end, chars] = serde_json::from_value::<[u64; 3]>(word.clone()).expect("a word's times");
        let text_end =
            usize::try_from(chars).ok().and_then(|chars| ends.get(chars - 1).copied()).expect("characters of the text");
        WordTime { text_end, start: Duration::from_millis(start), end: Duration::from_millis(end) }
    };
    event.list("words").iter().map(time).collect()
}

/// The effects of the second implementation, as this one shows them.
pub fn shown(effects: &[Event]) -> Log {
    let line = |effect: &Event| {
        Some(match effect.text("effect") {
            name @ ("speak" | "duck" | "unduck" | "pause" | "extend" | "cancelled") => name.to_owned(),
            "resume" => format!("resume from {}", effect.number("from_ms").unwrap_or_default()),
            "next_sentence" => format!("dropped {}", effect.number("dropped").unwrap_or_default()),
            "interrupted" if effect.text("verdict") != "cut" => {
                let at = effect.number("at_ms").unwrap_or_default();
                format!("interrupted by {} at {at}: {}", effect.text("who"), effect.text("verdict"))
            }
            "done" => format!("done, heard {:?}", effect.text("heard").trim()),
            "cut" => format!("cut for {}, heard {:?}", effect.text("reason"), effect.text("heard").trim()),
            "post_as_text" => "talked over".to_owned(),
            "failed" if effect.text("reason") == "talked_over" => "talked over".to_owned(),
            "failed" => "failed".to_owned(),
            _ => return None,
        })
    };
    effects.iter().filter_map(|effect| Some((effect.at(), line(effect)?))).collect()
}
