//! What is sent on a connection on demand: handed to the shard that Discord wants it from, and no more of it than Discord allows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::super::snowflake::Snowflake;
use super::payload;
use crate::ports::gateway::{Command, Shard, Unsent};

/// Discord allows 120 payloads a minute on a connection and closes it at one more (Discord's documentation, "Gateway", "Rate Limiting"). Some are
/// kept for heartbeats, for what begins a session, and for presences.
const MOST_A_MINUTE: usize = 100;
const MINUTE: Duration = Duration::from_secs(60);
/// Commands that wait on a connection.
const MOST_WAITING: usize = 64;

/// The queues of the connections that have a session, by shard.
#[derive(Debug, Default)]
pub struct Commands(Mutex<BTreeMap<Shard, mpsc::Sender<Value>>>);

/// The queue of one connection. Dropped, no more commands are accepted for it, and those that wait are not sent.
#[derive(Debug)]
pub struct Queue<'a> {
    commands: &'a Commands,
    shard: Shard,
    waiting: mpsc::Receiver<Value>,
    /// When commands were sent in the last minute.
    sent: VecDeque<Instant>,
}

impl Commands {
    /// Accepts a command: it is sent soon, if the connection lasts.
    ///
    /// # Errors
    /// Why not.
    pub fn send(&self, command: &Command) -> Result<(), Unsent> {
        let (guild, payload) = match command {
            Command::VoiceState { guild, channel, is_muted, is_deafened } => {
                let refused = |id: &str| Unsent::Refused(format!("{id} is none of Discord's"));
                let of = Snowflake::of_guild(guild).ok_or_else(|| refused(guild.as_str()))?;
                let into = match channel {
                    Some(channel) => Some(Snowflake::of_channel(channel).ok_or_else(|| refused(channel.as_str()))?),
                    None => None,
                };
                (of, payload::voice_state(of, into, *is_muted, *is_deafened))
            }
        };
        let queues = self.lock();
        let queue = queues.iter().find(|(shard, _)| guild.shard(shard.of) == shard.number).map(|(_, queue)| queue);
        queue.ok_or(Unsent::NotConnected)?.try_send(payload).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unsent::TooMany,
            mpsc::error::TrySendError::Closed(_) => Unsent::NotConnected,
        })
    }

    /// The queue of a connection that has a session now.
    pub fn open(&self, shard: Shard) -> Queue<'_> {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let mut queues = self.lock();
        // With another number of connections none of the earlier ones is left.
        queues.retain(|known, _| known.of == shard.of);
        queues.insert(shard, queue);
        Queue { commands: self, shard, waiting, sent: VecDeque::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Shard, mpsc::Sender<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue<'_> {
    /// The next command, once it may be sent. It waits for ever where nobody sends any. Safe to drop.
    pub async fn next(&mut self) -> Value {
        if let Some(free_at) = self.free_at(Instant::now()) {
            sleep_until(free_at).await;
        }
        let Some(payload) = self.waiting.recv().await else { return std::future::pending().await };
        self.sent.push_back(Instant::now());
        payload
    }

    /// When another command may be sent, if not now.
    fn free_at(&mut self, now: Instant) -> Option<Instant> {
        while self.sent.front().is_some_and(|sent| *sent + MINUTE <= now) {
            self.sent.pop_front();
        }
        self.sent.front().filter(|_| self.sent.len() >= MOST_A_MINUTE).map(|oldest| *oldest + MINUTE)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        let mut queues = self.commands.lock();
        self.waiting.close();
        // Another connection of the shard may have begun.
        if queues.get(&self.shard).is_some_and(mpsc::Sender::is_closed) {
            queues.remove(&self.shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tokio::time::timeout;

    use super::*;
    use crate::domain::id::ChannelId;

    fn shard(number: u32, of: u32) -> Shard {
        Shard { number, of: NonZeroU32::new(of).unwrap() }
    }

    /// Joins a voice channel in the guild that belongs to this shard.
    fn joins(shard: u64) -> Command {
        let guild = format!("discord:{}", (shard << 22) | 1).as_str().into();
        Command::VoiceState { guild, channel: Some(ChannelId::from("discord:9")), is_muted: false, is_deafened: false }
    }

    #[test]
    fn a_command_goes_to_the_shard_of_its_guild() {
        let commands = Commands::default();
        let (mut first, mut second) = (commands.open(shard(0, 2)), commands.open(shard(1, 2)));

        commands.send(&joins(1)).unwrap();

        assert!(first.waiting.try_recv().is_err());
        assert_eq!(second.waiting.try_recv().unwrap()["d"]["guild_id"], "4194305");
    }

    #[test]
    fn a_command_is_refused_where_nobody_is_connected_or_too_many_wait() {
        let commands = Commands::default();
        let before = commands.send(&joins(0));
        let queue = commands.open(shard(0, 1));
        let results: Vec<_> = (0..=MOST_WAITING).map(|_| commands.send(&joins(0))).collect();
        drop(queue);
        let after = commands.send(&joins(0));

        assert_eq!((before, after), (Err(Unsent::NotConnected), Err(Unsent::NotConnected)));
        assert!(results[..MOST_WAITING].iter().all(Result::is_ok));
        assert_eq!(results[MOST_WAITING], Err(Unsent::TooMany));
    }

    #[test]
    fn an_id_of_another_platform_is_refused() {
        let commands = Commands::default();
        let _queue = commands.open(shard(0, 1));

        let refused =
            commands.send(&Command::VoiceState { guild: "home".into(), channel: None, is_muted: false, is_deafened: false });

        assert_eq!(refused, Err(Unsent::Refused("home is none of Discord's".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_sent_in_a_minute_than_discord_allows() {
        let commands = Commands::default();
        let mut queue = commands.open(shard(0, 1));
        let began = Instant::now();
        for _ in 0..MOST_A_MINUTE {
            commands.send(&joins(0)).unwrap();
            queue.next().await;
        }
        commands.send(&joins(0)).unwrap();

        let at_once = timeout(MINUTE - Duration::from_secs(1), queue.next()).await;
        let later = timeout(Duration::from_secs(2), queue.next()).await;

        assert!(at_once.is_err() && later.is_ok());
        assert!(began.elapsed() >= MINUTE);
    }
}
