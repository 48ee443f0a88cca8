//! The data that the page shows when it is opened, in one response instead of five.

use axum::Json as Answer;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::Shared;
use super::problem::Problem;
use crate::ports::backend::keeping::{Quarantine, Readiness};
use crate::ports::backend::room::{Companions, Rooms};
use crate::ports::model_setup::ModelsView;

/// Each field is the response to another request, such as `GET /api/rooms`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Overview {
    rooms: Rooms,
    companions: Companions,
    /// The answer of `GET /readyz`.
    readiness: Readiness,
    models: ModelsView,
    quarantine: Quarantine,
}

/// `GET /api/overview`
pub(super) async fn get(State(console): State<Shared>) -> Result<Answer<Overview>, Problem> {
    let (backend, models) = (console.backend()?, console.models()?);
    let (rooms, companions, quarantine, models, readiness) = tokio::join!(
        backend.rooms.list(),
        backend.rooms.companions(),
        backend.maintenance.quarantine(),
        models.models(),
        console.readiness()
    );
    Ok(Answer(Overview { rooms: rooms?, companions: companions?, readiness, models: models?, quarantine: quarantine? }))
}
