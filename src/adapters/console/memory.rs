//! Handlers for notes: what companions remember of people and rooms.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::body::{Json, MessagePath, QueryParams, RoomPath};
use super::problem::{Problem, done};
use super::validation;
use crate::domain::id::GuildId;
use crate::domain::note;
use crate::ports::backend::keeping::Person;
use crate::ports::backend::memory_service::{Notes, NotesAbout};

/// `GET /api/rooms/{room}/notes`
pub(super) async fn notes(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Notes>, Problem> {
    Ok(Answer(console.backend()?.memory.notes(&room).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Correction {
    /// What is to be remembered instead: at most 25 words.
    #[schemars(required, length(min = 1, max = 240))]
    text: Option<String>,
}

/// `PATCH /api/rooms/{room}/notes/{seq}`
pub(super) async fn correct(
    State(console): State<Shared>,
    MessagePath(room, note): MessagePath,
    Json(correction): Json<Correction>,
) -> Result<StatusCode, Problem> {
    let text = correction.text.ok_or_else(|| Problem::invalid("text", "text is missing; give what is to be remembered"))?;
    let text = validation::text("text", &text, console.settings.max_text_chars)?;
    if !note::fits(&text) {
        return Err(Problem::invalid("text", "text is too long for a note: at most 25 words in 240 characters"));
    }
    done(console.backend()?.memory.correct_note(&room, note, text).await)
}

/// `DELETE /api/rooms/{room}/notes/{seq}`
pub(super) async fn erase(State(console): State<Shared>, MessagePath(room, note): MessagePath) -> Result<StatusCode, Problem> {
    done(console.backend()?.memory.erase_note(&room, note).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotesParams {
    #[schemars(required, length(min = 1, max = 64))]
    guild: Option<String>,
    #[schemars(required, length(min = 1, max = 64))]
    person: Option<String>,
}

/// `GET /api/notes?guild=&person=`
pub(super) async fn about(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<NotesParams>,
) -> Result<Answer<NotesAbout>, Problem> {
    let guild = params.guild.ok_or_else(|| Problem::query("guild", "guild is missing; a person belongs to a guild"))?;
    let person = params.person.ok_or_else(|| Problem::query("person", "person is missing; name whose notes are wanted"))?;
    validation::opaque_id("guild", &guild, 64)?;
    let person = Person { guild: guild.into(), id: validation::name("person", &person)? };
    Ok(Answer(console.backend()?.memory.notes_about(person).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Switch {
    #[schemars(required, length(min = 1, max = 64))]
    guild: Option<String>,
    /// Only for this person. Turned off, the notes by and about the person are erased.
    #[schemars(length(min = 1, max = 64))]
    person: Option<String>,
    /// Whether notes are taken.
    on: Option<bool>,
    /// Whether notes are used in other rooms of the guild, too.
    across_rooms: Option<bool>,
}

/// `PUT /api/notes`
pub(super) async fn switch(State(console): State<Shared>, Json(switch): Json<Switch>) -> Result<StatusCode, Problem> {
    let guild = switch.guild.ok_or_else(|| Problem::invalid("guild", "guild is missing; notes are turned on for a guild"))?;
    validation::opaque_id("guild", &guild, 64)?;
    let person = switch.person.map(|person| validation::name("person", &person)).transpose()?;
    let memory = &console.backend()?.memory;
    match (switch.on, switch.across_rooms) {
        (None, None) => return Err(Problem::invalid("on", "on is missing; give true or false")),
        (Some(false), Some(true)) => {
            return Err(Problem::invalid("across_rooms", "across_rooms cannot be turned on while notes are turned off"));
        }
        (_, Some(_)) if person.is_some() => {
            return Err(Problem::invalid("across_rooms", "across_rooms is for the whole guild; leave person out"));
        }
        (on, across_rooms) => {
            let guild = GuildId::from(&*guild);
            if let Some(on) = on {
                memory.switch_notes(guild.clone(), person.map(|person| (&*person).into()), on).await?;
            }
            if let Some(across_rooms) = across_rooms {
                memory.use_notes_across_rooms(guild, across_rooms).await?;
            }
        }
    }
    Ok(StatusCode::NO_CONTENT)
}
