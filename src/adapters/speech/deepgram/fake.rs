//! A Deepgram for tests, as its documentation and its own clients describe it, with everything that goes wrong there.
//!
//! It knows what is said from the audio itself: a frame of 20 ms names the word that it belongs to ([`frame`]). The connection that hears the middle
//! of a word recognises it. So if a connection begins within a word, either it or the one before recognises the word. It records what it
//! recognised.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use self::ear::Ear;
use self::turns::Turns;

// The tests of the whole program include this file by its path, too.
#[path = "fake/ear.rs"]
mod ear;
#[path = "fake/turns.rs"]
mod turns;

/// The samples of a frame: 20 ms.
pub const FRAME: usize = 320;
/// The second sample of a frame that names a word.
const MARK: i16 = 0x5a5a;
/// The key that it accepts.
pub const KEY: &str = "good-key";
/// A connection is ended when nothing arrives on it for this long.
const IDLE: Duration = Duration::from_secs(10);

/// How it behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    pub seed: u64,
    /// Milliseconds from audio to result, at least and at most.
    pub latency_ms: (u64, u64),
    /// The share of `Finalize` without an answer, with a late one, and with two.
    pub unanswered: f64,
    pub late: f64,
    pub doubled: f64,
    /// Whether `Finalize` is answered if there is nothing to return.
    pub answers_nothing: bool,
    /// The number of frames after which the connection is cut.
    pub cut_after: Option<u64>,
    /// The frames of silence that end an utterance. With more than the client sends, words are held until `Finalize`.
    pub endpoint: u64,
    /// Long speech has finals after this many frames.
    pub longest: u64,
    /// How far the times of words are off, in milliseconds.
    pub shift_ms: u64,
    /// Every upgrade is refused with this.
    pub refuses: Option<(u16, &'static str)>,
    /// What it sends first.
    pub begins_with: Option<&'static str>,
    /// Version 2: whether turns can be ended, and whether words have times.
    pub ends_turns: bool,
    pub has_word_times: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            seed: 1,
            latency_ms: (100, 100),
            unanswered: 0.0,
            late: 0.0,
            doubled: 0.0,
            answers_nothing: false,
            cut_after: None,
            endpoint: 15,
            longest: u64::MAX,
            shift_ms: 0,
            refuses: None,
            begins_with: None,
            ends_turns: true,
            has_word_times: true,
        }
    }
}

/// What it heard and returned.
#[derive(Debug, Default)]
pub struct Book {
    pub connections: usize,
    /// The path and the query of the newest connection.
    pub asked: String,
    /// The words of which it heard the middle.
    pub heard: Vec<i16>,
    /// The words of finals that were sent.
    pub returned: Vec<i16>,
    /// The messages that are text.
    pub texts: Vec<String>,
    pub frames: u64,
    /// The codes with which it ended connections.
    pub ends: Vec<u16>,
    /// Version 1: the texts of the next utterances without marks.
    pub texts_to_hear: VecDeque<&'static str>,
    /// Every upgrade is refused with this from now on.
    pub refuses: Option<(u16, &'static str)>,
}

/// A shared book.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<Book>>);

impl Books {
    pub fn open(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap()
    }
}

/// The audio of a frame of a word, or of silence, if the word is 0. A negative word is noise.
pub fn frame(word: i16, position: i16, frames: i16) -> Vec<i16> {
    let mut samples = vec![0; FRAME];
    if word != 0 {
        samples[..4].copy_from_slice(&[word, MARK, position, frames]);
    }
    samples
}

/// The text of a word.
pub fn text(word: i16) -> String {
    format!("word{word}")
}

/// What a frame is.
enum Frame {
    Silence,
    Noise,
    Word { number: i16, is_middle: bool },
}

impl Frame {
    fn of(bytes: &[u8]) -> Self {
        let sample = |place: usize| i16::from_le_bytes([bytes[2 * place], bytes[2 * place + 1]]);
        match [0, 1, 2, 3].map(sample) {
            [number @ 1..=i16::MAX, MARK, position, frames] => Self::Word { number, is_middle: position == frames / 2 },
            _ if bytes.iter().any(|byte| *byte != 0) => Self::Noise,
            _ => Self::Silence,
        }
    }
}

/// Random numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn is(&mut self, share: f64) -> bool {
        (self.below(1_000_000) as f64) < share * 1e6
    }
}

/// What is to be sent.
struct Due {
    at: Instant,
    message: Message,
    /// The words that are final with it.
    words: Vec<i16>,
}

/// One connection's state, without the socket.
struct Session {
    habits: Habits,
    dice: Dice,
    books: Books,
    queue: VecDeque<Due>,
    bytes: Vec<u8>,
}

impl Session {
    fn send_after(&mut self, extra: Duration, message: Message, words: Vec<i16>) {
        let (least, most) = self.habits.latency_ms;
        let latency = Duration::from_millis(least + self.dice.below(most - least + 1));
        let at = (Instant::now() + latency + extra).max(self.queue.back().map_or_else(Instant::now, |due| due.at));
        self.queue.push_back(Due { at, message, words });
    }

    fn take_due(&mut self) -> Option<Due> {
        self.queue.front().filter(|due| due.at <= Instant::now())?;
        self.queue.pop_front()
    }

    fn send(&mut self, json: &serde_json::Value, words: Vec<i16>) {
        self.send_after(Duration::ZERO, Message::text(json.to_string()), words);
    }

    fn close(&mut self, code: u16, reason: &str) {
        self.books.open().ends.push(code);
        let frame = CloseFrame { code: code.into(), reason: reason.to_owned().into() };
        self.send_after(Duration::ZERO, Message::Close(Some(frame)), Vec::new());
    }

    /// A time in seconds, somewhat off if it is of a word.
    fn shifted(&mut self, frame: u64) -> f64 {
        let shift = self.dice.below(2 * self.habits.shift_ms + 1) as f64 - self.habits.shift_ms as f64;
        (seconds(frame) + shift / 1e3).max(0.0)
    }
}

fn seconds(frames: u64) -> f64 {
    frames as f64 * 0.02
}

/// A version of the protocol.
trait Version {
    fn receive_audio(&mut self, frame: &Frame, session: &mut Session);
    fn receive_message(&mut self, text: &str, session: &mut Session);
    /// The client has sent `CloseStream`, or an empty frame.
    fn finish(&mut self, session: &mut Session);
}

/// Serves one connection to its end. The path tells the version.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(socket: WebSocketStream<S>, asked: &str, habits: Habits, books: Books) {
    {
        let mut book = books.open();
        book.connections += 1;
        asked.clone_into(&mut book.asked);
    }
    // It says nothing, and no error.
    let is_deaf = asked.split(['?', '&']).filter_map(|pair| pair.strip_prefix("keyterm=")).map(str::len).sum::<usize>() > 2_000;
    let mut version: Box<dyn Version + Send> =
        if asked.starts_with("/v2") { Box::new(Turns::default()) } else { Box::new(Ear::new(is_deaf)) };
    let dice = Dice(habits.seed);
    let mut session = Session { habits, dice, books, queue: VecDeque::new(), bytes: Vec::new() };
    if let Some(first) = session.habits.begins_with {
        session.send_after(Duration::ZERO, Message::text(first), Vec::new());
    }
    if asked.starts_with("/v2") {
        session.send(&json!({"type": "Connected", "request_id": "r", "sequence_id": 0}), Vec::new());
    }
    run(socket, &mut *version, &mut session).await;
}

async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    version: &mut (dyn Version + Send),
    session: &mut Session,
) {
    let mut idle = Instant::now() + IDLE;
    let mut left = session.habits.cut_after;
    let mut is_open = true;
    loop {
        let due = session.queue.front().map_or(idle, |due| due.at.min(idle));
        tokio::select! {
            biased;
            () = sleep_until(due) => match session.take_due() {
                Some(Due { message, words, .. }) => {
                    let is_close = message.is_close();
                    if socket.send(message).await.is_err() {
                        return;
                    }
                    session.books.open().returned.extend(words);
                    if is_close {
                        // The client answers.
                        let _ = timeout(IDLE, async { while let Some(Ok(_)) = socket.next().await {} }).await;
                        return;
                    }
                }
                None if is_open => {
                    is_open = false;
                    idle += IDLE;
                    session.close(1011, "NET-0001: no audio or text was received for 10 s");
                }
                None => return,
            },
            message = socket.next() => {
                let Some(Ok(message)) = message else { return };
                idle = Instant::now() + IDLE;
                match message {
                    _ if !is_open => {}
                    Message::Binary(bytes) if bytes.is_empty() => {
                        is_open = false;
                        version.finish(session);
                    }
                    Message::Binary(bytes) if bytes.len() % 2 == 1 => {
                        is_open = false;
                        session.close(1008, "DATA-0000: the payload cannot be decoded as audio");
                    }
                    Message::Binary(bytes) => {
                        session.bytes.extend_from_slice(&bytes);
                        while session.bytes.len() >= 2 * FRAME {
                            let frame = Frame::of(&session.bytes[..2 * FRAME]);
                            session.bytes.drain(..2 * FRAME);
                            {
                                let mut book = session.books.open();
                                book.frames += 1;
                                if let Frame::Word { number, is_middle: true } = frame {
                                    book.heard.push(number);
                                }
                            }
                            version.receive_audio(&frame, session);
                            match &mut left {
                                Some(0) => return,
                                Some(frames) => *frames -= 1,
                                None => {}
                            }
                        }
                    }
                    Message::Text(text) => {
                        session.books.open().texts.push(text.to_string());
                        if text.contains("\"CloseStream\"") {
                            is_open = false;
                            version.finish(session);
                        } else {
                            version.receive_message(&text, session);
                        }
                    }
                    Message::Close(_) => return,
                    _ => {}
                }
            }
        }
    }
}

/// The server on loopback. It stops when it is dropped.
pub struct Fake {
    pub url: String,
    pub books: Books,
    task: AbortHandle,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub async fn new(habits: Habits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::on(listener, habits)
    }

    pub fn on(listener: TcpListener, habits: Habits) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let books = Books::default();
        let shared = books.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (habits, books) = (habits.clone(), shared.clone());
                tokio::spawn(async move {
                    let mut asked = String::new();
                    let refuses = books.open().refuses.or(habits.refuses);
                    #[expect(clippy::result_large_err, reason = "the crate's callback is so")]
                    let check = |request: &Request, response: Response| match refusal(request, refuses) {
                        Some(refusal) => Err(refusal),
                        None => {
                            asked = request.uri().to_string();
                            Ok(response)
                        }
                    };
                    if let Ok(socket) = accept_hdr_async(stream, check).await {
                        serve(socket, &asked, habits, books).await;
                    }
                });
            }
        });
        Self { url, books, task: task.abort_handle() }
    }
}

/// Why an upgrade is refused.
fn refusal(request: &Request, refuses: Option<(u16, &'static str)>) -> Option<ErrorResponse> {
    let query = request.uri().query().unwrap_or_default();
    let has = |pair: &str| query.split('&').any(|found| found.starts_with(pair));
    let key = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_v1 = request.uri().path() == "/v1/listen";
    let (status, message) = match refuses {
        Some(refusal) => refusal,
        None if !key.ends_with(KEY) => (401, "INVALID_AUTH: Invalid credentials."),
        None if !is_v1 && request.uri().path() != "/v2/listen" => (404, ""),
        None if has("model=nova-3") && has("keywords=") => (400, ""),
        None if has("model=nova-2") && has("keyterm=") => (400, "Keyterm Prompting is not available for this model."),
        None if is_v1 && has("utterance_end_ms=") && !has("interim_results=true") => {
            (400, "utterance_end_ms needs interim_results")
        }
        None if has("model=no-such") => (400, "No such model/language/tier combination found."),
        None => return None,
    };
    let mut response = ErrorResponse::new(None);
    *response.status_mut() = status.try_into().expect("a status");
    if !message.is_empty() {
        response.headers_mut().insert("dg-error", message.parse().expect("a header"));
    }
    Some(response)
}
