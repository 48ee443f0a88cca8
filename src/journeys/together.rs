//! Votes together: one call asks all companions of a round (docs/design/turn-taking.md T-23).

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, asking_companion, ballot, channel_key, purpose, refusal, room};
use crate::domain::answer::Words;
use crate::domain::event::Event;
use crate::domain::question_context::Purpose;
use crate::domain::vote;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::usage::UsageQuery;
use crate::ports::language_model::{NoAnswer, Request};
use crate::replay::{ReplayEventKind, Script, ScriptedAnswers, run_with};
use crate::telemetry::fake::attribute;

/// It calls upon all three.
const QUESTION: &str = "aria, bruno, cleo: what shall we read?";

/// Aria, Bruno and Cleo, who are asked together.
async fn salon() -> World {
    World::with_salon(json!({ "turn_taking": { "voting": "together" } })).await
}

/// The companions that a request asks.
fn asked(request: &Request) -> Vec<String> {
    match purpose(request) {
        Purpose::Votes { of } => of.iter().map(|(voter, _)| voter.id.to_string()).collect(),
        _ => vec![asking_companion(request).to_owned()],
    }
}

/// One object with these parts.
fn parts(parts: &[(&str, String)]) -> String {
    let parts = parts.iter().map(|(companion, part)| (*companion, serde_json::from_str::<Value>(part).unwrap()));
    serde_json::to_string(&parts.collect::<std::collections::BTreeMap<_, _>>()).unwrap()
}

fn all_parts() -> String {
    parts(&[("aria", ballot("NO", 1, "none")), ("bruno", ballot("YES", 8, "none")), ("cleo", ballot("YES", 4, "none"))])
}

/// Who is asked in each call of the side model so far.
fn calls(world: &World) -> Vec<Vec<String>> {
    world.side.asked.lock().iter().map(asked).collect()
}

fn decisions(of: &[Value]) -> Vec<(&str, &str, &str)> {
    of.iter()
        .map(|decision| {
            let field = |name: &str| decision[name].as_str().unwrap_or_default();
            (field("companion"), field("decision"), field("reason"))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn one_call_decides_for_three_companions_and_each_records_its_own_part() {
    let world = salon().await;
    world.side.answer_by(|_| Some(Ok(all_parts())));

    world.say_then_pass("salon", QUESTION, 2.5).await;

    assert_eq!(calls(&world), [["aria", "bruno", "cleo"]]);
    let decided = world.decisions("salon").await;
    assert_eq!(decisions(&decided), [("aria", "NO", "model_no"), ("bruno", "YES", "model_yes"), ("cleo", "YES", "model_yes")]);
    assert_eq!(world.recorded("salon", "round").await[0]["selected"], "bruno");
    for (decision, part) in decided.iter().zip([ballot("NO", 1, "none"), ballot("YES", 8, "none"), ballot("YES", 4, "none")]) {
        let own = |answer: &str| vote::read(answer, Words::ENGLISH);
        let answer = decision["answer"].as_str().unwrap();
        assert_eq!((own(answer), answer.matches("decision").count()), (own(&part), 1), "its part alone: {answer}");
        assert_eq!((&decision["asked_together"], &decision["input_tokens"]), (&json!(3), &json!(0)));
    }
    let request = world.side.asked.lock()[0].clone();
    assert_eq!(request.max_tokens, 3 * world.context.settings.prompt.max_side_answer_tokens);
    assert_eq!(request.user().matches(QUESTION).count(), 1, "the talk is shown once: {}", request.user());
}

#[tokio::test(start_paused = true)]
async fn the_usage_is_on_record_once_for_the_room_and_the_call_has_one_span_in_the_turn() {
    let world = salon().await;
    world.side.answer_by(|_| {
        Some(Ok(parts(&[
            ("aria", ballot("NO", 1, "none")),
            ("bruno", ballot("NO", 8, "none")),
            ("cleo", ballot("NO", 4, "none")),
        ])))
    });

    world.say_then_pass("salon", QUESTION, 5.0).await;

    let query = UsageQuery { guild: Some("home".into()), ..UsageQuery::default() };
    let usage = serde_json::to_value(world.backend.records.usage(query).await.unwrap()).unwrap();
    let by = usage["guilds"][0]["by"].as_array().unwrap().iter();
    let by: Vec<_> = by.map(|by| (&by["companion"], &by["role"], &by["calls"], &by["input_tokens"])).collect();
    assert_eq!(by, [(&Value::Null, &json!("side"), &json!(1), &json!(10))]);
    let chats = world.spans.named("chat scripted");
    let [chat] = &chats[..] else { panic!("{chats:#?}") };
    assert_eq!(attribute(chat, "model.asked_together").as_deref(), Some("3"));
    assert_eq!(attribute(chat, "companion.id"), None);
    let turn = world.spans.named("conversation.turn").remove(0);
    assert_eq!(chat.parent_span_id, turn.span_context.span_id());
    assert_eq!(world.spans.named("decision.gate").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_companion_whose_part_is_missing_or_unreadable_is_asked_alone() {
    let world = salon().await;
    world.side.answer_by(|request| {
        Some(Ok(match asking_companion(request) {
            "" => json!({ "aria": { "decision": "perhaps" }, "Bruno": "NO" }).to_string(),
            "aria" => ballot("YES", 2, "none"),
            _ => "Well".to_owned(),
        }))
    });

    world.say_then_pass("salon", "shall we?", 0.1).await;
    world.say_then_pass("salon", QUESTION, 10.0).await;

    assert_eq!(calls(&world)[..4], [vec!["aria", "bruno", "cleo"], vec!["aria"], vec!["cleo"], vec!["cleo"]]);
    let demands = world.side.asked.lock().iter().map(|request| request.user().contains("could not be read")).collect::<Vec<_>>();
    assert_eq!(demands[..4], [false, false, false, true], "the usual rules hold for one that is asked alone");
    let decided = world.decisions("salon").await;
    let mut first: Vec<_> = decisions(&decided)[..3].to_vec();
    first.sort_unstable();
    assert_eq!(first, [("aria", "YES", "model_yes"), ("bruno", "NO", "model_no"), ("cleo", "YES", "unreadable")]);
    let together: Vec<_> = decided[..3].iter().map(|decision| &decision["asked_together"]).collect();
    assert_eq!(together.iter().filter(|asked| ***asked == json!(3)).count(), 1, "{decided:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_the_error_of_each_and_they_are_asked_together_again() {
    let world = salon().await;
    let no_credit = NoAnswer::NoCredit { endpoint: "test".into(), detail: "402".to_owned() };
    world.side.answers([Err(no_credit), Ok("{}")]);
    world.side.answer_by(|request| (asked(request).len() == 1).then(|| Ok(ballot("NO", 1, "none"))));

    world.say_then_pass("salon", QUESTION, 1.5).await;
    let errors = world.recorded("salon", "error").await;
    world.pass(60.0).await;

    let failed: Vec<_> = errors.iter().map(|error| (error["companion"].as_str(), error["error"].as_str())).collect();
    assert_eq!(failed, ["aria", "bruno", "cleo"].map(|id| (Some(id), Some("no_credit"))));
    let all = vec!["aria", "bruno", "cleo"];
    assert_eq!(calls(&world)[..5], [all.clone(), all, vec!["aria"], vec!["bruno"], vec!["cleo"]]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_as_it_is_asks_each_alone_at_once() {
    let world = salon().await;
    world.side.answers([Err(refusal())]);
    world.side.answer_by(|request| (asked(request).len() == 1).then(|| Ok(ballot("NO", 1, "none"))));

    world.say_then_pass("salon", QUESTION, 5.0).await;

    assert!(world.recorded("salon", "error").await.is_empty());
    assert_eq!(calls(&world)[..4], [vec!["aria", "bruno", "cleo"], vec!["aria"], vec!["bruno"], vec!["cleo"]]);
    let decided = world.decisions("salon").await;
    assert_eq!(decisions(&decided)[..3], ["aria", "bruno", "cleo"].map(|id| (id, "NO", "model_no")));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_leaves_the_call_to_the_others() {
    let world = salon().await;
    world.side.set_delay(Duration::from_secs(3));
    world.side.answer_by(|_| Some(Ok(all_parts())));

    world.say_then_pass("salon", QUESTION, 1.0).await;
    world.open("salon", &["aria", "bruno"]).await;
    world.pass(5.0).await;

    assert_eq!(calls(&world)[0], ["aria", "bruno", "cleo"]);
    let decided = world.decisions("salon").await;
    assert_eq!(decisions(&decided)[..2], [("aria", "NO", "model_no"), ("bruno", "YES", "model_yes")]);
    assert!(!decided.iter().any(|decision| decision["companion"] == "cleo"), "{decided:#?}");
}

#[tokio::test(start_paused = true)]
async fn companions_with_side_models_of_their_own_and_external_ones_are_not_asked_with_others() {
    let world = salon().await;
    world.reload_companion(json!({ "id": "cleo", "model": { "side": "other" } }));
    world.open_with("salon", json!(["aria", "bruno", "cleo", { "id": "zed", "external": true }])).await;
    world.side.answer_by(|request| {
        Some(Ok(match asked(request).len() {
            1 => ballot("NO", 1, "none"),
            _ => parts(&[("aria", ballot("NO", 1, "none")), ("bruno", ballot("NO", 1, "none"))]),
        }))
    });

    world.say_then_pass("salon", QUESTION, 5.0).await;

    let mut calls = calls(&world);
    calls.sort();
    assert_eq!(calls, [vec!["aria", "bruno"], vec!["cleo"]]);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_or_with_other_models_they_are_asked_together_again() {
    let world = salon().await;
    world.side.set_delay(Duration::from_secs(5));
    world.say_then_pass("salon", QUESTION, 1.0).await;

    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok(all_parts())));
    world.pass(3.0).await;

    assert_eq!(calls(&world)[0], ["aria", "bruno", "cleo"]);
    assert_eq!(decisions(&world.decisions("salon").await).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_one_is_lost_with_a_message_that_the_call_has_shown() {
    let world = salon().await;
    world.side.set_delay(Duration::from_secs(3));
    world.side.answer_by(|_| Some(Ok(all_parts())));

    let seq = world.say_then_pass("salon", QUESTION, 1.0).await;
    world.backend.messages.delete(&room("salon"), seq).await.unwrap();
    world.pass(5.0).await;

    for recorded in world.journal(&channel_key("salon")).await {
        if let Event::Decided(decided) = recorded.event {
            assert!(decided.why.is_none() && decided.call.is_none_or(|call| call.answer.is_empty()), "nothing quotes it");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_replay_each_takes_its_own_answer() {
    let world = salon().await;
    world.side.answer_by(|_| Some(Ok(all_parts())));
    world.say_then_pass("salon", QUESTION, 2.5).await;

    let script = world.export("salon", ExportForm::Replay).await.join("\n");
    let script = Script::from_json(&script).unwrap();
    let replayed = run_with(&script, &mut ScriptedAnswers::of(&script)).unwrap();

    let decided: Vec<_> = replayed
        .iter()
        .filter_map(|event| match &event.kind {
            ReplayEventKind::Decision { companion, decision, .. } => Some(format!("{companion} {decision}")),
            _ => None,
        })
        .collect();
    assert_eq!(decided[..3], ["aria NO", "bruno YES", "cleo YES"]);
}
