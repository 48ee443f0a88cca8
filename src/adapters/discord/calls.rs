//! Voice calls: decides which voice channel the bot joins in each guild, and runs the connections.
//!
//! * `guild`: tracks the people in the voice channels of a guild and decides the bot's target channel. It performs no IO.
//! * `connection`: the connection to one call, run by the core.
//! * `speaker`: plays the companions' speech and estimates how much of it people have heard. `numbers`: continuous packet numbers per person.
//! * `status`: a guild's call as status output shows it. `notice`: posts notices to the people in a call. `kept`: state that is persisted for the
//!   next process.
//!
//! The core runs each connection as part of its call, so a connection that fails or hangs does not affect the others.

mod connection;
mod guild;
mod kept;
mod notice;
mod numbers;
mod speaker;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use self::connection::Connection;
pub use self::guild::Silence;
use self::guild::{Admitted, By, GuildVoice, Present, Way};
use self::kept::{Kept, ToldPeople};
use self::numbers::Numbers;
use self::status::Live;
pub use self::status::Status;
use super::platform::Discord;
use super::rest::{Failed, Request};
use super::snowflake::Snowflake;
use super::voice::{Options, Server};
use super::wire::{VoiceServer, VoiceState};
use crate::domain::message::Standing;
use crate::ports::audio::Audio;
use crate::ports::backend::stamp::Stamp;
use crate::ports::backend::{Backend, Refused};
use crate::ports::call_room::Trouble;
use crate::ports::gateway::{Command, Gateway, Unsent};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::notes::Notes;
use crate::ports::platform_call::{Ended, PlatformCalls};

/// The pause between attempts to leave a channel. The first attempt fails if the gateway is down.
const LEAVES_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often a person's voice state is requested after a wait, and the first wait. The wait doubles each time.
const MOST_LOOKUPS: u32 = 4;
const LOOKUP_AFTER: Duration = Duration::from_secs(1);
/// How often the bot checks that its target channels are still right.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The dependencies of [`Calls`].
pub struct Dependencies {
    pub discord: Arc<Discord>,
    pub calls: Arc<dyn PlatformCalls>,
    pub backend: Backend,
    pub audio: Arc<dyn Audio>,
    pub notes: Arc<dyn Notes>,
    pub options: Options,
    /// The voice channels that the bot enters by itself when a person is in them.
    pub automatic: BTreeSet<Snowflake>,
    /// Whether a notice is posted in each call, saying that companions listen.
    pub tells_people: bool,
}

/// The calls of one bot. Cheap to clone.
#[derive(Clone)]
pub struct Calls(Arc<Shared>);

pub struct Shared {
    parts: Dependencies,
    /// Whether reading the persisted state has begun.
    comes_back: AtomicBool,
    /// Whether the persisted state was read. Until then, the bot enters no channel by itself.
    is_back: AtomicBool,
    /// Serializes writes of the persisted state.
    keeping: tokio::sync::Mutex<()>,
    /// Sends commands to the main gateway.
    gateway: OnceLock<Arc<dyn Gateway>>,
    guilds: Mutex<BTreeMap<Snowflake, Entry>>,
}

#[derive(Default)]
struct Entry {
    voice: GuildVoice,
    changes: watch::Sender<()>,
    begun: Option<Begun>,
    /// Why the bot is not in its target channel.
    trouble: Option<String>,
    /// Counts changes that may let the bot into the target channel.
    chances: u64,
    told: Option<ToldPeople>,
    /// Whether the notice is still being posted.
    is_telling: bool,
    /// The persisted state, as it was last written.
    kept: Kept,
}

/// The call that the core runs for the guild.
struct Begun {
    channel: Snowflake,
    is_connected: bool,
    /// When the bot entered the call. Reconnecting does not change it.
    since: Option<Instant>,
    live: Option<Live>,
    /// The troubles that were already reported in the channel's text.
    told: BTreeSet<Trouble>,
}

impl Calls {
    pub fn new(parts: Dependencies) -> Self {
        Self(Arc::new(Shared {
            parts,
            comes_back: AtomicBool::new(false),
            is_back: AtomicBool::new(false),
            keeping: tokio::sync::Mutex::default(),
            gateway: OnceLock::new(),
            guilds: Mutex::default(),
        }))
    }

    /// Sets the gateway that sends commands. Before that, the bot enters no call.
    pub fn set_gateway(&self, gateway: Arc<dyn Gateway>) {
        let _ = self.0.gateway.set(gateway);
    }

    /// Handles `READY` and `RESUMED`: commands can be sent now. The first time, the bot rejoins the calls of the previous process. Must be called
    /// within a runtime.
    pub fn connected(&self) {
        if !self.0.comes_back.swap(true, Ordering::Relaxed) {
            let (shared, calls) = (self.0.clone(), Arc::downgrade(&self.0));
            tokio::spawn(async move {
                shared.come_back().await;
                drop(shared);
                // Membership may change without any event from Discord.
                loop {
                    sleep(LOOK_EVERY).await;
                    let Some(shared) = calls.upgrade() else { return };
                    shared.look_again();
                }
            });
        }
    }

    /// Handles `VOICE_STATE_UPDATE`.
    pub fn voice_state(&self, state: &VoiceState) {
        let Some(guild) = state.guild_id else { return };
        let bot = self.0.parts.discord.user();
        let before = self.channel_of(guild, state.user_id);
        self.change(guild, |shared, voice| voice.update(state, bot, |channel| shared.is_automatic(channel), Instant::now()));
        if let Some(left) = before.filter(|before| state.channel_id != Some(*before)) {
            // The channel may have been full; now a place is free.
            self.0.try_again(guild, |wanted| wanted == left);
        }
    }

    /// Handles `VOICE_SERVER_UPDATE`.
    pub fn voice_server(&self, server: VoiceServer) {
        self.change(server.guild_id, |_, voice| voice.update_server(server, Instant::now()));
    }

    /// Handles `GUILD_CREATE`: `states` are all voice states of the guild.
    pub fn guild_reported(&self, guild: Snowflake, states: &[VoiceState]) {
        let bot = self.0.parts.discord.user();
        self.change(guild, |shared, voice| voice.replace(states, bot, |channel| shared.is_automatic(channel), Instant::now()));
    }

    /// Handles the deletion of a channel.
    pub fn channel_gone(&self, guild: Snowflake, channel: Snowflake) {
        self.change(guild, |_, voice| voice.remove_channel(channel));
    }

    /// Handles the bot's removal from a guild.
    pub fn guild_gone(&self, guild: Snowflake) {
        self.change(guild, |_, voice| *voice = GuildVoice::default());
    }

    /// Handles a change of permissions in the guild or in one of its channels. The bot tries again to enter its target channel.
    pub fn access_changed(&self, guild: Snowflake) {
        self.0.try_again(guild, |_| true);
    }

    /// Handles a change of membership in channels of the guild. The bot enters a channel that has companions now, and leaves one that has none
    /// left.
    pub fn companions_changed(&self, guild: Snowflake) {
        self.0.look_again_in(guild);
    }

    /// Enters a channel on a user's command.
    ///
    /// # Errors
    /// Returns an error if no companion is in the channel, or if the limit of concurrent calls is reached.
    pub async fn join(&self, guild: Snowflake, channel: Snowflake) -> Result<(), Refused> {
        if !self.0.parts.calls.has_companions(&channel.channel()) {
            return Err(Refused::not_found("no companion is in the channel".to_owned()));
        }
        // The error of an earlier attempt does not apply to this one.
        self.0.guilds.lock().get_mut(&guild).into_iter().for_each(|entry| entry.trouble = None);
        let begun = self.0.change(guild, |voice| voice.join(channel, Instant::now()));
        self.0.try_again(guild, |_| true);
        self.0.keep(guild).await;
        begun
    }

    /// Leaves the call of a guild. Returns false if there was none.
    pub async fn leave(&self, guild: Snowflake) -> bool {
        let was_there = self.0.leave(guild);
        self.0.keep(guild).await;
        was_there
    }

    /// The voice channel that a user is in.
    pub fn channel_of(&self, guild: Snowflake, user: Snowflake) -> Option<Snowflake> {
        self.0.guilds.lock().get(&guild)?.voice.channel_of(user)
    }

    fn change(&self, guild: Snowflake, change: impl FnOnce(&Shared, &mut GuildVoice)) {
        // Errors were logged; the next change tries again.
        let _ = self.0.change(guild, |voice| change(&self.0, voice));
    }
}

impl Shared {
    /// Applies a change to the state of a guild, notifies its connection, and begins the call of the target channel.
    fn change(self: &Arc<Self>, guild: Snowflake, change: impl FnOnce(&mut GuildVoice)) -> Result<(), Refused> {
        let wanted = {
            let mut guilds = self.guilds.lock();
            let entry = guilds.entry(guild).or_default();
            change(&mut entry.voice);
            entry.changes.send_replace(());
            entry.voice.wanted(Instant::now()).filter(|wanted| entry.begun_in() != Some(wanted.channel))
        };
        let begun =
            wanted.map_or(Ok(()), |wanted| self.begin(guild, wanted.channel).inspect_err(|refused| self.give_up(guild, refused)));
        self.keep_changes(guild);
        begun
    }

    /// Updates the target channels of all guilds.
    fn look_again(self: &Arc<Self>) {
        let known: Vec<_> = self.guilds.lock().keys().copied().collect();
        known.into_iter().for_each(|guild| self.look_again_in(guild));
    }

    fn look_again_in(self: &Arc<Self>, guild: Snowflake) {
        // Errors were logged.
        let _ = self.change(guild, |voice| voice.look_again(|channel| self.is_automatic(channel), Instant::now()));
    }

    /// Retries at once to enter the target channel, if `concerns` returns true for it and the bot is not connected.
    fn try_again(&self, guild: Snowflake, concerns: impl FnOnce(Snowflake) -> bool) {
        let channel = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return };
            let Some(begun) = entry.begun.as_ref().filter(|begun| !begun.is_connected && concerns(begun.channel)) else { return };
            let channel = begun.channel;
            entry.chances += 1;
            entry.changes.send_replace(());
            channel
        };
        self.parts.calls.try_again(&channel.channel());
    }

    /// The number of changes that may have let the bot into its target channel.
    fn chances(&self, guild: Snowflake) -> u64 {
        self.guilds.lock().get(&guild).map_or(0, |entry| entry.chances)
    }

    /// Gives up the target channel, because the core refused the call.
    fn give_up(self: &Arc<Self>, guild: Snowflake, refused: &Refused) {
        let is_stray = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return };
            entry.voice.give_up();
            entry.changes.send_replace(());
            let trouble = Some(refused.to_string());
            if entry.trouble != trouble {
                tracing::warn!(%guild, %refused, "a voice channel is not entered");
                entry.trouble = trouble;
            }
            // A moderator moved the bot there. If a call was begun for that channel, its connection leaves instead.
            let is_stray = entry.voice.place().is_some_and(|(place, _)| entry.begun_in() != Some(place));
            if is_stray {
                entry.voice.forget_session();
            }
            is_stray
        };
        if is_stray {
            self.leave_channel(guild);
        }
    }

    /// Leaves the bot's voice channel. Retries until the command is sent or the bot has a target channel again.
    fn leave_channel(self: &Arc<Self>, guild: Snowflake) {
        let Err(unsent) = self.send(guild, None) else { return };
        tracing::warn!(%guild, %unsent, "the bot does not leave a voice channel yet");
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(LEAVES_AGAIN_AFTER).await;
                let Some(shared) = shared.upgrade() else { return };
                let is_wanted = |entry: &mut Entry| entry.voice.wanted(Instant::now()).is_some();
                if shared.guilds.lock().get_mut(&guild).is_some_and(is_wanted) || shared.send(guild, None).is_ok() {
                    return;
                }
            }
        });
    }

    /// Whether the bot enters a channel without a user's command.
    fn is_automatic(&self, channel: Snowflake) -> bool {
        self.is_back.load(Ordering::Relaxed)
            && self.parts.automatic.contains(&channel)
            && self.parts.calls.has_companions(&channel.channel())
    }

    fn begin(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) -> Result<(), Refused> {
        let channel_ref = ChannelRef { guild: guild.guild(), channel: channel.channel(), parent: None };
        let left = self.guilds.lock().get(&guild).and_then(Entry::begun_in).map(Snowflake::channel);
        self.parts.calls.begin(&channel_ref, left.as_ref(), Arc::new(Connection::new(self.clone(), guild, channel)))?;
        let mut guilds = self.guilds.lock();
        let entry = guilds.entry(guild).or_default();
        entry.begun = Some(Begun { channel, is_connected: false, since: None, live: None, told: BTreeSet::new() });
        entry.trouble = None;
        Ok(())
    }

    fn leave(self: &Arc<Self>, guild: Snowflake) -> bool {
        let was_wanted = self.guilds.lock().get_mut(&guild).is_some_and(|entry| entry.voice.wanted(Instant::now()).is_some());
        // Leaving begins no call, so there is no error.
        let _ = self.change(guild, GuildVoice::leave);
        was_wanted
    }

    fn subscribe(&self, guild: Snowflake) -> Option<watch::Receiver<()>> {
        self.guilds.lock().get(&guild).map(|entry| entry.changes.subscribe())
    }

    /// Handles the end of a channel's call by the core.
    fn end_call(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) {
        let is_wanted = |entry: &mut Entry| entry.voice.wanted(Instant::now()).is_some_and(|wanted| wanted.channel == channel);
        if self.guilds.lock().get_mut(&guild).is_some_and(is_wanted) {
            self.leave(guild);
        }
        self.leave_unless_wanted(guild, channel);
    }

    /// Leaves a channel if it is not the target channel any more, or if it has no companions left. Returns whether it left.
    fn leave_unless_wanted(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) -> bool {
        let has_companions = self.parts.calls.has_companions(&channel.channel());
        let leaves = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return true };
            let wanted = entry.voice.wanted(Instant::now());
            if wanted.is_some_and(|wanted| wanted.channel == channel) {
                if has_companions {
                    return false;
                }
                entry.voice.give_up();
            }
            entry.begun.take_if(|begun| begun.channel == channel);
            entry.told = entry.told.filter(|told| told.channel != channel);
            // Entering another channel implies leaving this one.
            let is_elsewhere = wanted.is_some_and(|wanted| wanted.channel != channel);
            let leaves = !is_elsewhere && entry.voice.place().is_some_and(|(place, _)| place == channel);
            if leaves {
                entry.voice.forget_session();
            }
            leaves
        };
        if leaves {
            self.leave_channel(guild);
        }
        self.keep_changes(guild);
        true
    }

    /// How far the bot is let into the call of a channel. [`Way::Closed`] if another channel is the target.
    fn way(&self, guild: Snowflake, channel: Snowflake) -> Way {
        let way = self.guilds.lock().get(&guild).map_or(Way::Closed, |entry| entry.voice.way());
        match way {
            Way::Open(admitted) if admitted.channel != channel => Way::Closed,
            way => way,
        }
    }

    /// The voice server to connect to.
    fn server(&self, guild: Snowflake, admitted: Admitted) -> Option<Server> {
        Some(Server {
            endpoint: without_scheme(&admitted.endpoint).to_owned(),
            token: admitted.token,
            session_id: admitted.session,
            guild: guild.get(),
            channel: admitted.channel.get(),
            user: self.parts.discord.user()?.get(),
        })
    }

    /// Whether a user's voice channel is known.
    fn knows(&self, guild: Snowflake, user: Snowflake) -> bool {
        self.guilds.lock().get(&guild).is_some_and(|entry| entry.voice.channel_of(user).is_some())
    }

    /// Requests a user's voice state from Discord. Returns `None` if the user is in no voice channel or was reported meanwhile, or if no request
    /// succeeds.
    async fn look_up(&self, guild: Snowflake, user: Snowflake) -> Option<VoiceState> {
        let is_reported = self.guilds.lock().get(&guild).is_some_and(|entry| entry.voice.is_reported());
        for wait in waits_before_lookups(is_reported) {
            sleep(wait).await;
            if self.knows(guild, user) {
                return None;
            }
            match self.parts.discord.rest().ask(Request::voice_state(guild, user)).await {
                Ok(state) => return Some(state),
                Err(Failed::Refused(_)) => return None,
                Err(error) => tracing::debug!(%guild, %error, "it is not known who is in a call"),
            }
        }
        None
    }

    /// Applies a voice state that was looked up.
    fn found(self: &Arc<Self>, guild: Snowflake, state: &VoiceState) {
        let bot = self.parts.discord.user();
        // Errors were logged; the next change tries again.
        let _ = self.change(guild, |voice| voice.update(state, bot, |channel| self.is_automatic(channel), Instant::now()));
    }

    fn people(&self, guild: Snowflake, channel: Snowflake) -> BTreeMap<Snowflake, Present> {
        let guilds = self.guilds.lock();
        let people = guilds.get(&guild).into_iter().flat_map(|entry| entry.voice.people(channel));
        people.map(|(user, present)| (user, present.clone())).collect()
    }

    /// Whether a user may address companions, by the roles in the user's newest voice state.
    async fn standing(&self, guild: Snowflake, user: Snowflake) -> Standing {
        let roles = self.guilds.lock().get(&guild).and_then(|entry| entry.voice.roles_of(user));
        self.parts.discord.standing(guild, user, roles.as_deref()).await.unwrap_or(Standing::MayNotAddress)
    }

    /// Whether the bot cannot be heard in a channel, or cannot hear.
    fn is_silenced(&self, guild: Snowflake, channel: Snowflake) -> bool {
        let place = self.guilds.lock().get(&guild).and_then(|entry| entry.voice.place());
        place.is_some_and(|(place, silence)| place == channel && silence.is_any())
    }

    fn alone_until(&self, guild: Snowflake) -> Option<Instant> {
        self.guilds.lock().get(&guild)?.voice.alone_until()
    }

    /// Asks Discord to let the bot into a channel. Leaves first, in case a voice session of an earlier connection is still open.
    fn ask(&self, guild: Snowflake, channel: Snowflake) -> Result<(), Unsent> {
        self.forget_session(guild, channel);
        self.send(guild, None)?;
        self.send(guild, Some(channel))
    }

    fn send(&self, guild: Snowflake, channel: Option<Snowflake>) -> Result<(), Unsent> {
        let gateway = self.gateway.get().ok_or(Unsent::NotConnected)?;
        gateway.send(Command::VoiceState { guild: guild.guild(), channel: channel.map(Snowflake::channel) })
    }

    /// Discards the voice session of a channel, so the next connection needs a new one. The session of another channel is kept.
    fn forget_session(&self, guild: Snowflake, channel: Snowflake) {
        let mut guilds = self.guilds.lock();
        let Some(entry) = guilds.get_mut(&guild) else { return };
        if entry.voice.place().is_none_or(|(place, _)| place == channel) {
            entry.voice.forget_session();
            entry.begun.iter_mut().for_each(|begun| begun.is_connected = false);
        }
    }

    /// Counts a voice channel that Discord did not let the bot into.
    fn count_not_let_in(&self) {
        self.parts.options.instruments.voice_refusals.add(1, ["channel"]);
    }

    fn connected(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) {
        let is_suppressed = {
            let mut guilds = self.guilds.lock();
            let Some(entry) = guilds.get_mut(&guild) else { return };
            let Some(begun) = entry.call_in(channel) else { return };
            begun.is_connected = true;
            begun.since.get_or_insert_with(Instant::now);
            entry.trouble = None;
            entry.changes.send_replace(());
            entry.voice.place().is_some_and(|(_, silence)| silence.is_suppressed)
        };
        self.tell_people(guild, channel);
        if is_suppressed {
            self.ask_to_speak(guild, channel);
        }
    }

    /// Requests to speak on a stage. In other channels the bot lacks a permission, and Discord refuses this request.
    fn ask_to_speak(self: &Arc<Self>, guild: Snowflake, channel: Snowflake) {
        let shared = self.clone();
        tokio::spawn(async move {
            let request = Request::speak_on_stage(guild, channel, &Stamp(shared.parts.discord.now()));
            if let Err(error) = shared.parts.discord.rest().send(&request).await {
                tracing::info!(%guild, %channel, %error, "the bot may not speak in a call, and cannot ask for it");
            }
        });
    }

    fn set_trouble(&self, guild: Snowflake, channel: Snowflake, ended: &Ended) {
        let mut guilds = self.guilds.lock();
        let (Ended::Lost { detail, .. }, Some(entry)) = (ended, guilds.get_mut(&guild)) else { return };
        if let Some(begun) = entry.call_in(channel) {
            begun.is_connected = false;
            entry.trouble = Some(detail.clone());
            entry.changes.send_replace(());
        }
    }
}

/// The waits before each lookup of a voice state. The main gateway usually reports the state first. In a resumed session, however, it never reports
/// people already in a call when this process started.
fn waits_before_lookups(is_reported: bool) -> impl Iterator<Item = Duration> {
    let at_once = (!is_reported).then_some(Duration::ZERO);
    at_once.into_iter().chain((0..MOST_LOOKUPS).map(|tried| LOOKUP_AFTER * 2_u32.pow(tried)))
}

/// Removes the scheme. Discord gives a host and a port; proxies and tests put a scheme before them.
fn without_scheme(endpoint: &str) -> &str {
    endpoint.split_once("://").map_or(endpoint, |(_, host)| host)
}

impl Entry {
    /// The channel of the begun call.
    fn begun_in(&self) -> Option<Snowflake> {
        self.begun.as_ref().map(|begun| begun.channel)
    }

    /// The begun call, if it is in this channel.
    fn call_in(&mut self, channel: Snowflake) -> Option<&mut Begun> {
        self.begun.as_mut().filter(|begun| begun.channel == channel)
    }

    fn to_keep(&self) -> Kept {
        let (wanted, dismissed) = self.voice.wanted_and_dismissed();
        let by = |by| wanted.filter(|wanted| wanted.by == by).map(|wanted| wanted.channel);
        Kept { asked: by(By::Command), entered: by(By::Setting), dismissed, told: self.told.filter(|_| !self.is_telling) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_may_have_been_there_before_this_process_are_looked_up_at_once() {
        let secs = |is_reported| waits_before_lookups(is_reported).map(|wait| wait.as_secs()).collect::<Vec<_>>();
        assert_eq!(secs(true), [1, 2, 4, 8]);
        assert_eq!(secs(false), [0, 1, 2, 4, 8]);
    }
}
