//! Closes a connection in a way that lets its peer read the last response: incoming bytes are read and discarded for a while. If bytes were unread
//! when a connection is closed, the system would reset it, and a peer that is still writing would never read why it was refused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// The connection is closed when the peer sends nothing for this long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection is closed after this long, even if the peer still sends.
const MAX_DURATION: Duration = Duration::from_secs(5);

/// The connection is closed after this many discarded bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The size of one read, in bytes.
const READ_BYTES: usize = 8 << 10;

/// A stream whose shutdown completes when its peer closes, or a limit is reached. While the server stops, shutdown does not wait.
pub(super) struct Lingering<S> {
    stream: S,
    closing: watch::Receiver<bool>,
    draining: Option<Draining>,
}

struct Draining {
    idle: Pin<Box<Sleep>>,
    deadline: Instant,
    bytes_left: u64,
}

impl<S> Lingering<S> {
    /// `closing` turns true when the server stops.
    pub(super) const fn new(stream: S, closing: watch::Receiver<bool>) -> Self {
        Self { stream, closing, draining: None }
    }
}

impl Draining {
    fn new() -> Self {
        Self { idle: Box::pin(sleep(IDLE_TIMEOUT)), deadline: Instant::now() + MAX_DURATION, bytes_left: MAX_BYTES }
    }

    /// Ready when the connection may be closed.
    fn poll(&mut self, stream: Pin<&mut impl AsyncRead>, is_closing: bool, cx: &mut Context<'_>) -> Poll<()> {
        let mut stream = stream;
        let mut discarded = [0; READ_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut discarded);
            let Poll::Ready(read) = stream.as_mut().poll_read(cx, &mut buffer) else {
                return if is_closing { Poll::Ready(()) } else { self.idle.as_mut().poll(cx) };
            };
            let bytes = buffer.filled().len() as u64;
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            let now = Instant::now();
            // A read error after the response is of no interest.
            if read.is_err() || bytes == 0 || self.bytes_left == 0 || now >= self.deadline {
                return Poll::Ready(());
            }
            self.idle.as_mut().reset((now + IDLE_TIMEOUT).min(self.deadline));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, closing, draining } = &mut *self;
        if draining.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let is_closing = *closing.borrow();
        draining.get_or_insert_with(Draining::new).poll(Pin::new(stream), is_closing, cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// The server's end of a stream, the client's end, and the sender that stops the server.
    fn pair() -> (Lingering<DuplexStream>, DuplexStream, watch::Sender<bool>) {
        let (server, client) = duplex(4_096);
        let (stop, closing) = watch::channel(false);
        (Lingering::new(server, closing), client, stop)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_still_writing_reads_its_response() {
        let (mut server, mut client, _stop) = pair();
        let writing = tokio::spawn(async move {
            client.write_all(&[b'x'; 100_000]).await.unwrap();
            let mut answer = [0; 2];
            client.read_exact(&mut answer).await.unwrap();
            answer
        });

        server.write_all(b"no").await.unwrap();
        server.shutdown().await.unwrap();
        drop(server);

        assert_eq!(&writing.await.unwrap(), b"no");
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_when_the_client_closes_or_is_idle() {
        for (closes, waited) in [(true, Duration::ZERO), (false, IDLE_TIMEOUT)] {
            let (mut server, client, _stop) = pair();
            let client = Some(client).filter(|_| !closes);
            let start = Instant::now();

            server.shutdown().await.unwrap();

            assert_eq!(start.elapsed().as_millis(), waited.as_millis());
            drop(client);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_keeps_sending_a_little_is_disconnected() {
        let (mut server, mut client, _stop) = pair();
        let start = Instant::now();
        let sending = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                sleep(IDLE_TIMEOUT / 2).await;
            }
        });

        server.shutdown().await.unwrap();
        drop(server);

        assert_eq!(start.elapsed().as_millis(), MAX_DURATION.as_millis());
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_without_end_is_disconnected() {
        let (mut server, mut client, _stop) = pair();
        let start = Instant::now();
        let writing = tokio::spawn(async move {
            let mut written = 0;
            while let Ok(more) = client.write(&[b'x'; 4_096]).await {
                written += more as u64;
            }
            written
        });

        server.shutdown().await.unwrap();
        drop(server);

        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!((MAX_BYTES..2 * MAX_BYTES).contains(&writing.await.unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_server_stops_shutdown_does_not_wait() {
        let (mut server, mut client, stop) = pair();
        client.write_all(b"more").await.unwrap();
        stop.send(true).unwrap();
        let start = Instant::now();

        server.shutdown().await.unwrap();

        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
