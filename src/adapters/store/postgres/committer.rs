//! The only task that writes: it checks waiting requests, commits them in one transaction, and resolves unknown outcomes.
//!
//! A commit is never cancelled. If its answer is lost, or comes with a warning, its outcome is unknown. A write of the
//! partition's row under the same owner resolves this: it waits for the lock that the commit holds, and once it is committed, so
//! is every earlier commit. After that, the same changes are committed again. They contain the value of each key, and there is no
//! other writer in the meantime, so the repetition has no further effect.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::try_join;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::Error;
use tokio_postgres::types::Type;

use super::connection::{Database, PATIENCE, RETRY_PAUSE, Session, is_refused, reason};
use super::ownership::{Standing, State};
use crate::batch::{changes, refusal};
use crate::domain::id::Ward;
use crate::ports::store::key::Key;
use crate::ports::store::{Batch, Refusal, StoreError, Term, Value};
use crate::telemetry::instruments::Instruments;

/// Requests that arrive during a commit are committed together afterwards, at most this many at once.
const REQUESTS_PER_COMMIT: usize = 256;

/// All wards are in one partition.
const FENCE: &str = "select 1 from partition where id = 0 and term = $1 for share";
const TAKE_AGAIN: &str = "update partition set term = term + 1, beat = beat + 1 where id = 0 and owner = $1 returning term";
const SETTLE: &str = "update partition set beat = beat + 1 where id = 0 and owner = $1 returning term";
const READ: &str = "select key, value from record where key = any($1)";
const PUT: &str = "insert into record select * from unnest($1, $2) on conflict (key) do update set value = excluded.value";
const REMOVE: &str = "delete from record where key = any($1)";

pub(super) type Outcomes = Vec<Result<(), Refusal>>;
type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request to the committer.
pub(super) enum Request {
    Commit(Vec<Batch>, Answer<Outcomes>),
    Take(Ward, Answer<Term>),
}

/// Writes to one database.
pub(super) struct Committer {
    database: Database,
    session: Option<Session>,
    standing: Arc<Standing>,
    /// The id of the ownership under which wards were acquired.
    owner: Arc<str>,
    /// The partition's term. `None`: no ward was acquired yet.
    term: Option<Term>,
    /// The term of wards that are acquired for the first time.
    opening_term: Term,
    held: BTreeMap<Ward, Term>,
    instruments: Instruments,
}

/// The decision about a group. It is made once: after an unknown outcome, the keys may already contain the group's values.
struct Plan {
    outcomes: Outcomes,
    puts: (Vec<Key>, Vec<Value>),
    removes: Vec<Key>,
}

/// Why an attempt failed.
enum Trouble {
    /// Another owner has taken the partition.
    Lost,
    /// The attempt may be repeated.
    Passing(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Passing(reason(&error))
    }
}

impl Committer {
    pub(super) fn new(database: Database, session: Session, standing: Arc<Standing>, instruments: Instruments) -> Self {
        let (session, held) = (Some(session), BTreeMap::new());
        Self { database, session, standing, owner: "".into(), term: None, opening_term: Term::default(), held, instruments }
    }

    /// Handles requests until all senders are gone.
    pub(super) async fn run(mut self, mut requests: UnboundedReceiver<Request>) {
        let mut waiting = Vec::new();
        while requests.recv_many(&mut waiting, REQUESTS_PER_COMMIT).await > 0 {
            let mut groups = Vec::new();
            for request in waiting.drain(..) {
                match request {
                    Request::Commit(group, answer) => groups.push((group, answer)),
                    Request::Take(ward, answer) => {
                        self.commit(std::mem::take(&mut groups)).await;
                        // The caller may be gone. The request is carried out nevertheless.
                        let _ = answer.send(self.acquire_ward(ward).await);
                    }
                }
            }
            self.commit(groups).await;
        }
    }

    /// Commits groups together and answers them.
    async fn commit(&mut self, groups: Vec<(Vec<Batch>, Answer<Outcomes>)>) {
        if groups.is_empty() {
            return;
        }
        let began = Instant::now();
        let mut answers = Vec::with_capacity(groups.len());
        let mut batches = Vec::new();
        for (group, answer) in groups {
            answers.push((group.len(), answer));
            batches.extend(group);
        }
        let committed = self.commit_batches(batches).await;
        if committed.is_ok() {
            self.instruments.commit_duration.record(began.elapsed().as_secs_f64(), ["postgres"]);
        }
        let mut outcomes = committed.map(Vec::into_iter);
        for (count, answer) in answers {
            let outcome = outcomes.as_mut().map(|outcomes| outcomes.take(count).collect()).map_err(|error| error.clone());
            let _ = answer.send(outcome);
        }
    }

    async fn commit_batches(&mut self, batches: Vec<Batch>) -> Result<Outcomes, StoreError> {
        if self.term.is_none() {
            return Ok(self.refuse(&batches, Term::default()));
        }
        let (mut plan, mut is_unknown, mut has_failed) = (None, false, false);
        let (deadline, standing) = (Instant::now() + PATIENCE, self.standing.clone());
        loop {
            // The request continues in the database. Once the store is lost, its outcome is not awaited any more.
            let attempt = tokio::select! {
                biased;
                why = standing.lost() => {
                    self.session = None;
                    return Err(if is_unknown { StoreError::Unknown(why.to_string()) } else { StoreError::Failed(why.to_string()) });
                }
                attempt = timeout_at(deadline, self.try_commit(&batches, &mut plan, &mut is_unknown)) => attempt,
            };
            let trouble = attempt.unwrap_or_else(|_| Err(Trouble::Passing(no_answer())));
            match trouble {
                Ok(()) => return Ok(plan.map_or_else(Vec::new, |plan| plan.outcomes)),
                Err(Trouble::Lost) if is_unknown => return Err(StoreError::Unknown(lost())),
                Err(Trouble::Lost) => {
                    let current = self.current_term().await;
                    return Ok(self.refuse(&batches, current));
                }
                Err(Trouble::Passing(detail)) => {
                    // An open transaction ends with its connection.
                    self.session = None;
                    if Instant::now() + RETRY_PAUSE < deadline {
                        if !has_failed {
                            tracing::warn!(detail, "a commit to the database failed and is tried again");
                        }
                        has_failed = true;
                        sleep(RETRY_PAUSE).await;
                    } else if is_unknown {
                        return Err(StoreError::Unknown(detail));
                    } else {
                        return Err(StoreError::Failed(format!("the database cannot be written to: {detail}")));
                    }
                }
            }
        }
    }

    async fn try_commit(&mut self, batches: &[Batch], plan: &mut Option<Plan>, is_unknown: &mut bool) -> Result<(), Trouble> {
        self.connect().await?;
        let (Some(session), Some(term)) = (&self.session, self.term) else { return Err(Trouble::Lost) };
        let client = &session.client;
        let term = term.0 as i64;
        let read_keys: Vec<Key> = if plan.is_none() { keys_to_read(batches) } else { Vec::new() };
        let read_bytes: Vec<&[u8]> = read_keys.iter().map(Key::as_bytes).collect();
        let fence = [(&term as _, Type::INT8)];
        let read = [(&read_bytes as _, Type::BYTEA_ARRAY)];
        // Sent together, without waiting for the answers in between.
        let (_, fence, rows) = try_join!(client.batch_execute("begin"), client.query_typed(FENCE, &fence), async {
            if read_bytes.is_empty() { Ok(Vec::new()) } else { client.query_typed(READ, &read).await }
        })?;
        if fence.is_empty() {
            client.batch_execute("rollback").await?;
            return Err(Trouble::Lost);
        }
        let plan = match plan {
            Some(plan) => plan,
            None => {
                let mut values = BTreeMap::new();
                for row in rows {
                    values.insert(Key::from_bytes(row.try_get(0)?), Some(row.try_get(1)?));
                }
                plan.insert(self.plan(batches, values)?)
            }
        };
        let keys: Vec<&[u8]> = plan.puts.0.iter().map(Key::as_bytes).collect();
        let removes: Vec<&[u8]> = plan.removes.iter().map(Key::as_bytes).collect();
        let put = [(&keys as _, Type::BYTEA_ARRAY), (&plan.puts.1 as _, Type::BYTEA_ARRAY)];
        let remove = [(&removes as _, Type::BYTEA_ARRAY)];
        let writes = [(PUT, &put[..], keys.is_empty()), (REMOVE, &remove[..], removes.is_empty())];
        let writes = writes.into_iter().filter(|(.., is_empty)| !is_empty);
        let writes = try_join_all(writes.map(|(sql, values, _)| client.execute_typed(sql, values)));
        session.has_warned();
        let was_unknown = std::mem::replace(is_unknown, true);
        // After a failed write, this only ends the transaction.
        let written = try_join!(writes, client.batch_execute("commit"));
        // The database refused the transaction, and the connection remains usable.
        if written.as_ref().is_err_and(is_refused) {
            *is_unknown = was_unknown;
        }
        written?;
        if session.has_warned() {
            return Err(Trouble::Passing("the database warned when it committed".into()));
        }
        Ok(())
    }

    /// Connects if there is no connection. Requests that were in flight on an earlier connection are resolved.
    async fn connect(&mut self) -> Result<(), Trouble> {
        if self.session.as_ref().is_some_and(|session| !session.client.is_closed()) {
            return Ok(());
        }
        let session = self.database.connect().await?;
        if self.term.is_some() {
            let owner = [(&&*self.owner as _, Type::TEXT)];
            let row = session.client.query_typed_opt(SETTLE, &owner).await?.ok_or(Trouble::Lost)?;
            if session.has_warned() {
                return Err(Trouble::Passing("the database warned when it settled a commit".into()));
            }
            // An acquisition whose answer was lost may have changed it.
            self.term = Some(Term(row.try_get::<_, i64>(0)?.unsigned_abs()));
        }
        self.session = Some(session);
        Ok(())
    }

    /// Decides the outcome of batches over these values.
    fn plan(&self, batches: &[Batch], mut values: BTreeMap<Key, Option<Value>>) -> Result<Plan, Trouble> {
        let (mut outcomes, mut changed) = (Vec::with_capacity(batches.len()), BTreeSet::new());
        for batch in batches {
            let held = self.held.get(&batch.ward).copied().unwrap_or_default();
            let value = |key: &Key| Ok(values.get(key).cloned().flatten());
            if let Some(refusal) = refusal(batch, held, value, Trouble::Passing)? {
                outcomes.push(Err(refusal));
                continue;
            }
            for (key, value) in changes(batch.clone()) {
                changed.insert(key.clone());
                values.insert(key, value);
            }
            outcomes.push(Ok(()));
        }
        let mut plan = Plan { outcomes, puts: Default::default(), removes: Vec::new() };
        for key in changed {
            match values.remove(&key).flatten() {
                Some(value) => {
                    plan.puts.0.push(key);
                    plan.puts.1.push(value);
                }
                None => plan.removes.push(key),
            }
        }
        Ok(plan)
    }

    async fn acquire_ward(&mut self, ward: Ward) -> Result<Term, StoreError> {
        let State::Owner { id, term } = self.standing.state().borrow().clone() else {
            return Err(StoreError::Failed(self.standing.lost().await.to_string()));
        };
        if self.owner != id {
            // State of an earlier ownership is no longer valid.
            (self.owner, self.term, self.opening_term, self.session) = (id, Some(term), term, None);
            self.held.clear();
        }
        if let Entry::Vacant(unheld) = self.held.entry(ward) {
            return Ok(*unheld.insert(self.opening_term));
        }
        let (deadline, standing) = (Instant::now() + PATIENCE, self.standing.clone());
        let term = loop {
            let attempt = tokio::select! {
                biased;
                why = standing.lost() => return Err(StoreError::Failed(why.to_string())),
                attempt = timeout_at(deadline, self.try_acquire()) => attempt,
            };
            match attempt.unwrap_or_else(|_| Err(Trouble::Passing(no_answer()))) {
                Ok(term) => break term,
                Err(Trouble::Lost) => return Err(StoreError::Failed(lost())),
                Err(Trouble::Passing(detail)) => {
                    self.session = None;
                    if Instant::now() + RETRY_PAUSE >= deadline {
                        return Err(StoreError::Failed(format!("the database cannot be written to: {detail}")));
                    }
                    sleep(RETRY_PAUSE).await;
                }
            }
        };
        self.term = Some(term);
        self.held.insert(ward, term);
        Ok(term)
    }

    async fn try_acquire(&mut self) -> Result<Term, Trouble> {
        self.connect().await?;
        let Some(session) = &self.session else { return Err(Trouble::Lost) };
        session.has_warned();
        let owner = [(&&*self.owner as _, Type::TEXT)];
        let taken = session.client.query_typed_opt(TAKE_AGAIN, &owner).await?;
        let row = taken.ok_or(Trouble::Lost)?;
        if session.has_warned() {
            return Err(Trouble::Passing("the database warned when it stored a term".into()));
        }
        Ok(Term(row.try_get::<_, i64>(0)?.unsigned_abs()))
    }

    /// Rejects all of these batches, because another owner has the partition under this term, or because the ward was not
    /// acquired here.
    fn refuse(&self, batches: &[Batch], current: Term) -> Outcomes {
        batches.iter().map(|batch| Err(Refusal::OldTerm { ward: batch.ward, named: batch.term, current })).collect()
    }

    /// The partition's current term. If it cannot be read, a term that is certainly newer than ours.
    async fn current_term(&self) -> Term {
        let read = async {
            let client = &self.session.as_ref()?.client;
            let row = client.query_typed_one("select term from partition where id = 0", &[]).await.ok()?;
            row.try_get::<_, i64>(0).ok()
        };
        read.await.map_or_else(|| Term(self.term.unwrap_or_default().0 + 1), |term| Term(term.unsigned_abs()))
    }
}

/// The keys whose values decide whether batches are rejected.
fn keys_to_read(batches: &[Batch]) -> Vec<Key> {
    let heads = batches.iter().filter_map(|batch| Some(Key::head(batch.ward, batch.append.as_ref()?.channel)));
    let fresh = batches.iter().flat_map(|batch| batch.fresh.iter().cloned());
    heads.chain(fresh).collect::<BTreeSet<_>>().into_iter().collect()
}

fn no_answer() -> String {
    format!("it did not answer within {} s", PATIENCE.as_secs())
}

fn lost() -> String {
    "another node has taken the store".to_owned()
}
