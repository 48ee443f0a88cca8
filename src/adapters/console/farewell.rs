//! Turns away who comes too many: hears what is asked, says that there is no place, and lets go soon. Whoever answers before it is
//! asked is taken for broken by some clients, and whoever closes with something unread takes its answer back.

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

use super::limits::NoPlace;
use super::problem::Problem;

/// How many are told at once that there are too many, where there is room for so many connections: a sixteenth of them, from 8 to 64. Those over it
/// are cut off without a word. Each has a file open meanwhile.
pub fn turned_away_at_once(max_connections: usize) -> usize {
    (max_connections / 16).clamp(8, 64)
}

/// How long one has to say what it wants, and then again to take the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much of a head is heard.
const HEAD_BYTES: usize = 8 << 10;

/// How much is read of what comes beside the head, and thrown away.
const BODY_BYTES: u64 = 1 << 20;

/// Who is being turned away at this moment: so many at most.
pub(super) struct Farewells(Arc<Semaphore>);

impl Farewells {
    pub(super) fn new(max_connections: usize) -> Self {
        Self(Arc::new(Semaphore::new(turned_away_at_once(max_connections))))
    }

    /// What turns one more away, or nothing where too many already are: then its connection is just closed.
    pub(super) fn one_more(&self) -> Option<Farewell> {
        self.0.clone().try_acquire_owned().ok().map(Farewell)
    }
}

/// Turns one away.
pub(super) struct Farewell(OwnedSemaphorePermit);

impl Farewell {
    /// Answers 503 to what is asked, and reads for a while what comes beside. Who asks nothing is let go without an answer.
    pub(super) async fn say<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S, full: NoPlace) {
        let answered = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service_fn(|_: Request<Incoming>| ready(answer(full))))
            .without_shutdown();
        // The head's own deadline, and one for an answer that nobody takes.
        if let Ok(Ok(answered)) = timeout(PATIENCE * 2, answered).await {
            // What comes of it is the peer's matter.
            let _ = timeout(PATIENCE, hear_out(answered.io.into_inner())).await;
        }
        drop(self.0);
    }
}

fn answer(full: NoPlace) -> Result<Response<Body>, Infallible> {
    let told = match full {
        NoPlace::Full => "too many connections are open; try again, or raise server.max_connections",
        NoPlace::FullForAddress => {
            "this address has too many connections open; close some, or raise server.max_connections_per_address"
        }
    };
    Ok(Problem::unavailable(told, PATIENCE).into_response())
}

/// Closes after the peer did. What arrived unread would make the system reset the connection, and take the answer along.
async fn hear_out<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = stream.take(BODY_BYTES);
    let mut thrown_away = [0; 4_096];
    while rest.read(&mut thrown_away).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    async fn all_of(mut stream: DuplexStream) -> String {
        let mut read = String::new();
        stream.read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_turned_away_is_answered_once_it_asked_and_told_which_limit() {
        for (full, setting) in
            [(NoPlace::Full, "raise server.max_connections\""), (NoPlace::FullForAddress, "server.max_connections_per_address")]
        {
            let (ours, mut theirs) = duplex(4_096);
            let farewell = tokio::spawn(Farewells::new(1).one_more().unwrap().say(ours, full));
            theirs.write_all(&ASKED[..20]).await.unwrap();
            assert!(timeout(PATIENCE / 2, theirs.read_u8()).await.is_err());

            theirs.write_all(&ASKED[20..]).await.unwrap();
            let mut read = String::new();
            theirs.read_to_string(&mut read).await.unwrap();

            assert!(read.starts_with("HTTP/1.1 503 ") && read.contains("\r\nretry-after: 1\r\n"), "{read}");
            assert!(read.contains("\r\nconnection: close\r\n") && read.contains(setting), "{read}");
            drop(theirs);
            farewell.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_nothing_does_not_end_its_head_or_never_leaves_is_let_go() {
        let asks: [(&[u8], Duration); 3] = [(b"", PATIENCE), (&ASKED[..20], PATIENCE), (ASKED, PATIENCE)];
        for (asked, after) in asks {
            let (ours, mut theirs) = duplex(4_096);
            let since = Instant::now();
            theirs.write_all(asked).await.unwrap();

            Farewells::new(1).one_more().unwrap().say(ours, NoPlace::Full).await;

            assert_eq!(since.elapsed().as_millis(), after.as_millis(), "{}", String::from_utf8_lossy(asked));
            assert_eq!(all_of(theirs).await.is_empty(), asked != ASKED);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_of_its_answer_is_let_go() {
        let (ours, mut theirs) = duplex(16);
        let since = Instant::now();
        let asking = tokio::spawn(async move {
            theirs.write_all(ASKED).await.unwrap();
            theirs
        });

        Farewells::new(1).one_more().unwrap().say(ours, NoPlace::Full).await;

        assert_eq!(since.elapsed().as_secs(), (PATIENCE * 2).as_secs());
        drop(asking.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_without_end_and_a_body_without_end_are_not_heard_to_their_end() {
        let endless = [b'x'; 4_096];
        for head in ["GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"] {
            let (ours, theirs) = duplex(4_096);
            let since = Instant::now();
            let (mut answer, mut asked) = tokio::io::split(theirs);
            let asking = tokio::spawn(async move {
                let mut written = asked.write(head.as_bytes()).await.unwrap();
                while let Ok(more) = asked.write(&endless).await {
                    written += more;
                }
                written as u64
            });
            let reading = tokio::spawn(async move {
                let mut read = Vec::new();
                answer.read_to_end(&mut read).await
            });

            Farewells::new(1).one_more().unwrap().say(ours, NoPlace::Full).await;

            reading.await.unwrap().unwrap();
            assert_eq!(since.elapsed(), Duration::ZERO, "{head}");
            assert!(asking.await.unwrap() < 2 * BODY_BYTES, "{head}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_turned_away_at_once_and_no_more() {
        let farewells = Farewells::new(320);

        let (silent, _theirs): (Vec<_>, Vec<_>) = (0..200).map(|_| duplex(16)).unzip();
        let told: Vec<_> =
            silent.into_iter().filter_map(|ours| Some(tokio::spawn(farewells.one_more()?.say(ours, NoPlace::Full)))).collect();

        assert_eq!(told.len(), 20);
        assert!(farewells.one_more().is_none());
        for told in told {
            told.await.unwrap();
        }
        assert!(farewells.one_more().is_some());
    }
}
