//! What the journal records.

use super::super::journal::Outcome;
use super::super::{Closed, Id};
use super::client::{INTENTS, Socket, home};
use crate::discord::home::Home;

#[tokio::test]
async fn requests_are_recorded_with_their_outcomes() {
    let (Home { discord, guild, general, .. }, rest) = home().await;

    rest.say(general, "hello").await;
    rest.say(general, "").await;

    let requests = discord.look(|state| state.journal.requests.clone());
    assert_eq!(
        (requests[0].method.as_str(), requests[0].path.as_str()),
        ("POST", &*format!("/api/v10/channels/{general}/messages"))
    );
    assert_eq!((requests[0].route, requests[0].channel, requests[0].guild), ("create_message", Some(general), Some(guild)));
    let outcome = |number: usize| requests[number].outcome.clone().expect("an outcome");
    let fields = |Outcome { status, code, reason, limit, .. }| (status, code, reason, limit);
    assert_eq!(fields(outcome(0)), (200, None, None, None));
    assert_eq!(fields(outcome(1)), (400, Some(50006), Some("Cannot send an empty message".to_owned()), None));
    assert!(requests[0].at <= requests[1].at && outcome(0).took <= requests[0].at.elapsed());
    let refused = discord.look(|state| state.journal.refused().map(|(_, outcome)| outcome.status).collect::<Vec<_>>());
    assert_eq!(refused, [400]);
}

#[tokio::test]
async fn handshakes_and_deliveries_are_recorded_with_their_connections() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let (mut socket, ready) = Socket::ready(&discord, INTENTS).await;
    socket.event("GUILD_CREATE").await;
    discord.sessions(1).await;
    let sequence = socket.sequence;

    let message = discord.say(ana, general, "hello");
    discord.delivered(message).await;
    discord.cut(0);
    discord.sessions(0).await;
    let mut again = Socket::connect(&format!("{}/resume/?v=10&encoding=json", discord.gateway_url())).await;
    again.resume(&discord.token(), &ready["session_id"], sequence).await;
    again.event("RESUMED").await;

    let session = ready["session_id"].as_str().expect("an id").to_owned();
    let (identified, resumed, connections) = discord.look(|state| {
        let journal = &state.journal;
        (journal.identifies[0].clone(), journal.resumes[0].clone(), journal.connections.clone())
    });
    assert_eq!((identified.connection, identified.shard, identified.session), (0, (0, 1), Some(session.clone())));
    assert_eq!((resumed.connection, &resumed.session, resumed.sequence, resumed.replayed), (1, &session, sequence, Some(1)));
    assert!(identified.at <= resumed.at && connections[0].at <= identified.at);
    assert_eq!((connections[0].by_resume_url, connections[1].by_resume_url), (false, true));
    assert_eq!((&connections[0].session, &connections[1].session), (&Some(session.clone()), &Some(session.clone())));
    assert_eq!((&connections[0].closed, &connections[1].closed), (&Some(Closed::Cut), &None));
    let delivery = discord.look(|state| {
        let mut deliveries = state.journal.deliveries.iter().filter(|delivery| delivery.message == Some(message));
        deliveries.next().cloned()
    });
    let delivery = delivery.expect("a delivery");
    assert_eq!((delivery.session, delivery.sequence, delivery.event), (session, sequence + 1, "MESSAGE_CREATE"));
    assert_eq!((delivery.guild, delivery.channel, delivery.sent), (Some(guild), Some(general), vec![0, 1]));
}

#[test]
fn ids_contain_their_time_and_shard() {
    // The example in Discord's documentation.
    let id = Id(175_928_847_299_117_063);

    assert_eq!((id.made_at_ms(), id.shard(1), id.shard(2)), (1_462_015_105_796, 0, 41_944_705_796 % 2));
    assert_eq!(serde_json::to_string(&id).expect("JSON"), "\"175928847299117063\"");
    assert_eq!((Id::parse("0"), Id::parse("-1"), Id::parse("x")), (None, None, None));
}
