//! Handlers for settings that are made on the page: show, try and keep them, and read the files again.

use axum::Json as Answer;
use axum::extract::State;

use super::Shared;
use super::body::Json;
use super::problem::Problem;
use crate::ports::settings_setup::{NewSettings, SettingsTrial, SettingsView, TriedSettings};

/// `GET /api/settings`
pub(super) async fn get(State(console): State<Shared>) -> Result<Answer<SettingsView>, Problem> {
    Ok(Answer(console.settings()?.settings().await?))
}

/// `POST /api/settings/try`
pub(super) async fn try_out(
    State(console): State<Shared>,
    Json(tried): Json<TriedSettings>,
) -> Result<Answer<SettingsTrial>, Problem> {
    Ok(Answer(console.settings()?.try_out(tried).await?))
}

/// `PATCH /api/settings`
pub(super) async fn keep(State(console): State<Shared>, Json(new): Json<NewSettings>) -> Result<Answer<SettingsView>, Problem> {
    Ok(Answer(console.settings()?.keep(new).await?))
}

/// `POST /api/settings/read`
pub(super) async fn read(State(console): State<Shared>) -> Result<Answer<SettingsView>, Problem> {
    Ok(Answer(console.settings()?.read_again().await?))
}
