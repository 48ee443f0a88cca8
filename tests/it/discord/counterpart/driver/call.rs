//! Voice channels, and who is in them.

use super::super::voice::sessions::Seat;
use super::super::voice::{Grant, Person, VoiceServer};
use super::super::{Channel, Id, Kind, State};
use super::Counterpart;

impl Counterpart {
    /// The voice servers.
    pub fn voice(&self) -> &VoiceServer {
        &self.voice
    }

    pub fn voice_channel(&self, guild: Id, name: &str) -> Id {
        self.channel_of(guild, Kind::Voice, name)
    }

    /// Limits how many users can be in a voice channel. 0: no limit.
    pub fn limit_users(&self, channel: Id, limit: usize) {
        self.with(|state| state.change_channel(channel, |channel: &mut Channel| channel.user_limit = limit));
    }

    /// A person enters a voice channel, or moves there, without a connection to its voice server: neither hears nor speaks.
    ///
    /// # Panics
    ///
    /// The person cannot join the channel.
    pub fn enter(&self, person: Id, channel: Id) {
        self.with(|state| state.enter(person, channel));
    }

    /// A person enters a voice channel and connects to its voice server.
    ///
    /// # Panics
    ///
    /// The person cannot join the channel.
    pub async fn call(&self, person: Id, channel: Id) -> Person {
        Person::join(self.admit(person, channel), 1).await
    }

    /// A person enters a voice channel, and is told with what a client connects to its voice server.
    ///
    /// # Panics
    ///
    /// The person cannot join the channel.
    pub fn admit(&self, person: Id, channel: Id) -> Grant {
        self.with(|state| {
            state.enter(person, channel);
            let guild = state.world.channels[&channel].guild.expect("a channel of a guild");
            let entered = state.world.voice_states[&(guild, person)].clone();
            state.grant_voice(&entered)
        })
    }

    /// A person leaves its call and its voice channel.
    pub async fn hang_up(&self, guild: Id, person: Person) {
        let user = person.seat.user;
        person.leave().await;
        self.disconnect(guild, user);
    }

    /// A user leaves its voice channel, or a moderator disconnects it: nobody can tell.
    pub fn disconnect(&self, guild: Id, user: Id) {
        self.with(|state| state.leave_voice(guild, user, 4014));
    }

    /// A moderator moves the bot to another voice channel.
    pub fn move_bot(&self, guild: Id, channel: Id) {
        self.with(|state| {
            let bot = state.world.bot();
            let before = state.world.voice_states.get(&(guild, bot)).cloned().expect("the bot is in a voice channel");
            state.join_voice(guild, Seat { channel, user: bot }, before.session, |state| {
                (state.self_mute, state.self_deaf) = (before.self_mute, before.self_deaf);
            });
        });
    }

    /// A moderator mutes a user, or lets it speak again.
    pub fn mute(&self, guild: Id, user: Id, mute: bool) {
        self.with(|state| state.change_voice_state(guild, user, |state| state.mute = mute));
    }

    /// A moderator invites a user of a stage's audience to speak, and the user accepts.
    pub fn let_speak(&self, guild: Id, user: Id) {
        self.with(|state| state.change_voice_state(guild, user, |state| state.suppress = false));
    }

    /// A moderator deafens a user, or lets it hear again.
    pub fn deafen(&self, guild: Id, user: Id, deaf: bool) {
        self.with(|state| state.change_voice_state(guild, user, |state| state.deaf = deaf));
    }

    /// Moves a call to a new voice server. All are disconnected; the bot is told the new server at once, and people call again.
    pub fn move_voice_server(&self, channel: Id) {
        let server = self.voice.add_server();
        self.with(|state| {
            state.voice.with(|voice| voice.end_call(channel));
            state.allocate_voice_server(channel, server);
        });
    }

    /// The voice server of a call goes away, and there is no other yet.
    pub fn lose_voice_server(&self, channel: Id) {
        self.with(|state| state.lose_voice_server(channel));
    }

    /// A call without a voice server gets a new one.
    pub fn allocate_voice_server(&self, channel: Id) {
        let server = self.voice.add_server();
        self.with(|state| state.allocate_voice_server(channel, server));
    }

    /// Waits until the bot is in a call, with a session description.
    pub async fn bot_called(&self, channel: Id) {
        let bot = self.bot();
        self.voice.until("the bot's call", |voice| voice.members(channel).contains(&bot).then_some(())).await;
    }
}

impl State {
    fn enter(&mut self, person: Id, channel: Id) {
        let target = &self.world.channels[&channel];
        let guild = target.guild.expect("a channel of a guild");
        if let Err(reason) = self.world.may_join(target, person) {
            panic!("{person} may not join {}: {reason}", target.name);
        }
        let before = self.world.voice_states.get(&(guild, person)).map(|before| before.session.clone());
        let session = before.unwrap_or_else(|| format!("voice-{}", self.world.new_id()));
        self.join_voice(guild, Seat { channel, user: person }, session, |_| {});
    }
}
