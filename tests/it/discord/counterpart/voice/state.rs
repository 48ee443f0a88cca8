//! The whole state of the voice servers, behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::super::Id;
use super::dave::Group;
use super::faults::Faults;
use super::journal::{Counts, Journal};
use super::mls::Sender;
use super::sessions::{Connection, Grant, Seat, Session};
use super::{Rules, VoiceServer};

pub struct Voice {
    pub rules: Rules,
    pub faults: Faults,
    pub journal: Journal,
    /// Grants by their token.
    pub grants: BTreeMap<String, Grant>,
    /// Tokens that were valid before.
    pub revoked: BTreeSet<String>,
    pub connections: BTreeMap<usize, Connection>,
    pub connected: usize,
    pub sessions: BTreeMap<Seat, Session>,
    pub counts: BTreeMap<Seat, Counts>,
    /// Who is sent no audio.
    pub deafened: BTreeSet<Seat>,
    /// The group of each call, by its channel.
    pub groups: BTreeMap<Id, Group>,
    pub sender: Sender,
    pub rng: StdRng,
    /// The addresses of the servers, with their sockets for audio.
    pub servers: Vec<(String, Arc<UdpSocket>)>,
    /// The server of each call, by its channel. Calls begin on the first one.
    pub hosts: BTreeMap<Id, usize>,
    pub made: u64,
    pub shared: Weak<Shared>,
}

/// The state, with notifications of its changes.
pub struct Shared {
    voice: Mutex<Voice>,
    changed: Notify,
}

impl Shared {
    pub fn new(make: impl FnOnce(Weak<Self>) -> Voice) -> Arc<Self> {
        Arc::new_cyclic(|shared| Self { voice: Mutex::new(make(Weak::clone(shared))), changed: Notify::new() })
    }

    /// Changes the state, and wakes all tasks that wait for a change.
    pub fn with<T>(&self, act: impl FnOnce(&mut Voice) -> T) -> T {
        let result = act(&mut self.voice.lock());
        self.changed.notify_waiters();
        result
    }

    /// Reads the state.
    pub fn look<T>(&self, look: impl FnOnce(&Voice) -> T) -> T {
        look(&self.voice.lock())
    }

    /// Waits until the closure finds something in the state.
    pub async fn until<T>(&self, mut look: impl FnMut(&Voice) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let seen = look(&self.voice.lock());
            match seen {
                Some(seen) => return seen,
                None => changed.await,
            }
        }
    }
}

impl Voice {
    /// Does something later, unless the servers are gone by then.
    pub fn later(&self, delay: Duration, act: impl FnOnce(&mut Self) + Send + 'static) {
        let shared = Weak::clone(&self.shared);
        tokio::spawn(async move {
            sleep(delay).await;
            if let Some(shared) = shared.upgrade() {
                shared.with(act);
            }
        });
    }

    /// A number that was not used before.
    pub fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The users in a call: those who have a session description.
    pub fn members(&self, channel: Id) -> Vec<Id> {
        let sessions = self.sessions.iter().filter(|(seat, session)| seat.channel == channel && session.cipher.is_some());
        sessions.map(|(seat, _)| seat.user).collect()
    }
}

impl VoiceServer {
    /// Reads the state under its lock.
    pub fn look<T>(&self, look: impl FnOnce(&Voice) -> T) -> T {
        self.shared.look(look)
    }

    /// Changes the state and wakes everything that waits for a change.
    pub fn with<T>(&self, act: impl FnOnce(&mut Voice) -> T) -> T {
        self.shared.with(act)
    }
}
