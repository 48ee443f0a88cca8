//! What operators see of a turn, where the evening of the telemetry contract (`contract.rs`) does not show it: what is old, left out, or interrupted.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::world::{World, purpose, refusal, room};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::domain::question_context::Purpose;
use crate::ports::language_model::NoAnswer;
use crate::telemetry::fake::{attribute, drawn};

const BALLOT_YES: &str = r#"{"reason": "So.", "decision": "YES", "importance": 5, "selected": false, "closing": "none"}"#;
const BALLOT_NO: &str = r#"{"reason": "No.", "decision": "NO", "importance": 0, "selected": false, "closing": "none"}"#;

#[tokio::test(start_paused = true)]
async fn a_round_follows_the_statement_that_opened_it_even_if_only_older_triggers_are_asked_about() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|_| Some(Ok(BALLOT_YES.to_owned())));

    world.say_then_pass("salon", "Aria, Bruno and Cleo, what of it?", 8.5).await;

    let drawing = drawing(&world);
    let second = drawing.split("conversation.turn ").nth(2).unwrap_or_else(|| panic!("no second turn:\n{drawing}"));
    assert!(second.starts_with("posted follows 1\n"), "{drawing}");
}

/// At any moment: all votes missing, one missing, one selected, its reply owed.
#[tokio::test(start_paused = true)]
async fn after_a_crash_a_round_continues_in_a_trace_that_follows_the_one_before() {
    for at in [0.5, 1.5, 2.5, 4.5] {
        let world = World::with_salon(json!({})).await;
        world.side.answer_by(|_| Some(Ok(BALLOT_YES.to_owned())));
        world.side.set_delay_for("bruno", Duration::from_secs(2));
        world.say_then_pass("salon", "Ari and Bruno, what of it?", at).await;

        follows_after_a_crash(world, at).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_open_at_a_snapshot_is_followed_too() {
    let world = World::with_salon(json!({})).await;
    world.side.set_delay(Duration::from_secs(12));
    world.side.answer_by(|_| Some(Ok(BALLOT_YES.to_owned())));
    world.side.set_delay_for("aria", Duration::from_secs(2));
    world.say("salon", "Ari and Bruno, what of it?").await;
    for number in 0..130 {
        world.say("salon", &format!("and {number}")).await;
    }
    // Her vote is the next event after so many messages, and a snapshot is taken with it.
    world.pass(4.0).await;

    follows_after_a_crash(world, 4.0).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_judgement_is_a_failure_that_holds_nothing_up() {
    let world = judged_salon(Err(refusal()), 45.0).await;

    let judged = world.recorded("salon", "repetition").await;
    assert!(judged.len() > 1 && judged.iter().all(|judged| judged["score"] == 0.0), "{judged:?}");
    let judgement = &world.spans.named("decision.repetition")[0];
    assert_eq!(attribute(judgement, "error.type").as_deref(), Some("refused"));
}

#[tokio::test(start_paused = true)]
async fn a_judgement_interrupted_by_a_crash_continues_in_a_trace_that_follows_the_one_before_and_warns() {
    let world = judged_salon(circling(), 12.5).await;
    let before = world.spans.named("conversation.turn").last().unwrap().span_context.clone();
    assert_eq!(world.spans.named("decision.repetition").len(), 0);

    let world = world.crash().await;
    judge(&world, circling());
    world.pass(2.0).await;

    let drawing = drawing(&world);
    assert!(
        drawing.starts_with("conversation.turn posted follows elsewhere\n  decision.repetition\n    chat scripted\n"),
        "{drawing}"
    );
    let again = &world.spans.named("conversation.turn")[0];
    assert_eq!(again.links[0].span_context.trace_id(), before.trace_id());
    world.pass(20.0).await;
    let note = &world.context.settings.prompt.repetition;
    assert!(world.side.asked.lock().iter().any(|asked| asked.user().contains(note)), "decisions are warned");
}

#[tokio::test(start_paused = true)]
async fn an_unsampled_turn_is_left_out_whole_and_a_failed_one_is_kept_whole() {
    let mut world = World::with_overlay(json!({ "telemetry": { "sample_ratio": 0.0 } })).await;
    world.open("lobby", &["aria"]).await;
    world.side.answers([Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    assert_eq!(drawing(&world), "");

    world.side.answers([Ok("Me.\nYES")]);
    world.main.answers([Err(refusal()), Ok("Hello!")]);
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    world.kill(&ChannelActorKey(room("lobby").channel())).await;

    let expected = "\
conversation.turn failed refused
  history.append
  decision.gate aria YES
    chat scripted aria
  invoke_agent Aria aria refused
    chat scripted aria refused
actor.restart
";
    assert_eq!(drawing(&world), expected);
    assert!(world.decisions("lobby").await.iter().all(|decision| !decision["trace"].is_null()), "the record names every trace");
}

#[tokio::test(start_paused = true)]
async fn decisions_without_a_call_name_the_trace_of_their_span_too() {
    let world = World::with_salon(json!({})).await;
    world.main.set_delay(Duration::from_secs(30));
    for (ballot, text, secs) in
        [(BALLOT_NO, "Aria, what of it?", 20.0), (BALLOT_YES, "Bruno, what of it?", 5.0), (BALLOT_NO, "Bruno, stop!", 20.0)]
    {
        world.side.answer_by(move |_| Some(Ok(ballot.to_owned())));
        world.say_then_pass("salon", text, secs).await;
    }
    world.patch("salon", json!({ "paused": true })).await.unwrap();
    world.say_then_pass("salon", "Anybody?", 60.0).await;

    let reasons = reasons_of_traced_decisions(&world, "salon").await;

    assert_eq!(reasons, ["cancelled", "model_no", "model_yes", "other_addressed", "paused"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_decision_without_a_call_names_the_trace_in_which_its_turn_goes_on_after_a_crash() {
    let world = World::with_salon(json!({})).await;
    world.open_with("inn", json!(["bruno", { "id": "zed", "external": true }])).await;
    world.side.set_delay(Duration::from_secs(4));
    let seq = world.say_then_pass("inn", "Zed and Bruno, what of it?", 0.5).await;

    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok(BALLOT_NO.to_owned())));
    world.pass(0.5).await;
    let state = json!({ "from": "zed", "messageId": seq.to_string(), "state": "listen", "importance": 0, "selected": false });
    world.vote("inn", state).await.unwrap();
    world.pass(40.0).await;

    let reasons = reasons_of_traced_decisions(&world, "inn").await;
    assert_eq!(reasons, ["external", "model_no"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn the_next_try_follows_a_question_without_an_answer_also_over_a_crash() {
    for (text, answered_within) in [("one", 12.0), ("Ari?", 5.0)] {
        let world = unanswered_lobby(text, answered_within).await;
        let failed = world.spans.named("conversation.turn")[0].span_context.trace_id();

        let world = world.crash().await;
        world.side.answers([Ok("Not me.\nNO")]);
        world.pass(60.0).await;

        let again = &world.spans.named("conversation.turn")[0];
        assert_eq!(attribute(again, "turn.outcome").as_deref(), Some("silence"), "{text}");
        let links: Vec<_> = again.links.iter().map(|link| link.span_context.trace_id()).collect();
        assert_eq!(links, [failed], "{text}: {}", drawing(&world));
    }
}

#[tokio::test(start_paused = true)]
async fn turns_after_clearing_follow_nothing_before_it() {
    let world = unanswered_lobby("one", 12.0).await;
    world.side.answers([Ok("Not me.\nNO")]);

    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.say_then_pass("lobby", "Ari?", 60.0).await;

    let turns = world.spans.named("conversation.turn");
    assert_eq!(turns.len(), 2, "{}", drawing(&world));
    assert!(turns[1].links.is_empty(), "{}", drawing(&world));
}

fn drawing(world: &World) -> String {
    drawn(&world.spans.spans())
}

/// The reasons of the decisions of a room. Each has one span, in the trace that the decision names.
async fn reasons_of_traced_decisions(world: &World, id: &str) -> BTreeSet<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let decisions = world.decisions(id).await;
    let named = decisions.iter().map(|decision| ["trace", "companion", "reason"].map(|field| text(&decision[field])));
    let spans = world.spans.named("decision.gate").into_iter().map(|span| {
        let of = |name| attribute(&span, name).unwrap_or_default();
        [span.span_context.trace_id().to_string(), of("companion.id"), of("decision.reason")]
    });
    let (mut named, mut spans): (Vec<_>, Vec<_>) = (named.collect(), spans.collect());
    named.sort();
    spans.sort();
    assert_eq!(named, spans);
    named.into_iter().map(|[_, _, reason]| reason).collect()
}

/// A lobby in which a question just got no answer, and will be asked again.
async fn unanswered_lobby(text: &str, secs: f64) -> World {
    let world = World::with_lobby().await;
    world.side.answers([Err(refusal())]);
    world.say_then_pass("lobby", text, secs).await;
    assert_eq!(drawing(&world).lines().next(), Some("conversation.turn failed refused"));
    world
}

/// Bruno was addressed, and everybody always wants to speak. The side model judges repetition like this.
async fn judged_salon(judgement: Result<String, NoAnswer>, secs: f64) -> World {
    let world = World::with_salon(json!({
        "repetition": { "judge": "model" },
        "gate": { "skip_when_other_addressed": false },
        "turn_taking": { "max_companion_streak": 20 },
    }))
    .await;
    judge(&world, judgement);
    world.say_then_pass("salon", "Bruno, what of it?", secs).await;
    world
}

fn judge(world: &World, judgement: Result<String, NoAnswer>) {
    world.side.answer_by(move |request| match purpose(request) {
        Purpose::Judgement => Some(judgement.clone()),
        _ => Some(Ok(BALLOT_YES.to_owned())),
    });
}

/// They repeat themselves.
fn circling() -> Result<String, NoAnswer> {
    Ok("They circle.\n0.9".to_owned())
}

/// The first turn after a crash links to the root of the interrupted one.
async fn follows_after_a_crash(world: World, at: f64) {
    let before = world.spans.named("history.append")[0].clone();
    assert_eq!(world.spans.named("conversation.turn").len(), 0, "the turn is still open at {at}");

    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok(BALLOT_NO.to_owned())));
    world.pass(40.0).await;

    let turn = &world.spans.named("conversation.turn")[0];
    let links: Vec<_> = turn.links.iter().map(|link| (link.span_context.trace_id(), link.span_context.span_id())).collect();
    assert_eq!(links, [(before.span_context.trace_id(), before.parent_span_id)], "at {at}: {}", drawing(&world));
    let orphans = drawing(&world).lines().filter(|line| line.starts_with('?')).count();
    assert_eq!(orphans, 0, "at {at}");
}
