//! Plays what companions say in a call of Discord, and knows how far it was heard.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::voice::{Sent, VoiceConnection};
use crate::ports::call_room::{End, Listener, Packet, Told, View};

/// From when a frame leaves this machine to when people hear it.
const HEARD_AFTER: Duration = Duration::from_millis(200);
const FRAME: Duration = Duration::from_millis(20);

/// What the core plays a call with.
#[derive(Default)]
pub struct Speaker {
    playing: Mutex<Playing>,
    ended: Notify,
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
    /// The positions that will have been heard, oldest first.
    positions: VecDeque<(Instant, Told)>,
}

impl Speaker {
    /// From now on this connection plays. `None`: none does.
    pub fn set_connection(&self, connection: Option<Arc<VoiceConnection>>) {
        self.playing.lock().connection = connection;
    }

    /// The core has ended the call.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// So much of a reply was sent.
    pub fn note_sent(&self, sent: Sent, now: Instant) {
        let mut playing = self.playing.lock();
        let reply = playing.reply;
        if sent.reply != u64::from(reply) {
            return;
        }
        playing.sent = sent.frames;
        let position = playing.from + FRAME * sent.frames.saturating_sub(playing.before);
        playing.positions.push_back((now + HEARD_AFTER, Told::Played { reply, position }));
    }

    /// When a position will have been heard.
    pub fn next_heard(&self) -> Option<Instant> {
        self.playing.lock().positions.front().map(|(at, _)| *at)
    }

    /// The positions that have been heard.
    pub fn heard(&self, now: Instant) -> Vec<Told> {
        let positions = &mut self.playing.lock().positions;
        let heard = positions.iter().take_while(|(at, _)| *at <= now).count();
        positions.drain(..heard).map(|(_, told)| told).collect()
    }
}

impl Listener for Speaker {
    fn show(&self, view: &View) {
        let mut playing = self.playing.lock();
        let duck = |playing: &Playing, on| playing.connection.iter().for_each(|connection| connection.duck(on));
        let flush = |playing: &Playing| playing.connection.iter().for_each(|connection| connection.flush());
        match view {
            View::Speaking { reply, from, .. } => {
                (playing.reply, playing.from, playing.before, playing.sent) = (*reply, *from, 0, 0);
                playing.positions.clear();
                duck(&playing, false);
            }
            View::Duck(_, on) => duck(&playing, *on),
            View::Flush(_) => flush(&playing),
            View::Resume(_, from) => {
                (playing.from, playing.before) = (*from, playing.sent);
                duck(&playing, false);
            }
            View::Cut { .. } => {
                flush(&playing);
                duck(&playing, false);
            }
            View::Done(_) => duck(&playing, false),
            _ => {}
        }
    }

    fn play(&self, packet: &Packet) {
        if let Some(connection) = &self.playing.lock().connection {
            // More than half a minute of audio never waits, because the core is at most 100 ms ahead.
            drop(connection.play(packet.reply.into(), vec![*packet.samples]));
        }
    }

    fn end(&self, _: End) {
        self.ended.notify_one();
    }
}
