//! REST requests, from arrival to answer.
//!
//! <https://docs.discord.com/developers/reference#http-api>

mod answer;
mod commands;
mod guilds;
mod interactions;
mod messages;
mod voice;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::sleep;

use answer::Answer;

use super::journal::{Outcome, Request};
use super::limits::Exceeded;
use super::routes::Found;
use super::state::Shared;
use super::{Does, Id, Refusal, State};

/// The parts of a request that handlers need.
pub struct Call {
    pub found: Found,
    pub query: BTreeMap<String, String>,
    pub body: Value,
}

/// The result of a handler: a status, and JSON if there is a body.
pub type Reply = Result<(u16, Option<Value>), Refusal>;

/// Status 200 with a body.
pub fn ok(body: Value) -> Reply {
    Ok((200, Some(body)))
}

/// Status 204 without a body.
pub fn done() -> Reply {
    Ok((204, None))
}

impl Call {
    /// A parameter of the path.
    ///
    /// # Panics
    ///
    /// The route has no such parameter.
    pub fn id(&self, parameter: &str) -> Id {
        self.found.id(parameter).expect("a parameter of the route")
    }

    /// The token in the path, of a webhook or an interaction.
    pub fn token(&self) -> (Id, &str) {
        self.found.by_token().expect("a route with a token")
    }

    /// <https://docs.discord.com/developers/reference#boolean-query-strings>
    pub fn flag(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| ["true", "True", "1"].contains(&value.as_str()))
    }
}

/// Answers a request. Returns none if the connection must be cut instead.
pub async fn handle(shared: Arc<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Option<Response> {
    let found = Found::find(method.as_str(), uri.path());
    let (index, fault) = shared.with(|state| state.arrived(&method, &uri, found.as_ref().ok()));
    match &fault {
        Some((number, Does::Hang)) => {
            let number = *number;
            shared.until(|state| state.faults.is_lifted(number).then_some(())).await;
        }
        Some((_, Does::Slow(time))) => sleep(*time).await,
        Some((_, Does::Cut)) => return None,
        _ => {}
    }
    let answer = shared.with(|state| match &fault {
        Some((_, Does::TooMany { retry_after, scope })) => {
            Answer::exceeded(&Exceeded { scope: *scope, retry_after: *retry_after }, None)
        }
        Some((_, Does::Status(status))) => Answer::page(*status),
        Some((_, Does::Says(status, body))) => Answer::custom(*status, body),
        _ => state.answer(found, &uri, &headers, &body),
    });
    match &fault {
        Some((number, Does::HangAfterwards)) => {
            let number = *number;
            shared.until(|state| state.faults.is_lifted(number).then_some(())).await;
        }
        Some((_, Does::CutAfterwards)) => {
            shared.with(|state| state.answered(index, &answer));
            return None;
        }
        _ => {}
    }
    shared.with(|state| state.answered(index, &answer));
    let mut response = if matches!(fault, Some((_, Does::Garbled))) { answer.garbled() } else { answer.response() };
    let date = shared.look(|state| state.world.date());
    response.headers_mut().insert("date", HeaderValue::from_str(&date).expect("a date"));
    Some(response)
}

impl State {
    /// Records a request, and returns its number and the fault that affects it.
    fn arrived(&mut self, method: &Method, uri: &Uri, found: Option<&Found>) -> (usize, Option<(u64, Does)>) {
        let webhook = found.and_then(Found::by_token).and_then(|(id, _)| self.world.webhooks.get(&id));
        let channel = found.and_then(Found::channel).or(webhook.map(|webhook| webhook.channel));
        let guild = channel.and_then(|channel| self.world.guild_of(channel)).map(|guild| guild.id);
        let request = Request {
            method: method.to_string(),
            path: uri.path().to_owned(),
            route: found.map_or("", |found| found.route.name),
            channel,
            guild: found.and_then(Found::guild).or(guild),
            outcome: None,
        };
        let fault = self.faults.hit(&request);
        self.journal.requests.push(request);
        (self.journal.requests.len() - 1, fault)
    }

    /// Records the outcome of a request, and bans the address after too many invalid requests.
    fn answered(&mut self, index: usize, answer: &Answer) {
        let request = &mut self.journal.requests[index];
        if answer.status == 501 {
            self.journal.unsupported.push(format!("{} {}: {:?}", request.method, request.path, answer.reason));
        }
        request.outcome = Some(Outcome { status: answer.status, code: answer.code, limit: answer.limit });
        let counts = matches!(answer.status, 401 | 403 | 429) && answer.limit != Some("shared") && !answer.banned;
        if counts && self.limits.invalid(&self.rules) {
            self.journal.bans += 1;
        }
    }

    fn answer(&mut self, found: Result<Found, Refusal>, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Answer {
        if let Some(left) = self.limits.banned() {
            return Answer::banned(left);
        }
        if !has_user_agent(headers) {
            return Answer::refused(&Refusal::new(403, 40333, "internal network error"), None);
        }
        let found = match found {
            Ok(found) => found,
            Err(refusal) => return Answer::refused(&refusal, None),
        };
        let authorized = match self.authorized(&found, headers) {
            Ok(authorized) => authorized,
            Err(refusal) => return Answer::refused(&refusal, None),
        };
        let client = if authorized { "bot" } else { "address" };
        let interaction = self.is_interaction(&found);
        if !interaction && let Err(exceeded) = self.limits.global(client, &self.rules) {
            return Answer::exceeded(&exceeded, None);
        }
        let (bucket, taken) = self.limits.bucket(found.route.name, &major(&found), &self.rules);
        if let Err(exceeded) = taken {
            return Answer::exceeded(&exceeded, Some(&bucket));
        }
        let (handle, posts) = (found.route.handle, self.journal.posts.len());
        let reply = json_body(headers, body).and_then(|body| handle(self, &Call { found, query: query(uri), body }));
        let agent = headers.get("user-agent").and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        self.journal.posts[posts..].iter_mut().for_each(|post| agent.clone_into(&mut post.agent));
        match reply {
            Ok((status, body)) => Answer::of(status, body, &bucket),
            Err(refusal) => Answer::refused(&refusal, Some(&bucket)),
        }
    }

    /// Whether the request has the bot's token.
    fn authorized(&self, found: &Found, headers: &HeaderMap) -> Result<bool, Refusal> {
        let given = headers.get("authorization").map(|value| value.to_str().unwrap_or_default());
        match given {
            Some(given) if given.strip_prefix("Bot ") == Some(self.world.application.token.as_str()) => Ok(true),
            None | Some("") if found.is_open() => Ok(false),
            _ => Err(Refusal::unauthorized()),
        }
    }

    /// Answers to interactions do not count towards the bot's global limit.
    fn is_interaction(&self, found: &Found) -> bool {
        found.by_token().is_some_and(|(id, _)| id == self.world.application.id || self.world.interactions.contains_key(&id))
    }
}

/// The top-level resource, which has its own bucket.
///
/// <https://docs.discord.com/developers/topics/rate-limits>
fn major(found: &Found) -> String {
    match (found.by_token(), found.channel().or(found.guild())) {
        (Some((id, token)), _) => format!("{id}/{token}"),
        (None, Some(id)) => id.to_string(),
        (None, None) => String::new(),
    }
}

/// <https://docs.discord.com/developers/reference#user-agent>
fn has_user_agent(headers: &HeaderMap) -> bool {
    let agent = headers.get("user-agent").and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let inside = agent.strip_prefix("DiscordBot (").and_then(|rest| rest.split_once(')'));
    let parts = inside.and_then(|(inside, _)| inside.split_once(','));
    parts.is_some_and(|(url, version)| !url.trim().is_empty() && !version.trim().is_empty())
}

fn query(uri: &Uri) -> BTreeMap<String, String> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// <https://docs.discord.com/developers/reference#content-type>
fn json_body(headers: &HeaderMap, body: &Bytes) -> Result<Value, Refusal> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => {
            serde_json::from_slice(body).map_err(|_| Refusal::new(400, 50109, "The request body contains invalid JSON."))
        }
        "multipart/form-data" => form(kind, body).ok_or_else(|| Refusal::new(400, 50109, "The request body is no form.")),
        _ => {
            let message = format!("Expected \"Content-Type\" header to be one of {{'application/json'}}. Got {kind:?}.");
            Err(Refusal::field(&[], "CONTENT_TYPE_INVALID", &message))
        }
    }
}

/// The JSON of a form with one JSON file, which becomes its field `file`.
///
/// <https://docs.discord.com/developers/reference#uploading-files>
fn form(kind: &str, body: &Bytes) -> Option<Value> {
    let (_, boundary) = kind.split_once("boundary=")?;
    let text = std::str::from_utf8(body).ok()?.strip_suffix(&format!("\r\n--{boundary}--\r\n"))?;
    let text = text.strip_prefix(&format!("--{boundary}\r\n"))?;
    let (message, file) = text.split_once(&format!("\r\n--{boundary}\r\n"))?;
    let (head, message) = message.split_once("\r\n\r\n")?;
    let (file_head, file) = file.split_once("\r\n\r\n")?;
    let (_, name) = file_head.split_once("form-data; name=\"files[0]\"; filename=\"")?;
    let mut message: Value = head.contains("name=\"payload_json\"").then(|| serde_json::from_str(message).ok())??;
    message["file"] = json!({ "filename": name.split('"').next()?, "size": file.len(), "content": file });
    Some(message)
}
