//! Tells of panics in one line of log, and not what a panic says when that may quote people.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic;
use std::thread;

/// Lets panics of this process be told as log lines. What becomes of whoever panicked is told where that is decided.
pub fn listen() {
    panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let (thread, trace) = (thread::current(), Backtrace::capture());
        let backtrace = (trace.status() == BacktraceStatus::Captured).then(|| tracing::field::display(&trace));
        let said = said(panic.payload());
        tracing::error!(at, said, thread = thread.name(), backtrace, "this is a bug: something panicked");
    }));
}

/// The words of a panic, if they are a literal of the program. Others may hold anything: a slice that is cut in the wrong place quotes
/// the whole text.
fn said(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&'static str>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_may_only_say_what_the_program_says_anyway() {
        let caught = |work: fn()| panic::catch_unwind(work).expect_err("it panics");

        let literal = caught(|| panic!("no such thing"));
        let quoting = caught(|| drop("händler"[..2].to_owned()));

        assert_eq!(said(&*literal), Some("no such thing"));
        assert_eq!(said(&*quoting), None);
    }
}
