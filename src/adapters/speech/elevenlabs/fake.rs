//! A small server on loopback that speaks as ElevenLabs does: each character is a tone of 60 ms at the voice's own pace.
//!
//! The library's tests use it, and so do the integration tests, which include this file. So all its paths are those of other crates.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// The key that is accepted.
pub(crate) const KEY: &str = "el-secret";
/// No voice and no model has this name.
pub(crate) const UNKNOWN: &str = "unknown";
/// The bytes of a millisecond: 24 kHz, 16 bits.
const BYTES_PER_MS: usize = 48;
/// The pace of the voices.
const CHAR_MS: f64 = 60.0;
/// The characters of a message.
const CHARS: usize = 8;
/// The connection is closed when no text arrives for this long.
const INACTIVITY: Duration = Duration::from_secs(20);

/// How it speaks at one connection.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// How the times of characters come.
    pub times: Times,
    /// Whether samples are cut between messages.
    pub is_odd: bool,
    /// The number of messages with audio, and what the server does instead of sending the rest.
    pub then: Option<(usize, Then)>,
}

impl Default for Manner {
    fn default() -> Self {
        Self { times: Times::OfMessage, is_odd: false, then: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// They count from the beginning of the message.
    OfMessage,
    /// They count from the beginning of the audio.
    OfAudio,
    /// They are those of the text as it is spoken, and have other names.
    Normalized,
    Absent,
}

#[derive(Clone, Debug)]
pub(crate) enum Then {
    Stalls,
    Cuts,
    Closes(u16, &'static str),
    /// An error with this name and message, and then the end.
    Fails(&'static str, &'static str),
}

/// One connection as it was used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    pub voice: String,
    pub query: BTreeMap<String, String>,
    pub messages: Vec<Value>,
    /// Whether it was ended before the audio was.
    pub is_cut_off: bool,
}

/// The server. It stops when it is dropped.
pub(crate) struct Fake {
    pub url: String,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    manners: Mutex<VecDeque<Manner>>,
    connections: Mutex<Vec<Connection>>,
    cut_off: Notify,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// One that speaks in these manners, one after the other, and then as documented.
    pub async fn new(manners: impl IntoIterator<Item = Manner>) -> Self {
        let shared = Arc::new(Shared { manners: Mutex::new(manners.into_iter().collect()), ..Shared::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone()));
            }
        });
        Self { url, shared, task: task.abort_handle() }
    }

    /// One that speaks in this manner at first.
    pub async fn with(times: Times, is_odd: bool, then: Option<(usize, Then)>) -> Self {
        Self::new([Manner { times, is_odd, then }]).await
    }

    /// The connections so far.
    pub fn connections(&self) -> Vec<Connection> {
        lock(&self.shared.connections).clone()
    }

    /// Waits until a connection is ended before the audio is.
    pub async fn cut_off(&self) {
        self.shared.cut_off.notified().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic")
}

/// What a connection speaks, and how.
struct Speaker {
    manner: Manner,
    number: usize,
    connection: Connection,
    shared: Arc<Shared>,
    speed: f64,
    /// The text that waits for more.
    buffer: String,
    /// The number of messages with audio.
    sent: usize,
    /// The audio so far in milliseconds.
    spoken_ms: f64,
    /// The byte that comes with the next message.
    odd: Vec<u8>,
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut connection = Connection::default();
    // The type is that of the library.
    #[expect(clippy::result_large_err)]
    let accept = |request: &Request, response: Response| {
        let segments: Vec<&str> = request.uri().path().split('/').collect();
        let query = request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        connection.query = query.map(|(name, value)| (unescaped(name), unescaped(value))).collect();
        let ["", "v1", "text-to-speech", voice, "stream-input"] = segments[..] else {
            return Err(refusal(404, &json!({ "detail": "Not Found" })));
        };
        connection.voice = unescaped(voice);
        if request.headers().get("xi-api-key").is_none_or(|key| key.as_bytes() != KEY.as_bytes()) {
            return Err(refusal(401, &json!({ "detail": { "status": "invalid_api_key", "message": "Invalid API key" } })));
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, accept).await else { return };
    let manner = lock(&shared.manners).pop_front().unwrap_or_default();
    let number = lock(&shared.connections).len();
    lock(&shared.connections).push(connection.clone());
    let mut speaker = Speaker {
        manner,
        number,
        connection,
        shared,
        speed: 1.0,
        buffer: String::new(),
        sent: 0,
        spoken_ms: 0.0,
        odd: Vec::new(),
    };
    let is_complete = speaker.talk(&mut socket).await.is_some();
    if is_complete {
        close(&mut socket, 1_000, "").await;
    }
    if !is_complete {
        lock(&speaker.shared.connections)[number].is_cut_off = true;
        speaker.shared.cut_off.notify_one();
    }
}

impl Speaker {
    /// Answers what is received. None: the connection was ended too early.
    async fn talk(&mut self, socket: &mut WebSocketStream<TcpStream>) -> Option<()> {
        let is_auto = self.is("auto_mode", "true");
        loop {
            let Ok(received) = tokio::time::timeout(INACTIVITY, socket.next()).await else {
                return self
                    .fail(
                        socket,
                        "input_timeout_exceeded",
                        "Have not received a new text input within the timeout of 20 seconds.",
                    )
                    .await;
            };
            let Ok(Message::Text(text)) = received? else { return None };
            let Ok(message) = serde_json::from_str::<Value>(&text) else {
                return self.fail(socket, "invalid_message", "Messages are JSON.").await;
            };
            lock(&self.shared.connections)[self.number].messages.push(message.clone());
            let Some(text) = message["text"].as_str() else {
                return self.fail(socket, "invalid_message", "A message has a text.").await;
            };
            if self.connection.messages.is_empty() && text != " " {
                return self.fail(socket, "invalid_message", "The first text is a space.").await;
            }
            if let Some(speed) = message["voice_settings"]["speed"].as_f64() {
                if !(0.7..=1.2).contains(&speed) {
                    return self
                        .fail(
                            socket,
                            "invalid_voice_settings",
                            "Invalid setting for speed received: it must be between 0.7 and 1.2.",
                        )
                        .await;
                }
                self.speed = speed;
            }
            self.connection.messages.push(message.clone());
            self.buffer.push_str(text.trim_start());
            if self.connection.voice == UNKNOWN {
                return self.fail(socket, "voice_not_found", "A voice with voice_id 'unknown' does not exist.").await;
            }
            if self.is("model_id", UNKNOWN) {
                return self.fail(socket, "model_not_found", "A model with model ID unknown does not exist.").await;
            }
            if text.is_empty() || message["flush"] == true || is_auto {
                self.speak(socket).await?;
            }
            if text.is_empty() {
                let audio = std::mem::take(&mut self.odd);
                if !audio.is_empty() {
                    send(socket, &json!({ "audio": STANDARD.encode(audio), "isFinal": null })).await?;
                }
                return send(socket, &json!({ "audio": null, "isFinal": true, "normalizedAlignment": null, "alignment": null }))
                    .await;
            }
        }
    }

    /// Sends the audio of the text that waits.
    async fn speak(&mut self, socket: &mut WebSocketStream<TcpStream>) -> Option<()> {
        let chars: Vec<char> = std::mem::take(&mut self.buffer).chars().collect();
        let is_synchronous = self.is("sync_alignment", "true");
        for (number, chars) in chars.chunks(CHARS).enumerate() {
            if let Some((after, then)) = self.manner.then.clone()
                && self.sent >= after
            {
                return self.end(socket, then).await;
            }
            let char_ms = CHAR_MS / self.speed;
            let begin = if self.manner.times == Times::OfAudio { self.spoken_ms } else { 0.0 };
            let starts: Vec<u64> = (0..chars.len()).map(|char| (begin + char_ms * char as f64) as u64).collect();
            self.spoken_ms += char_ms * chars.len() as f64;
            let mut audio = std::mem::take(&mut self.odd);
            audio.extend(tone((char_ms * chars.len() as f64) as usize));
            if self.manner.is_odd {
                self.odd = audio.split_off(audio.len() - audio.len() % 2 - 1);
            }
            let chars: Vec<String> = chars.iter().map(char::to_string).collect();
            let durations = vec![char_ms as u64; chars.len()];
            let mut message =
                json!({ "audio": STANDARD.encode(audio), "isFinal": null, "normalizedAlignment": null, "alignment": null });
            if is_synchronous || number == 0 {
                let aligned = json!({ "chars": chars, "charStartTimesMs": starts, "charDurationsMs": durations });
                match self.manner.times {
                    Times::Absent => {}
                    Times::OfMessage | Times::OfAudio => {
                        message["normalizedAlignment"] = aligned.clone();
                        message["alignment"] = aligned;
                    }
                    Times::Normalized => {
                        message["normalizedAlignment"] =
                            json!({ "chars": chars, "char_start_times_ms": starts, "chars_durations_ms": durations });
                    }
                }
            }
            send(socket, &message).await?;
            self.sent += 1;
        }
        Some(())
    }

    async fn end(&self, socket: &mut WebSocketStream<TcpStream>, then: Then) -> Option<()> {
        match then {
            Then::Stalls => while matches!(socket.next().await, Some(Ok(Message::Text(_)))) {},
            Then::Cuts => {}
            Then::Closes(code, reason) => close(socket, code, reason).await,
            Then::Fails(error, message) => return self.fail(socket, error, message).await,
        }
        None
    }

    /// Sends an error, and closes the connection.
    async fn fail(&self, socket: &mut WebSocketStream<TcpStream>, error: &str, message: &str) -> Option<()> {
        send(socket, &json!({ "message": message, "error": error, "code": 1008 })).await?;
        close(socket, 1_008, message).await;
        None
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.connection.query.get(name).is_some_and(|sent| sent == value)
    }
}

async fn send(socket: &mut WebSocketStream<TcpStream>, message: &Value) -> Option<()> {
    socket.send(Message::text(message.to_string())).await.ok()
}

async fn close(socket: &mut WebSocketStream<TcpStream>, code: u16, reason: &str) {
    let reason: String = reason.chars().take(120).collect();
    let _ = socket.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await;
    // Unread messages would reset the connection before the client has read what was sent.
    let _ = tokio::time::timeout(INACTIVITY, async { while let Some(Ok(_)) = socket.next().await {} }).await;
}

fn refusal(status: u16, body: &Value) -> ErrorResponse {
    let response = tokio_tungstenite::tungstenite::http::Response::builder().status(status);
    response.header("content-type", "application/json").body(Some(body.to_string())).expect("a response")
}

/// A quiet tone of so many milliseconds.
fn tone(millis: usize) -> Vec<u8> {
    (0..millis * BYTES_PER_MS / 2).flat_map(|sample| ((sample % 120) as i16 * 50 - 3_000).to_le_bytes()).collect()
}

/// A part of a URL without its escapes.
fn unescaped(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let code =
            after.get(..2).and_then(|code| std::str::from_utf8(code).ok()).and_then(|code| u8::from_str_radix(code, 16).ok());
        (bytes, rest) = match (first, code) {
            (b'%', Some(code)) => ([bytes, vec![code]].concat(), &after[2..]),
            (b'+', _) => ([bytes, vec![b' ']].concat(), after),
            _ => ([bytes, vec![*first]].concat(), after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
