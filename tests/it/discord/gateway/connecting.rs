//! How a connection begins.

use tertulia::ports::gateway::Gateway as _;

use super::super::client::{Client, Notepad, rules};
use super::super::counterpart::{Counterpart, Intents, Rules};
use super::super::home::Home;
use super::Scene;

#[tokio::test]
async fn a_client_identifies_and_receives_messages() {
    let Home { discord, guild, general, ana, .. } = Home::with_rules(rules()).await;
    let notes = Notepad::new();
    let client = Client::connected(&discord, &notes).await;
    client.inbox.until_kind("GUILD_CREATE", 1).await;
    discord.say(ana, general, "Hello?");
    client.inbox.until_text("Hello?").await;

    let events = client.inbox.events();
    assert_eq!(events[0].kind, "READY");
    assert_eq!(events[0].data["guilds"][0]["id"], guild.to_string());
    assert_eq!(client.gateway.condition().detail, "1 of 1 connection");
    assert!(client.gateway.condition().ready);
    assert_eq!(client.total("tertulia_discord_identifies_total", &[("discord_gateway_outcome", "established")]), 1.0);
    assert_eq!(client.total("tertulia_discord_dispatches_total", &[("discord_gateway_event", "MESSAGE_CREATE")]), 1.0);
    assert_eq!(client.total("tertulia_discord_connections", &[("discord_gateway_state", "connected")]), 1.0);
    let session = notes.until_session(0, |session| session["accepted"] == 3).await;
    assert_eq!(session["shards"], 1);
    assert!(discord.look(|state| state.journal.connections[0].compresses));
}

#[tokio::test]
async fn a_client_requests_only_the_intents_that_it_needs() {
    let Scene { home: Home { discord, .. }, client: _client } = Scene::new().await;

    let requested = discord.look(|state| state.gateway.sessions.values().next().expect("a session").intents);
    let expected = Intents::GUILDS
        | Intents::GUILD_MESSAGES
        | Intents::GUILD_VOICE_STATES
        | Intents::DIRECT_MESSAGES
        | Intents::MESSAGE_CONTENT
        | Intents::GUILD_WEBHOOKS
        | Intents::GUILD_EMOJIS_AND_STICKERS;
    assert_eq!(requested, expected);
}

#[tokio::test]
async fn there_are_as_many_connections_as_discord_recommends() {
    let discord = Counterpart::with_rules(Rules { recommended_shards: Some(3), max_concurrency: 16, ..rules() }).await;
    let client = Client::connected(&discord, &Notepad::new()).await;
    discord.sessions(3).await;
    let events = client.inbox.until(|events| events.iter().filter(|event| event.kind == "READY").count() == 3).await;

    assert!(events.iter().filter(|event| event.kind == "READY").all(|event| event.data["shard"][0] == event.shard));
    assert_eq!(client.gateway.condition().detail, "3 of 3 connections");
}

#[tokio::test]
async fn there_are_as_many_connections_as_the_settings_say() {
    let rules = Rules { max_concurrency: 16, ..rules() };
    let scene = Scene::with(rules, |options| options.section.shards = std::num::NonZeroU32::new(2)).await;

    scene.home.discord.sessions(2).await;
}

#[tokio::test]
async fn the_presence_is_the_one_in_the_settings() {
    let scene = Scene::with(rules(), |options| options.section.presence = Some("/tertulia help".to_owned())).await;

    let presence = scene.home.discord.look(|state| state.journal.identifies[0].presence.clone());
    assert_eq!(presence["activities"][0]["state"], "/tertulia help");
    assert_eq!((&presence["activities"][0]["type"], &presence["status"]), (&4.into(), &"online".into()));
}

#[tokio::test]
async fn the_gateway_url_in_the_settings_is_used() {
    let (discord, proxy) = (Counterpart::with_rules(rules()).await, Counterpart::with_rules(rules()).await);
    // Both servers accept the same token.
    let url = proxy.gateway_url();
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.section.gateway_url = Some(url));

    client.connect().await;
    proxy.sessions(1).await;

    assert_eq!(discord.look(|state| state.journal.connections.len()), 0);
}
