//! The tables, and their migrations.
//!
//! All records are in one table, in the order of their keys, because the port requires nothing else: keys begin with ward, kind
//! and channel, and PostgreSQL compares bytes as the port does. A journal is then one range of the primary key.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use crate::OpenError;
use crate::manifest::FORMAT;

use super::connection::reason;

/// Locked while tables are created, so that servers that start together do not create them twice.
const LOCK: i64 = 0x7465_7274_756c_6961;

const TABLES: &str = "select coalesce(max(version), 0) from migration";

/// Each migration creates the tables of a version from those of the previous version. Migrations are never changed.
///
/// Heads and pending marks are updated very often in a table that may be large, so it is vacuumed by the number of old rows, not
/// by their share.
const MIGRATIONS: [&str; 1] = ["\
    create table record (key bytea primary key, value bytea not null) \
        with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000); \
    create table store (id text primary key, format bigint not null, partitions integer not null); \
    create table partition (id integer primary key, owner text not null, name text not null, address text not null, term bigint not null, \
        beat bigint not null) with (fillfactor = 10); \
    insert into partition values (0, '', '', '', 0, 0); \
    create table node (id text primary key, name text not null, address text not null, version text not null, beat bigint not null) \
        with (fillfactor = 10);"];

/// Creates the tables if they do not exist. Older tables are migrated only if `upgrades` is set, because the node that owns the
/// store may need them unchanged. `id` is the id of a new store. If this fails, nothing is changed.
pub(super) async fn prepare(client: &Client, id: &str, upgrades: bool) -> Result<(), OpenError> {
    client.batch_execute("begin").await.map_err(|error| failed(&error))?;
    migrate(client, id, upgrades).await?;
    client.batch_execute("commit").await.map_err(|error| failed(&error))
}

async fn migrate(client: &Client, id: &str, upgrades: bool) -> Result<(), OpenError> {
    let run = async |sql: &str| client.batch_execute(sql).await.map_err(|error| failed(&error));
    run(&format!("select pg_advisory_xact_lock({LOCK})")).await?;
    // Checked first, because `if not exists` needs the right to create tables in any case.
    if number(client, "select count(*) from pg_tables where tablename = 'migration' and schemaname = any(current_schemas(false))")
        .await?
        == 0
    {
        run("create table migration (version bigint primary key)").await?;
    }
    let found = number(client, TABLES).await?;
    known("tables", found, MIGRATIONS.len() as u64)?;
    let missing = (1..).zip(MIGRATIONS).skip(found as usize).filter(|_| upgrades || found == 0);
    for (version, migration) in missing {
        run(migration).await?;
        run(&format!("insert into migration values ({version})")).await?;
    }
    if number(client, "select count(*) from store").await? == 0 {
        let (insert, format) = ("insert into store values ($1, $2, 1)", FORMAT as i64);
        client.execute_typed(insert, &[(&id, Type::TEXT), (&format, Type::INT8)]).await.map_err(|error| failed(&error))?;
    }
    check(client).await?;
    // Older records are read as they are. An older server must not meet the new ones.
    if upgrades { run(&format!("update store set format = {FORMAT} where format < {FORMAT}")).await } else { Ok(()) }
}

/// Fails if a newer version wrote the tables or the records.
pub(super) async fn check(client: &Client) -> Result<(), OpenError> {
    known("tables", number(client, TABLES).await?, MIGRATIONS.len() as u64)?;
    known("records", number(client, "select max(format) from store").await?, FORMAT)?;
    known("partitions", number(client, "select max(partitions)::bigint from store").await?, 1)
}

fn known(what: &'static str, found: u64, known: u64) -> Result<(), OpenError> {
    if found > known { Err(OpenError::NewerDatabase { what, found, known }) } else { Ok(()) }
}

async fn number(client: &Client, sql: &str) -> Result<u64, OpenError> {
    let row = client.query_typed_one(sql, &[]).await.map_err(|error| failed(&error))?;
    Ok(row.try_get::<_, i64>(0).map_err(|error| failed(&error))?.unsigned_abs())
}

fn failed(error: &Error) -> OpenError {
    OpenError::Database(format!(
        "its tables cannot be made or read: {}; it must be a database of its own, which the user in the URL owns",
        reason(error)
    ))
}
