//! The calls of voice channels: where the bot belongs, and the connections that take it there.
//!
//! * `guild`: who is in the voice channels of a guild, and in which one the bot belongs. It decides and does nothing.
//! * `connection`: the connection to one call, run by the core.
//! * `speaker`: plays what companions say, and knows how far it was heard. `numbers`: the numbers of a person's packets.
//!
//! The core runs each connection as part of its call, so one that fails or hangs disturbs no other.

mod connection;
mod guild;
mod numbers;
mod speaker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use self::connection::Connection;
use self::guild::{Admitted, By, GuildVoice, Present, Way};
use self::numbers::Numbers;
use super::platform::Discord;
use super::rest::{Failed, Request};
use super::snowflake::Snowflake;
use super::voice::{Options, Server};
use super::wire::{VoiceServer, VoiceState};
use crate::ports::audio::Audio;
use crate::ports::backend::Refused;
use crate::ports::gateway::{Command, Gateway, Unsent};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::notes::Notes;
use crate::ports::platform_call::{Ended, PlatformCalls};
use crate::telemetry::instruments::Instruments;

/// The notes of the channels into which the bot was asked begin so.
const NOTE: &str = "voice/";
/// How often Discord is asked where somebody is, and how long after the voice server has named the person. The wait doubles each time.
const MOST_LOOKUPS: u32 = 4;
const LOOKUP_AFTER: Duration = Duration::from_secs(1);

/// What the calls need.
pub struct Dependencies {
    pub discord: Arc<Discord>,
    pub calls: Arc<dyn PlatformCalls>,
    pub audio: Arc<dyn Audio>,
    pub notes: Arc<dyn Notes>,
    pub options: Options,
    pub instruments: Instruments,
    /// The voice channels that the bot enters as soon as somebody is in them.
    pub automatic: BTreeSet<Snowflake>,
}

/// The calls of one bot. Cheap to clone.
#[derive(Clone)]
pub struct Calls(Arc<Shared>);

pub struct Shared {
    discord: Arc<Discord>,
    calls: Arc<dyn PlatformCalls>,
    audio: Arc<dyn Audio>,
    notes: Arc<dyn Notes>,
    options: Options,
    instruments: Instruments,
    automatic: BTreeSet<Snowflake>,
    /// What sends commands to the main gateway.
    gateway: OnceLock<Arc<dyn Gateway>>,
    guilds: Mutex<BTreeMap<Snowflake, Entry>>,
}

struct Entry {
    voice: GuildVoice,
    changes: watch::Sender<()>,
    /// The channel whose call was begun.
    begun: Option<Snowflake>,
    is_connected: bool,
    /// Why the bot is not where it belongs.
    trouble: Option<String>,
}

/// Where the bot is in a guild, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The channel in which the bot belongs.
    pub channel: Snowflake,
    /// Whether somebody asked for it, or the settings do.
    pub is_asked_for: bool,
    pub is_connected: bool,
    /// Whether it may not speak, in the audience of a stage.
    pub is_suppressed: bool,
    /// The people who are there.
    pub people: usize,
    /// Why it is not connected, if that is known.
    pub trouble: Option<String>,
}

impl Calls {
    pub fn new(dependencies: Dependencies) -> Self {
        let Dependencies { discord, calls, audio, notes, options, instruments, automatic } = dependencies;
        Self(Arc::new(Shared {
            discord,
            calls,
            audio,
            notes,
            options,
            instruments,
            automatic,
            gateway: OnceLock::new(),
            guilds: Mutex::default(),
        }))
    }

    /// Commands leave through this gateway. Until it is set, no call is entered. The bot comes back into the calls that it was asked into before.
    /// Must be called within a runtime.
    pub fn set_gateway(&self, gateway: Arc<dyn Gateway>) {
        let _ = self.0.gateway.set(gateway);
        let shared = self.0.clone();
        tokio::spawn(async move { shared.come_back().await });
    }

    /// `VOICE_STATE_UPDATE`.
    pub fn voice_state(&self, state: &VoiceState) {
        let Some(guild) = state.guild_id else { return };
        let bot = self.0.discord.user();
        self.change(guild, |shared, voice| {
            voice.update(state, bot, |channel| shared.automatic.contains(&channel), Instant::now())
        });
    }

    /// `VOICE_SERVER_UPDATE`.
    pub fn voice_server(&self, server: VoiceServer) {
        self.change(server.guild_id, |_, voice| voice.update_server(server, Instant::now()));
    }

    /// `GUILD_CREATE`: all who are in voice channels.
    pub fn guild_reported(&self, guild: Snowflake, states: &[VoiceState]) {
        let bot = self.0.discord.user();
        self.change(guild, |shared, voice| {
            voice.replace(states, bot, |channel| shared.automatic.contains(&channel), Instant::now())
        });
    }

    /// A channel is gone.
    pub fn channel_gone(&self, guild: Snowflake, channel: Snowflake) {
        self.change(guild, |_, voice| voice.remove_channel(channel));
    }

    /// The bot was removed from a guild.
    pub fn guild_gone(&self, guild: Snowflake) {
        self.change(guild, |_, voice| *voice = GuildVoice::default());
    }

    /// Enters a channel, because somebody asked for it.
    ///
    /// # Errors
    /// No companion is in the channel, or there are as many calls as there may be.
    pub async fn join(&self, guild: Snowflake, channel: Snowflake) -> Result<(), Refused> {
        self.0.begin(guild, channel)?;
        self.change(guild, |_, voice| voice.join(channel, Instant::now()));
        self.0.remember(guild, Some(channel)).await;
        Ok(())
    }

    /// Leaves the call of a guild. False: there is none.
    pub async fn leave(&self, guild: Snowflake) -> bool {
        let was_there = self.0.leave(guild);
        self.0.remember(guild, None).await;
        was_there
    }

    /// The voice channel in which somebody is.
    pub fn channel_of(&self, guild: Snowflake, user: Snowflake) -> Option<Snowflake> {
        self.0.guilds.lock().get(&guild)?.voice.channel_of(user)
    }

    /// Where the bot is in a guild. `None`: it belongs in no call.
    pub fn status(&self, guild: Snowflake) -> Option<Status> {
        let mut guilds = self.0.guilds.lock();
        let Entry { voice, is_connected, trouble, .. } = guilds.get_mut(&guild)?;
        let wanted = voice.wanted(Instant::now())?;
        let place = voice.place().filter(|(channel, _)| *channel == wanted.channel);
        Some(Status {
            channel: wanted.channel,
            is_asked_for: wanted.by == By::Command,
            is_connected: *is_connected,
            is_suppressed: place.is_some_and(|(_, is_suppressed)| is_suppressed),
            people: voice.people(wanted.channel).count(),
            trouble: trouble.clone().filter(|_| !*is_connected),
        })
    }

    fn change(&self, guild: Snowflake, change: impl FnOnce(&Shared, &mut GuildVoice)) {
        self.0.change(guild, |voice| change(&self.0, voice));
    }
}

impl Shared {
    /// Changes what is known of a guild, tells its connection, and begins the call in which the bot belongs now.
    fn change(self: &Arc<Self>, guild: Snowflake, change: impl FnOnce(&mut GuildVoice)) {
        let wanted = {
            let mut guilds = self.guilds.lock();
            let entry = guilds.entry(guild).or_insert_with(Entry::new);
            change(&mut entry.voice);
            entry.changes.send_replace(());
            entry.voice.wanted(Instant::now()).filter(|wanted| entry.begun != Some(wanted.channel))
        };
        let Some(wanted) = wanted else { return };
        if let Err(refused) = self.begin(guild, wanted.channel) {
            tracing::warn!(%guild, channel = %wanted.channel, %refused, "a voice channel is not entered");
            let mut guilds = self.guilds.lock();
            if let Some(entry) = guilds.get_mut(&guild) {
                entry.voice.leave();
                entry.changes.send_replace(());
            }
        }
    }

    /// Keeps the channel into which the bot was asked for the next process.
    async fn remember(&self, guild: Snowflake, channel: Option<Snowflake>) {
        let note = (format!("{NOTE}{guild}"), channel.map(|channel| channel.to_string().into_bytes()));
        if let Err(error) = self.notes.write(None, vec![note]).await {
            tracing::warn!(%guild, %error, "a restart will not know in which voice channel the bot belongs");
        }
    }

    async fn come_back(self: &Arc<Self>) {
        let notes = match self.notes.all(None, NOTE).await {
            Ok(notes) => notes,
            Err(error) => return tracing::warn!(%error, "the bot does not come back into voice channels"),
        };
        for (name, value) in notes {
            let guild = name.strip_prefix(NOTE).and_then(|guild| guild.parse().ok());
            let channel = std::str::from_utf8(&value).ok().and_then(|channel| channel.parse().ok());
            if let Some((guild, channel)) = guild.zip(channel) {
                self.change(guild, |voice| voice.join(channel, Instant::now()));
            }
        }
    }

    fn begin(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) -> Result<(), Refused> {
        let channel_ref = ChannelRef { guild: guild.guild(), channel: channel.channel(), parent: None };
        self.calls.begin(&channel_ref, Arc::new(Connection::new(self.clone(), guild, channel)))?;
        let mut guilds = self.guilds.lock();
        let entry = guilds.entry(guild).or_insert_with(Entry::new);
        (entry.begun, entry.is_connected, entry.trouble) = (Some(channel), false, None);
        Ok(())
    }

    fn leave(self: &Arc<Self>, guild: Snowflake) -> bool {
        let was_wanted = self.guilds.lock().get_mut(&guild).is_some_and(|entry| entry.voice.wanted(Instant::now()).is_some());
        self.change(guild, GuildVoice::leave);
        was_wanted
    }

    fn subscribe(&self, guild: Snowflake) -> Option<watch::Receiver<()>> {
        self.guilds.lock().get(&guild).map(|entry| entry.changes.subscribe())
    }

    /// Whether the bot does not belong in a channel any more. Then it leaves the channel, if it is still there.
    fn is_over(&self, guild: Snowflake, channel: Snowflake) -> bool {
        let leaves = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return true };
            if entry.voice.wanted(Instant::now()).is_some_and(|wanted| wanted.channel == channel) {
                return false;
            }
            if entry.begun == Some(channel) {
                (entry.begun, entry.is_connected) = (None, false);
            }
            let leaves = entry.voice.place().is_some_and(|(place, _)| place == channel);
            if leaves {
                entry.voice.forget_session();
            }
            leaves
        };
        if leaves && let Err(unsent) = self.send(guild, None) {
            tracing::warn!(%guild, %unsent, "the bot does not leave a voice channel");
        }
        true
    }

    /// The way into the call of a channel, if the bot belongs there.
    fn way(&self, guild: Snowflake, channel: Snowflake) -> Way {
        let way = self.guilds.lock().get(&guild).map_or(Way::Closed, |entry| entry.voice.way());
        match way {
            Way::Open(admitted) if admitted.channel != channel => Way::Closed,
            way => way,
        }
    }

    /// The address of a call into which the bot is let.
    fn server(&self, guild: Snowflake, admitted: Admitted) -> Option<Server> {
        Some(Server {
            endpoint: without_scheme(&admitted.endpoint).to_owned(),
            token: admitted.token,
            session_id: admitted.session,
            guild: guild.get(),
            channel: admitted.channel.get(),
            user: self.discord.user()?.get(),
        })
    }

    /// Whether it is known where somebody is.
    fn knows(&self, guild: Snowflake, user: Snowflake) -> bool {
        self.guilds.lock().get(&guild).is_some_and(|entry| entry.voice.channel_of(user).is_some())
    }

    /// Asks Discord where somebody is. `None`: in no voice channel.
    async fn look_up(&self, guild: Snowflake, user: Snowflake) -> Option<VoiceState> {
        for tried in 0..MOST_LOOKUPS {
            // The main gateway usually tells it first.
            sleep(LOOKUP_AFTER * 2_u32.pow(tried)).await;
            if self.knows(guild, user) {
                return None;
            }
            match self.discord.rest().ask(Request::voice_state(guild, user)).await {
                Ok(state) => return Some(state),
                Err(Failed::Refused(_)) => return None,
                Err(error) => tracing::debug!(%guild, %error, "it is not known who is in a call"),
            }
        }
        None
    }

    /// Somebody was found in a voice channel.
    fn found(self: &Arc<Self>, guild: Snowflake, state: &VoiceState) {
        let bot = self.discord.user();
        self.change(guild, |voice| voice.update(state, bot, |channel| self.automatic.contains(&channel), Instant::now()));
    }

    fn people(&self, guild: Snowflake, channel: Snowflake) -> BTreeMap<Snowflake, Present> {
        let guilds = self.guilds.lock();
        let people = guilds.get(&guild).into_iter().flat_map(|entry| entry.voice.people(channel));
        people.map(|(user, present)| (user, present.clone())).collect()
    }

    fn alone_until(&self, guild: Snowflake) -> Option<Instant> {
        self.guilds.lock().get(&guild)?.voice.alone_until()
    }

    /// Asks Discord to let the bot in. A place that it may have from before is given up first.
    fn ask(&self, guild: Snowflake, channel: Snowflake) -> Result<(), Unsent> {
        self.forget_session(guild);
        self.send(guild, None)?;
        self.send(guild, Some(channel))
    }

    fn send(&self, guild: Snowflake, channel: Option<Snowflake>) -> Result<(), Unsent> {
        let gateway = self.gateway.get().ok_or(Unsent::NotConnected)?;
        gateway.send(Command::VoiceState {
            guild: guild.guild(),
            channel: channel.map(Snowflake::channel),
            is_muted: false,
            is_deafened: false,
        })
    }

    /// The session of a call is of no use any more: the next connection needs a new one.
    fn forget_session(&self, guild: Snowflake) {
        if let Some(entry) = self.guilds.lock().get_mut(&guild) {
            entry.voice.forget_session();
            entry.is_connected = false;
        }
    }

    /// Discord does not let the bot into a voice channel.
    fn count_not_let_in(&self) {
        self.instruments.voice_refusals.add(1, ["channel"]);
    }

    fn connected(&self, guild: Snowflake, channel: Snowflake) {
        if let Some(entry) = self.guilds.lock().get_mut(&guild).filter(|entry| entry.begun == Some(channel)) {
            (entry.is_connected, entry.trouble) = (true, None);
        }
    }

    fn set_trouble(&self, guild: Snowflake, ended: &Ended) {
        if let (Ended::Lost { detail, .. }, Some(entry)) = (ended, self.guilds.lock().get_mut(&guild)) {
            (entry.is_connected, entry.trouble) = (false, Some(detail.clone()));
        }
    }
}

/// Discord names a host and a port. Proxies and tests put a scheme before them.
fn without_scheme(endpoint: &str) -> &str {
    endpoint.split_once("://").map_or(endpoint, |(_, host)| host)
}

impl Entry {
    fn new() -> Self {
        Self { voice: GuildVoice::default(), changes: watch::channel(()).0, begun: None, is_connected: false, trouble: None }
    }
}
