//! The WebSocket of a connection, and how it is left.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::Stream as _;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use twilight_gateway::error::ReceiveMessageError;
use twilight_gateway::queue::Queue;
use twilight_gateway::{CloseFrame, Message, ShardState};

use super::super::identify::CLOSE_TO_RESUME;

/// How long it may take to say goodbye.
const PARTING: Duration = Duration::from_secs(1);

/// Hands on that a connection wants to identify. What is sent lets it.
#[derive(Clone, Debug)]
pub struct Asks(pub mpsc::UnboundedSender<oneshot::Sender<()>>);

impl Queue for Asks {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (leave, left) = oneshot::channel();
        // If nobody listens the connection is over.
        let _ = self.0.send(leave);
        left
    }
}

/// A connection of twilight's. It is used for one connection alone: when that ends we decide how to come back. Dropped while it is open,
/// it is closed so that its session can be resumed.
pub struct Line {
    shard: Option<twilight_gateway::Shard<Asks>>,
    /// It came about, and is not closed yet.
    is_open: bool,
}

impl Line {
    /// One that is not connected yet.
    pub const fn new(shard: twilight_gateway::Shard<Asks>) -> Self {
        Self { shard: Some(shard), is_open: false }
    }

    /// What comes next on it. None: it was cut. After the end nothing comes.
    pub async fn next(&mut self) -> Option<Result<Message, ReceiveMessageError>> {
        let item = poll_fn(|cx| {
            let Some(shard) = self.shard.as_mut() else { return Poll::Ready(None) };
            let item = Pin::new(&mut *shard).poll_next(cx);
            let is_connected = !matches!(shard.state(), ShardState::Disconnected { .. } | ShardState::FatallyClosed);
            if item.is_pending() && self.is_open && !is_connected {
                // Of a connection that was cut it tells nothing, but makes another one, on which it would resume from what it received.
                return Poll::Ready(None);
            }
            // What it was told may have made it end the connection: it has yet to say so.
            self.is_open = is_connected || matches!(item, Poll::Ready(Some(Ok(Message::Text(_)))));
            item
        })
        .await;
        if item.is_none() {
            self.abandon();
        }
        item
    }

    /// How long the last heartbeat took to be acknowledged.
    pub fn latency(&self) -> Option<Duration> {
        self.shard.as_ref()?.latency().recent().first().copied()
    }

    /// Nothing more comes of it, and nothing is said on it.
    pub fn abandon(&mut self) {
        self.shard = None;
        self.is_open = false;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(shard) = self.shard.take().filter(|_| self.is_open) else { return };
        // Without a runtime it is cut, which keeps the session as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(part(shard));
        }
    }
}

/// Closes a connection, unless it is closing already.
async fn part(mut shard: twilight_gateway::Shard<Asks>) {
    shard.close(CloseFrame::new(CLOSE_TO_RESUME, ""));
    let closed = poll_fn(|cx| {
        loop {
            let item = Pin::new(&mut shard).poll_next(cx);
            if matches!(shard.state(), ShardState::Identifying | ShardState::Resuming) {
                // It comes back by itself, and would resume from what it received.
                return Poll::Ready(());
            }
            match item {
                // It will be told again.
                Poll::Ready(Some(Ok(Message::Text(_)))) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    // Who does not answer is left.
    let _ = timeout(PARTING, closed).await;
}
