//! Handlers for recorded decisions, and for the explanation of one.

use axum::Json as Answer;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::body::QueryParams;
use super::language::Preferred;
use super::messages::limit;
use super::openapi::PlainId;
use super::problem::Problem;
use super::rooms::find_room;
use super::validation::{self, MAX_ID_CHARS};
use crate::domain::id::{CompanionId, Seq};
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyAt, WhyQuery};
use crate::ports::backend::stamp;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionsParams {
    /// The room's id or title, ignoring case.
    room: Option<String>,
    #[schemars(with = "Option<PlainId>")]
    companion: Option<String>,
    /// Returns only decisions after this number. It requires `room`.
    after: Option<u64>,
    /// 100 if it is absent.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<usize>,
}

/// `GET /api/decisions?room=&companion=&after=&limit=`
pub(super) async fn decisions(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<DecisionsParams>,
) -> Result<Answer<Decisions>, Problem> {
    if params.after.is_some() && params.room.is_none() {
        return Err(Problem::query("after", "after needs room, because events are numbered per room"));
    }
    let query = DecisionQuery {
        room: find_room(&console, params.room).await?,
        companion: companion(params.companion)?,
        after: params.after.map(Seq),
        limit: limit(params.limit, 100, 1_000)?,
    };
    Ok(Answer(console.backend()?.records.decisions(query).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhyParams {
    /// The room's id or title, ignoring case.
    #[schemars(required)]
    room: Option<String>,
    /// An id, a name or an alias. If it is absent, all companions are described briefly.
    companion: Option<String>,
    /// The number of a decision, or a time. It cannot be combined with `message`.
    at: Option<String>,
    /// The `seq` or the `id` of a message.
    message: Option<String>,
}

/// `GET /api/why?room=&companion=&at=&message=`: `companion` is an id, a name or an alias. `at` is the number of a decision's event, or a time.
/// `message` is the number or id of a message. The sentences are in the language of the request.
pub(super) async fn why(
    State(console): State<Shared>,
    Preferred(language): Preferred,
    QueryParams(params): QueryParams<WhyParams>,
) -> Result<Answer<Why>, Problem> {
    let room = find_room(&console, params.room).await?;
    let room = room.ok_or_else(|| Problem::query("room", "room is missing; give the room of the decision or message"))?;
    let at = match (params.at, params.message) {
        (Some(_), Some(_)) => {
            return Err(Problem::query("message", "message and at cannot be used together; leave out one of them"));
        }
        (Some(time), None) => Some(at(&time)?),
        (None, Some(id)) => {
            validation::opaque_id("message", &id, MAX_ID_CHARS)?;
            Some(WhyAt::Message(id.into()))
        }
        (None, None) => None,
    };
    let companion = params.companion.map(|name| validation::name("companion", &name)).transpose()?;
    let query = WhyQuery { room, companion, at, language };
    Ok(Answer(console.backend()?.records.why(query).await?))
}

fn companion(id: Option<String>) -> Result<Option<CompanionId>, Problem> {
    if let Some(id) = &id {
        validation::companion_id("companion", id)?;
    }
    Ok(id.map(CompanionId::from))
}

fn at(text: &str) -> Result<WhyAt, Problem> {
    if let Ok(number) = text.parse() {
        return Ok(WhyAt::Event(Seq(number)));
    }
    // An unescaped plus in a query is decoded as a space.
    let moment = stamp::from_rfc3339(&text.replace(' ', "+")).map(WhyAt::Moment);
    moment.ok_or_else(|| Problem::query("at", "at is neither an event's number nor a time like 2026-05-01T12:00:00.250Z"))
}
