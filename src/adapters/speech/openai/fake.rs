//! A small server on loopback with OpenAI's API for audio. It checks requests as the service does, and fails as a script says.
//!
//! A recording has 2.5 words a second, or the words that the test gives; silence has none. What is said is a tone of 0.4 s for each word.
//! The library's tests use it, and other programs may include this file. So all its paths begin at the crate's root, or at a crate.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The only key that it accepts.
pub const KEY: &str = "sk-fake";
const WHISPER: &str = "whisper-1";
const STREAMING: [&str; 2] = ["gpt-4o-transcribe", "gpt-4o-mini-transcribe"];
const SPEAKING: [&str; 3] = ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"];
const VOICES: [&str; 6] = ["alloy", "echo", "fable", "onyx", "nova", "shimmer"];

/// What goes wrong with one request.
#[derive(Clone)]
pub enum Trap {
    /// Another answer: status, headers and body.
    Answers(u16, Vec<(&'static str, String)>, String),
    /// No answer.
    Hangs,
    /// An answer when so many requests have come after this one.
    Waits(usize),
    /// Half of the body, and then nothing.
    Stalls,
    /// Half of the body, and then a broken connection.
    Breaks,
    /// The body in chunks of so many bytes.
    Chunks(usize),
    /// The samples in a WAV file with this sample rate and so many channels.
    Wav(u32, u16),
    /// A body of so many bytes.
    Huge(usize),
    /// As if nothing was wrong.
    Works,
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Received {
    pub authorization: Option<String>,
    /// The fields of the form, except the recording; or of the JSON.
    pub fields: Value,
    pub samples: usize,
}

/// The server. It stops when it is dropped.
pub struct Fake {
    pub url: String,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Default)]
struct Shared {
    traps: Mutex<VecDeque<Trap>>,
    words: Mutex<VecDeque<String>>,
    received: Mutex<Vec<Received>>,
    /// How many requests came.
    requests: watch::Sender<usize>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// A server that has these traps for its first requests.
    pub async fn new(traps: impl IntoIterator<Item = Trap>) -> Self {
        Self::at("127.0.0.1:0", traps).await
    }

    /// The same at a fixed address.
    pub async fn at(address: &str, traps: impl IntoIterator<Item = Trap>) -> Self {
        let shared = Arc::new(Shared { traps: Mutex::new(traps.into_iter().collect()), ..Shared::default() });
        let listener = TcpListener::bind(address).await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(answer).layer(DefaultBodyLimit::max(26 << 20)).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, shared, task }
    }

    /// The words of the next recordings.
    pub fn hears(&self, words: &[&str]) {
        self.shared.words.lock().extend(words.iter().map(|words| (*words).to_owned()));
    }

    pub fn received(&self) -> Vec<Received> {
        std::mem::take(&mut self.shared.received.lock())
    }
}

/// A refusal as OpenAI words it.
struct Refused(u16, String, Option<&'static str>, Option<&'static str>);

type Answered = Result<(&'static str, Vec<u8>), Refused>;

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let authorization = Some(text("authorization")).filter(|value| !value.is_empty());
    let key = authorization.as_deref().and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    let note = |fields: Value, samples| shared.received.lock().push(Received { authorization, fields, samples });
    let answered = match uri.path() {
        _ if key != KEY => Err(Refused(401, format!("Incorrect API key provided: {key}."), None, Some("invalid_api_key"))),
        "/v1/audio/transcriptions" => transcription(&shared, &text("content-type"), &body, note),
        "/v1/audio/speech" => speech(&text("content-type"), &body, note),
        path => Err(Refused(404, format!("Invalid URL (POST {path})"), None, None)),
    };
    let trap = shared.traps.lock().pop_front().unwrap_or(Trap::Works);
    shared.requests.send_modify(|requests| *requests += 1);
    let request = *shared.requests.borrow();
    let (media_type, bytes) = match answered {
        Ok(answered) => answered,
        Err(Refused(status, message, param, code)) => {
            let error = json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": code } });
            return response(status, &[("content-type", "application/json".to_owned())], error.to_string());
        }
    };
    let half = bytes.len() / 2;
    let sent = |body: Body| response(200, &[("content-type", media_type.to_owned())], body);
    match trap {
        Trap::Works => sent(bytes.into()),
        Trap::Waits(more) => {
            let come = shared.requests.subscribe().wait_for(|requests| *requests >= request + more).await.is_ok();
            assert!(come, "the server is here");
            sent(bytes.into())
        }
        Trap::Answers(status, headers, body) => response(status, &headers, body),
        Trap::Hangs => std::future::pending().await,
        Trap::Stalls => sent(streamed(stream::iter([bytes[..half].to_vec()]).map(Ok).chain(stream::pending()))),
        Trap::Breaks => sent(streamed(stream::iter([bytes[..half].to_vec()]).map(Ok).chain(stream::once(broken())))),
        Trap::Chunks(size) => {
            let chunks: Vec<_> = bytes.chunks(size).map(|chunk| Ok(chunk.to_vec())).collect();
            sent(streamed(stream::iter(chunks)))
        }
        Trap::Wav(rate, channels) => sent([wav_head(rate, channels), bytes].concat().into()),
        Trap::Huge(length) => sent(vec![b' '; length].into()),
    }
}

fn response(status: u16, headers: &[(&'static str, String)], body: impl Into<Body>) -> Response {
    let builder = headers.iter().fold(Response::builder().status(status), |builder, (name, value)| builder.header(*name, value));
    builder.body(body.into()).expect("a response")
}

fn streamed(chunks: impl Stream<Item = Result<Vec<u8>, std::io::Error>> + Send + 'static) -> Body {
    Body::from_stream(chunks)
}

async fn broken() -> Result<Vec<u8>, std::io::Error> {
    // What there is so far is sent when the body has nothing to add for a moment.
    tokio::task::yield_now().await;
    Err(std::io::ErrorKind::ConnectionReset.into())
}

fn transcription(shared: &Shared, media_type: &str, body: &[u8], note: impl FnOnce(Value, usize)) -> Answered {
    let parts = parts(media_type, body).ok_or_else(|| refused("Could not parse multipart form", None))?;
    let field = |name: &str| {
        let part = parts.iter().find(|part| part.name == name && part.file_name.is_none());
        part.map(|part| String::from_utf8_lossy(&part.body).into_owned())
    };
    let file = parts.iter().find(|part| part.name == "file" && part.file_name.is_some());
    let fields = parts.iter().filter(|part| part.file_name.is_none());
    let fields: Value = fields.map(|part| (part.name.clone(), json!(String::from_utf8_lossy(&part.body)))).collect();
    let file = file.ok_or_else(|| refused("you must provide a file", Some("file")))?;
    let samples = recording(&file.body);
    note(fields, samples.as_ref().map_or(0, Vec::len));
    let samples = samples.ok_or_else(|| refused("Audio file might be corrupted or unsupported", Some("file")))?;
    let secs = samples.len() as f64 / 16_000.0;
    if secs < 0.1 {
        return Err(Refused(
            400,
            "Audio file is too short. Minimum audio length is 0.1 seconds.".to_owned(),
            Some("file"),
            Some("audio_too_short"),
        ));
    }
    let model = field("model").ok_or_else(|| refused("you must provide a model parameter", Some("model")))?;
    let can_stream = STREAMING.contains(&model.as_str());
    if !can_stream && model != WHISPER {
        return Err(no_model(&model));
    }
    let format = field("response_format").unwrap_or_else(|| "json".to_owned());
    if !["json", "text", "srt", "verbose_json", "vtt"].contains(&format.as_str())
        || (can_stream && format != "json" && format != "text")
    {
        let message = format!("response_format '{format}' is not compatible with model '{model}'. Use 'json' or 'text' instead.");
        return Err(Refused(400, message, Some("response_format"), Some("unsupported_value")));
    }
    if let Some(language) = field("language").filter(|language| language.len() != 2) {
        return Err(refused(
            &format!("Invalid language '{language}'. Language parameter must be specified in ISO-639-1 format."),
            Some("language"),
        ));
    }
    let is_silence = samples.iter().all(|sample| sample.unsigned_abs() < 50);
    let words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let counted =
        || words.iter().cycle().take((secs * 2.5).ceil() as usize).fold(String::new(), |text, word| format!("{text} {word}"));
    let text = if is_silence { String::new() } else { shared.words.lock().pop_front().unwrap_or_else(counted) };
    let no_speech = if is_silence { 0.9 } else { 0.05 };
    Ok(match format.as_str() {
        _ if can_stream && field("stream").as_deref() == Some("true") => ("text/event-stream", events(&text).into_bytes()),
        "verbose_json" => {
            let segment = json!({ "id": 0, "seek": 0, "start": 0.0, "end": secs, "text": text, "tokens": [50364], "temperature": 0.0,
                "avg_logprob": -0.2, "compression_ratio": 0.9, "no_speech_prob": no_speech });
            let whole = json!({ "task": "transcribe", "language": "english", "duration": secs, "text": text, "segments": [segment],
                "usage": { "type": "duration", "seconds": secs.ceil() } });
            ("application/json", whole.to_string().into_bytes())
        }
        "json" => {
            let usage = json!({ "type": "duration", "seconds": secs.ceil() });
            ("application/json", json!({ "text": text, "usage": usage }).to_string().into_bytes())
        }
        _ => ("text/plain; charset=utf-8", text.into_bytes()),
    })
}

/// The answer in events: one for each word, and the end.
fn events(text: &str) -> String {
    let deltas = text.split_inclusive(' ').map(|delta| json!({ "type": "transcript.text.delta", "delta": delta }));
    let done = json!({ "type": "transcript.text.done", "text": text, "usage": { "type": "tokens", "input_tokens": 14,
        "input_token_details": { "text_tokens": 0, "audio_tokens": 14 }, "output_tokens": 45, "total_tokens": 59 } });
    deltas.chain([done]).map(|event| format!("data: {event}\n\n")).collect()
}

fn speech(media_type: &str, body: &[u8], note: impl FnOnce(Value, usize)) -> Answered {
    let fields: Value =
        serde_json::from_slice(body).map_err(|_| refused("We could not parse the JSON body of your request.", None))?;
    note(fields.clone(), 0);
    if !media_type.starts_with("application/json") {
        return Err(refused("the body must be JSON", None));
    }
    let text =
        |name| fields[name].as_str().ok_or_else(|| refused(&format!("[{{'type': 'missing', 'loc': ('body', '{name}')}}]"), None));
    let (model, input, voice) = (text("model")?, text("input")?, text("voice")?);
    if !SPEAKING.contains(&model) {
        return Err(no_model(model));
    }
    if !VOICES.contains(&voice) {
        return Err(refused(&format!("Input should be 'alloy', 'echo' …, and is '{voice}'"), Some("voice")));
    }
    let speed = fields.get("speed").map_or(Some(1.0), Value::as_f64).filter(|speed| (0.25..=4.0).contains(speed));
    let speed = speed.ok_or_else(|| refused("speed must be from 0.25 to 4", Some("speed")))?;
    if input.is_empty() || input.chars().count() > 4_096 {
        return Err(refused("String should have 1 to 4096 characters", Some("input")));
    }
    let format = fields.get("response_format").map_or(Some("mp3"), Value::as_str);
    let samples = tone(input, speed);
    match format {
        Some("pcm") => Ok(("audio/pcm", samples)),
        Some("wav") => Ok(("audio/wav", [wav_head(24_000, 1), samples].concat())),
        // No encoder is here, but who asks for it gets what is one by its looks.
        Some("mp3") => Ok(("audio/mpeg", [b"ID3\x04\0\0".to_vec(), vec![0; 64]].concat())),
        _ => Err(refused("response_format must be mp3, pcm or wav here", Some("response_format"))),
    }
}

/// A tone of 220 Hz at 24 kHz: 0.4 s for each word, and at least 0.15 s.
fn tone(text: &str, speed: f64) -> Vec<u8> {
    let secs = (text.split_whitespace().count() as f64 * 0.4 / speed).max(0.15);
    let sample = |number: usize| (8_000.0 * (number as f64 * 220.0 / 24_000.0 * std::f64::consts::TAU).sin()) as i16;
    (0..(secs * 24_000.0) as usize).flat_map(|number| sample(number).to_le_bytes()).collect()
}

/// The head of a WAV file whose length is not known yet.
fn wav_head(rate: u32, channels: u16) -> Vec<u8> {
    let mut head = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0".to_vec();
    head.extend(channels.to_le_bytes());
    head.extend([rate.to_le_bytes(), (rate * 2 * u32::from(channels)).to_le_bytes()].concat());
    head.extend([(2 * channels).to_le_bytes(), 16_u16.to_le_bytes()].concat());
    head.extend(b"data\xff\xff\xff\xff");
    head
}

/// The samples of a WAV file: 16 bits, mono, 16 kHz, with a true length.
fn recording(wav: &[u8]) -> Option<Vec<i16>> {
    let format = b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data";
    let samples = wav.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(format)?;
    let (length, samples) = samples.split_at_checked(4)?;
    let has_length = |at: &[u8], length: usize| at == (length as u32).to_le_bytes();
    let is_whole = has_length(length, samples.len()) && has_length(&wav[4..8], samples.len() + 36);
    is_whole.then(|| samples.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}

struct Part {
    name: String,
    file_name: Option<String>,
    body: Vec<u8>,
}

/// The parts of a form (RFC 7578). None: it is not well-formed.
fn parts(media_type: &str, body: &[u8]) -> Option<Vec<Part>> {
    let boundary = media_type.strip_prefix("multipart/form-data;")?.trim().strip_prefix("boundary=")?.trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter has no line before it.
    let body = [b"\r\n", body].concat();
    let mut rest = &body[find(&body, delimiter.as_bytes())? + delimiter.len()..];
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let end = find(rest, delimiter.as_bytes())?;
        let (part, after) = (&rest[..end], &rest[end + delimiter.len()..]);
        let head_end = find(part, b"\r\n\r\n")?;
        let head = std::str::from_utf8(&part[..head_end]).ok()?;
        let disposition = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition: form-data;"))?;
        let parameter = |name: &str| {
            let begin = disposition.find(&format!("; {name}=\""))? + name.len() + 4;
            Some(disposition[begin..begin + disposition[begin..].find('"')?].to_owned())
        };
        parts.push(Part { name: parameter("name")?, file_name: parameter("filename"), body: part[head_end + 4..].to_vec() });
        rest = after;
    }
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|window| window == what)
}

fn refused(message: &str, param: Option<&'static str>) -> Refused {
    Refused(400, message.to_owned(), param, None)
}

fn no_model(model: &str) -> Refused {
    Refused(404, format!("The model `{model}` does not exist or you do not have access to it."), None, Some("model_not_found"))
}
