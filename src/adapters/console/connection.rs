//! Serves one connection. Limits how long its peer may take, and the number of connections.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::door::Door;
use super::guard::Peer;
use super::host::is_loopback;
use super::limits::{Slot, Slots, take_any, take_unreserved};
use crate::adapters::slots::NoSlot;
use crate::settings::server::Server;

/// The longest head of a request, in bytes. About as many bytes of a request, and of a response, are held in memory at once.
const HEAD_BYTES: usize = 32 << 10;

/// Serves requests until the peer closes the connection or takes too long. When the door closes, finishes only the request in flight.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, router: Router, settings: &Server, door: Arc<Door>) {
    // Small responses must not wait for more data.
    if let Err(error) = stream.set_nodelay(true).and_then(|()| end_when_stalled(&stream, settings.stall_timeout())) {
        tracing::debug!(%peer, %error, "the system refuses an option of a connection");
    }
    serve_stream(stream, peer, router, settings, door).await;
}

/// Lets the system end a connection whose peer acknowledges none of the sent data for `timeout`. Only Linux supports this.
#[cfg(target_os = "linux")]
fn end_when_stalled(stream: &TcpStream, timeout: Duration) -> io::Result<()> {
    let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, millis)?)
}

#[cfg(not(target_os = "linux"))]
fn end_when_stalled(_: &TcpStream, _: Duration) -> io::Result<()> {
    Ok(())
}

/// Like [`serve`], for any stream.
pub(super) async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    settings: &Server,
    door: Arc<Door>,
) {
    let mut closing = door.closing.subscribe();
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer { address: peer.ip(), door: door.clone() });
        let response = router.clone().oneshot(request);
        async move { Ok::<Response, Infallible>(response.await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout())
        .max_header_size(HEAD_BYTES)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = async { drop(closing.wait_for(|closing| *closing).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%peer, %error, "connection failed");
    }
}

/// Takes a slot for a connection. Programs and proxies on this machine may connect on behalf of many clients. So they have no limit per address,
/// and some slots are reserved for them. Trusted proxies on other machines have no limit per address either, but they cannot take the reserved
/// slots; neither can the proxies of guests' doors.
pub(super) fn slot(slots: &Arc<Slots>, peer: IpAddr, door: &Door) -> Result<Slot, NoSlot> {
    let is_own = is_loopback(peer) && !door.is_for_guests;
    if is_own { take_any(slots, peer) } else { take_unreserved(slots, peer, door.proxies.is_trusted(peer)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::settings::samples::server as defaults;

    /// The main door, with these trusted proxies.
    fn door(trusted: &[&str]) -> Door {
        let trusted_proxies = trusted.iter().map(|&proxy| proxy.to_owned()).collect();
        Door::main("127.0.0.1:1".parse().unwrap(), &Server { trusted_proxies, ..defaults() }).unwrap()
    }

    #[test]
    fn clients_of_other_machines_leave_slots_for_this_machine() {
        let (slots, door) = (Slots::new(64, 8), door(&[]));
        let remote = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0A00_0000 + n));

        let taken: Vec<_> = (0..200).filter_map(|n| slot(&slots, remote(n), &door).ok()).collect();

        assert_eq!(taken.len(), 60);
        assert_eq!(slot(&slots, remote(300), &door).err(), Some(NoSlot::Full));
        let local: Vec<_> = (0..5).map(|_| slot(&slots, IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), &door)).collect();
        assert_eq!(local.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    #[test]
    fn one_address_leaves_slots_for_others_and_this_machine_may_take_all() {
        let [client, other, loopback] = ["192.0.2.1", "192.0.2.2", "::ffff:127.0.0.1"].map(|address| address.parse().unwrap());
        let (slots, door) = (Slots::new(4, 2), door(&[]));

        let taken = [slot(&slots, client, &door), slot(&slots, client, &door)].map(Result::unwrap);

        assert_eq!(slot(&slots, client, &door).err(), Some(NoSlot::FullForClient));
        assert!(slot(&slots, other, &door).is_ok());
        drop(taken);
        let taken: Vec<_> = (0..4).map(|_| slot(&slots, loopback, &door).unwrap()).collect();
        assert_eq!(slot(&slots, loopback, &door).err(), Some(NoSlot::Full));
        drop(taken);
    }

    #[test]
    fn a_trusted_proxy_has_no_limit_per_address_and_leaves_slots_for_this_machine() {
        let door = door(&["10.0.0.1"]);
        let slots = Slots::new(32, 2);

        let taken: Vec<_> = (0..40).filter_map(|_| slot(&slots, "10.0.0.1".parse().unwrap(), &door).ok()).collect();

        assert_eq!(taken.len(), 30);
        assert!(slot(&slots, "127.0.0.1".parse().unwrap(), &door).is_ok());
    }
}
