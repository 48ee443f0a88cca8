//! What everything in a simulation shares: the plan, the time, whether the process lives, and what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use ractor::ActorCell;
use tokio::sync::Notify;

use super::faults::Fault;
use super::nemesis;
use super::plan::{Beat, Plan, Strike, When};
use super::store::SimStore;
use super::time::{SimClock, SimRng};
use crate::actors::inbound::Inbound;
use crate::actors::runtime::directory::Directory;
use crate::actors::service::ActorBackend;
use crate::domain::moment::Moment;
use crate::ports::clock::Clock;

/// Why a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It crashed: whatever was not on disk is gone.
    Crashed(String),
    /// It ended by itself, as it is meant to: the store takes no more, or its actors failed too often.
    Ended(String),
}

/// Who is there in this life of the process.
#[derive(Clone)]
pub(super) struct Present {
    pub(super) directory: Directory,
    pub(super) backend: Arc<ActorBackend>,
    pub(super) inbound: Inbound,
    pub(super) root: ActorCell,
    pub(super) store: Arc<SimStore>,
}

/// What everything shares.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) clock: Arc<SimClock>,
    pub(super) rng: Arc<SimRng>,
    is_dead: AtomicBool,
    is_calm: AtomicBool,
    pub(super) ended: Notify,
    ending: Mutex<Option<Ending>>,
    life: AtomicU64,
    present: Mutex<Option<Present>>,
    beats: Mutex<BTreeMap<Beat, u64>>,
    strikes: Mutex<Vec<Strike>>,
    notes: Mutex<Notes>,
}

/// A guild whose actors were not there.
#[derive(Clone, Debug)]
pub(super) struct KeptAway {
    pub(super) guild: String,
    /// When somebody saw it.
    pub(super) seen_at: Duration,
    /// At the latest: a process that begins anew begins with all of them.
    pub(super) until: Duration,
}

/// What happened, for whoever looks at it afterwards.
#[derive(Default)]
pub(super) struct Notes {
    /// In words, with the time of the run.
    pub(super) told: Vec<(Duration, String)>,
    /// What must never happen and did.
    pub(super) violations: Vec<String>,
    /// Kinds of faults and paths, and how often.
    pub(super) reached: BTreeMap<&'static str, u64>,
    /// When somebody was killed, the clock was set, the process died.
    pub(super) disturbed: Vec<Duration>,
    /// Which guilds were kept away, by their ids.
    pub(super) kept_away: Vec<KeptAway>,
    /// What may keep a reply from being made, in the order of time.
    pub(super) faults: Vec<Fault>,
    /// When each life began.
    pub(super) lives: Vec<Duration>,
    /// Who was killed in which life.
    pub(super) killed: BTreeSet<(u64, &'static str)>,
    /// How often each model was asked in which life.
    pub(super) asked: BTreeMap<(u64, &'static str), u64>,
    /// When a call of which model panicked, and in which life.
    pub(super) panicked: Vec<(Duration, u64, &'static str)>,
}

impl Stage {
    pub(super) fn new(plan: Plan) -> Arc<Self> {
        let clock = Arc::<SimClock>::default();
        Arc::new(Self {
            rng: Arc::new(SimRng::new(plan.seed, clock.clone())),
            clock,
            is_dead: AtomicBool::new(true),
            is_calm: AtomicBool::new(false),
            ended: Notify::new(),
            ending: Mutex::default(),
            life: AtomicU64::new(0),
            present: Mutex::default(),
            beats: Mutex::default(),
            strikes: Mutex::new(plan.strikes.clone()),
            notes: Mutex::default(),
            plan,
        })
    }

    /// Another life of the process begins, at this time of the run.
    pub(super) fn begin(&self, at: Duration) {
        self.clock.begin(at);
        self.life.fetch_add(1, Ordering::Relaxed);
        *lock(&self.ending) = None;
        // Where the tree was over before, nobody waited to be told that the process is.
        let _ = self.ended.notified().now_or_never();
        self.is_dead.store(false, Ordering::Relaxed);
        if self.life() > 1 {
            self.reach("process begun anew");
        }
        self.disturb();
        self.notes().lives.push(at);
        self.tell(format!("life {} begins", self.life()));
    }

    pub(super) fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, present: Present) {
        *lock(&self.present) = Some(present);
    }

    pub(super) fn present(&self) -> Option<Present> {
        lock(&self.present).clone()
    }

    /// The process is over; the first reason counts. Nothing that it does has an effect from now on.
    pub(super) fn end(&self, ending: Ending) {
        if !self.is_dead.swap(true, Ordering::Relaxed) {
            self.tell(format!("the process is over: {ending:?}"));
            self.disturb();
            self.reach(match &ending {
                Ending::Crashed(_) => "process crash",
                Ending::Ended(_) => "process ended by itself",
            });
            *lock(&self.ending) = Some(ending);
            self.ended.notify_one();
        }
    }

    /// Takes leave of everybody who was there.
    pub(super) fn bury(&self) -> Option<Ending> {
        *lock(&self.present) = None;
        self.is_dead.store(true, Ordering::Relaxed);
        lock(&self.ending).take()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Goes on only while the process lives.
    pub(super) async fn alive(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Passes time; whoever is dead then is not heard of any more.
    pub(super) async fn pass(&self, span: Duration) {
        if !span.is_zero() {
            tokio::time::sleep(span).await;
        }
        self.alive().await;
    }

    /// Faults are over from now on.
    pub(super) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
        self.rng.panics(0);
        self.tell("faults are over");
    }

    pub(super) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Something happens that a strike may wait for.
    pub(super) fn beat(self: &Arc<Self>, beat: Beat) {
        let count = {
            let mut beats = lock(&self.beats);
            let count = beats.entry(beat).or_default();
            *count += 1;
            *count
        };
        if self.is_calm() || self.is_dead() {
            return;
        }
        let due: Vec<Strike> = {
            let mut strikes = lock(&self.strikes);
            let (due, later) = strikes.drain(..).partition(|strike| strike.when == When::Beat(beat, count));
            *strikes = later;
            due
        };
        for strike in due {
            nemesis::strike_after_steps(self.clone(), strike);
        }
    }

    /// When the next strike is due that waits for a time.
    pub(super) fn next_timed(&self) -> Option<Duration> {
        lock(&self.strikes).iter().filter_map(Strike::at).min()
    }

    /// The strikes whose time has come.
    pub(super) fn take_due(&self) -> Vec<Strike> {
        let now = self.now();
        let mut strikes = lock(&self.strikes);
        let (due, later) = strikes.drain(..).partition(|strike| strike.at().is_some_and(|at| at <= now));
        *strikes = later;
        due
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        lock(&self.notes)
    }

    pub(super) fn tell(&self, what: impl Into<String>) {
        let now = self.now();
        self.notes().told.push((now, what.into()));
    }

    /// Something happened that must never happen.
    pub(super) fn violate(&self, what: impl Display) {
        let what = what.to_string();
        self.tell(format!("VIOLATION {what}"));
        let mut notes = self.notes();
        if notes.violations.len() < 50 {
            notes.violations.push(what);
        }
    }

    /// A kind of fault or path was reached.
    pub(super) fn reach(&self, what: &'static str) {
        self.reach_times(what, 1);
    }

    pub(super) fn reach_times(&self, what: &'static str, times: u64) {
        if times > 0 {
            *self.notes().reached.entry(what).or_default() += times;
        }
    }

    /// A guild's actors are not there, until this moment of the wall clock or until an operator lets it go; then it begins anew.
    pub(super) fn is_kept_away(&self, guild: &str, until: Moment) {
        let (seen_at, until) = (self.now(), self.now() + until.since(self.clock.now()));
        self.notes().kept_away.push(KeptAway { guild: guild.to_owned(), seen_at, until });
    }

    /// An operator let a guild go before its time.
    pub(super) fn is_released(&self, guild: &str) {
        let now = self.now();
        for kept in self.notes().kept_away.iter_mut().filter(|kept| kept.guild == guild) {
            kept.until = kept.until.min(now);
        }
    }

    /// Deadlines begin anew for whoever is begun anew.
    pub(super) fn disturb(&self) {
        let now = self.now();
        self.notes().disturbed.push(now);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
