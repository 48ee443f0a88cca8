//! Commands that are sent over a connection.

use super::super::client::{Client, Notepad, rules};
use super::super::counterpart::Counterpart;
use super::super::home::Home;
use super::Scene;
use serde_json::json;
use tertulia::ports::gateway::{Command, Gateway as _, Unsent};

/// Discord allows 120 payloads a minute on a connection; this many of them may be commands.
const MOST_A_MINUTE: usize = 100;

#[tokio::test]
async fn a_command_reaches_discord_over_the_connection_of_its_guild() {
    let discord = Counterpart::with_rules(rules()).await;
    let guild = discord.guild("Home");
    let voice = discord.channel(guild, "harbour");
    let mut client = Client::new(&discord, &Notepad::new());
    let joins = Command::VoiceState {
        guild: format!("discord:{guild}").as_str().into(),
        channel: Some(format!("discord:{voice}").as_str().into()),
    };
    let too_early = client.gateway.send(joins.clone());
    client.connect().await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;

    client.gateway.send(joins).unwrap();
    discord.wait_for("the command", |state| !state.journal.voice_states.is_empty()).await;

    assert_eq!(too_early, Err(Unsent::NotConnected));
    let expected =
        json!({ "guild_id": guild.to_string(), "channel_id": voice.to_string(), "self_mute": false, "self_deaf": false });
    assert_eq!(discord.look(|state| state.journal.voice_states.clone()), [expected]);
}

#[tokio::test]
async fn commands_over_discords_limit_wait_and_the_connection_stays_open() {
    let Scene { home: Home { discord, guild, general, ana, .. }, client } = Scene::new().await;
    let leaves = Command::VoiceState { guild: format!("discord:{guild}").as_str().into(), channel: None };

    for sent in 1..=MOST_A_MINUTE {
        client.gateway.send(leaves.clone()).unwrap();
        discord.wait_for("a command", |state| state.journal.voice_states.len() >= sent).await;
    }
    let waiting = (0..MOST_A_MINUTE).map_while(|_| client.gateway.send(leaves.clone()).ok()).count();
    discord.ask_for_heartbeat(0);
    discord.say(ana, general, "still there?");
    client.inbox.until_text("still there?").await;

    assert_eq!(client.gateway.send(leaves), Err(Unsent::TooMany), "{waiting} wait");
    assert_eq!(discord.look(|state| state.journal.voice_states.len()), MOST_A_MINUTE);
    assert_eq!(discord.identifies(), 1, "the connection was not closed");
}
