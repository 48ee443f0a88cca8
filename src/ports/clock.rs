//! The wall clock as a port, so that a whole system can run in virtual time.

use crate::domain::moment::Moment;

/// A source of the current wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The current time in microseconds since the Unix epoch. It may jump in either direction. A caller that needs order keeps the newest moment
    /// that it has seen.
    fn now(&self) -> Moment;
}
