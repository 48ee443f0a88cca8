//! Handlers for reminders.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::body::{Json, QueryParams, ReminderPath, RoomPath};
use super::guard::Caller;
use super::problem::Problem;
use super::validation;
use crate::domain::id::{CompanionId, PersonId};
use crate::domain::message::Author;
use crate::domain::reminders::{MOST_CHARS, NewReminder};
use crate::ports::backend::guest_service::Amount;
use crate::ports::backend::reminder_service::{ReminderSet, ReminderView};
use crate::ports::backend::room::RoomId;

/// The open reminders of a room.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reminders {
    /// In the order in which they were set. A guest gets only its own.
    reminders: Vec<ReminderView>,
    /// The time zone in which times of the person in `from` are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<Arc<str>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Whose {
    /// Only those of the person who writes under this name.
    #[schemars(length(min = 1, max = 64))]
    from: Option<String>,
}

/// `GET /api/rooms/{room}/reminders`
pub(super) async fn list(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    QueryParams(Whose { from }): QueryParams<Whose>,
) -> Result<Answer<Reminders>, Problem> {
    let from = from.map(|from| validation::name("from", &from)).transpose()?.map(|from| PersonId::from(&*from));
    let person = person(&caller, &room, &console)?.or(from);
    let service = &console.backend()?.reminders;
    let reminders = service.reminders(&room, person.as_ref()).await?;
    let zone = match person {
        Some(person) => Some(service.time_zone(&console.backend()?.rooms.get(&room).await?.guild, &person).await?),
        None => None,
    };
    Ok(Answer(Reminders { reminders, zone }))
}

/// The time zone of a person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewZone {
    /// The name under which the person writes.
    #[schemars(length(min = 1, max = 64))]
    from: Arc<str>,
    /// A name such as `Europe/Berlin`, or a distance from UTC such as `+02:00`. Null: that of the guild.
    #[schemars(length(min = 1, max = 64))]
    zone: Option<Arc<str>>,
}

/// `PUT /api/rooms/{room}/time-zone`
pub(super) async fn set_zone(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(NewZone { from, zone }): Json<NewZone>,
) -> Result<StatusCode, Problem> {
    let from = caller.speaker(&room, validation::name("from", &from)?, &console)?;
    if let Some(visit) = caller.in_room(&room, &console)? {
        console.backend()?.guests.consume_quota(visit, Amount::Message).await?;
    }
    let guild = console.backend()?.rooms.get(&room).await?.guild;
    console.backend()?.reminders.set_time_zone(&guild, &PersonId::from(&*from), zone.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A reminder that a person sets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    /// The name under which the person writes.
    #[schemars(length(min = 1, max = 64))]
    from: Arc<str>,
    #[schemars(length(min = 1, max = MOST_CHARS))]
    text: Arc<str>,
    /// When it is due: RFC 3339, or a local time such as `2027-03-28T14:30` or `14:30`. Either this or `in_minutes` is required.
    #[schemars(length(min = 1, max = 64))]
    at: Option<Arc<str>>,
    /// In how many minutes it is due, from 1 to a year.
    in_minutes: Option<f64>,
    /// The time zone of `at`, such as `Europe/Berlin`. Without it, the one that the person chose, or the guild's.
    #[schemars(length(min = 1, max = 64))]
    zone: Option<Arc<str>>,
    /// The companion that acknowledges it. Without it, the one that spoke least recently.
    companion: Option<CompanionId>,
}

/// `POST /api/rooms/{room}/reminders`
pub(super) async fn set(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(New { from, text, at, in_minutes, zone, companion }): Json<New>,
) -> Result<(StatusCode, Answer<ReminderSet>), Problem> {
    let of = Author::of_name(caller.speaker(&room, validation::name("from", &from)?, &console)?);
    let text = validation::text("text", &text, MOST_CHARS)?;
    for (field, value) in [("at", &at), ("zone", &zone)] {
        value.iter().try_for_each(|value| validation::opaque_id(field, value, 64))?;
    }
    companion.iter().try_for_each(|companion| validation::companion_id("companion", companion.as_str()))?;
    if let Some(visit) = caller.in_room(&room, &console)? {
        console.backend()?.guests.consume_quota(visit, Amount::Message).await?;
    }
    let new = NewReminder { of, text, at, in_minutes, zone, companion, asked: Vec::new() };
    Ok((StatusCode::CREATED, Answer(console.backend()?.reminders.remind(&room, new).await?)))
}

/// `DELETE /api/rooms/{room}/reminders/{id}`
pub(super) async fn cancel(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    ReminderPath(room, number): ReminderPath,
) -> Result<StatusCode, Problem> {
    let person = person(&caller, &room, &console)?;
    console.backend()?.reminders.cancel_reminder(&room, number, person.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The guest, who sees only the own reminders. `None`: an operator.
fn person(caller: &Caller, room: &RoomId, console: &Shared) -> Result<Option<PersonId>, Problem> {
    Ok(caller.in_room(room, console)?.map(|visit| PersonId::from(&*visit.name)))
}
