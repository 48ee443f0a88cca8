//! Retries: when a connection is attempted again, and when it ends.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::closing::{CLOSE_TO_RESUME, Ended};
use super::super::dave::Dave;
use super::super::discovery;
use super::super::events::Event;
use super::super::messages;
use super::{ANSWER_TIMEOUT, Connection, Effect, Phase};
use crate::domain::moment::Moment;

/// The wait before the discovery request is repeated. It doubles each time.
pub(super) const DISCOVERY_AGAIN: Duration = Duration::from_millis(200);
const MOST_DISCOVERIES: u32 = 5;
/// The limit of attempts in a row, and the waits between them. The first attempt has no wait; then the shortest wait doubles each
/// time.
const MOST_ATTEMPTS: u32 = 10;
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A connection that ran this long counts as working.
const WORKS_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    pub(super) fn open(&mut self, now: Moment) {
        self.phase = Phase::Opening { until: now + ANSWER_TIMEOUT };
        self.effects.push_back(Effect::Open(format!("{}/?v=8", self.server.endpoint)));
    }

    /// Handles the loss of the WebSocket. Without a session to resume, a new one begins.
    pub(super) fn lost(&mut self, now: Moment) {
        self.heartbeats = None;
        if let Phase::Running { since } = self.phase {
            self.effects.push_back(Effect::Report(Event::Resuming));
            if now.since(since) >= WORKS_AFTER {
                self.attempts = 0;
            }
        }
        if self.transport.is_none() {
            self.forget_session();
        }
        self.attempts += 1;
        match self.attempts {
            1 => self.open(now),
            attempts if attempts > MOST_ATTEMPTS => self.end(Ended::Unreachable),
            attempts => {
                let wait = SHORTEST_WAIT.saturating_mul(1 << (attempts - 2)).min(LONGEST_WAIT);
                self.phase = Phase::Waiting { until: now + wait };
            }
        }
    }

    pub(super) fn forget_session(&mut self) {
        self.ready = None;
        self.transport = None;
        self.heartbeats = None;
        self.dave = Dave::new(self.server.user, self.server.channel, 0);
        self.newest = -1;
        self.early.clear();
        self.early_bytes = 0;
        self.users = BTreeSet::from([self.server.user]);
        self.hearing.reset(self.server.user);
        self.recovery.0 = None;
        self.talk.forget_session();
    }

    pub(super) fn end(&mut self, ended: Ended) {
        self.phase = Phase::Ended;
        self.forget_session();
        self.effects.push_back(Effect::Report(Event::Ended(ended)));
    }

    pub(super) fn watch_deadlines(&mut self, now: Moment) {
        match self.phase {
            Phase::Waiting { until } if until <= now => self.open(now),
            Phase::Opening { until } | Phase::Identifying { until } | Phase::Selecting { until } | Phase::Resuming { until }
                if until <= now =>
            {
                self.effects.push_back(Effect::Close(CLOSE_TO_RESUME));
                self.lost(now);
            }
            Phase::Discovering { again, asked } if again <= now => match self.ready {
                Some(ready) if asked < MOST_DISCOVERIES => {
                    let again = now + DISCOVERY_AGAIN.saturating_mul(1 << asked);
                    self.phase = Phase::Discovering { again, asked: asked + 1 };
                    self.effects.push_back(Effect::Datagram(discovery::request(ready.ssrc)));
                }
                _ => {
                    self.effects.push_back(Effect::Close(CLOSE_TO_RESUME));
                    self.lost(now);
                }
            },
            _ => {}
        }
    }

    /// Sends a heartbeat if it is due. If the previous one was not acknowledged, the connection is dead, even if the socket is
    /// still open.
    pub(super) fn beat(&mut self, now: Moment) {
        let Some(heartbeats) = &mut self.heartbeats else { return };
        if now < heartbeats.next {
            return;
        }
        if heartbeats.is_unacknowledged {
            self.counts.missed_acknowledgements += 1;
            self.effects.push_back(Effect::Close(CLOSE_TO_RESUME));
            return self.lost(now);
        }
        heartbeats.next = now + heartbeats.interval;
        heartbeats.is_unacknowledged = true;
        self.effects.push_back(Effect::Text(messages::heartbeat(now.as_micros() / 1_000, self.newest)));
    }
}
