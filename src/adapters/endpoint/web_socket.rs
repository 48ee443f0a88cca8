//! A WebSocket to a service. Sending never waits: what cannot be sent yet is sent while the socket is polled.
//!
//! It is opened by the client of the other requests, so that proxies are used, and a refused upgrade comes with its message.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Client, Response, StatusCode, Upgraded, Url};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, CloseCode, Limits, Message, WebSocketStream};

use super::failure::{Broken, Failures};
use crate::ports::language_model::NoAnswer;

/// The most unanswered pings. A peer that sends more does not read the answers, which would fill the memory.
const MOST_PINGS: usize = 1_000;
/// The timeout of the close handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of the body of a refused upgrade is read to find its message.
const MAX_REFUSAL_BYTES: usize = 16 * 1024;
/// With more bytes than this that the peer has not taken, the socket is congested.
const CONGESTED: usize = 256 * 1024;
/// Where Deepgram says why it refuses an upgrade.
const DG_ERROR: HeaderName = HeaderName::from_static("dg-error");
/// RFC 6455, 1.3.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// An open socket. Dropping it cuts the connection.
pub(in crate::adapters) struct WebSocket {
    stream: WebSocketStream<Box<dyn Io>>,
    /// Pings that arrived since everything was sent.
    pings: usize,
    /// The bytes of messages that were queued since everything was sent.
    unsent: usize,
    /// Whether [`Received::Drained`] will come.
    is_congested: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::adapters) enum Received {
    Text(String),
    Binary(Vec<u8>),
    /// All that was queued is sent, after the socket was congested.
    Drained,
    /// Nothing follows. With a code and a reason if the peer sent them.
    Closed {
        code: Option<u16>,
        reason: String,
    },
}

impl WebSocket {
    /// Opens a socket at `http://…` or `https://…`. A message from the peer of more than `max_message` bytes ends the connection.
    ///
    /// # Errors
    /// No connection, a refused upgrade, or none within `patience`.
    pub async fn open(
        http: &Client,
        failures: &Failures,
        to: Url,
        headers: HeaderMap,
        max_message: usize,
        patience: Duration,
    ) -> Result<Self, NoAnswer> {
        let opening = open(http, failures, to, headers);
        let upgraded = timeout(patience, opening).await.unwrap_or(Err(NoAnswer::TimedOut { after: patience }))?;
        Ok(Self::over(upgraded, max_message))
    }

    /// A socket over a connection that was upgraded already.
    pub(in crate::adapters) fn over(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, max_message: usize) -> Self {
        let limits = Limits::default().max_payload_len(Some(max_message));
        let stream = ClientBuilder::new().limits(limits).take_over(Box::new(io) as Box<dyn Io>);
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

    /// Whether the peer does not take what is sent. Then send nothing more until [`Received::Drained`].
    pub const fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Receives the next message, and sends what is queued. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Received {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Closes the connection in the background.
    pub fn close(mut self) {
        let closing = async move {
            let closed = async {
                if self.stream.send(Message::close(Some(CloseCode::NORMAL_CLOSURE), "")).await.is_ok() {
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

    fn send(&mut self, length: usize, message: Message) {
        self.unsent += length;
        self.is_congested |= self.unsent > CONGESTED;
        // A closed connection is reported by the next read.
        let _ = self.stream.start_send_unpin(message);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        // Reading continues while data cannot be sent yet.
        match self.stream.poll_flush_unpin(cx) {
            Poll::Ready(Ok(())) => {
                (self.pings, self.unsent) = (0, 0);
                if std::mem::take(&mut self.is_congested) {
                    return Poll::Ready(Received::Drained);
                }
            }
            // What the peer said before it closed is still to be read.
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        loop {
            let message = match self.stream.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Received::Closed { code: None, reason: error.to_string() });
                }
                Poll::Ready(None) => return Poll::Ready(Received::Closed { code: None, reason: String::new() }),
                Poll::Pending => return Poll::Pending,
            };
            if let Some((code, reason)) = message.as_close() {
                let code = Some(code.into()).filter(|_| code != CloseCode::NO_STATUS_RECEIVED);
                return Poll::Ready(Received::Closed { code, reason: reason.to_owned() });
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
                    return Poll::Ready(Received::Closed { code: None, reason: "too many pings".to_owned() });
                }
            }
        }
    }
}

async fn open(http: &Client, failures: &Failures, to: Url, mut headers: HeaderMap) -> Result<Upgraded, NoAnswer> {
    let unreadable = |what: &str| failures.in_answer(Broken::Unreadable(what.to_owned()));
    let mut nonce = [0; 16];
    let filled = aws_lc_rs::rand::fill(&mut nonce);
    filled.map_err(|_| failures.in_answer(Broken::Request("this machine has no random numbers".to_owned())))?;
    let key = BASE64.encode(nonce);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.extend(HeaderValue::from_str(&key).ok().map(|key| (SEC_WEBSOCKET_KEY, key)));
    let response = http.get(to).headers(headers).send().await.map_err(|error| failures.of_connection(error))?;
    let status = response.status();
    if status.is_success() {
        return Err(unreadable(&format!("{status}, and no WebSocket")));
    }
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let headers = response.headers().clone();
        let body = message(response).await;
        return Err(failures.of_status(status, &headers, &body));
    }
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
    if accepted != accept(&key).as_bytes() {
        return Err(unreadable("it switched to another protocol than WebSocket"));
    }
    response.upgrade().await.map_err(|error| failures.of_connection(error))
}

/// The message of a refused upgrade: a header, or the body.
async fn message(mut response: Response) -> Vec<u8> {
    let header = response.headers().get(DG_ERROR).map(|message| message.as_bytes().to_vec());
    let mut body = Vec::new();
    while header.is_none()
        && body.len() < MAX_REFUSAL_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_REFUSAL_BYTES);
    header.unwrap_or(body)
}

/// The answer that a server gives to this key (RFC 6455, 4.2.2).
fn accept(key: &str) -> String {
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), ACCEPT_GUID].concat()))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::Message as ServerMessage;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const MAX_MESSAGE: usize = 1_000;

    async fn listener() -> (TcpListener, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("http://{}/v1/listen?model=a", listener.local_addr().unwrap()).parse().unwrap();
        (listener, to)
    }

    async fn opened(to: Url) -> Result<WebSocket, NoAnswer> {
        let http = Client::builder().no_proxy().http1_only().build().unwrap();
        let failures = Failures::new("http://there".into(), Some("sk-secret".to_owned().into()));
        let headers = HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, HeaderValue::from_static("Token sk-secret"))]);
        WebSocket::open(&http, &failures, to, headers, MAX_MESSAGE, PATIENCE).await
    }

    /// What opening returns if the server answers this.
    async fn refused(answer: &str) -> NoAnswer {
        let (listener, to) = listener().await;
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4_096];
            let read = stream.read(&mut head).await.unwrap();
            assert!(head[..read].ends_with(b"\r\n\r\n"));
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(opened(to), serving).0.err().expect("refused")
    }

    async fn accepted(listener: TcpListener) -> tokio_tungstenite::WebSocketStream<TcpStream> {
        tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.unwrap()
    }

    fn closed(code: Option<u16>, reason: &str) -> Received {
        Received::Closed { code, reason: reason.to_owned() }
    }

    #[tokio::test]
    async fn messages_go_both_ways_and_one_that_is_too_long_ends_the_connection() {
        let (listener, to) = listener().await;
        let (socket, mut server) = tokio::join!(opened(to), accepted(listener));
        let mut socket = socket.unwrap();

        socket.send_text("one".to_owned());
        socket.send_binary(vec![1, 2]);
        for message in [ServerMessage::text("three"), ServerMessage::binary(vec![4]), ServerMessage::text("x".repeat(1_001))] {
            server.send(message).await.unwrap();
        }
        let received = [socket.next().await, socket.next().await];
        let heard = [server.next().await.unwrap().unwrap(), server.next().await.unwrap().unwrap()];

        assert_eq!(received, [Received::Text("three".to_owned()), Received::Binary(vec![4])]);
        assert_eq!(heard, [ServerMessage::text("one"), ServerMessage::binary(vec![1, 2])]);
        assert!(matches!(socket.next().await, Received::Closed { code: None, .. }));
    }

    #[tokio::test]
    async fn a_refused_upgrade_returns_the_message_without_the_key() {
        let header = refused("HTTP/1.1 400 Bad Request\r\ndg-error: no such model sk-secret\r\ncontent-length: 0\r\n\r\n").await;
        let body =
            refused("HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 21\r\n\r\n{\"message\":\"too many\"}")
                .await;
        let key = refused("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await;
        let page = refused("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        let other = refused("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n").await;

        assert_eq!(header.to_string(), "http://there refused: 400 Bad Request: “no such model ***” (check base_url and model)");
        assert!(matches!(&body, NoAnswer::Overloaded { retry_after: Some(_), .. }), "{body:?}");
        assert_eq!([key.code(), page.code(), other.code()], ["key_rejected", "refused", "refused"]);
    }

    #[tokio::test]
    async fn the_code_and_the_reason_of_the_end_are_reported() {
        let (listener, to) = listener().await;
        let (socket, mut server) = tokio::join!(opened(to), accepted(listener));
        let mut socket = socket.unwrap();
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code: 1011.into(), reason: "NET-0001".into() };

        server.close(Some(frame)).await.unwrap();

        assert_eq!(socket.next().await, closed(Some(1011), "NET-0001"));
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_congests_the_socket_until_it_does() {
        let (ours, theirs) = tokio::io::duplex(1_000);
        let mut socket = WebSocket::over(ours, MAX_MESSAGE);
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

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
