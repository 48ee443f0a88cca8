//! The first message to a new server.

use crate::harness::{Premises, QUICK};

#[tokio::test]
async fn a_message_is_answered_without_any_settings() {
    let premises = Premises::shipped();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;

    let seq = server.say("lobby", "Ana", "hey aria, how was your day?").await;

    let decision = lobby.event("decision").await;
    assert_eq!((&decision["companion"], &decision["decision"]), (&"aria".into(), &"YES".into()));
    assert_eq!(decision["trigger"], "direct_address");
    let round = lobby.event("round").await;
    assert_eq!(round["states"].as_array().map(Vec::len), Some(3));
    assert_eq!(round["selected"], "aria");
    let statement = lobby.event("statement").await;
    assert_eq!(statement["companion"], "aria");
    let history = server.history("lobby").await;
    assert_eq!(history[0], (seq, "Ana".to_owned(), "hey aria, how was your day?".to_owned()));
    assert_eq!(history[1].1, "aria");
    assert_eq!(statement["text"], history[1].2.as_str());
    server.stop().await;
}

#[tokio::test]
async fn an_unaddressed_message_is_decided_at_the_next_lull_and_recorded() {
    let premises = Premises::new().with_companion("aria", QUICK);
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;

    server.say("lobby", "Ana", "it rains again").await;

    let evaluated = lobby.event("evaluate").await;
    assert_eq!(evaluated["trigger"], "lull");
    let decided = lobby.event("decision").await;
    assert_eq!(decided["decision"], "NO");
    let record = server.get("/api/decisions?room=lobby").await;
    assert_eq!(record["decisions"][0]["seq"], decided["seq"]);
    assert_eq!(record["decisions"][0]["reason"], decided["reason"]);
    assert_eq!(server.history("lobby").await.len(), 1);
    server.stop().await;
}
