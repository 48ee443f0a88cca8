//! Handlers for servers of tools: show them, and accept tools.

use axum::Json as Answer;
use axum::extract::State;

use super::Shared;
use super::body::Json;
use super::problem::Problem;
use crate::ports::tools::{AcceptedTools, ToolsView};

/// `GET /api/tools`
pub(super) async fn get(State(console): State<Shared>) -> Result<Answer<ToolsView>, Problem> {
    Ok(Answer(console.tools()?.review()))
}

/// `POST /api/tools/accept`
pub(super) async fn accept(
    State(console): State<Shared>,
    Json(accepted): Json<AcceptedTools>,
) -> Result<Answer<ToolsView>, Problem> {
    Ok(Answer(console.tools()?.accept(accepted).await?))
}
