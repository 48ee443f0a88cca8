//! Rejects connections over the limit: reads the request, answers 503, closes. Some clients treat a response before their request as an error. And
//! closing with unread bytes would reset the connection, so that the response is lost.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::NoSlot;
use super::problem::Problem;

/// How many connections over the limit are answered at once, for a given `server.max_connections`: a sixteenth of it, from 8 to 64. Further
/// connections are closed without an answer. Each has a file open meanwhile.
pub fn max_rejections(max_connections: usize) -> usize {
    (max_connections / 16).clamp(8, 64)
}

/// The time for the request's head, and again for reading the response.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The longest head that is read.
const HEAD_BYTES: usize = 8 << 10;

/// How many bytes after the head are read and discarded.
const BODY_BYTES: u64 = 1 << 20;

/// Bounds how many connections are rejected at the same time.
pub(super) struct Rejections(Arc<Semaphore>);

impl Rejections {
    pub(super) fn new(max_connections: usize) -> Self {
        Self(Arc::new(Semaphore::new(max_rejections(max_connections))))
    }

    /// Reserves one rejection, or returns none if too many are in progress. Then the caller just closes the connection.
    pub(super) fn try_reserve(&self) -> Option<Rejection> {
        self.0.clone().try_acquire_owned().ok().map(Rejection)
    }
}

/// The right to reject one connection.
pub(super) struct Rejection(OwnedSemaphorePermit);

impl Rejection {
    /// Answers 503 to the request, and discards its body for a while. A peer that sends no request gets no answer.
    pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S, full: NoSlot) {
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service_fn(|_: Request<Incoming>| ready(response(full))))
            .without_shutdown();
        // Twice the timeout: once for the head, once for a response that the peer does not read.
        if let Ok(Ok(parts)) = timeout(TIMEOUT * 2, serving).await {
            // Errors after the response are of no interest.
            let _ = timeout(TIMEOUT, drain(parts.io.into_inner())).await;
        }
        drop(self.0);
    }
}

fn response(full: NoSlot) -> Result<Response<Body>, Infallible> {
    let detail = match full {
        NoSlot::Full => "too many connections are open; try again, or raise server.max_connections",
        NoSlot::FullForAddress => {
            "this address has too many connections open; close some, or raise server.max_connections_per_address"
        }
    };
    Ok(Problem::unavailable(detail, TIMEOUT).into_response())
}

/// Reads until the peer closes. With unread bytes, the system would reset the connection, and the response would be lost.
async fn drain<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = stream.take(BODY_BYTES);
    let mut discarded = [0; 4_096];
    while rest.read(&mut discarded).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    async fn all_of(mut stream: DuplexStream) -> String {
        let mut read = String::new();
        stream.read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_client_is_answered_after_its_request_with_the_limit() {
        for (full, setting) in
            [(NoSlot::Full, "raise server.max_connections\""), (NoSlot::FullForAddress, "server.max_connections_per_address")]
        {
            let (server, mut client) = duplex(4_096);
            let rejecting = tokio::spawn(Rejections::new(1).try_reserve().unwrap().send(server, full));
            client.write_all(&REQUEST[..20]).await.unwrap();
            assert!(timeout(TIMEOUT / 2, client.read_u8()).await.is_err());

            client.write_all(&REQUEST[20..]).await.unwrap();
            let mut read = String::new();
            client.read_to_string(&mut read).await.unwrap();

            assert!(read.starts_with("HTTP/1.1 503 ") && read.contains("\r\nretry-after: 1\r\n"), "{read}");
            assert!(read.contains("\r\nconnection: close\r\n") && read.contains(setting), "{read}");
            drop(client);
            rejecting.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_without_a_request_with_half_a_head_or_that_never_closes_is_disconnected() {
        let requests: [(&[u8], Duration); 3] = [(b"", TIMEOUT), (&REQUEST[..20], TIMEOUT), (REQUEST, TIMEOUT)];
        for (request, after) in requests {
            let (server, mut client) = duplex(4_096);
            let start = Instant::now();
            client.write_all(request).await.unwrap();

            Rejections::new(1).try_reserve().unwrap().send(server, NoSlot::Full).await;

            assert_eq!(start.elapsed().as_millis(), after.as_millis(), "{}", String::from_utf8_lossy(request));
            assert_eq!(all_of(client).await.is_empty(), request != REQUEST);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_response_is_disconnected() {
        let (server, mut client) = duplex(16);
        let start = Instant::now();
        let writing = tokio::spawn(async move {
            client.write_all(REQUEST).await.unwrap();
            client
        });

        Rejections::new(1).try_reserve().unwrap().send(server, NoSlot::Full).await;

        assert_eq!(start.elapsed().as_secs(), (TIMEOUT * 2).as_secs());
        drop(writing.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_head_or_body_is_not_read_to_its_end() {
        let endless = [b'x'; 4_096];
        for head in ["GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"] {
            let (server, client) = duplex(4_096);
            let start = Instant::now();
            let (mut response, mut request) = tokio::io::split(client);
            let writing = tokio::spawn(async move {
                let mut written = request.write(head.as_bytes()).await.unwrap();
                while let Ok(more) = request.write(&endless).await {
                    written += more;
                }
                written as u64
            });
            let reading = tokio::spawn(async move {
                let mut read = Vec::new();
                response.read_to_end(&mut read).await
            });

            Rejections::new(1).try_reserve().unwrap().send(server, NoSlot::Full).await;

            reading.await.unwrap().unwrap();
            assert_eq!(start.elapsed(), Duration::ZERO, "{head}");
            assert!(writing.await.unwrap() < 2 * BODY_BYTES, "{head}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_concurrent_rejections_is_limited() {
        let rejections = Rejections::new(320);

        let (silent, _clients): (Vec<_>, Vec<_>) = (0..200).map(|_| duplex(16)).unzip();
        let tasks: Vec<_> = silent
            .into_iter()
            .filter_map(|server| Some(tokio::spawn(rejections.try_reserve()?.send(server, NoSlot::Full))))
            .collect();

        assert_eq!(tasks.len(), 20);
        assert!(rejections.try_reserve().is_none());
        for task in tasks {
            task.await.unwrap();
        }
        assert!(rejections.try_reserve().is_some());
    }
}
