//! Serves one connection, with limits on how long its peer may take, and on the number of connections.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};
use tower::ServiceExt;

use super::forwarded::Proxies;
use super::guard::{Malformed, Peer};
use super::heads::{HeadInfo, Heads, Inspector};
use super::host::is_loopback;
use super::limits::{NoSlot, Slot, Slots};
use super::lingering::Lingering;
use crate::settings::server::Server;

/// The longest head of a request, in bytes. About as many bytes of a request and of a response are held in memory at once.
///
/// hyper refuses a head that has not ended after this many bytes. A head that ends in the same read may still be longer; the guard refuses it.
pub(super) const HEAD_BYTES: usize = 32 << 10;

/// Serves requests until the peer closes, takes too long, or `closing` turns true. Then the request in flight is finished.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    settings: &Server,
    closing: watch::Receiver<bool>,
) {
    // Small responses must not wait for more data.
    let _ = stream.set_nodelay(true);
    serve_stream(stream, peer, router, settings, closing).await;
}

/// Like [`serve`], for any stream.
pub(super) async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    settings: &Server,
    mut closing: watch::Receiver<bool>,
) {
    let heads = Heads::default();
    let inspector = Inspector::new(heads.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        let HeadInfo { fault, is_last } = heads.next();
        request.extensions_mut().insert(Peer(peer.ip()));
        fault.map(|fault| request.extensions_mut().insert(Malformed(fault)));
        let router = router.clone();
        async move {
            let mut response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
            if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<Response, Infallible>(response)
        }
    });
    let stream = Lingering::new(stream, closing.clone());
    let io = TokioIo::new(Watched::new(stream, inspector, settings.stall_timeout()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout())
        .max_buf_size(HEAD_BYTES)
        .serve_connection(io, service)
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

/// Takes a slot for a connection. Programs and proxies on this machine may connect for many clients, so only the total limits them, and some slots
/// are reserved for them. Trusted proxies on other machines have no limit per address either, but leave the reserved slots free.
pub(super) fn slot(slots: &Arc<Slots>, peer: IpAddr, proxies: &Proxies) -> Result<Slot, NoSlot> {
    if is_loopback(peer) { slots.take_any(peer) } else { slots.take_unreserved(peer, proxies.is_trusted(peer)) }
}

/// A stream whose requests are inspected as they are read, and that fails when its peer reads nothing for `timeout` while data waits to be written.
struct Watched<S> {
    stream: S,
    inspector: Inspector,
    timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    const fn new(stream: S, inspector: Inspector, timeout: Duration) -> Self {
        Self { stream, inspector, timeout, stalled: None }
    }

    fn or_timeout(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let timeout = self.timeout;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.inspector.inspect(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.or_timeout(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.or_timeout(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_times_out_and_a_slow_reader_does_not() {
        let timeout = Duration::from_secs(30);
        let (server, mut client) = duplex(16);
        let mut stream = watched(server, timeout);
        let writing = tokio::spawn(async move { stream.write_all(&[0; 48]).await.map_err(|error| error.kind()) });
        for _ in 0..2 {
            sleep(timeout - Duration::from_secs(1)).await;
            client.read_exact(&mut [0; 16]).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), Ok(()));

        let (server, _client) = duplex(16);
        let outcome = watched(server, timeout).write_all(&[0; 48]).await;

        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    fn watched<S>(stream: S, timeout: Duration) -> Watched<S> {
        Watched::new(stream, Inspector::new(Heads::default()), timeout)
    }

    /// No proxy is trusted.
    const NO_PROXIES: Proxies = Proxies::new(Vec::new());

    #[test]
    fn clients_of_other_machines_leave_slots_for_this_machine() {
        let slots = Slots::new(64, 8);
        let remote = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0A00_0000 + n));

        let taken: Vec<_> = (0..200).filter_map(|n| slot(&slots, remote(n), &NO_PROXIES).ok()).collect();

        assert_eq!(taken.len(), 60);
        assert_eq!(slot(&slots, remote(300), &NO_PROXIES).err(), Some(NoSlot::Full));
        let local: Vec<_> = (0..5).map(|_| slot(&slots, IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), &NO_PROXIES)).collect();
        assert_eq!(local.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    #[test]
    fn one_address_leaves_slots_for_others_and_this_machine_may_take_all() {
        let [client, other, loopback] = ["192.0.2.1", "192.0.2.2", "::ffff:127.0.0.1"].map(|address| address.parse().unwrap());
        let slots = Slots::new(4, 2);

        let taken = [slot(&slots, client, &NO_PROXIES), slot(&slots, client, &NO_PROXIES)].map(Result::unwrap);

        assert_eq!(slot(&slots, client, &NO_PROXIES).err(), Some(NoSlot::FullForAddress));
        assert!(slot(&slots, other, &NO_PROXIES).is_ok());
        drop(taken);
        let taken: Vec<_> = (0..4).map(|_| slot(&slots, loopback, &NO_PROXIES).unwrap()).collect();
        assert_eq!(slot(&slots, loopback, &NO_PROXIES).err(), Some(NoSlot::Full));
        drop(taken);
    }

    #[test]
    fn a_trusted_proxy_has_no_limit_per_address_and_leaves_slots_for_this_machine() {
        let proxies = Proxies::new(vec!["10.0.0.1/32".parse().unwrap()]);
        let slots = Slots::new(32, 2);

        let taken: Vec<_> = (0..40).filter_map(|_| slot(&slots, "10.0.0.1".parse().unwrap(), &proxies).ok()).collect();

        assert_eq!(taken.len(), 30);
        assert!(slot(&slots, "127.0.0.1".parse().unwrap(), &proxies).is_ok());
    }
}
