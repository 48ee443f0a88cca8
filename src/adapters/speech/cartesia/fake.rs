//! A small server on loopback that speaks as Cartesia does: each character is a tone of 60 ms at the voice's own pace, and contexts take turns.
//!
//! The library's tests use it, and so do the integration tests, which include this file. So all its paths are those of other crates.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

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
pub(crate) const KEY: &str = "sk_car_secret";
/// No voice and no model has this name.
pub(crate) const UNKNOWN: &str = "unknown";
/// The bytes of a millisecond: 24 kHz, 16 bits.
const BYTES_PER_MS: usize = 48;
/// The pace of the voices.
const CHAR_MS: f64 = 60.0;

/// What it does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Speaks, as documented.
    Speaks,
    /// Speaks, with samples cut between messages, words after their audio, and messages of contexts that nobody asked for.
    SpeaksOddly,
    /// Speaks without times.
    SpeaksWithoutTimes,
    /// Sends so many pieces of audio, and nothing more.
    Stalls(usize),
    /// Sends so many pieces of audio, and then an error, which names the context unless it says otherwise.
    Fails(usize, Value),
    /// Sends so many pieces of audio, and cuts the connection.
    Cuts(usize),
    /// Closes the connection with this code and reason.
    Closes(u16, &'static str),
    /// Speaks so many seconds of audio in small pieces.
    Floods(usize),
    /// Sends this text.
    Says(&'static str),
}

/// The server. It stops when it is dropped.
pub(crate) struct Fake {
    pub url: String,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Does>>,
    /// The messages of each connection.
    received: Mutex<Vec<Vec<Value>>>,
    cancelled: Notify,
    hangs_up: Notify,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// One that does this with the requests, one after the other, and then speaks as documented.
    pub async fn new(script: impl IntoIterator<Item = Does>) -> Self {
        let shared = Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), ..Shared::default() });
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

    /// The messages of each connection so far.
    pub fn received(&self) -> Vec<Vec<Value>> {
        lock(&self.shared.received).clone()
    }

    /// Waits until a context is cancelled.
    pub async fn cancelled(&self) {
        self.shared.cancelled.notified().await;
    }

    /// Closes a connection that nothing is sent on, as after five minutes.
    pub fn hang_up(&self) {
        self.shared.hangs_up.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic")
}

/// What is to be sent for one context.
struct Context {
    id: String,
    steps: VecDeque<Step>,
}

enum Step {
    Send(String),
    Cut,
    Close(u16, &'static str),
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // The type is that of the library.
    #[expect(clippy::result_large_err)]
    let accept = |request: &Request, response: Response| {
        let query = request.uri().query().unwrap_or_default();
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if request.uri().path() != "/tts/websocket" {
            return Err(refusal(404, "not_found", "Not found"));
        }
        if !query.contains("cartesia_version=20") && !header("cartesia-version").starts_with("20") {
            return Err(refusal(400, "version_required", "The API version is missing"));
        }
        let key = Some(header("x-api-key")).filter(|key| !key.is_empty()).or(header("authorization").strip_prefix("Bearer "));
        if key != Some(KEY) {
            return Err(refusal(401, "unauthorized", "Invalid API key"));
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, accept).await else { return };
    let connection = lock(&shared.received).len();
    lock(&shared.received).push(Vec::new());
    let _ = talk(&mut socket, &shared, connection).await;
    let _ = socket.close(None).await;
}

/// Answers what is received, and lets the contexts take turns. None: the connection ended.
async fn talk(socket: &mut WebSocketStream<TcpStream>, shared: &Shared, connection: usize) -> Option<()> {
    let mut contexts: VecDeque<Context> = VecDeque::new();
    // How much each context has spoken, in milliseconds.
    let mut spoken: BTreeMap<String, f64> = BTreeMap::new();
    loop {
        contexts.retain(|context| !context.steps.is_empty());
        let received = tokio::select! {
            biased;
            received = socket.next() => received?.ok()?,
            () = std::future::ready(()), if !contexts.is_empty() => {
                let mut context = contexts.pop_front()?;
                match context.steps.pop_front()? {
                    Step::Send(text) => socket.send(Message::text(text)).await.ok()?,
                    Step::Cut => return None,
                    Step::Close(code, reason) => {
                        return socket.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await.ok();
                    }
                }
                contexts.push_back(context);
                continue;
            }
            () = shared.hangs_up.notified() => return None,
        };
        let Message::Text(text) = received else { continue };
        let Ok(message) = serde_json::from_str::<Value>(&text) else {
            let error = json!({ "type": "error", "done": true, "status_code": 400, "error_code": "invalid_json", "title": "Invalid JSON", "message": "Messages are JSON." });
            socket.send(Message::text(error.to_string())).await.ok()?;
            continue;
        };
        lock(&shared.received)[connection].push(message.clone());
        let id = message["context_id"].as_str().unwrap_or_default().to_owned();
        if message["cancel"] == true {
            contexts.retain(|context| context.id != id);
            shared.cancelled.notify_one();
            continue;
        }
        let does = lock(&shared.script).pop_front().unwrap_or(Does::Speaks);
        let steps = steps(&message, &id, does, spoken.entry(id.clone()).or_default());
        match contexts.iter_mut().find(|context| context.id == id) {
            Some(context) => context.steps.extend(steps),
            None => contexts.push_back(Context { id, steps }),
        }
    }
}

fn steps(request: &Value, id: &str, does: Does, begin: &mut f64) -> VecDeque<Step> {
    let send = |message: Value| Step::Send(message.to_string());
    let failed = |status: u16, code: &str, title: &str, message: &str| {
        send(json!({
            "type": "error", "done": true, "status_code": status, "error_code": code, "title": title, "message": message,
            "request_id": "0b4a", "context_id": id,
        }))
    };
    if request["voice"]["id"] == UNKNOWN {
        return [failed(404, "voice_not_found", "Voice not found", "No voice has the ID unknown.")].into();
    }
    if request["model_id"] == UNKNOWN {
        return [failed(400, "model_not_found", "Invalid model", "The model is not valid, make sure it is a valid model ID.")]
            .into();
    }
    if request["output_format"] != json!({ "container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000 }) {
        return [failed(400, "invalid_output_format", "Invalid output format", "It makes raw audio at 24 kHz.")].into();
    }
    let speed = request["generation_config"]["speed"].as_f64().unwrap_or(1.0);
    if !(0.6..=1.5).contains(&speed) {
        return [failed(400, "invalid_speed", "Invalid speed", "Speed must be between 0.6 and 1.5.")].into();
    }
    let transcript = request["transcript"].as_str().unwrap_or_default();
    if transcript.trim().is_empty() && request["continue"] != true {
        return [send(done(id))].into();
    }
    let mut spoken =
        |is_odd: bool, times: bool| spoken(id, transcript, speed, is_odd, times && request["add_timestamps"] == true, begin);
    let mut audio = |pieces: usize| spoken(false, false).into_iter().map(send).take(pieces);
    match does {
        // More may follow in the same context.
        Does::Speaks if request["continue"] == true => spoken(false, true).into_iter().map(send).collect(),
        Does::Speaks => spoken(false, true).into_iter().chain([done(id)]).map(send).collect(),
        Does::SpeaksOddly => {
            let stray = json!({ "type": "chunk", "context_id": "stray", "data": "AAAA", "done": false, "status_code": 206, "step_time": 1 });
            let strays = [
                stray,
                json!({ "type": "news" }),
                json!({ "type": "flush_done", "context_id": id, "done": false, "flush_done": true, "flush_id": 1, "status_code": 206 }),
            ];
            strays.into_iter().chain(spoken(true, true)).chain([done(id)]).map(send).collect()
        }
        Does::SpeaksWithoutTimes => audio(usize::MAX).chain([send(done(id))]).collect(),
        Does::Stalls(pieces) => audio(pieces).collect(),
        Does::Fails(pieces, mut error) => {
            error["type"] = "error".into();
            error["done"] = true.into();
            if error.get("context_id").is_none() {
                error["context_id"] = id.into();
            }
            audio(pieces).chain([send(error)]).collect()
        }
        Does::Cuts(pieces) => audio(pieces).chain([Step::Cut]).collect(),
        Does::Closes(code, reason) => [Step::Close(code, reason)].into(),
        Does::Floods(secs) => (0..secs * 50).map(|_| send(chunk(id, &tone(20)))).chain([send(done(id))]).collect(),
        Does::Says(text) => [Step::Send(text.to_owned())].into(),
    }
}

/// The words of a text with their times, and their audio. Times come before their audio, unless it is odd.
fn spoken(id: &str, transcript: &str, speed: f64, is_odd: bool, has_times: bool, begin: &mut f64) -> Vec<Value> {
    let (mut messages, mut odd) = (Vec::new(), Vec::new());
    for word in transcript.split_inclusive(char::is_whitespace) {
        let millis = (word.chars().count() as f64 * CHAR_MS / speed).floor();
        let voiced = word.trim_end().chars().count() as f64 * CHAR_MS / speed;
        let times = json!({
            "type": "timestamps", "context_id": id, "done": false, "status_code": 206,
            "word_timestamps": { "words": [word.trim()], "start": [*begin / 1_000.0], "end": [(*begin + voiced.min(millis)) / 1_000.0] },
        });
        let times = Some(times).filter(|_| has_times && !word.trim().is_empty());
        let mut audio: Vec<u8> = std::mem::take(&mut odd);
        audio.extend(tone(millis as usize));
        if is_odd {
            odd = audio.split_off(audio.len() - audio.len() % 2 - 1);
        }
        *begin += millis;
        let audio = Some(chunk(id, &audio));
        messages.extend(if is_odd { [audio, times] } else { [times, audio] }.into_iter().flatten());
    }
    if !odd.is_empty() {
        messages.push(chunk(id, &odd));
    }
    messages
}

fn chunk(id: &str, audio: &[u8]) -> Value {
    json!({ "type": "chunk", "context_id": id, "data": STANDARD.encode(audio), "done": false, "status_code": 206, "step_time": 12.5 })
}

fn done(id: &str) -> Value {
    json!({ "type": "done", "context_id": id, "done": true, "status_code": 206 })
}

fn refusal(status: u16, code: &str, message: &str) -> ErrorResponse {
    let body = json!({ "error_code": code, "title": "Refused", "message": message, "request_id": "0b4a" }).to_string();
    let response = tokio_tungstenite::tungstenite::http::Response::builder().status(status);
    response.header("content-type", "application/json").body(Some(body)).expect("a response")
}

/// A quiet tone of so many milliseconds.
fn tone(millis: usize) -> Vec<u8> {
    (0..millis * BYTES_PER_MS / 2).flat_map(|sample| ((sample % 120) as i16 * 50 - 3_000).to_le_bytes()).collect()
}
