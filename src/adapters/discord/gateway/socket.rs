//! The WebSocket of a connection. It decompresses and bounds received data, sends heartbeats, and closes such that the session can be resumed.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep};
use tokio_websockets::Connector;

use super::super::identify::CLOSE_TO_RESUME;
use super::frame::MAX_FRAME_BYTES;
use super::inflate::{Garbled, Inflate};
use super::payload;
use crate::adapters::web_socket::{self, Connected};

/// The protocol version, encoding and compression that the server uses (Discord's documentation, "Gateway", "Connecting").
const QUERY: &str = "?v=10&encoding=json&compress=zlib-stream";

/// An open connection. Dropping it closes the connection such that its session can be resumed.
pub struct GatewaySocket {
    /// `None` after the connection ended.
    socket: Option<Connected>,
    inflate: Inflate,
    heartbeats: Option<Heartbeats>,
    /// The number of the newest event that arrived.
    newest: Option<u64>,
}

/// A received frame, or the reason why there are no more.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Frame(String),
    /// The peer closed the connection, with this code if it sent one, or the connection broke.
    Closed(Option<u16>),
    /// A heartbeat was not acknowledged before the next one was due.
    Zombie,
    /// The data is invalid, or exceeds the limit of a frame.
    Garbled,
}

/// The state of the heartbeats (Discord's documentation, "Gateway", "Sending Heartbeats").
struct Heartbeats {
    interval: Duration,
    next: Pin<Box<Sleep>>,
    /// When the oldest unacknowledged heartbeat was sent, postponed by the time in which nothing was read.
    unacknowledged: Option<Instant>,
}

impl GatewaySocket {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns the reason if no connection was established.
    pub async fn open(url: &str, connector: &Connector) -> Result<Self, String> {
        let address = format!("{url}/{QUERY}");
        let socket = Connected::open(&address, connector, MAX_FRAME_BYTES).await?;
        Ok(Self { socket: Some(socket), inflate: Inflate::new(), heartbeats: None, newest: None })
    }

    /// Receives the next frame. Data is sent only while this or [`Self::keep_sending_heartbeats`] is polled.
    pub async fn next(&mut self) -> Received {
        let received = poll_fn(|cx| self.poll(cx)).await;
        if matches!(received, Received::Closed(_)) {
            self.socket = None;
        }
        received
    }

    /// Queues a payload.
    pub fn send(&mut self, payload: &Value) {
        if let Some(socket) = &mut self.socket {
            socket.send_text(payload.to_string());
        }
    }

    /// Starts heartbeats at this interval. The first one is sent after the fraction `first` of the interval.
    pub fn start_heartbeats(&mut self, interval: Duration, first: f64) {
        let next = Box::pin(sleep(interval.mul_f64(first.clamp(0.0, 1.0))));
        self.heartbeats = Some(Heartbeats { interval, next, unacknowledged: None });
    }

    /// Handles a request for a heartbeat.
    pub fn heartbeat_requested(&mut self) {
        // If a heartbeat is unacknowledged, it already answers the request.
        if self.heartbeats.as_ref().is_some_and(|heartbeats| heartbeats.unacknowledged.is_none()) {
            self.send_heartbeat();
        }
    }

    /// Handles an acknowledgement. Returns how long it took, if one was expected.
    pub fn acknowledged(&mut self) -> Option<Duration> {
        Some(self.heartbeats.as_mut()?.unacknowledged.take()?.elapsed())
    }

    /// Sets the number of the newest event that arrived.
    pub fn set_newest(&mut self, sequence: u64) {
        self.newest = Some(sequence);
    }

    /// Postpones the acknowledgement's time limit by the time in which nothing was read, because the acknowledgement may have arrived meanwhile.
    pub fn postpone_acknowledgement(&mut self, by: Duration) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.unacknowledged = heartbeats.unacknowledged.map(|sent| (sent + by).min(Instant::now()));
        }
    }

    /// Sends heartbeats when they are due, without reading. Never returns.
    pub async fn keep_sending_heartbeats(&mut self) {
        poll_fn(|cx| {
            if self.poll_due(cx) {
                self.send_due_heartbeat(cx);
            }
            if let Some(socket) = &mut self.socket {
                socket.poll_flush(cx);
            }
            Poll::Pending
        })
        .await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let missed = self.poll_heartbeat(cx);
        let Some(socket) = &mut self.socket else { return Poll::Ready(Received::Closed(None)) };
        if missed == MissedAck::ForLong {
            return Poll::Ready(Received::Zombie);
        }
        loop {
            let frame = match socket.poll(cx) {
                Poll::Ready(web_socket::Received::Text(text)) => Ok(Some(text)),
                Poll::Ready(web_socket::Received::Binary(bytes)) => self.inflate.decompress(&bytes),
                Poll::Ready(web_socket::Received::Drained) => Ok(None),
                Poll::Ready(web_socket::Received::Closed { is_garbled: true, .. }) => Err(Garbled),
                Poll::Ready(web_socket::Received::Closed { code, .. }) => return Poll::Ready(Received::Closed(code)),
                // If an acknowledgement had arrived, it would have been read before this.
                Poll::Pending if missed == MissedAck::Now => return Poll::Ready(Received::Zombie),
                Poll::Pending => return Poll::Pending,
            };
            match frame {
                Ok(Some(frame)) => return Poll::Ready(Received::Frame(frame)),
                Ok(None) => {}
                Err(Garbled) => return Poll::Ready(Received::Garbled),
            }
        }
    }

    /// Sends a heartbeat if one is due. Returns whether the previous one is unacknowledged.
    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> MissedAck {
        if !self.poll_due(cx) {
            return MissedAck::None;
        }
        // A heartbeat sent on request may still be in flight.
        if let Some(Heartbeats { interval, unacknowledged: Some(sent), .. }) = &self.heartbeats
            && sent.elapsed() >= *interval * 9 / 10
        {
            return if sent.elapsed() >= *interval * 2 { MissedAck::ForLong } else { MissedAck::Now };
        }
        self.send_due_heartbeat(cx);
        MissedAck::None
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> bool {
        self.heartbeats.as_mut().is_some_and(|heartbeats| heartbeats.next.as_mut().poll(cx).is_ready())
    }

    /// Sends a heartbeat and schedules the next one.
    fn send_due_heartbeat(&mut self, cx: &mut Context<'_>) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.next.as_mut().reset(Instant::now() + heartbeats.interval);
            // Polling registers the waker.
            let _ = heartbeats.next.as_mut().poll(cx);
        }
        self.send_heartbeat();
    }

    fn send_heartbeat(&mut self) {
        self.send(&payload::heartbeat(self.newest));
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.unacknowledged.get_or_insert_with(Instant::now);
        }
    }
}

/// Whether a heartbeat is unacknowledged when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissedAck {
    None,
    Now,
    ForLong,
}

impl Drop for GatewaySocket {
    fn drop(&mut self) {
        // Discord repeats frames that arrive after this.
        if let Some(socket) = self.socket.take() {
            socket.close(CLOSE_TO_RESUME);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::SinkExt as _;
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message as ServerMessage;

    use super::*;
    use crate::adapters::web_socket::MOST_PINGS;

    #[tokio::test]
    async fn pings_are_answered_but_a_flood_of_them_ends_the_connection() {
        for (pings, expected) in [(10, Received::Frame("{}".to_owned())), (MOST_PINGS * 10, Received::Garbled)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("ws://{}", listener.local_addr().unwrap());
            let accepted = async {
                let (stream, _) = listener.accept().await.unwrap();
                tokio_tungstenite::accept_async(stream).await.unwrap()
            };
            let (socket, mut server) = tokio::join!(GatewaySocket::open(&url, &Connector::Plain), accepted);
            let mut socket = socket.unwrap();
            for _ in 0..pings {
                server.feed(ServerMessage::Ping(Vec::new().into())).await.unwrap();
            }
            server.send(ServerMessage::text("{}")).await.unwrap();

            assert_eq!(socket.next().await, expected);
        }
    }
}
