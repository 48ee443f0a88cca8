//! A WebSocket to a server. Sending never waits: messages are queued, and sent while the socket is polled.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, CloseCode, Connector, Error, Limits, MaybeTlsStream, Message, WebSocketStream};

use crate::http_client::cause;

/// The close code of a normal closure.
pub const NORMAL_CLOSURE: u16 = 1_000;
/// The maximum number of unanswered pings. A peer that sends more does not read the answers, which would fill the memory.
pub const MOST_PINGS: usize = 1_000;
/// The timeout of the close handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// With more unsent bytes than this, the socket is congested.
const CONGESTED: usize = 256 * 1024;

pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// An open socket. Dropping it cuts the connection.
pub struct WebSocket<S = Box<dyn Io>> {
    stream: WebSocketStream<S>,
    /// The number of pings since the send queue was last empty.
    pings: usize,
    /// The bytes of messages that were queued since the send queue was last empty.
    unsent: usize,
    /// Whether [`Received::Drained`] is still to be reported.
    is_congested: bool,
}

/// A socket that this process has connected itself.
pub type Connected = WebSocket<MaybeTlsStream<TcpStream>>;

#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Text(String),
    Binary(Vec<u8>),
    /// The send queue is empty again after the socket was congested.
    Drained,
    /// The connection has ended. The code is the peer's, if it sent one. The reason is the peer's, or the error.
    Closed {
        code: Option<u16>,
        reason: String,
        /// Whether the connection ended because of invalid data, or of more data than the limit.
        is_garbled: bool,
    },
}

impl Connected {
    /// Connects to `ws://…` or `wss://…`. A message from the peer of more than `max_message` bytes ends the connection.
    ///
    /// # Errors
    /// Returns the innermost cause.
    pub async fn open(url: &str, connector: &Connector, max_message: usize) -> Result<Self, String> {
        let builder = ClientBuilder::new().uri(url).map_err(|error| error.to_string())?;
        let limits = Limits::default().max_payload_len(Some(max_message));
        let (stream, _) = builder.limits(limits).connector(connector).connect().await.map_err(|error| cause(&error))?;
        Ok(Self::of(stream))
    }
}

impl WebSocket {
    /// Creates a socket over a connection that is already upgraded.
    pub fn over(io: impl Io + 'static, max_message: usize) -> Self {
        let limits = Limits::default().max_payload_len(Some(max_message));
        Self::of(ClientBuilder::new().limits(limits).take_over(Box::new(io)))
    }
}

impl<S: Io + 'static> WebSocket<S> {
    const fn of(stream: WebSocketStream<S>) -> Self {
        Self { stream, pings: 0, unsent: 0, is_congested: false }
    }

    /// Queues a message.
    pub fn send_text(&mut self, text: String) {
        self.send(text.len(), Message::text(text));
    }

    /// Queues a message.
    pub fn send_binary(&mut self, bytes: Vec<u8>) {
        self.send(bytes.len(), Message::binary(bytes));
    }

    /// Whether the peer does not accept data fast enough. If so, do not send before [`Received::Drained`].
    pub const fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Receives the next message, and sends queued messages. It is cancel-safe.
    pub async fn next(&mut self) -> Received {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Closes the connection in the background. Without a runtime, the connection is cut.
    pub fn close(mut self, code: u16) {
        let closing = async move {
            let closed = async {
                if self.stream.send(Message::close(CloseCode::try_from(code).ok(), "")).await.is_ok() {
                    while let Some(Ok(_)) = self.stream.next().await {}
                }
            };
            // A peer that does not answer in time is disconnected.
            let _ = timeout(CLOSE_TIMEOUT, closed).await;
        };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(closing);
        }
    }

    fn send(&mut self, length: usize, message: Message) {
        self.unsent += length;
        self.is_congested |= self.unsent > CONGESTED;
        // A closed connection is reported by the next read.
        let _ = self.stream.start_send_unpin(message);
    }

    /// Sends queued messages.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) {
        // Messages that the peer sent before it closed can still be read, so the next read reports the error.
        if let Poll::Ready(Ok(())) = self.stream.poll_flush_unpin(cx) {
            (self.pings, self.unsent) = (0, 0);
        }
    }

    /// Polls for the result of [`Self::next`].
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let ended = |reason: String, is_garbled| Poll::Ready(Received::Closed { code: None, reason, is_garbled });
        // Reading continues while data cannot be sent yet.
        self.poll_flush(cx);
        if self.is_congested && self.unsent == 0 {
            self.is_congested = false;
            return Poll::Ready(Received::Drained);
        }
        loop {
            let message = match self.stream.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(error))) => return ended(error.to_string(), !matches!(error, Error::Io(_))),
                Poll::Ready(None) => return ended(String::new(), false),
                Poll::Pending => return Poll::Pending,
            };
            if let Some((code, reason)) = message.as_close() {
                let code = Some(code.into()).filter(|_| code != CloseCode::NO_STATUS_RECEIVED);
                return Poll::Ready(Received::Closed { code, reason: reason.to_owned(), is_garbled: false });
            }
            if let Some(text) = message.as_text() {
                return Poll::Ready(Received::Text(text.to_owned()));
            }
            if message.is_binary() {
                return Poll::Ready(Received::Binary(message.as_payload().to_vec()));
            }
            if message.is_ping() {
                self.pings += 1;
                if self.pings > MOST_PINGS {
                    return ended("too many pings".to_owned(), true);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_takes_nothing_congests_the_socket_until_it_does() {
        let (ours, theirs) = tokio::io::duplex(1_000);
        let mut socket = WebSocket::over(ours, 1_000);
        for _ in 0..=CONGESTED / 1_000 {
            socket.send_binary(vec![7; 1_000]);
        }
        assert!(socket.is_congested());

        tokio::spawn(async move {
            let (mut theirs, mut sink) = (theirs, tokio::io::sink());
            let _ = tokio::io::copy(&mut theirs, &mut sink).await;
        });

        assert_eq!(socket.next().await, Received::Drained);
        assert!(!socket.is_congested());
    }
}
