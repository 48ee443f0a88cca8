//! What is remembered of a shard's session, so that the next connection goes on where this one was, in another process too.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::snowflake::Snowflake;
use super::frame;
use crate::ports::gateway::Shard;
use crate::ports::notes::{NoteError, Notes};

/// A session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id. Whoever has it and the token can resume it.
    pub id: String,
    /// Where Discord wants it resumed.
    pub resume_url: Option<String>,
    /// Everything up to this event is kept.
    pub accepted: u64,
    /// How many shards there were when it began.
    pub shards: u32,
    /// The application that it belongs to.
    pub application: Snowflake,
    /// What it is told of.
    pub intents: u64,
    /// What stands below the bot's name since it began.
    #[serde(default)]
    pub presence: Option<String>,
}

/// Where the session of one shard is kept.
#[derive(Clone)]
pub struct Shelf {
    notes: Arc<dyn Notes>,
    name: String,
}

impl Shelf {
    /// The place of this shard's session.
    pub fn new(notes: Arc<dyn Notes>, shard: Shard) -> Self {
        Self { notes, name: format!("discord/session/{}", shard.number) }
    }

    /// The session that was put there, if it can be read: else the next one begins anew.
    ///
    /// # Errors
    /// Nothing can be read at all.
    pub async fn find(&self) -> Result<Option<Session>, NoteError> {
        let Some(bytes) = self.notes.read(None, &self.name).await? else { return Ok(None) };
        let session: Option<Session> = serde_json::from_slice(&bytes).ok();
        // What is on the disk may have been written by anybody.
        Ok(session.map(|session| Session { resume_url: session.resume_url.as_deref().and_then(frame::address), ..session }))
    }

    /// Puts a session there, or takes the one that is there away.
    ///
    /// # Errors
    /// It was not.
    pub async fn put(&self, session: Option<&Session>) -> Result<(), NoteError> {
        let bytes = session.map(serde_json::to_vec).transpose().map_err(|error| NoteError(error.to_string()))?;
        self.notes.write(None, vec![(self.name.clone(), bytes)]).await
    }
}
