//! Users join, change and leave voice channels, and voice servers come and go.
//!
//! <https://docs.discord.com/developers/events/gateway-events#voice>,
//! <https://docs.discord.com/developers/topics/voice-connections#retrieving-voice-server-information>

use serde_json::{Value, json};

use super::super::voice::sessions::{Grant, Seat};
use super::super::voice_states::VoiceState;
use super::super::{Event, Id, Intents, Kind, Permissions, Place, State};

impl State {
    /// A client asks to join, move or leave (op 4). A request that is refused gets no answer.
    pub fn request_voice(&mut self, number: usize, data: &Value) {
        self.journal.voice_states.push(data.clone());
        let guild = Id::read(&data["guild_id"]);
        let channel = Id::read(&data["channel_id"]);
        let (mute, deaf) = (data["self_mute"].as_bool(), data["self_deaf"].as_bool());
        let (Some(guild), Some(mute), Some(deaf)) = (guild, mute, deaf) else {
            return self.close(number, 4001, "Invalid payload for the opcode.");
        };
        let bot = self.world.bot();
        let session = self.gateway.connections.get(&number).and_then(|connection| connection.session.clone());
        let Some(session) = session.filter(|_| self.world.joined().any(|joined| joined.id == guild && !joined.outage)) else {
            return self.journal.refused_voice.push((channel, "the bot is not in the guild"));
        };
        let Some(channel) = channel else { return self.leave_voice(guild, bot, 4014) };
        let allowed = match self.world.channels.get(&channel).filter(|channel| channel.guild == Some(guild)) {
            Some(channel) => self.world.may_join(channel, bot),
            None => Err("no channel of the guild"),
        };
        match allowed {
            Ok(()) => {
                self.join_voice(guild, Seat { channel, user: bot }, session, |state| {
                    (state.self_mute, state.self_deaf) = (mute, deaf);
                });
            }
            Err(reason) => self.journal.refused_voice.push((Some(channel), reason)),
        }
    }

    /// Puts a user into a voice channel. The bot is told its voice server, unless it is connected there already.
    pub fn join_voice(&mut self, guild: Id, seat: Seat, session: String, change: impl FnOnce(&mut VoiceState)) {
        let before = self.world.voice_states.get(&(guild, seat.user)).cloned();
        let stays = before.as_ref().is_some_and(|before| before.channel == seat.channel && before.session == session);
        let Seat { channel, user } = seat;
        let target = &self.world.channels[&channel];
        let suppress = target.kind == Kind::Stage || !self.world.permissions(target, user).contains(Permissions::SPEAK);
        let (mute, deaf) = before.as_ref().map_or((false, false), |before| (before.mute, before.deaf));
        let mut state = VoiceState { guild, channel, user, session, self_mute: false, self_deaf: false, mute, deaf, suppress };
        change(&mut state);
        if let Some(before) = before.filter(|_| !stays) {
            self.voice.with(|voice| voice.disconnect(before.seat(), 4014, "Disconnected."));
        }
        let connected = self.voice.look(|voice| voice.sessions.contains_key(&seat));
        let is_bot = user == self.world.bot();
        let tells_server = is_bot && !(stays && connected);
        if tells_server && self.rules.voice.server_update_first {
            self.tell_voice_server(&state);
            self.put_voice_state(state);
        } else {
            self.put_voice_state(state.clone());
            if tells_server {
                self.tell_voice_server(&state);
            }
        }
    }

    /// Changes a voice state, if there is one.
    pub fn change_voice_state(&mut self, guild: Id, user: Id, change: impl FnOnce(&mut VoiceState)) {
        if let Some(mut state) = self.world.voice_states.get(&(guild, user)).cloned() {
            change(&mut state);
            self.put_voice_state(state);
        }
    }

    fn put_voice_state(&mut self, state: VoiceState) {
        self.voice.with(|voice| {
            voice.set_deafened(state.seat(), state.is_deafened());
        });
        let (guild, data) = (state.guild, state.json(&self.world));
        self.world.voice_states.insert((guild, state.user), state);
        self.send_voice_state(guild, data);
    }

    fn send_voice_state(&mut self, guild: Id, data: Value) {
        let place = Place::Guild(guild);
        self.send_event(&Event::new("VOICE_STATE_UPDATE", place, Intents::GUILD_VOICE_STATES, data));
    }

    /// Takes a user out of its voice channel. The voice server closes the connection with this code.
    pub fn leave_voice(&mut self, guild: Id, user: Id, code: u16) {
        let Some(state) = self.world.voice_states.remove(&(guild, user)) else { return };
        self.voice.with(|voice| voice.disconnect(state.seat(), code, "Disconnected."));
        let mut data = state.json(&self.world);
        data["channel_id"] = Value::Null;
        self.send_voice_state(guild, data);
    }

    /// Lets a user join the call of its channel.
    pub fn grant_voice(&mut self, state: &VoiceState) -> Grant {
        self.voice.with(|voice| voice.grant(state.guild, state.seat(), &state.session))
    }

    /// Tells the bot the server of its call, with a new token.
    fn tell_voice_server(&mut self, state: &VoiceState) {
        let grant = self.grant_voice(state);
        let data = json!({ "token": grant.token, "guild_id": state.guild, "endpoint": grant.endpoint });
        self.send_event(&Event::new("VOICE_SERVER_UPDATE", Place::Guild(state.guild), Intents::empty(), data));
    }

    /// The server of a call is gone: its members are disconnected. The bot is told so.
    pub fn lose_voice_server(&mut self, channel: Id) {
        self.voice.with(|voice| voice.end_call(channel));
        if let Some(state) = self.bot_in(channel) {
            let data = json!({ "token": format!("none-{channel}"), "guild_id": state.guild, "endpoint": null });
            self.send_event(&Event::new("VOICE_SERVER_UPDATE", Place::Guild(state.guild), Intents::empty(), data));
        }
    }

    /// A call has a server again. The bot is told which.
    pub fn allocate_voice_server(&mut self, channel: Id, server: usize) {
        self.voice.with(|voice| voice.hosts.insert(channel, server));
        if let Some(state) = self.bot_in(channel) {
            self.tell_voice_server(&state);
        }
    }

    fn bot_in(&self, channel: Id) -> Option<VoiceState> {
        let bot = self.world.bot();
        self.world.voice_states.values().find(|state| state.channel == channel && state.user == bot).cloned()
    }

    /// A voice channel is gone, with everybody in it.
    pub fn end_voice(&mut self, channel: Id) {
        self.voice.with(|voice| voice.end_call(channel));
        let states = self.world.voice_states.values().filter(|state| state.channel == channel);
        for (guild, user) in states.map(|state| (state.guild, state.user)).collect::<Vec<_>>() {
            self.leave_voice(guild, user, 4022);
        }
    }

    /// Ends the voice connections of sessions of the gateway that have ended.
    pub fn end_lost_voice(&mut self) {
        let bot = self.world.bot();
        let lost = |state: &&VoiceState| state.user == bot && !self.gateway.sessions.contains_key(&state.session);
        for guild in self.world.voice_states.values().filter(lost).map(|state| state.guild).collect::<Vec<Id>>() {
            self.leave_voice(guild, bot, 4014);
        }
    }
}
