//! What Discord tells over the gateway, on its way from the connection to whoever makes something of it.

use std::fmt;

use async_trait::async_trait;
use serde_json::value::RawValue;

/// An event of Discord's (opcode 0).
#[derive(Debug)]
pub struct Dispatch {
    /// Which one: `MESSAGE_CREATE`.
    pub kind: String,
    /// What it tells, as it came.
    pub data: Box<RawValue>,
    /// Told once nothing of it can be lost any more.
    pub receipt: Receipt,
}

/// Says of one event that it is kept, so that Discord need not tell it again. One that is dropped unkept ends the connection: the next
/// one resumes before it.
pub struct Receipt(Option<Box<dyn FnOnce(Fate) + Send>>);

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on record, or there was nothing to keep.
    Kept,
    /// It has to be told again.
    Lost,
}

impl Receipt {
    /// A receipt that tells this one.
    pub fn new(tell: impl FnOnce(Fate) + Send + 'static) -> Self {
        Self(Some(Box::new(tell)))
    }

    /// Nothing of the event can be lost any more.
    pub fn kept(mut self) {
        if let Some(tell) = self.0.take() {
            tell(Fate::Kept);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell(Fate::Lost);
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

/// Whoever makes something of what one shard hears; there is one for each connection's life.
#[async_trait]
pub trait Intake: Send + 'static {
    /// Takes an event. Waits while there is no room, which holds the connection back; the order within a channel is kept.
    async fn take(&mut self, dispatch: Dispatch);
}
