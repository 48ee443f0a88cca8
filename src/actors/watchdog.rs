//! Ends the process when the runtime stalls: a synchronous hang cannot be killed, only restarted by whoever runs the server.
//!
//! A task beats, a thread of its own counts ticks without a beat. Ticks are counted rather than time, so a machine that slept
//! or a process that was stopped for a while is not taken for a hang: it ticks no more than it beats.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tokio::task::AbortHandle;

/// How often the task beats and the thread looks.
const TICK: Duration = Duration::from_secs(1);

/// Ticks without a beat until the runtime counts as stalled: 30 seconds.
pub const STALLED_AFTER_TICKS: u32 = 30;

/// The exit status of a process that was ended because its runtime stalled (`EX_SOFTWARE`).
pub const STALLED_EXIT_STATUS: i32 = 70;

/// Watches one runtime until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    beating: AbortHandle,
    stop: Option<mpsc::Sender<()>>,
    watching: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the runtime that this is called in, and ends the process with status 70 after `limit` seconds without a beat.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(limit: u32) -> io::Result<Self> {
        Self::start_with(limit, |silent| {
            tracing::error!(silent_secs = silent, "the runtime stalls, ending the process for a restart");
            std::process::exit(STALLED_EXIT_STATUS);
        })
    }

    /// Like [`Self::start`], with something else to do about a stall than to end the process. It is done once, on the thread of
    /// the watchdog, and gets the number of seconds without a beat.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start_with(limit: u32, act: impl FnOnce(u32) + Send + 'static) -> io::Result<Self> {
        let beats = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = mpsc::channel();
        let seen = beats.clone();
        let watching = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let tick = || match stopped.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => Some(seen.load(Ordering::Relaxed)),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => None,
            };
            watch(Pulse::new(limit), tick, act);
        })?;
        let beating = tokio::spawn(async move {
            let mut tick = tokio::time::interval(TICK);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                beats.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { beating: beating.abort_handle(), stop: Some(stop), watching: Some(watching) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The thread goes first: a beat that stops must not look like a stall.
        drop(self.stop.take());
        if let Some(watching) = self.watching.take() {
            // It waits for nothing but the sender just dropped. If what it does about a stall panicked, that was told.
            let _ = watching.join();
        }
        self.beating.abort();
    }
}

/// Looks at every tick until there is none any more, or until the pulse is gone.
fn watch(mut pulse: Pulse, mut tick: impl FnMut() -> Option<u64>, act: impl FnOnce(u32)) {
    while let Some(beats) = tick() {
        if pulse.is_gone(beats) {
            return act(pulse.silent);
        }
    }
}

/// Counts the ticks at which nothing new was heard.
#[derive(Debug)]
struct Pulse {
    limit: u32,
    beats: u64,
    silent: u32,
}

impl Pulse {
    const fn new(limit: u32) -> Self {
        Self { limit, beats: 0, silent: 0 }
    }

    fn is_gone(&mut self, beats: u64) -> bool {
        self.silent = if beats == self.beats { self.silent + 1 } else { 0 };
        self.beats = beats;
        self.silent >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_beats_is_left_alone() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[1, 2, 2, 2, 3, 3, 3, 4]), |silent| acted = Some(silent));

        assert_eq!(acted, None);
    }

    #[test]
    fn a_runtime_that_is_silent_for_the_limit_is_ended_once() {
        let mut acted = Vec::new();

        watch(Pulse::new(3), ticks(&[1, 1, 1, 1, 1, 1, 1]), |silent| acted.push(silent));

        assert_eq!(acted, [3]);
    }

    #[test]
    fn a_runtime_that_never_beats_is_ended_too() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[0, 0, 0]), |silent| acted = Some(silent));

        assert_eq!(acted, Some(3));
    }

    #[tokio::test]
    async fn a_dropped_watchdog_ends_its_thread_without_a_word() {
        let (acted, acts) = mpsc::channel();
        let watchdog = Watchdog::start_with(u32::MAX, move |silent| acted.send(silent).expect("the test listens"));

        drop(watchdog.expect("there are threads"));

        assert_eq!(acts.recv(), Err(mpsc::RecvError));
    }

    fn ticks(beats: &[u64]) -> impl FnMut() -> Option<u64> {
        let mut beats = beats.iter().copied();
        move || beats.next()
    }
}
