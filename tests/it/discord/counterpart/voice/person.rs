//! A scripted person in a call: a client that sends any packets, and keeps what it hears.
//!
//! It connects as every client does: to the voice gateway and over UDP, with end-to-end encryption by `davey`.

mod client;
mod encryption;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::super::Id;
use super::Grant;
use super::sessions::Seat;
use crate::harness::PATIENCE;
use client::{Client, Command};

/// The length of one Opus frame.
pub const FRAME: Duration = Duration::from_millis(20);

/// A person in a call. Dropping it cuts the connection.
pub struct Person {
    pub seat: Seat,
    commands: mpsc::UnboundedSender<Command>,
    notes: Arc<Notes>,
    task: AbortHandle,
}

/// An Opus frame that a person heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub at: Instant,
    /// Who said it. With end-to-end encryption this is whose key opened it, otherwise whom the speaking event named.
    pub user: Option<Id>,
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
    pub frame: Vec<u8>,
    pub end_to_end: bool,
}

/// What a person knows.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    pub heard: Vec<Heard>,
    /// The members of the group. Empty: there is none.
    pub group: BTreeSet<Id>,
    /// Whether it has a key to encrypt with.
    pub can_encrypt: bool,
    /// Frames that no key opens, for now or for good.
    pub unopened: usize,
    /// Frames without end-to-end encryption that are not silence, where encryption is in use.
    pub plain: usize,
    /// How often it reported an invalid commit or welcome.
    pub reported: usize,
    /// How the connection ended: with this code, if there was one.
    pub closed: Option<Option<u16>>,
}

#[derive(Default)]
struct Notes {
    noted: Mutex<Noted>,
    changed: Notify,
}

impl Notes {
    fn note<T>(&self, note: impl FnOnce(&mut Noted) -> T) -> T {
        let result = note(&mut self.noted.lock());
        self.changed.notify_waiters();
        result
    }
}

impl Person {
    /// Joins a call.
    ///
    /// # Panics
    ///
    /// The server refuses.
    pub async fn join(grant: Grant, max_dave: u64) -> Self {
        let (seat, notes) = (grant.seat, Arc::new(Notes::default()));
        let (commands, received) = mpsc::unbounded_channel();
        let joined = timeout(PATIENCE, Client::join(grant, max_dave, Arc::clone(&notes))).await.expect("in time");
        let task = tokio::spawn(joined.run(received)).abort_handle();
        Self { seat, commands, notes, task }
    }

    /// Says packets at the pace of speech.
    pub async fn talk(&self, packets: &[Vec<u8>]) -> usize {
        self.send(packets, FRAME, true).await
    }

    async fn send(&self, packets: &[Vec<u8>], pace: Duration, end_to_end: bool) -> usize {
        let (sent, done) = oneshot::channel();
        let say = Command::Say { packets: packets.to_vec().into(), pace, end_to_end, sent, count: 0 };
        self.commands.send(say).expect("the person is in the call");
        done.await.expect("the person stays in the call")
    }

    /// Leaves the call, and waits until the connection is closed.
    pub async fn leave(self) {
        self.command(Command::Leave);
        self.until("the end", |noted| noted.closed).await;
    }

    fn command(&self, command: Command) {
        // A person who was disconnected does nothing more.
        let _ = self.commands.send(command);
    }

    /// Reads what the person knows.
    pub fn look<T>(&self, look: impl FnOnce(&Noted) -> T) -> T {
        look(&self.notes.noted.lock())
    }

    /// Waits until the closure finds something.
    ///
    /// # Panics
    ///
    /// Nothing is found in time. The message names what was awaited.
    pub async fn until<T>(&self, what: &str, mut look: impl FnMut(&Noted) -> Option<T>) -> T {
        let found = async {
            loop {
                let changed = self.notes.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.look(&mut look) {
                    Some(found) => return found,
                    None => changed.await,
                }
            }
        };
        match timeout(PATIENCE, found).await {
            Ok(found) => found,
            Err(_) => panic!(
                "{} timed out waiting for {what}: {:?}",
                self.seat.user,
                self.look(|noted| (noted.group.clone(), noted.heard.len()))
            ),
        }
    }

    /// Waits until the person can talk in a group of so many members.
    pub async fn grouped(&self, members: usize) {
        self.until("the group", |noted| (noted.can_encrypt && noted.group.len() == members).then_some(())).await;
    }

    /// Waits until the person has heard so many frames of a user. Returns all of them so far.
    pub async fn heard_from(&self, user: Id, count: usize) -> Vec<Heard> {
        self.until("the frames", |noted| {
            let from: Vec<Heard> = noted.heard.iter().filter(|heard| heard.user == Some(user)).cloned().collect();
            (from.len() >= count).then_some(from)
        })
        .await
    }

    /// Everything that the person has heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.look(|noted| noted.heard.clone())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.task.abort();
    }
}
