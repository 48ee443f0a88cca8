//! The WebSocket of a voice connection. Sending never waits: what cannot be sent yet is sent while the socket is polled.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, CloseCode, Connector, Limits, MaybeTlsStream, Message, WebSocketStream};

use super::messages::MAX_MESSAGE_BYTES;
use crate::http_client::cause;

/// The most unanswered pings. A peer that sends more does not read the answers, which would fill the memory.
const MOST_PINGS: usize = 1_000;
/// The timeout of the close handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open socket.
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Pings that arrived since everything was sent.
    pings: usize,
}

pub enum Received {
    Text(String),
    Binary(Vec<u8>),
    /// Nothing follows. With a code if the peer sent one.
    Closed(Option<u16>),
}

impl Socket {
    /// Connects.
    ///
    /// # Errors
    /// The innermost cause.
    pub async fn open(url: &str, connector: &Connector) -> Result<Self, String> {
        let builder = ClientBuilder::new().uri(url).map_err(|error| error.to_string())?;
        let limits = Limits::default().max_payload_len(Some(MAX_MESSAGE_BYTES));
        let (stream, _) = builder.limits(limits).connector(connector).connect().await.map_err(|error| cause(&error))?;
        Ok(Self { stream, pings: 0 })
    }

    /// Queues a message.
    pub fn send_text(&mut self, text: String) {
        // A closed connection is reported by the next read.
        let _ = self.stream.start_send_unpin(Message::text(text));
    }

    /// Queues a message.
    pub fn send_binary(&mut self, bytes: Vec<u8>) {
        let _ = self.stream.start_send_unpin(Message::binary(bytes));
    }

    /// Receives the next message, and sends what is queued. What is lost when it is dropped is nothing.
    pub async fn next(&mut self) -> Received {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Closes the connection in the background.
    pub fn close(mut self, code: u16) {
        let closing = async move {
            let closed = async {
                if self.stream.send(Message::close(CloseCode::try_from(code).ok(), "")).await.is_ok() {
                    while let Some(Ok(_)) = self.stream.next().await {}
                }
            };
            // A peer that does not answer in time is dropped.
            let _ = timeout(CLOSE_TIMEOUT, closed).await;
        };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(closing);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        // Reading continues while data cannot be sent yet.
        match self.stream.poll_flush_unpin(cx) {
            Poll::Ready(Ok(())) => self.pings = 0,
            Poll::Ready(Err(_)) => return Poll::Ready(Received::Closed(None)),
            Poll::Pending => {}
        }
        loop {
            let message = match self.stream.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Received::Closed(None)),
                Poll::Pending => return Poll::Pending,
            };
            if let Some((code, _)) = message.as_close() {
                let code = Some(code.into()).filter(|_| code != CloseCode::NO_STATUS_RECEIVED);
                return Poll::Ready(Received::Closed(code));
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
                    return Poll::Ready(Received::Closed(None));
                }
            }
        }
    }
}
