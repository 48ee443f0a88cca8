//! Logs panics in one line, without their message if it may quote people.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic;
use std::thread;

/// Installs a panic hook that writes a log line. The supervisor of the panicked actor logs its own reaction.
pub fn listen() {
    panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let (thread, trace) = (thread::current(), Backtrace::capture());
        let backtrace = (trace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(&trace));
        let said = literal_message(panic.payload());
        tracing::error!(at, said, thread = thread.name(), backtrace, "this is a bug: something panicked");
    }));
}

/// The message of a panic, if it is a literal of the program. Other messages can contain anything: for example, slicing inside a
/// character quotes the whole text.
fn literal_message(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&'static str>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_literal_panic_message_is_logged() {
        let caught = |work: fn()| panic::catch_unwind(work).expect_err("it panics");

        let literal = caught(|| panic!("no such thing"));
        let quoting = caught(|| drop("händler"[..2].to_owned()));

        assert_eq!(literal_message(&*literal), Some("no such thing"));
        assert_eq!(literal_message(&*quoting), None);
    }
}
