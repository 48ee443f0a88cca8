//! Handlers for operators: quarantine, export, backup, and deletion of a person's data.

use std::convert::Infallible;

use axum::Json as Answer;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::Shared;
use super::body::{EntryPath, Json, QueryParams};
use super::language::Preferred;
use super::problem::{Problem, done};
use super::rooms::find_room;
use super::validation;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{BackedUp, ExportForm, ExportQuery, Forget, Forgotten, Person, Quarantine};
use crate::ports::backend::room::RoomId;

/// `GET /api/quarantine`
pub(super) async fn quarantine(State(console): State<Shared>) -> Result<Answer<Quarantine>, Problem> {
    Ok(Answer(console.backend()?.maintenance.quarantine().await?))
}

/// `POST /api/quarantine/{id}/release`
pub(super) async fn release(State(console): State<Shared>, EntryPath(id): EntryPath) -> Result<StatusCode, Problem> {
    done(console.backend()?.maintenance.release(&id).await)
}

/// `POST /api/quarantine/{id}/retry`
pub(super) async fn retry(State(console): State<Shared>, EntryPath(id): EntryPath) -> Result<StatusCode, Problem> {
    done(console.backend()?.maintenance.retry(&id).await)
}

/// `POST /api/quarantine/{id}/drop`
pub(super) async fn drop_entry(State(console): State<Shared>, EntryPath(id): EntryPath) -> Result<StatusCode, Problem> {
    done(console.backend()?.maintenance.drop_entry(&id).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportParams {
    /// Exports only this room, named by its id or title. All formats but `json` need it.
    room: Option<String>,
    #[serde(rename = "as")]
    form: Option<ExportForm>,
    /// Exports the messages of `person` in this guild instead of events.
    guild: Option<String>,
    person: Option<String>,
}

/// `GET /api/export?room=&as=`, or `?guild=&person=`: streams JSON lines, Markdown or HTML. If reading fails midway, the last line is the problem,
/// and the connection is aborted, so that the client does not mistake the export for a complete one.
pub(super) async fn export(
    State(console): State<Shared>,
    Preferred(language): Preferred,
    QueryParams(params): QueryParams<ExportParams>,
) -> Result<Response, Problem> {
    let room = find_room(&console, params.room).await?;
    let form = params.form.unwrap_or(ExportForm::Json);
    if form != ExportForm::Json && room.is_none() {
        return Err(Problem::query(
            "room",
            "room is missing; a replay script, group chat, Markdown and HTML are made from one room",
        ));
    }
    let headers = headers_of(form, room.as_ref());
    let lines = match (params.guild, params.person) {
        (None, None) => console.backend()?.records.export(ExportQuery { room, form, language }).await?,
        (Some(guild), Some(person)) => {
            if room.is_some() || form != ExportForm::Json {
                return Err(Problem::query(
                    "person",
                    "a person's messages are exported from a whole guild, as json; leave out room and as",
                ));
            }
            validation::opaque_id("guild", &guild, 64)?;
            console
                .backend()?
                .records
                .export_person(Person { guild: guild.as_str().into(), id: validation::name("person", &person)? })
                .await?
        }
        (None, Some(_)) => return Err(Problem::query("guild", "guild is missing; a person belongs to a guild")),
        (Some(_), None) => {
            return Err(Problem::query("person", "person is missing; to export everything, leave out guild"));
        }
    };
    let body = Body::from_stream(lines.flat_map(|line| match line {
        Ok(line) => stream::iter([Ok(line + "\n")]).left_stream(),
        Err(refused) => abort(refused).right_stream(),
    }));
    Ok((headers, body).into_response())
}

/// The headers of an export. Formats for people are saved as a file instead of being shown as a page of this server.
fn headers_of(form: ExportForm, room: Option<&RoomId>) -> HeaderMap {
    let (media_type, extension) = match form {
        ExportForm::Json | ExportForm::Replay | ExportForm::Chat => ("application/x-ndjson", None),
        ExportForm::Markdown => ("text/markdown; charset=utf-8", Some("md")),
        ExportForm::Html => ("text/html; charset=utf-8", Some("html")),
    };
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
    if let Some((room, extension)) = room.zip(extension) {
        let name = format!("attachment; filename=\"{}.{extension}\"", room.as_str().replace(':', "-"));
        headers.extend(HeaderValue::from_str(&name).ok().map(|name| (CONTENT_DISPOSITION, name)));
    }
    headers
}

/// Ends a stream with the problem as its last line, and then an error that aborts the connection.
fn abort(refused: Refused) -> impl Stream<Item = Result<String, Refused>> {
    let mut line = String::from_utf8_lossy(&Problem::from(refused.clone()).json()).into_owned();
    line.push('\n');
    let last = stream::iter([Ok(line)]);
    last.chain(stream::once(async {
        // Lets the last line be sent before the error.
        tokio::task::yield_now().await;
        Err(refused)
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Backup {
    /// The full path of a new file on the server's machine, in an existing folder outside the data folder. The name ends in `.backup`.
    #[schemars(required, length(min = 1, max = 4_096))]
    to: Option<String>,
    /// The process id of a `tertulia history verify` that reads the copy. The copy is deleted when the connection ends.
    #[schemars(skip)]
    verified_by: Option<u32>,
}

/// `POST /api/backup`
pub(super) async fn backup(State(console): State<Shared>, Json(backup): Json<Backup>) -> Result<Response, Problem> {
    match (backup.to, backup.verified_by) {
        (Some(to), None) => {
            validation::opaque_id("to", &to, 4_096)?;
            Ok(Answer(console.backend()?.maintenance.backup(&to).await?).into_response())
        }
        (None, Some(process)) => {
            let (backed_up, file) = console.backend()?.maintenance.copy_for(process).await?;
            Ok(while_connected(&backed_up, file, console.door.closing.subscribe()))
        }
        _ => Err(Problem::invalid("to", "to is missing; give the whole path of a new file on the server's machine")),
    }
}

/// Responds with one line. The response ends when the client closes the connection or the server stops. Then the file is deleted.
fn while_connected(backed_up: &BackedUp, file: Box<dyn Send + Sync>, mut closing: watch::Receiver<bool>) -> Response {
    let line = json!(backed_up).to_string() + "\n";
    let end = stream::once(async move {
        drop(closing.wait_for(|closing| *closing).await);
        drop(file);
        String::new()
    });
    let body = Body::from_stream(stream::once(async { line }).chain(end).map(Ok::<_, Infallible>));
    ([(CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgetParams {
    #[schemars(required, length(min = 1, max = 64))]
    guild: Option<String>,
    #[schemars(required, length(min = 1, max = 64))]
    person: Option<String>,
    /// Also counts the answers of companions.
    answers: Option<bool>,
}

/// `GET /api/forget?guild=&person=&answers=`
pub(super) async fn forgettable(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<ForgetParams>,
) -> Result<Answer<Forgotten>, Problem> {
    let guild = params.guild.ok_or_else(|| Problem::query("guild", "guild is missing; a person belongs to a guild"))?;
    let person = params.person.ok_or_else(|| Problem::query("person", "person is missing; name who is to be forgotten"))?;
    validation::opaque_id("guild", &guild, 64)?;
    let person = validation::name("person", &person)?;
    let forget = Forget { guild: guild.into(), person, answers: params.answers.unwrap_or_default() };
    Ok(Answer(console.backend()?.maintenance.forgettable(&forget).await?))
}

/// `POST /api/forget`
pub(super) async fn forget(State(console): State<Shared>, Json(mut forget): Json<Forget>) -> Result<Answer<Forgotten>, Problem> {
    validation::opaque_id("guild", forget.guild.as_str(), 64)?;
    forget.person = validation::name("person", &forget.person)?;
    Ok(Answer(console.backend()?.maintenance.forget(forget).await?))
}
