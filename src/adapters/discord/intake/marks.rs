//! Marks: how far a channel was heard where nothing of it is on record, as with bots that are ignored.
//!
//! They save questions after a downtime, no more: one that is lost costs reading the same again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::snowflake::Snowflake;
use crate::domain::id::GuildId;
use crate::ports::notes::Notes;

/// What the names of these notes begin with; the channel's id follows.
const BEGINNING: &str = "discord/heard/";
/// Marks are gathered for so long.
const GATHERED: Duration = Duration::from_secs(1);
/// After a failure they are gathered for so long.
const TRIED_AGAIN: Duration = Duration::from_secs(10);
/// Guilds whose notes are written at once.
const AT_ONCE: usize = 8;

/// Where they are. What writes them ends when it is dropped.
pub(super) struct Marks {
    inner: Arc<Inner>,
    _task: JoinSet<()>,
}

/// By channel; none: the channel is gone, and its mark goes.
type OfGuild = BTreeMap<Snowflake, Option<Snowflake>>;

struct Inner {
    notes: Arc<dyn Notes>,
    /// Those that are not written yet.
    unwritten: Mutex<BTreeMap<GuildId, OfGuild>>,
    changed: Notify,
}

impl Marks {
    pub fn new(notes: Arc<dyn Notes>) -> Self {
        let inner = Arc::new(Inner { notes, unwritten: Mutex::default(), changed: Notify::new() });
        let mut task = JoinSet::new();
        let writer = Arc::clone(&inner);
        task.spawn(async move { writer.write_on().await });
        Self { inner, _task: task }
    }

    /// A channel was heard up to this message.
    pub fn mark(&self, guild: &GuildId, channel: Snowflake, message: Snowflake) {
        let mut unwritten = self.inner.lock();
        let mark = unwritten.entry(guild.clone()).or_default().entry(channel).or_default();
        *mark = (*mark).max(Some(message));
        drop(unwritten);
        self.inner.changed.notify_one();
    }

    /// A channel is gone.
    pub fn forget(&self, guild: &GuildId, channel: Snowflake) {
        self.inner.lock().entry(guild.clone()).or_default().insert(channel, None);
        self.inner.changed.notify_one();
    }

    /// How far a channel was heard. What cannot be read is none.
    pub async fn read(&self, guild: &GuildId, channel: Snowflake) -> Option<Snowflake> {
        let unwritten = self.inner.lock().get(guild).and_then(|marks| marks.get(&channel)).copied();
        if let Some(unwritten) = unwritten {
            return unwritten;
        }
        match self.inner.notes.read(Some(guild), &name(channel)).await {
            Ok(note) => std::str::from_utf8(&note?).ok()?.parse().ok(),
            Err(error) => {
                tracing::warn!(%channel, %error, "how far a channel was heard cannot be read; more of it may be read again");
                None
            }
        }
    }
}

impl Inner {
    async fn write_on(&self) {
        loop {
            self.changed.notified().await;
            sleep(GATHERED).await;
            while !self.write().await {
                sleep(TRIED_AGAIN).await;
            }
        }
    }

    /// Writes what is not written yet. False: some of it could not be.
    async fn write(&self) -> bool {
        let gathered = self.lock().clone();
        let written = stream::iter(gathered).map(|(guild, marks)| async move {
            let notes = marks.iter().map(|(channel, mark)| (name(*channel), mark.map(|mark| mark.to_string().into_bytes())));
            let outcome = self.notes.write(Some(&guild), notes.collect()).await;
            (guild, marks, outcome)
        });
        let mut written = written.buffer_unordered(AT_ONCE);
        let mut is_done = true;
        while let Some((guild, marks, outcome)) = written.next().await {
            match outcome {
                Ok(()) => self.is_written(&guild, &marks),
                Err(error) => {
                    if is_done {
                        tracing::warn!(%error, "how far channels were heard cannot be kept; it is tried again");
                    }
                    is_done = false;
                }
            }
        }
        is_done
    }

    /// What changed meanwhile stays.
    fn is_written(&self, guild: &GuildId, written: &OfGuild) {
        let mut unwritten = self.lock();
        let Some(marks) = unwritten.get_mut(guild) else { return };
        marks.retain(|channel, mark| written.get(channel) != Some(&*mark));
        if marks.is_empty() {
            unwritten.remove(guild);
        }
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<GuildId, OfGuild>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(channel: Snowflake) -> String {
    format!("{BEGINNING}{channel}")
}
