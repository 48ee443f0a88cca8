//! Who owns the store: one node at a time, by a row that the owner changes every second.
//!
//! No clock of the wall is compared. A node that wants the store watches the row's `beat` by its own clock. Once the beat has stood still for
//! [`Times::silent_for`], it takes the store under the next term. The owner stops by itself [`Times::lease`] after it sent the last beat that succeeded, which is
//! a second before anybody else can begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::try_join;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::{Database, RETRY_PAUSE, Session, reason};
use super::schema;
use crate::adapters::store::Identity;
use crate::ports::lease::Lease;
use crate::ports::nodes::{Node, NodesView, Partition};
use crate::ports::store::Term;
use crate::telemetry::instruments::Instruments;

/// How often and how long things are done. Everything except tests uses the default.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// How often the owner shows that it lives.
    pub(super) beat_every: Duration,
    /// How long the owner may act after it sent its last beat.
    pub(super) lease: Duration,
    /// After so long without a beat, another node takes the store.
    pub(super) silent_for: Duration,
    /// How often a node that stands by looks.
    pub(super) look_every: Duration,
    /// The time limit for a beat and for a look.
    pub(super) attempt: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            beat_every: Duration::from_secs(1),
            lease: Duration::from_millis(3_500),
            silent_for: Duration::from_millis(4_500),
            look_every: Duration::from_millis(500),
            attempt: Duration::from_secs(1),
        }
    }
}

/// The time limit for taking. It waits for the commits of the owner before.
const TAKING: Duration = Duration::from_secs(10);
/// The rows of nodes that were silent for so long are removed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

const LOOK: &str = "select owner, name, address, term, beat from partition where id = 0";
const TAKE: &str = "update partition set owner = $1, name = $2, address = $3, term = term + 1, beat = beat + 1 \
                    where id = 0 and term = $4 and beat = $5";
const BEAT: &str = "update partition set beat = beat + 1 where id = 0 and owner = $1 returning owner, name, address, term, beat";
const GIVE_BACK: &str = "update partition set owner = '', name = '', address = '', beat = beat + 1 where id = 0 and owner = $1";
const SIGN: &str = "insert into node values ($1, $2, $3, $4, 0) on conflict (id) do update set beat = node.beat + 1";
const SIGN_OFF: &str = "delete from node where id = any($1)";
/// A node that is started again has another id.
const REPLACE: &str = "delete from node where name = $1 and id <> $2";
const NODES: &str = "select id, name, address, version, beat from node order by name, id";

/// What this node has to do with the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It does not own the store.
    StandingBy,
    /// It owns the store.
    Owner {
        /// The id of this ownership in the partition's row.
        id: Arc<str>,
        /// The term under which it began.
        term: Term,
    },
    /// It owned the store, and gave it up for this reason.
    Lost(Arc<str>),
}

/// What this node knows, and how long it may act.
pub(super) struct Standing {
    state: watch::Sender<State>,
    view: watch::Sender<NodesView>,
    /// The end of the lease by the machine's clock since its start, in microseconds. 0: none.
    lease_end: AtomicU64,
}

/// What the keeper has to do.
pub(super) enum Order {
    /// Own the store. It is answered once the store is owned.
    Own {
        /// For how long another node's beat is watched. `None`: until the store is free.
        patience: Option<Duration>,
        answer: oneshot::Sender<Result<(), String>>,
    },
    /// Leave the store to another node. This one may not act any more.
    GiveUp,
}

/// The task that owns the store, or watches who does.
pub(super) struct Keeper {
    database: Database,
    session: Option<Session>,
    identity: Identity,
    /// The id of this node's row.
    node: String,
    /// The id of the ownership that it seeks or has, and the number of it.
    owner: String,
    ownerships: u64,
    standing: Arc<Standing>,
    times: Times,
    watched: BTreeMap<String, Watched>,
    instruments: Instruments,
}

/// A beat, and since when it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    beat: (u64, i64),
    since: Duration,
}

/// The partition's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    owner: String,
    name: String,
    address: String,
    term: u64,
    beat: i64,
}

/// Why the store is not owned.
enum Trouble {
    /// Another node has taken it.
    Taken,
    Passing(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Passing(reason(&error))
    }
}

/// The time since the machine's start, its sleep included.
fn now() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Standing {
    pub(super) fn new(this: &str) -> Self {
        let view = NodesView { engine: "postgres".into(), this: this.into(), ..NodesView::default() };
        Self { state: watch::Sender::new(State::StandingBy), view: watch::Sender::new(view), lease_end: AtomicU64::new(0) }
    }

    pub(super) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) fn view(&self) -> NodesView {
        self.view.borrow().clone()
    }

    /// Ends what this node may do, at once.
    pub(super) fn give_up(&self) {
        self.state.send_replace(State::Lost(Loss::Unwritable.to_string().into()));
        self.lease_end.store(0, Ordering::SeqCst);
    }

    /// Extends the lease of an owner that has not given up.
    fn extend(&self, until: Duration) -> Result<(), Trouble> {
        // Nobody gives up while the state is borrowed.
        let state = self.state.borrow();
        if matches!(*state, State::Lost(_)) {
            return Err(Trouble::Passing("the store was given up".into()));
        }
        self.lease_end.store(until.as_micros() as u64, Ordering::SeqCst);
        Ok(())
    }

    /// Waits until the store is not owned, and says why.
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
        now().as_micros() < u128::from(self.lease_end.load(Ordering::SeqCst))
    }

    fn holder(&self) -> Option<String> {
        let term = self.view.borrow().partitions.first().map_or(0, |partition| partition.term);
        Some(format!("{} {term}", self.view.borrow().this))
    }
}

impl Watched {
    /// For how long this beat has been seen. Another one is seen from now on.
    fn stood_still(&mut self, beat: (u64, i64), now: Duration) -> Duration {
        if self.beat != beat {
            *self = Self { beat, since: now };
        }
        now.saturating_sub(self.since)
    }
}

impl Keeper {
    pub(super) fn new(
        database: Database,
        node: String,
        identity: Identity,
        standing: Arc<Standing>,
        times: Times,
        instruments: Instruments,
    ) -> Self {
        let (watched, owner) = (BTreeMap::new(), String::new());
        Self { database, session: None, identity, node, owner, ownerships: 0, standing, times, watched, instruments }
    }

    /// Carries out orders until the store closes. Then what it owns is given back.
    pub(super) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            let Order::Own { patience, mut answer } = order else { continue };
            let owned = tokio::select! {
                owned = self.own(patience) => owned,
                () = answer.closed() => continue,
            };
            let is_owner = owned.is_ok();
            // The one who asked may be gone.
            let _ = answer.send(owned);
            while is_owner {
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
                        // Others have the first try.
                        sleep(self.times.silent_for).await;
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
        let began = now();
        let mut first_beat = None;
        loop {
            let looked = timeout(self.times.attempt, self.look())
                .await
                .unwrap_or_else(|_| Err(Trouble::Passing("it does not answer".into())));
            let mut is_alive = false;
            let mut why = match looked {
                Ok(found) if found.owner == self.owner => String::new(),
                Ok(found) => {
                    let watched = self.watched.entry(String::new()).or_insert(Watched { beat: (0, 0), since: now() });
                    let beat = (found.term, found.beat);
                    let silent = watched.stood_still(beat, now());
                    // Who has patience for a while only need not wait for a node that lives.
                    is_alive = *first_beat.get_or_insert(beat) != beat;
                    let takes = match () {
                        () if found.owner.is_empty() && found.term == 0 => Some("first"),
                        () if found.owner.is_empty() => Some("given_back"),
                        () if silent >= self.times.silent_for => Some("silent"),
                        () => None,
                    };
                    match takes {
                        Some(reason) => self.take(&found, reason).await,
                        None => format!("{} owns the store", described(&found.name, &found.address)),
                    }
                }
                Err(Trouble::Taken) => "it is being taken".to_owned(),
                Err(Trouble::Passing(detail)) => {
                    self.session = None;
                    self.publish_problem(&detail);
                    format!("the database cannot be reached: {detail}")
                }
            };
            if why.is_empty() {
                match self.beat().await {
                    Ok(term) => {
                        let id = Arc::from(&*self.owner);
                        self.standing.state.send_replace(State::Owner { id, term });
                        self.instruments.partition_owned.set(1, ["0"]);
                        return Ok(());
                    }
                    Err(Trouble::Taken) => "another node was quicker".clone_into(&mut why),
                    Err(Trouble::Passing(detail)) => {
                        self.session = None;
                        why = detail;
                    }
                }
            }
            if patience.is_some_and(|patience| is_alive || now() - began >= patience) {
                return Err(why);
            }
            sleep(self.times.look_every).await;
        }
    }

    /// Takes the store from the state found, and says why it could not. Commits of the owner before are waited for.
    async fn take(&mut self, found: &Found, cause: &'static str) -> String {
        let Some(session) = &self.session else { return "the connection is lost".to_owned() };
        // Its owner before needs the tables no more.
        if let Err(error) = schema::prepare(&session.client, &self.node, true).await {
            self.session = None;
            return error.to_string();
        }
        let Identity { name, address } = &self.identity;
        let (term, beat) = (found.term as i64, found.beat);
        let values: [(&(dyn ToSql + Sync), Type); 5] =
            [(&self.owner, Type::TEXT), (name, Type::TEXT), (address, Type::TEXT), (&term, Type::INT8), (&beat, Type::INT8)];
        match timeout(TAKING, session.client.execute_typed(TAKE, &values)).await {
            Ok(Ok(0)) => "another node was quicker".to_owned(),
            Ok(Ok(_)) => {
                let before = described(&found.name, &found.address);
                match cause {
                    "silent" => tracing::warn!(before, "the node that owned the store is silent; this one takes over"),
                    _ => tracing::info!("the store has no owner; this node takes it"),
                }
                self.instruments.partition_takeovers.add(1, [cause]);
                String::new()
            }
            // The next look shows whether it was taken; a beat settles it.
            Ok(Err(error)) => {
                self.session = None;
                reason(&error)
            }
            Err(_) => {
                self.session = None;
                "taking the store took too long".to_owned()
            }
        }
    }

    /// Beats until the store is lost, and says why it is.
    async fn keep(&mut self) -> Loss {
        let mut pause = self.times.beat_every;
        loop {
            let left = self.left();
            sleep(pause.min(left)).await;
            let attempt = self.times.attempt.min(self.left());
            let beat = timeout(attempt, self.beat()).await;
            match beat.unwrap_or_else(|_| Err(Trouble::Passing("it does not answer".into()))) {
                Ok(_) => {
                    self.instruments.beats.add(1, ["ok"]);
                    pause = self.times.beat_every;
                }
                Err(Trouble::Taken) => return Loss::Taken,
                Err(Trouble::Passing(detail)) => {
                    self.instruments.beats.add(1, ["failed"]);
                    self.session = None;
                    self.publish_problem(&detail);
                    pause = RETRY_PAUSE;
                }
            }
            if self.left().is_zero() {
                return Loss::Late;
            }
        }
    }

    fn left(&self) -> Duration {
        Duration::from_micros(self.standing.lease_end.load(Ordering::SeqCst)).saturating_sub(now())
    }

    /// Shows that the owner lives, which extends its lease.
    async fn beat(&mut self) -> Result<Term, Trouble> {
        self.connect().await?;
        let Some(session) = &self.session else { return Err(Trouble::Passing("the connection is lost".into())) };
        session.has_warned();
        let sent = now();
        let owner: [(&(dyn ToSql + Sync), Type); 1] = [(&self.owner, Type::TEXT)];
        let sign = self.sign();
        let (row, _, nodes) = try_join!(
            session.client.query_typed_opt(BEAT, &owner),
            session.client.execute_typed(SIGN, &sign),
            session.client.query_typed(NODES, &[])
        )?;
        let found = Found::of(&row.ok_or(Trouble::Taken)?)?;
        if session.has_warned() {
            return Err(Trouble::Passing("the database warned when it stored a beat".into()));
        }
        let term = Term(found.term);
        self.standing.extend(sent + self.times.lease)?;
        self.publish(&found, &nodes)?;
        self.remove_forgotten().await?;
        Ok(term)
    }

    /// Reads who owns the store, and shows that this node is there.
    async fn look(&mut self) -> Result<Found, Trouble> {
        self.connect().await?;
        let Some(session) = &self.session else { return Err(Trouble::Passing("the connection is lost".into())) };
        let sign = self.sign();
        let (row, _, nodes) = try_join!(
            session.client.query_typed_one(LOOK, &[]),
            session.client.execute_typed(SIGN, &sign),
            session.client.query_typed(NODES, &[])
        )?;
        let found = Found::of(&row)?;
        self.publish(&found, &nodes)?;
        Ok(found)
    }

    fn sign(&self) -> [(&(dyn ToSql + Sync), Type); 4] {
        let version: &'static &'static str = &env!("CARGO_PKG_VERSION");
        let Identity { name, address } = &self.identity;
        [(&self.node, Type::TEXT), (name, Type::TEXT), (address, Type::TEXT), (version, Type::TEXT)]
    }

    async fn connect(&mut self) -> Result<(), Trouble> {
        if self.session.as_ref().is_none_or(|session| session.client.is_closed()) {
            let session = self.database.connect().await?;
            let (name, node) = (&self.identity.name, &self.node);
            session.client.execute_typed(REPLACE, &[(name, Type::TEXT), (node, Type::TEXT)]).await?;
            self.session = Some(session);
        }
        Ok(())
    }

    async fn remove_forgotten(&mut self) -> Result<(), Trouble> {
        let time = now();
        let is_forgotten = |(id, watched): (&String, &Watched)| {
            let silent = time.saturating_sub(watched.since);
            (!id.is_empty() && silent >= FORGOTTEN_AFTER).then(|| id.clone())
        };
        let forgotten: Vec<String> = self.watched.iter().filter_map(is_forgotten).collect();
        if let Some(session) = &self.session
            && !forgotten.is_empty()
        {
            session.client.execute_typed(SIGN_OFF, &[(&forgotten, Type::TEXT_ARRAY)]).await?;
            self.watched.retain(|id, _| !forgotten.contains(id));
        }
        Ok(())
    }

    fn publish(&mut self, found: &Found, nodes: &[Row]) -> Result<(), Trouble> {
        let time = now();
        let known = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        let mut seen = Vec::new();
        for row in nodes {
            let [id, name, address, version] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get::<_, &str>(3)?];
            let beat = (0, row.try_get(4)?);
            let watched = self.watched.entry(id.to_owned()).or_insert(Watched { beat, since: time });
            let silent_secs = watched.stood_still(beat, time).as_secs();
            let is_owner = found.owner.split(' ').next() == Some(id);
            seen.push(Node { name: name.into(), address: known(address), version: version.into(), is_owner, silent_secs });
        }
        self.instruments.partition_term.set(found.term, ["0"]);
        let partition = Partition { id: 0, owner: known(&found.name), address: known(&found.address), term: found.term };
        self.standing.view.send_modify(|view| {
            (view.partitions, view.nodes, view.problem) = (vec![partition], seen, None);
        });
        Ok(())
    }

    fn publish_problem(&self, detail: &str) {
        self.standing.view.send_modify(|view| view.problem = Some(detail.into()));
    }

    /// From now on this node may not act.
    fn lose(&mut self, loss: Loss) {
        let why = loss.to_string();
        self.standing.lease_end.store(0, Ordering::SeqCst);
        self.instruments.partition_owned.set(0, ["0"]);
        self.instruments.partition_losses.add(1, [loss.as_str()]);
        tracing::error!(why, "this node gives up the store, and stands by");
        self.standing.state.send_replace(State::Lost(why.into()));
    }

    /// Leaves what it owns to the next node. What this node does not own stays as it is.
    async fn give_back(&mut self) {
        self.standing.lease_end.store(0, Ordering::SeqCst);
        self.instruments.partition_owned.set(0, ["0"]);
        let at_most = self.times.attempt;
        let give_back = async {
            self.connect().await?;
            let Some(session) = &self.session else { return Ok(()) };
            let own = vec![self.node.clone()];
            session.client.execute_typed(GIVE_BACK, &[(&self.owner, Type::TEXT)]).await?;
            session.client.execute_typed(SIGN_OFF, &[(&own, Type::TEXT_ARRAY)]).await?;
            Ok::<_, Trouble>(())
        };
        if !matches!(timeout(at_most, give_back).await, Ok(Ok(()))) {
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

impl Found {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let term = row.try_get::<_, i64>(3)?.unsigned_abs();
        Ok(Self { owner: row.try_get(0)?, name: row.try_get(1)?, address: row.try_get(2)?, term, beat: row.try_get(4)? })
    }
}

/// A node, for people.
fn described(name: &str, address: &str) -> String {
    if address.is_empty() { format!("node {name}") } else { format!("node {name} ({address})") }
}

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
    fn a_lease_ends_by_itself() {
        let standing = Standing::new("a");
        assert!(!standing.is_held());

        standing.lease_end.store((now() + Duration::from_secs(3)).as_micros() as u64, Ordering::SeqCst);
        let held = standing.is_held();
        standing.lease_end.store(now().as_micros() as u64, Ordering::SeqCst);

        assert!(held && !standing.is_held());
    }
}
