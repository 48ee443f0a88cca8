//! Remembers across restarts which message a handler hung on, so that a message that hangs it repeatedly becomes a dead letter:
//! `<data>/stalled.json`.
//!
//! The watchdog's thread writes it just before the process ends. If it cannot be written, the only loss is this automatic dead letter.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::dead_letters::{self, DEATHS_TO_DEAD_LETTER};
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::Stall;
use crate::domain::id::{ChannelId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::plain::Plain;

/// The file's name in the data folder.
const FILE: &str = "stalled.json";

/// The most entries that are kept, the newest ones.
const MAX_ENTRIES: usize = 16;

/// A message that a channel hung on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stuck {
    channel: ChannelId,
    /// 0: the message is unknown. The channel looks for it at the next start.
    seq: Seq,
    times: u32,
    /// Whether not the channel hung, but a companion's actor that was building a prompt or statement from its messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    over_words: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Stalls(PathBuf);

impl Stalls {
    /// The file in this data folder.
    pub(super) fn of(data: &Path) -> Self {
        Self(data.join(FILE))
    }

    /// Records a stall of a channel, or of work on its messages, with the message if it is known.
    pub(super) fn note(&self, stall: &Stall) {
        let (channel, over_words) = match (&stall.at, &stall.about) {
            (Some(Address::Channel(channel)), _) => (channel, false),
            (_, Some(about)) => (&about.channel_key.channel, true),
            _ => return,
        };
        let seq = stall.message.unwrap_or(Seq::NONE);
        let mut entries = self.read();
        let is_same = |stuck: &Stuck| stuck.channel == *channel && stuck.seq == seq && stuck.over_words == over_words;
        let times = entries.iter().position(is_same).map_or(0, |at| entries.remove(at).times).saturating_add(1);
        entries.push(Stuck { channel: channel.clone(), seq, times, over_words });
        entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
        if let Err(error) = self.write(&entries) {
            tracing::warn!(%error, "the message that a handler hung on could not be recorded");
        }
    }

    /// Makes dead letters of messages that hung their channel too often, before any channel starts. Needs the writer and the memberships.
    pub(super) async fn record_dead_letters(&self, context: &ActorContext) {
        let entries = self.read();
        let is_unknown = |stuck: &Stuck| stuck.seq == Seq::NONE;
        for stuck in entries.iter().filter(|stuck| is_unknown(stuck)) {
            let channel = stuck.channel.clone();
            if stuck.over_words { context.hung.note_prompt_hang(channel) } else { context.hung.note(channel) }
        }
        let is_due = |stuck: &Stuck| !is_unknown(stuck) && stuck.times >= DEATHS_TO_DEAD_LETTER;
        let (due, mut kept): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_due);
        if due.is_empty() {
            return;
        }
        for stuck in due {
            let Some(membership) = context.memberships.get(&stuck.channel) else { continue };
            let (channel, seq) = (Plain(stuck.channel.as_str()), stuck.seq);
            tracing::error!(%channel, %seq, times = stuck.times, "a message hung its handler repeatedly and is now a dead letter");
            let channel_key = ChannelKey::new(&membership.guild, &stuck.channel);
            if dead_letters::put(context, &channel_key, seq, "it hung for 30 s each time, and the process had to be ended").await
            {
                // The unknown message is found. If there is another one, the channel hangs again.
                kept.retain(|other| !is_unknown(other) || other.channel != stuck.channel);
            } else {
                kept.push(stuck);
            }
        }
        if let Err(error) = self.write(&kept) {
            tracing::warn!(%error, "the record of hung messages could not be cleared");
        }
    }

    fn read(&self) -> Vec<Stuck> {
        // An unreadable file counts as empty: it is our own file, and nothing depends on it.
        fs::read(&self.0).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    fn write(&self, entries: &[Stuck]) -> io::Result<()> {
        if entries.is_empty() {
            return match fs::remove_file(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let new = self.0.with_extension("new");
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(entries)?)?;
        fs::rename(new, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::runtime::watchdog::About;

    #[test]
    fn hangs_on_a_message_are_counted_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let stalls = Stalls::of(folder.path());

        for seq in [7, 8, 7, 7] {
            stalls.note(&stall(Some(Seq(seq))));
        }
        stalls.note(&stall(None));
        stalls.note(&Stall { at: None, ..stall(None) });
        let about =
            Some(About { channel_key: ChannelKey::new(&"home".into(), &"console:lobby".into()), companion: "aria".into() });
        stalls.note(&Stall { at: Some(Address::Companion("home".into(), "aria".into())), about, ..stall(None) });

        let entries = Stalls::of(folder.path()).read();
        let entries: Vec<_> = entries.iter().map(|stuck| (stuck.seq.0, stuck.times, stuck.over_words)).collect();
        assert_eq!(entries, [(8, 1, false), (7, 3, false), (0, 1, false), (0, 1, true)]);
    }

    #[test]
    fn an_unreadable_file_counts_as_empty_and_the_oldest_entries_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let stalls = Stalls::of(folder.path());
        fs::write(folder.path().join(FILE), "[{").unwrap();

        (0..40).for_each(|seq| stalls.note(&stall(Some(Seq(seq + 1)))));

        let entries: Vec<_> = stalls.read().iter().map(|stuck| stuck.seq.0).collect();
        assert_eq!(entries, (25..=40).collect::<Vec<_>>());
    }

    #[test]
    fn without_entries_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let stalls = Stalls::of(folder.path());
        stalls.note(&stall(Some(Seq(1))));

        stalls.write(&[]).unwrap();
        stalls.write(&[]).unwrap();

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    fn stall(message: Option<Seq>) -> Stall {
        Stall { silent: 30, at: Some(Address::Channel("console:lobby".into())), about: None, message }
    }
}
