//! A platform in memory whose connections live and end as a test says.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{Command, Condition, Disconnected, Gateway, Shard, Unsent};

/// How a connection ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Returns(Disconnected),
    Panics,
}

/// A platform in memory.
#[derive(Default)]
pub(crate) struct FakeGateway {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    counts: VecDeque<Result<u32, Disconnected>>,
    asked: usize,
    ends: BTreeMap<u32, VecDeque<End>>,
    alive: BTreeMap<u32, u32>,
    lived: BTreeMap<u32, usize>,
    dropped: BTreeMap<u32, usize>,
    holds_up_server: bool,
}

impl FakeGateway {
    /// One that says these numbers of connections, one after the other; the last one again and again.
    pub(crate) fn counting(counts: impl IntoIterator<Item = Result<u32, Disconnected>>) -> Arc<Self> {
        let counts = counts.into_iter().collect();
        Arc::new(Self { inner: Mutex::new(Inner { counts, ..Inner::default() }), changed: Notify::new() })
    }

    /// A connection ends so: now if it lives, else as soon as it does.
    pub(crate) fn ends(&self, shard: u32, end: End) {
        self.inner.lock().unwrap().ends.entry(shard).or_default().push_back(end);
        self.changed.notify_waiters();
    }

    /// The server is not ready without it.
    pub(crate) fn holds_up_server(&self) {
        self.inner.lock().unwrap().holds_up_server = true;
    }

    /// How often it was asked for the number of connections.
    pub(crate) fn asked(&self) -> usize {
        self.inner.lock().unwrap().asked
    }

    /// The connections that live now, each with how many there are to be.
    pub(crate) fn alive(&self) -> Vec<(u32, u32)> {
        self.inner.lock().unwrap().alive.iter().map(|(shard, of)| (*shard, *of)).collect()
    }

    /// How often a connection was begun.
    pub(crate) fn lived(&self, shard: u32) -> usize {
        self.inner.lock().unwrap().lived.get(&shard).copied().unwrap_or_default()
    }

    /// How often a connection was ended from outside.
    pub(crate) fn dropped(&self, shard: u32) -> usize {
        self.inner.lock().unwrap().dropped.get(&shard).copied().unwrap_or_default()
    }
}

/// Notes that a connection is there, and when it is not any more.
struct Alive<'a> {
    gateway: &'a FakeGateway,
    shard: u32,
    ended_itself: bool,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        let mut inner = self.gateway.inner.lock().unwrap();
        inner.alive.remove(&self.shard);
        if !self.ended_itself {
            *inner.dropped.entry(self.shard).or_default() += 1;
        }
    }
}

#[async_trait]
impl Gateway for FakeGateway {
    fn name(&self) -> &'static str {
        "fake"
    }

    async fn shards(&self) -> Result<NonZeroU32, Disconnected> {
        let mut inner = self.inner.lock().unwrap();
        inner.asked += 1;
        let count = if inner.counts.len() > 1 { inner.counts.pop_front() } else { inner.counts.front().cloned() };
        count.expect("it says something").map(|count| NonZeroU32::new(count).expect("at least one"))
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let before = {
            let mut inner = self.inner.lock().unwrap();
            *inner.lived.entry(shard.number).or_default() += 1;
            inner.alive.insert(shard.number, shard.of.get())
        };
        let mut alive = Alive { gateway: self, shard: shard.number, ended_itself: false };
        assert_eq!(before, None, "nobody lives twice");
        loop {
            let changed = self.changed.notified();
            let end = self.inner.lock().unwrap().ends.get_mut(&shard.number).and_then(VecDeque::pop_front);
            if let Some(end) = end {
                alive.ended_itself = true;
                match end {
                    End::Returns(why) => return why,
                    End::Panics => panic!("as the test wants it"),
                }
            }
            changed.await;
        }
    }

    fn send(&self, _: Command) -> Result<(), Unsent> {
        Err(Unsent::NotConnected)
    }

    fn condition(&self) -> Condition {
        let inner = self.inner.lock().unwrap();
        let detail = format!("{} connections", inner.alive.len());
        Condition { ready: !inner.alive.is_empty(), detail, holds_up_server: inner.holds_up_server }
    }
}
