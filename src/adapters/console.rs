//! The console: the HTTP API, the live view and the page, on one port.
//!
//! A request's way: `connection` accepts it (or `farewell` turns it away) and lets it go (`lingering`), `heads` looks at its first bytes, `guard`
//! decides whether it may come in (from where, by `forwarded`), `routes` finds its handler, which reads it (`body`, `words`), asks the [`Backend`] and
//! answers (bounded by `answers`), or says what is wrong (`problem`).

mod answers;
mod auth;
mod body;
mod connection;
mod external;
mod farewell;
mod forwarded;
mod guard;
mod heads;
mod health;
mod host;
mod keeping;
mod limits;
mod lingering;
mod live;
mod messages;
mod metrics;
mod page;
mod problem;
mod records;
mod rooms;
mod routes;
mod signin;
mod usage;
mod words;

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ports::backend::Backend;
use crate::ports::rng::Rng;
use crate::settings;
use crate::settings::server::Server;
use crate::telemetry::instruments::{Instruments, NONE};
use crate::telemetry::metrics::Metrics;
use answers::Answers;
use auth::Auth;
use farewell::Farewells;
pub use farewell::turned_away_at_once;
use forwarded::Proxies;
use host::Names;
use limits::{Allowance, Places};
use page::Page;

/// After an error that is no peer's, for example too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The console, bound to its port and not yet serving.
pub struct Console {
    listener: TcpListener,
    bound: SocketAddr,
    router: Router,
    shared: Shared,
}

/// Why the console cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum CannotServe {
    /// A setting is wrong.
    #[error("server.{0}")]
    Setting(#[from] settings::Problem),
    /// Somebody else has the port.
    #[error("{0} is in use by another program; set server.listen to another port, or stop the other")]
    InUse(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}; set server.listen to an address of this machine and a port that you may use")]
    CannotBind {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// What all requests share.
struct Common {
    backend: Arc<dyn Backend>,
    settings: Server,
    names: Names,
    proxies: Proxies,
    auth: Auth,
    /// What each address may ask for that shows the token, or need not.
    requests: Allowance,
    /// And each that does not.
    strangers: Allowance,
    places: Arc<Places>,
    answers: Answers,
    metrics: Metrics,
    instruments: Instruments,
    page: Page,
    /// Turns true at shutdown. Who holds a receiver is waited for.
    closing: watch::Sender<bool>,
}

type Shared = Arc<Common>;

impl Console {
    /// Binds the port. Beyond loopback an admin token is required.
    pub async fn bind(
        settings: &Server,
        backend: Arc<dyn Backend>,
        rng: Arc<dyn Rng>,
        metrics: Metrics,
    ) -> Result<Self, CannotServe> {
        settings.check()?;
        let token = settings.token()?;
        let address = settings.address()?;
        warn_of_weakness(settings, address, token.as_ref());
        let cannot = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => CannotServe::InUse(address),
            _ => CannotServe::CannotBind { address, error },
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let shared = Arc::new(Common {
            backend,
            names: Names::new(bound, settings),
            proxies: Proxies::new(settings.trusted_networks()?),
            auth: Auth::new(token, settings, rng),
            requests: requests(settings),
            strangers: requests(settings),
            places: Places::new(settings.max_live, settings.max_live_per_address),
            answers: Answers::new(),
            instruments: metrics.instruments(),
            metrics,
            page: Page::new(),
            closing: watch::Sender::new(false),
            settings: settings.clone(),
        });
        Ok(Self { listener, bound, router: routes::routes(shared.clone()), shared })
    }

    /// Where it listens: with the real port, where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.bound
    }

    /// Serves until `stop` is done, then finishes what is in flight, for `server.drain_secs` at most.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, router, shared, .. } = self;
        let places = Places::new(shared.settings.max_connections, shared.settings.max_connections_per_address);
        let farewells = Farewells::new(shared.settings.max_connections);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => match connection::place(&places, peer.ip(), &shared.proxies) {
                    Ok(place) => {
                        let (router, shared, closing) = (router.clone(), shared.clone(), shared.closing.subscribe());
                        shared.instruments.http_connections.add(1, NONE);
                        connections.spawn(async move {
                            connection::serve(stream, peer, router, &shared.settings, closing).await;
                            drop(place);
                        });
                    }
                    Err(full) => {
                        shared.instruments.http_connections_refused.add(1, NONE);
                        if let Some(farewell) = farewells.one_more() {
                            connections.spawn(farewell.say(stream, full));
                        }
                    }
                },
                Err(error) if is_of_a_peer(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        shared.closing.send_replace(true);
        let drained = async {
            while connections.join_next().await.is_some() {}
            // WebSockets have left their connections' tasks; each holds a receiver until it is closed.
            shared.closing.closed().await;
        };
        if tokio::time::timeout(shared.settings.drain(), drained).await.is_err() {
            tracing::warn!(open = connections.len(), "cutting off connections that did not end in time");
        }
    }
}

fn requests(settings: &Server) -> Allowance {
    Allowance::new(settings.requests_per_second.into(), settings.request_burst.into())
}

/// Warns of what keeps strangers out only badly.
fn warn_of_weakness(settings: &Server, address: SocketAddr, token: Option<&SecretString>) {
    if token.is_some()
        && !host::is_loopback(address.ip())
        && settings.public_origin().is_none_or(|origin| origin.starts_with("http://"))
    {
        tracing::warn!(
            "the admin token travels unencrypted; put a TLS proxy in front and set server.public_url to its https:// address"
        );
    }
}

fn is_of_a_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
