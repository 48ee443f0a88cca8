//! Handlers for companions: list, create, try out, change and delete.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::body::{CompanionPath, JsonWithFiles, PicturePath, QueryParams};
use super::problem::{Problem, done, off_thread};
use super::validation;
use crate::ports::backend::room::Companions;
use crate::ports::companion_setup::{
    Base64, CompanionChange, CompanionFields, CompanionOptions, CompanionProfile, CompanionTrial, NewCompanion, Revision,
};
use crate::ports::model_setup::Trial;
use crate::settings::companion::Override;
use tertulia_cards as cards;
use tertulia_cards::picture::{self, Kind};

/// `GET /api/companions`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<Companions>, Problem> {
    Ok(Answer(console.backend()?.rooms.companions().await?))
}

/// `GET /api/companions/options`
pub(super) async fn options(State(console): State<Shared>) -> Result<Answer<CompanionOptions>, Problem> {
    Ok(Answer(console.companions()?.options().await?))
}

/// `GET /api/companions/{companion}`
pub(super) async fn get(
    State(console): State<Shared>,
    CompanionPath(id): CompanionPath,
) -> Result<Answer<CompanionProfile>, Problem> {
    Ok(Answer(console.companions()?.companion(id).await?))
}

/// `POST /api/companions`
pub(super) async fn create(
    State(console): State<Shared>,
    JsonWithFiles(mut new, _place): JsonWithFiles<NewCompanion>,
) -> Result<(StatusCode, Answer<CompanionProfile>), Problem> {
    check_names(&mut new.companion)?;
    let new = off_thread(move || {
        new.picture.as_ref().map_or(Ok(()), check_picture)?;
        new.card.as_ref().map_or(Ok(()), check_card)?;
        Ok(new)
    });
    Ok((StatusCode::CREATED, Answer(console.companions()?.create(new.await?).await?)))
}

/// `PUT /api/companions/{companion}`
pub(super) async fn change(
    State(console): State<Shared>,
    CompanionPath(id): CompanionPath,
    JsonWithFiles(mut change, _place): JsonWithFiles<CompanionChange>,
) -> Result<Answer<CompanionProfile>, Problem> {
    check_names(&mut change.companion)?;
    let change = off_thread(move || match &change.picture {
        Override::Set(picture) => check_picture(picture).map(|()| change),
        Override::Keep | Override::Reset => Ok(change),
    });
    Ok(Answer(console.companions()?.change(id, change.await?).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteParams {
    /// The revision of what is to be deleted, as the server returned it.
    #[schemars(required)]
    revision: Option<Revision>,
}

impl DeleteParams {
    /// The revision. `of` says of what it must be.
    pub(super) fn revision(self, of: &str) -> Result<Revision, Problem> {
        self.revision
            .ok_or_else(|| Problem::query("revision", format!("revision is missing; give the one of the {of} that you saw")))
    }
}

/// `DELETE /api/companions/{companion}?revision=`
pub(super) async fn delete(
    State(console): State<Shared>,
    CompanionPath(id): CompanionPath,
    QueryParams(params): QueryParams<DeleteParams>,
) -> Result<StatusCode, Problem> {
    done(console.companions()?.delete(id, params.revision("profile")?).await)
}

/// `POST /api/companions/try`
pub(super) async fn try_out(
    State(console): State<Shared>,
    JsonWithFiles(mut trial, place): JsonWithFiles<CompanionTrial>,
) -> Result<Answer<Trial>, Problem> {
    // The models take longer than reading the body, so the permit for the body is dropped first.
    drop(place);
    check_names(&mut trial.companion)?;
    if let Some(message) = &mut trial.message {
        *message = validation::text("message", message, console.settings.max_text_chars)?;
    }
    Ok(Answer(console.companions()?.try_out(trial).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PictureParams {
    /// The size in pixels at which the picture is shown. The answer may be a smaller picture: a square from the middle with at
    /// least this size.
    size: Option<u32>,
}

/// `GET /pictures/{companion}/{hash}?size=`: needs no token, because platforms fetch it. Browsers treat the response as nothing
/// but a picture.
pub(super) async fn picture(
    State(console): State<Shared>,
    PicturePath(id, hash): PicturePath,
    QueryParams(params): QueryParams<PictureParams>,
) -> Result<Response, Problem> {
    let bytes = console.companions()?.picture(id, hash, params.size).await?;
    let kind = Kind::of(&bytes).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "this is no picture that is shown"))?;
    let headers = [
        (CONTENT_TYPE, kind.media_type()),
        // The address contains the hash of the picture.
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    Ok((headers, bytes).into_response())
}

fn check_names(companion: &mut CompanionFields) -> Result<(), Problem> {
    companion.name = validation::companion_name("companion.name", &companion.name)?;
    for (index, alias) in companion.aliases.iter_mut().enumerate() {
        *alias = validation::companion_name(&format!("companion.aliases[{index}]"), alias)?;
    }
    Ok(())
}

fn check_picture(picture: &Base64) -> Result<(), Problem> {
    picture::check(&picture.0).map(drop).map_err(|why| Problem::from(why).with_field(Some("picture".to_owned())))
}

fn check_card(card: &Base64) -> Result<(), Problem> {
    cards::read(&card.0).map(drop).map_err(|why| Problem::from(why).with_field(Some("card".to_owned())))
}
