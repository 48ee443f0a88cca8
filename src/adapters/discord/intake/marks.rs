//! Marks: up to which message each channel was received. They are needed for messages that are not journaled, such as those of
//! ignored bots.
//!
//! Marks only save requests after downtime. If a mark is lost, the same messages are read again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::snowflake::Snowflake;
use crate::domain::id::GuildId;
use crate::ports::notes::Notes;

/// The prefix of the notes' names. The channel's id follows.
const NAME_PREFIX: &str = "discord/heard/";
/// How long marks are collected before they are written.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The wait after a failed write.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The number of guilds whose notes are written concurrently.
const CONCURRENT_WRITES: usize = 8;

/// The marks and the task that writes them. The task ends when this is dropped.
pub(super) struct Marks {
    inner: Arc<Inner>,
    _task: JoinSet<()>,
}

/// The marks of a guild by channel. `None`: the channel is gone, and its mark must be deleted.
type GuildMarks = BTreeMap<Snowflake, Option<Snowflake>>;

struct Inner {
    notes: Arc<dyn Notes>,
    /// The marks that are not written yet.
    unwritten: Mutex<BTreeMap<GuildId, GuildMarks>>,
    changed: Notify,
}

impl Marks {
    pub fn new(notes: Arc<dyn Notes>) -> Self {
        let inner = Arc::new(Inner { notes, unwritten: Mutex::default(), changed: Notify::new() });
        let mut task = JoinSet::new();
        let writer = Arc::clone(&inner);
        task.spawn(async move { writer.write_loop().await });
        Self { inner, _task: task }
    }

    /// Records that a channel was received up to this message.
    pub fn mark(&self, guild: &GuildId, channel: Snowflake, message: Snowflake) {
        let mut unwritten = self.inner.unwritten.lock();
        let mark = unwritten.entry(guild.clone()).or_default().entry(channel).or_default();
        *mark = (*mark).max(Some(message));
        drop(unwritten);
        self.inner.changed.notify_one();
    }

    /// Deletes the mark of a deleted channel.
    pub fn forget(&self, guild: &GuildId, channel: Snowflake) {
        self.inner.unwritten.lock().entry(guild.clone()).or_default().insert(channel, None);
        self.inner.changed.notify_one();
    }

    /// The newest received message of a channel. `None` if there is no valid mark.
    pub async fn read(&self, guild: &GuildId, channel: Snowflake) -> Option<Snowflake> {
        let unwritten = self.inner.unwritten.lock().get(guild).and_then(|marks| marks.get(&channel)).copied();
        if let Some(unwritten) = unwritten {
            return unwritten;
        }
        match self.inner.notes.read(Some(guild), &name(channel)).await {
            Ok(note) => std::str::from_utf8(&note?).ok()?.parse().ok(),
            Err(error) => {
                tracing::warn!(%channel, %error, "the mark of a channel cannot be read; messages may be read again");
                None
            }
        }
    }
}

impl Inner {
    async fn write_loop(&self) {
        loop {
            self.changed.notified().await;
            sleep(BATCH_INTERVAL).await;
            while !self.write().await {
                sleep(RETRY_INTERVAL).await;
            }
        }
    }

    /// Writes all pending marks. Returns false if some could not be written.
    async fn write(&self) -> bool {
        let pending = self.unwritten.lock().clone();
        let written = stream::iter(pending).map(|(guild, marks)| async move {
            let notes = marks.iter().map(|(channel, mark)| (name(*channel), mark.map(|mark| mark.to_string().into_bytes())));
            let outcome = self.notes.write(Some(&guild), notes.collect()).await;
            (guild, marks, outcome)
        });
        let mut written = written.buffer_unordered(CONCURRENT_WRITES);
        let mut is_done = true;
        while let Some((guild, marks, outcome)) = written.next().await {
            match outcome {
                Ok(()) => self.remove_written(&guild, &marks),
                Err(error) => {
                    if is_done {
                        tracing::warn!(%error, "the marks of channels cannot be written; retrying");
                    }
                    is_done = false;
                }
            }
        }
        is_done
    }

    /// Removes written marks from the pending ones, unless they changed meanwhile.
    fn remove_written(&self, guild: &GuildId, written: &GuildMarks) {
        let mut unwritten = self.unwritten.lock();
        let Some(marks) = unwritten.get_mut(guild) else { return };
        marks.retain(|channel, mark| written.get(channel) != Some(&*mark));
        if marks.is_empty() {
            unwritten.remove(guild);
        }
    }
}

fn name(channel: Snowflake) -> String {
    format!("{NAME_PREFIX}{channel}")
}
