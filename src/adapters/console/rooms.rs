//! Rooms: listing, making, changing, clearing and deleting them, and what is going on in them.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;

use super::Shared;
use super::body::{InRoom, Json};
use super::problem::Problem;
use super::words;
use crate::ports::house::room::{Companions, Room, RoomPatch, RoomPlan, Rooms};
use crate::ports::house::state::RoomState;

/// How many companions can be named at once.
const MAX_COMPANIONS: usize = 64;

/// `GET /api/rooms`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<Rooms>, Problem> {
    Ok(Answer(console.house.rooms().await?))
}

/// `GET /api/rooms/{room}`
pub(super) async fn get(State(console): State<Shared>, InRoom(room): InRoom) -> Result<Answer<Room>, Problem> {
    Ok(Answer(console.house.room(&room).await?))
}

/// `PUT /api/rooms/{room}`
pub(super) async fn put(
    State(console): State<Shared>,
    InRoom(room): InRoom,
    Json(plan): Json<RoomPlan>,
) -> Result<(StatusCode, Answer<Room>), Problem> {
    check_plan(&plan)?;
    let (room, is_new) = console.house.put_room(&room, plan).await?;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Answer(room)))
}

/// `PATCH /api/rooms/{room}`
pub(super) async fn patch(
    State(console): State<Shared>,
    InRoom(room): InRoom,
    Json(patch): Json<RoomPatch>,
) -> Result<Answer<Room>, Problem> {
    check_count("companions", patch.companions.len())?;
    patch.companions.keys().try_for_each(|id| words::companion("companions", id))?;
    Ok(Answer(console.house.patch_room(&room, patch).await?))
}

/// `DELETE /api/rooms/{room}`
pub(super) async fn delete(State(console): State<Shared>, InRoom(room): InRoom) -> Result<StatusCode, Problem> {
    console.house.delete_room(&room).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/rooms/{room}/clear`
pub(super) async fn clear(State(console): State<Shared>, InRoom(room): InRoom) -> Result<StatusCode, Problem> {
    console.house.clear(&room).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/rooms/{room}/state`
pub(super) async fn state(State(console): State<Shared>, InRoom(room): InRoom) -> Result<Answer<RoomState>, Problem> {
    Ok(Answer(console.house.state(&room).await?))
}

/// `GET /api/companions`
pub(super) async fn companions(State(console): State<Shared>) -> Result<Answer<Companions>, Problem> {
    Ok(Answer(console.house.companions().await?))
}

fn check_plan(plan: &RoomPlan) -> Result<(), Problem> {
    words::opaque_id("guild", plan.guild.as_str(), 64)?;
    check_count("companions", plan.companions.len())?;
    let mut seen = BTreeSet::new();
    for (place, invited) in plan.companions.iter().enumerate() {
        let field = format!("companions[{place}]");
        words::companion(&field, invited.id.as_str())?;
        if !seen.insert(&invited.id) {
            return Err(Problem::invalid(field, format!("{} is named twice, name it once", invited.id)));
        }
    }
    Ok(())
}

fn check_count(field: &str, count: usize) -> Result<(), Problem> {
    if count <= MAX_COMPANIONS {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("names {count} companions, at most {MAX_COMPANIONS} can be named at once")))
}
