//! An event from Discord's gateway, as the connection passes it to the intake.

use std::fmt;

use async_trait::async_trait;
use serde_json::value::RawValue;

/// A dispatch event (opcode 0).
#[derive(Debug)]
pub struct Dispatch {
    /// The event's name, such as `MESSAGE_CREATE`.
    pub kind: String,
    /// The event's data, unparsed.
    pub data: Box<RawValue>,
    /// Must be acknowledged once the event can no longer be lost.
    pub receipt: Receipt,
}

/// Acknowledges one event, so that Discord need not send it again. Dropping it without [`Receipt::kept`] ends the connection, and the next
/// connection resumes before the event.
pub struct Receipt(Option<Box<dyn FnOnce(Fate) + Send>>);

/// The fate of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The event is on record, or needs no storage.
    Kept,
    /// Discord must send it again.
    Lost,
}

impl Receipt {
    /// Creates a receipt that reports the event's fate by calling `report`.
    pub fn new(report: impl FnOnce(Fate) + Send + 'static) -> Self {
        Self(Some(Box::new(report)))
    }

    /// Reports that the event can no longer be lost.
    pub fn kept(mut self) {
        if let Some(report) = self.0.take() {
            report(Fate::Kept);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(report) = self.0.take() {
            report(Fate::Lost);
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

/// Handles the events that one shard receives. Each connection has its own intake.
#[async_trait]
pub trait Intake: Send + 'static {
    /// Handles an event. Waits while the queue is full, which slows the connection down. Preserves the order within a channel.
    async fn handle_dispatch(&mut self, dispatch: Dispatch);
}
