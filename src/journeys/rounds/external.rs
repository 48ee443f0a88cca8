//! External companions: they are notified of a round, vote, and send their statements when they were selected.

use ractor::RpcReplyPort;

use super::*;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::domain::closing::Stage;
use crate::domain::id::Seq;
use crate::domain::vote::State;
use crate::ports::backend::Refused;

const CALL: &str = "Zed and Bruno, what of it?";

/// Bruno, and Zed, whom a program outside plays.
async fn inn() -> World {
    let world = World::with_salon(json!({})).await;
    world.open_with("inn", json!(["bruno", { "id": "zed", "external": true }])).await;
    world.side.answer_by(|request| {
        let is_first = !request.user().contains("I am Zed.") && !request.user().contains("As I said.");
        Some(Ok(ballot(if is_first { "YES" } else { "NO" }, 5, "none")))
    });
    world.main.answer_by(|_| Some(Ok("As I said.".to_owned())));
    world
}

/// Ana has called both, and the round is open. Returns the number of her message, too.
async fn called() -> (World, String) {
    let world = inn().await;
    let seq = world.say_then_pass("inn", CALL, 0.5).await;
    (world, seq.to_string())
}

async fn submit(world: &World, state: State) -> Result<(), VoteError> {
    let manager = world.context.directory.find(&TurnTakingManagerKey(room("inn").channel())).ok_or(VoteError::NoRound)?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    manager.cast(ManagerMessage::Vote { state, reply: RpcReplyPort::from(sender) }).unwrap();
    receiver.await.unwrap_or(Err(VoteError::Gone))
}

async fn speak(world: &World, from: &str, message_id: &str, text: &str) -> Result<Seq, VoteError> {
    let channel = world.context.directory.find(&ChannelActorKey(room("inn").channel())).expect("it is awake");
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let reply = RpcReplyPort::from(sender);
    let (from, message_id) = (from.into(), message_id.to_owned());
    channel.cast(ChannelMessage::Speak { from, message_id, text: text.into(), reply }).unwrap();
    receiver.await.unwrap_or(Err(VoteError::Gone))
}

fn state(from: &str, message_id: &str, importance: f64) -> State {
    let message_id = message_id.to_owned();
    State { from: from.into(), message_id, state: Stance::Speak, importance, selected: false, closing: Stage::None, mood: 0.0 }
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_that_is_selected_makes_its_statement() {
    let (world, seq) = called().await;
    let opened = world.recorded("inn", "round_opened").await;

    submit(&world, state("zed", &seq, 9.0)).await.unwrap();
    world.pass(5.0).await;
    let posted = speak(&world, "zed", &seq, "I am Zed.").await.unwrap();
    world.pass(60.0).await;

    assert_eq!(opened[0]["asked"], json!(["bruno", "zed"]));
    let history = world.history("inn").await;
    assert_eq!(history, lines(&[("Ana", CALL), ("zed", "I am Zed.")]));
    assert!(posted > Seq(seq.parse().unwrap()));
    assert_eq!(world.side.asked_for("zed"), 0);
    let decision = world.decisions("inn").await.into_iter().find(|decision| decision["companion"] == "zed").unwrap();
    assert_eq!((&decision["reason"], &decision["decision"]), (&json!("external"), &json!("YES")));
    assert_eq!(speak(&world, "zed", &seq, "I am Zed.").await, Err(VoteError::Twice { from: "zed".into() }));
}

#[tokio::test(start_paused = true)]
async fn a_round_whose_manager_fails_as_it_starts_is_closed_a_little_after_its_deadline() {
    let world = inn().await;
    world.open_with("inn", json!(["aria", "bruno", { "id": "zed", "external": true }])).await;
    let manager = || TurnTakingManagerKey(room("inn").channel());
    let deadline = world.context.settings.turn_taking.state_timeout().as_secs_f64();
    // For watchers it reads the clock as it starts, because that Aria listens must be published.
    let _watching = world.watch("inn", None).await;
    world.panic_on_clock_once(manager());

    world.say_then_pass("inn", CALL, deadline + 4.9).await;
    assert!(world.context.directory.find(&manager()).is_none());
    assert_eq!((world.recorded("inn", "round_opened").await.len(), world.recorded("inn", "round").await.len()), (1, 0));
    world.pass(0.2).await;

    assert_eq!(world.recorded("inn", "round").await[0]["selected"], "bruno");
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_arrives_as_the_round_ends_is_answered_with_no_open_round() {
    let world = inn().await;
    world.say_then_pass("inn", CALL, 120.0).await;
    let manager = world.replace(TurnTakingManagerKey(room("inn").channel()), false).await;

    let refused = world.backend.messages.vote(&room("inn"), state("zed", "1", 9.0)).await;

    assert!(matches!(&refused, Err(Refused::Conflict(detail)) if detail.starts_with("no round is open")), "{refused:?}");
    manager.stop_and_wait(None, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn invalid_votes_are_answered_with_the_reason() {
    let world = inn().await;
    assert_eq!(submit(&world, state("zed", "1", 9.0)).await, Err(VoteError::NoRound));
    let seq = world.say("inn", CALL).await.to_string();
    world.pass(0.5).await;

    let other_round = submit(&world, state("zed", "1", 9.0)).await;
    let not_external = submit(&world, state("bruno", &seq, 9.0)).await;
    let not_a_member = submit(&world, state("vera", &seq, 9.0)).await;
    let first = submit(&world, state("zed", &seq, 1.0)).await;
    let second = submit(&world, state("zed", &seq, 9.0)).await;

    assert_eq!(other_round, Err(VoteError::OtherRound { given: "1".into(), open: seq.clone() }));
    assert_eq!(not_external, Err(VoteError::NotExternal { from: "bruno".into() }));
    assert!(matches!(not_a_member, Err(VoteError::NotExternal { .. } | VoteError::NotAsked { .. })));
    assert_eq!((first, second), (Ok(()), Err(VoteError::Twice { from: "zed".into() })));
    world.pass(60.0).await;
    assert_eq!(world.history("inn").await, lines(&[("Ana", CALL), ("bruno", "As I said.")]));
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_that_does_not_vote_listens_at_the_deadline() {
    let world = inn().await;

    world.say_then_pass("inn", CALL, 19.9).await;
    assert_eq!(world.recorded("inn", "round").await.len(), 0);
    world.pass(5.0).await;

    let rounds = world.recorded("inn", "round").await;
    assert_eq!(rounds[0]["selected"], "bruno");
    assert_eq!(rounds[0]["states"][1]["state"], "listen");
    assert_eq!(world.history("inn").await, lines(&[("Ana", CALL), ("bruno", "As I said.")]));
    let gates = world.spans.named("decision.gate");
    let error = gates.iter().find(|gate| attribute(gate, "error.type").is_some()).expect("a question has no answer");
    assert_eq!(attribute(error, "companion.id").as_deref(), Some("zed"));
    let turn = &world.spans.named("conversation.turn")[0];
    assert_eq!(error.span_context.trace_id(), turn.span_context.trace_id());
    let selection = &world.spans.named("decision.select_speaker")[0];
    assert_eq!(attribute(selection, "round.missing").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn the_next_candidate_speaks_if_the_statement_is_missing() {
    let (world, seq) = called().await;
    submit(&world, state("zed", &seq, 9.0)).await.unwrap();

    world.pass(62.0).await;
    assert_eq!(world.history("inn").await.len(), 1);
    world.pass(4.0).await;

    assert_eq!(world.history("inn").await, lines(&[("Ana", CALL), ("bruno", "As I said.")]));
    assert_eq!(world.recorded("inn", "failed").await[0]["error"], "timeout");
    assert_eq!(speak(&world, "zed", &seq, "I am Zed.").await, Err(VoteError::TooLate { from: "zed".into() }));
    let failed = world.spans.named("invoke_agent Zed");
    assert_eq!(failed.len(), 1);
    assert_eq!(attribute(&failed[0], "error.type").as_deref(), Some("timeout"));
    assert_eq!(world.turn_outcomes()[0], "posted", "the turn continued with Bruno");
}

#[tokio::test(start_paused = true)]
async fn a_statement_of_a_companion_that_was_not_selected_is_refused() {
    let (world, seq) = called().await;
    submit(&world, state("zed", &seq, 1.0)).await.unwrap();
    world.pass(2.0).await;

    let refused = speak(&world, "zed", &seq, "I am Zed.").await;
    let played_here = speak(&world, "bruno", &seq, "I am Bruno.").await;

    assert_eq!(refused, Err(VoteError::NotSelected { from: "zed".into(), message_id: seq }));
    assert_eq!(played_here, Err(VoteError::NotExternal { from: "bruno".into() }));
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_its_statement_is_awaited_restarts_its_time() {
    let (world, seq) = called().await;
    submit(&world, state("zed", &seq, 9.0)).await.unwrap();
    world.pass(30.0).await;

    let world = world.crash().await;
    world.pass(50.0).await;
    speak(&world, "zed", &seq, "I am Zed.").await.unwrap();
    world.rest().await;

    assert_eq!(world.history("inn").await, lines(&[("Ana", CALL), ("zed", "I am Zed.")]));
}
