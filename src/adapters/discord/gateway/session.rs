//! The stored session of a shard. The next connection resumes it, even in another process.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twilight_model::gateway::Intents;

use super::super::snowflake::Snowflake;
use super::frame;
use crate::ports::gateway::Shard;
use crate::ports::notes::{NoteError, Notes};

/// A session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The session's id. With it and the token, anyone can resume the session.
    pub id: String,
    /// The address for resuming the session.
    pub resume_url: Option<String>,
    /// The last event up to which all events are accepted.
    pub accepted: u64,
    /// The number of shards when the session began.
    pub shards: u32,
    pub application: Snowflake,
    pub intents: Intents,
    /// The custom status that was last sent in the session.
    pub presence: Option<String>,
}

/// Stores the session of one shard.
#[derive(Clone)]
pub struct SessionStore {
    notes: Arc<dyn Notes>,
    name: String,
}

impl SessionStore {
    pub fn new(notes: Arc<dyn Notes>, shard: Shard) -> Self {
        Self { notes, name: format!("discord/session/{}", shard.number) }
    }

    /// Loads the stored session. Returns `None` if there is none or it is invalid; then the shard identifies.
    ///
    /// # Errors
    /// Returns an error if the note cannot be read.
    pub async fn load(&self) -> Result<Option<Session>, NoteError> {
        let Some(bytes) = self.notes.read(None, &self.name).await? else { return Ok(None) };
        let session: Option<Session> = serde_json::from_slice(&bytes).ok();
        // The address is checked again, because the file may have been changed.
        Ok(session.map(|session| Session { resume_url: session.resume_url.as_deref().and_then(frame::address), ..session }))
    }

    /// Stores a session, or removes the stored one.
    ///
    /// # Errors
    /// Returns an error if the note cannot be written.
    pub async fn save(&self, session: Option<&Session>) -> Result<(), NoteError> {
        let bytes = session.map(serde_json::to_vec).transpose().map_err(|error| NoteError(error.to_string()))?;
        self.notes.write(None, vec![(self.name.clone(), bytes)]).await
    }
}
