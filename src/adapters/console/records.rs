//! Decisions on record, and the story of one.

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;

use super::Shared;
use super::body::Asked;
use super::messages::{MAX_ID_CHARS, limit};
use super::problem::Problem;
use super::words;
use crate::domain::id::{CompanionId, Seq};
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyAt, WhyQuery};
use crate::ports::backend::stamp;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedDecisions {
    room: Option<String>,
    companion: Option<String>,
    after: Option<u64>,
    limit: Option<usize>,
}

/// `GET /api/decisions?room=&companion=&after=&limit=`
pub(super) async fn decisions(
    State(console): State<Shared>,
    Asked(asked): Asked<AskedDecisions>,
) -> Result<Answer<Decisions>, Problem> {
    if asked.after.is_some() && asked.room.is_none() {
        return Err(Problem::query("after", "after needs room: events are numbered by room"));
    }
    let query = DecisionQuery {
        room: asked.room.map(|room| words::room("room", &room)).transpose()?,
        companion: companion(asked.companion)?,
        after: asked.after.map(Seq),
        limit: limit(asked.limit)?,
    };
    Ok(Answer(console.backend.decisions(query).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedWhy {
    room: Option<String>,
    companion: Option<String>,
    at: Option<String>,
    message: Option<String>,
}

/// `GET /api/why?room=&companion=&at=&message=`: `companion` is an id, a name or an alias, `at` the number of a decision's event or a time,
/// `message` a message's number or id.
pub(super) async fn why(State(console): State<Shared>, Asked(asked): Asked<AskedWhy>) -> Result<Answer<Why>, Problem> {
    let room = asked.room.ok_or_else(|| Problem::query("room", "room is missing, name the room that the story is about"))?;
    let at = match (asked.at, asked.message) {
        (Some(_), Some(_)) => return Err(Problem::query("message", "message and at name two stories, leave one of them out")),
        (Some(time), None) => Some(at(&time)?),
        (None, Some(id)) => {
            words::opaque_id("message", &id, MAX_ID_CHARS)?;
            Some(WhyAt::Message(id.into()))
        }
        (None, None) => None,
    };
    let companion = asked.companion.map(|name| words::name("companion", &name)).transpose()?;
    let query = WhyQuery { room: words::room("room", &room)?, companion, at };
    Ok(Answer(console.backend.why(query).await?))
}

fn companion(asked: Option<String>) -> Result<Option<CompanionId>, Problem> {
    if let Some(id) = &asked {
        words::companion("companion", id)?;
    }
    Ok(asked.map(CompanionId::from))
}

fn at(text: &str) -> Result<WhyAt, Problem> {
    if let Ok(number) = text.parse() {
        return Ok(WhyAt::Event(Seq(number)));
    }
    // An unescaped plus in a query is read as a space.
    let moment = stamp::from_rfc3339(&text.replace(' ', "+")).map(WhyAt::Moment);
    moment.ok_or_else(|| Problem::query("at", "at is neither an event's number nor a time like 2026-05-01T12:00:00.250Z"))
}
