//! A file that may not grow any more (`ulimit -f`) is like a disk that is full: the write fails, and is told of. By itself the system would
//! end the process without a word.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::descriptors;

/// From now on a write beyond the limit fails, in the whole process. Where that cannot be had, everything is as before.
pub fn fail_softly() {
    // With too few files for it the library would panic.
    if !descriptors::are_enough() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    // Whoever listens once takes the system's own way of handling it away for good; nobody has to go on listening.
    let _ = runtime.block_on(async { signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop) });
}
