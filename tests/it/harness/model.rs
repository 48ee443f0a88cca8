//! A language model on loopback that answers as a test says, and keeps what it was asked.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{PATIENCE, Premises, serve};

/// The answer to a request.
pub enum Answer {
    Text(String),
    /// This text, but not before that is true.
    Once(watch::Receiver<bool>, &'static str),
    /// A refusal with this status and text. `{authorization}` in the text is replaced by that header of the request.
    Refused(u16, String),
    /// A call of this tool with these arguments.
    Call(&'static str, Value),
    Never,
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// An OpenAI-compatible endpoint.
#[derive(Clone)]
pub struct Model {
    /// The base URL, with `/v1`.
    pub url: String,
    behaviour: Arc<Behaviour>,
}

struct Behaviour {
    answer: Box<dyn Fn(&Value) -> Answer + Send + Sync>,
    asked: watch::Sender<Vec<Value>>,
    key: Mutex<Option<String>>,
    /// The input and output tokens of each answer.
    tokens: Mutex<(u64, u64)>,
    /// The cached tokens of each answer, which is streamed. None: answers come in one piece, without cached tokens.
    cached: Mutex<Option<u64>>,
    is_released: Arc<AtomicBool>,
}

impl Model {
    /// A model that answers each request by its body. Each answer takes 10 input tokens and 5 output tokens.
    pub async fn start<A: Into<Answer>>(answer: impl Fn(&Value) -> A + Send + Sync + 'static) -> Self {
        Self::with(Box::new(move |body| answer(body).into()), Arc::default()).await
    }

    /// A model that decides YES and says "I am here.". Requests for the model of this name get no answer until [`Self::release`].
    pub async fn holding(held: &'static str) -> Self {
        let is_released = Arc::<AtomicBool>::default();
        let released = Arc::clone(&is_released);
        let answer = move |body: &Value| match (body["model"].as_str(), released.load(Ordering::SeqCst)) {
            (Some(name), false) if name == held => Answer::Never,
            (Some("main"), _) => "I am here.".into(),
            _ => "They call me.\nYES".into(),
        };
        Self::with(Box::new(answer), is_released).await
    }

    /// A model that decides YES and says "I am here.". The first request for the model of this name gets no answer.
    pub async fn losing_the_first(lost: &'static str) -> Self {
        let is_lost = AtomicBool::new(false);
        let answer = move |body: &Value| match body["model"].as_str() {
            Some(name) if name == lost && !is_lost.swap(true, Ordering::SeqCst) => Answer::Never,
            Some("main") => "I am here.".into(),
            _ => "They call me.\nYES".into(),
        };
        Self::with(Box::new(answer), Arc::default()).await
    }

    async fn with(answer: Box<dyn Fn(&Value) -> Answer + Send + Sync>, is_released: Arc<AtomicBool>) -> Self {
        let behaviour = Arc::new(Behaviour {
            answer,
            asked: watch::Sender::default(),
            key: Mutex::default(),
            tokens: Mutex::new((10, 5)),
            cached: Mutex::default(),
            is_released,
        });
        let url = serve(Router::new().fallback(respond).with_state(Arc::clone(&behaviour))).await;
        Self { url: format!("{url}/v1"), behaviour }
    }

    /// The premises, with this model as `side`, which decides, and as `main`, which speaks.
    pub fn serving(&self, premises: Premises) -> Premises {
        self.serving_as("side", self.serving_as("main", premises))
    }

    /// The premises, with this model in this role and under this name.
    pub fn serving_as(&self, role: &str, premises: Premises) -> Premises {
        premises.with(&format!("models.{role}.base_url"), &self.url).with(&format!("models.{role}.model"), role)
    }

    /// Refuses requests without this key from now on.
    pub fn wants_key(&self, key: &str) {
        *self.behaviour.key.lock() = Some(key.to_owned());
    }

    /// Reports these input and output tokens from now on.
    pub fn takes_tokens(&self, input: u64, output: u64) {
        *self.behaviour.tokens.lock() = (input, output);
    }

    /// Streams its answers from now on, and reports that this many of their input tokens came from a cache, and one of their output tokens was a
    /// thought.
    pub fn streams_with_cached(&self, tokens: u64) {
        *self.behaviour.cached.lock() = Some(tokens);
    }

    /// Answers everything from now on.
    pub fn release(&self) {
        self.behaviour.is_released.store(true, Ordering::SeqCst);
    }

    /// The bodies of all requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.behaviour.asked.borrow().clone()
    }

    /// Waits until something is found in the bodies of all requests.
    pub async fn wait_until<T>(&self, mut find: impl FnMut(&[Value]) -> Option<T>) -> T {
        let mut found = None;
        let mut asked = self.behaviour.asked.subscribe();
        let waited = timeout(
            PATIENCE,
            asked.wait_for(|asked| {
                found = find(asked);
                found.is_some()
            }),
        )
        .await;
        waited.expect("the model is asked").expect("the model is there");
        found.expect("that ended the wait")
    }

    /// Waits until the model of this name was asked this many times.
    pub async fn wait_for_requests(&self, name: &str, times: usize) {
        self.wait_until(|asked| (asked.iter().filter(|body| body["model"] == name).count() == times).then_some(())).await;
    }
}

/// The text of a prompt: of all its messages.
pub fn prompt(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

async fn respond(
    State(behaviour): State<Arc<Behaviour>>,
    method: Method,
    headers: HeaderMap,
    body: Option<Json<Value>>,
) -> Response {
    let refusal = |status: StatusCode, text: &str| (status, Json(json!({ "error": { "message": text } }))).into_response();
    let given = headers.get(AUTHORIZATION).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let wanted = behaviour.key.lock().clone().map(|key| format!("Bearer {key}"));
    if wanted.is_some_and(|wanted| given != wanted) {
        return refusal(StatusCode::UNAUTHORIZED, "Incorrect API key");
    }
    if method == Method::GET {
        return Json(json!({ "data": [{ "id": "small" }, { "id": "large" }] })).into_response();
    }
    let Some(Json(body)) = body else { return (StatusCode::BAD_REQUEST, Json(Value::Null)).into_response() };
    behaviour.asked.send_modify(|asked| asked.push(body.clone()));
    match (behaviour.answer)(&body) {
        Answer::Never => pending().await,
        Answer::Refused(status, text) => {
            refusal(StatusCode::from_u16(status).expect("a status"), &text.replace("{authorization}", given))
        }
        Answer::Text(text) => completion(&behaviour, &body, json!({ "content": text }), "stop"),
        Answer::Once(mut condition, text) => {
            condition.wait_for(|is_true| *is_true).await.expect("the test keeps it");
            completion(&behaviour, &body, json!({ "content": text }), "stop")
        }
        Answer::Call(tool, arguments) => {
            let function = json!({ "name": tool, "arguments": arguments.to_string() });
            let calls = json!([{ "index": 0, "id": "call", "type": "function", "function": function }]);
            completion(&behaviour, &body, json!({ "tool_calls": calls }), "tool_calls")
        }
    }
}

/// An answer whose message has these fields, in addition to its role.
fn completion(behaviour: &Behaviour, body: &Value, mut message: Value, finish_reason: &str) -> Response {
    message["role"] = "assistant".into();
    let (input, output) = *behaviour.tokens.lock();
    let mut usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    let Some(cached) = *behaviour.cached.lock() else {
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason });
        return Json(json!({ "id": "answer", "model": body["model"], "choices": [choice], "usage": usage })).into_response();
    };
    usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    usage["completion_tokens_details"] = json!({ "reasoning_tokens": 1 });
    let piece =
        |choices: Value, usage: Value| json!({ "id": "answer", "model": body["model"], "choices": choices, "usage": usage });
    let said = piece(json!([{ "index": 0, "delta": message, "finish_reason": finish_reason }]), Value::Null);
    let events = [said.to_string(), piece(json!([]), usage).to_string(), "[DONE]".to_owned()];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ([(CONTENT_TYPE, "text/event-stream")], stream).into_response()
}
