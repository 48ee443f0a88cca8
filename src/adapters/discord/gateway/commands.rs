//! Sends commands on the connection of the right shard, within Discord's rate limit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::super::snowflake::Snowflake;
use super::payload;
use crate::ports::gateway::{Command, Shard, Unsent};

/// The limit of commands per minute. Discord allows 120 payloads per minute on a connection, and closes it at one more (Discord's documentation,
/// "Gateway", "Rate Limiting"). The rest is reserved for heartbeats, for starting a session, and for presences.
const MOST_A_MINUTE: usize = 100;
const MINUTE: Duration = Duration::from_secs(60);
/// The limit of commands queued on a connection.
const MOST_WAITING: usize = 64;

/// The queues of connections with a session, by shard.
#[derive(Debug, Default)]
pub struct Commands(Mutex<BTreeMap<Shard, mpsc::Sender<Value>>>);

/// The command queue of one connection. Dropping it discards queued commands, and rejects further ones for the connection.
#[derive(Debug)]
pub struct Queue<'a> {
    commands: &'a Commands,
    shard: Shard,
    waiting: mpsc::Receiver<Value>,
    /// The send times of the commands of the last minute.
    sent: VecDeque<Instant>,
}

impl Commands {
    /// Queues a command. It is sent soon, unless the connection ends.
    ///
    /// # Errors
    /// Returns an error if an id is not a Discord id, the guild's connection has no session, or the queue is full.
    pub fn send(&self, command: &Command) -> Result<(), Unsent> {
        let (guild, payload) = match command {
            Command::VoiceState { guild, channel } => {
                let refused = |id: &str| Unsent::Refused(format!("{id} is not an id of Discord's"));
                let guild_id = Snowflake::of_guild(guild).ok_or_else(|| refused(guild.as_str()))?;
                let channel_id = match channel {
                    Some(channel) => Some(Snowflake::of_channel(channel).ok_or_else(|| refused(channel.as_str()))?),
                    None => None,
                };
                (guild_id, payload::voice_state(guild_id, channel_id))
            }
        };
        let queues = self.0.lock();
        let queue = queues.iter().find(|(shard, _)| guild.shard(shard.of) == shard.number).map(|(_, queue)| queue);
        queue.ok_or(Unsent::NotConnected)?.try_send(payload).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unsent::TooMany,
            mpsc::error::TrySendError::Closed(_) => Unsent::NotConnected,
        })
    }

    /// Opens the command queue of a connection. Call it when the session has begun.
    pub fn open(&self, shard: Shard) -> Queue<'_> {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let mut queues = self.0.lock();
        // If the number of shards has changed, all earlier connections are gone.
        queues.retain(|other, _| other.of == shard.of);
        queues.insert(shard, queue);
        Queue { commands: self, shard, waiting, sent: VecDeque::new() }
    }
}

impl Queue<'_> {
    /// Returns the next command once it may be sent. Waits forever if there is none. Cancel safe.
    pub async fn next(&mut self) -> Value {
        if let Some(next_at) = self.next_at(Instant::now()) {
            sleep_until(next_at).await;
        }
        let Some(payload) = self.waiting.recv().await else { return std::future::pending().await };
        self.sent.push_back(Instant::now());
        payload
    }

    /// When the next command may be sent. `None`: now.
    fn next_at(&mut self, now: Instant) -> Option<Instant> {
        while self.sent.front().is_some_and(|sent| *sent + MINUTE <= now) {
            self.sent.pop_front();
        }
        self.sent.front().filter(|_| self.sent.len() >= MOST_A_MINUTE).map(|oldest| *oldest + MINUTE)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        let mut queues = self.commands.0.lock();
        self.waiting.close();
        // Another connection of the shard may have opened a queue meanwhile.
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

    /// Joins a voice channel in a guild of this shard.
    fn join_voice(shard: u64) -> Command {
        let guild = format!("discord:{}", (shard << 22) | 1).as_str().into();
        Command::VoiceState { guild, channel: Some(ChannelId::from("discord:9")) }
    }

    #[test]
    fn a_command_goes_to_the_shard_of_its_guild() {
        let commands = Commands::default();
        let (mut first, mut second) = (commands.open(shard(0, 2)), commands.open(shard(1, 2)));

        commands.send(&join_voice(1)).unwrap();

        assert!(first.waiting.try_recv().is_err());
        assert_eq!(second.waiting.try_recv().unwrap()["d"]["guild_id"], "4194305");
    }

    #[test]
    fn a_command_is_refused_without_a_connection_or_with_a_full_queue() {
        let commands = Commands::default();
        let before = commands.send(&join_voice(0));
        let queue = commands.open(shard(0, 1));
        let results: Vec<_> = (0..=MOST_WAITING).map(|_| commands.send(&join_voice(0))).collect();
        drop(queue);
        let after = commands.send(&join_voice(0));

        assert_eq!((before, after), (Err(Unsent::NotConnected), Err(Unsent::NotConnected)));
        assert!(results[..MOST_WAITING].iter().all(Result::is_ok));
        assert_eq!(results[MOST_WAITING], Err(Unsent::TooMany));
    }

    #[test]
    fn an_id_of_another_platform_is_refused() {
        let commands = Commands::default();
        let _queue = commands.open(shard(0, 1));

        let refused = commands.send(&Command::VoiceState { guild: "home".into(), channel: None });

        assert_eq!(refused, Err(Unsent::Refused("home is not an id of Discord's".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_as_many_commands_are_sent_in_a_minute_as_discord_allows() {
        let commands = Commands::default();
        let mut queue = commands.open(shard(0, 1));
        let began = Instant::now();
        for _ in 0..MOST_A_MINUTE {
            commands.send(&join_voice(0)).unwrap();
            queue.next().await;
        }
        commands.send(&join_voice(0)).unwrap();

        let at_once = timeout(MINUTE - Duration::from_secs(1), queue.next()).await;
        let later = timeout(Duration::from_secs(2), queue.next()).await;

        assert!(at_once.is_err() && later.is_ok());
        assert!(began.elapsed() >= MINUTE);
    }
}
