//! Repeated failures: they are kept from affecting others, shown to the operator, and left for the operator to decide.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, lines, room};
use crate::actors::models::Models;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, WriterKey};
use crate::actors::runtime::switchboard::replace_models;
use crate::domain::conversation::poison;
use crate::ports::chat_platform::fake::{FakePlatform, Fate};
use crate::ports::language_model::NoAnswer;

#[tokio::test(start_paused = true)]
async fn a_message_that_kills_its_channel_is_a_dead_letter_until_the_operator_retries_it() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.open("den", &["bruno"]).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say_then_pass("den", "Bruno?", 60.0).await;
    // The deaths: while it is handled, and twice when its channel continues from the record.
    world.panic_on_draws(3);

    let poison = world.say_then_pass("lobby", "Ari, one", 60.0).await;
    world.say("den", "Bruno again?").await;
    world.say_then_pass("lobby", "Ari, two", 60.0).await;

    let answered = lines(&[("Ana", "Ari, one"), ("Ana", "Ari, two"), ("aria", "Hello!")]);
    assert_eq!(world.history("lobby").await, answered);
    let others = [("Ana", "Bruno?"), ("bruno", "Hello!"), ("Ana", "Bruno again?"), ("bruno", "Hello!")];
    assert_eq!(world.history("den").await, lines(&others));
    let listed = world.backend.maintenance.quarantine().await.unwrap();
    let [entry] = &listed.messages[..] else { panic!("there is not exactly one dead letter: {listed:?}") };
    assert_eq!((entry.seq, entry.attempts, &*entry.room), (poison, 3, "lobby"));
    assert!(entry.detail.contains("as the test planned"), "{}", entry.detail);
    assert_eq!((world.total("tertulia_dead_letters_total", &[]), listed.guilds.len()), (1, 0));
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "channel")]), 3);
    assert_eq!(world.total("tertulia_supervisor_escalations_total", &[]), 0);

    world.backend.maintenance.retry(&entry.id).await.unwrap();
    world.pass(60.0).await;

    let again = lines(&[("Ana", "Ari, two"), ("aria", "Hello!"), ("Ana", "Ari, one"), ("aria", "Hello!")]);
    assert_eq!(world.history("lobby").await, again);
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().messages, []);
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_keeps_failing_is_quarantined_and_others_are_not_affected() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.open_in("away", ["yard".to_owned()]).await;
    world.side.answers([Ok("Me.\nYES")]);
    let mut calm = Vec::new();

    for _ in 0..400 {
        // Kills it whenever it has returned.
        if let Some(channel) = world.context.directory.find(&ChannelActorKey(room("lobby").channel())) {
            channel.kill();
        } else if is_quarantined(&world).await {
            break;
        }
        let _ = world.try_say("lobby", json!({ "from": "Ana", "text": "Ari?" })).await;
        calm.push(world.say("yard", "Ari?").await);
        world.pass(3.5).await;
    }

    let quarantined = world.backend.maintenance.quarantine().await.unwrap().guilds;
    assert_eq!(quarantined.iter().map(|guild| guild.id.as_str()).collect::<Vec<_>>(), ["home"]);
    assert!(quarantined[0].detail.contains("console:lobby"), "{}", quarantined[0].detail);
    assert_eq!(world.total("tertulia_guilds_quarantined", &[]), 1);
    assert_eq!(world.total("tertulia_guild_quarantines_total", &[]), 1);
    assert_eq!(world.total("tertulia_supervisor_escalations_total", &[("actor_sort", "guild")]), 1);
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "guild")]), 1, "as a whole, once");
    world.pass(10.0).await;
    let answers = world.history("yard").await.into_iter().filter(|(from, _)| from == "aria").count();
    assert_eq!(answers, calm.len(), "every message was answered");

    // Messages that arrive meanwhile are stored, and handled once the operator releases the guild.
    world.say_then_pass("lobby", "Ari, at last?", 60.0).await;
    assert!(world.context.directory.find(&GuildKey("home".into())).is_none());
    world.backend.maintenance.release("home").await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history("lobby").await.last().map(|(from, _)| from.as_str()), Some("aria"));
    assert_eq!(world.total("tertulia_guilds_quarantined", &[]), 0);
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().guilds, []);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_model_asks_again_at_once_when_other_models_are_connected() {
    for hangs in [false, true] {
        let world = World::with_lobby().await;
        if hangs {
            world.side.set_delay(Duration::from_secs(1_000));
            world.say_then_pass("lobby", "Ari?", 5.0).await;
        } else {
            let failed = NoAnswer::KeyRejected { endpoint: "scripted".into(), detail: "401".into() };
            world.side.answers([Err(failed.clone()), Err(failed.clone()), Err(failed.clone()), Err(failed)]);
            // Asked at once, and after pauses of 10, 20 and 40 s; the next pause is 80 s.
            world.say_then_pass("lobby", "Ari?", 75.0).await;
        }
        let before = world.history("lobby").await;
        world.side.set_delay(Duration::from_secs(u64::from(!hangs)));
        world.side.answers([Ok("Me.\nYES")]);

        let models = Models::new(world.side.clone(), world.main.clone());
        replace_models((*world.context.settings).clone(), models, &world.context);
        world.pass(10.0).await;

        assert_eq!(before, lines(&[("Ana", "Ari?")]), "hangs: {hangs}");
        assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]), "hangs: {hangs}");
    }
}

#[tokio::test(start_paused = true)]
async fn channels_that_die_together_all_return_with_their_contents() {
    let mut world = World::with_overlay(plenty()).await;
    world.expect_deaths();
    // More than a guild restarts one by one in a minute.
    let rooms: Vec<String> = (0..80).map(|number| format!("room-{number}")).collect();
    world.open_in("home", rooms.clone()).await;
    world.open_in("away", ["yard".to_owned()]).await;
    world.side.answers([Ok("Me.\nYES")]);
    for id in &rooms {
        world.say(id, "Ari?").await;
    }
    world.say_then_pass("yard", "Ari?", 0.5).await;

    for id in &rooms {
        world.context.directory.find(&ChannelActorKey(room(id).channel())).expect("it is awake").kill();
    }
    world.pass(60.0).await;

    for id in &rooms {
        assert_eq!(world.history(id).await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]), "{id}");
    }
    assert_eq!(world.history("yard").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "guild")]), 1, "as a whole, once");
    assert_eq!(world.total("tertulia_guild_quarantines_total", &[]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_guild_is_not_affected_by_a_dying_writer() {
    let mut world = World::with_overlay(plenty()).await;
    world.expect_deaths();
    let rooms: Vec<String> = (0..80).map(|number| format!("room-{number}")).collect();
    world.open_in("home", rooms.clone()).await;
    world.side.answers([Ok("Me.\nYES")]);

    for _ in 0..2 {
        futures_util::future::join_all(rooms.iter().map(|id| world.say(id, "Ari?"))).await;
        // Each channel's events for it are in flight.
        world.store.hold();
        world.pass(1.5).await;
        world.context.directory.find(&WriterKey()).expect("there is one").kill();
        world.store.release();
        world.pass(100.0).await;
    }

    assert_eq!(world.total("tertulia_supervisor_escalations_total", &[]), 0);
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().guilds, []);
    for id in &rooms {
        let history = world.history(id).await;
        assert_eq!(history, lines(&[("Ana", "Ari?"), ("aria", "Hello!"), ("Ana", "Ari?"), ("aria", "Hello!")]), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_prompt_cannot_be_built_kills_no_actor() {
    let world = World::with_lobby().await;
    world.open("den", &["aria"]).await;
    world.side.answers([Ok("Me.\nYES")]);

    world.say_then_pass("lobby", &format!("Ari, {}", poison::WORDED), 5.0).await;
    world.say_then_pass("den", "Ari?", 60.0).await;

    // The world checks on drop that no actor died.
    let without_words = world.total("tertulia_evaluations_unanswered_total", &[("error_type", "no_prompt")]);
    assert!(without_words >= 2);
    assert_eq!(world.history("den").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    // No model is to blame, and none was called for it.
    assert_eq!(world.total("tertulia_pool_no_prompt_total", &[]), without_words);
    assert_eq!(world.total("tertulia_evaluations_unanswered_total", &[]), without_words);
    assert_eq!(world.total("tertulia_pool_panics_total", &[]) + world.total("tertulia_breakers_opened_total", &[]), 0);
    assert_eq!(world.context.pool.report().await.unwrap().troubles, []);
    let waits = world.why("lobby", Some("aria"), None).await.unwrap().waiting_for.unwrap().text;
    assert!(waits.contains("could not be written"), "{waits}");
}

/// The world checks on drop that no actor died of it.
#[tokio::test(start_paused = true)]
async fn a_platform_that_never_answers_or_panics_holds_up_its_channel_for_a_limited_time() {
    for (fate, until) in [(Fate::Hangs, 1_300.0), (Fate::Panics, 60.0)] {
        let platform = Arc::new(FakePlatform::default());
        let world = World::with_platform(platform.clone()).await;
        world.side.answers([Ok("Me.\nYES")]);
        platform.will([fate]);
        world.say("lobby", "Ari, one").await;

        world.pass(until).await;
        world.say_then_pass("lobby", "Ari, two", 60.0).await;

        assert_eq!(platform.posted(), lines(&[("Aria", "Hello!"), ("Aria", "Hello!")]), "each once");
        let expected = [("Ana", "Ari, one"), ("aria", "Hello!"), ("Ana", "Ari, two"), ("aria", "Hello!")];
        assert_eq!(world.history("lobby").await, lines(&expected));
    }
}

/// Models for all callers at once, and no limit on addresses.
fn plenty() -> Value {
    let all = json!({ "max_concurrent": 100, "guild_max_concurrent": 100 });
    json!({ "models": { "side": all, "main": all }, "gate": { "addresses_per_minute": 1_000 } })
}

async fn is_quarantined(world: &World) -> bool {
    !world.backend.maintenance.quarantine().await.unwrap().guilds.is_empty()
}
