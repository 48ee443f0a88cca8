//! Shared by everything in a simulation: the plan, the time, whether the process lives, and what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use ractor::ActorCell;
use tokio::sync::Notify;

use super::faults::Fault;
use super::nemesis;
use super::plan::{Beat, FloorEvent, Plan, Strike, Target, When};
use super::store::SimStore;
use super::time::{SimClock, SimRng};
use crate::actors::inbound::Inbound;
use crate::actors::runtime::directory::Directory;
use crate::domain::id::ChannelId;
use crate::domain::moment::Moment;
use crate::ports::backend::Backend;
use crate::ports::backend::room::RoomId;
use crate::ports::clock::Clock;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It crashed: everything that was not on disk is lost.
    Crashed(String),
    /// It ended on purpose, because the store accepts no more or its actors failed too often.
    Ended(String),
}

/// The running system in this life of the process.
#[derive(Clone)]
pub(super) struct Present {
    pub(super) directory: Directory,
    pub(super) backend: Backend,
    pub(super) inbound: Inbound,
    pub(super) root: ActorCell,
    pub(super) store: Arc<SimStore>,
}

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
    floor_events: Mutex<BTreeMap<FloorEvent, u64>>,
    strikes: Mutex<Vec<Strike>>,
    notes: Mutex<Notes>,
}

#[derive(Clone, Debug)]
pub(super) struct GuildQuarantine {
    pub(super) guild: String,
    /// When the quarantine was seen.
    pub(super) seen_at: Duration,
    /// The latest end: a restarted process starts all guilds.
    pub(super) until: Duration,
}

/// What happened, for the checks after the run.
#[derive(Default)]
pub(super) struct Notes {
    /// Log lines, with the time of the run.
    pub(super) log: Vec<(Duration, String)>,
    pub(super) violations: Vec<String>,
    /// Kinds of faults and paths, and their counts.
    pub(super) reached: BTreeMap<&'static str, u64>,
    /// When deadlines may have begun again: an actor was killed or was to panic, a guild was released, a room was deleted, the clock was set, or the
    /// process began or ended.
    pub(super) disturbed: Vec<Duration>,
    /// The guilds that were quarantined.
    pub(super) quarantines: Vec<GuildQuarantine>,
    /// Faults that may keep a reply from being made, in order of time.
    pub(super) faults: Vec<Fault>,
    /// When each life began.
    pub(super) lives: Vec<Duration>,
    /// The sorts of actors that were killed in each life.
    pub(super) killed: BTreeSet<(u64, &'static str)>,
    /// The number of calls of each model in each life.
    pub(super) asked: BTreeMap<(u64, &'static str), u64>,
    /// When a call panicked, in which life, and of which model.
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
            floor_events: Mutex::default(),
            strikes: Mutex::new(plan.strikes.clone()),
            notes: Mutex::default(),
            plan,
        })
    }

    /// Begins another life of the process, at this time of the run.
    pub(super) fn begin(&self, at: Duration) {
        self.clock.begin(at);
        self.life.fetch_add(1, Ordering::Relaxed);
        *lock(&self.ending) = None;
        // If the actors ended first, nobody consumed the notification that the process ended.
        let _ = self.ended.notified().now_or_never();
        self.is_dead.store(false, Ordering::Relaxed);
        if self.life() > 1 {
            self.reach("process restarted");
        }
        self.disturb();
        self.notes().lives.push(at);
        self.log(format!("life {} begins", self.life()));
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

    /// The actors of this life.
    pub(super) fn directory(&self) -> Option<Directory> {
        lock(&self.present).as_ref().map(|present| present.directory.clone())
    }

    /// The process is over. The first reason counts. Nothing that it does has an effect from now on.
    pub(super) fn end(&self, ending: Ending) {
        if !self.is_dead.swap(true, Ordering::Relaxed) {
            self.log(format!("the process ended: {ending:?}"));
            self.disturb();
            self.reach(match &ending {
                Ending::Crashed(_) => "process crash",
                Ending::Ended(_) => "process shut itself down",
            });
            *lock(&self.ending) = Some(ending);
            self.ended.notify_one();
        }
    }

    /// Ends the life: forgets its actors and returns why it ended.
    pub(super) fn end_life(&self) -> Option<Ending> {
        *lock(&self.present) = None;
        self.is_dead.store(true, Ordering::Relaxed);
        lock(&self.ending).take()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Returns only while the process lives.
    pub(super) async fn alive(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits. It never returns if the process is dead by then.
    pub(super) async fn pass(&self, span: Duration) {
        if !span.is_zero() {
            tokio::time::sleep(span).await;
        }
        self.alive().await;
    }

    /// Ends all faults.
    pub(super) fn calm_down(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
        self.rng.panics(0);
        self.log("faults are over");
    }

    pub(super) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Counts an event that a strike may wait for.
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

    /// Counts an event about the floor of a channel. A strike may wait for it, and then hits that channel.
    pub(super) fn floor_changes(self: &Arc<Self>, event: FloorEvent, channel: &ChannelId) {
        let count = {
            let mut events = lock(&self.floor_events);
            let count = events.entry(event).or_default();
            *count += 1;
            *count
        };
        let Some(room) =
            self.plan.rooms.iter().position(|room| RoomId::parse(&room.id).is_some_and(|room| room.channel() == *channel))
        else {
            return;
        };
        if self.is_calm() || self.is_dead() {
            return;
        }
        let due: Vec<Strike> = lock(&self.strikes).extract_if(.., |strike| strike.when == When::Floor(event, count)).collect();
        for strike in due {
            self.reach(event.path());
            let target = match strike.target {
                Target::Channel(_) => Target::Channel(room),
                Target::ReplyOrDelivery(_) => Target::ReplyOrDelivery(room),
                Target::Guild(_) => Target::Guild(self.plan.rooms[room].guild),
                other => other,
            };
            nemesis::strike_after_steps(self.clone(), Strike { target, ..strike });
        }
    }

    /// The earliest time for which a strike waits.
    pub(super) fn next_timed(&self) -> Option<Duration> {
        lock(&self.strikes).iter().filter_map(Strike::at).min()
    }

    /// Removes and returns the strikes whose time has come.
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

    pub(super) fn log(&self, what: impl Into<String>) {
        let now = self.now();
        self.notes().log.push((now, what.into()));
    }

    /// Notes a broken rule.
    pub(super) fn violate(&self, what: impl Display) {
        let what = what.to_string();
        self.log(format!("VIOLATION {what}"));
        let mut notes = self.notes();
        if notes.violations.len() < 50 {
            notes.violations.push(what);
        }
    }

    /// Counts a kind of fault or path.
    pub(super) fn reach(&self, what: &'static str) {
        self.reach_times(what, 1);
    }

    pub(super) fn reach_times(&self, what: &'static str, times: u64) {
        if times > 0 {
            *self.notes().reached.entry(what).or_default() += times;
        }
    }

    /// A guild is quarantined until this moment of the wall clock, or until an operator releases it. Then it restarts.
    pub(super) fn note_quarantine(&self, guild: &str, until: Moment) {
        let (seen_at, until) = (self.now(), self.now() + until.since(self.clock.now()));
        self.notes().quarantines.push(GuildQuarantine { guild: guild.to_owned(), seen_at, until });
    }

    /// An operator released a guild early.
    pub(super) fn note_release(&self, guild: &str) {
        let now = self.now();
        for quarantine in self.notes().quarantines.iter_mut().filter(|quarantine| quarantine.guild == guild) {
            quarantine.until = quarantine.until.min(now);
        }
    }

    /// Notes a disturbance: deadlines restart for every restarted actor.
    pub(super) fn disturb(&self) {
        let now = self.now();
        self.notes().disturbed.push(now);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
