//! Ends the process when the runtime stalls. A synchronous hang cannot be killed from inside, so the service manager has to
//! restart the process.
//!
//! A task sends heartbeats, and a separate thread counts ticks without a heartbeat up to a limit. A handler that never ends does not always
//! stall the whole runtime, because the other threads continue. So each thread also registers its [current work](at_work). A
//! thread that stays on one piece of work until that limit of ticks is a stall as well. Ticks are counted instead of time: a
//! suspended machine or a stopped process produces neither ticks nor heartbeats, so it does not count as a hang.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::actors::runtime::directory::Address;
use crate::domain::id::Seq;

/// How often the task sends a heartbeat and the thread checks.
const TICK: Duration = Duration::from_secs(1);

/// Ticks without a heartbeat after which the runtime counts as stalled: 30 seconds.
pub const STALLED_AFTER_TICKS: u32 = 30;

/// The exit status of a process that was ended because its runtime stalled (`EX_SOFTWARE`).
pub const STALLED_EXIT_STATUS: i32 = 70;

/// The current work of a thread. Only work that must not take long is registered.
#[derive(Debug, Default)]
struct Activity {
    /// Incremented at the start and at the end of each piece of work, so it is odd while the thread is working.
    generation: AtomicU64,
    work: Mutex<Option<Address>>,
    /// The number of the event that is being handled; 0: none.
    message: AtomicU64,
}

/// The activities of all threads of this process. It is global because a stall ends the whole process.
static ACTIVITIES: Mutex<Vec<Weak<Activity>>> = Mutex::new(Vec::new());

thread_local! {
    static ACTIVITY: Arc<Activity> = {
        let activity = Arc::<Activity>::default();
        let mut activities = ACTIVITIES.lock();
        activities.retain(|other| other.strong_count() > 0);
        activities.push(Arc::downgrade(&activity));
        activity
    };
}

/// Marks this thread as working until it is dropped.
#[derive(Debug)]
#[must_use = "the work is over when this is dropped"]
pub struct AtWork(Arc<Activity>);

/// Marks this thread as working for an actor. The guard must not be held over an `await`, and a thread must not have two at once.
pub fn at_work(actor: Address) -> AtWork {
    let activity = ACTIVITY.with(Clone::clone);
    *activity.work.lock() = Some(actor);
    activity.message.store(Seq::NONE.0, Ordering::Relaxed);
    activity.generation.fetch_add(1, Ordering::Relaxed);
    AtWork(activity)
}

/// Names the event that this thread is handling. [`Seq::NONE`]: no event.
pub fn at_message(seq: Seq) {
    ACTIVITY.with(|activity| activity.message.store(seq.0, Ordering::Relaxed));
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.generation.fetch_add(1, Ordering::Relaxed);
    }
}

/// A stall that was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Ticks (seconds) since the last heartbeat, or since the thread began its current work.
    pub silent: u32,
    /// The actor whose handler never ends. None: the whole runtime is stalled.
    pub at: Option<Address>,
    /// The event that it was handling, if that is known.
    pub message: Option<Seq>,
}

/// Watches one runtime until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    heartbeat: AbortHandle,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the current runtime. Ends the process with status 70 if for `limit` seconds no heartbeat arrives, or a thread
    /// stays on the same work.
    ///
    /// # Errors
    /// Returns an error if the operating system cannot create a thread.
    pub fn start(limit: u32) -> io::Result<Self> {
        Self::start_with(limit, |stall| {
            let Stall { silent, at, message } = &stall;
            let seq = message.map(|seq| seq.0);
            match at {
                Some(actor) => {
                    tracing::error!(silent_secs = silent, ?actor, seq, "a handler hangs, ending the process for a restart");
                }
                None => tracing::error!(silent_secs = silent, "the runtime stalls, ending the process for a restart"),
            }
            std::process::exit(STALLED_EXIT_STATUS);
        })
    }

    /// Like [`Self::start`], but calls `act` instead of ending the process. `act` is called at most once, on the watchdog's
    /// thread.
    ///
    /// # Errors
    /// Returns an error if the operating system cannot create a thread.
    pub fn start_with(limit: u32, act: impl FnOnce(Stall) + Send + 'static) -> io::Result<Self> {
        let beats = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = mpsc::channel();
        let seen = beats.clone();
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let tick = || match stopped.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => Some(Signs { beats: seen.load(Ordering::Relaxed), busy: busy_threads() }),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => None,
            };
            watch(Pulse::new(limit), tick, act);
        })?;
        let heartbeat = tokio::spawn(async move {
            let mut tick = tokio::time::interval(TICK);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                beats.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { heartbeat: heartbeat.abort_handle(), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The thread ends first, so that the end of the heartbeat does not look like a stall.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Without the sender, the thread's wait ends at once. If its action on a stall panicked, the panic was logged.
            let _ = thread.join();
        }
        self.heartbeat.abort();
    }
}

/// Checks at every tick, until the ticks end or a stall is found.
fn watch(mut pulse: Pulse, mut tick: impl FnMut() -> Option<Signs>, act: impl FnOnce(Stall)) {
    while let Some(signs) = tick() {
        if let Some(stall) = pulse.stall(signs) {
            return act(stall);
        }
    }
}

/// The observations of one tick.
#[derive(Debug, Default)]
struct Signs {
    /// Heartbeats so far.
    beats: u64,
    /// The activity of each busy thread, and its generation.
    busy: Vec<(Arc<Activity>, u64)>,
}

/// The activity of each busy thread, and its generation.
fn busy_threads() -> Vec<(Arc<Activity>, u64)> {
    let activities = ACTIVITIES.lock();
    let current = activities.iter().filter_map(Weak::upgrade).map(|activity| {
        let generation = activity.generation.load(Ordering::Relaxed);
        (activity, generation)
    });
    current.filter(|(_, generation)| generation % 2 == 1).collect()
}

/// Counts the ticks without progress.
#[derive(Debug)]
struct Pulse {
    limit: u32,
    beats: u64,
    silent: u32,
    /// The activity of each busy thread, its generation, and for how many ticks the generation has not changed.
    busy: Vec<(Arc<Activity>, u64, u32)>,
}

impl Pulse {
    const fn new(limit: u32) -> Self {
        Self { limit, beats: 0, silent: 0, busy: Vec::new() }
    }

    fn stall(&mut self, signs: Signs) -> Option<Stall> {
        let Signs { beats, busy } = signs;
        self.silent = if beats == self.beats { self.silent + 1 } else { 0 };
        self.beats = beats;
        let before = std::mem::take(&mut self.busy);
        let is_same = |(activity, generation): &(Arc<Activity>, u64), earlier: &(Arc<Activity>, u64, u32)| {
            Arc::ptr_eq(activity, &earlier.0) && *generation == earlier.1
        };
        self.busy = busy
            .into_iter()
            .map(|now| {
                let silent = before.iter().find(|earlier| is_same(&now, earlier)).map_or(0, |earlier| earlier.2 + 1);
                (now.0, now.1, silent)
            })
            .collect();
        let hung = self.busy.iter().find(|(.., silent)| *silent >= self.limit);
        if let Some((activity, _, silent)) = hung {
            let at = activity.work.lock().clone();
            let message = Some(Seq(activity.message.load(Ordering::Relaxed))).filter(|seq| *seq != Seq::NONE);
            return Some(Stall { silent: *silent, at, message });
        }
        (self.silent >= self.limit).then_some(Stall { silent: self.silent, at: None, message: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_sends_heartbeats_is_not_stalled() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[1, 2, 2, 2, 3, 3, 3, 4]), |stall| acted = Some(stall));

        assert_eq!(acted, None);
    }

    #[test]
    fn a_runtime_without_heartbeats_for_the_limit_is_reported_once() {
        let mut acted = Vec::new();

        watch(Pulse::new(3), ticks(&[1, 1, 1, 1, 1, 1, 1]), |stall| acted.push(stall));

        assert_eq!(acted, [Stall { silent: 3, at: None, message: None }]);
    }

    #[test]
    fn a_runtime_that_never_sends_a_heartbeat_is_reported() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[0, 0, 0]), |stall| acted = Some(stall));

        assert_eq!(acted, Some(Stall { silent: 3, at: None, message: None }));
    }

    #[tokio::test]
    async fn a_dropped_watchdog_ends_its_thread_without_a_report() {
        let (acted, acts) = mpsc::channel();
        let watchdog = Watchdog::start_with(u32::MAX, move |stall| acted.send(stall).expect("the test listens"));

        drop(watchdog.expect("there are threads"));

        assert_eq!(acts.recv(), Err(mpsc::RecvError));
    }

    #[test]
    fn a_handler_that_never_ends_is_named_while_others_make_progress() {
        let (hung, other) = (Arc::new(Activity::default()), Arc::new(Activity::default()));
        *hung.work.lock() = Some(lobby());
        hung.message.store(7, Ordering::Relaxed);
        let mut acted = None;
        let ticks = [(1, 7, 1), (2, 9, 3), (3, 9, 5), (4, 9, 7), (5, 9, 9), (6, 11, 11)];
        let mut ticks = ticks
            .map(|(beats, generation, others)| Signs { beats, busy: vec![(other.clone(), others), (hung.clone(), generation)] })
            .into_iter();

        watch(Pulse::new(3), || ticks.next(), |stall| acted = Some(stall));

        assert_eq!(acted, Some(Stall { silent: 3, at: Some(lobby()), message: Some(Seq(7)) }));
        assert_eq!(ticks.next().map(|signs| signs.beats), Some(6));
    }

    #[test]
    fn a_thread_is_busy_until_its_work_ends_or_panics() {
        let is_busy = || {
            let activity = ACTIVITY.with(Clone::clone);
            busy_threads().iter().any(|(other, _)| Arc::ptr_eq(other, &activity))
        };

        let work = at_work(lobby());
        let during = is_busy();
        drop(work);
        let after = is_busy();
        let panicked = std::panic::catch_unwind(|| {
            let _work = at_work(lobby());
            std::panic::resume_unwind(Box::new("intended by the test"));
        });

        assert!(panicked.is_err());
        assert_eq!([during, after, is_busy()], [true, false, false]);
    }

    fn lobby() -> Address {
        Address::Channel("console:lobby".into())
    }

    fn ticks(beats: &[u64]) -> impl FnMut() -> Option<Signs> {
        let mut beats = beats.iter().map(|beats| Signs { beats: *beats, busy: Vec::new() });
        move || beats.next()
    }
}
