//! Tracks the people in one guild's voice channels, and decides the target channel: the one that the bot should be in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::snowflake::Snowflake;
use super::super::wire::{VoiceServer, VoiceState};

/// How long the bot stays alone in a call.
pub const ALONE_FOR: Duration = Duration::from_secs(60);
/// Discord reports the bot's new channel and its voice server at about the same time, in either order. A server that was reported earlier than this
/// belongs to the previous channel.
const TOLD_TOGETHER_WITHIN: Duration = Duration::from_secs(1);

/// The voice channels of one guild.
#[derive(Debug, Default)]
pub struct GuildVoice {
    /// The people, without bots.
    people: BTreeMap<Snowflake, Present>,
    /// Whether Discord has sent all voice states of the guild. If a new process resumes a session, Discord sends only changes.
    is_reported: bool,
    /// The bot's own voice state: its channel and its session.
    own: Option<Own>,
    /// The newest voice server. The time is set unless it is the first server since the bot entered its channel.
    server: Option<(VoiceServer, Option<Instant>)>,
    /// The target channel.
    wanted: Option<Wanted>,
    /// A channel that the bot was sent out of. The bot does not enter it by itself until all people have left it.
    dismissed: Option<Snowflake>,
    /// When the bot became alone in the target channel.
    alone_since: Option<Instant>,
}

/// A person in a voice channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    pub channel: Snowflake,
    pub name: Arc<str>,
    /// The roles, if Discord has sent them.
    pub roles: Option<Arc<[Snowflake]>>,
    /// Whether the person's audio is off: muted by the person or a moderator, or suppressed in the audience of a stage.
    pub is_muted: bool,
}

/// The bot's own voice state.
#[derive(Clone, Debug)]
struct Own {
    channel: Snowflake,
    session: secrecy::SecretString,
    silence: Silence,
}

/// Reasons why the bot cannot be heard in a call, or cannot hear. Companions then answer in writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// The bot may not speak: it is in the audience of a stage, or lacks the permission.
    pub is_suppressed: bool,
    /// A moderator muted the bot.
    pub is_muted: bool,
    /// A moderator deafened the bot.
    pub is_deafened: bool,
}

impl Silence {
    const fn of(state: &VoiceState) -> Self {
        Self { is_suppressed: state.suppress, is_muted: state.mute, is_deafened: state.deaf }
    }

    /// Whether any of the reasons applies.
    pub const fn is_any(self) -> bool {
        self.is_suppressed || self.is_muted || self.is_deafened
    }
}

/// The target channel and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub channel: Snowflake,
    pub by: By,
}

/// Why a channel is the target channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A user asked for it.
    Command,
    /// The settings name the channel, and a person is in it.
    Setting,
}

/// How far the bot is let into the call of the target channel.
#[derive(Clone, Debug)]
pub enum Way {
    /// The bot can connect.
    Open(Admitted),
    /// The bot is in the channel. Discord has not yet named the voice server.
    Soon,
    /// The voice server is gone. Discord will name another one.
    Gone,
    /// The bot is not known to be in the channel.
    Closed,
}

/// The credentials and the address for a connection to a call.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub channel: Snowflake,
    pub session: secrecy::SecretString,
    pub token: secrecy::SecretString,
    pub endpoint: String,
}

impl GuildVoice {
    /// Applies one voice state: a user entered, changed or left. `is_automatic` selects the channels that the bot enters by itself.
    pub fn update(&mut self, state: &VoiceState, bot: Option<Snowflake>, is_automatic: impl Fn(Snowflake) -> bool, now: Instant) {
        self.apply_state(state, bot, now);
        self.settle(is_automatic, now);
    }

    fn apply_state(&mut self, state: &VoiceState, bot: Option<Snowflake>, now: Instant) {
        if Some(state.user_id) == bot {
            self.update_own(state, now);
        } else {
            let before = self.channel_of(state.user_id);
            let is_bot = state.member.user.as_ref().is_some_and(|user| user.bot == Some(true));
            match state.channel_id.filter(|_| !is_bot) {
                Some(channel) => {
                    let user = state.member.user.as_ref();
                    let before = self.people.get(&state.user_id);
                    let roles = state.member.roles.clone().or_else(|| before?.roles.clone());
                    let name = user
                        .map(|user| Arc::from(user.shown(state.member.nick.as_deref())))
                        .or_else(|| Some(before?.name.clone()));
                    let name = name.unwrap_or_else(|| super::super::names::shown([], state.user_id).into());
                    self.people.insert(state.user_id, Present { channel, name, roles, is_muted: state.is_muted() });
                }
                None => drop(self.people.remove(&state.user_id)),
            }
            if before.is_some() && before == self.dismissed {
                self.end_dismissal();
            }
        }
    }

    fn update_own(&mut self, state: &VoiceState, now: Instant) {
        let before = self.own.take();
        let Some(channel) = state.channel_id else {
            // A moderator disconnected the bot, or the bot left.
            self.server = None;
            if before.is_some_and(|before| self.wanted.is_some_and(|wanted| wanted.channel == before.channel)) {
                self.leave();
            }
            return;
        };
        if let Some(before) = before.filter(|before| before.channel != channel) {
            self.moved(before.channel, channel, now);
        }
        self.own = Some(Own { channel, session: state.session_id.clone(), silence: Silence::of(state) });
    }

    /// Handles a move of the bot by a moderator. If it was in the target channel, the new channel becomes the target.
    fn moved(&mut self, before: Snowflake, channel: Snowflake, now: Instant) {
        if let Some(wanted) = self.wanted.as_mut().filter(|wanted| wanted.channel == before) {
            wanted.channel = channel;
        }
        // The first server of the previous channel is useless here. A later server may belong to the new channel, because Discord may name it
        // before the move.
        let is_new = |told_at: Instant| now.saturating_duration_since(told_at) < TOLD_TOGETHER_WITHIN;
        let server = self.server.take().filter(|(_, told_at)| told_at.is_some_and(is_new));
        self.server = server.map(|(server, _)| (server, None));
    }

    /// Applies a new voice server. One without an endpoint is gone.
    pub fn update_server(&mut self, server: VoiceServer, now: Instant) {
        let is_later = self.own.is_some() && self.server.is_some();
        self.server = Some((server, is_later.then_some(now)));
    }

    /// Replaces all voice states, after a new session or when the guild became available again.
    pub fn replace(
        &mut self,
        states: &[VoiceState],
        bot: Option<Snowflake>,
        is_automatic: impl Fn(Snowflake) -> bool,
        now: Instant,
    ) {
        self.is_reported = true;
        let present: BTreeSet<_> = states.iter().map(|state| state.user_id).collect();
        self.people.retain(|user, _| present.contains(user));
        let own_state = states.iter().find(|state| Some(state.user_id) == bot);
        let own = own_state.and_then(|state| state.channel_id);
        if let Some(before) = self.own.take_if(|before| Some(before.channel) != own) {
            // The voice connection was lost together with the gateway session. The target stays, or becomes the channel that a moderator moved the
            // bot to.
            own.into_iter().for_each(|channel| self.moved(before.channel, channel, now));
            self.server = None;
        }
        if let Some((own, state)) = self.own.as_mut().zip(own_state) {
            own.silence = Silence::of(state);
        }
        // Discord does not name the voice server again if the bot was already in the channel. The bot rejoins to get it.
        for state in states.iter().filter(|state| Some(state.user_id) != bot) {
            self.apply_state(state, bot, now);
        }
        self.end_dismissal();
        self.settle(is_automatic, now);
    }

    /// Removes a deleted voice channel.
    pub fn remove_channel(&mut self, channel: Snowflake) {
        self.people.retain(|_, present| present.channel != channel);
        self.dismissed = self.dismissed.filter(|dismissed| *dismissed != channel);
        self.wanted = self.wanted.filter(|wanted| wanted.channel != channel);
    }

    /// Makes a channel the target, on a user's command.
    pub fn join(&mut self, channel: Snowflake, now: Instant) {
        self.wanted = Some(Wanted { channel, by: By::Command });
        self.alone_since = None;
        self.settle(|_| false, now);
    }

    /// Removes the target. The bot enters that channel by itself only after all people have left it.
    pub fn leave(&mut self) {
        self.dismissed = self.wanted.take().map(|wanted| wanted.channel).or(self.dismissed);
        self.end_dismissal();
    }

    /// Ends the dismissal from a channel once it is empty.
    fn end_dismissal(&mut self) {
        self.dismissed = self.dismissed.filter(|dismissed| self.people(*dismissed).next().is_some());
    }

    /// Removes the target without a dismissal. The bot may enter the channel again at any time.
    pub fn give_up(&mut self) {
        self.wanted = None;
    }

    /// Checks again whether the bot should enter a channel by itself.
    pub fn look_again(&mut self, is_automatic: impl Fn(Snowflake) -> bool, now: Instant) {
        // After a restart, voice states are unknown until Discord sends them.
        if !self.people.is_empty() {
            self.settle(is_automatic, now);
        }
    }

    /// The target channel, and the channel that the bot was dismissed from.
    pub const fn wanted_and_dismissed(&self) -> (Option<Wanted>, Option<Snowflake>) {
        (self.wanted, self.dismissed)
    }

    /// Restores the state of the previous process: the channel that a user asked the bot into, the channel that it entered by itself, and the one
    /// that it was dismissed from. The people in the channels may still be unknown.
    pub fn restore(&mut self, asked: Option<Snowflake>, entered: Option<Snowflake>, dismissed: Option<Snowflake>, now: Instant) {
        if self.wanted.is_none() && self.dismissed.is_none() {
            self.dismissed = dismissed;
            let asked = asked.map(|channel| Wanted { channel, by: By::Command });
            self.wanted = asked.or(entered.map(|channel| Wanted { channel, by: By::Setting }));
            let is_alone = self.wanted.is_some_and(|wanted| self.people(wanted.channel).next().is_none());
            self.alone_since = is_alone.then_some(now);
        }
    }

    /// The target channel. Removes it first if the bot has been alone there for [`ALONE_FOR`].
    pub fn wanted(&mut self, now: Instant) -> Option<Wanted> {
        if self.alone_until().is_some_and(|until| until <= now) {
            self.wanted = None;
            self.alone_since = None;
        }
        self.wanted
    }

    /// When the bot leaves unless a person enters.
    pub fn alone_until(&self) -> Option<Instant> {
        self.wanted.and(self.alone_since).map(|since| since + ALONE_FOR)
    }

    /// How far the bot is let into the call of the target channel.
    pub fn way(&self) -> Way {
        let Some(own) = self.own.as_ref().filter(|own| self.wanted.is_some_and(|wanted| wanted.channel == own.channel)) else {
            return Way::Closed;
        };
        let Some((server, _)) = &self.server else { return Way::Soon };
        let Some(endpoint) = server.endpoint.clone() else { return Way::Gone };
        let (session, token) = (own.session.clone(), server.token.clone());
        Way::Open(Admitted { channel: own.channel, session, token, endpoint })
    }

    /// Discards the voice session of the call.
    pub fn forget_session(&mut self) {
        (self.own, self.server) = (None, None);
    }

    /// The bot's channel, and the reasons why it cannot be heard or cannot hear there.
    pub fn place(&self) -> Option<(Snowflake, Silence)> {
        self.own.as_ref().map(|own| (own.channel, own.silence))
    }

    /// The people in a channel, without bots.
    pub fn people(&self, channel: Snowflake) -> impl Iterator<Item = (Snowflake, &Present)> {
        self.people.iter().filter(move |(_, present)| present.channel == channel).map(|(user, present)| (*user, present))
    }

    /// Whether Discord has sent all voice states of the guild.
    pub const fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// The voice channel that a user is in.
    pub fn channel_of(&self, user: Snowflake) -> Option<Snowflake> {
        self.people.get(&user).map(|present| present.channel)
    }

    /// A user's roles, if Discord has sent them.
    pub fn roles_of(&self, user: Snowflake) -> Option<Arc<[Snowflake]>> {
        self.people.get(&user)?.roles.clone()
    }

    /// Chooses a target channel if there is none, and updates since when the bot is alone.
    fn settle(&mut self, is_automatic: impl Fn(Snowflake) -> bool, now: Instant) {
        if self.wanted.is_none() {
            let is_wanted = |channel: &Snowflake| Some(*channel) != self.dismissed && is_automatic(*channel);
            let channel = self.people.values().map(|present| present.channel).find(is_wanted);
            self.wanted = channel.map(|channel| Wanted { channel, by: By::Setting });
        }
        let is_alone = self.wanted.is_some_and(|wanted| self.people(wanted.channel).next().is_none());
        self.alone_since = is_alone.then(|| self.alone_since.unwrap_or(now));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOT: u64 = 9;
    const HARBOUR: u64 = 1;
    const ATTIC: u64 = 2;

    fn id(number: u64) -> Snowflake {
        Snowflake::new(number).unwrap()
    }

    /// A voice state. Channel 0: none.
    fn state(user: u64, channel: u64) -> VoiceState {
        let channel = Some(channel).filter(|channel| *channel > 0).map(|channel| channel.to_string());
        let state = json!({ "guild_id": "5", "user_id": user.to_string(), "channel_id": channel, "session_id": "s",
            "member": { "nick": format!("user {user}"), "user": { "id": user.to_string(), "bot": user > 100 } } });
        serde_json::from_str(&state.to_string()).unwrap()
    }

    #[test]
    fn roles_are_those_of_the_newest_voice_state_that_has_some() {
        let mut voice = GuildVoice::default();
        let mut enters = |roles: serde_json::Value| {
            let member = json!({ "user": { "id": "1" }, "roles": roles });
            let state = json!({ "guild_id": "5", "user_id": "1", "channel_id": "2", "session_id": "s", "member": member });
            voice.update(&serde_json::from_str(&state.to_string()).unwrap(), Some(id(BOT)), |_| false, Instant::now());
            voice.roles_of(id(1)).map(|roles| roles.to_vec())
        };

        assert_eq!(enters(json!(null)), None);
        assert_eq!(enters(json!(["7"])), Some(vec![id(7)]));
        assert_eq!(enters(json!(null)), Some(vec![id(7)]));
        assert_eq!(enters(json!([])), Some(vec![]));
    }

    /// A guild in which the bot enters the harbour by itself.
    struct Home(GuildVoice, Instant);

    impl Home {
        fn new() -> Self {
            Self(GuildVoice::default(), Instant::now())
        }

        fn moves(&mut self, user: u64, channel: u64) -> &mut Self {
            self.0.update(&state(user, channel), Some(id(BOT)), |channel| channel == id(HARBOUR), self.1);
            self
        }

        fn wanted(&mut self) -> Option<u64> {
            self.0.wanted(self.1).map(|wanted| wanted.channel.get())
        }

        fn wait(&mut self, secs: u64) -> &mut Self {
            self.1 += Duration::from_secs(secs);
            self
        }
    }

    #[test]
    fn people_in_a_channel_of_the_settings_call_the_bot_and_bots_do_not() {
        let mut home = Home::new();
        assert_eq!(home.moves(101, HARBOUR).wanted(), None, "a bot");
        assert_eq!(home.moves(3, ATTIC).wanted(), None, "another channel");
        assert_eq!(home.moves(4, HARBOUR).wanted(), Some(HARBOUR));
        let people: Vec<_> = home.0.people(id(HARBOUR)).map(|(user, present)| (user.get(), &*present.name)).collect();
        assert_eq!(people, [(4, "user 4")]);
    }

    #[test]
    fn the_bot_leaves_after_a_minute_alone_and_stays_if_somebody_comes_back() {
        let mut home = Home::new();
        home.moves(4, HARBOUR).moves(4, 0);
        assert_eq!(home.wait(59).wanted(), Some(HARBOUR));
        assert_eq!(home.moves(4, HARBOUR).wait(60).wanted(), Some(HARBOUR));
        assert_eq!(home.moves(4, 0).wait(60).wanted(), None);
        assert_eq!(home.moves(4, HARBOUR).wanted(), Some(HARBOUR), "it is called again");
    }

    #[test]
    fn whoever_sent_the_bot_out_is_obeyed_after_a_restart_too() {
        let mut home = Home::new();
        home.0.restore(None, None, Some(id(HARBOUR)), home.1);
        let people = [state(3, ATTIC), state(4, HARBOUR)];
        home.0.replace(&people, Some(id(BOT)), |channel| channel == id(HARBOUR), home.1);
        assert_eq!(home.wanted(), None);
        assert_eq!(home.0.wanted_and_dismissed(), (None, Some(id(HARBOUR))));
        // A session that was resumed tells only who moves.
        let mut resumed = Home::new();
        resumed.0.restore(None, None, Some(id(HARBOUR)), resumed.1);
        assert_eq!(resumed.moves(3, ATTIC).moves(4, HARBOUR).wanted(), None);
        assert_eq!((home.0.is_reported(), resumed.0.is_reported()), (true, false));
        assert_eq!(home.moves(4, 0).moves(4, HARBOUR).wanted(), Some(HARBOUR));

        for (asked, entered, by) in [(Some(id(ATTIC)), None, By::Command), (None, Some(id(ATTIC)), By::Setting)] {
            let mut back = Home::new();
            back.0.restore(asked, entered, None, back.1);
            assert_eq!(back.moves(3, ATTIC).wait(60).wanted(), Some(ATTIC));
            assert_eq!(back.0.wanted_and_dismissed(), (Some(Wanted { channel: id(ATTIC), by }), None));
        }
    }

    #[test]
    fn the_bot_looks_again_once_it_may_enter() {
        let mut home = Home::new();
        home.moves(4, HARBOUR).0.give_up();
        assert_eq!(home.wanted(), None);
        home.0.look_again(|channel| channel == id(HARBOUR), home.1);
        assert_eq!(home.wanted(), Some(HARBOUR));
    }

    #[test]
    fn a_moderator_keeps_the_bot_out_until_everybody_has_left_and_takes_it_along() {
        let mut home = Home::new();
        home.moves(4, HARBOUR).moves(BOT, HARBOUR).moves(BOT, 0);
        assert_eq!(home.moves(5, HARBOUR).wanted(), None, "disconnected");
        assert_eq!(home.moves(4, 0).moves(5, 0).moves(4, HARBOUR).wanted(), Some(HARBOUR));
        assert_eq!(home.moves(BOT, HARBOUR).moves(BOT, ATTIC).wanted(), Some(ATTIC), "moved");
    }

    /// Names the server of the bot's call.
    fn name_server(home: &mut Home, endpoint: Option<&str>) {
        let server = json!({ "token": "t", "guild_id": "5", "endpoint": endpoint });
        home.0.update_server(serde_json::from_value(server).unwrap(), home.1);
    }

    fn way(home: &Home) -> String {
        match home.0.way() {
            Way::Open(admitted) => format!("{} at {}", admitted.channel, admitted.endpoint),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_connection_needs_our_own_place_in_the_wanted_channel_and_a_server() {
        let mut home = Home::new();
        home.moves(4, HARBOUR);
        assert_eq!(way(&home), "Closed");
        home.moves(BOT, HARBOUR);
        assert_eq!(way(&home), "Soon");
        name_server(&mut home, Some("one"));
        assert_eq!(way(&home), "1 at one");
        name_server(&mut home, None);
        assert_eq!(way(&home), "Gone");
        name_server(&mut home, Some("two"));
        assert_eq!(way(&home), "1 at two");
        home.0.forget_session();
        assert_eq!(way(&home), "Closed");
        assert_eq!(home.moves(BOT, 0).wanted(), Some(HARBOUR), "it was the bot that left, to enter anew");
    }

    #[test]
    fn after_a_move_the_server_before_counts_for_nothing() {
        let mut home = Home::new();
        home.moves(4, HARBOUR).moves(BOT, HARBOUR);
        name_server(&mut home, Some("one"));
        home.moves(BOT, ATTIC);
        assert_eq!(way(&home), "Soon");
        name_server(&mut home, Some("two"));
        assert_eq!(way(&home), "2 at two");

        home.wait(5);
        name_server(&mut home, Some("three"));
        home.moves(BOT, HARBOUR);
        assert_eq!(way(&home), "1 at three", "told before the place");
    }

    #[test]
    fn what_a_moderator_did_to_the_bot_is_known_from_changes_and_from_a_new_session() {
        let mut home = Home::new();
        home.moves(4, HARBOUR).moves(BOT, HARBOUR);
        let with = |field: &str| {
            let mut own =
                json!({ "guild_id": "5", "user_id": BOT.to_string(), "channel_id": HARBOUR.to_string(), "session_id": "s" });
            own[field] = true.into();
            serde_json::from_str::<VoiceState>(&own.to_string()).unwrap()
        };
        let silence = |home: &Home| home.0.place().map(|(_, silence)| silence).unwrap();
        assert!(!silence(&home).is_any());

        home.0.update(&with("mute"), Some(id(BOT)), |_| false, home.1);
        assert_eq!(silence(&home), Silence { is_muted: true, ..Silence::default() });
        home.0.update(&with("self_mute"), Some(id(BOT)), |_| false, home.1);
        assert!(!silence(&home).is_any());
        home.0.replace(&[with("deaf")], Some(id(BOT)), |_| false, home.1);
        assert_eq!(silence(&home), Silence { is_deafened: true, ..Silence::default() });
    }

    #[test]
    fn a_new_session_takes_over_a_place_only_if_it_was_known() {
        let mut home = Home::new();
        let report = |home: &mut Home, states: &[VoiceState]| {
            home.0.replace(states, Some(id(BOT)), |channel| channel == id(HARBOUR), home.1);
            (way(home), home.wanted())
        };
        let with_bot = |channel| [state(4, HARBOUR), state(BOT, channel)];
        assert_eq!(report(&mut home, &with_bot(HARBOUR)), ("Closed".into(), Some(HARBOUR)), "of a process before");
        home.moves(BOT, HARBOUR);
        name_server(&mut home, Some("one"));
        assert_eq!(report(&mut home, &with_bot(HARBOUR)), ("1 at one".into(), Some(HARBOUR)));
        assert_eq!(report(&mut home, &with_bot(ATTIC)), ("Closed".into(), Some(ATTIC)), "moved meanwhile");
        assert_eq!(report(&mut home, &with_bot(HARBOUR)[..1]), ("Closed".into(), Some(ATTIC)));
    }
}
