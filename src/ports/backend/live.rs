//! A room's events as they happen.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;

use crate::domain::id::Seq;

/// One event, rendered once for all watchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Its number, to resume after. It is absent for events that are not stored, such as a `draft`, and for all but the last object of an event
    /// that is sent as several.
    pub seq: Option<Seq>,
    /// The event as a JSON object.
    pub json: Arc<str>,
}

/// The subscriber fell behind its bounded buffer and was cut off. It should subscribe again after the last number that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscriber fell behind, it should subscribe again after the last event that it has")]
pub struct Lagged;

/// A subscription. Its buffer is bounded; [`Lagged`] is its last item. It ends without one when the room is deleted, or at shutdown.
pub type LiveStream = Pin<Box<dyn Stream<Item = Result<Live, Lagged>> + Send>>;
