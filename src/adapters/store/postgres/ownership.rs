//! The ownership of the store: one node at a time owns it, by a row that the owner updates every second.
//!
//! Wall clocks are not compared. A node that wants the store watches the row's `beat` by its own clock. Once the beat has not
//! changed for [`Times::silent_for`], the node takes the store under the next term. The owner stops by itself [`Times::lease`]
//! after it sent its last successful beat, which is a second before another node can begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::connection::{PATIENCE, RETRY_PAUSE};
use crate::ports::lease::Lease;
use crate::ports::nodes::{Node, NodesView, Partition};
use crate::ports::store::Term;
use crate::telemetry::instruments::Instruments;

/// The intervals and time limits. Everything except tests uses the default.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The interval of the owner's heartbeats.
    pub(super) beat_every: Duration,
    /// How long the owner may act after it sent its last beat.
    pub(super) lease: Duration,
    /// After this time without a beat, another node takes the store.
    pub(super) silent_for: Duration,
    /// How often a standby node checks the row.
    pub(super) look_every: Duration,
    /// The time limit for a beat, and initially for a check of the row.
    pub(super) attempt: Duration,
    /// After this time without an answer, the same query runs on a second connection, in parallel with the first.
    pub(super) hedge_after: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            beat_every: Duration::from_secs(1),
            lease: Duration::from_millis(3_500),
            silent_for: Duration::from_millis(4_500),
            look_every: Duration::from_millis(500),
            attempt: Duration::from_secs(1),
            hedge_after: PATIENCE / 3,
        }
    }
}

/// The longest time limit for a check of the row. The limit grows while checks fail, because a check that has to connect takes as
/// long as ten on an open connection.
const LONGEST_LOOK: Duration = Duration::from_secs(3);
/// The time limit for taking the store. Taking waits for the commits of the previous owner.
const TAKING: Duration = Duration::from_secs(10);
/// The rows of nodes that were silent for this long are removed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The relation of this node to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The node does not own the store.
    StandingBy,
    /// The node owns the store.
    Owner {
        /// The id of this ownership in the partition's row.
        id: Arc<str>,
        /// The term under which the ownership began.
        term: Term,
    },
    /// The node owned the store, and gave it up for this reason.
    Lost(Arc<str>),
}

/// The state of this node, and the end of its lease.
pub(super) struct Standing {
    state: watch::Sender<State>,
    view: watch::Sender<NodesView>,
    clock: fn() -> Duration,
    /// The end of the lease by `clock`, in microseconds. 0: no lease.
    lease_end: AtomicU64,
    /// When `view` was read from the database, by `clock`, in microseconds.
    seen_at: AtomicU64,
}

/// An order to the keeper.
pub(super) enum Order {
    /// Acquire the store. Answered once the store is owned.
    Own {
        /// For how long another node's beat is watched. `None`: until the store is free.
        patience: Option<Duration>,
        answer: oneshot::Sender<Result<(), String>>,
    },
    /// Leave the store to another node. This node may not act any more.
    GiveUp,
    /// Release the store to the next node, because this one stops.
    GiveBack { answer: oneshot::Sender<()> },
}

/// The rows of the partition and of the nodes. `look` and `beat` also update this node's row from time to time.
pub(super) trait Rows: Send {
    fn look(&mut self) -> impl Future<Output = Result<Seen, Trouble>> + Send;

    /// Takes the partition, if it is unchanged since `found`. Waits for the commits of the previous owner.
    fn acquire_partition(&mut self, found: &Found, owner: &str) -> impl Future<Output = Result<bool, Trouble>> + Send;

    /// Sends the owner's heartbeat. `None`: another node owns the partition.
    fn beat(&mut self, owner: &str) -> impl Future<Output = Result<Option<Seen>, Trouble>> + Send;

    /// Releases the partition, if this node owns it, and removes this node.
    fn give_back(&mut self, owner: &str) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Removes nodes.
    fn forget(&mut self, nodes: &[String]) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Drops the connection, with the requests in flight on it.
    fn disconnect(&mut self);
}

/// The partition and the nodes.
pub(super) struct Seen {
    pub(super) found: Found,
    pub(super) nodes: Vec<SeenNode>,
}

/// The row of a node.
pub(super) struct SeenNode {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) version: String,
    pub(super) beat: i64,
}

/// The task that owns the store, or watches its owner.
pub(super) struct Keeper<R> {
    rows: R,
    /// The id of this node's row.
    node: String,
    /// The id of the ownership that this node seeks or has, and its number.
    owner: String,
    ownerships: u64,
    standing: Arc<Standing>,
    times: Times,
    watched: BTreeMap<String, Watched>,
    /// Whether another node was seen with the name of this one.
    has_namesake: bool,
    instruments: Instruments,
}

/// A beat, and since when it has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    beat: (u64, i64),
    since: Duration,
}

/// The partition's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The id of the ownership. Empty: there is none.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) term: u64,
    pub(super) beat: i64,
}

/// Why a call failed.
pub(super) enum Trouble {
    /// Another node has taken the store.
    Taken,
    Passing(String),
}

/// The time since the machine's start, including suspended time.
fn since_start() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Standing {
    pub(super) fn new(this: &str) -> Self {
        Self::timed(this, since_start)
    }

    fn timed(this: &str, clock: fn() -> Duration) -> Self {
        let view = NodesView { engine: "postgres".into(), this: this.into(), ..NodesView::default() };
        let (state, view) = (watch::Sender::new(State::StandingBy), watch::Sender::new(view));
        Self { state, view, clock, lease_end: AtomicU64::new(0), seen_at: AtomicU64::new(0) }
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) fn view(&self) -> NodesView {
        let mut view = self.view.borrow().clone();
        if view.problem.is_some() {
            // No heartbeat was seen since.
            let since = (self.clock)().saturating_sub(Duration::from_micros(self.seen_at.load(Ordering::SeqCst)));
            view.nodes.iter_mut().for_each(|node| node.silent_secs += since.as_secs());
        }
        view
    }

    /// Ends an ownership immediately. False: this node is not the owner.
    pub(super) fn give_up(&self) -> bool {
        let is_owner = self.state.send_if_modified(|state| {
            let is_owner = matches!(state, State::Owner { .. });
            if is_owner {
                *state = State::Lost(Loss::Unwritable.to_string().into());
            }
            is_owner
        });
        if is_owner {
            self.lease_end.store(0, Ordering::SeqCst);
        }
        is_owner
    }

    /// Extends the lease of an owner that has not given up.
    fn extend(&self, until: Duration) -> Result<(), Trouble> {
        // The state cannot change while it is borrowed.
        let state = self.state.borrow();
        if matches!(*state, State::Lost(_)) {
            return Err(Trouble::Passing("the store was given up".into()));
        }
        self.lease_end.store(until.as_micros() as u64, Ordering::SeqCst);
        Ok(())
    }

    /// The remaining time of the lease.
    fn left(&self) -> Duration {
        Duration::from_micros(self.lease_end.load(Ordering::SeqCst)).saturating_sub((self.clock)())
    }

    /// The id of the ownership that this node has.
    pub(super) fn ownership(&self) -> Option<Arc<str>> {
        match &*self.state.borrow() {
            State::Owner { id, .. } => Some(id.clone()),
            State::StandingBy | State::Lost(_) => None,
        }
    }

    /// Waits until the store is not owned, and returns the reason.
    pub(super) async fn lost(&self) -> Arc<str> {
        let mut states = self.state();
        match states.wait_for(|state| !matches!(state, State::Owner { .. })).await.as_deref() {
            Ok(State::Lost(why)) => why.clone(),
            _ => "it does not own the store".into(),
        }
    }
}

impl Lease for Standing {
    fn is_held(&self) -> bool {
        !self.left().is_zero()
    }

    fn holder(&self) -> Option<String> {
        let view = self.view.borrow();
        let term = view.partitions.first().map_or(0, |partition| partition.term);
        Some(format!("{} {term}", view.this))
    }
}

impl Watched {
    /// How long this beat has been unchanged. A different beat restarts the time.
    fn stood_still(&mut self, beat: (u64, i64), now: Duration) -> Duration {
        if self.beat != beat {
            *self = Self { beat, since: now };
        }
        now.saturating_sub(self.since)
    }
}

impl<R: Rows> Keeper<R> {
    pub(super) fn new(rows: R, node: String, standing: Arc<Standing>, times: Times, instruments: Instruments) -> Self {
        let (watched, owner) = (BTreeMap::new(), String::new());
        Self { rows, node, owner, ownerships: 0, standing, times, watched, has_namesake: false, instruments }
    }

    fn now(&self) -> Duration {
        (self.standing.clock)()
    }

    /// Carries out orders until the store closes. Then releases the store.
    pub(super) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            let (patience, mut answer) = match order {
                Order::Own { patience, answer } => (patience, answer),
                // The node owns nothing.
                Order::GiveUp | Order::GiveBack { .. } => continue,
            };
            let owned = tokio::select! {
                owned = self.own(patience) => owned,
                () = answer.closed() => continue,
            };
            let is_owner = owned.is_ok();
            // The caller may be gone.
            let _ = answer.send(owned);
            if !is_owner {
                continue;
            }
            loop {
                let order = tokio::select! {
                    loss = self.keep() => {
                        self.lose(loss);
                        break;
                    }
                    order = orders.recv() => order,
                };
                match order {
                    Some(Order::Own { answer, .. }) => drop(answer.send(Ok(()))),
                    Some(Order::GiveUp) => {
                        self.lose(Loss::Unwritable);
                        self.give_back().await;
                        // Other nodes get the first attempt.
                        sleep(self.times.silent_for).await;
                        break;
                    }
                    Some(Order::GiveBack { answer }) => {
                        self.give_back().await;
                        self.standing.state.send_replace(State::StandingBy);
                        // The caller may be gone.
                        let _ = answer.send(());
                        break;
                    }
                    None => break,
                }
            }
        }
        self.give_back().await;
        self.standing.state.send_replace(State::StandingBy);
    }

    /// Watches the store until it is free, and takes it.
    async fn own(&mut self, patience: Option<Duration>) -> Result<(), String> {
        self.ownerships += 1;
        self.owner = format!("{} {}", self.node, self.ownerships);
        self.standing.state.send_replace(State::StandingBy);
        self.watched.remove("");
        let began = self.now();
        let (mut first_beat, mut limit) = (None, self.times.attempt);
        loop {
            let looked = timeout(limit, self.rows.look()).await.unwrap_or_else(|_| Err(no_answer()));
            let looked = looked.map(|seen| self.publish(seen));
            limit = if looked.is_ok() { self.times.attempt } else { LONGEST_LOOK.min(limit * 2) };
            let mut is_alive = false;
            let mut why = match looked {
                Ok(found) if found.owner == self.owner => String::new(),
                Ok(found) => {
                    let (beat, now) = ((found.term, found.beat), self.now());
                    let silent = self.watched.entry(String::new()).or_insert(Watched { beat, since: now }).stood_still(beat, now);
                    // A caller with limited patience need not wait for a live owner.
                    is_alive = *first_beat.get_or_insert(beat) != beat;
                    let takes = match () {
                        () if found.owner.is_empty() && found.term == 0 => Some("first"),
                        () if found.owner.is_empty() => Some("given_back"),
                        () if self.is_of_this_node(&found.owner) => Some("again"),
                        () if silent >= self.times.silent_for => Some("silent"),
                        () => None,
                    };
                    match takes {
                        Some(reason) => self.take_over_store(&found, reason).await,
                        None => format!("{} owns the store", described(&found.name, &found.address)),
                    }
                }
                Err(Trouble::Taken) => "it is being taken".to_owned(),
                Err(Trouble::Passing(detail)) => {
                    self.rows.disconnect();
                    self.publish_problem(&detail);
                    format!("the database cannot be reached: {detail}")
                }
            };
            if why.is_empty() {
                match timeout(LONGEST_LOOK, self.beat()).await.unwrap_or_else(|_| Err(no_answer())) {
                    Ok(term) => {
                        let id = Arc::from(&*self.owner);
                        self.standing.state.send_replace(State::Owner { id, term });
                        self.instruments.partition_owned.set(1, ["0"]);
                        return Ok(());
                    }
                    Err(Trouble::Taken) => "another node was quicker".clone_into(&mut why),
                    Err(Trouble::Passing(detail)) => {
                        self.rows.disconnect();
                        why = detail;
                    }
                }
            }
            if patience.is_some_and(|patience| is_alive || self.now() - began >= patience) {
                return Err(why);
            }
            sleep(self.times.look_every).await;
        }
    }

    /// Whether this is an ownership of this node. Any earlier one has ended when the node seeks the next.
    fn is_of_this_node(&self, owner: &str) -> bool {
        owner.split(' ').next() == Some(&*self.node)
    }

    /// Takes the store from the state found. Returns the reason if that fails, otherwise an empty text.
    async fn take_over_store(&mut self, found: &Found, cause: &'static str) -> String {
        match timeout(TAKING, self.rows.acquire_partition(found, &self.owner)).await.unwrap_or_else(|_| Err(no_answer())) {
            Ok(true) => {
                let before = described(&found.name, &found.address);
                match cause {
                    "silent" => tracing::warn!(before, "the node that owned the store is silent; this one takes over"),
                    "again" => tracing::info!("this node takes the store again"),
                    _ => tracing::info!("the store has no owner; this node takes it"),
                }
                self.instruments.partition_takeovers.add(1, [cause]);
                String::new()
            }
            Ok(false) | Err(Trouble::Taken) => "another node was quicker".to_owned(),
            // It is unknown whether the store was taken. The next check shows it, and a beat confirms it.
            Err(Trouble::Passing(detail)) => {
                self.rows.disconnect();
                detail
            }
        }
    }

    /// Sends heartbeats until the store is lost, and returns the reason.
    async fn keep(&mut self) -> Loss {
        let mut pause = self.times.beat_every;
        loop {
            sleep(pause.min(self.standing.left())).await;
            let attempt = self.times.attempt.min(self.standing.left());
            match timeout(attempt, self.beat()).await.unwrap_or_else(|_| Err(no_answer())) {
                Ok(_) => {
                    self.instruments.beats.add(1, ["ok"]);
                    pause = self.times.beat_every;
                }
                Err(Trouble::Taken) => return Loss::Taken,
                Err(Trouble::Passing(detail)) => {
                    self.instruments.beats.add(1, ["failed"]);
                    self.rows.disconnect();
                    self.publish_problem(&detail);
                    pause = RETRY_PAUSE;
                }
            }
            if self.standing.left().is_zero() {
                return Loss::Late;
            }
        }
    }

    /// Sends the owner's heartbeat, which extends its lease.
    async fn beat(&mut self) -> Result<Term, Trouble> {
        let sent = self.now();
        let seen = self.rows.beat(&self.owner).await?.ok_or(Trouble::Taken)?;
        self.standing.extend(sent + self.times.lease)?;
        let found = self.publish(seen);
        let now = self.now();
        let is_forgotten = |(id, watched): (&String, &Watched)| {
            (!id.is_empty() && now.saturating_sub(watched.since) >= FORGOTTEN_AFTER).then(|| id.clone())
        };
        let forgotten: Vec<String> = self.watched.iter().filter_map(is_forgotten).collect();
        if !forgotten.is_empty() {
            self.rows.forget(&forgotten).await?;
            self.watched.retain(|id, _| !forgotten.contains(id));
        }
        Ok(Term(found.term))
    }

    /// Publishes the rows, and returns the partition's row.
    fn publish(&mut self, seen: Seen) -> Found {
        let (Seen { found, nodes }, now) = (seen, self.now());
        let known = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        let mut view = Vec::new();
        for SeenNode { id, name, address, version, beat } in nodes {
            let is_owner = found.owner.split(' ').next() == Some(&*id);
            // The rows of earlier processes of this name were removed.
            if id != self.node && *name == *self.standing.view.borrow().this && !self.has_namesake {
                tracing::warn!(name, "another node has the name of this one; set cluster.name to another name on each");
                self.has_namesake = true;
            }
            // Nodes rarely update their own rows. The owner's beat shows that it is alive.
            let beat = if is_owner { (found.term, found.beat) } else { (0, beat) };
            let watched = self.watched.entry(id).or_insert(Watched { beat, since: now });
            let silent_secs = watched.stood_still(beat, now).as_secs();
            view.push(Node { name: name.into(), address: known(&address), version: version.into(), is_owner, silent_secs });
        }
        self.instruments.partition_term.set(found.term, ["0"]);
        let is_own = self.is_of_this_node(&found.owner);
        let partition = Partition { id: 0, owner: known(&found.name), address: known(&found.address), term: found.term, is_own };
        self.standing.view.send_modify(|shown| (shown.partitions, shown.nodes, shown.problem) = (vec![partition], view, None));
        self.standing.seen_at.store(now.as_micros() as u64, Ordering::SeqCst);
        found
    }

    fn publish_problem(&self, detail: &str) {
        self.standing.view.send_modify(|view| view.problem = Some(detail.into()));
    }

    /// Ends the right of this node to act.
    fn lose(&mut self, loss: Loss) {
        let why = loss.to_string();
        self.standing.lease_end.store(0, Ordering::SeqCst);
        self.instruments.partition_owned.set(0, ["0"]);
        self.instruments.partition_losses.add(1, [loss.as_str()]);
        tracing::error!(why, "this node gives up the store, and stands by");
        self.standing.state.send_replace(State::Lost(why.into()));
    }

    /// Releases the store to the next node. Has no effect if this node does not own it.
    async fn give_back(&mut self) {
        self.standing.lease_end.store(0, Ordering::SeqCst);
        self.instruments.partition_owned.set(0, ["0"]);
        if !matches!(timeout(self.times.attempt, self.rows.give_back(&self.owner)).await, Ok(Ok(()))) {
            tracing::warn!("the store could not be given back; another node takes it when this one has been silent for a while");
        }
    }
}

/// Why an owner gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Loss {
    #[error("the database did not take its sign of life in time")]
    Late,
    #[error("another node has taken the store")]
    Taken,
    #[error("the database cannot be written to")]
    Unwritable,
}

impl Loss {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Taken => "taken",
            Self::Unwritable => "unwritable",
        }
    }
}

fn no_answer() -> Trouble {
    Trouble::Passing("it does not answer".into())
}

/// The description of a node in messages for people.
fn described(name: &str, address: &str) -> String {
    if address.is_empty() { format!("node {name}") } else { format!("node {name} ({address})") }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_stands_still_from_when_it_was_first_seen() {
        let at = Duration::from_millis;
        let mut watched = Watched { beat: (1, 1), since: at(0) };

        assert_eq!(watched.stood_still((1, 1), at(4_400)), at(4_400));
        assert_eq!(watched.stood_still((1, 2), at(4_600)), at(0));
        assert_eq!(watched.stood_still((2, 2), at(9_000)), at(0), "another term");
        assert_eq!(watched.stood_still((2, 2), at(13_500)), at(4_500));
    }

    #[test]
    fn nodes_are_silent_for_as_long_as_the_database_is_away() {
        let standing = Standing { clock: || Duration::from_secs(9), ..Standing::new("a") };
        let node = Node { name: "b".into(), address: None, version: "1".into(), is_owner: true, silent_secs: 1 };
        standing.seen_at.store(Duration::from_secs(2).as_micros() as u64, Ordering::SeqCst);
        standing.view.send_modify(|view| view.nodes = vec![node]);
        let seen = standing.view();

        standing.view.send_modify(|view| view.problem = Some("no answer".into()));

        assert_eq!((seen.nodes[0].silent_secs, standing.view().nodes[0].silent_secs), (1, 8));
    }

    #[test]
    fn a_lease_ends_by_itself() {
        let standing = Standing::new("a");
        assert!(!standing.is_held());

        standing.lease_end.store((since_start() + Duration::from_secs(3)).as_micros() as u64, Ordering::SeqCst);
        let held = standing.is_held();
        standing.lease_end.store(since_start().as_micros() as u64, Ordering::SeqCst);

        assert!(held && !standing.is_held());
    }
}
