//! Final refusals by Discord, and refusals that the client can work around.

use tertulia::ports::gateway::{Disconnected, Gateway as _};
use tertulia::settings::discord::MessageContent;

use super::super::client::{Client, Notepad, rules};
use super::super::counterpart::{Counterpart, Does, Intents, On};
use super::super::home::Home;
use super::Scene;

#[tokio::test]
async fn a_bad_token_is_reported_before_connecting() {
    let discord = Counterpart::with_rules(rules()).await;
    let client = Client::with(&discord, &Notepad::new(), |options| options.token = "MTA.other.token".to_owned());

    let why = client.gateway.shards().await.unwrap_err();

    let Disconnected::Never(reason) = why else { panic!("{why:?}") };
    assert!(reason.contains("TERTULIA__DISCORD__TOKEN") && !reason.contains("MTA"), "{reason}");
    let condition = client.gateway.condition();
    assert!(!condition.ready && condition.detail.contains(&*reason), "{condition:?}");
    assert_eq!(discord.look(|state| state.journal.connections.len()), 0);
}

#[tokio::test]
async fn a_final_stop_holds_up_the_server_only_if_discord_is_required() {
    for required in [true, false] {
        let Scene { home: Home { discord, .. }, mut client } =
            Scene::with(rules(), |options| options.section.required = required).await;
        let before = client.gateway.condition();

        discord.reset_token();
        let why = client.ended().await;

        assert!(matches!(&why, Disconnected::Never(reason) if reason.contains("Reset Token")), "{why:?}");
        let after = client.gateway.condition();
        assert_eq!((before.blocks_readiness, after.blocks_readiness), (false, required));
        assert!(!after.ready && after.detail.contains("Reset Token"), "{after:?}");
    }
}

#[tokio::test]
async fn an_unavailable_discord_is_asked_later() {
    let discord = Counterpart::with_rules(rules()).await;
    let client = Client::new(&discord, &Notepad::new());
    discord.spoil(On::route("gateway"), Does::Status(503));

    let why = client.gateway.shards().await.unwrap_err();

    assert!(matches!(why, Disconnected::Later { .. }), "{why:?}");
}

#[tokio::test]
async fn errors_that_need_the_operator_stop_the_client_with_a_remedy() {
    for (code, remedy) in
        [(4_010, "discord.shards"), (4_011, "discord.shards"), (4_012, "newer tertulia"), (4_013, "newer tertulia")]
    {
        let Scene { home: Home { discord, .. }, mut client } = Scene::new().await;

        discord.close(0, code, "");

        let why = client.ended().await;
        assert!(matches!(&why, Disconnected::Never(reason) if reason.contains(remedy)), "{code}: {why:?}");
    }
}

#[tokio::test]
async fn without_the_content_intent_the_client_connects_and_reports_what_does_not_work() {
    let discord = Counterpart::with_rules(rules()).await;
    discord.set_privileged(Intents::empty());
    let client = Client::connected(&discord, &Notepad::new()).await;
    client.inbox.until_kind("READY", 1).await;

    assert!(!requested_intents(&discord).contains(Intents::MESSAGE_CONTENT));
    let condition = client.gateway.condition();
    assert!(condition.ready, "{condition:?}");
    assert!(condition.detail.contains("Message Content intent is not enabled"), "{condition:?}");
    assert_eq!(discord.identifies(), 1);
    assert_eq!(client.platform.reads_all(), Some(false));
}

#[tokio::test]
async fn an_intent_that_is_refused_while_connecting_is_dropped() {
    let discord = Counterpart::with_rules(rules()).await;
    let mut client = Client::new(&discord, &Notepad::new());
    client.gateway.shards().await.expect("a number");
    // The application reported the intent as enabled. Then the intent is switched off.
    discord.set_privileged(Intents::empty());

    client.start_connection(0, 1);
    client.inbox.until_kind("READY", 1).await;

    assert!(!requested_intents(&discord).contains(Intents::MESSAGE_CONTENT));
    assert!(client.gateway.condition().detail.contains("mentions the bot"), "{:?}", client.gateway.condition());
    assert_eq!(discord.look(|state| state.journal.closed_here()), [(4_014, "Disallowed intent(s).".to_owned())]);
    assert_eq!(client.platform.reads_all(), Some(false));
}

#[tokio::test]
async fn a_required_intent_that_is_refused_stops_the_client() {
    let discord = Counterpart::with_rules(rules()).await;
    discord.set_privileged(Intents::empty());
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.section.message_content = MessageContent::On);

    client.connect().await;

    let why = client.ended().await;
    assert!(matches!(&why, Disconnected::Never(reason) if reason.contains("discord.message_content = \"off\"")), "{why:?}");
}

#[tokio::test]
async fn an_intent_that_is_switched_off_is_not_requested() {
    let Scene { home: Home { discord, .. }, client } =
        Scene::with(rules(), |options| options.section.message_content = MessageContent::Off).await;

    assert!(!requested_intents(&discord).contains(Intents::MESSAGE_CONTENT));
    assert_eq!(client.gateway.condition().detail, "1 of 1 connection");
}

#[tokio::test]
async fn an_intent_that_was_switched_on_takes_effect_at_the_next_start() {
    let discord = Counterpart::with_rules(rules()).await;
    discord.set_privileged(Intents::empty());
    let notes = Notepad::new();
    let mut first = Client::connected(&discord, &notes).await;
    notes.until_session(0, |session| session["accepted"] == 1).await;
    first.stop().await;
    discord.sessions(0).await;
    discord.set_privileged(Intents::MESSAGE_CONTENT);

    let second = Client::connected(&discord, &notes).await;
    second.inbox.until_kind("READY", 1).await;

    let identified = discord.look(|state| state.journal.identifies.last().and_then(|identified| identified.session.clone()));
    let requested = discord.look(|state| state.gateway.sessions[&identified.expect("a session")].intents);
    assert!(requested.contains(Intents::MESSAGE_CONTENT));
    assert_eq!(second.platform.reads_all(), Some(true));
}

fn requested_intents(discord: &Counterpart) -> Intents {
    discord.look(|state| state.gateway.sessions.values().next().expect("a session").intents)
}
