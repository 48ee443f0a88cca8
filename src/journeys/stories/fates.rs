//! "It ignored me last night": the outcome of a message, for every companion.

use serde_json::json;

use super::super::keeping::write_dead_letter;
use super::super::world::{World, channel_key, room};
use super::{ballot, fates, texts};
use crate::domain::id::Seq;
use crate::ports::backend::decisions::{Brief, Outcome, WhyAt};

#[tokio::test(start_paused = true)]
async fn a_message_that_settled_with_a_later_batch_names_the_decision() {
    let world = World::with_lobby().await;
    let first = world.say_with("lobby", json!({ "from": "Ana", "text": "one", "id": "mine-1" })).await;
    world.say_then_pass("lobby", "two", 30.0).await;

    let by_number = fates(&world, "lobby", &first.to_string()).await;
    let by_id = fates(&world, "lobby", "mine-1").await;

    let decision = world.decisions("lobby").await[0]["seq"].as_u64().map(Seq);
    assert_eq!(by_number, by_id);
    assert_eq!((by_id[0].outcome, by_id[0].seq), (Some(Outcome::Silent), decision));
    assert!(by_id[0].text.starts_with("Aria decided to stay silent"), "{}", by_id[0].text);
}

#[tokio::test(start_paused = true)]
async fn a_message_by_a_companion_and_one_answered_by_another_are_shown_for_each() {
    let world = World::with_salon(json!({})).await;
    world.side.answers([Ok("{\"decision\": \"YES\", \"importance\": 5}"), Ok("{\"decision\": \"NO\"}")]);
    let asked = world.say_then_pass("salon", "Bruno, tell us", 60.0).await;
    let statement = world.recorded("salon", "statement").await[0]["seq"].as_u64().unwrap();

    let question = fates(&world, "salon", &asked.to_string()).await;
    let words = fates(&world, "salon", &statement.to_string()).await;

    assert_eq!(outcomes(&question), [("aria", Outcome::Silent), ("bruno", Outcome::Answered), ("cleo", Outcome::Silent)]);
    assert_eq!(question[1].text, "Ana called Bruno by name, so Bruno thought about an answer. Bruno answered: “Hello!”");
    assert_eq!(outcomes(&words), [("aria", Outcome::Silent), ("bruno", Outcome::Own), ("cleo", Outcome::Silent)]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_shows_for_what() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    let seq = world.say_then_pass("lobby", "two", 4.0).await;

    let explanation = fates(&world, "lobby", &seq.to_string()).await.remove(0);
    let whole = world.why("lobby", Some("aria"), Some(WhyAt::Message(seq.to_string().into()))).await.unwrap();

    assert_eq!(
        (explanation.outcome, &*explanation.text),
        (
            Some(Outcome::Waiting),
            "Aria has not thought about it yet. Aria thinks about an answer after 7 more messages, after 6 seconds of silence, or when \
             somebody speaks to Aria."
        )
    );
    assert_eq!(whole.message, Some(seq));
    assert_eq!(texts(&whole), "message: Ana said: “two”\n");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_deleted_or_cleared_first_says_so() {
    let world = World::with_lobby().await;
    let deleted_message = world.say("lobby", "never mind").await;
    let stays = world.say("lobby", "hello").await;
    world.backend.messages.delete(&room("lobby"), deleted_message).await.unwrap();
    world.rest().await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(60.0).await;

    let deleted = world.why("lobby", None, Some(WhyAt::Message(deleted_message.to_string().into()))).await.unwrap();
    let cleared = fates(&world, "lobby", &stays.to_string()).await;

    assert_eq!(outcomes(&deleted.companions), [("aria", Outcome::Deleted)]);
    assert_eq!(texts(&deleted), "message: Somebody said something that was deleted later.\nchanged: The message was deleted.\n");
    assert_eq!(outcomes(&cleared), [("aria", Outcome::Cleared)]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_was_deleted_says_so() {
    let world = World::with_willing_lobby().await;
    let seq = world.say_then_pass("lobby", "Ari?", 60.0).await;
    let answer = world.recorded("lobby", "message").await.pop().unwrap()["seq"].as_u64().unwrap();
    world.backend.messages.delete(&room("lobby"), Seq(answer)).await.unwrap();
    world.rest().await;

    let explanation = fates(&world, "lobby", &seq.to_string()).await;

    assert_eq!(outcomes(&explanation), [("aria", Outcome::Answered)]);
    assert!(explanation[0].text.ends_with(" Aria answered, and the answer was deleted later."), "{}", explanation[0].text);
}

#[tokio::test(start_paused = true)]
async fn companions_that_joined_later_or_left_first_are_shown_as_such() {
    let world = World::with_lobby().await;
    let seq = world.say("lobby", "hello").await;
    world.open("lobby", &["bruno"]).await;
    world.pass(60.0).await;

    let explanation = fates(&world, "lobby", &seq.to_string()).await;

    assert_eq!(outcomes(&explanation), [("aria", Outcome::Left), ("bruno", Outcome::Absent)]);
    assert!(explanation[1].text.starts_with("Bruno came into the room later"), "{}", explanation[1].text);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_says_so() {
    let world = World::with_lobby().await;
    let seq = world.say("lobby", "poison").await;
    write_dead_letter(&world, seq).await;
    let world = world.crash().await;
    world.pass(60.0).await;

    let explanation = world.why("lobby", Some("aria"), Some(WhyAt::Message(seq.to_string().into()))).await.unwrap();

    assert_eq!(outcomes(&explanation.companions), [("aria", Outcome::DeadLetter)]);
    assert!(
        texts(&explanation).contains("dead_letter: The message made the room fail several times: a bug."),
        "{}",
        texts(&explanation)
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_paused_companion_says_that_it_was_paused() {
    let world = World::with_lobby().await;
    world.patch("lobby", json!({ "paused": true })).await.unwrap();
    let seq = world.say_then_pass("lobby", "Ari?", 5.0).await;

    let explanation = fates(&world, "lobby", &seq.to_string()).await.remove(0);

    assert_eq!(explanation.outcome, Some(Outcome::Silent));
    let expected = "Aria stayed silent without thinking about it, because Aria was paused. The whole room is still paused.";
    assert_eq!(explanation.text, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_arrived_after_the_yes_is_among_the_answered_ones() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 5, "none"))));
    world.say_then_pass("salon", "Bruno?", 1.5).await;
    let late = world.say_then_pass("salon", "quick now", 3.0).await;

    let explanation = world.why("salon", Some("bruno"), Some(WhyAt::Message(late.to_string().into()))).await.unwrap();

    assert_eq!(outcomes(&explanation.companions), [("bruno", Outcome::Answered)]);
    assert!(
        explanation.companions[0].text.starts_with("Ana called Bruno by name, so Bruno thought about an answer. Bruno wanted")
    );
    assert!(explanation.companions[0].text.ends_with(" Bruno answered: “Hello!”"), "{}", explanation.companions[0].text);
    let order = ["“Bruno?”", "turn: Bruno gave", "message: Ana said: “quick now”\n", "respond: "]
        .map(|words| texts(&explanation).find(words));
    assert!(order[0].is_some() && order.is_sorted(), "{}", texts(&explanation));
    assert!(texts(&explanation).contains("decision: Bruno wanted to speak"), "{}", texts(&explanation));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_an_event_that_is_no_message_is_refused() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "one", 30.0).await;
    let last = world.reader().head(&channel_key("lobby")).await.unwrap().last;

    let refused = world.why("lobby", None, Some(WhyAt::Message(last.to_string().into()))).await.unwrap_err();

    assert!(refused.to_string().contains("is the number of an event that is not a message"), "{refused}");
}

fn outcomes(briefs: &[Brief]) -> Vec<(&str, Outcome)> {
    briefs.iter().map(|brief| (brief.companion.as_str(), brief.outcome.unwrap())).collect()
}
