//! The store in a PostgreSQL database, for more than one machine. It needs PostgreSQL 15 or newer.
//!
//! One task writes, on its own connection. It groups waiting batches, because a transaction for each batch is four times as slow.
//! Another task maintains the ownership of the store, without which nothing is written. Other connections read. All tasks run on
//! threads of the store, so that a caller that disappears cancels nothing.

mod committer;
mod connection;
mod ownership;
mod rows;
mod schema;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use super::sled::{FolderLock, OpenOptions};
use super::{Identity, OpenError};
use crate::domain::id::Ward;
use crate::ports::lease::Lease;
use crate::ports::nodes::{Nodes, NodesView};
use crate::ports::store::key::Key;
use crate::ports::store::maintenance::{MaintenanceError, StoreMaintenance, TemporaryCopy};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Term, Value};
use committer::{Committer, Request};
use connection::{Database, PATIENCE, RETRY_PAUSE, Session, is_passing, reason};
use ownership::{Keeper, Order, Standing, State, Times};
use rows::DatabaseRows;

/// The number of connections that read.
const READERS: usize = 4;
/// The number of threads.
const THREADS: usize = 2;

const OWNED: &str = "select 1 from partition where id = 0 and owner = $1";
const GET: &str = "select key, value from record where key = $1";
const ASCENDING: &str = "select key, value from record where key >= $1 and key < $2 order by key limit $3";
const DESCENDING: &str = "select key, value from record where key >= $1 and key < $2 order by key desc limit $3";

const POOLED: &str = "it is behind a pooler that gives each transaction another session, as pgbouncer does with pool_mode = \
    transaction: connect to PostgreSQL itself, or set pool_mode = session for this database";

/// How long a command waits for the store before it reports the owner. A live owner is recognised sooner.
const WAIT_FOR_OWNER: Duration = Duration::from_secs(7);

/// The store in a database.
///
/// The partition's term grows when the store is acquired, and each time a ward is acquired again. A store that is only read is
/// not owned.
pub struct PostgresStore {
    runtime: Option<Runtime>,
    readers: Arc<Readers>,
    standing: Arc<Standing>,
    orders: Option<UnboundedSender<Order>>,
    requests: Option<UnboundedSender<Request>>,
    /// Receives the task of the owner once all requests are done. Locked because a receiver belongs to one thread.
    ended: parking_lot::Mutex<mpsc::Receiver<JoinHandle<()>>>,
    // Held while the store is open, so that commands find the server of this machine.
    _lock: FolderLock,
}

struct Readers {
    database: Database,
    standing: Arc<Standing>,
    /// After this time without an answer, the same query runs on a second connection.
    hedge_after: Duration,
    sessions: [Mutex<Option<Reader>>; READERS],
    next: AtomicUsize,
}

/// A connection that reads.
#[derive(Clone)]
struct Reader {
    session: Arc<Session>,
    /// The ownership of this node that the server of this connection knew. `None`: there was none.
    ownership: Option<Arc<str>>,
}

impl PostgresStore {
    /// Connects to a database, and creates its tables if it has none. The data folder is locked while the store is open. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]. It never contains the URL.
    pub fn open(data: &Path, url: &SecretString, options: &OpenOptions, node: &Identity) -> Result<Self, OpenError> {
        Self::open_timed(data, url, options, node, Times::default())
    }

    fn open_timed(
        data: &Path,
        url: &SecretString,
        options: &OpenOptions,
        node: &Identity,
        times: Times,
    ) -> Result<Self, OpenError> {
        let lock = options.lock(data)?;
        let database = Database::at(url).map_err(|wrong| OpenError::Database(format!("its URL {wrong}")))?;
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("store-postgres").enable_all().build();
        let runtime = runtime.map_err(|error| OpenError::of(data, error))?;
        let (id, instruments) = (format!("{:032x}", options.new_id), options.instruments.clone());
        let (begun, ready) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let (requests, inbox) = unbounded_channel();
        let (orders, ordered) = unbounded_channel();
        let standing = Arc::new(Standing::new(&node.name));
        let (writing, identity, shared) = (database.clone(), node.clone(), standing.clone());
        runtime.spawn(async move {
            let opened = async {
                let deadline = Instant::now() + PATIENCE;
                loop {
                    let connected = timeout_at(deadline, writing.connect_until(deadline)).await;
                    let session = connected.map_err(|_| silent())?.map_err(|error| unreachable(&error))?;
                    let prepared = match session.is_shared(&writing).await {
                        Ok(true) => Err(OpenError::Database(POOLED.into())),
                        Ok(false) => schema::prepare(&session.client, &id, false).await,
                        Err(error) => Err(unreachable(&error)),
                    };
                    match prepared {
                        // A database that is shutting down closes its connections.
                        Err(_) if session.client.is_closed() && Instant::now() < deadline => sleep(RETRY_PAUSE).await,
                        prepared => return prepared.map(|()| session),
                    }
                }
            };
            let session = match opened.await {
                Ok(session) => session,
                Err(error) => return drop(begun.send(Err(error))),
            };
            // The opener waits for this.
            let _ = begun.send(Ok(()));
            let keeper = Keeper::new(
                DatabaseRows::new(writing.clone(), identity, id.clone()),
                id,
                shared.clone(),
                times,
                instruments.clone(),
            );
            let keeping = tokio::spawn(keeper.run(ordered));
            Committer::new(writing, session, shared, instruments).run(inbox).await;
            let _ = end.send(keeping);
        });
        let readers = Readers {
            database,
            standing: standing.clone(),
            hedge_after: times.hedge_after,
            sessions: Default::default(),
            next: AtomicUsize::new(0),
        };
        let store = Self {
            runtime: Some(runtime),
            readers: Arc::new(readers),
            standing,
            orders: Some(orders),
            requests: Some(requests),
            ended: parking_lot::Mutex::new(ended),
            _lock: lock,
        };
        ready.recv().unwrap_or_else(|_| Err(OpenError::Database("opening it panicked".into())))?;
        Ok(store)
    }

    /// Acquires the store once no other node owns it. `patience` limits the wait for an owner that may be dead; a live one is an error as soon as it is
    /// recognised. `None`: waits for any owner, without a time limit.
    ///
    /// # Errors
    /// Returns an error if another node owns the store, the database cannot be reached in time, or the store is closed.
    pub async fn own(&self, patience: Option<Duration>) -> Result<(), StoreError> {
        if matches!(*self.standing.state().borrow(), State::Owner { .. }) {
            return Ok(());
        }
        let (answer, owned) = oneshot::channel();
        let sent = self.orders.as_ref().and_then(|orders| orders.send(Order::Own { patience, answer }).ok());
        sent.ok_or_else(|| StoreError::Failed("the store is closed".into()))?;
        let owned = owned.await.unwrap_or_else(|_| Err("the task that owns the store has ended".into()));
        owned.map_err(StoreError::Failed)
    }

    /// Releases the store to the next node, because this node stops and uses it no longer. Blocks.
    pub fn give_back(&self) {
        let (answer, given_back) = oneshot::channel();
        if self.orders.as_ref().is_some_and(|orders| orders.send(Order::GiveBack { answer }).is_ok()) {
            // A node that owns nothing drops the order.
            let _ = given_back.blocking_recv();
        }
    }

    /// Gives up the ownership of the store, because the store cannot be written to.
    pub fn give_up(&self) {
        if self.standing.give_up()
            && let Some(orders) = &self.orders
        {
            // A keeper that has ended owns nothing.
            let _ = orders.send(Order::GiveUp);
        }
    }

    /// Waits until the store is not owned any more, and returns the reason.
    pub async fn lost(&self) -> Arc<str> {
        self.standing.lost().await
    }

    /// The right to act that comes with owning the store.
    pub fn lease(&self) -> Arc<dyn Lease> {
        self.standing.clone()
    }

    async fn request<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request) -> Result<T, StoreError> {
        let (sender, answer) = oneshot::channel();
        let sent = self.requests.as_ref().and_then(|requests| requests.send(request(sender)).ok());
        sent.ok_or_else(|| StoreError::Failed("the task that writes has ended".into()))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the task that writes ended before it responded".into())))
    }

    async fn read(&self, query: Query) -> Result<Vec<(Key, Value)>, StoreError> {
        let Some(runtime) = &self.runtime else { return Err(StoreError::Failed("the store is closed".into())) };
        let readers = self.readers.clone();
        match runtime.spawn(async move { readers.read(&query).await }).await {
            Ok(outcome) => outcome,
            Err(end) if end.is_cancelled() => std::future::pending().await,
            Err(panic) => Err(StoreError::Failed(format!("a read panicked: {panic}"))),
        }
    }
}

/// How to write a password that is rejected or cannot be parsed.
const PASSWORDS: &str = "in the password of a URL, special characters are percent-encoded: @ is %40, and % itself is %25";

/// The error for a database that refuses a connection, or cannot be connected to.
fn unreachable(error: &Error) -> OpenError {
    match is_passing(error) {
        true => OpenError::Unreachable(reason(error)),
        false if error.code() == Some(&SqlState::INVALID_PASSWORD) => {
            OpenError::Database(format!("it refuses the connection: {}; {PASSWORDS}", reason(error)))
        }
        false => OpenError::Database(format!("it refuses the connection: {}", reason(error))),
    }
}

/// The error for a database that accepts connections but does not answer.
fn silent() -> OpenError {
    OpenError::Unreachable(format!("it does not answer within {} s", PATIENCE.as_secs()))
}

/// A read request.
enum Query {
    Get(Key),
    Scan { from: Key, to: Key, newest_first: bool, limit: i64 },
}

impl Readers {
    /// Reads, and reconnects if the connection has ended or does not answer.
    async fn read(&self, query: &Query) -> Result<Vec<(Key, Value)>, StoreError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let failed = |detail: String| StoreError::Failed(format!("the database cannot be read: {detail}"));
            match timeout_at(deadline, self.attempt(query, deadline))
                .await
                .map_err(|_| failed(format!("it did not answer within {} s", PATIENCE.as_secs())))?
            {
                Ok(rows) => return rows.iter().map(|row| pair(row).map_err(|error| failed(reason(&error)))).collect(),
                // The query itself is invalid, or its result is.
                Err(error) if !is_passing(&error) => return Err(failed(reason(&error))),
                Err(error) if Instant::now() + RETRY_PAUSE >= deadline => return Err(failed(reason(&error))),
                // The connection has ended, or is about to: a server announces its shutdown first.
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Reads on a connection. If the connection does not answer, other reads stop using it, and the query is repeated in parallel
    /// on a new connection.
    async fn attempt(&self, query: &Query, deadline: Instant) -> Result<Vec<Row>, Error> {
        let slot = &self.sessions[self.next.fetch_add(1, Ordering::Relaxed) % READERS];
        let session = self.session(slot, deadline).await?;
        let mut reading = std::pin::pin!(run(&session, query));
        if let Ok(rows) = timeout(self.hedge_after, &mut reading).await {
            return rows;
        }
        let on_another = async {
            slot.lock().await.take_if(|reader| Arc::ptr_eq(&reader.session, &session));
            run(&*self.session(slot, deadline).await?, query).await
        };
        tokio::select! {
            rows = reading => rows,
            rows = on_another => rows,
        }
    }

    /// A connection to a server that knows the ownership of this node. A replaced primary that does not know of its replacement
    /// would still answer.
    async fn session(&self, slot: &Mutex<Option<Reader>>, deadline: Instant) -> Result<Arc<Session>, Error> {
        let mut slot = slot.lock().await;
        loop {
            let ownership = self.standing.ownership();
            if let Some(reader) =
                slot.as_ref().filter(|reader| reader.ownership == ownership && !reader.session.client.is_closed())
            {
                return Ok(reader.session.clone());
            }
            let session = Arc::new(self.database.connect_until(deadline).await?);
            let is_known = match &ownership {
                Some(id) => !session.client.query_typed(OWNED, &[(&&**id, Type::TEXT)]).await?.is_empty(),
                None => true,
            };
            if is_known {
                return Ok(slot.insert(Reader { session, ownership }).session.clone());
            }
            sleep(RETRY_PAUSE).await;
        }
    }
}

async fn run(session: &Session, query: &Query) -> Result<Vec<Row>, Error> {
    match query {
        Query::Get(key) => session.client.query_typed(GET, &[(&key.as_bytes(), Type::BYTEA)]).await,
        Query::Scan { from, to, newest_first, limit } => {
            let sql = if *newest_first { DESCENDING } else { ASCENDING };
            let (from, to) = (from.as_bytes(), to.as_bytes());
            session.client.query_typed(sql, &[(&from, Type::BYTEA), (&to, Type::BYTEA), (limit, Type::INT8)]).await
        }
    }
}

fn pair(row: &Row) -> Result<(Key, Value), Error> {
    Ok((Key::from_bytes(row.try_get(0)?), row.try_get(1)?))
}

#[async_trait]
impl Store for PostgresStore {
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError> {
        if matches!(*self.standing.state().borrow(), State::StandingBy) {
            self.own(Some(WAIT_FOR_OWNER)).await?;
        }
        self.request(|answer| Request::Take(ward, answer)).await
    }

    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        self.request(|answer| Request::Commit(group, answer)).await
    }

    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError> {
        Ok(self.read(Query::Get(key)).await?.pop().map(|(_, value)| value))
    }

    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(Query::Scan { from, to, newest_first, limit }).await
    }

    fn reads_at_once(&self) -> usize {
        4 * READERS
    }
}

/// The text for requests to compact.
pub const NO_COMPACTION: &str =
    "the store is in PostgreSQL (storage.engine), which frees the space of deleted rows itself (autovacuum)";
/// The text for requests to make backups.
const NO_BACKUPS: &str =
    "the store is in PostgreSQL (storage.engine), whose own tools make backups: use pg_dump, or pg_basebackup with archived WAL";

impl Nodes for PostgresStore {
    fn nodes(&self) -> NodesView {
        self.standing.view()
    }
}

#[async_trait]
impl StoreMaintenance for PostgresStore {
    async fn backup(self: Arc<Self>, _: &Path) -> Result<u64, MaintenanceError> {
        Err(MaintenanceError::Elsewhere(NO_BACKUPS.to_owned()))
    }

    async fn copy_for(self: Arc<Self>, _: u32) -> Result<TemporaryCopy, MaintenanceError> {
        Err(MaintenanceError::Elsewhere(NO_BACKUPS.to_owned()))
    }
}

impl Drop for PostgresStore {
    /// Closes the store: pending requests are committed.
    fn drop(&mut self) {
        self.requests = None;
        // A store that failed to open has no task to wait for.
        let keeping = self.ended.get_mut().recv();
        self.orders = None;
        if let Some(runtime) = self.runtime.take() {
            // A store may be dropped on any thread, also on one that must not block on a runtime.
            let _ = std::thread::scope(|scope| scope.spawn(|| keeping.map(|keeping| runtime.block_on(keeping))).join());
            runtime.shutdown_background();
        }
    }
}

#[cfg(any(test, feature = "samples"))]
pub mod test_server;
#[cfg(test)]
mod tests;
