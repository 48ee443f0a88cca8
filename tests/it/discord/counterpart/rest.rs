//! REST requests, from arrival to answer.
//!
//! <https://docs.discord.com/developers/reference#http-api>

mod answer;
mod commands;
mod guilds;
mod interactions;
mod messages;
mod threads;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use answer::Answer;

use super::faults::Does;
use super::journal::{Outcome, Request};
use super::limits::Exceeded;
use super::refusal::Refusal;
use super::routes::Route;
use super::state::{Shared, State};

/// The parts of a request that handlers need.
pub struct Call {
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
    /// <https://docs.discord.com/developers/reference#boolean-query-strings>
    pub fn flag(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| ["true", "True", "1"].contains(&value.as_str()))
    }
}

/// Answers a request. Returns none if the connection must be cut instead.
pub async fn handle(shared: Arc<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Option<Response> {
    let found = Route::find(method.as_str(), uri.path());
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
    fn arrived(&mut self, method: &Method, uri: &Uri, route: Option<&Route>) -> (usize, Option<(u64, Does)>) {
        let webhook = route.and_then(Route::by_token).and_then(|(id, _)| self.world.webhooks.get(&id));
        let channel = route.and_then(Route::channel).or(webhook.map(|webhook| webhook.channel));
        let guild = channel.and_then(|channel| self.world.guild_of(channel)).map(|guild| guild.id);
        let request = Request {
            at: Instant::now(),
            method: method.to_string(),
            path: uri.path().to_owned(),
            route: route.map_or("", Route::name),
            channel,
            guild: route.and_then(Route::guild).or(guild),
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
        request.outcome = Some(Outcome {
            status: answer.status,
            code: answer.code,
            reason: answer.reason.clone(),
            limit: answer.limit,
            took: request.at.elapsed(),
        });
        let counts = matches!(answer.status, 401 | 403 | 429) && answer.limit != Some("shared") && !answer.banned;
        if counts && self.limits.invalid(&self.rules) {
            self.journal.bans += 1;
        }
    }

    fn answer(&mut self, found: Result<Route, Refusal>, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Answer {
        if let Some(left) = self.limits.banned() {
            return Answer::banned(left);
        }
        if !has_user_agent(headers) {
            return Answer::refused(&Refusal::new(403, 40333, "internal network error"), None);
        }
        let route = match found {
            Ok(route) => route,
            Err(refusal) => return Answer::refused(&refusal, None),
        };
        let authorized = match self.authorized(&route, headers) {
            Ok(authorized) => authorized,
            Err(refusal) => return Answer::refused(&refusal, None),
        };
        let client = if authorized { "bot" } else { "address" };
        let interaction = self.is_interaction(&route);
        if !interaction && let Err(exceeded) = self.limits.global(client, &self.rules) {
            return Answer::exceeded(&exceeded, None);
        }
        let (bucket, taken) = self.limits.bucket(route.name(), &major(&route), &self.rules);
        if let Err(exceeded) = taken {
            return Answer::exceeded(&exceeded, Some(&bucket));
        }
        let reply = json_body(headers, body).and_then(|body| self.reply(route, &Call { query: query(uri), body }));
        match reply {
            Ok((status, body)) => Answer::of(status, body, &bucket),
            Err(refusal) => Answer::refused(&refusal, Some(&bucket)),
        }
    }

    /// Whether the request has the bot's token.
    fn authorized(&self, route: &Route, headers: &HeaderMap) -> Result<bool, Refusal> {
        let given = headers.get("authorization").map(|value| value.to_str().unwrap_or_default());
        match given {
            Some(given) if given.strip_prefix("Bot ") == Some(self.world.application.token.as_str()) => Ok(true),
            None | Some("") if route.is_open() => Ok(false),
            _ => Err(Refusal::unauthorized()),
        }
    }

    /// Answers to interactions do not count towards the bot's global limit.
    fn is_interaction(&self, route: &Route) -> bool {
        route.by_token().is_some_and(|(id, _)| id == self.world.application.id || self.world.interactions.contains_key(&id))
    }

    fn reply(&mut self, route: Route, call: &Call) -> Reply {
        match route {
            Route::Gateway => ok(serde_json::json!({ "url": self.gateway_url })),
            Route::GatewayBot => self.gateway_bot(),
            Route::CurrentUser => ok(self.world.users[&self.world.bot()].current_json()),
            Route::User(id) => self.user(id),
            Route::CurrentUserGuilds => self.current_user_guilds(call),
            Route::LeaveGuild(guild) => self.leave_guild(guild),
            Route::CreateDirect => self.create_direct(call),
            Route::CurrentApplication => self.current_application(),
            Route::Guild(guild) => ok(self.world.joined_guild(guild)?.json()),
            Route::GuildChannels(guild) => self.guild_channels(guild),
            Route::GuildRoles(guild) => self.guild_roles(guild),
            Route::GuildMember(guild, user) => self.guild_member(guild, user),
            Route::ActiveThreads(guild) => self.active_threads(guild),
            Route::GuildWebhooks(guild) => self.guild_webhooks(guild),
            Route::Channel(channel) => self.channel(channel),
            Route::Messages(channel) => self.messages(channel, call),
            Route::Message(channel, message) => self.message(channel, message),
            Route::CreateMessage(channel) => self.create_message(channel, call),
            Route::EditMessage(channel, message) => self.edit_message(channel, message, call),
            Route::DeleteMessage(channel, message) => self.delete_message(channel, message),
            Route::BulkDelete(channel) => self.bulk_delete(channel, call),
            Route::Typing(channel) => self.typing(channel),
            Route::ThreadFromMessage(channel, message) => self.thread_from_message(channel, message, call),
            Route::StartThread(channel) => self.start_thread(channel, call),
            Route::JoinThread(thread) => self.join_thread_as_bot(thread),
            Route::ArchivedThreads(channel) => self.archived_threads(channel),
            Route::ChannelWebhooks(channel) => self.channel_webhooks(channel),
            Route::CreateWebhook(channel) => self.create_webhook(channel, call),
            Route::Webhook(id) => self.webhook(id),
            Route::ModifyWebhook(id) => self.modify_webhook(id, call),
            Route::DeleteWebhook(id) => self.delete_webhook(id),
            Route::TokenWebhook(id, token) => self.token_webhook(id, &token),
            Route::DeleteTokenWebhook(id, token) => self.delete_token_webhook(id, &token),
            Route::ExecuteWebhook(id, token) => self.execute_webhook(id, &token, call),
            Route::WebhookMessage(id, token, message) => self.webhook_message(id, &token, message, call),
            Route::EditWebhookMessage(id, token, message) => self.edit_webhook_message(id, &token, message, call),
            Route::DeleteWebhookMessage(id, token, message) => self.delete_webhook_message(id, &token, message, call),
            Route::InteractionCallback(id, token) => self.interaction_callback(id, &token, call),
            Route::Commands(application, guild) => self.commands(application, guild),
            Route::CreateCommand(application, guild) => self.create_command(application, guild, call),
            Route::OverwriteCommands(application, guild) => self.overwrite_commands(application, guild, call),
            Route::DeleteCommand(application, guild, command) => self.delete_command(application, guild, command),
        }
    }
}

/// The top-level resource, which has its own bucket.
///
/// <https://docs.discord.com/developers/topics/rate-limits>
fn major(route: &Route) -> String {
    match (route.by_token(), route.channel().or(route.guild())) {
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
        // Discord accepts files in forms. This test double does not.
        "multipart/form-data" => Err(Refusal::new(501, 0, "the counterpart accepts no forms")),
        _ => {
            let message = format!("Expected \"Content-Type\" header to be one of {{'application/json'}}. Got {kind:?}.");
            Err(Refusal::field(&[], "CONTENT_TYPE_INVALID", &message))
        }
    }
}
