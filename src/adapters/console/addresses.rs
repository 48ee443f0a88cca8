//! The addresses at which guests reach the server besides its own: a tunnel, and the machine's address in its network. Operators open and close them;
//! after a restart they are closed. At each of them there is a door for guests alone (`door.rs`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::body::{self, Json, QueryParams};
use super::check::{self, Checked, Here};
use super::door::Door;
use super::forwarded::Proxies;
use super::guard::Peer;
use super::problem::Problem;
use super::tunnel::{Program, Tunnel};
use super::web_socket::{self, Requested};
use super::{Shared, listening};
use crate::ports::backend::Detail;

/// The time limit until a tunnel prints its address. Connecting takes cloudflared up to half a minute.
const ADDRESS_WITHIN: Duration = Duration::from_secs(60);

/// The longest message of a WebSocket that is only tried, in bytes.
const TRIED_BYTES: usize = 125;

#[derive(Default)]
pub(super) struct Addresses {
    tunnel: Mutex<Option<OpenTunnel>>,
    network: Mutex<Option<OpenDoor>>,
    /// Held while one of them is opened or closed.
    changing: tokio::sync::Mutex<()>,
    /// Held during a check.
    checking: tokio::sync::Mutex<()>,
    /// The secret by which a request of a running check is recognised.
    pub(super) sought: Mutex<Option<String>>,
}

struct OpenTunnel {
    tunnel: Arc<Tunnel>,
    problem: Arc<Mutex<Option<TunnelProblem>>>,
    served: JoinHandle<()>,
}

struct OpenDoor {
    url: String,
    door: Arc<Door>,
    served: JoinHandle<()>,
}

/// Why a tunnel does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TunnelProblem {
    /// The program exited before it printed an address.
    NotOpened,
    /// The program printed no address within a minute, and was stopped.
    NoAddress,
    /// The program ended after its address was open.
    Ended,
}

/// A tunnel that was started on the page.
#[derive(Serialize, JsonSchema)]
struct TunnelView {
    program: Program,
    /// The https address, while it is open.
    url: Option<String>,
    /// Why it does not work. Null while it starts and while it is open.
    problem: Option<TunnelProblem>,
    /// The newest lines that the program printed.
    log: Vec<String>,
}

/// The addresses at which guests can reach this server.
#[derive(Serialize, JsonSchema)]
pub(super) struct AddressesView {
    /// `server.public_url`, in the form of an origin.
    public_url: Option<String>,
    /// The address and port at which a proxy on this machine reaches this server.
    #[schemars(with = "String")]
    local: SocketAddr,
    /// The programs for tunnels that are installed on this machine.
    programs: Vec<Program>,
    tunnel: Option<TunnelView>,
    /// The URL in the machine's network, while it is open.
    network: Option<String>,
    /// The machine's address in its network. Null: it is in none.
    #[schemars(with = "Option<String>")]
    machine: Option<IpAddr>,
}

impl Addresses {
    /// The URL of the tunnel and the URL in the machine's network, if they are open.
    pub(super) fn urls(&self) -> (Option<String>, Option<String>) {
        let tunnel = self.tunnel.lock().as_ref().and_then(OpenTunnel::url);
        (tunnel, self.network.lock().as_ref().map(|open| open.url.clone()))
    }

    /// Begins to close all of them.
    pub(super) fn close(&self) {
        if let Some(open) = &*self.tunnel.lock() {
            open.tunnel.stop();
        }
        if let Some(open) = &*self.network.lock() {
            open.door.closing.send_replace(true);
        }
    }

    /// Closes all of them, and waits until their requests in flight are finished.
    pub(super) async fn closed(&self) {
        self.close();
        let tunnel = self.tunnel.lock().take().map(|open| open.served);
        let network = self.network.lock().take().map(|open| open.served);
        for served in tunnel.into_iter().chain(network) {
            // A panic is in the log.
            let _ = served.await;
        }
    }
}

impl OpenTunnel {
    fn url(&self) -> Option<String> {
        let progress = self.tunnel.progress();
        let progress = progress.borrow();
        progress.url.clone().filter(|_| !progress.has_ended)
    }

    fn view(&self) -> TunnelView {
        let log = self.tunnel.progress().borrow().log.iter().cloned().collect();
        TunnelView { program: self.tunnel.program, url: self.url(), problem: *self.problem.lock(), log }
    }
}

fn view(console: &Shared) -> AddressesView {
    let path = std::env::var_os("PATH").unwrap_or_default();
    AddressesView {
        public_url: console.settings.public_origin(),
        local: console.bound,
        programs: Program::ALL.into_iter().filter(|program| program.find(&path).is_some()).collect(),
        tunnel: console.addresses.tunnel.lock().as_ref().map(OpenTunnel::view),
        network: console.addresses.network.lock().as_ref().map(|open| open.url.clone()),
        machine: machine_address(),
    }
}

/// `GET /api/addresses`
pub(super) async fn get(State(console): State<Shared>) -> Answer<AddressesView> {
    Answer(view(&console))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTunnel {
    program: Program,
}

/// `PUT /api/addresses/tunnel`
pub(super) async fn open_tunnel(
    State(console): State<Shared>,
    Json(NewTunnel { program }): Json<NewTunnel>,
) -> Result<Answer<AddressesView>, Problem> {
    let _held = console.addresses.changing.lock().await;
    let runs = console.addresses.tunnel.lock().as_ref().is_some_and(|open| open.problem.lock().is_none());
    if runs {
        return Err(Problem::new(StatusCode::CONFLICT, Detail::key("refusals.tunnel_runs")));
    }
    let cannot = |error: io::Error| {
        let values = json!({ "program": program, "problem": error.to_string() });
        Problem::new(StatusCode::CONFLICT, Detail::of("refusals.no_tunnel", values))
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
    let bound = listener.local_addr().map_err(cannot)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tunnel = Arc::new(Tunnel::start(program, &path, bound).map_err(cannot)?);
    let problem = Arc::default();
    let served = tokio::spawn(serve_tunnel(console.clone(), listener, bound, tunnel.clone(), Arc::clone(&problem)));
    *console.addresses.tunnel.lock() = Some(OpenTunnel { tunnel, problem, served });
    Ok(Answer(view(&console)))
}

async fn serve_tunnel(
    console: Shared,
    listener: TcpListener,
    bound: SocketAddr,
    tunnel: Arc<Tunnel>,
    problem: Arc<Mutex<Option<TunnelProblem>>>,
) {
    let mut progress = tunnel.progress();
    let told = progress.wait_for(|progress| progress.url.is_some() || progress.has_ended);
    let told = async { told.await.ok().filter(|told| !told.has_ended).and_then(|told| told.url.clone()) };
    let url = match timeout(ADDRESS_WITHIN, told).await {
        Ok(Some(url)) => url,
        outcome => {
            let why = if outcome.is_err() { TunnelProblem::NoAddress } else { TunnelProblem::NotOpened };
            *problem.lock() = Some(why);
            tracing::warn!(program = ?tunnel.program, ?why, "a tunnel was not opened; the page shows what its program printed");
            return tunnel.stop();
        }
    };
    tracing::info!(url, "guests can reach this server through a tunnel");
    let door = Arc::new(Door::for_guests(bound, &url, Door::proxies_on_this_machine()));
    let stop = async {
        drop(progress.wait_for(|progress| progress.has_ended).await);
        // Requests in flight may take long to finish.
        *problem.lock() = Some(TunnelProblem::Ended);
    };
    listening::serve(listener, door, (console.routes)(console.clone()), console, stop).await;
    tracing::info!(url, "the tunnel has ended");
}

/// `DELETE /api/addresses/tunnel`
pub(super) async fn close_tunnel(State(console): State<Shared>) -> Answer<AddressesView> {
    let _held = console.addresses.changing.lock().await;
    let open = console.addresses.tunnel.lock().take();
    if let Some(open) = open {
        open.tunnel.stop();
        let _ = open.served.await;
    }
    Answer(view(&console))
}

/// What opening the network takes: nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// `PUT /api/addresses/network`
pub(super) async fn open_network(
    State(console): State<Shared>,
    Json(Nothing {}): Json<Nothing>,
) -> Result<Answer<AddressesView>, Problem> {
    let _held = console.addresses.changing.lock().await;
    let is_open = console.addresses.network.lock().is_some();
    if !is_open {
        let none = || Problem::new(StatusCode::CONFLICT, Detail::key("refusals.no_network"));
        let machine = machine_address().ok_or_else(none)?;
        let cannot = |error: io::Error| {
            let values = json!({ "address": machine, "problem": error.to_string() });
            Problem::new(StatusCode::CONFLICT, Detail::of("refusals.no_network_port", values))
        };
        // The port that people know, unless another program has it there.
        let listener = match TcpListener::bind((machine, console.bound.port())).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((machine, 0)).await.map_err(cannot)?,
        };
        let bound = listener.local_addr().map_err(cannot)?;
        let url = format!("http://{bound}");
        tracing::info!(url, "guests can reach this server from its network, without encryption");
        let door = Arc::new(Door::for_guests(bound, &url, Proxies::new(Vec::new())));
        let mut closing = door.closing.subscribe();
        let stop = async move { drop(closing.wait_for(|closing| *closing).await) };
        let served = listening::serve(listener, door.clone(), (console.routes)(console.clone()), console.clone(), stop);
        *console.addresses.network.lock() = Some(OpenDoor { url, door, served: tokio::spawn(served) });
    }
    Ok(Answer(view(&console)))
}

/// `DELETE /api/addresses/network`
pub(super) async fn close_network(State(console): State<Shared>) -> Answer<AddressesView> {
    let _held = console.addresses.changing.lock().await;
    let open = console.addresses.network.lock().take();
    if let Some(open) = open {
        open.door.closing.send_replace(true);
        let _ = open.served.await;
    }
    Answer(view(&console))
}

/// The machine's address in its network: that of the interface by which it reaches others. `None`: it has none, or a public one, at which everybody
/// would reach the server without encryption.
fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation. Connecting a datagram socket sends nothing.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    is_of_private_network(address).then_some(address)
}

/// Also addresses that providers and private overlay networks share (100.64.0.0/10) belong to no public network.
const fn is_of_private_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || matches!(v4.octets(), [100, 64..=127, ..]),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// The URL to check, such as `https://talk.example.org`.
    #[schemars(length(min = 1, max = 2_048))]
    url: String,
}

/// `POST /api/addresses/check`
pub(super) async fn check(State(console): State<Shared>, Json(Check { url }): Json<Check>) -> Answer<Checked> {
    let _held = console.addresses.checking.lock().await;
    let secret = console.auth.secret();
    *console.addresses.sought.lock() = Some(secret.clone());
    let _forgets = Forgets(&console.addresses);
    Answer(check::check(&url, &secret).await)
}

/// Forgets the secret of a check, also if its client disconnects before the end.
struct Forgets<'a>(&'a Addresses);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        *self.0.sought.lock() = None;
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sought {
    /// The secret of the check that runs.
    secret: String,
}

fn is_sought(console: &Shared, secret: &str) -> Result<(), Problem> {
    let is_sought = console.addresses.sought.lock().as_deref() == Some(secret);
    is_sought.then_some(()).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no check with this secret runs here"))
}

/// `GET /api/addresses/here`, also as a WebSocket.
pub(super) async fn here(
    State(console): State<Shared>,
    QueryParams(Sought { secret }): QueryParams<Sought>,
    requested: Requested,
    request: Request,
) -> Result<Response, Problem> {
    is_sought(&console, &secret)?;
    if requested.is_ok() {
        return Ok(web_socket::upgrade(requested, TRIED_BYTES)?.on_upgrade(async |socket| drop(socket)));
    }
    let is_forwarded = ["x-forwarded-for", "forwarded"].iter().any(|name| request.headers().contains_key(*name));
    let peer = request.extensions().get::<Peer>().filter(|peer| is_forwarded && !peer.door.proxies.is_trusted(peer.address));
    Ok(Answer(Here { untrusted_proxy: peer.map(|peer| peer.address) }).into_response())
}

/// `POST /api/addresses/here`: whether the proxies in between pass on a body as large as a card or a picture. It is read to its end, because proxies
/// take an early answer for a failure.
pub(super) async fn here_large(
    State(console): State<Shared>,
    QueryParams(Sought { secret }): QueryParams<Sought>,
    request: Request,
) -> Result<StatusCode, Problem> {
    is_sought(&console, &secret)?;
    body::read(request.into_body(), &console, check::LARGE_BYTES).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::super::Console;
    use super::super::tests::{clock, rng, served, settings};
    use super::*;
    use crate::ports::backend::fake::FakeBackend;
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn an_address_on_the_internet_is_not_opened_as_one_of_the_network() {
        let is_private = |address: &str| is_of_private_network(address.parse().unwrap());
        assert!(
            ["10.1.2.3", "192.168.0.9", "169.254.1.1", "100.64.0.1", "100.127.9.9", "fd12::1", "fe80::1"]
                .into_iter()
                .all(is_private)
        );
        assert!(
            !["203.0.113.9", "100.128.0.1", "172.32.0.1", "127.0.0.1", "0.0.0.0", "2001:db8::1", "::1"]
                .into_iter()
                .any(is_private)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_that_tells_no_address_in_a_minute_is_ended() {
        let console = Console::bind(&settings(), served(Arc::new(FakeBackend::with_lobby())), rng(), clock(), Metrics::local())
            .await
            .unwrap();
        let folder = super::super::tunnel::tests::program("echo https://api.trycloudflare.com/tunnel; tail -f /dev/null");
        let tunnel = Arc::new(super::super::tunnel::tests::start(&folder));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (bound, problem) = (listener.local_addr().unwrap(), Arc::default());

        serve_tunnel(console.shared.clone(), listener, bound, tunnel.clone(), Arc::clone(&problem)).await;

        assert_eq!(*problem.lock(), Some(TunnelProblem::NoAddress));
        assert!(tunnel.progress().wait_for(|progress| progress.has_ended).await.is_ok());
    }
}
