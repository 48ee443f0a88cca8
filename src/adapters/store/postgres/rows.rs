//! The rows of the partition and of the nodes in the database.

use std::time::Duration;

use futures_util::try_join;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::{Database, Session, reason};
use super::ownership::{Found, Rows, Seen, SeenNode, Trouble};
use super::schema;
use crate::Identity;

const LOOK: &str = "select owner, name, address, term, beat from partition where id = 0";
const TAKE: &str = "update partition set owner = $1, name = $2, address = $3, term = term + 1, beat = beat + 1 \
                    where id = 0 and term = $4 and beat = $5";
const BEAT: &str = "update partition set beat = beat + 1 where id = 0 and owner = $1 returning owner, name, address, term, beat";
const GIVE_BACK: &str = "update partition set owner = '', name = '', address = '', beat = beat + 1 where id = 0 and owner = $1";
const SIGN: &str = "insert into node values ($1, $2, $3, $4, 0) on conflict (id) do update set beat = node.beat + 1";
const REMOVE: &str = "delete from node where id = any($1)";
/// Removes the row of an earlier process: a restarted node has another id.
const REPLACE: &str = "delete from node where name = $1 and id <> $2";
const NODES: &str = "select id, name, address, version, beat from node order by name, id";

/// How often a node updates its row. Each update takes disk space in the write-ahead log, and only the list of nodes shows it.
const SIGN_EVERY: Duration = Duration::from_secs(10);

type Values<'a, const N: usize> = [(&'a (dyn ToSql + Sync), Type); N];

/// The rows, on a connection that is reopened when it is lost.
pub(super) struct DatabaseRows {
    database: Database,
    session: Option<Session>,
    identity: Identity,
    /// The id of this node's row.
    node: String,
    /// When this row was last updated. `None`: not on this connection.
    signed: Option<Instant>,
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Passing(reason(&error))
    }
}

impl DatabaseRows {
    pub(super) const fn new(database: Database, identity: Identity, node: String) -> Self {
        Self { database, session: None, identity, node, signed: None }
    }

    async fn session(&mut self) -> Result<&Session, Trouble> {
        let session = match self.session.take().filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => {
                let session = self.database.connect().await?;
                let replaced: Values<'_, 2> = [(&self.identity.name, Type::TEXT), (&self.node, Type::TEXT)];
                session.client.execute_typed(REPLACE, &replaced).await?;
                self.signed = None;
                session
            }
        };
        Ok(self.session.insert(session))
    }

    /// Reads the partition's row by `query`, and the nodes. Updates the row of this node if that is due.
    async fn read(&mut self, query: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Result<Option<Seen>, Trouble> {
        const VERSION: &str = env!("CARGO_PKG_VERSION");
        self.session().await?;
        let Some(Session { client, .. }) = &self.session else { return Ok(None) };
        let is_due = self.signed.is_none_or(|signed| signed.elapsed() >= SIGN_EVERY);
        let Identity { name, address } = &self.identity;
        let node: Values<'_, 4> = [(&self.node, Type::TEXT), (name, Type::TEXT), (address, Type::TEXT), (&VERSION, Type::TEXT)];
        let sign = async { if is_due { client.execute_typed(SIGN, &node).await } else { Ok(0) } };
        let (row, _, nodes) = try_join!(client.query_typed_opt(query, values), sign, client.query_typed(NODES, &[]))?;
        if is_due {
            self.signed = Some(Instant::now());
        }
        row.map(|row| seen(&row, &nodes)).transpose()
    }
}

impl Rows for DatabaseRows {
    async fn look(&mut self) -> Result<Seen, Trouble> {
        self.read(LOOK, &[]).await?.ok_or_else(|| Trouble::Passing("the database has no partition".into()))
    }

    async fn acquire_partition(&mut self, found: &Found, owner: &str) -> Result<bool, Trouble> {
        let (Identity { name, address }, node) = (self.identity.clone(), self.node.clone());
        let session = self.session().await?;
        // The previous owner does not need the old tables any more.
        schema::prepare(&session.client, &node, true).await.map_err(|error| Trouble::Passing(error.to_string()))?;
        let (term, beat) = (found.term as i64, found.beat);
        let values: Values<'_, 5> =
            [(&owner, Type::TEXT), (&name, Type::TEXT), (&address, Type::TEXT), (&term, Type::INT8), (&beat, Type::INT8)];
        Ok(session.client.execute_typed(TAKE, &values).await? > 0)
    }

    async fn beat(&mut self, owner: &str) -> Result<Option<Seen>, Trouble> {
        self.session().await?.has_warned();
        let seen = self.read(BEAT, &[(&owner, Type::TEXT)]).await?;
        // A missing connection counts as a warning.
        if self.session.as_ref().is_none_or(Session::has_warned) {
            return Err(Trouble::Passing("the database warned when it stored a beat".into()));
        }
        Ok(seen)
    }

    async fn give_back(&mut self, owner: &str) -> Result<(), Trouble> {
        let own = vec![self.node.clone()];
        let client = &self.session().await?.client;
        client.execute_typed(GIVE_BACK, &[(&owner, Type::TEXT)]).await?;
        client.execute_typed(REMOVE, &[(&own, Type::TEXT_ARRAY)]).await?;
        Ok(())
    }

    async fn forget(&mut self, nodes: &[String]) -> Result<(), Trouble> {
        self.session().await?.client.execute_typed(REMOVE, &[(&nodes, Type::TEXT_ARRAY)]).await?;
        Ok(())
    }

    fn disconnect(&mut self) {
        self.session = None;
    }
}

fn seen(row: &Row, nodes: &[Row]) -> Result<Seen, Trouble> {
    let term = row.try_get::<_, i64>(3)?.unsigned_abs();
    let found = Found { owner: row.try_get(0)?, name: row.try_get(1)?, address: row.try_get(2)?, term, beat: row.try_get(4)? };
    let node = |row: &Row| {
        let (id, name, address) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok::<_, tokio_postgres::Error>(SeenNode { id, name, address, version: row.try_get(3)?, beat: row.try_get(4)? })
    };
    Ok(Seen { found, nodes: nodes.iter().map(node).collect::<Result<_, _>>()? })
}
