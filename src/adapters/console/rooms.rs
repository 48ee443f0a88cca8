//! Handlers for rooms: list, create, change, clear, delete, and read their state.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Shared;
use super::body::{Json, QueryParams, RoomPath};
use super::guard::Caller;
use super::problem::{Problem, done};
use super::validation;
use crate::domain::id::{GuildId, PersonId};
use crate::domain::room_words::{MOST_DEPTH, MOST_DESCRIPTION, MOST_INSTRUCTIONS, MOST_NOTE};
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::Amount;
use crate::ports::backend::room::{
    Deletion, Invited, MOST_IN_A_ROOM, NewRoom, Override, Room, RoomId, RoomPatch, RoomPlan, Rooms,
};
use crate::ports::backend::state::RoomState;

/// The longest title of a room, in characters. Channels of other platforms can have titles of this length.
const MAX_ROOM_CHARS: usize = 200;

/// `GET /api/rooms`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<Rooms>, Problem> {
    Ok(Answer(console.backend()?.rooms.list().await?))
}

/// `GET /api/rooms/{room}`
pub(super) async fn get(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Room>, Problem> {
    Ok(Answer(console.backend()?.rooms.get(&room).await?))
}

/// `POST /api/rooms`
pub(super) async fn create(
    State(console): State<Shared>,
    Json(mut new): Json<NewRoom>,
) -> Result<(StatusCode, Answer<Room>), Problem> {
    new.title = validation::name("title", &new.title)?;
    check_members(&new.guild, &mut new.companions)?;
    Ok((StatusCode::CREATED, Answer(console.backend()?.rooms.create(new).await?)))
}

/// `PUT /api/rooms/{room}`
pub(super) async fn put(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
    Json(mut plan): Json<RoomPlan>,
) -> Result<(StatusCode, Answer<Room>), Problem> {
    check_members(&plan.guild, &mut plan.companions)?;
    let (room, is_new) = console.backend()?.rooms.put(&room, plan).await?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Answer(room)))
}

/// `PATCH /api/rooms/{room}`
pub(super) async fn patch(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
    Json(mut patch): Json<RoomPatch>,
) -> Result<Answer<Room>, Problem> {
    check_count("companions", patch.companions.len())?;
    patch.companions.keys().try_for_each(|id| validation::companion_id("companions", id))?;
    if let Override::Set(title) = &mut patch.title {
        *title = validation::name("title", title)?;
    }
    let words = &mut patch.words;
    check_words("words.instructions", &mut words.instructions, MOST_INSTRUCTIONS)?;
    check_words("words.note", &mut words.note, MOST_NOTE)?;
    if let Override::Set(depth) = words.note_depth
        && depth > MOST_DEPTH
    {
        return Err(Problem::invalid("words.note_depth", format!("is {depth}, must be from 0 to {MOST_DEPTH}")));
    }
    Ok(Answer(console.backend()?.rooms.patch(&room, patch).await?))
}

/// `DELETE /api/rooms/{room}`
pub(super) async fn delete(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
) -> Result<(StatusCode, Answer<Deletion>), Problem> {
    Ok((StatusCode::ACCEPTED, Answer(console.backend()?.rooms.delete(&room).await?)))
}

/// `GET /api/rooms/{room}/deletion`
pub(super) async fn deletion(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Deletion>, Problem> {
    Ok(Answer(console.backend()?.rooms.deletion(&room).await?))
}

/// `POST /api/rooms/{room}/undelete`
pub(super) async fn undelete(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Room>, Problem> {
    Ok(Answer(console.backend()?.rooms.undelete(&room).await?))
}

/// `POST /api/rooms/{room}/clear`
pub(super) async fn clear(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<StatusCode, Problem> {
    done(console.backend()?.rooms.clear(&room).await)
}

/// `POST /api/rooms/{room}/conversations`
pub(super) async fn begin_anew(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<StatusCode, Problem> {
    done(console.backend()?.rooms.begin_anew(&room).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PersonParams {
    /// The name under which the person writes.
    #[schemars(required, length(min = 1, max = 64))]
    from: Option<String>,
}

/// What a person says of themselves in a room.
#[derive(Serialize, JsonSchema)]
pub(super) struct Description {
    /// Null: nothing.
    text: Option<Arc<str>>,
}

/// `GET /api/rooms/{room}/me?from=`
pub(super) async fn description(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    QueryParams(PersonParams { from }): QueryParams<PersonParams>,
) -> Result<Answer<Description>, Problem> {
    let from = from.ok_or_else(|| Problem::query("from", "from is missing; name who is described"))?;
    let from = caller.speaker(&room, validation::name("from", &from)?, &console)?;
    let text = console.backend()?.rooms.description(&room, &PersonId::from(&*from)).await?;
    Ok(Answer(Description { text }))
}

/// What a person wants companions of a room to know of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDescription {
    /// The name under which the person writes.
    #[schemars(length(min = 1, max = 64))]
    from: Arc<str>,
    /// Null: nothing.
    #[schemars(length(min = 1, max = MOST_DESCRIPTION))]
    text: Option<Arc<str>>,
}

/// `PUT /api/rooms/{room}/me`
pub(super) async fn describe(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(NewDescription { from, text }): Json<NewDescription>,
) -> Result<StatusCode, Problem> {
    let from = caller.speaker(&room, validation::name("from", &from)?, &console)?;
    let text = text.map(|text| validation::text("text", &text, MOST_DESCRIPTION)).transpose()?;
    if let Some(visit) = caller.in_room(&room, &console)? {
        // Each change is written to the store.
        console.backend()?.guests.consume_quota(visit, Amount::Message).await?;
    }
    done(console.backend()?.rooms.describe(&room, &PersonId::from(&*from), text).await)
}

/// `GET /api/rooms/{room}/state`
pub(super) async fn state(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<RoomState>, Problem> {
    Ok(Answer(console.backend()?.rooms.state(&room).await?))
}

/// Finds the room that a query names.
pub(super) async fn find_room(console: &Shared, name: Option<String>) -> Result<Option<RoomId>, Problem> {
    let Some(name) = name else { return Ok(None) };
    validation::opaque_id("room", &name, MAX_ROOM_CHARS)?;
    Ok(Some(console.backend()?.rooms.find(&name).await?))
}

/// Validates a text of a room. An empty one means none.
fn check_words(field: &str, text: &mut Override<Arc<str>>, most: usize) -> Result<(), Problem> {
    if let Override::Set(text) = text {
        *text = if text.trim().is_empty() { "".into() } else { validation::text(field, text, most)? };
    }
    Ok(())
}

fn check_members(guild: &GuildId, companions: &mut [Invited]) -> Result<(), Problem> {
    validation::opaque_id("guild", guild.as_str(), 64)?;
    check_count("companions", companions.len())?;
    let mut seen = BTreeSet::new();
    for (index, invited) in companions.iter_mut().enumerate() {
        let field = format!("companions[{index}]");
        validation::companion_id(&field, invited.id.as_str())?;
        check_names(&field, invited)?;
        if !seen.insert(invited.id.clone()) {
            return Err(Problem::invalid(field, Detail::of("refusals.twice", json!({ "id": invited.id }))));
        }
    }
    Ok(())
}

/// Validates the names of a companion. Only an external companion has names in the request; the names of others are in their
/// files.
fn check_names(field: &str, invited: &mut Invited) -> Result<(), Problem> {
    if !invited.external && (invited.name.is_some() || !invited.aliases.is_empty()) {
        let detail = "only an external companion can be given names here; add \"external\": true, or leave out name and aliases";
        return Err(Problem::invalid(field, detail));
    }
    if let Some(name) = &mut invited.name {
        *name = validation::companion_name(&format!("{field}.name"), name)?;
    }
    for (index, alias) in invited.aliases.iter_mut().enumerate() {
        *alias = validation::companion_name(&format!("{field}.aliases[{index}]"), alias)?;
    }
    Ok(())
}

fn check_count(field: &str, count: usize) -> Result<(), Problem> {
    if count <= MOST_IN_A_ROOM {
        return Ok(());
    }
    Err(Problem::invalid(field, Detail::of("refusals.too_many_companions", json!({ "count": count, "most": MOST_IN_A_ROOM }))))
}
