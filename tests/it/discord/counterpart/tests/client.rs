//! Minimal clients for tests: a WebSocket and an HTTP client.

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::super::{Counterpart, Id, Intents};
use crate::discord::home::Home;
use crate::harness::PATIENCE;

/// The intents of most sessions here.
pub const INTENTS: Intents = Intents::GUILDS
    .union(Intents::GUILD_MESSAGES)
    .union(Intents::DIRECT_MESSAGES)
    .union(Intents::GUILD_WEBHOOKS)
    .union(Intents::MESSAGE_CONTENT);

/// A connection to the gateway.
pub struct Socket {
    ws: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The sequence number of the newest event.
    pub sequence: u64,
}

impl Socket {
    /// Connects to a URL, and does not wait for HELLO.
    pub async fn connect(url: &str) -> Self {
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("in time");
        Self { ws: connected.expect("a WebSocket").0, sequence: 0 }
    }

    /// Connects to the gateway and receives HELLO.
    pub async fn open(discord: &Counterpart) -> Self {
        let mut socket = Self::connect(&format!("{}/?v=10&encoding=json", discord.gateway_url())).await;
        assert_eq!(socket.op().await["op"], 10);
        socket
    }

    /// Connects and identifies as the only shard. Returns the data of READY as well.
    pub async fn ready(discord: &Counterpart, intents: Intents) -> (Self, Value) {
        let mut socket = Self::open(discord).await;
        socket.identify(&discord.token(), intents, json!([0, 1])).await;
        let ready = socket.event("READY").await;
        (socket, ready)
    }

    pub async fn identify(&mut self, token: &str, intents: Intents, shard: Value) {
        let properties = json!({ "os": "linux", "browser": "raw", "device": "raw" });
        let data = json!({ "token": token, "intents": intents, "shard": shard, "properties": properties });
        self.send(&json!({ "op": 2, "d": data })).await;
    }

    pub async fn resume(&mut self, token: &str, session: &Value, sequence: u64) {
        self.send(&json!({ "op": 6, "d": { "token": token, "session_id": session, "seq": sequence } })).await;
    }

    pub async fn send(&mut self, payload: &Value) {
        self.send_raw(Message::text(payload.to_string())).await;
    }

    pub async fn send_raw(&mut self, message: Message) {
        self.ws.send(message).await.expect("an open connection");
    }

    /// The next payload, or none when the connection has ended.
    pub async fn next(&mut self) -> Option<Value> {
        match self.read().await? {
            Message::Text(text) => {
                let payload: Value = serde_json::from_str(&text).expect("JSON");
                self.sequence = payload["s"].as_u64().unwrap_or(self.sequence);
                Some(payload)
            }
            Message::Close(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// The next frame of any kind, or none when the connection broke.
    pub async fn read(&mut self) -> Option<Message> {
        timeout(PATIENCE, self.ws.next()).await.expect("in time")?.ok()
    }

    /// The next payload. Panics when the connection has ended.
    pub async fn op(&mut self) -> Value {
        self.next().await.expect("a payload")
    }

    /// Waits for an event and returns its data. Skips other events.
    pub async fn event(&mut self, name: &str) -> Value {
        loop {
            let payload = self.op().await;
            if payload["t"] == name {
                return payload["d"].clone();
            }
        }
    }

    /// Waits for the end of the connection. Returns the close code, or none if it broke.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            match self.read().await {
                Some(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Some(_) => {}
                None => return None,
            }
        }
    }

    /// Closes the connection with a code.
    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        // The result does not matter to the side that closes.
        let _ = self.ws.close(Some(frame)).await;
    }
}

/// A client of the REST API.
pub struct Rest {
    http: reqwest::Client,
    api: String,
    pub token: String,
    pub agent: &'static str,
}

/// A home, and a client of its API.
pub async fn home() -> (Home, Rest) {
    let home = Home::new().await;
    let rest = Rest::new(&home.discord);
    (home, rest)
}

/// A response of the REST API.
#[derive(Debug)]
pub struct RestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl RestResponse {
    /// Status and Discord's own code.
    pub fn refusal(&self) -> (u16, u64) {
        (self.status, self.body["code"].as_u64().unwrap_or_default())
    }

    /// A header as text. Empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The id in the body. Panics if there is none.
    pub fn id(&self) -> Id {
        Id::read(&self.body["id"]).unwrap_or_else(|| panic!("{self:?}"))
    }
}

impl Rest {
    pub fn new(discord: &Counterpart) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let api = format!("{}/api/v10", discord.api_url());
        Self { http, api, token: discord.token(), agent: "DiscordBot (https://example.org, 1)" }
    }

    pub async fn ask(&self, method: Method, path: &str, body: Value) -> RestResponse {
        self.try_ask(method, path, body).await.expect("an answer")
    }

    /// Sends a request. Returns an error when the connection is cut.
    pub async fn try_ask(&self, method: Method, path: &str, body: Value) -> Result<RestResponse, reqwest::Error> {
        let mut request = self.http.request(method, format!("{}{path}", self.api)).header("user-agent", self.agent);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bot {}", self.token));
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let answered = async {
            let response = request.send().await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let text = response.text().await?;
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            Ok(RestResponse { status, headers, body })
        };
        timeout(PATIENCE, answered).await.expect("in time")
    }

    pub async fn get(&self, path: &str) -> RestResponse {
        self.ask(Method::GET, path, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> RestResponse {
        self.ask(Method::POST, path, body).await
    }

    pub async fn delete(&self, path: &str) -> RestResponse {
        self.ask(Method::DELETE, path, Value::Null).await
    }

    /// Posts a text in a channel as the bot.
    pub async fn say(&self, channel: Id, text: &str) -> RestResponse {
        self.post(&format!("/channels/{channel}/messages"), json!({ "content": text })).await
    }

    /// Creates a webhook. Returns its id and the path with its token.
    pub async fn webhook(&self, channel: Id, name: &str) -> (Id, String) {
        let made = self.post(&format!("/channels/{channel}/webhooks"), json!({ "name": name })).await;
        assert_eq!(made.status, 200, "{made:?}");
        (made.id(), format!("/webhooks/{}/{}", made.id(), made.body["token"].as_str().expect("a token")))
    }
}
