//! Ends the process when the runtime stalls: a synchronous hang cannot be killed, only restarted by whoever runs the server.
//!
//! A task beats, a thread of its own counts ticks without a beat. A handler that never ends need not stall the whole runtime, whose other
//! threads go on: so each thread also shows what it is [at work](at_work) on, and one that stays at the same for as long is a stall too.
//! Ticks are counted rather than time, so a machine that slept or a process that was stopped for a while is not taken for a hang: it ticks
//! no more than it beats.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::actors::runtime::directory::Address;
use crate::domain::id::{CompanionId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::plain::Plain;

/// How often the task beats and the thread looks.
const TICK: Duration = Duration::from_secs(1);

/// Ticks without a beat until the runtime counts as stalled: 30 seconds.
pub const STALLED_AFTER_TICKS: u32 = 30;

/// The exit status of a process that was ended because its runtime stalled (`EX_SOFTWARE`).
pub const STALLED_EXIT_STATUS: i32 = 70;

/// What a thread is at, if it is at something that must not take long.
#[derive(Debug, Default)]
struct Desk {
    /// Odd while it is at work.
    turn: AtomicU64,
    at: Mutex<(Option<Address>, Option<About>)>,
    /// The number of the message that it is about; 0: of none.
    message: AtomicU64,
}

/// The desks of all threads of this process, which is what is ended.
static DESKS: Mutex<Vec<Weak<Desk>>> = Mutex::new(Vec::new());

thread_local! {
    static DESK: Arc<Desk> = {
        let desk = Arc::<Desk>::default();
        let mut desks = DESKS.lock().unwrap_or_else(PoisonError::into_inner);
        desks.retain(|other| other.strong_count() > 0);
        desks.push(Arc::downgrade(&desk));
        desk
    };
}

/// Shows that this thread is at work until it is dropped.
#[derive(Debug)]
#[must_use = "the work is over when this is dropped"]
pub struct AtWork(Arc<Desk>);

/// This thread begins to handle something, and does nothing else until that is done: never to be held over an `await`, nor twice at once.
pub fn at_work(actor: Address) -> AtWork {
    let desk = DESK.with(Clone::clone);
    *desk.at.lock().unwrap_or_else(PoisonError::into_inner) = (Some(actor), None);
    desk.message.store(Seq::NONE.0, Ordering::Relaxed);
    desk.turn.fetch_add(1, Ordering::Relaxed);
    AtWork(desk)
}

/// What this thread is at work on is about this message; none: about none any more.
pub fn at_message(seq: Seq) {
    DESK.with(|desk| desk.message.store(seq.0, Ordering::Relaxed));
}

impl AtWork {
    /// Shows for whom words are made, where the actor's address does not tell all of it.
    pub fn about(self, channel_key: &ChannelKey, companion: &CompanionId) -> Self {
        let about = About { channel_key: channel_key.clone(), companion: companion.clone() };
        self.0.at.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(about);
        self
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.turn.fetch_add(1, Ordering::Relaxed);
    }
}

/// For whom words are made: a question, or a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub channel_key: ChannelKey,
    /// Who asks, or speaks.
    pub companion: CompanionId,
}

/// A runtime that stalls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Ticks, which are seconds, since a sign of life.
    pub silent: u32,
    /// Whose handler never ends; none: it is the runtime as a whole.
    pub at: Option<Address>,
    /// For whom it made words, if it did.
    pub about: Option<About>,
    /// The message that it is about, where that is known.
    pub message: Option<Seq>,
}

/// Watches one runtime until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    beating: AbortHandle,
    stop: Option<mpsc::Sender<()>>,
    watching: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the runtime that this is called in, and ends the process with status 70 after `limit` seconds without a beat, or at work on
    /// one thing.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(limit: u32) -> io::Result<Self> {
        Self::start_noting(limit, |_| {})
    }

    /// The same, and has the stall noted before the process ends.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start_noting(limit: u32, note: impl FnOnce(&Stall) + Send + 'static) -> io::Result<Self> {
        Self::start_with(limit, |stall| {
            let Stall { silent, at, about, message } = &stall;
            let seq = message.map(|seq| seq.0);
            let guild = about.as_ref().map(|about| tracing::field::display(Plain(about.channel_key.guild.as_str())));
            let channel = about.as_ref().map(|about| tracing::field::display(Plain(about.channel_key.channel.as_str())));
            let companion = about.as_ref().map(|about| tracing::field::display(Plain(about.companion.as_str())));
            match at {
                Some(actor) => {
                    tracing::error!(
                        silent_secs = silent,
                        ?actor,
                        guild,
                        channel,
                        companion,
                        seq,
                        "a handler hangs, ending the process for a restart"
                    );
                }
                None => tracing::error!(silent_secs = silent, "the runtime stalls, ending the process for a restart"),
            }
            note(&stall);
            std::process::exit(STALLED_EXIT_STATUS);
        })
    }

    /// Like [`Self::start`], with something else to do about a stall than to end the process. It is done once, on the thread of
    /// the watchdog.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start_with(limit: u32, act: impl FnOnce(Stall) + Send + 'static) -> io::Result<Self> {
        let beats = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = mpsc::channel();
        let seen = beats.clone();
        let watching = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let tick = || match stopped.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => Some(Signs { beats: seen.load(Ordering::Relaxed), turns: turns() }),
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
fn watch(mut pulse: Pulse, mut tick: impl FnMut() -> Option<Signs>, act: impl FnOnce(Stall)) {
    while let Some(signs) = tick() {
        if let Some(stall) = pulse.stall(signs) {
            return act(stall);
        }
    }
}

/// What is seen at a tick.
#[derive(Debug, Default)]
struct Signs {
    /// Beats of the task so far.
    beats: u64,
    /// What each thread that is at work is at, with the number of that piece of work.
    turns: Vec<(Arc<Desk>, u64)>,
}

/// What each thread that is at work is at.
fn turns() -> Vec<(Arc<Desk>, u64)> {
    let desks = DESKS.lock().unwrap_or_else(PoisonError::into_inner);
    let turns = desks.iter().filter_map(Weak::upgrade).map(|desk| {
        let turn = desk.turn.load(Ordering::Relaxed);
        (desk, turn)
    });
    turns.filter(|(_, turn)| turn % 2 == 1).collect()
}

/// Counts the ticks at which nothing new was seen.
#[derive(Debug)]
struct Pulse {
    limit: u32,
    beats: u64,
    silent: u32,
    /// Since how many ticks each thread is at the same.
    busy: Vec<(Arc<Desk>, u64, u32)>,
}

impl Pulse {
    const fn new(limit: u32) -> Self {
        Self { limit, beats: 0, silent: 0, busy: Vec::new() }
    }

    fn stall(&mut self, signs: Signs) -> Option<Stall> {
        let Signs { beats, turns } = signs;
        self.silent = if beats == self.beats { self.silent + 1 } else { 0 };
        self.beats = beats;
        let before = std::mem::take(&mut self.busy);
        let is_same =
            |(desk, turn): &(Arc<Desk>, u64), known: &(Arc<Desk>, u64, u32)| Arc::ptr_eq(desk, &known.0) && *turn == known.1;
        self.busy = turns
            .into_iter()
            .map(|now| {
                let silent = before.iter().find(|known| is_same(&now, known)).map_or(0, |known| known.2 + 1);
                (now.0, now.1, silent)
            })
            .collect();
        let hung = self.busy.iter().find(|(.., silent)| *silent >= self.limit);
        if let Some((desk, _, silent)) = hung {
            let (at, about) = desk.at.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let message = Some(Seq(desk.message.load(Ordering::Relaxed))).filter(|seq| *seq != Seq::NONE);
            return Some(Stall { silent: *silent, at, about, message });
        }
        (self.silent >= self.limit).then_some(Stall { silent: self.silent, at: None, about: None, message: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_beats_is_left_alone() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[1, 2, 2, 2, 3, 3, 3, 4]), |stall| acted = Some(stall));

        assert_eq!(acted, None);
    }

    #[test]
    fn a_runtime_that_is_silent_for_the_limit_is_ended_once() {
        let mut acted = Vec::new();

        watch(Pulse::new(3), ticks(&[1, 1, 1, 1, 1, 1, 1]), |stall| acted.push(stall));

        assert_eq!(acted, [Stall { silent: 3, at: None, about: None, message: None }]);
    }

    #[test]
    fn a_runtime_that_never_beats_is_ended_too() {
        let mut acted = None;

        watch(Pulse::new(3), ticks(&[0, 0, 0]), |stall| acted = Some(stall));

        assert_eq!(acted, Some(Stall { silent: 3, at: None, about: None, message: None }));
    }

    #[tokio::test]
    async fn a_dropped_watchdog_ends_its_thread_without_a_word() {
        let (acted, acts) = mpsc::channel();
        let watchdog = Watchdog::start_with(u32::MAX, move |stall| acted.send(stall).expect("the test listens"));

        drop(watchdog.expect("there are threads"));

        assert_eq!(acts.recv(), Err(mpsc::RecvError));
    }

    #[test]
    fn a_handler_that_never_ends_is_found_while_the_others_go_on_and_named() {
        let (desk, other) = (Arc::new(Desk::default()), Arc::new(Desk::default()));
        *desk.at.lock().unwrap() = (Some(lobby()), None);
        desk.message.store(7, Ordering::Relaxed);
        let mut acted = None;
        let ticks = [(1, 7, 1), (2, 9, 3), (3, 9, 5), (4, 9, 7), (5, 9, 9), (6, 11, 11)];
        let mut ticks = ticks
            .map(|(beats, turn, others)| Signs { beats, turns: vec![(other.clone(), others), (desk.clone(), turn)] })
            .into_iter();

        watch(Pulse::new(3), || ticks.next(), |stall| acted = Some(stall));

        assert_eq!(acted, Some(Stall { silent: 3, at: Some(lobby()), about: None, message: Some(Seq(7)) }));
        assert_eq!(ticks.next().map(|signs| signs.beats), Some(6));
    }

    #[test]
    fn a_thread_is_at_work_until_its_work_is_done_or_panics() {
        let is_at_work = || {
            let desk = DESK.with(Clone::clone);
            turns().iter().any(|(other, _)| Arc::ptr_eq(other, &desk))
        };

        let work = at_work(lobby());
        let during = is_at_work();
        drop(work);
        let after = is_at_work();
        let panicked = std::panic::catch_unwind(|| {
            let _work = at_work(lobby());
            std::panic::resume_unwind(Box::new("as the test wants it"));
        });

        assert!(panicked.is_err());
        assert_eq!([during, after, is_at_work()], [true, false, false]);
    }

    fn lobby() -> Address {
        Address::Channel("console:lobby".into())
    }

    fn ticks(beats: &[u64]) -> impl FnMut() -> Option<Signs> {
        let mut beats = beats.iter().map(|beats| Signs { beats: *beats, turns: Vec::new() });
        move || beats.next()
    }
}
