//! Opens a WebSocket with the HTTP client of the other requests, so that proxies are used, and the message of a refused upgrade is available.

use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded, Url};
use tokio::time::{Instant, timeout_at};

use super::body::of_error;
use super::failure::Broken;
use super::service::Service;
use crate::adapters::web_socket::WebSocket;
use crate::ports::language_model::NoAnswer;

/// The header in which Deepgram states why it refuses an upgrade.
const DG_ERROR: HeaderName = HeaderName::from_static("dg-error");
/// RFC 6455, 1.3.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

impl Service {
    /// Opens a socket at a path below the base URL. The segments and the values of the query may contain any character. A message of more than
    /// `max_message` bytes ends the connection.
    ///
    /// # Errors
    /// Returns an error if a segment is empty, `.` or `..`, if there is no connection, if the upgrade is refused, or if it takes longer than
    /// `patience`.
    pub async fn open_socket(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        max_message: usize,
        patience: Duration,
    ) -> Result<WebSocket, NoAnswer> {
        let unsendable = |why: String| self.failures.in_answer(Broken::Request(why));
        if let Some(segment) = path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(unsendable(format!("{segment:?} cannot be part of a URL; set [voice] voice to the id of a voice")));
        }
        let mut url = self.base_url.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => _ = segments.pop_if_empty().extend(path),
            Err(()) => return Err(unsendable("the base URL has no path".to_owned())),
        }
        url.query_pairs_mut().extend_pairs(query);
        let by = Instant::now() + patience;
        let upgraded = timeout_at(by, self.upgrade(url, by)).await;
        Ok(WebSocket::over(upgraded.unwrap_or(Err(NoAnswer::TimedOut { after: patience }))?, max_message))
    }

    async fn upgrade(&self, to: Url, by: Instant) -> Result<Upgraded, NoAnswer> {
        let Self { http, failures, .. } = self;
        let mut headers = self.headers.clone();
        let unreadable = |what: &str| failures.in_answer(Broken::Unreadable(what.to_owned()));
        let mut nonce = [0; 16];
        let filled = aws_lc_rs::rand::fill(&mut nonce);
        filled.map_err(|_| failures.in_answer(Broken::Request("this machine has no random numbers".to_owned())))?;
        let key = BASE64.encode(nonce);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.extend(HeaderValue::from_str(&key).ok().map(|key| (SEC_WEBSOCKET_KEY, key)));
        let response =
            http.send(http.request(Method::GET, to).headers(headers)).await.map_err(|error| failures.of_connection(error))?;
        let status = response.status();
        if status.is_success() {
            return Err(unreadable(&format!("{status}, and no WebSocket")));
        }
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let headers = response.headers().clone();
            let body = match headers.get(DG_ERROR) {
                Some(message) => message.as_bytes().to_vec(),
                None => of_error(response, by).await,
            };
            return Err(failures.of_status(status, &headers, &body));
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
        if accepted != accept(&key).as_bytes() {
            return Err(unreadable("it switched to another protocol than WebSocket"));
        }
        response.upgrade().await.map_err(|error| failures.of_connection(error))
    }
}

/// The value of `Sec-WebSocket-Accept` for this key (RFC 6455, 4.2.2).
fn accept(key: &str) -> String {
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), ACCEPT_GUID].concat()))
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};
    use reqwest::header::AUTHORIZATION;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::Message as ServerMessage;

    use super::super::failure::Failures;
    use super::*;
    use crate::adapters::web_socket::Received;

    const PATIENCE: Duration = Duration::from_secs(10);
    const MAX_MESSAGE: usize = 1_000;

    async fn listener() -> (TcpListener, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        (listener, to)
    }

    async fn opened(to: Url) -> Result<WebSocket, NoAnswer> {
        let key: secrecy::SecretString = "sk-secret".to_owned().into();
        let service = Service::new(to, Some(key.clone()), AUTHORIZATION, "Token ", &[]).unwrap();
        let service = Service { failures: Failures::new("http://there".into(), Some(key)), ..service };
        service.open_socket(&["v1", "listen"], &[("model", "a")], MAX_MESSAGE, PATIENCE).await
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
        Received::Closed { code, reason: reason.to_owned(), is_garbled: false }
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
        assert!(matches!(socket.next().await, Received::Closed { code: None, is_garbled: true, .. }));
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

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
