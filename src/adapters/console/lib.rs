//! The console: the HTTP API, the live view and the page, on one port.
//!
//! The path of a request:
//!
//! 1. `connection` serves the connection. Connections over the limit are closed. hyper reads the heads of requests, within limits.
//! 2. `guard` decides whether the request is admitted. `forwarded` finds the client's address.
//! 3. `routes` finds the handler. The handler reads the request (`body`, `validation`), calls the [backend](tertulia_ports::backend) and
//!    responds. Error responses are made in `problem`.

mod access;
mod addresses;
mod auth;
mod body;
mod bundle;
mod cards;
mod check;
mod companions;
mod connection;
mod door;
mod external;
mod forwarded;
mod guard;
mod health;
mod host;
mod invitations;
mod keeping;
mod kept_sessions;
mod language;
mod limits;
mod listening;
mod live;
mod lore;
mod memory;
mod messages;
mod metrics;
mod models;
mod openapi;
mod overview;
mod page;
mod page_settings;
mod polling;
mod presence;
mod problem;
mod records;
mod reminders;
mod rooms;
mod routes;
mod served;
mod signin;
pub mod tokens;
mod tools;
mod tunnel;
mod uploads;
mod usage;
mod validation;
mod visitor;
pub mod voice;
mod web_socket;

#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use tertulia_adapters as adapters;
use tertulia_domain as domain;
#[cfg(any(test, feature = "samples"))]
use tertulia_inputs as fuzzing;
use tertulia_ports as ports;
#[cfg(test)]
use tertulia_ports::samples;
use tertulia_settings as settings;
use tertulia_telemetry as telemetry;
use tertulia_texts as texts;

use crate::ports::clock::Clock;
use crate::ports::rng::Rng;
use crate::settings::server::Server;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::metrics::Metrics;
use access::AccessTable;
use addresses::Addresses;
use auth::Auth;
use door::Door;
use limits::{GuestRequests, RateLimiter, Shares, Slots};
use presence::Presence;
pub use served::Served;

/// The pause after an `accept` error that no peer caused, such as too many open files.
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
    /// A setting under `server` is invalid.
    #[error("server.{0}")]
    Setting(#[from] settings::Problem),
    /// Another program listens on this address.
    #[error("{0} is in use by another program; set server.listen to another port, or stop that program")]
    InUse(SocketAddr),
    /// Binding the address failed with any other error.
    #[error("cannot listen on {address}: {error}; set server.listen to an address of this machine and a port that you may use")]
    CannotBind {
        /// The address from `server.listen`.
        address: SocketAddr,
        error: io::Error,
    },
}

/// The state that all requests share.
struct Common {
    served: Served,
    bound: SocketAddr,
    access: AccessTable,
    presence: Presence,
    settings: Server,
    door: Arc<Door>,
    /// Counts connections, at all doors together.
    connections: Arc<Slots>,
    /// Counts the requests in flight of each client of trusted proxies.
    requests_by_proxy: Arc<Slots>,
    addresses: Addresses,
    /// Makes the routes, for a door that is opened later.
    routes: fn(Shared) -> Router,
    auth: Auth,
    /// Limits the requests of each address that are authenticated, or that arrive while no token is configured.
    requests: RateLimiter,
    /// Limits the unauthenticated requests of each address.
    anonymous_requests: RateLimiter,
    guest_requests: GuestRequests,
    slots: Arc<Slots>,
    /// The live views and calls of guests. Each of them also takes one of `slots`.
    slots_for_guests: Shares,
    /// Counts long responses in memory.
    long_responses: Arc<Semaphore>,
    long_responses_for_guests: Arc<Semaphore>,
    /// Limits the long responses and the pictures of each guest, in this order.
    responses_for_guests: [Shares; 2],
    /// Counts pictures in memory. They have a limit of their own because they need no token: requests for them cannot delay the operator's long
    /// responses.
    pictures: Arc<Semaphore>,
    /// Counts large bodies in memory.
    large_bodies: Arc<Semaphore>,
    /// Counts messages with files in memory.
    uploads: Arc<Semaphore>,
    uploads_of_guests: Shares,
    /// Held while pictures are checked, because one that must be turned takes much memory.
    checking_pictures: tokio::sync::Mutex<()>,
    metrics: Metrics,
    instruments: Instruments,
}

type Shared = Arc<Common>;

impl Console {
    /// Binds the port. An address beyond loopback requires an admin token.
    pub async fn bind(
        settings: &Server,
        served: Served,
        rng: Arc<dyn Rng>,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Result<Self, CannotServe> {
        settings.check()?;
        let token = settings.token()?;
        let address = settings.address()?;
        warn_of_settings(settings, address, token.as_ref());
        let bind_error = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => CannotServe::InUse(address),
            _ => CannotServe::CannotBind { address, error },
        };
        let listener = TcpListener::bind(address).await.map_err(bind_error)?;
        let bound = listener.local_addr().map_err(bind_error)?;
        let shared = Arc::new(Common {
            served,
            bound,
            access: routes::api().access(),
            presence: Presence::default(),
            door: Arc::new(Door::main(bound, settings)?),
            connections: Slots::new(settings.max_connections, settings.max_connections_per_address),
            requests_by_proxy: Slots::new(usize::MAX, settings.max_connections_per_address),
            addresses: Addresses::default(),
            routes: routes::routes,
            auth: Auth::new(token, settings, rng, clock),
            requests: request_limiter(settings),
            anonymous_requests: request_limiter(settings),
            guest_requests: GuestRequests::new(settings.requests_per_second.into(), settings.request_burst.into()),
            slots: Slots::new(settings.max_live, settings.max_live_per_address),
            slots_for_guests: Shares::new(web_socket::MOST_OF_VISIT, web_socket::most_of_invitation(settings)),
            long_responses: Arc::new(Semaphore::new(guard::MAX_LONG_RESPONSES)),
            long_responses_for_guests: Arc::new(Semaphore::new(guard::MAX_LONG_FOR_GUESTS)),
            responses_for_guests: [guard::LONG_SHARES, guard::PICTURE_SHARES]
                .map(|[visit, invitation]| Shares::new(visit, invitation)),
            pictures: Arc::new(Semaphore::new(guard::MAX_PICTURES)),
            large_bodies: Arc::new(Semaphore::new(body::MAX_LARGE_BODIES)),
            uploads: Arc::new(Semaphore::new(uploads::MAX_UPLOADS)),
            uploads_of_guests: Shares::new(1, uploads::MAX_UPLOADS / 2),
            checking_pictures: tokio::sync::Mutex::default(),
            instruments: metrics.instruments(),
            metrics,
            settings: settings.clone(),
        });
        Ok(Self { listener, bound, router: routes::routes(shared.clone()), shared })
    }

    /// The bound address. If `server.listen` has port 0, the address has the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.bound
    }

    /// Serves until `stop` completes. Then finishes the requests in flight, for at most `server.drain_secs`.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { listener, router, shared, .. } = self;
        let stop = async {
            stop.await;
            shared.addresses.close();
        };
        listening::serve(listener, shared.door.clone(), router, shared.clone(), stop).await;
        shared.addresses.closed().await;
    }
}

fn request_limiter(settings: &Server) -> RateLimiter {
    RateLimiter::new(settings.requests_per_second.into(), settings.request_burst.into())
}

/// Warns if the admin token is sent unencrypted over a network, and if proxies are trusted without one.
fn warn_of_settings(settings: &Server, address: SocketAddr, token: Option<&SecretString>) {
    if token.is_some()
        && !host::is_loopback(address.ip())
        && settings.public_origin().is_none_or(|origin| origin.starts_with("http://"))
    {
        tracing::warn!(
            "the admin token travels unencrypted; put a TLS proxy in front and set server.public_url to its https:// address"
        );
    }
    if token.is_none() && !settings.trusted_proxies.is_empty() {
        tracing::warn!(
            "server.trusted_proxies is set without an admin token, so requests by proxies are refused; set server.admin_token_file"
        );
    }
}

fn is_peer_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
