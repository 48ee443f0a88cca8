//! The rows of the partition and of the nodes in the database.

use futures_util::try_join;
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

type Values<'a, const N: usize> = [(&'a (dyn ToSql + Sync), Type); N];

/// The rows, on a connection that is reopened when it is lost.
pub(super) struct DatabaseRows {
    database: Database,
    session: Option<Session>,
    identity: Identity,
    /// The id of this node's row.
    node: String,
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Passing(reason(&error))
    }
}

impl DatabaseRows {
    pub(super) const fn new(database: Database, identity: Identity, node: String) -> Self {
        Self { database, session: None, identity, node }
    }

    async fn session(&mut self) -> Result<&Session, Trouble> {
        let session = match self.session.take().filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => {
                let session = self.database.connect().await?;
                let replaced: Values<'_, 2> = [(&self.identity.name, Type::TEXT), (&self.node, Type::TEXT)];
                session.client.execute_typed(REPLACE, &replaced).await?;
                session
            }
        };
        Ok(self.session.insert(session))
    }

    fn sign<'a>(identity: &'a Identity, node: &'a String) -> Values<'a, 4> {
        const VERSION: &str = env!("CARGO_PKG_VERSION");
        [(node, Type::TEXT), (&identity.name, Type::TEXT), (&identity.address, Type::TEXT), (&VERSION, Type::TEXT)]
    }
}

impl Rows for DatabaseRows {
    async fn look(&mut self) -> Result<Seen, Trouble> {
        let (identity, node) = (self.identity.clone(), self.node.clone());
        let sign = Self::sign(&identity, &node);
        let client = &self.session().await?.client;
        let (row, _, nodes) =
            try_join!(client.query_typed_one(LOOK, &[]), client.execute_typed(SIGN, &sign), client.query_typed(NODES, &[]))?;
        seen(&row, &nodes)
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
        let (identity, node) = (self.identity.clone(), self.node.clone());
        let sign = Self::sign(&identity, &node);
        let session = self.session().await?;
        session.has_warned();
        let owner: Values<'_, 1> = [(&owner, Type::TEXT)];
        let (row, _, nodes) = try_join!(
            session.client.query_typed_opt(BEAT, &owner),
            session.client.execute_typed(SIGN, &sign),
            session.client.query_typed(NODES, &[])
        )?;
        if session.has_warned() {
            return Err(Trouble::Passing("the database warned when it stored a beat".into()));
        }
        row.map(|row| seen(&row, &nodes)).transpose()
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
