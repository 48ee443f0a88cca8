//! Handlers for the models in force: show them, try others, connect and disconnect.

use axum::Json as Answer;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::body::Json;
use super::problem::Problem;
use crate::ports::model_setup::{ModelServer, ModelsView, NewConnection, Trial};

/// `GET /api/models`
pub(super) async fn get(State(console): State<Shared>) -> Result<Answer<ModelsView>, Problem> {
    Ok(Answer(console.models()?.models().await?))
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Names {
    models: Vec<String>,
}

/// `POST /api/models/names`
pub(super) async fn names(State(console): State<Shared>, Json(server): Json<ModelServer>) -> Result<Answer<Names>, Problem> {
    Ok(Answer(Names { models: console.models()?.names(server).await? }))
}

/// `POST /api/models/try`
pub(super) async fn try_out(State(console): State<Shared>, Json(new): Json<NewConnection>) -> Result<Answer<Trial>, Problem> {
    Ok(Answer(console.models()?.try_out(new).await?))
}

/// `PUT /api/models`
pub(super) async fn connect(
    State(console): State<Shared>,
    Json(new): Json<NewConnection>,
) -> Result<Answer<ModelsView>, Problem> {
    Ok(Answer(console.models()?.connect(new).await?))
}

/// `DELETE /api/models`
pub(super) async fn disconnect(State(console): State<Shared>) -> Result<Answer<ModelsView>, Problem> {
    Ok(Answer(console.models()?.disconnect().await?))
}
