//! Voice states, and the way from the gateway into a call.

use serde_json::{Value, json};

use super::super::voice::sessions::Seat;
use super::super::voice::tests::client::{Socket as VoiceSocket, identify};
use super::super::voice::{Grant, Person};
use super::super::{Counterpart, Id, Intents, Permissions};
use super::client::{INTENTS, Rest, Socket};
use crate::discord::home::Home;

const VOICE: Intents = INTENTS.union(Intents::GUILD_VOICE_STATES);

async fn ask(socket: &mut Socket, guild: Id, channel: Option<Id>) {
    let data = json!({ "guild_id": guild, "channel_id": channel, "self_mute": false, "self_deaf": false });
    socket.send(&json!({ "op": 4, "d": data })).await;
}

/// What both events tell the bot.
async fn granted(socket: &mut Socket, discord: &Counterpart) -> (Grant, Value) {
    let state = socket.event("VOICE_STATE_UPDATE").await;
    let server = socket.event("VOICE_SERVER_UPDATE").await;
    (grant(discord, &state, &server), server)
}

fn grant(discord: &Counterpart, state: &Value, server: &Value) -> Grant {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    Grant {
        server: 0,
        endpoint: text(&server["endpoint"]),
        guild: Id::read(&server["guild_id"]).expect("an id"),
        seat: Seat { channel: Id::read(&state["channel_id"]).expect("an id"), user: discord.bot() },
        session: text(&state["session_id"]),
        token: text(&server["token"]),
    }
}

/// The close code of an IDENTIFY that is refused.
async fn refused(grant: &Grant) -> Option<u16> {
    let mut socket = VoiceSocket::open(&grant.endpoint).await;
    socket.send(0, identify(grant)).await;
    socket.closed().await
}

#[tokio::test]
async fn the_bot_joins_a_call_and_leaves_it() {
    let Home { discord, guild, ana, bot, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    let (mut socket, ready) = Socket::ready(&discord, VOICE).await;
    let ana = discord.call(ana, channel).await;
    socket.event("VOICE_STATE_UPDATE").await;

    ask(&mut socket, guild, Some(channel)).await;
    let (grant, server) = granted(&mut socket, &discord).await;

    assert_eq!((json!(grant.session), &server["guild_id"]), (ready["session_id"].clone(), &json!(guild)));
    let own = Person::join(grant, 1).await;
    discord.bot_called(channel).await;
    for person in [&own, &ana] {
        person.grouped(2).await;
    }
    ana.say(&[vec![1; 30], vec![2; 30]]).await;
    own.say(&[vec![3; 30]]).await;
    assert_eq!(own.heard_from(ana.seat.user, 2).await[1].frame, [2; 30]);
    assert_eq!(ana.heard_from(bot, 1).await[0].frame, [3; 30]);
    ask(&mut socket, guild, None).await;
    let left = socket.event("VOICE_STATE_UPDATE").await;
    assert_eq!((&left["user_id"], &left["channel_id"]), (&json!(bot), &Value::Null));
    own.until("the end", |noted| (noted.closed == Some(Some(4014))).then_some(())).await;
    discord.hang_up(guild, ana).await;
    discord.voice().members(channel, 0).await;
}

#[tokio::test]
async fn people_in_voice_channels_are_shown_with_the_intent_alone() {
    let Home { discord, guild, ana, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    discord.enter(ana, channel);
    let (mut seeing, _) = Socket::ready(&discord, VOICE).await;
    discord.with(|state| state.gateway.keys.clear());
    let (mut blind, _) = Socket::ready(&discord, INTENTS).await;

    let created = seeing.event("GUILD_CREATE").await;
    let shown = &created["voice_states"][0];
    assert_eq!((&shown["user_id"], &shown["channel_id"], &shown["guild_id"]), (&json!(ana), &json!(channel), &Value::Null));
    assert_eq!(created["channels"][1]["user_limit"], 0);
    assert_eq!(blind.event("GUILD_CREATE").await["voice_states"], json!([]));

    discord.mute_self(guild, ana, true);
    discord.mute(guild, ana, true);
    discord.deafen(guild, ana, true);
    discord.disconnect(guild, ana);
    let general = discord.channel(guild, "other");
    let here = json!(channel);
    let expected =
        [(true, false, false, &here), (true, true, false, &here), (true, true, true, &here), (true, true, true, &Value::Null)];
    for (self_mute, mute, deaf, place) in expected {
        let update = seeing.event("VOICE_STATE_UPDATE").await;
        assert_eq!((&update["self_mute"], &update["mute"]), (&json!(self_mute), &json!(mute)));
        assert_eq!((&update["deaf"], &update["channel_id"]), (&json!(deaf), place));
        assert_eq!((&update["member"]["user"]["id"], &update["guild_id"]), (&json!(ana), &json!(guild)));
    }
    assert_eq!(blind.op().await["d"]["id"], json!(general), "nothing came before");
}

#[tokio::test]
async fn a_request_that_is_not_permitted_gets_no_answer() {
    let Home { discord, guild, general, ana, bot } = Home::new().await;
    let [closed, full] = ["closed", "full"].map(|name| discord.voice_channel(guild, name));
    discord.deny(closed, bot, Permissions::CONNECT);
    discord.limit_users(full, 1);
    discord.enter(ana, full);
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    socket.event("GUILD_CREATE").await;

    for channel in [general, closed, full, Id(5)] {
        ask(&mut socket, guild, Some(channel)).await;
    }
    discord.wait_for("the refusals", |state| state.journal.refused_voice.len() == 4).await;
    discord.say(ana, general, "nothing came before");

    assert_eq!(socket.op().await["t"], "MESSAGE_CREATE");
    let mover = discord.role(guild, "Movers", Permissions::MOVE_MEMBERS);
    discord.give_role(guild, bot, mover);
    ask(&mut socket, guild, Some(full)).await;
    granted(&mut socket, &discord).await;
    socket.send(&json!({ "op": 4, "d": { "guild_id": guild } })).await;
    assert_eq!(socket.closed().await, Some(4001));
}

#[tokio::test]
async fn without_the_permission_to_speak_nothing_is_heard() {
    let Home { discord, guild, ana, bot, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    discord.deny(channel, bot, Permissions::SPEAK);
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    ask(&mut socket, guild, Some(channel)).await;
    let state = socket.event("VOICE_STATE_UPDATE").await;
    assert_eq!(state["suppress"], json!(true));
    let server = socket.event("VOICE_SERVER_UPDATE").await;
    let own = Person::join(grant(&discord, &state, &server), 1).await;
    let ana = discord.call(ana, channel).await;
    for person in [&own, &ana] {
        person.grouped(2).await;
    }

    own.say(&[vec![3; 30]]).await;
    discord.voice().until("the frame", |voice| (voice.counts.get(&own.seat)?.received == 1).then_some(())).await;
    ana.say(&[vec![4; 30]]).await;

    own.heard_from(ana.seat.user, 1).await;
    assert_eq!(ana.heard().len(), 0);
}

#[tokio::test]
async fn the_bot_is_moved_and_disconnected() {
    let Home { discord, guild, bot, .. } = Home::new().await;
    let [first, second] = ["first", "second"].map(|name| discord.voice_channel(guild, name));
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    ask(&mut socket, guild, Some(first)).await;
    let (old, _) = granted(&mut socket, &discord).await;
    let own = Person::join(old.clone(), 1).await;

    discord.move_bot(guild, second);

    own.until("the end", |noted| (noted.closed == Some(Some(4014))).then_some(())).await;
    let (new, _) = granted(&mut socket, &discord).await;
    assert_eq!((new.seat.channel, refused(&old).await), (second, Some(4006)));
    let own = Person::join(new, 1).await;
    discord.disconnect(guild, bot);
    own.until("the end", |noted| (noted.closed == Some(Some(4014))).then_some(())).await;
    assert_eq!(socket.event("VOICE_STATE_UPDATE").await["channel_id"], Value::Null);
}

#[tokio::test]
async fn a_call_moves_to_another_server() {
    let Home { discord, guild, ana, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    ask(&mut socket, guild, Some(channel)).await;
    let (old, first) = granted(&mut socket, &discord).await;
    let own = Person::join(old.clone(), 1).await;

    discord.move_voice_server(channel);

    own.until("the end", |noted| (noted.closed == Some(Some(4022))).then_some(())).await;
    let second = socket.event("VOICE_SERVER_UPDATE").await;
    assert_ne!((&first["endpoint"], &first["token"]), (&second["endpoint"], &second["token"]));
    assert_eq!(refused(&old).await, Some(4006));
    let moved = |server: &Value| Grant {
        endpoint: server["endpoint"].as_str().expect("text").to_owned(),
        token: server["token"].as_str().expect("text").to_owned(),
        ..old.clone()
    };
    assert_eq!(refused(&Grant { endpoint: old.endpoint.clone(), ..moved(&second) }).await, Some(4011));
    let own = Person::join(moved(&second), 1).await;
    discord.lose_voice_server(channel);
    own.until("the end", |noted| (noted.closed == Some(Some(4022))).then_some(())).await;
    assert_eq!(socket.event("VOICE_SERVER_UPDATE").await["endpoint"], Value::Null);
    discord.allocate_voice_server(channel);
    let own = Person::join(moved(&socket.event("VOICE_SERVER_UPDATE").await), 1).await;
    let ana = discord.call(ana, channel).await;
    own.grouped(2).await;
    drop(ana);
}

#[tokio::test]
async fn asking_again_gives_a_new_token_only_without_a_connection() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    ask(&mut socket, guild, Some(channel)).await;
    let (grant, _) = granted(&mut socket, &discord).await;
    let _own = Person::join(grant, 1).await;

    ask(&mut socket, guild, Some(channel)).await;
    socket.event("VOICE_STATE_UPDATE").await;
    discord.say(ana, general, "no server came");
    assert_eq!(socket.op().await["t"], "MESSAGE_CREATE");
    discord.voice().close(channel, discord.bot(), 4006, "Session no longer valid.");
    ask(&mut socket, guild, Some(channel)).await;

    let (grant, _) = granted(&mut socket, &discord).await;
    Person::join(grant, 1).await;
}

#[tokio::test]
async fn a_lost_session_of_the_gateway_ends_its_call() {
    let Home { discord, guild, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    ask(&mut socket, guild, Some(channel)).await;
    let (grant, _) = granted(&mut socket, &discord).await;
    let own = Person::join(grant, 1).await;

    socket.close(1000).await;

    own.until("the end", |noted| (noted.closed == Some(Some(4014))).then_some(())).await;
    assert!(discord.look(|state| state.world.voice_states.is_empty()));
}

#[tokio::test]
async fn a_deleted_channel_ends_its_call() {
    let Home { discord, guild, ana, .. } = Home::new().await;
    let channel = discord.voice_channel(guild, "harbour");
    let (mut socket, _) = Socket::ready(&discord, VOICE).await;
    let call = discord.call(ana, channel).await;
    let rest = Rest::new(&discord);
    let path = format!("/guilds/{guild}/voice-states/{ana}");
    assert_eq!(rest.get(&path).await.body["channel_id"], json!(channel));
    assert_eq!(rest.get(&format!("/guilds/{guild}/voice-states/@me")).await.refusal(), (404, 10065));

    discord.remove_channel(channel);

    call.until("the end", |noted| (noted.closed == Some(Some(4022))).then_some(())).await;
    socket.event("VOICE_STATE_UPDATE").await;
    assert_eq!(socket.event("VOICE_STATE_UPDATE").await["channel_id"], Value::Null);
    socket.event("CHANNEL_DELETE").await;
    assert_eq!(rest.get(&path).await.refusal(), (404, 10065));
}
