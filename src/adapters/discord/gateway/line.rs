//! The WebSocket of a connection: what comes on it, decompressed and bounded, its heartbeats, and how it is left.

use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_websockets::{ClientBuilder, CloseCode, Connector, Error, Limits, MaybeTlsStream, Message, WebSocketStream};

use super::super::identify::CLOSE_TO_RESUME;
use super::frame::MAX_FRAME_BYTES;
use super::inflate::Inflate;
use super::payload;

/// What is spoken with the gateway (Discord's documentation, "Gateway", "Connecting").
const QUERY: &str = "?v=10&encoding=json&compress=zlib-stream";
/// Pings that wait to be answered. More are nonsense: whoever sends them does not read the answers, which would fill the memory.
const MOST_PINGS: usize = 1_000;
/// How long it may take to say goodbye.
const PARTING: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// An open connection. Dropped, it is closed so that its session can be resumed.
pub struct Line {
    /// None: it is over.
    socket: Option<Socket>,
    inflate: Inflate,
    heart: Option<Heart>,
    /// The newest event that came.
    newest: Option<u64>,
    /// Pings that came since everything was sent.
    pings: usize,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A frame.
    Frame(String),
    /// It is over: the other side closed it, with this code if it gave one, or it broke.
    Closed(Option<u16>),
    /// A heartbeat was not acknowledged before the next one was due.
    Zombie,
    /// What came makes no sense, or is longer than anything that Discord sends.
    Garbled,
}

/// When heartbeats leave, and whether they are acknowledged (Discord's documentation, "Gateway", "Sending Heartbeats").
struct Heart {
    interval: Duration,
    next: Pin<Box<Sleep>>,
    /// When the oldest one was sent that is not acknowledged, later by as long as nothing was read since.
    unacknowledged: Option<Instant>,
}

impl Line {
    /// Connects.
    ///
    /// # Errors
    /// Why not, in plain words.
    pub async fn open(url: &str, connector: &Connector) -> Result<Self, String> {
        let address = format!("{url}/{QUERY}");
        let builder = ClientBuilder::new().uri(&address).map_err(|error| error.to_string())?;
        let limits = Limits::default().max_payload_len(Some(MAX_FRAME_BYTES));
        let (socket, _) = builder.limits(limits).connector(connector).connect().await.map_err(|error| deepest(&error))?;
        Ok(Self { socket: Some(socket), inflate: Inflate::new(), heart: None, newest: None, pings: 0 })
    }

    /// What comes next on it. It has to be asked again and again, or nothing is sent.
    pub async fn next(&mut self) -> Said {
        let said = poll_fn(|cx| self.poll(cx)).await;
        if matches!(said, Said::Closed(_)) {
            self.socket = None;
        }
        said
    }

    /// Says something.
    pub fn say(&mut self, payload: &Value) {
        if let Some(socket) = &mut self.socket {
            // That it is closed is heard next.
            let _ = socket.start_send_unpin(Message::text(payload.to_string()));
        }
    }

    /// Beats its heart in this interval, the first time after this part of it.
    pub fn beat_every(&mut self, interval: Duration, first: f64) {
        let next = Box::pin(sleep(interval.mul_f64(first.clamp(0.0, 1.0))));
        self.heart = Some(Heart { interval, next, unacknowledged: None });
    }

    /// The other side wants a heartbeat now.
    pub fn beat_now(&mut self) {
        // One that is under way is answer enough.
        if self.heart.as_ref().is_some_and(|heart| heart.unacknowledged.is_none()) {
            self.beat();
        }
    }

    /// A heartbeat was acknowledged. How long that took, if one was to be.
    pub fn acknowledged(&mut self) -> Option<Duration> {
        Some(self.heart.as_mut()?.unacknowledged.take()?.elapsed())
    }

    /// An event of this number came.
    pub fn came(&mut self, sequence: u64) {
        self.newest = Some(sequence);
    }

    /// Nothing was read for so long: an acknowledgement may have come meanwhile, so its deadline is later.
    pub fn postpone_acknowledgement(&mut self, by: Duration) {
        if let Some(heart) = &mut self.heart {
            heart.unacknowledged = heart.unacknowledged.map(|sent| (sent + by).min(Instant::now()));
        }
    }

    /// Sends heartbeats when they are due, without reading anything. It never ends.
    pub async fn keep_beating(&mut self) {
        poll_fn(|cx| {
            if self.poll_due(cx) {
                self.beat_on(cx);
            }
            if let Some(socket) = &mut self.socket {
                // That it is broken is noticed by the next read.
                let _ = socket.poll_flush_unpin(cx);
            }
            Poll::Pending
        })
        .await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        let missed = self.poll_heart(cx);
        let Some(socket) = &mut self.socket else { return Poll::Ready(Said::Closed(None)) };
        // What cannot be sent yet keeps nothing from being read.
        match socket.poll_flush_unpin(cx) {
            Poll::Ready(Ok(())) => self.pings = 0,
            Poll::Ready(Err(_)) => return Poll::Ready(Said::Closed(None)),
            Poll::Pending => {}
        }
        if missed == Missed::ForLong {
            return Poll::Ready(Said::Zombie);
        }
        loop {
            let message = match socket.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(Error::Io(_))) | None) => return Poll::Ready(Said::Closed(None)),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Said::Garbled),
                // What acknowledges it would have been read by now.
                Poll::Pending if missed == Missed::Now => return Poll::Ready(Said::Zombie),
                Poll::Pending => return Poll::Pending,
            };
            if let Some((code, _)) = message.as_close() {
                return Poll::Ready(Said::Closed(Some(code.into()).filter(|_| code != CloseCode::NO_STATUS_RECEIVED)));
            }
            let said = match message.as_text() {
                Some(text) => Some(Said::Frame(text.to_owned())),
                None if message.is_binary() => match self.inflate.take(message.as_payload()) {
                    Ok(frame) => frame.map(Said::Frame),
                    Err(_) => Some(Said::Garbled),
                },
                None if message.is_ping() => {
                    self.pings += 1;
                    (self.pings > MOST_PINGS).then_some(Said::Garbled)
                }
                None => None,
            };
            if let Some(said) = said {
                return Poll::Ready(said);
            }
        }
    }

    /// Sends a heartbeat if it is time for one. Whether the one before is not acknowledged.
    fn poll_heart(&mut self, cx: &mut Context<'_>) -> Missed {
        if !self.poll_due(cx) {
            return Missed::None;
        }
        // One that was asked for in between may still be under way.
        if let Some(Heart { interval, unacknowledged: Some(sent), .. }) = &self.heart
            && sent.elapsed() >= *interval * 9 / 10
        {
            return if sent.elapsed() >= *interval * 2 { Missed::ForLong } else { Missed::Now };
        }
        self.beat_on(cx);
        Missed::None
    }

    /// Whether the next heartbeat is due.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> bool {
        self.heart.as_mut().is_some_and(|heart| heart.next.as_mut().poll(cx).is_ready())
    }

    /// Sends a heartbeat, and the next one after the interval.
    fn beat_on(&mut self, cx: &mut Context<'_>) {
        if let Some(heart) = &mut self.heart {
            heart.next.as_mut().reset(Instant::now() + heart.interval);
            // It wakes whoever waits.
            let _ = heart.next.as_mut().poll(cx);
        }
        self.beat();
    }

    fn beat(&mut self) {
        self.say(&payload::heartbeat(self.newest));
        if let Some(heart) = &mut self.heart {
            heart.unacknowledged.get_or_insert_with(Instant::now);
        }
    }
}

/// Whether a heartbeat is not acknowledged though the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missed {
    None,
    Now,
    ForLong,
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        // Without a runtime it is cut, which keeps the session as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(part(socket));
        }
    }
}

/// Closes a connection, unless it is closing already.
async fn part(mut socket: Socket) {
    let parting = async {
        let code = CloseCode::try_from(CLOSE_TO_RESUME).ok();
        if socket.send(Message::close(code, "")).await.is_ok() {
            // What is said still will be told again.
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    // Who does not answer is left.
    let _ = timeout(PARTING, parting).await;
}

/// What lies deepest. The outer words only tell that connecting failed.
fn deepest(error: &Error) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message as Theirs;

    use super::*;

    #[tokio::test]
    async fn pings_are_answered_but_a_flood_of_them_ends_the_line() {
        for (pings, expected) in [(10, Said::Frame("{}".to_owned())), (MOST_PINGS * 10, Said::Garbled)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("ws://{}", listener.local_addr().unwrap());
            let accepted = async {
                let (stream, _) = listener.accept().await.unwrap();
                tokio_tungstenite::accept_async(stream).await.unwrap()
            };
            let (line, mut server) = tokio::join!(Line::open(&url, &Connector::Plain), accepted);
            let mut line = line.unwrap();
            for _ in 0..pings {
                server.feed(Theirs::Ping(Vec::new().into())).await.unwrap();
            }
            server.send(Theirs::text("{}")).await.unwrap();

            assert_eq!(line.next().await, expected);
        }
    }
}
