//! Several companions in a room: they vote, one speaks, the others receive its statement, and the talk comes to an end.

mod dying;
mod external;
mod repeating;

use std::time::Duration;

use serde_json::json;

use super::world::{World, asking_companion, ballot, channel_key, context, lines, purpose, refusal, room};
use crate::actors::runtime::actor_keys::{ChannelActorKey, TurnTakingManagerKey};
use crate::domain::question_context::Purpose;
use crate::domain::vote::Stance;
use crate::ports::language_model::Request;
use crate::telemetry::memory::attribute;

const QUESTION: &str = "Ari and Bruno, what of it?";
const TO_CLEO: &str = "Cleo, and you?";
const GOOD_NIGHT: &str = "Good night, all.";

/// The answers of three companions: Bruno has more to say than Aria and calls upon Cleo, who says goodbye.
fn vote(request: &Request) -> String {
    let has_been_said = |text: &str| request.user().contains(text);
    match asking_companion(request) {
        _ if has_been_said(GOOD_NIGHT) => ballot("NO", 0, "none"),
        "cleo" if has_been_said(TO_CLEO) => ballot("YES", 3, "closing"),
        _ if has_been_said(TO_CLEO) => ballot("NO", 1, "terminal"),
        "bruno" => ballot("YES", 8, "none"),
        _ => ballot("YES", 4, "none"),
    }
}

fn words(request: &Request) -> String {
    match asking_companion(request) {
        "bruno" => TO_CLEO.to_owned(),
        "cleo" => GOOD_NIGHT.to_owned(),
        _ => "As I said.".to_owned(),
    }
}

fn follow_the_script(world: &World) {
    world.side.answer_by(|request| Some(Ok(vote(request))));
    world.main.answer_by(|request| Some(Ok(words(request))));
}

/// Aria, Bruno and Cleo, who talk as scripted.
async fn salon() -> World {
    let world = World::with_salon(json!({})).await;
    follow_the_script(&world);
    world
}

/// The statements when nothing fails.
fn the_whole_talk() -> Vec<(String, String)> {
    lines(&[("Ana", QUESTION), ("bruno", TO_CLEO), ("cleo", GOOD_NIGHT)])
}

#[tokio::test(start_paused = true)]
async fn the_most_important_wish_speaks_and_calls_upon_the_next_until_the_talk_ends() {
    let world = salon().await;

    world.say_then_pass("salon", QUESTION, 2.9).await;
    assert_eq!(world.history("salon").await.len(), 1, "the turn delay is respected");
    world.pass(60.0).await;

    assert_eq!(world.history("salon").await, the_whole_talk());
    let rounds = world.recorded("salon", "round").await;
    assert_eq!(rounds.iter().map(|round| round["selected"].as_str()).collect::<Vec<_>>(), [Some("bruno"), Some("cleo"), None]);
    let first = rounds[0]["states"].as_array().unwrap();
    assert_eq!(first.iter().map(|state| &state["importance"]).collect::<Vec<_>>(), [&json!(4.0), &json!(8.0), &json!(0.0)]);
    let opened = world.recorded("salon", "round_opened").await;
    assert_eq!(opened[0]["asked"], json!(["aria", "bruno"]));
}

#[tokio::test(start_paused = true)]
async fn in_a_round_decision_and_vote_are_one_question() {
    let world = salon().await;

    world.say_then_pass("salon", QUESTION, 60.0).await;

    let asked = world.side.asked.lock();
    assert!(asked.iter().all(|request| matches!(purpose(request), Purpose::Vote { .. })));
    assert!(asked[0].user().contains("Answer with one JSON object"));
    let stages = world.main.asked.lock();
    let closing =
        |request: &Request| matches!(purpose(request), Purpose::Statement { closing, .. } if closing.as_str() == "closing");
    assert_eq!(stages.iter().map(closing).collect::<Vec<_>>(), [false, true]);
    assert!(stages[1].user().contains(&world.context.settings.prompt.closing));
}

#[tokio::test(start_paused = true)]
async fn a_terminal_companion_is_silent_until_it_is_addressed() {
    let world = salon().await;
    world.say_then_pass("salon", QUESTION, 60.0).await;
    let asked = world.side.asked_for("aria");

    world.say_then_pass("salon", "By the way, the tide is in.", 60.0).await;

    let changes = world.recorded("salon", "closing").await;
    assert!(
        changes.iter().any(|change| change["companion"] == "aria" && change["to"] == "terminal" && change["cause"] == "state")
    );
    assert_eq!(world.side.asked_for("aria"), asked, "she is not asked any more");
    world.say_then_pass("salon", "Aria?", 5.0).await;
    assert_eq!(world.side.asked_for("aria"), asked + 1);
}

#[tokio::test(start_paused = true)]
async fn states_are_published_as_they_become_known() {
    let world = salon().await;
    world.side.set_delay_for("bruno", Duration::from_secs(2));
    let mut states = world.context.hub.watch_states(&channel_key("salon"));
    let mut watching = world.watch("salon", None).await;

    world.say("salon", QUESTION).await;
    let began = tokio::time::Instant::now();
    let mut published = Vec::new();
    for _ in 0..3 {
        let state = states.next().await.unwrap();
        published.push((state.from.to_string(), state.state, began.elapsed().as_secs()));
    }

    let (listen, speak) = (Stance::Listen, Stance::Speak);
    assert_eq!(published, [("cleo".into(), listen, 0), ("aria".into(), speak, 1), ("bruno".into(), speak, 2)]);
    let notes: Vec<_> = watching.seen().await.into_iter().filter(|event| event["event"] == "state").collect();
    assert_eq!(notes.iter().map(|note| note["from"].as_str().unwrap()).collect::<Vec<_>>(), ["cleo", "aria", "bruno"]);
    assert_eq!(notes[2]["messageId"], world.recorded("salon", "round_opened").await[0]["message_id"].to_string());
    assert!(notes[2]["seq"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_companion_whose_model_hangs_is_not_waited_for_after_the_round() {
    let world = World::with_salon(json!({ "turn_taking": { "state_timeout_secs": 16.0 } })).await;
    follow_the_script(&world);
    world.side.set_delay_for("aria", Duration::from_secs(1_000));
    let overdue = world.context.settings.models.side.timeout().min(Duration::from_secs(16)).as_secs_f64();

    world.say_then_pass("salon", QUESTION, overdue - 0.1).await;
    assert_eq!(world.recorded("salon", "round").await.len(), 0);
    world.pass(0.2).await;

    assert_eq!(world.recorded("salon", "round").await[0]["selected"], "bruno");
    world.pass(5.0).await;
    assert_eq!(world.history("salon").await[1], lines(&[("bruno", TO_CLEO)])[0]);
    let errors = world.recorded("salon", "error").await;
    assert_eq!((&errors[0]["companion"], &errors[0]["error"]), (&json!("aria"), &json!("timeout")));
}

#[tokio::test(start_paused = true)]
async fn a_companion_whose_endpoint_is_dead_listens_and_others_continue() {
    let world = salon().await;
    world.side.answer_by(|request| match asking_companion(request) {
        "bruno" => Some(Err(refusal())),
        _ => Some(Ok(vote(request))),
    });

    world.say_then_pass("salon", QUESTION, 5.0).await;

    assert_eq!(world.history("salon").await, lines(&[("Ana", QUESTION), ("aria", "As I said.")]));
}

#[tokio::test(start_paused = true)]
async fn a_companions_own_statement_is_in_its_next_prompt() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Me.\nYES"), Ok("Me again.\nYES"), Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari?", 5.0).await;

    world.say_then_pass("lobby", "I see.", 60.0).await;

    let (side, main) = (world.side.asked.lock(), world.main.asked.lock());
    assert!(side[1].user().contains("\"role\":\"you\",\"from\":\"Aria\",\"text\":\"Hello!\""), "{}", side[1].user());
    let roles: Vec<_> = main[1].messages.iter().map(|message| message.role.as_str()).collect();
    assert_eq!((roles, &*main[1].messages[2].words()), (vec!["system", "user", "assistant", "user"], "Hello!"));
    for second in [&side[1], &main[1]] {
        assert_eq!(context(second).newest.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["Ari?", "Hello!", "I see."]);
    }
}

#[tokio::test(start_paused = true)]
async fn clearing_ends_the_round_its_manager_and_its_trace() {
    let world = salon().await;
    world.say_then_pass("salon", QUESTION, 0.5).await;
    assert!(world.context.directory.find(&TurnTakingManagerKey(room("salon").channel())).is_some());

    world.backend.rooms.clear(&room("salon")).await.unwrap();
    world.pass(60.0).await;

    assert!(world.context.directory.find(&TurnTakingManagerKey(room("salon").channel())).is_none());
    assert_eq!(world.history("salon").await.len(), 1);
    assert_eq!(world.turn_outcomes(), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_is_paused_or_leaves_while_others_vote_is_not_waited_for() {
    for leaves in [true, false] {
        let world = salon().await;
        world.side.set_delay_for("bruno", Duration::from_secs(10));
        world.say_then_pass("salon", QUESTION, 2.0).await;

        if leaves {
            world.open("salon", &["aria", "cleo"]).await;
        } else {
            world.patch("salon", json!({ "companions": { "bruno": { "paused": true } } })).await.unwrap();
        }
        world.pass(4.0).await;

        assert_eq!(world.history("salon").await[1], lines(&[("aria", "As I said.")])[0], "leaves: {leaves}");
        assert_eq!(world.turn_outcomes()[0], "posted", "leaves: {leaves}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_selected_companion_that_is_paused_before_it_speaks_stays_silent() {
    let world = salon().await;
    world.say_then_pass("salon", QUESTION, 1.5).await;

    world.patch("salon", json!({ "paused": true })).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history("salon").await.len(), 1);
    assert_eq!(world.turn_outcomes()[0], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_salon_falls_asleep_when_the_talk_is_over() {
    let world = salon().await;
    world.say("salon", QUESTION).await;

    world.pass(1_000.0).await;

    assert!(world.context.directory.find(&ChannelActorKey(room("salon").channel())).is_none());
    assert!(world.context.directory.find(&TurnTakingManagerKey(room("salon").channel())).is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_a_round_is_shown_in_a_trace_that_follows_the_one_before() {
    let world = salon().await;
    world.side.set_delay_for("bruno", Duration::from_secs(2));
    world.say_then_pass("salon", QUESTION, 1.5).await;

    let world = world.crash().await;
    follow_the_script(&world);
    world.pass(10.0).await;

    let turns = world.spans.named("conversation.turn");
    assert_eq!(turns[0].links.links.len(), 1);
    let gates = world.spans.named("decision.gate");
    let floors: Vec<_> =
        gates.iter().map(|gate| (attribute(gate, "companion.id"), attribute(gate, "decision.floor"))).take(2).collect();
    let told = |companion: &str, floor: &str| (Some(companion.to_owned()), Some(floor.to_owned()));
    assert_eq!(floors, [told("aria", "lost"), told("bruno", "won")]);
    assert_eq!(
        world.side.asked_for("aria"),
        world.recorded("salon", "evaluate").await.iter().filter(|asked| asked["companion"] == "aria").count() - 1
    );
}
