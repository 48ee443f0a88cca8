//! The wall clock, as a port, so that a whole system can run in a time of its own.

use crate::domain::moment::Moment;

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch. May jump either way; whoever needs order keeps the newest moment it has seen.
    fn now(&self) -> Moment;
}
