//! Handles the signals of the process on a separate thread for the whole life of the process. So no signal is lost or fatal between serving and
//! compacting.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The exit code after a second stop signal.
const EXIT_AT_ONCE: i32 = 130;

/// The requests from signals.
pub(super) struct Signals {
    stop: watch::Receiver<bool>,
    /// Changes at each SIGUSR2.
    pub(super) compact: watch::Receiver<()>,
    /// Changes at each SIGHUP.
    pub(super) reload: watch::Receiver<()>,
    is_interruptible: Arc<AtomicBool>,
}

impl Signals {
    /// Registers the handlers, and starts the listening thread.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let is_interruptible = Arc::new(AtomicBool::new(false));
        let (stop, stop_requested) = watch::channel(false);
        let (compact, compact_requested) = watch::channel(());
        let (reload, reload_requested) = watch::channel(());
        // Registered before this returns: from then on no signal ends the process by default.
        let entered = runtime.enter();
        let [mut terminate, mut interrupt] = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        let [mut hang_up, mut user_defined2] = [signal(SignalKind::hangup())?, signal(SignalKind::user_defined2())?];
        drop(entered);
        let interruptible = is_interruptible.clone();
        let listen = async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => request_stop(&stop, &interruptible),
                    _ = interrupt.recv() => request_stop(&stop, &interruptible),
                    _ = hang_up.recv() => drop(reload.send(())),
                    _ = user_defined2.recv() => drop(compact.send(())),
                }
            }
        };
        thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listen))?;
        Ok(Self { stop: stop_requested, compact: compact_requested, reload: reload_requested, is_interruptible })
    }

    /// Whether a stop signal was received.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Becomes true with the first stop signal.
    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Runs blocking work that may be interrupted anywhere: a stop signal during it ends the process with exit code 0. Returns `None` if a stop
    /// signal was received before.
    pub(super) fn interruptible<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        // The listener sets `stop` before it reads this flag, so at least one side sees the other's write.
        self.is_interruptible.store(true, Ordering::SeqCst);
        let done = (!self.is_stopped()).then(work);
        self.is_interruptible.store(false, Ordering::SeqCst);
        done
    }
}

/// The first stop signal stops the server gracefully, or ends the process during interruptible work. The second ends the process.
fn request_stop(stop: &watch::Sender<bool>, is_interruptible: &AtomicBool) {
    if stop.send_replace(true) {
        std::process::exit(EXIT_AT_ONCE);
    }
    if is_interruptible.load(Ordering::SeqCst) {
        tracing::info!("stopped while the store was being opened or compacted; it is intact, and the next start continues");
        std::process::exit(0);
    }
    tracing::info!("stopping; a second signal ends the process at once");
}
