//! Plays the companions' speech in a Discord call, and estimates how much of it people have heard.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::voice::{Sent, VoiceConnection};
use crate::ports::audio::SPOKEN_FRAME;
use crate::ports::call_room::{End, Listener, Packet, PersonAction, Trouble, View};

/// The estimated delay between sending a frame and people hearing it.
const HEARD_AFTER: Duration = Duration::from_millis(200);
const FRAME: Duration = Duration::from_millis(20);
/// The limit of frames that wait for a connection. The core gives up a reply before this is reached.
const MOST_UNSENT: usize = 500;

/// The core's listener for a call: plays replies through the current connection.
pub struct Speaker {
    playing: Mutex<Playing>,
    /// Called when the core ends the call.
    on_end: Box<dyn Fn() + Send + Sync>,
    /// Called when a speech service fails.
    on_trouble: Box<dyn Fn(Trouble) + Send + Sync>,
}

#[derive(Default)]
struct Playing {
    connection: Option<Arc<VoiceConnection>>,
    reply: u32,
    /// The position of the first frame after `before`.
    from: Duration,
    /// The number of the reply's frames that were sent before it was resumed.
    before: u32,
    /// The number of the reply's frames that were sent.
    sent: u32,
    /// The frames of the reply that are not sent yet, oldest first. If the connection ends, the next one sends them.
    unsent: VecDeque<Box<[i16; SPOKEN_FRAME]>>,
    /// The positions that people will have heard, each with its time, oldest first.
    positions: VecDeque<(Instant, PersonAction)>,
}

impl Speaker {
    pub fn new(on_end: impl Fn() + Send + Sync + 'static, on_trouble: impl Fn(Trouble) + Send + Sync + 'static) -> Self {
        Self { playing: Mutex::default(), on_end: Box::new(on_end), on_trouble: Box::new(on_trouble) }
    }

    /// Sets the connection that plays. It starts with the frames that the previous one has not sent. `None`: nothing plays.
    pub fn set_connection(&self, connection: Option<Arc<VoiceConnection>>) {
        let mut playing = self.playing.lock();
        if let Some(connection) = &connection {
            // A new connection counts the sent frames from 0.
            playing.from = playing.position();
            (playing.before, playing.sent) = (0, 0);
            let frames: Vec<_> = playing.unsent.iter().map(|frame| **frame).collect();
            connection.play(playing.reply.into(), frames);
        }
        playing.connection = connection;
    }

    /// Records how many frames of a reply were sent.
    pub fn note_sent(&self, sent: Sent, now: Instant) {
        let mut playing = self.playing.lock();
        let reply = playing.reply;
        if sent.reply != u64::from(reply) {
            return;
        }
        let newly_sent = sent.frames.saturating_sub(playing.sent) as usize;
        let newly_sent = newly_sent.min(playing.unsent.len());
        playing.unsent.drain(..newly_sent);
        playing.sent = sent.frames;
        let position = playing.position();
        playing.positions.push_back((now + HEARD_AFTER, PersonAction::Played { reply, position }));
    }

    /// When the next position will have been heard.
    pub fn next_heard(&self) -> Option<Instant> {
        self.playing.lock().positions.front().map(|(at, _)| *at)
    }

    /// Removes and returns the positions that have been heard.
    pub fn heard(&self, now: Instant) -> Vec<PersonAction> {
        let positions = &mut self.playing.lock().positions;
        let heard = positions.iter().take_while(|(at, _)| *at <= now).count();
        positions.drain(..heard).map(|(_, told)| told).collect()
    }
}

impl Playing {
    /// The position up to which the reply was sent.
    fn position(&self) -> Duration {
        self.from + FRAME * self.sent.saturating_sub(self.before)
    }

    fn flush(&mut self) {
        self.unsent.clear();
        self.connection.iter().for_each(|connection| connection.flush());
    }
}

impl Listener for Speaker {
    fn show(&self, view: &View) {
        if let View::Trouble(trouble) = view {
            return (self.on_trouble)(*trouble);
        }
        let mut playing = self.playing.lock();
        let duck = |playing: &Playing, on| playing.connection.iter().for_each(|connection| connection.duck(on));
        match view {
            View::Speaking { reply, from, .. } => {
                (playing.reply, playing.from, playing.before, playing.sent) = (*reply, *from, 0, 0);
                playing.positions.clear();
                playing.unsent.clear();
                duck(&playing, false);
            }
            View::Duck(_, on) => duck(&playing, *on),
            View::Flush(_) => playing.flush(),
            View::Resume(_, from) => {
                (playing.from, playing.before) = (*from, playing.sent);
                duck(&playing, false);
            }
            View::Cut { .. } => {
                playing.flush();
                duck(&playing, false);
            }
            View::Done(_) => duck(&playing, false),
            _ => {}
        }
    }

    fn play(&self, packet: &Packet) {
        let mut playing = self.playing.lock();
        if packet.reply == playing.reply && playing.unsent.len() < MOST_UNSENT {
            playing.unsent.push_back(packet.samples.clone());
        }
        if let Some(connection) = &playing.connection {
            // The connection's limit of half a minute of audio is never reached, because the core is at most 100 ms ahead.
            connection.play(packet.reply.into(), vec![*packet.samples]);
        }
    }

    fn end(&self, _: End) {
        (self.on_end)();
    }
}
