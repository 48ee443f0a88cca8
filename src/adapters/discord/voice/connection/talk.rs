//! Sends the companions' speech, one frame every 20 ms, even if ticks are late.

use std::time::Duration;

use super::super::dave::{SILENCE, Sending};
use super::super::events::Event;
use super::super::messages;
use super::super::rtp::{self, SAMPLES_PER_FRAME};
use super::super::speaking::{Packet, Speaking};
use super::{Connection, Effect, Phase};
use crate::domain::moment::Moment;

const FRAME: Duration = Duration::from_millis(20);
/// Frames that are due for longer than this are skipped, because a burst of frames is useless to the listeners.
const MOST_BEHIND: Duration = Duration::from_millis(200);

/// Our outgoing stream.
pub struct Talk {
    pub(super) speaking: Speaking,
    /// When the next frame is due.
    next: Moment,
    sequence: u16,
    timestamp: u32,
    /// Whether we are sending audio.
    is_on: bool,
    /// The last value of `is_on` that was sent to the server. The server accepts no packet before the first one.
    told: Option<bool>,
}

impl Talk {
    pub(super) fn new(speaking: Speaking, now: Moment) -> Self {
        Self { speaking, next: now + FRAME, sequence: 0, timestamp: 0, is_on: false, told: None }
    }

    pub(super) fn forget_session(&mut self) {
        (self.is_on, self.told) = (false, None);
        self.speaking.forget_silence();
    }
}

impl Connection {
    pub(super) fn send_due_frames(&mut self, now: Moment) {
        let behind = now.since(self.talk.next);
        if behind > MOST_BEHIND {
            let skipped = behind.as_millis() / FRAME.as_millis();
            self.talk.next = self.talk.next + FRAME.saturating_mul(u32::try_from(skipped).unwrap_or(u32::MAX));
            self.talk.timestamp = self.talk.timestamp.wrapping_add(SAMPLES_PER_FRAME.wrapping_mul(skipped as u32));
        }
        while self.talk.next <= now {
            self.talk.next = self.talk.next + FRAME;
            self.send_frame();
            self.talk.timestamp = self.talk.timestamp.wrapping_add(SAMPLES_PER_FRAME);
        }
    }

    /// Sends the server our speaking state, if it has changed.
    pub(super) fn tell_speaking(&mut self) {
        let is_on = self.talk.is_on;
        if let (Phase::Running { .. }, Some(ready)) = (self.phase, self.ready)
            && self.talk.told.unwrap_or(false) != is_on
        {
            self.talk.told = Some(is_on);
            self.effects.push_back(Effect::Text(messages::speak(is_on, ready.ssrc)));
        }
    }

    fn send_frame(&mut self) {
        let is_known = self.talk.told.is_some() || matches!(self.phase, Phase::Running { .. });
        let may_send = self.transport.is_some() && is_known && self.dave.sending() != Sending::Held;
        let (packet, told) = self.talk.speaking.next(may_send);
        match packet {
            Packet::Talk(opus) => {
                self.talk.is_on = true;
                self.tell_speaking();
                let frame = match self.dave.sending() {
                    Sending::Plain => Some(opus),
                    Sending::Encrypted => self.dave.encrypt(&opus),
                    Sending::Held => None,
                };
                match frame.is_some_and(|frame| self.send_packet(&frame)) {
                    true => self.counts.sent += 1,
                    false => self.counts.frames_dropped += 1,
                }
            }
            Packet::Silence => {
                if self.send_packet(&SILENCE) {
                    self.counts.silence_sent += 1;
                }
            }
            Packet::Refused => self.counts.frames_dropped += 1,
            Packet::Held => self.counts.held += 1,
            Packet::Nothing => {}
        }
        if !self.talk.speaking.owes_silence() && self.talk.is_on {
            self.talk.is_on = false;
            self.tell_speaking();
        }
        self.effects.extend(told.into_iter().flatten().map(|sent| Effect::Report(Event::Sent(sent))));
    }

    fn send_packet(&mut self, frame: &[u8]) -> bool {
        let (Some(transport), Some(ready)) = (&mut self.transport, self.ready) else { return false };
        let mut packet = rtp::header(ready.ssrc, self.talk.sequence, self.talk.timestamp);
        let header = packet.len();
        packet.extend_from_slice(frame);
        let Some(packet) = transport.seal(packet, header) else { return false };
        self.talk.sequence = self.talk.sequence.wrapping_add(1);
        self.effects.push_back(Effect::Datagram(packet));
        true
    }
}
