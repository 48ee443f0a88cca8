//! Connections to the database: TLS, what every session is set to, and warnings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{FuturesUnordered, poll_fn};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::http_client;
use crate::settings::storage::database;

/// How long the database may be away before a read or a write is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before another attempt.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// The time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between the beginnings of attempts to connect to several hosts or addresses, as in RFC 8305.
const NEXT_AFTER: Duration = Duration::from_millis(100);
/// The idle time before a TCP keepalive, unless the URL sets another one. Firewalls forget connections that are idle for minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// The idle time of a URL that sets none.
const DEFAULT_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
/// The pause between TCP keepalives that are not answered.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// No limit may end a commit, and a commit is on disk, and on the standbys that the server waits for, before it is acknowledged. A transaction whose
/// node was cut off before it could commit ends soon, because the next owner waits for its lock.
const SESSION: &str = "\
    set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 3000; \
    set default_transaction_isolation = 'read committed'; \
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')";

/// Where the database is.
#[derive(Clone)]
pub(super) struct Database {
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
}

/// An open connection.
pub(super) struct Session {
    pub(super) client: Client,
    has_warned: Arc<AtomicBool>,
}

impl Database {
    /// Reads the URL.
    ///
    /// # Errors
    /// What is wrong with it, and the way out, without user, password and host.
    pub(super) fn at(url: &SecretString) -> Result<Self, String> {
        let mut hosts = database(url.expose_secret())?;
        for config in &mut hosts {
            // A standby cannot be written to.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite).connect_timeout(CONNECT_TIMEOUT);
            if config.get_application_name().is_none() {
                config.application_name("tertulia");
            }
            if config.get_tcp_user_timeout().is_none() {
                config.tcp_user_timeout(PATIENCE);
            }
            if config.get_keepalives_idle() == DEFAULT_KEEPALIVE_IDLE {
                config.keepalives_idle(KEEPALIVE_IDLE);
            }
            if config.get_keepalives_interval().is_none() {
                config.keepalives_interval(KEEPALIVE_INTERVAL);
            }
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.map_err(|error| format!("TLS cannot be used: {error}"))?;
        // A machine without authorities trusts no certificate, and connects without TLS all the same.
        let trusting = tls.clone().with_platform_verifier();
        let tls = trusting.unwrap_or_else(|_| tls.with_root_certificates(RootCertStore::empty()));
        Ok(Self { hosts, tls: MakeRustlsConnect::new(tls.with_no_client_auth()) })
    }

    /// Connects, once, to the host that takes writes. One that does not answer holds up no other.
    pub(super) async fn connect(&self) -> Result<Session, Error> {
        let (client, mut connection) = first_connected(&self.hosts, |host| connect_to(host, &self.tls)).await?;
        let has_warned = Arc::new(AtomicBool::new(false));
        let warned = has_warned.clone();
        tokio::spawn(async move {
            let mut messages = poll_fn(move |context| connection.poll_message(context));
            // Those who wait for an answer get the error of a connection that ends.
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.severity() != "NOTICE"
                {
                    let (message, code) = (notice.message(), notice.code().code());
                    // A database that stops says so on every connection. The request that then fails is logged.
                    match code.starts_with("57P") {
                        true => tracing::debug!(message, code, "the database ends a connection"),
                        false => tracing::warn!(message, code, "the database warns"),
                    }
                    warned.store(true, Ordering::SeqCst);
                }
            }
        });
        client.batch_execute(SESSION).await?;
        Ok(Session { client, has_warned })
    }

    /// Connects, and waits for a database that is starting or cannot be reached, at most until then.
    pub(super) async fn connect_until(&self, deadline: Instant) -> Result<Session, Error> {
        loop {
            match self.connect().await {
                Err(error) if is_passing(&error) && Instant::now() + RETRY_PAUSE < deadline => sleep(RETRY_PAUSE).await,
                outcome => return outcome,
            }
        }
    }
}

impl Session {
    /// The process of the server that this is a connection to.
    async fn server_process(&self) -> Result<i32, Error> {
        self.client.query_typed("select pg_backend_pid()", &[]).await?[0].try_get(0)
    }

    /// Whether a pooler, such as pgbouncer with `pool_mode = transaction`, gives each transaction whatever session of the server is free. What
    /// [`SESSION`] sets would then not hold.
    pub(super) async fn is_shared(&self, database: &Database) -> Result<bool, Error> {
        let other = database.connect().await?;
        Ok(self.server_process().await? == other.server_process().await?)
    }

    /// Whether the database has warned since this was last called. After a commit this means that its outcome is unknown: one whose wait for a
    /// standby was cancelled answers with success and a warning, and can be lost with the primary server.
    pub(super) fn has_warned(&self) -> bool {
        self.has_warned.swap(false, Ordering::SeqCst)
    }
}

/// A client, and what must run for it.
type Connected = (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

/// Connects to one host, at whichever of its addresses answers.
async fn connect_to(host: &Config, tls: &MakeRustlsConnect) -> Result<Connected, Error> {
    let port = host.get_ports().first().copied().unwrap_or(5432);
    let addresses = match (host.get_hosts(), host.get_hostaddrs()) {
        ([Host::Tcp(name)], []) => lookup_host((&**name, port)).await.ok(),
        _ => None,
    };
    let mut hosts: Vec<Config> =
        addresses.into_iter().flatten().map(|address| host.clone().hostaddr(address.ip()).clone()).collect();
    if hosts.is_empty() {
        // Connecting says what is wrong with its name.
        hosts.push(host.clone());
    }
    first_connected(&hosts, |host| host.connect(tls.clone())).await
}

/// The first connection that can be made. Each attempt begins when the one before has failed, or takes long. What failed is tried again while another
/// one has not answered: a standby may become the primary meanwhile.
///
/// # Errors
/// Each has failed. The error is one that may pass, if there is one.
async fn first_connected<'a, F>(hosts: &'a [Config], connect: impl Fn(&'a Config) -> F) -> Result<Connected, Error>
where
    F: Future<Output = Result<Connected, Error>>,
{
    let attempt = async |pause: Duration, number: usize, host: &'a Config| {
        sleep(pause).await;
        (number, host, connect(host).await)
    };
    let (mut later, mut begun, mut failures) = (hosts.iter().enumerate(), FuturesUnordered::new(), BTreeMap::new());
    while failures.len() < hosts.len() {
        if let Some((number, host)) = later.next() {
            begun.push(attempt(Duration::ZERO, number, host));
        }
        let limit = if later.len() == 0 { Duration::MAX } else { NEXT_AFTER };
        match timeout(limit, begun.next()).await {
            Ok(Some((_, _, Ok(connected)))) => return Ok(connected),
            Ok(Some((number, host, Err(error)))) => {
                failures.insert(number, error);
                begun.push(attempt(RETRY_PAUSE, number, host));
            }
            Ok(None) | Err(_) => {}
        }
    }
    let (passing, lasting): (Vec<_>, Vec<_>) = failures.into_values().partition(is_passing);
    Err(passing.into_iter().chain(lasting).next().expect("there is a host"))
}

/// Whether the same may succeed a moment later: the connection failed, the server is starting or stopping, or it ended a
/// connection that was not used.
pub(super) fn is_passing(error: &Error) -> bool {
    let passing =
        [&SqlState::CANNOT_CONNECT_NOW, &SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN, &SqlState::IDLE_SESSION_TIMEOUT];
    http_client::tls_error(error).is_none() && error.code().is_none_or(|code| passing.contains(&code))
}

/// Whether the database answered a statement with an error. Those that end the connection can come while a commit waits.
pub(super) fn is_refused(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

/// What went wrong, without anything of the URL's password or of stored data.
pub(super) fn reason(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => http_client::cause(error),
    }
}
