//! What an operator keeps in order: quarantine, copies, what is to be forgotten.

use axum::Json as Answer;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;

use super::Shared;
use super::body::{Asked, Entry, Json};
use super::problem::Problem;
use super::words;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{BackedUp, ExportForm, ExportQuery, Forget, Forgotten, Person, Quarantine};

/// `GET /api/quarantine`
pub(super) async fn quarantine(State(console): State<Shared>) -> Result<Answer<Quarantine>, Problem> {
    Ok(Answer(console.backend.quarantine().await?))
}

/// `POST /api/quarantine/{id}/release`
pub(super) async fn release(State(console): State<Shared>, Entry(id): Entry) -> Result<StatusCode, Problem> {
    console.backend.release(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/quarantine/{id}/retry`
pub(super) async fn retry(State(console): State<Shared>, Entry(id): Entry) -> Result<StatusCode, Problem> {
    console.backend.retry(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/quarantine/{id}/drop`
pub(super) async fn drop_entry(State(console): State<Shared>, Entry(id): Entry) -> Result<StatusCode, Problem> {
    console.backend.drop_entry(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedExport {
    room: Option<String>,
    #[serde(rename = "as")]
    form: Option<ExportForm>,
    guild: Option<String>,
    person: Option<String>,
}

/// `GET /api/export?room=&as=`, or `?guild=&person=`: JSON lines as they are read. When reading fails midway, the last line is the problem, and the
/// connection breaks off, so that what arrived is not taken for whole.
pub(super) async fn export(State(console): State<Shared>, Asked(asked): Asked<AskedExport>) -> Result<Response, Problem> {
    let room = asked.room.map(|room| words::room("room", &room)).transpose()?;
    let form = asked.form.unwrap_or(ExportForm::Json);
    if form == ExportForm::Replay && room.is_none() {
        return Err(Problem::query("room", "room is missing, a replay script is made of one room"));
    }
    let lines = match (asked.guild, asked.person) {
        (None, None) => console.backend.export(ExportQuery { room, form }).await?,
        (Some(guild), Some(person)) => {
            if room.is_some() || form == ExportForm::Replay {
                return Err(Problem::query(
                    "person",
                    "what a person said is read out of a whole guild, as json; leave room and as out",
                ));
            }
            words::opaque_id("guild", &guild, 64)?;
            console.backend.export_person(Person { guild: guild.as_str().into(), id: words::name("person", &person)? }).await?
        }
        (None, Some(_)) => return Err(Problem::query("guild", "guild is missing, a person is one of a guild")),
        (Some(_), None) => {
            return Err(Problem::query("person", "person is missing; for everything that is kept leave guild out"));
        }
    };
    let body = Body::from_stream(lines.flat_map(|line| match line {
        Ok(line) => stream::iter([Ok(line + "\n")]).left_stream(),
        Err(refused) => broken_off(refused).right_stream(),
    }));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// Says why, and ends in the middle.
fn broken_off(refused: Refused) -> impl Stream<Item = Result<String, Refused>> {
    let mut why = String::from_utf8_lossy(&Problem::from(refused.clone()).json()).into_owned();
    why.push('\n');
    let told = stream::iter([Ok(why)]);
    told.chain(stream::once(async {
        // What is told goes out first.
        tokio::task::yield_now().await;
        Err(refused)
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Backup {
    to: Option<String>,
    /// The process that reads the copy through and deletes it: of `tertulia history verify`.
    verified_by: Option<u32>,
}

/// `POST /api/backup`
pub(super) async fn backup(State(console): State<Shared>, Json(backup): Json<Backup>) -> Result<Answer<BackedUp>, Problem> {
    let copied = match (backup.to, backup.verified_by) {
        (Some(to), None) => {
            words::opaque_id("to", &to, 4_096)?;
            console.backend.backup(&to).await?
        }
        (None, Some(process)) => console.backend.copy_for(process).await?,
        _ => return Err(Problem::invalid("to", "to is missing, name the whole path of a new file on the server's machine")),
    };
    Ok(Answer(copied))
}

/// `POST /api/forget`
pub(super) async fn forget(State(console): State<Shared>, Json(mut forget): Json<Forget>) -> Result<Answer<Forgotten>, Problem> {
    words::opaque_id("guild", forget.guild.as_str(), 64)?;
    forget.person = words::name("person", &forget.person)?;
    Ok(Answer(console.backend.forget(forget).await?))
}
