//! Answers to REST requests.
//!
//! <https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit>

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::super::limits::{BucketState, Exceeded};
use super::super::{Refusal, Scope};

pub struct Answer {
    pub status: u16,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
    json: bool,
    pub code: Option<u32>,
    pub reason: Option<String>,
    pub limit: Option<&'static str>,
    pub banned: bool,
}

impl Answer {
    fn new(status: u16, body: Option<String>) -> Self {
        let json = body.is_some();
        Self { status, headers: Vec::new(), body, json, code: None, reason: None, limit: None, banned: false }
    }

    /// The answer of a handler.
    pub fn of(status: u16, body: Option<Value>, bucket: &BucketState) -> Self {
        Self { headers: bucket.headers(), ..Self::new(status, body.map(|body| body.to_string())) }
    }

    pub fn refused(refusal: &Refusal, bucket: Option<&BucketState>) -> Self {
        Self {
            headers: bucket.map(BucketState::headers).unwrap_or_default(),
            code: Some(refusal.code),
            reason: Some(refusal.message.clone()),
            ..Self::new(refusal.status, Some(refusal.body().to_string()))
        }
    }

    /// 429 for a request over a limit.
    pub fn exceeded(exceeded: &Exceeded, bucket: Option<&BucketState>) -> Self {
        let seconds = exceeded.retry_after.as_secs_f64();
        let global = exceeded.scope == Scope::Global;
        let message = match exceeded.scope {
            Scope::Shared => "The resource is being rate limited.",
            Scope::User | Scope::Global => "You are being rate limited.",
        };
        let body = json!({ "message": message, "retry_after": (seconds * 1_000.0).ceil() / 1_000.0, "global": global });
        let mut answer = Self::new(429, Some(body.to_string()));
        answer.headers = bucket.map(BucketState::headers).unwrap_or_default();
        answer.headers.push(("retry-after", format!("{:.0}", seconds.ceil())));
        answer.headers.push(("x-ratelimit-scope", exceeded.scope.name().to_owned()));
        if global {
            answer.headers.push(("x-ratelimit-global", "true".to_owned()));
        }
        answer.limit = Some(exceeded.scope.name());
        answer.reason = Some(message.to_owned());
        answer
    }

    /// The answer of the proxy in front of Discord to a banned address: no JSON, and no headers of a bucket.
    pub fn banned(left: Duration) -> Self {
        let mut answer = Self::page(429);
        answer.body = Some("error code: 1015".to_owned());
        answer.headers.push(("retry-after", left.as_secs_f64().ceil().to_string()));
        answer.reason = Some("banned".to_owned());
        answer.banned = true;
        answer
    }

    /// An HTML page of a proxy in front of Discord.
    pub fn page(status: u16) -> Self {
        let text = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>");
        Self { json: false, ..Self::new(status, Some(text)) }
    }

    /// A status and a body that a test chose.
    pub fn custom(status: u16, body: &Value) -> Self {
        Self::new(status, Some(body.to_string()))
    }

    pub fn response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("a status");
        let mut response = Response::builder().status(status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        if self.body.is_some() {
            response = response.header("content-type", if self.json { "application/json" } else { "text/html" });
        }
        response.body(self.body.map_or_else(Body::empty, Body::from)).expect("a response")
    }

    /// The response with only the first half of its body.
    pub fn garbled(mut self) -> Response {
        self.body = self.body.map(|body| body.chars().take(body.chars().count() / 2).collect());
        self.response()
    }
}
