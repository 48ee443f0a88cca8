//! Handlers for rooms: list, create, change, clear, delete, and read their state.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;

use super::Shared;
use super::body::{Json, RoomPath};
use super::problem::Problem;
use super::validation;
use crate::ports::backend::room::{Companions, Invited, MOST_IN_A_ROOM, Override, Room, RoomPatch, RoomPlan, Rooms};
use crate::ports::backend::state::RoomState;

/// `GET /api/rooms`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<Rooms>, Problem> {
    Ok(Answer(console.backend()?.rooms.list().await?))
}

/// `GET /api/rooms/{room}`
pub(super) async fn get(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Room>, Problem> {
    Ok(Answer(console.backend()?.rooms.get(&room).await?))
}

/// `PUT /api/rooms/{room}`
pub(super) async fn put(
    State(console): State<Shared>,
    RoomPath(room): RoomPath,
    Json(mut plan): Json<RoomPlan>,
) -> Result<(StatusCode, Answer<Room>), Problem> {
    check_plan(&mut plan)?;
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
    Ok(Answer(console.backend()?.rooms.patch(&room, patch).await?))
}

/// `DELETE /api/rooms/{room}`
pub(super) async fn delete(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<StatusCode, Problem> {
    console.backend()?.rooms.delete(&room).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/rooms/{room}/clear`
pub(super) async fn clear(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<StatusCode, Problem> {
    console.backend()?.rooms.clear(&room).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/rooms/{room}/state`
pub(super) async fn state(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<RoomState>, Problem> {
    Ok(Answer(console.backend()?.rooms.state(&room).await?))
}

/// `GET /api/companions`
pub(super) async fn companions(State(console): State<Shared>) -> Result<Answer<Companions>, Problem> {
    Ok(Answer(console.backend()?.rooms.companions().await?))
}

fn check_plan(plan: &mut RoomPlan) -> Result<(), Problem> {
    validation::opaque_id("guild", plan.guild.as_str(), 64)?;
    check_count("companions", plan.companions.len())?;
    let mut seen = BTreeSet::new();
    for (index, invited) in plan.companions.iter_mut().enumerate() {
        let field = format!("companions[{index}]");
        validation::companion_id(&field, invited.id.as_str())?;
        check_names(&field, invited)?;
        if !seen.insert(invited.id.clone()) {
            return Err(Problem::invalid(field, format!("{} is listed twice; list it once", invited.id)));
        }
    }
    Ok(())
}

/// Validates the names of a companion. Only an external companion has names in the request; those of others are in their files.
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
    Err(Problem::invalid(field, format!("names {count} companions, at most {MOST_IN_A_ROOM} can be in a room")))
}
