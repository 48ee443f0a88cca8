//! Companions that programs outside play: they vote in rounds, and say their words when they were selected.

use axum::Json as Answer;
use axum::extract::State as Given;
use axum::http::StatusCode;

use super::Shared;
use super::body::{InRoom, Json};
use super::messages::Accepted;
use super::problem::Problem;
use super::words;
use crate::domain::vote::State;
use crate::ports::backend::messages::Words;

/// `POST /api/rooms/{room}/states`
pub(super) async fn vote(
    Given(console): Given<Shared>,
    InRoom(room): InRoom,
    Json(state): Json<State>,
) -> Result<StatusCode, Problem> {
    words::companion("from", state.from.as_str())?;
    console.backend.vote(&room, state).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/rooms/{room}/statements`
pub(super) async fn speak(
    Given(console): Given<Shared>,
    InRoom(room): InRoom,
    Json(mut said): Json<Words>,
) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    words::companion("from", said.from.as_str())?;
    said.text = words::text("text", &said.text, console.settings.max_text_chars)?;
    Ok((StatusCode::ACCEPTED, Answer(Accepted { seq: console.backend.speak(&room, said).await? })))
}
