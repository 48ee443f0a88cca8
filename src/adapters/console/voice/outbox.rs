//! The queue of messages and frames to a page. Messages are never dropped; if there is too much audio, the oldest frame is
//! dropped.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::protocol::{
    self, Close, CompanionFrame, FRAME_MS, MAX_UNSENT_FRAMES, SAMPLE_RATE, SampleRates, ServerMessage, Trouble, VERSION,
};
use crate::domain::voice::segment::Kind;
use crate::ports::backend::Detail;
use crate::ports::call_room::{self, End, Listener, Packet, View};
use crate::telemetry::instruments::{Instruments, NONE};
use crate::visitor;

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    Message(String),
    /// A packet of a reply.
    Frame(Vec<u8>),
    /// The connection ends.
    End(Close),
}

/// The maximum length of the queue. Beyond it, the connection is closed, because the page reads too slowly.
const MAX_WAITING: usize = 2_000;

#[derive(Default)]
struct Waiting {
    all: VecDeque<Out>,
    /// The number of frames in the queue.
    frames: usize,
}

impl Waiting {
    fn pop(&mut self) -> Option<Out> {
        let out = self.all.pop_front()?;
        self.frames -= usize::from(matches!(out, Out::Frame(_)));
        Some(out)
    }

    fn drop_oldest_frame(&mut self) -> bool {
        let oldest = self.all.iter().position(|out| matches!(out, Out::Frame(_)));
        self.frames -= usize::from(oldest.is_some());
        oldest.and_then(|oldest| self.all.remove(oldest)).is_some()
    }
}

pub struct Outbox {
    waiting: Mutex<Waiting>,
    added: Notify,
    /// Whether the page is a guest's.
    is_for_guest: bool,
    instruments: Instruments,
}

impl Outbox {
    pub fn new(is_for_guest: bool, instruments: Instruments) -> Self {
        Self { waiting: Mutex::default(), added: Notify::new(), is_for_guest, instruments }
    }

    /// Waits for the next entry.
    pub async fn next(&self) -> Out {
        loop {
            let added = self.added.notified();
            if let Some(out) = self.waiting.lock().pop() {
                return out;
            }
            added.await;
        }
    }

    /// Adds a message, unless the page is a guest's and guests do not get the message.
    pub fn push(&self, message: ServerMessage) {
        if !self.is_for_guest || visitor::may_get(&message) {
            self.add(Out::Message(message.write()));
        }
    }

    fn add(&self, out: Out) {
        let dropped = {
            let mut waiting = self.waiting.lock();
            waiting.frames += usize::from(matches!(out, Out::Frame(_)));
            waiting.all.push_back(out);
            if waiting.all.len() > MAX_WAITING {
                // The page reads too slowly, and would never catch up.
                waiting.all.clear();
                waiting.frames = 0;
                waiting.all.push_back(Out::End(Close::TooSlow));
            }
            waiting.frames > MAX_UNSENT_FRAMES && waiting.drop_oldest_frame()
        };
        if dropped {
            self.instruments.voice_frames_unsent.add(1, NONE);
        }
        self.added.notify_one();
    }
}

impl Listener for Outbox {
    fn show(&self, view: &View) {
        self.push(message(view));
    }

    fn play(&self, packet: &Packet) {
        let Packet { reply, number, bytes, .. } = packet;
        self.add(Out::Frame(CompanionFrame { number: *number, reply: *reply, packet: bytes }.write()));
    }

    fn end(&self, end: End) {
        self.add(Out::End(match end {
            End::Left => Close::Left,
            End::Moved => Close::Moved,
            End::Ended => Close::Ended,
        }));
    }
}

fn message(view: &View) -> ServerMessage {
    match view {
        View::Entered { you, people } => ServerMessage::Hello {
            version: VERSION,
            heartbeat_secs: super::PULSE_EVERY.as_secs() as u32,
            frame_ms: FRAME_MS,
            sample_rates: SampleRates::default(),
            you: you.as_str().to_owned(),
            people: people.iter().map(person).collect(),
        },
        View::Joined(who) => ServerMessage::Joined(person(who)),
        View::Changed(who) => ServerMessage::Changed(person(who)),
        View::Left(user) => ServerMessage::Left { user: user.as_str().to_owned() },
        View::Talking(user, on) => ServerMessage::Talking { user: user.as_str().to_owned(), on: *on },
        View::Noise(user) => ServerMessage::Noise { user: user.as_str().to_owned() },
        View::Caption { user, text, kind } => ServerMessage::Caption {
            user: user.as_str().to_owned(),
            text: text.to_string(),
            is_final: kind.is_some(),
            kind: kind.unwrap_or(Kind::Words),
        },
        View::Thinking(companion, on) => ServerMessage::Thinking { companion: companion.as_str().to_owned(), on: *on },
        View::Speaking { companion, reply, from } => {
            ServerMessage::Speaking { companion: companion.as_str().to_owned(), reply: *reply, from: samples(*from) }
        }
        View::Sentence { reply, from, text } => {
            ServerMessage::Sentence { reply: *reply, from: samples(*from), text: text.to_string() }
        }
        View::Duck(reply, on) => ServerMessage::Duck { reply: *reply, on: *on },
        View::Flush(reply) => ServerMessage::Flush { reply: *reply },
        View::Resume(reply, from) => ServerMessage::Resume { reply: *reply, from: samples(*from) },
        View::Done(reply) => ServerMessage::Done { reply: *reply },
        View::Cut { reply, heard } => ServerMessage::Cut { reply: *reply, heard: heard.to_string() },
        View::Trouble(trouble) => trouble_message(*trouble),
    }
}

fn trouble_message(trouble: call_room::Trouble) -> ServerMessage {
    let (code, advice) = match trouble {
        call_room::Trouble::RecognitionFailed => (Trouble::RecognitionFailed, "refusals.not_recognised"),
        call_room::Trouble::RecognitionFull => (Trouble::RecognitionFull, "refusals.recognised_later"),
        call_room::Trouble::RecognitionUsedUp => (Trouble::RecognitionUsedUp, "refusals.recognised_no_more"),
        call_room::Trouble::NotHeard => (Trouble::RecognitionFailed, "refusals.not_heard"),
        call_room::Trouble::SaysAlready => (Trouble::SayRefused, "refusals.says_already"),
        call_room::Trouble::SaysTooMuch => (Trouble::SayRefused, "refusals.says_too_much"),
        call_room::Trouble::CallTooLong => (Trouble::CallTooLong, "refusals.call_was_long"),
        call_room::Trouble::SynthesisFailed => (Trouble::SynthesisFailed, "refusals.not_spoken"),
        call_room::Trouble::SynthesisUsedUp => (Trouble::SynthesisUsedUp, "refusals.spoken_no_more"),
    };
    let advice = Detail::key(advice);
    ServerMessage::Error { code, fix: advice.to_string(), why: advice.why() }
}

/// A person as the page sees it.
pub fn person(person: &call_room::Person) -> protocol::Person {
    protocol::Person {
        user: person.user.as_str().to_owned(),
        muted: person.is_muted,
        listening: person.only_listens,
        ignored: person.is_ignored,
        talking: person.talks,
    }
}

fn samples(position: Duration) -> u64 {
    (position.as_micros() * u128::from(SAMPLE_RATE) / 1_000_000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn advice_about_what_fails_is_sent_as_text_and_as_a_code() {
        let ServerMessage::Error { code, fix, why } = trouble_message(call_room::Trouble::NotHeard) else { panic!("an error") };

        assert_eq!(code, Trouble::RecognitionFailed);
        assert_eq!(fix, "You are not heard any more. Leave the call and enter it again.");
        assert_eq!(json!(why), json!({ "code": "not_heard" }));
    }
}
