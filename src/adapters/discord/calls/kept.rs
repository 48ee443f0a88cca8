//! The state of a guild's calls that survives a restart, stored as a note.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::super::snowflake::Snowflake;
use super::{Entry, Shared};

/// The prefix of the notes' names.
const NOTE: &str = "voice/";

/// The persisted state of a guild.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The target channel, if a user asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Snowflake>,
    /// The target channel, if the bot entered it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Snowflake>,
    /// The channel that the bot was dismissed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<Snowflake>,
    /// The last notice that companions listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<ToldPeople>,
}

/// A posted notice that companions listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldPeople {
    pub channel: Snowflake,
    /// When it was posted, in seconds since 1970.
    pub at: u64,
}

impl Shared {
    /// Starts to write the note of a guild if it has changed.
    pub(super) fn keep_changes(self: &Arc<Self>, guild: Snowflake) {
        let is_changed = self.guilds.lock().get(&guild).is_some_and(|entry| entry.kept != entry.to_keep());
        if is_changed {
            let shared = self.clone();
            tokio::spawn(async move { shared.keep(guild).await });
        }
    }

    /// Restores the state of the previous process and rejoins its calls.
    pub(super) async fn come_back(self: &Arc<Self>) {
        let kept = self.kept().await;
        let were_called: Vec<_> =
            kept.iter().filter(|(_, kept)| kept.asked.or(kept.entered).is_some()).map(|(guild, _)| *guild).collect();
        for (guild, kept) in kept {
            let mut guilds = self.guilds.lock();
            let entry = guilds.entry(guild).or_default();
            let entered = kept.entered.filter(|channel| self.parts.automatic.contains(channel));
            entry.voice.restore(kept.asked, entered, kept.dismissed, Instant::now());
            entry.told = entry.told.or(kept.told);
            entry.kept = kept;
        }
        self.is_back.store(true, Ordering::Relaxed);
        self.look_again();
        for guild in were_called {
            let is_wanted = |entry: &mut Entry| entry.voice.wanted(Instant::now()).is_some();
            if !self.guilds.lock().get_mut(&guild).is_some_and(is_wanted) {
                // If the session was resumed, the bot would otherwise stay in a call that is not its target any more.
                self.leave_channel(guild);
            }
        }
    }

    /// Writes the note of a guild if it has changed.
    pub(super) async fn keep(&self, guild: Snowflake) {
        // Writes are serialized, so the newest state is written last.
        let _turn = self.keeping.lock().await;
        let (kept, before) = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return };
            let kept = entry.to_keep();
            if entry.kept == kept {
                return;
            }
            let before = std::mem::replace(&mut entry.kept, kept.clone());
            (kept, before)
        };
        let value = (kept != Kept::default()).then(|| serde_json::to_vec(&kept)).transpose();
        let written = match value {
            Ok(value) => {
                self.parts.notes.write(None, vec![(format!("{NOTE}{guild}"), value)]).await.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::warn!(%guild, error, "a restart may not know in which voice channel the bot belongs; the next change is kept again");
            if let Some(entry) = self.guilds.lock().get_mut(&guild) {
                entry.kept = before;
            }
        }
    }

    /// Reads the persisted state of all guilds.
    async fn kept(&self) -> Vec<(Snowflake, Kept)> {
        let notes = match self.parts.notes.all(None, NOTE).await {
            Ok(notes) => notes,
            Err(error) => {
                tracing::warn!(%error, "the bot does not come back into the voice channels in which it was");
                return Vec::new();
            }
        };
        let read = |(name, value): (String, Vec<u8>)| {
            let guild = name.strip_prefix(NOTE).and_then(|guild| guild.parse().ok());
            guild.zip(serde_json::from_slice(&value).ok())
        };
        notes.into_iter().filter_map(read).collect()
    }
}
