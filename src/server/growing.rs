//! Makes a write beyond the file size limit (`ulimit -f`) fail like a write to a full disk, so that it is reported. By default, the operating
//! system ends the process with SIGXFSZ, without a message.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::descriptors;

/// Makes writes beyond the limit fail from now on, in the whole process. If that cannot be set up, nothing changes.
pub fn fail_softly() {
    // If too few open files are allowed, the library would panic.
    if !descriptors::are_enough() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    // Registering a handler once replaces the default action permanently. The signal itself needs no receiver.
    let _ = runtime.block_on(async { signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop) });
}
