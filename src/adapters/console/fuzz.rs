//! Fuzzes the HTTP interface: routes, queries, paths, headers and bodies.

use std::cell::OnceCell;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use super::guard::Peer;
use super::{Console, Served, Shared, validation};
use crate::adapters::system::{SystemClock, SystemRng};
use crate::fuzzing::{is_bounded, text};
use crate::ports::backend::Backend;
use crate::ports::backend::fake::FakeBackend;
use crate::ports::backend::room::RoomId;
use crate::ports::companion_setup::fake::FakeCompanions;
use crate::ports::model_setup::fake::FakeModels;
use crate::ports::nodes::NoNodes;
use crate::ports::settings_setup::fake::FakeSettings;
use crate::ports::tools::NoTools;
use crate::settings::samples::server as defaults;
use crate::settings::server::Server;
use crate::telemetry::metrics::Metrics;

const TOKEN: &str = "correct-horse-battery-staple";
/// An upper bound in bytes: larger than the page's largest file, and than a list of a thousand entries.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

pub fn requests() -> Vec<Vec<u8>> {
    const HEAD: &str = "host: 127.0.0.1:7878\ncontent-type: application/json\n";
    let bodies = [
        ("GET /api/rooms", ""),
        (
            "PUT /api/rooms/hall",
            r#"{"guild": "home", "companions": ["aria", {"id": "zed", "external": true, "name": "Zed", "aliases": ["z"]}]}"#,
        ),
        ("PATCH /api/rooms/lobby", r#"{"paused": true, "companions": {"aria": {"interjection": "quiet", "paused": null}}}"#),
        (
            "POST /api/rooms/lobby/messages",
            r#"{"from": "Ana", "text": "Hello, @Aria", "id": "m1", "reply_to": 1, "mentions": ["Bob"]}"#,
        ),
        ("GET /api/rooms/lobby/messages/1/files/0", ""),
        (
            "POST /api/rooms/lobby/messages",
            r#"{"from": "Ana", "text": "", "files": [{"name": "a.txt", "description": "a", "spoiler": true, "data": "SGVsbG8="}]}"#,
        ),
        ("POST /api/rooms/lobby/events", r#"{"id": "e1", "kind": "raid", "who": "Ana", "text": "Ana raids"}"#),
        ("PATCH /api/rooms/lobby/messages/1", r#"{"text": "Hi"}"#),
        ("DELETE /api/rooms/lobby/messages/1", ""),
        ("GET /api/rooms/lobby/calls/7", ""),
        ("POST /api/rooms/lobby/calls/7", r#"{"confirm": true}"#),
        (
            "POST /api/rooms/lobby/states",
            r#"{"from":"zed","messageId":"7","state":"speak","importance":5.5,"selected":false,"closing":"none"}"#,
        ),
        ("POST /api/rooms/lobby/statements", r#"{"from":"zed","message_id":"7","text":"So it is."}"#),
        ("POST /api/rooms/lobby/clear", ""),
        ("POST /api/rooms/lobby/conversations", ""),
        ("POST /api/rooms/lobby/scenes", r#"{"from": "Ana", "text": "Night falls."}"#),
        ("POST /api/rooms/lobby/import?from=Ana", r#"{"name": "Mira", "mes": "Hi."}"#),
        ("GET /api/rooms/lobby/messages/1/prompt", ""),
        ("GET /api/rooms/lobby/me?from=Ana", ""),
        ("GET /api/rooms/lobby/reminders?from=Ana", ""),
        (
            "POST /api/rooms/lobby/reminders",
            r#"{"from": "Ana", "text": "Tea.", "at": "2026-05-01T14:30", "zone": "Europe/Berlin"}"#,
        ),
        ("POST /api/rooms/lobby/reminders", r#"{"from": "Ana", "text": "Tea.", "in_minutes": 10, "companion": "aria"}"#),
        ("DELETE /api/rooms/lobby/reminders/1", ""),
        ("PUT /api/rooms/lobby/time-zone", r#"{"from": "Ana", "zone": "Europe/Berlin"}"#),
        ("PUT /api/rooms/lobby/me", r#"{"from": "Ana", "text": "I paint."}"#),
        (
            "PATCH /api/rooms/lobby",
            r#"{"words": {"instructions": "Rhyme.", "style": "role-play", "note": null, "note_depth": 2}}"#,
        ),
        ("GET /api/rooms/lobby/history?after=1&before=9&limit=5", ""),
        ("GET /api/rooms/lobby/state", ""),
        ("GET /api/decisions?room=lobby&companion=aria&after=1&limit=5", ""),
        ("GET /api/why?room=lobby&companion=aria&at=2026-05-01T12:00:00%2B02:00", ""),
        ("GET /api/usage?guild=home&from=2026-05-01T12:00:00Z&to=2026-06-01T12:00:00Z", ""),
        ("GET /api/usage/receptions?guild=home&days=14", ""),
        ("GET /api/usage/safety?guild=home&from=2026-05-01T12:00:00Z&to=2026-06-01T12:00:00Z", ""),
        ("GET /api/companions", ""),
        ("GET /api/companions/options", ""),
        (
            "POST /api/companions",
            r#"{"companion": {"name": "Ida", "aliases": ["I"], "persona": "kind", "interjection": "eager", "tone": "soft", "model": "main", "voice": {"speed": 1.5}, "greetings": ["Hi."]}, "copy_of": "aria", "picture": "iVBORw0KGgo=", "card": "eyJuYW1lIjoiQSJ9"}"#,
        ),
        ("POST /api/companions", r#"{"companion": {"name": "Ida"}, "card": "eyJuYW1lIjoiQSJ9"}"#),
        ("PUT /api/companions/ida", r#"{"revision": "1", "companion": {"name": "Ida"}, "picture": null}"#),
        ("POST /api/companions/try", r#"{"companion": {"name": "Ida"}, "of": "ida", "message": "Hi"}"#),
        (
            "POST /api/cards?name=Ann&system_prompt=true",
            r#"{"data": {"name": "Ann", "first_mes": "{{char}}", "extensions": {}}}"#,
        ),
        ("GET /api/tools", ""),
        ("POST /api/tools/accept", r#"{"tools": {"dice__roll": "0"}}"#),
        ("GET /api/lorebooks", ""),
        ("POST /api/lorebooks", r#"{"name": "World", "entries": [{"keys": ["/a/i"], "content": "x"}], "rooms": ["lobby"]}"#),
        ("PUT /api/lorebooks/book-0", r#"{"revision": "0", "book": {"name": "World", "entries": []}}"#),
        ("POST /api/lorebooks/read", r#"{"entries": {"0": {"key": ["a"], "content": "x"}}}"#),
        ("GET /api/lorebooks/book-0", ""),
        ("GET /api/lorebooks/book-0/file?as=risu", ""),
        ("DELETE /api/lorebooks/book-0?revision=0", ""),
        ("GET /api/companions/ida/card?as=png", ""),
        ("GET /api/companions/ida/card", ""),
        ("GET /pictures/ida/1", ""),
        ("DELETE /api/companions/ida?revision=1", ""),
        ("POST /api/quarantine/home/release", ""),
        ("POST /api/quarantine/channel:console:den/release", ""),
        ("POST /api/quarantine/x:1/retry", ""),
        ("GET /api/export?room=lobby&as=replay", ""),
        ("POST /api/backup", r#"{"to": "/backups/x.backup"}"#),
        ("POST /api/forget", r#"{"person": "ana", "guild": "home"}"#),
        ("GET /api/live?room=lobby&after=1", ""),
        ("POST /signin", "token=correct-horse-battery-staple"),
        ("GET /api/tokens", ""),
        ("POST /api/tokens", r#"{"name": "prometheus", "scope": "metrics"}"#),
        ("DELETE /api/tokens/prometheus", ""),
        ("GET /page/index.html", ""),
        ("GET /readyz", ""),
        ("GET /metrics", ""),
    ];
    bodies.iter().map(|(line, body)| format!("{line}\n{HEAD}authorization: Bearer {TOKEN}\n\n{body}").into_bytes()).collect()
}

pub fn request(bytes: &[u8]) {
    let Some(mut request) = parse_request(bytes) else { return };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    // An error may quote the host, origin and path of the request, even if these contain the token. The request line may contain the host.
    let line = request.uri().to_string().to_ascii_lowercase();
    let quoted =
        [HOST, ORIGIN].map(|header| request.headers().get(header).map_or_else(Vec::new, |value| value.as_bytes().to_vec()));
    let may_quote = |token: &str| {
        quoted.iter().any(|value| String::from_utf8_lossy(value).to_ascii_lowercase().contains(token)) || line.contains(token)
    };
    let sent: Option<Value> = serde_json::from_slice(body_of(bytes)).ok();

    let (response, body) = with_console(|console| {
        let door = console.shared.door.clone();
        request.extensions_mut().insert(Peer { address: [127, 0, 0, 1].into(), door });
        console.runtime.block_on(async {
            let response = console.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
            let (head, body) = response.into_parts();
            let body = to_bytes(body, MAX_RESPONSE_BYTES).await.expect("the response should have an end");
            (Response::from_parts(head, ()), body)
        })
    });

    let status = response.status().as_u16();
    let headers = response.headers();
    assert!(![500, 502, 504].contains(&status), "{method} {path} fails in the server: {}", String::from_utf8_lossy(&body));
    for header in [CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS, CACHE_CONTROL] {
        assert!(headers.contains_key(&header), "{method} {path} has a response without {header}");
    }
    if status >= 400 {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_page = kind.starts_with("text/html");
        assert!(is_page || kind == "application/problem+json", "{method} {path}: {status} as {kind}");
        if !is_page && method != Method::HEAD {
            let problem: Value = serde_json::from_slice(&body).expect("a problem should be JSON");
            assert_eq!(problem["status"].as_u64(), Some(status.into()), "{problem}");
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert!(!detail.is_empty() && is_bounded(detail, 70_000), "{} bytes of detail", detail.len());
            assert!(!detail.contains(TOKEN) || may_quote(TOKEN), "the detail contains the token");
        }
    }
    // An accepted message is on record with its sender and text. A message with an id may have been accepted before.
    if status == 202
        && method == Method::POST
        && path.ends_with("/messages")
        && let sent = sent.expect("an accepted body should be JSON")
        && sent["id"].is_null()
    {
        let newest = with_console(|console| console.runtime.block_on(console.newest()));
        let (from, text) = newest.expect("the message should be in the history");
        assert_eq!(Some(from.as_str()), sent["from"].as_str().map(str::trim), "the message has another author");
        let sent_text = sent["text"].as_str().map(|text| text.replace("\r\n", "\n").replace('\r', "\n")).unwrap_or_default();
        let has_files = sent["files"].as_array().is_some_and(|files| !files.is_empty());
        assert!(text == sent_text || has_files && text.starts_with(&sent_text), "{text:?} was sent as {sent_text:?}");
    }
}

pub fn words(bytes: &[u8]) {
    let text = text(bytes);

    if let Ok(name) = validation::name("from", &text) {
        assert!(is_bounded(&name, 64) && &*name == text.trim() && !name.chars().any(char::is_control), "{name:?}");
        assert_eq!(validation::name("from", &name).ok(), Some(name));
    }
    if let Ok(words) = validation::text("text", &text, 4_000) {
        assert!(is_bounded(&words, 4_000) && !words.contains('\r') && !words.trim().is_empty());
        assert_eq!(validation::text("text", &words, 4_000).ok(), Some(words));
    }
    if let Some(room) = RoomId::parse(&text) {
        assert_eq!(RoomId::parse(room.as_str()), Some(room), "a room has two ids");
    }
    for refusal in [
        validation::name("from", &text).err(),
        validation::text("text", &text, 4_000).err(),
        validation::room("room", &text).err(),
    ] {
        assert!(refusal.is_none_or(|refusal| is_bounded(refusal.detail(), 1_000)), "the detail is too long");
    }
}

/// A console whose router is called without a socket.
pub(super) struct TestConsole {
    pub(super) runtime: Runtime,
    router: Router,
    pub(super) shared: Shared,
}

impl TestConsole {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("building a runtime should work");
        let settings = Server {
            listen: "127.0.0.1:0".into(),
            public_url: Some("http://127.0.0.1:7878".into()),
            admin_token: Some(TOKEN.into()),
            requests_per_second: 1_000_000,
            request_burst: 1_000_000,
            ..defaults()
        };
        let backend = Arc::new(FakeBackend::with_lobby());
        backend.add_channel("discord:1234", "discord:1", "general");
        let served = Served::Core {
            backend: Box::new(Backend::of(backend)),
            models: Arc::new(FakeModels::default()),
            settings: Arc::new(FakeSettings::default()),
            companions: Arc::new(FakeCompanions::default()),
            nodes: Arc::new(NoNodes),
            tools: Arc::new(NoTools),
        };
        let bound = Console::bind(&settings, served, Arc::new(SystemRng), Arc::new(SystemClock), Metrics::local());
        let console = runtime.block_on(bound).expect("binding the console should work");
        Self { router: console.router, shared: console.shared, runtime }
    }

    /// The author and text of the newest message in the lobby.
    async fn newest(&self) -> Option<(String, String)> {
        let room = RoomId::parse("lobby").expect("the id should be valid");
        let query = crate::ports::backend::messages::HistoryQuery { after: None, before: None, limit: 1_000 };
        let history = self.shared.backend().ok()?.records.history(&room, query).await.ok()?;
        let newest = history.messages.last()?;
        Some((newest.from.to_string(), newest.text.to_string()))
    }
}

pub(super) fn with_console<T>(act: impl FnOnce(&TestConsole) -> T) -> T {
    thread_local!(static CONSOLE: OnceCell<TestConsole> = const { OnceCell::new() });
    CONSOLE.with(|console| act(console.get_or_init(TestConsole::new)))
}

/// Parses a request line, headers and a body. `None` if such a request could not arrive over a connection.
fn parse_request(bytes: &[u8]) -> Option<Request<Body>> {
    let head = text(&bytes[..bytes.len() - body_of(bytes).len()]).into_owned();
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    // Longer targets would not fit into a head.
    let uri: Uri = target.parse().ok().filter(|_| target.len() < 16 << 10)?;
    // The fake backend misbehaves on purpose in these rooms.
    if ["boom", "slow", "full", "torn"].iter().any(|room| uri.path().contains(room)) {
        return None;
    }
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in lines.take(100).filter_map(|line| line.split_once(':')) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.trim())) {
            request = request.header(name, value);
        }
    }
    request.body(Body::from(body_of(bytes).to_vec())).ok()
}

fn body_of(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|two| two == b"\n\n").map_or(bytes.len(), |end| end + 2);
    &bytes[end..]
}
