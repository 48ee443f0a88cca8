//! Several companions in a room: they vote, one speaks, the others receive its statement, and the talk comes to an end.

use std::time::Duration;

use serde_json::json;

use super::world::{World, asking_companion, ballot, context, lines, purpose, room};
use crate::actors::runtime::actor_keys::TurnTakingManagerKey;
use crate::domain::question_context::Purpose;
use crate::ports::backend::Refused;
use crate::ports::language_model::Request;

const QUESTION: &str = "Ari and Bruno, what of it?";
const TO_CLEO: &str = "Cleo, and you?";
const GOOD_NIGHT: &str = "Good night, all.";
const CALL: &str = "Zed and Bruno, what of it?";

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

/// Aria, Bruno and Cleo, who talk as scripted.
async fn salon() -> World {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|request| Some(Ok(vote(request))));
    world.main.answer_by(|request| Some(Ok(words(request))));
    world
}

/// Bruno, and Zed, whom a program outside plays.
async fn inn() -> World {
    let world = World::new().await;
    world.open_with("inn", json!(["bruno", { "id": "zed", "external": true }])).await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 5, "none"))));
    world
}

#[tokio::test(start_paused = true)]
async fn the_most_important_wish_speaks_and_calls_upon_the_next_until_the_talk_ends() {
    let world = salon().await;

    world.say_then_pass("salon", QUESTION, 2.9).await;
    assert_eq!(world.history("salon").await.len(), 1, "the turn delay is respected");
    world.pass(60.0).await;

    assert_eq!(world.history("salon").await, lines(&[("Ana", QUESTION), ("bruno", TO_CLEO), ("cleo", GOOD_NIGHT)]));
    let rounds = world.recorded("salon", "round").await;
    assert_eq!(rounds.iter().map(|round| round["selected"].as_str()).collect::<Vec<_>>(), [Some("bruno"), Some("cleo"), None]);
    let first = rounds[0]["states"].as_array().unwrap();
    assert_eq!(first.iter().map(|state| &state["importance"]).collect::<Vec<_>>(), [&json!(4.0), &json!(8.0), &json!(0.0)]);
    assert!(world.side.asked.lock().iter().all(|request| matches!(purpose(request), Purpose::Vote { .. })));
    let closing = &world.context.settings.prompt.closing;
    let is_goodbye: Vec<_> = world.main.asked.lock().iter().map(|request| request.user().contains(closing)).collect();
    assert_eq!(is_goodbye, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn states_are_published_as_they_become_known() {
    let world = salon().await;
    world.side.set_delay_for("bruno", Duration::from_secs(2));
    let mut watching = world.watch("salon", None).await;

    world.say("salon", QUESTION).await;
    let began = tokio::time::Instant::now();
    let mut notes = Vec::new();
    while notes.len() < 3 {
        let seen = watching.seen().await.into_iter().filter(|event| event["event"] == "state");
        notes.extend(seen.map(|note| (began.elapsed().as_secs(), note)));
    }

    let published: Vec<_> = notes.iter().map(|(secs, note)| (note["from"].as_str(), note["state"].as_str(), *secs)).collect();
    let [cleo, aria, bruno] = [Some("cleo"), Some("aria"), Some("bruno")];
    assert_eq!(published, [(cleo, Some("listen"), 0), (aria, Some("speak"), 1), (bruno, Some("speak"), 2)]);
    let notes: Vec<_> = notes.into_iter().map(|(_, note)| note).collect();
    assert_eq!(notes[2]["messageId"], world.recorded("salon", "round_opened").await[0]["message_id"].to_string());
    assert!(notes[2]["seq"].is_null());
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
async fn no_answer_is_lost_with_its_manager() {
    let mut world = salon().await;
    world.side.set_delay_for("bruno", Duration::from_secs(2));
    world.say_then_pass("salon", QUESTION, 1.5).await;

    world.kill(&TurnTakingManagerKey(room("salon").channel())).await;
    world.pass(2.1).await;

    assert_eq!((world.side.asked_for("aria"), world.side.asked_for("bruno")), (1, 1));
    assert_eq!(world.recorded("salon", "round").await[0]["selected"], "bruno");
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

    let vote = json!({ "from": "zed", "messageId": "1", "state": "speak", "importance": 9, "selected": false });
    let refused = world.vote("inn", vote).await;

    assert!(matches!(&refused, Err(Refused::Conflict(detail)) if detail.starts_with("no round is open")), "{refused:?}");
    manager.stop_and_wait(None, None).await.unwrap();
}
