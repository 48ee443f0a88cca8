//! Handlers for messages: send, edit, delete, and read the history.

use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json as Answer};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Shared;
use super::body::{CallPath, FileBody, Json, MemberPath, MessagePath, QueryParams, RoomPath, too_large};
use super::guard::Caller;
use super::problem::{Problem, done, off_thread};
use super::uploads::JsonWithUploads;
use super::validation::MAX_ID_CHARS;
use super::{uploads, validation, visitor};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{Author, Role, Sender};
use crate::domain::tools::Who;
use crate::ports::backend::guest_service::{Amount, Visit};
use crate::ports::backend::messages::{
    Approver, CallView, Choice, Chosen, Confirmation, Drafted, Drafting, Edit, Found, Greeting, History, HistoryMessage,
    HistoryQuery, Imported, NewScene, PromptText, SearchQuery, Standing,
};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Why};
use crate::ports::inbound_events::InboundMessage;
use tertulia_cards::{self as cards, Chat, NotAChat};

const MAX_MENTIONS: usize = 64;
/// A second of a guest's voice note counts as at least one second of a microphone: Opus of speech has more bytes.
const SLOWEST_BYTES_PER_SEC: u64 = 1_000;

/// The number of an accepted message, and warnings for the sender.
#[derive(Serialize, JsonSchema)]
pub(super) struct Accepted {
    pub(super) seq: Seq,
    /// Warnings about a message that is accepted nevertheless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The warnings for programs that word them themselves, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warning_codes: Vec<Why>,
}

impl From<Seq> for Accepted {
    fn from(seq: Seq) -> Self {
        Self { seq, warnings: Vec::new(), warning_codes: Vec::new() }
    }
}

type Reply = Result<(StatusCode, Answer<Accepted>), Problem>;

/// `POST /api/rooms/{room}/messages`
pub(super) async fn say(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    headers: HeaderMap,
    JsonWithUploads(mut message, place): JsonWithUploads<InboundMessage>,
) -> Reply {
    if place.is_some() && message.uploads.is_empty() {
        return Err(too_large(console.settings.max_body_bytes));
    }
    message.from = Author::of_name(caller.speaker(&room, validation::name("from", &message.from.name)?, &console)?);
    message.sender = caller.sender(&headers);
    if message.uploads.is_empty() || !message.text.is_empty() {
        message.text = validation::text("text", &message.text, console.settings.max_text_chars)?;
    }
    if let Some(id) = &message.id {
        validation::message_id("id", id)?;
    }
    if message.mentions.len() > MAX_MENTIONS {
        return Err(Problem::invalid(
            "mentions",
            format!("names {}, at most {MAX_MENTIONS} can be mentioned in one message", message.mentions.len()),
        ));
    }
    for (index, mention) in message.mentions.iter_mut().enumerate() {
        *mention = validation::name(&format!("mentions[{index}]"), mention)?;
    }
    let visit = caller.in_room(&room, &console)?;
    if let Some(visit) = visit {
        console.backend()?.guests.consume_quota(visit, Amount::Message).await?;
        visitor::own(&mut message, visit)?;
    }
    uploads::take(&mut message, &console).await?;
    if let (Some(visit), Some(_)) = (visit, &message.voice_note) {
        let time = message.files.iter().map(|file| file.bytes.len() as u64 / SLOWEST_BYTES_PER_SEC).sum();
        console.backend()?.guests.consume_quota(visit, Amount::Voice(Duration::from_secs(time))).await?;
    }
    let warning = console.backend()?.messages.namesake(&room, &message.from.name).await?.map(|companion| {
        let from = &message.from.name;
        let text = format!(
            "from: {from:?} is a name of the companion {companion}, or looks like one; send another name, so that people can tell the two apart"
        );
        Detail::from(text).coded("refusals.warn_your_name", json!({ "name": from, "companion": companion }))
    });
    let seq = console.backend()?.messages.say(&room, message).await?;
    drop(place);
    let warning_codes = warning.iter().map(Detail::why).collect();
    let warnings = warning.iter().map(ToString::to_string).collect();
    Ok((StatusCode::ACCEPTED, Answer(Accepted { seq, warnings, warning_codes })))
}

/// An event that a companion must acknowledge, such as a raid or a new subscription (docs/design/gate.md G-33).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEvent {
    /// The client's own id for the event. If the `id` of an event or message in the room is sent again, nothing changes and the answer has the
    /// first `seq`.
    #[schemars(length(min = 1, max = MAX_ID_CHARS))]
    id: Arc<str>,
    /// The kind of event, such as `raid` or `new_sub`.
    #[schemars(extend("pattern" = "^[a-z0-9_]{1,32}$"))]
    kind: Arc<str>,
    /// The person in the event, as `from` of a message. Forgetting that person removes the event.
    #[schemars(length(min = 1, max = 64))]
    who: Arc<str>,
    /// The event in words, as `text` of a message. If the text names a companion, that companion acknowledges the event, otherwise the one that
    /// spoke least recently.
    #[schemars(length(min = 1))]
    text: Arc<str>,
}

/// `POST /api/rooms/{room}/events`
pub(super) async fn event(State(console): State<Shared>, RoomPath(room): RoomPath, Json(event): Json<NewEvent>) -> Reply {
    validation::message_id("id", &event.id)?;
    validation::kind("kind", &event.kind)?;
    let who = Author::of_name(validation::name("who", &event.who)?);
    let text = validation::text("text", &event.text, console.settings.max_text_chars)?;
    let message = InboundMessage { id: Some(event.id), kind: Some(event.kind), ..InboundMessage::new(who, text) };
    accepted(console.backend()?.messages.say(&room, message).await?)
}

/// `PATCH /api/rooms/{room}/messages/{seq}`
pub(super) async fn edit(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    MessagePath(room, seq): MessagePath,
    Json(mut edit): Json<Edit>,
) -> Reply {
    let visit = caller.in_room(&room, &console)?;
    check_own(&console, visit, &room, seq).await?;
    edit.text = validation::text("text", &edit.text, console.settings.max_text_chars)?;
    if let Some(visit) = visit {
        // An edit can make companions answer again.
        console.backend()?.guests.consume_quota(visit, Amount::Message).await?;
    }
    accepted(console.backend()?.messages.edit(&room, seq, edit).await?)
}

/// `DELETE /api/rooms/{room}/messages/{seq}`
pub(super) async fn delete(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    MessagePath(room, seq): MessagePath,
) -> Reply {
    check_own(&console, caller.in_room(&room, &console)?, &room, seq).await?;
    accepted(console.backend()?.messages.delete(&room, seq).await?)
}

/// Guests may edit and delete only their own messages.
async fn check_own(console: &Shared, visit: Option<&Visit>, room: &RoomId, seq: Seq) -> Result<(), Problem> {
    let Some(visit) = visit else { return Ok(()) };
    let before = Seq(seq.0.saturating_sub(1)).max(visit.from);
    let query = HistoryQuery { after: Some(before), before: None, limit: 1 };
    let found = console.backend()?.records.history(room, query).await?.messages;
    let is_own = |found: &HistoryMessage| {
        found.seq == seq && found.role == Role::Person && found.kind.is_none() && found.from == visit.name
    };
    if found.first().is_some_and(is_own) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, Detail::key("refusals.not_own")))
}

/// `POST /api/rooms/{room}/messages/{seq}/again`
pub(super) async fn try_again(State(console): State<Shared>, MessagePath(room, seq): MessagePath) -> Result<StatusCode, Problem> {
    done(console.backend()?.messages.answer_again(&room, seq, false, None).await)
}

/// `POST /api/rooms/{room}/messages/{seq}/continue`
pub(super) async fn extend(State(console): State<Shared>, MessagePath(room, seq): MessagePath) -> Result<StatusCode, Problem> {
    done(console.backend()?.messages.answer_again(&room, seq, true, None).await)
}

/// `PUT /api/rooms/{room}/messages/{seq}/version`
pub(super) async fn stand(
    State(console): State<Shared>,
    MessagePath(room, seq): MessagePath,
    Json(standing): Json<Standing>,
) -> Result<StatusCode, Problem> {
    done(console.backend()?.messages.stand(&room, seq, standing.version).await)
}

/// `GET /api/rooms/{room}/calls/{call}`
pub(super) async fn call(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    CallPath(room, call): CallPath,
    headers: HeaderMap,
) -> Result<Answer<CallView>, Problem> {
    let visit = caller.in_room(&room, &console)?;
    let view = console.backend()?.messages.call(&room, call, approver(&caller, visit, &headers)).await?;
    let is_theirs = |visit: &Visit| view.cause.as_ref().is_some_and(|cause| *cause.as_str() == *visit.name);
    if visit.is_some_and(|visit| !is_theirs(visit)) {
        return Err(Problem::new(StatusCode::NOT_FOUND, Detail::of("refusals.no_call", json!({ "call": call, "room": room }))));
    }
    Ok(Answer(view))
}

/// `POST /api/rooms/{room}/calls/{call}`
pub(super) async fn decide_call(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    CallPath(room, call): CallPath,
    headers: HeaderMap,
    Json(Confirmation { confirm }): Json<Confirmation>,
) -> Result<StatusCode, Problem> {
    let by = approver(&caller, caller.in_room(&room, &console)?, &headers);
    done(console.backend()?.messages.decide_call(&room, call, by, confirm).await)
}

/// Who decides about calls of tools. No program presses a button for a person.
fn approver(caller: &Caller, visit: Option<&Visit>, headers: &HeaderMap) -> Approver {
    let who = visit.map(|visit| Who { person: PersonId::from(&*visit.name), sender: Some(Sender::Guest) });
    Approver { who, is_operator: caller.sender(headers) == Some(Sender::Operator), roles: None }
}

/// `POST /api/rooms/{room}/next`
pub(super) async fn choose(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
    Json(mut choice): Json<Choice>,
) -> Result<(StatusCode, Answer<Chosen>), Problem> {
    if let Some(companion) = &choice.companion {
        validation::companion_id("companion", companion.as_str())?;
    }
    choice.by = choice.by.map(|by| validation::name("by", &by)).transpose()?.map(|by| Author::of_name(by).id);
    Ok((StatusCode::ACCEPTED, Answer(console.backend()?.messages.choose(&room, choice).await?)))
}

/// `POST /api/rooms/{room}/drafts`
pub(super) async fn draft(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(mut drafting): Json<Drafting>,
) -> Result<Answer<Drafted>, Problem> {
    validation::companion_id("companion", drafting.companion.as_str())?;
    drafting.from = caller.speaker(&room, validation::name("from", &drafting.from)?, &console)?;
    let visit = caller.in_room(&room, &console)?;
    Ok(Answer(console.backend()?.messages.draft(&room, drafting, visit).await?))
}

/// `POST /api/rooms/{room}/greeting`
pub(super) async fn greet(State(console): State<Shared>, RoomPath(room): RoomPath, Json(greeting): Json<Greeting>) -> Reply {
    validation::companion_id("companion", greeting.companion.as_str())?;
    accepted(console.backend()?.messages.greet(&room, greeting).await?)
}

/// `POST /api/rooms/{room}/scenes`
pub(super) async fn set_scene(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(scene): Json<NewScene>,
) -> Reply {
    let from = caller.speaker(&room, validation::name("from", &scene.from)?, &console)?;
    let text = validation::text("text", &scene.text, console.settings.max_text_chars)?;
    accepted(console.backend()?.messages.set_scene(&room, Author::of_name(from), text).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportParams {
    /// The name for the person of the chat, instead of the one in the file.
    #[schemars(length(min = 1, max = 64))]
    from: Option<String>,
}

/// `POST /api/rooms/{room}/import?from=`
pub(super) async fn import(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    QueryParams(params): QueryParams<ImportParams>,
    FileBody(file, place): FileBody,
) -> Result<Answer<Imported>, Problem> {
    let from = params.from.map(|name| caller.speaker(&room, validation::name("from", &name)?, &console)).transpose()?;
    let (most_chars, mut hasher) = (console.settings.max_text_chars, DefaultHasher::new());
    hasher.write(&file);
    let id = format!("{:016x}", hasher.finish());
    let refused = |why: NotAChat| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, Detail::of(why.as_str(), json!({ "most": cards::MOST_MESSAGES })))
    };
    let read = move || cards::read_chat(&file, from.as_deref(), most_chars, &TimeZone::UTC).map_err(refused);
    let Chat { messages, left_out, unreadable, cut, note } = off_thread(read).await?;
    drop(place);
    let imported = console.backend()?.messages.import(&room, messages, &id).await?;
    Ok(Answer(Imported { left_out, unreadable, cut, note, ..imported }))
}

/// `GET /api/rooms/{room}/messages/{seq}/prompt`
pub(super) async fn prompt(
    State(console): State<Shared>,
    MessagePath(room, seq): MessagePath,
) -> Result<Answer<PromptText>, Problem> {
    Ok(Answer(console.backend()?.records.prompt(&room, seq).await?))
}

/// `POST /api/rooms/{room}/replies/{companion}/stop`
pub(super) async fn stop_reply(
    State(console): State<Shared>,
    MemberPath(room, companion): MemberPath,
) -> Result<StatusCode, Problem> {
    done(console.backend()?.messages.stop_reply(&room, &companion).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryParams {
    /// Returns the first `limit` messages after this number instead of the newest ones.
    after: Option<u64>,
    /// Returns only messages before this number.
    before: Option<u64>,
    /// 100 if it is absent.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<usize>,
}

/// `GET /api/rooms/{room}/history?after=&before=&limit=`
pub(super) async fn history(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    QueryParams(params): QueryParams<HistoryParams>,
) -> Result<Answer<History>, Problem> {
    let visit = caller.in_room(&room, &console)?;
    let most = if visit.is_some() { visitor::MOST_MESSAGES } else { usize::MAX };
    let limit = limit(params.limit, 100, 1_000)?.min(most);
    let query = HistoryQuery { after: params.after.map(Seq), before: params.before.map(Seq), limit };
    let history = console.backend()?.records.history(&room, query).await?;
    Ok(Answer(match visit {
        Some(visit) => visitor::history(history, visit),
        None => history,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    /// The words, or a part of a text.
    #[schemars(length(min = 1, max = 200))]
    q: String,
    /// 20 if it is absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

/// `GET /api/rooms/{room}/search?q=&limit=`
pub(super) async fn search(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
    QueryParams(params): QueryParams<SearchParams>,
) -> Result<Answer<Found>, Problem> {
    if !(1..=200).contains(&params.q.trim().chars().count()) {
        return Err(Problem::query("q", Detail::of("refusals.search_length", json!({ "most": 200 }))));
    }
    let query = SearchQuery { words: params.q.trim().to_owned(), limit: limit(params.limit, 20, 100)? };
    Ok(Answer(console.backend()?.records.search(&room, query).await?))
}

/// The requested length of a list, of at least one entry.
pub(super) fn limit(requested: Option<usize>, usual: usize, most: usize) -> Result<usize, Problem> {
    match requested.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(Problem::query("limit", format!("limit is {limit}, must be from 1 to {most}"))),
    }
}

fn accepted(seq: Seq) -> Reply {
    Ok((StatusCode::ACCEPTED, Answer(seq.into())))
}
