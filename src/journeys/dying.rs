//! Actors that die while something is in progress: no accepted message is lost, and none is answered twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::keeping::one_turn;
use super::world::{World, channel_key, lines, room};
use crate::actors::membership::memberships::CompanionSet;
use crate::actors::runtime::actor_keys::{ChannelActorKey, CompanionKey, GuildKey, PoolKey};
use crate::backend;
use crate::domain::conversation::poison;
use crate::domain::id::{Ticket, Ward};
use crate::journal::key;
use crate::ports::store::Write;
use crate::ports::store::key::ChannelNo;

#[tokio::test(start_paused = true)]
async fn questions_of_a_dying_pool_are_cancelled_and_asked_again_at_once_and_those_of_a_dying_companion_go_on() {
    for kills_pool in [false, true] {
        let mut world = World::with_lobby().await;
        world.side.set_delay(Duration::from_secs(5));
        world.say_then_pass("lobby", "Ari, one", 0.5).await;
        assert_eq!((world.side.asked_for("aria"), world.calls().await), (1, 1));

        if kills_pool {
            world.kill(&PoolKey()).await;
        } else {
            world.kill(&CompanionKey("home".into(), "aria".into())).await;
        }
        world.pass(0.5).await;

        let asked = 1 + usize::from(kills_pool);
        assert_eq!((world.side.asked_for("aria"), world.calls().await), (asked, 1), "the pool: {kills_pool}");
        world.pass(60.0).await;
        assert_eq!(world.side.asked_for("aria"), asked, "the pool: {kills_pool}");
        assert_eq!(world.decisions("lobby").await.len(), 1, "the pool: {kills_pool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_lost_with_its_companion_is_asked_again_at_once() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.side.answers([Ok("Me.\nYES")]);
    world.side.panic_on_identity(3);

    world.say_then_pass("lobby", "Ari, one", 5.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one"), ("aria", "Hello!")]));
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "companion")]), 3);
    assert_eq!(world.total("tertulia_evaluations_unanswered_total", &[]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_lost_with_its_actor_or_the_pool_is_started_again_at_once() {
    for kills_pool in [false, true] {
        let mut world = World::with_lobby().await;
        world.expect_deaths();
        world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
        world.say_then_pass("lobby", "Ari, one", 1.5).await;

        if kills_pool {
            world.kill(&PoolKey()).await;
        } else {
            // A channel's only children while no round is open are the replies in the making.
            let channel = world.context.directory.find(&ChannelActorKey(room("lobby").channel())).expect("it is awake");
            channel.get_children().iter().for_each(ractor::ActorCell::kill);
        }
        world.pass(2.0).await;

        assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one"), ("aria", "Hello!")]), "the pool: {kills_pool}");
        assert_eq!(world.main.asked.lock().len(), 2, "the pool: {kills_pool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_keeps_dying_fails() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.main.panic_on_identity(11);

    world.say_then_pass("lobby", "Ari, one", 10.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one")]));
    assert_eq!(world.recorded("lobby", "failed").await[0]["error"], "unreachable");
    assert_eq!(world.total("tertulia_actor_restarts_total", &[("actor_sort", "reply")]), 10);
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_a_companion_that_is_no_longer_configured_fails_at_once() {
    let mut outcomes = BTreeSet::new();
    for steps in 0..24 {
        let world = World::with_lobby().await;
        let answered = Arc::new(Notify::new());
        let first = answered.clone();
        world.side.answer_by(move |_| {
            first.notify_one();
            Some(Ok("Me.\nYES".to_owned()))
        });
        let memberships = world.context.memberships.clone();
        let reload = tokio::spawn(async move {
            answered.notified().await;
            for _ in 0..steps {
                one_turn().await;
            }
            // The channel is not notified.
            memberships.reload_companions(CompanionSet::new()).unwrap();
        });

        world.say_then_pass("lobby", "Ari, one", 5.0).await;

        reload.await.unwrap();
        let failed = world.recorded("lobby", "failed").await;
        let outcome = failed.first().map_or("posted", |failed| failed["error"].as_str().unwrap()).to_owned();
        assert_eq!(world.history("lobby").await.len(), 1 + usize::from(outcome == "posted"), "{steps} steps");
        outcomes.insert(outcome);
    }
    assert_eq!(outcomes, ["absent", "posted"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_to_a_channel_killed_with_its_guild_is_found_by_the_next_guild() {
    let mut world = World::with_lobby().await;
    world.pass(1_000.0).await;
    let lobby = ChannelActorKey(room("lobby").channel());
    assert!(world.context.directory.find(&lobby).is_none(), "it sleeps");
    let dying = world.replace(lobby, false).await;
    world.kill(&GuildKey("home".into())).await;

    world.side.answers([Ok("Me.\nYES")]);
    world.say_then_pass("lobby", "Ari, one", 1.0).await;
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one")]));
    dying.kill();
    world.pass(60.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one"), ("aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn unreadable_pending_records_keep_no_other_channel_from_waking() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say_then_pass("den", "one", 60.0).await;
    let channel_key = channel_key("den");
    let (den, nobodys) = (world.reader().channel_no(&channel_key).await.unwrap().unwrap(), ChannelNo(900));
    for ward in [Ward(0), channel_key.ward()] {
        let broken = [key::pending(ward, nobodys), key::outbox(ward, den, Ticket(900))];
        world.write(ward, broken.map(|key| Write::Put(key, b"\x01not what it was".to_vec())).to_vec()).await;
    }
    world.say("lobby", "Ari?").await;

    let world = world.crash().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    world.pass(60.0).await;

    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?"), ("aria", "Hello!")]));
    assert_eq!(world.spans.named("actor.restart").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_kills_a_channel_that_reads_it_is_found_among_many() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.store.hold();
    let backend = backend::backend(world.context.clone(), world.store.clone());
    for at in 0..9 {
        let text = if at == 4 { format!("Ari, {}", poison::TAKEN_IN) } else { format!("Ari, {at}") };
        let backend = backend.clone();
        let message = serde_json::from_value(serde_json::json!({ "from": "Ana", "text": text })).unwrap();
        tokio::spawn(async move { backend.messages.say(&room("lobby"), message).await });
    }
    // The first is handled alone. All others queue behind it, and are on record before a channel reads them.
    world.pass(1.0).await;
    world.store.commit_next();
    world.pass(1.0).await;
    world.store.release();
    let mut world = world.crash().await;
    world.expect_deaths();
    world.side.answers([Ok("They mean me.\nYES")]);
    world.pass(600.0).await;

    let quarantine = world.backend.maintenance.quarantine().await.unwrap();
    let details: Vec<_> = quarantine.messages.iter().map(|message| (&*message.room, message.attempts)).collect();
    assert_eq!((quarantine.guilds, details), (Vec::new(), vec![("lobby", 3)]));
    let history = world.history("lobby").await;
    assert!(history.contains(&("aria".into(), "Hello!".into())), "{history:?}");
}
