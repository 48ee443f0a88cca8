//! Plays what companions say in a call of Discord, and estimates how far it was heard.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::voice::{Sent, VoiceConnection};
use crate::ports::audio::SPOKEN_FRAME;
use crate::ports::call_room::{End, Listener, Packet, PersonAction, Trouble, View};

/// From when a frame leaves this machine to when people hear it.
const HEARD_AFTER: Duration = Duration::from_millis(200);
const FRAME: Duration = Duration::from_millis(20);
/// The frames that wait for a connection at most: the core gives a reply up earlier.
const MOST_UNSENT: usize = 500;

/// What the core plays a call with.
pub struct Speaker {
    playing: Mutex<Playing>,
    /// Called when the core has ended the call.
    on_end: Box<dyn Fn() + Send + Sync>,
    /// Called when something does not work.
    on_trouble: Box<dyn Fn(Trouble) + Send + Sync>,
}

#[derive(Default)]
struct Playing {
    connection: Option<Arc<VoiceConnection>>,
    reply: u32,
    /// The position of the first frame after `before`.
    from: Duration,
    /// The frames of the reply that were sent before it was resumed.
    before: u32,
    /// The frames of the reply that were sent.
    sent: u32,
    /// The frames of the reply that were not sent yet, oldest first. The next connection sends them if this one ends.
    unsent: VecDeque<Box<[i16; SPOKEN_FRAME]>>,
    /// The positions that will have been heard, oldest first.
    positions: VecDeque<(Instant, PersonAction)>,
}

impl Speaker {
    pub fn new(on_end: impl Fn() + Send + Sync + 'static, on_trouble: impl Fn(Trouble) + Send + Sync + 'static) -> Self {
        Self { playing: Mutex::default(), on_end: Box::new(on_end), on_trouble: Box::new(on_trouble) }
    }

    /// From now on this connection plays, beginning with what the one before has not sent. `None`: none does.
    pub fn set_connection(&self, connection: Option<Arc<VoiceConnection>>) {
        let mut playing = self.playing.lock();
        if let Some(connection) = &connection {
            // It counts from 0.
            playing.from = playing.position();
            (playing.before, playing.sent) = (0, 0);
            let frames: Vec<_> = playing.unsent.iter().map(|frame| **frame).collect();
            connection.play(playing.reply.into(), frames);
        }
        playing.connection = connection;
    }

    /// So much of a reply was sent.
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

    /// When a position will have been heard.
    pub fn next_heard(&self) -> Option<Instant> {
        self.playing.lock().positions.front().map(|(at, _)| *at)
    }

    /// The positions that have been heard.
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
            // More than half a minute of audio never waits, because the core is at most 100 ms ahead.
            connection.play(packet.reply.into(), vec![*packet.samples]);
        }
    }

    fn end(&self, _: End) {
        (self.on_end)();
    }
}
