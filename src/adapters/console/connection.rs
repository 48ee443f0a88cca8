//! Serves one connection: bounds how long its peer may take, and whether there is a place for it.

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
use super::heads::{Heads, Seen, Watched};
use super::host::is_loopback;
use super::limits::{NoPlace, Place, Places};
use super::lingering::Lingering;
use crate::settings::server::Server;

/// The longest head of a request, in bytes. About as much of it, and of a response, is held in memory at once.
///
/// A head that is not over when so much is there is refused by hyper; what came in the same reading as its end may make it longer, which is
/// refused by the guard.
pub(super) const HEAD_BYTES: usize = 32 << 10;

/// Serves requests until the peer has no more, takes too long, or `closing` turns true: then the one in flight is finished.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    settings: &Server,
    closing: watch::Receiver<bool>,
) {
    // Small answers shall not wait for more to come.
    let _ = stream.set_nodelay(true);
    serve_stream(stream, peer, router, settings, closing).await;
}

/// The same for any stream.
pub(super) async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    settings: &Server,
    mut closing: watch::Receiver<bool>,
) {
    let heads = Heads::default();
    let watched = heads.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        let Seen { fault, is_last } = heads.next();
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
    let io = TokioIo::new(Watched::new(Patient::new(stream, settings.stall_timeout()), watched));
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
        tracing::debug!(%peer, %error, "connection broke off");
    }
}

/// A place for a connection. Programs and proxies of this machine speak for many: of them the total alone counts, and others leave them some.
/// Trusted proxies of other machines speak for many, too, and leave some.
pub(super) fn place(places: &Arc<Places>, peer: IpAddr, proxies: &Proxies) -> Result<Place, NoPlace> {
    if is_loopback(peer) { places.take_any(peer) } else { places.take_leaving_some(peer, proxies.is_trusted(peer)) }
}

/// A stream whose peer may leave unread what was written for so long only.
struct Patient<S> {
    stream: S,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    fn wait(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wait(cx, written)
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
    async fn a_peer_that_reads_nothing_is_given_up_and_one_that_reads_slowly_is_not() {
        let patience = Duration::from_secs(30);
        let (ours, mut theirs) = duplex(16);
        let mut patient = Patient::new(ours, patience);
        let writing = tokio::spawn(async move { patient.write_all(&[0; 48]).await.map_err(|error| error.kind()) });
        for _ in 0..2 {
            sleep(patience - Duration::from_secs(1)).await;
            theirs.read_exact(&mut [0; 16]).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), Ok(()));

        let (ours, _theirs) = duplex(16);
        let outcome = Patient::new(ours, patience).write_all(&[0; 48]).await;

        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// No proxy is trusted.
    const NOBODY: Proxies = Proxies::new(Vec::new());

    #[test]
    fn strangers_however_many_leave_places_for_this_machine() {
        let places = Places::new(64, 8);
        let stranger = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0A00_0000 + n));

        let held: Vec<_> = (0..200).filter_map(|n| place(&places, stranger(n), &NOBODY).ok()).collect();

        assert_eq!(held.len(), 60);
        assert_eq!(place(&places, stranger(300), &NOBODY).err(), Some(NoPlace::Full));
        let here: Vec<_> = (0..5).map(|_| place(&places, IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), &NOBODY)).collect();
        assert_eq!(here.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, true, false]);
    }

    #[test]
    fn one_address_leaves_places_for_others_and_this_machine_may_take_all() {
        let [stranger, other, here] = ["192.0.2.1", "192.0.2.2", "::ffff:127.0.0.1"].map(|address| address.parse().unwrap());
        let places = Places::new(4, 2);

        let held = [place(&places, stranger, &NOBODY), place(&places, stranger, &NOBODY)].map(Result::unwrap);

        assert_eq!(place(&places, stranger, &NOBODY).err(), Some(NoPlace::FullForAddress));
        assert!(place(&places, other, &NOBODY).is_ok());
        drop(held);
        let held: Vec<_> = (0..4).map(|_| place(&places, here, &NOBODY).unwrap()).collect();
        assert_eq!(place(&places, here, &NOBODY).err(), Some(NoPlace::Full));
        drop(held);
    }

    #[test]
    fn a_trusted_proxy_speaks_for_many_and_leaves_places_for_this_machine() {
        let proxies = Proxies::new(vec!["10.0.0.1/32".parse().unwrap()]);
        let places = Places::new(32, 2);

        let held: Vec<_> = (0..40).filter_map(|_| place(&places, "10.0.0.1".parse().unwrap(), &proxies).ok()).collect();

        assert_eq!(held.len(), 30);
        assert!(place(&places, "127.0.0.1".parse().unwrap(), &proxies).is_ok());
    }
}
