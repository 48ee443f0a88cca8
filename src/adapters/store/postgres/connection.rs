//! Connections to the database: TLS, session settings, and warnings.

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

/// How long the database may be unavailable before a read or a write fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before another attempt.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// The time limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between the starts of attempts to connect to several hosts or addresses, as in RFC 8305.
const NEXT_AFTER: Duration = Duration::from_millis(100);
/// The idle time before a TCP keepalive, unless the URL sets another one. Firewalls drop connections that are idle for minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// The idle time of a URL that sets none.
const DEFAULT_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
/// The pause between unanswered TCP keepalives.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Session settings. No time limit may end a commit. A commit is acknowledged only when it is on disk and on the synchronous
/// standbys. The transaction of a node that was cut off before its commit ends soon, because the next owner waits for its lock.
const SESSION: &str = "\
    set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 3000; \
    set default_transaction_isolation = 'read committed'; \
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')";

/// The address of the database.
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
    /// Parses the URL.
    ///
    /// # Errors
    /// Returns the problem of the URL and its remedy, without user, password and host.
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
        // A machine without authorities trusts no certificate, but can still connect without TLS.
        let trusting = tls.clone().with_platform_verifier();
        let tls = trusting.unwrap_or_else(|_| tls.with_root_certificates(RootCertStore::empty()));
        Ok(Self { hosts, tls: MakeRustlsConnect::new(tls.with_no_client_auth()) })
    }

    /// Connects, once, to the host that accepts writes. Hosts that do not answer do not delay the others.
    pub(super) async fn connect(&self) -> Result<Session, Error> {
        let (client, mut connection) = first_connected(&self.hosts, |host| connect_to(host, &self.tls)).await?;
        let has_warned = Arc::new(AtomicBool::new(false));
        let warned = has_warned.clone();
        tokio::spawn(async move {
            let mut messages = poll_fn(move |context| connection.poll_message(context));
            // Pending requests receive the error when the connection ends.
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.severity() != "NOTICE"
                {
                    let (message, code) = (notice.message(), notice.code().code());
                    // A database that shuts down sends this on every connection. The request that then fails is logged.
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

    /// Connects. Waits at most until `deadline` for a database that is starting or cannot be reached.
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
    /// The server process of this connection.
    async fn server_process(&self) -> Result<i32, Error> {
        self.client.query_typed("select pg_backend_pid()", &[]).await?[0].try_get(0)
    }

    /// Whether a pooler, such as pgbouncer with `pool_mode = transaction`, assigns a different session to each transaction. In
    /// that case, the settings of [`SESSION`] would not hold.
    pub(super) async fn is_shared(&self, database: &Database) -> Result<bool, Error> {
        let other = database.connect().await?;
        Ok(self.server_process().await? == other.server_process().await?)
    }

    /// Whether the database has warned since the last call. After a commit, a warning means that its outcome is unknown: if its
    /// wait for a standby was cancelled, the commit succeeds with a warning, and can be lost with the primary server.
    pub(super) fn has_warned(&self) -> bool {
        self.has_warned.swap(false, Ordering::SeqCst)
    }
}

/// A client, and the connection that must run for it.
type Connected = (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

/// Connects to one host, at the first of its addresses that answers.
async fn connect_to(host: &Config, tls: &MakeRustlsConnect) -> Result<Connected, Error> {
    let port = host.get_ports().first().copied().unwrap_or(5432);
    let addresses = match (host.get_hosts(), host.get_hostaddrs()) {
        ([Host::Tcp(name)], []) => lookup_host((&**name, port)).await.ok(),
        _ => None,
    };
    let mut hosts: Vec<Config> =
        addresses.into_iter().flatten().map(|address| host.clone().hostaddr(address.ip()).clone()).collect();
    if hosts.is_empty() {
        // Connecting reports the problem of the name.
        hosts.push(host.clone());
    }
    first_connected(&hosts, |host| host.connect(tls.clone())).await
}

/// Returns the first connection that succeeds. Each attempt begins when the previous one has failed, or takes long. Failed
/// attempts are repeated while another one has not answered: a standby may become the primary in the meantime.
///
/// # Errors
/// Returns an error if all attempts have failed. A temporary error takes precedence.
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

/// Whether a retry may succeed: the connection failed, the server is starting or stopping, or it ended an unused connection.
pub(super) fn is_passing(error: &Error) -> bool {
    let passing =
        [&SqlState::CANNOT_CONNECT_NOW, &SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN, &SqlState::IDLE_SESSION_TIMEOUT];
    http_client::tls_error(error).is_none() && error.code().is_none_or(|code| passing.contains(&code))
}

/// Whether the database answered a statement with an error. Errors that end the connection are excluded, because they can arrive
/// while a commit waits.
pub(super) fn is_refused(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

/// A description of the error, without the URL's password and without stored data.
pub(super) fn reason(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => http_client::cause(error),
    }
}
