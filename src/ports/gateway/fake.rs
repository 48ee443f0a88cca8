//! A fake platform in memory. A test controls how its connections end.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Command, Condition, Disconnected, Gateway, Shard, Unsent};

/// How a connection ends.
#[derive(Clone, Debug)]
pub enum End {
    Returns(Disconnected),
    Panics,
}

/// A fake platform in memory.
#[derive(Default)]
pub struct FakeGateway {
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
    blocks_readiness: bool,
}

impl FakeGateway {
    /// A gateway that reports these numbers of connections in order, and then repeats the last one.
    pub fn counting(counts: impl IntoIterator<Item = Result<u32, Disconnected>>) -> Arc<Self> {
        let counts = counts.into_iter().collect();
        Arc::new(Self { inner: Mutex::new(Inner { counts, ..Inner::default() }), changed: Notify::new() })
    }

    /// Ends a connection: now if it is running, otherwise as soon as it starts.
    pub fn ends(&self, shard: u32, end: End) {
        self.inner.lock().ends.entry(shard).or_default().push_back(end);
        self.changed.notify_waiters();
    }

    /// Makes the server report itself as not ready without this platform.
    pub fn blocks_readiness(&self) {
        self.inner.lock().blocks_readiness = true;
    }

    /// How often the number of connections was requested.
    pub fn asked(&self) -> usize {
        self.inner.lock().asked
    }

    /// The running connections, each with the total number of connections.
    pub fn alive(&self) -> Vec<(u32, u32)> {
        self.inner.lock().alive.iter().map(|(shard, of)| (*shard, *of)).collect()
    }

    /// How often a connection was started.
    pub fn lived(&self, shard: u32) -> usize {
        self.inner.lock().lived.get(&shard).copied().unwrap_or_default()
    }
}

/// Registers a running connection until it is dropped.
struct Alive<'a> {
    gateway: &'a FakeGateway,
    shard: u32,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.gateway.inner.lock().alive.remove(&self.shard);
    }
}

#[async_trait]
impl Gateway for FakeGateway {
    fn name(&self) -> &'static str {
        "fake"
    }

    async fn shards(&self) -> Result<NonZeroU32, Disconnected> {
        let mut inner = self.inner.lock();
        inner.asked += 1;
        let count = if inner.counts.len() > 1 { inner.counts.pop_front() } else { inner.counts.front().cloned() };
        count.expect("the gateway has a count").map(|count| NonZeroU32::new(count).expect("at least one"))
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let before = {
            let mut inner = self.inner.lock();
            *inner.lived.entry(shard.number).or_default() += 1;
            inner.alive.insert(shard.number, shard.of.get())
        };
        let _alive = Alive { gateway: self, shard: shard.number };
        assert_eq!(before, None, "a shard runs once at a time");
        loop {
            let changed = self.changed.notified();
            let end = self.inner.lock().ends.get_mut(&shard.number).and_then(VecDeque::pop_front);
            if let Some(end) = end {
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
        let inner = self.inner.lock();
        let detail = format!("{} connections", inner.alive.len());
        Condition { ready: !inner.alive.is_empty(), detail, blocks_readiness: inner.blocks_readiness, ..Condition::default() }
    }
}
