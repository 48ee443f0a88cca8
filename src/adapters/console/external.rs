//! Handlers for external companions: they vote in rounds, and send a statement when they are selected.

use axum::Json as Answer;
use axum::extract::State as Given;
use axum::http::StatusCode;

use super::Shared;
use super::body::{Json, RoomPath};
use super::messages::Accepted;
use super::problem::Problem;
use super::validation;
use crate::domain::vote::State;
use crate::ports::backend::messages::Words;

/// `POST /api/rooms/{room}/states`
pub(super) async fn vote(
    Given(console): Given<Shared>,
    RoomPath(room): RoomPath,
    Json(state): Json<State>,
) -> Result<StatusCode, Problem> {
    validation::companion_id("from", state.from.as_str())?;
    console.backend()?.messages.vote(&room, state).await?;
    Ok(StatusCode::ACCEPTED)
}

/// `POST /api/rooms/{room}/statements`
pub(super) async fn speak(
    Given(console): Given<Shared>,
    RoomPath(room): RoomPath,
    Json(mut statement): Json<Words>,
) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    validation::companion_id("from", statement.from.as_str())?;
    statement.text = validation::text("text", &statement.text, console.settings.max_text_chars)?;
    Ok((StatusCode::ACCEPTED, Answer(console.backend()?.messages.speak(&room, statement).await?.into())))
}
