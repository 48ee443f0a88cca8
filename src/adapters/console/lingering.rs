//! Closes a connection so that its peer gets to read the last answer: what comes unasked is heard out for a while, and thrown away. What lies
//! unread when a connection is closed makes the system reset it, and whoever is still writing then never reads why it was refused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// Who says nothing for so long, and has not closed by then, is let go.
const QUIET: Duration = Duration::from_secs(1);

/// Who goes on for so long is let go, too.
const LONGEST: Duration = Duration::from_secs(5);

/// And who sends so much.
const MOST_BYTES: u64 = 16 << 20;

/// Thrown away at once.
const PIECE: usize = 8 << 10;

/// A stream whose shutdown ends when its peer closes, or is let go. While the server ends, nobody is waited for.
pub(super) struct Lingering<S> {
    stream: S,
    closing: watch::Receiver<bool>,
    inbound_events: Option<HearingOut>,
}

struct HearingOut {
    quiet: Pin<Box<Sleep>>,
    ends: Instant,
    left: u64,
}

impl<S> Lingering<S> {
    /// `closing` turns true when the server ends.
    pub(super) const fn new(stream: S, closing: watch::Receiver<bool>) -> Self {
        Self { stream, closing, inbound_events: None }
    }
}

impl HearingOut {
    fn begin() -> Self {
        Self { quiet: Box::pin(sleep(QUIET)), ends: Instant::now() + LONGEST, left: MOST_BYTES }
    }

    /// Whether it may be closed now.
    fn poll(&mut self, stream: Pin<&mut impl AsyncRead>, is_closing: bool, cx: &mut Context<'_>) -> Poll<()> {
        let mut stream = stream;
        let mut thrown_away = [0; PIECE];
        loop {
            let mut piece = ReadBuf::new(&mut thrown_away);
            let Poll::Ready(read) = stream.as_mut().poll_read(cx, &mut piece) else {
                return if is_closing { Poll::Ready(()) } else { self.quiet.as_mut().poll(cx) };
            };
            let bytes = piece.filled().len() as u64;
            self.left = self.left.saturating_sub(bytes);
            let now = Instant::now();
            // What becomes of it after the answer is the peer's matter.
            if read.is_err() || bytes == 0 || self.left == 0 || now >= self.ends {
                return Poll::Ready(());
            }
            self.quiet.as_mut().reset((now + QUIET).min(self.ends));
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
        let Self { stream, closing, inbound_events } = &mut *self;
        if inbound_events.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let is_closing = *closing.borrow();
        inbound_events.get_or_insert_with(HearingOut::begin).poll(Pin::new(stream), is_closing, cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// A stream, whoever is at its other end, and what ends the server.
    fn pair() -> (Lingering<DuplexStream>, DuplexStream, watch::Sender<bool>) {
        let (ours, theirs) = duplex(4_096);
        let (end, closing) = watch::channel(false);
        (Lingering::new(ours, closing), theirs, end)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_still_writing_is_heard_out_and_reads_its_answer() {
        let (mut ours, mut theirs, _end) = pair();
        let asking = tokio::spawn(async move {
            theirs.write_all(&[b'x'; 100_000]).await.unwrap();
            let mut answer = [0; 2];
            theirs.read_exact(&mut answer).await.unwrap();
            answer
        });

        ours.write_all(b"no").await.unwrap();
        ours.shutdown().await.unwrap();
        drop(ours);

        assert_eq!(&asking.await.unwrap(), b"no");
    }

    #[tokio::test(start_paused = true)]
    async fn who_closes_is_not_waited_for_and_who_does_not_is_let_go() {
        for (does_close, waited) in [(true, Duration::ZERO), (false, QUIET)] {
            let (mut ours, theirs, _end) = pair();
            let theirs = Some(theirs).filter(|_| !does_close);
            let since = Instant::now();

            ours.shutdown().await.unwrap();

            assert_eq!(since.elapsed().as_millis(), waited.as_millis());
            drop(theirs);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_a_little_again_and_again_is_let_go() {
        let (mut ours, mut theirs, _end) = pair();
        let since = Instant::now();
        let dripping = tokio::spawn(async move {
            while theirs.write_all(b"x").await.is_ok() {
                sleep(QUIET / 2).await;
            }
        });

        ours.shutdown().await.unwrap();
        drop(ours);

        assert_eq!(since.elapsed().as_millis(), LONGEST.as_millis());
        dripping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_without_end_is_let_go() {
        let (mut ours, mut theirs, _end) = pair();
        let since = Instant::now();
        let asking = tokio::spawn(async move {
            let mut written = 0;
            while let Ok(more) = theirs.write(&[b'x'; 4_096]).await {
                written += more as u64;
            }
            written
        });

        ours.shutdown().await.unwrap();
        drop(ours);

        assert_eq!(since.elapsed(), Duration::ZERO);
        assert!((MOST_BYTES..2 * MOST_BYTES).contains(&asking.await.unwrap()));
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_server_ends_nobody_is_waited_for() {
        let (mut ours, mut theirs, end) = pair();
        theirs.write_all(b"more").await.unwrap();
        end.send(true).unwrap();
        let since = Instant::now();

        ours.shutdown().await.unwrap();

        assert_eq!(since.elapsed(), Duration::ZERO);
    }
}
