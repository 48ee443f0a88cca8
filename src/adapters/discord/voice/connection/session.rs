//! The start of a session, and the numbering of its messages.

use std::net::{IpAddr, SocketAddr};

use super::super::closing::{CLOSE_TO_LEAVE, Ended};
use super::super::dave::Dave;
use super::super::discovery;
use super::super::events::Event;
use super::super::messages;
use super::super::transport::{Mode, Transport};
use super::attempts::DISCOVERY_AGAIN;
use super::{Connection, Early, Effect, KEEPALIVE_EVERY, Phase, Ready};
use crate::domain::moment::Moment;

/// The limits of messages kept before the session description arrives.
const MOST_EARLY: usize = 256;
const MOST_EARLY_BYTES: usize = 256 << 10;
/// A message counts as repeated if its number is less than this far behind the newest one.
const REPEATED_WITHIN: i16 = 1_000;

impl Connection {
    /// Records the number of a message. Returns whether the message is new.
    pub(super) fn is_new(&mut self, number: i64) -> bool {
        // The server's numbers wrap at 16 bits, at least in binary messages.
        let ahead = (number as u16).wrapping_sub(self.newest as u16) as i16;
        if self.newest >= 0 && ahead <= 0 && ahead > -REPEATED_WITHIN {
            self.counts.messages_repeated += 1;
            return false;
        }
        self.newest = number;
        true
    }

    pub(super) fn keep_early(&mut self, early: Early, bytes: usize) {
        if self.early.len() >= MOST_EARLY || self.early_bytes + bytes > MOST_EARLY_BYTES {
            self.counts.messages_refused += 1;
            return;
        }
        self.early_bytes += bytes;
        self.early.push_back(early);
    }

    pub(super) fn ready(&mut self, ssrc: u32, ip: IpAddr, port: u16, mode: Option<Mode>, now: Moment) {
        let Some(mode) = mode else {
            self.effects.push_back(Effect::Close(CLOSE_TO_LEAVE));
            return self.end(Ended::NoMode);
        };
        self.ready = Some(Ready { ssrc, mode });
        self.keepalive.0 = now + KEEPALIVE_EVERY;
        self.phase = Phase::Discovering { again: now + DISCOVERY_AGAIN, asked: 1 };
        self.effects.push_back(Effect::OpenDatagrams(SocketAddr::new(ip, port)));
        self.effects.push_back(Effect::Datagram(discovery::request(ssrc)));
    }

    pub(super) fn described(&mut self, mode: Mode, key: &[u8; 32], dave_version: u16, now: Moment) {
        let Some(transport) = self.ready.filter(|ready| ready.mode == mode).and_then(|_| Transport::new(mode, key)) else {
            self.counts.messages_refused += 1;
            return;
        };
        self.transport = Some(transport);
        self.phase = Phase::Running { since: now };
        self.dave = Dave::new(self.server.user, self.server.channel, dave_version);
        self.effects.push_back(Effect::Report(Event::Connected));
        self.tell_end_to_end(true);
        self.begin_group(dave_version);
        self.early_bytes = 0;
        for early in std::mem::take(&mut self.early) {
            match early {
                Early::Text(told) => self.follow(told, now),
                Early::Binary(bytes) => {
                    if let Some(message) = messages::parse_binary(&bytes) {
                        self.follow_group(message.told, now);
                    }
                }
            }
        }
    }
}
