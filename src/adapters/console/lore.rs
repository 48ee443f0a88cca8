//! Handlers for lorebooks: list, create, change, delete, import and export.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::body::{BookPath, FileBody, JsonWithFiles, QueryParams};
use super::cards::disposition;
use super::companions::DeleteParams;
use super::problem::{Problem, done, off_thread};
use crate::domain::lore::matching::Compiled;
use crate::domain::lore::{Shelved, Unusable};
use crate::ports::backend::lore_service::{BookChange, BookView, Books};
use tertulia_cards::lorebook::{self, Form, Read};

/// `GET /api/lorebooks`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<Books>, Problem> {
    Ok(Answer(console.backend()?.lore.books().await?))
}

/// `GET /api/lorebooks/{book}`
pub(super) async fn get(State(console): State<Shared>, BookPath(id): BookPath) -> Result<Answer<BookView>, Problem> {
    Ok(Answer(console.backend()?.lore.book(&id).await?))
}

/// `POST /api/lorebooks`
pub(super) async fn create(
    State(console): State<Shared>,
    JsonWithFiles(new, _place): JsonWithFiles<Shelved>,
) -> Result<(StatusCode, Answer<BookView>), Problem> {
    Ok((StatusCode::CREATED, Answer(console.backend()?.lore.create_book(new).await?)))
}

/// `PUT /api/lorebooks/{book}`
pub(super) async fn change(
    State(console): State<Shared>,
    BookPath(id): BookPath,
    JsonWithFiles(change, _place): JsonWithFiles<BookChange>,
) -> Result<Answer<BookView>, Problem> {
    Ok(Answer(console.backend()?.lore.change_book(&id, change).await?))
}

/// `DELETE /api/lorebooks/{book}?revision=`
pub(super) async fn delete(
    State(console): State<Shared>,
    BookPath(id): BookPath,
    QueryParams(params): QueryParams<DeleteParams>,
) -> Result<StatusCode, Problem> {
    done(console.backend()?.lore.delete_book(&id, params.revision("lorebook")?).await)
}

/// The lorebook that importing a file would make.
#[derive(Serialize, JsonSchema)]
pub(super) struct BookPreview {
    #[serde(flatten)]
    read: Read,
    /// Entries and keys that are not used.
    unusable: Vec<Unusable>,
}

/// `POST /api/lorebooks/read`: stores nothing.
pub(super) async fn read(FileBody(file, _place): FileBody) -> Result<Answer<BookPreview>, Problem> {
    let read = off_thread(move || {
        let read = lorebook::read(&file)?;
        let unusable = Compiled::new(read.book.clone()).unusable;
        Ok(BookPreview { read, unusable })
    });
    Ok(Answer(read.await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportParams {
    /// `card` if it is absent.
    #[serde(rename = "as")]
    form: Option<Form>,
}

/// `GET /api/lorebooks/{book}/file?as=`
pub(super) async fn export(
    State(console): State<Shared>,
    BookPath(id): BookPath,
    QueryParams(params): QueryParams<ExportParams>,
) -> Result<Response, Problem> {
    let BookView { id, book, .. } = console.backend()?.lore.book(&id).await?;
    let form = params.form.unwrap_or(Form::Card);
    let name = disposition(&id, &book.book.name, if form == Form::NovelAi { "lorebook" } else { "json" });
    // Serializing to memory does not fail.
    let bytes =
        off_thread(move || Ok::<_, Problem>(serde_json::to_vec_pretty(&lorebook::write(&book.book, form)).unwrap_or_default()));
    Ok(([(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_DISPOSITION, name)], bytes.await?).into_response())
}
