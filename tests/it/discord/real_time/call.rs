//! A voice channel with Aria in it, and the real binary in its call.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::super::commands::{companion, final_answer, sub};
use super::super::counterpart::voice::sessions::Seat;
use super::super::counterpart::voice::{self, Counts, Person, Voice};
use super::super::counterpart::{Id, Permissions, Rules};
use super::super::home::Home;
use crate::harness::{Premises, Server, Watch};

pub struct Call {
    pub home: Home,
    pub channel: Id,
    pub server: Server,
    /// The events of the channel.
    pub watch: Watch,
    pub premises: Premises,
}

impl Call {
    /// A channel that the bot enters once somebody is there. What is typed in it is answered aloud.
    pub async fn begin(rules: Rules, premises: Premises) -> Self {
        let home = Home::with_rules(rules).await;
        let kim = home.discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
        let channel = home.discord.voice_channel(home.guild, "harbour");
        let premises = premises.without_limits().for_discord(&home.discord).with("voice.read_text_aloud", "true");
        let premises = premises.with("discord.voice_channels", &format!("[\"{channel}\"]"));
        let server = premises.start().await;
        home.discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
        home.discord.sessions(1).await;
        final_answer(&home.discord, kim, channel, sub("join", json!([companion("aria")]))).await;
        let watch = server.watch(&format!("discord:{channel}"), Some(0)).await;
        Self { home, channel, server, watch, premises }
    }

    /// Ana enters the call, and the bot follows.
    pub async fn enter(&self) -> Person {
        let ana = self.home.discord.call(self.home.ana, self.channel).await;
        self.home.discord.bot_called(self.channel).await;
        ana.grouped(2).await;
        self.grouped(1).await;
        ana
    }

    /// Waits until the bot and so many people are in the group of the end-to-end encryption.
    pub async fn grouped(&self, people: usize) {
        self.home.discord.voice().grouped(self.channel, people + 1).await;
    }

    pub fn counts(&self, user: Id) -> Counts {
        self.home.discord.voice().counts(self.channel, user)
    }

    /// Waits until somebody has sent so many more packets with audio.
    pub async fn says_more(&self, user: Id, packets: usize) {
        let (seat, enough) = (Seat { channel: self.channel, user }, self.counts(user).end_to_end + packets);
        let said = |voice: &Voice| voice.counts.get(&seat).is_some_and(|counts| counts.end_to_end >= enough).then_some(());
        self.home.discord.voice().until("more audio", said).await;
    }

    /// How many packets the bot was sent, and how many reached the call, once none is under way.
    pub async fn settled(&self) -> (usize, usize) {
        settled(&self.server, || self.counts(self.home.bot).sent).await
    }

    /// How many packets of people have reached the call.
    pub async fn packets_received(&self) -> usize {
        packets_received(&self.server).await
    }

    /// Cuts the bot's connection to the voice gateway, and waits until it has resumed. Returns how long that took.
    pub async fn cut(&self) -> Duration {
        let (voice, bot) = (self.home.discord.voice(), self.home.bot);
        let resumed = |voice: &Voice| {
            let resumes = voice.journal.resumes.iter();
            let accepted = resumes.filter(|resume| resume.user == Some(bot) && resume.replayed.is_some());
            accepted.map(|resume| resume.at).collect::<Vec<_>>()
        };
        let (before, cut_at) = (voice.look(resumed).len(), Instant::now());
        voice.cut(self.channel, bot);
        let at = voice.until("the resume", |voice| resumed(voice).get(before).copied()).await;
        at.duration_since(cut_at)
    }
}

/// How many packets of people have reached a server's calls.
pub async fn packets_received(server: &Server) -> usize {
    let received = server.measured("tertulia_voice_packets_total").await;
    received.iter().filter(|(labels, _)| labels.contains("received")).map(|(_, count)| *count as usize).sum()
}

/// How many packets the bot was sent, and how many reached a server's calls, once none is under way.
pub async fn settled(server: &Server, sent: impl Fn() -> usize) -> (usize, usize) {
    loop {
        let (before, mut received) = (sent(), 0);
        for _ in 0..200 {
            received = packets_received(server).await;
            if received >= before {
                break;
            }
        }
        if sent() == before {
            return (before, received);
        }
    }
}

/// Somebody says the same again and again while something else happens, and then to its end.
pub async fn talking_during(person: &Person, packets: &[Vec<u8>], during: impl Future<Output = ()>) {
    let talking = async {
        loop {
            person.talk(packets).await;
        }
    };
    tokio::select! {
        () = during => {}
        () = talking => {}
    }
    person.talk(&packets[..1]).await;
}

/// Heartbeats as rare as Discord's, and patience with a busy machine.
pub fn rules() -> Rules {
    let long = Duration::from_secs(600);
    let calls =
        voice::Rules { heartbeat_tolerance: long, transition_timeout: Duration::from_secs(10), ..voice::Rules::default() };
    Rules { heartbeat_tolerance: long, interaction_deadline: long, voice: calls, ..Rules::roomy() }
}
