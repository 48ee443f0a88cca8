//! Actors that die around a round. The round is held nevertheless, and the selected companion speaks once.

use std::collections::BTreeSet;

use super::*;
use crate::actors::runtime::actor_keys::{CompanionKey, GuildKey, GuildsKey, PoolKey, WriterKey};
use crate::actors::runtime::directory::ActorKey as Address;
use crate::journeys::keeping::one_turn;

/// In the open round; as its answers arrive; in the turn delay; while the statement is written; in the round that it opens.
const MOMENTS: [f64; 8] = [0.0, 0.5, 0.999, 1.0, 1.5, 2.9, 3.5, 4.5];

/// No companion was asked twice about the same messages, and each statement was made once.
async fn assert_all_went_well(world: &World, when: f64) {
    assert_eq!(world.history("salon").await, the_whole_talk(), "{when} s");
    let asked = world.recorded("salon", "evaluate").await;
    let questions: BTreeSet<_> = asked.iter().map(|asked| format!("{} {}", asked["companion"], asked["buffer"])).collect();
    assert_eq!(questions.len(), asked.len(), "{when} s: {questions:?}");
    assert_eq!(world.recorded("salon", "error").await.len(), 0, "{when} s");
}

macro_rules! survives {
    ($($name:ident: $place:expr;)+) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                for moment in MOMENTS {
                    let mut world = salon().await;

                    world.say_then_pass("salon", QUESTION, moment).await;
                    world.kill(&$place).await;
                    world.pass(700.0).await;

                    assert_all_went_well(&world, moment).await;
                }
            }
        )+
    };
}

survives! {
    a_channel_that_dies_holds_its_round: ChannelActorKey(room("salon").channel());
    a_companion_that_dies_votes: CompanionKey("home".into(), "bruno".into());
    a_guild_that_dies_holds_its_round: GuildKey("home".into());
    the_guilds_that_die_hold_their_rounds: GuildsKey();
    a_pool_that_dies_asks_again: PoolKey();
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_dies_loses_no_vote() {
    for moment in MOMENTS {
        let mut world = salon().await;

        world.say_then_pass("salon", QUESTION, moment).await;
        world.kill(&WriterKey()).await;
        // A channel with a write in flight restarts.
        world.expect_deaths();
        world.pass(700.0).await;

        assert_all_went_well(&world, moment).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_dies_is_replaced_and_nothing_is_lost() {
    for moment in [0.0, 0.3, 0.5, 0.998] {
        let mut world = salon().await;
        let manager = TurnTakingManagerKey(room("salon").channel());

        world.say_then_pass("salon", QUESTION, moment).await;
        world.kill(&manager).await;
        assert!(world.context.directory.find(&manager).is_some(), "{moment} s");
        world.pass(700.0).await;

        assert_all_went_well(&world, moment).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_lost_with_its_manager_is_asked_for_again() {
    let mut world = salon().await;
    let manager = TurnTakingManagerKey(room("salon").channel());
    world.side.set_delay_for("bruno", Duration::from_secs(2));
    world.say_then_pass("salon", QUESTION, 1.5).await;

    world.kill(&manager).await;
    world.pass(2.1).await;

    assert_eq!(
        (world.side.asked_for("aria"), world.side.asked_for("bruno")),
        (1, 2),
        "only the companion with a missing vote is asked again"
    );
    assert_eq!(world.recorded("salon", "round").await[0]["selected"], "bruno");
    world.pass(700.0).await;
    assert_all_went_well(&world, 1.5).await;
}

#[tokio::test(start_paused = true)]
async fn a_round_whose_managers_keep_dying_is_held_without_one() {
    let mut world = salon().await;
    let manager = TurnTakingManagerKey(room("salon").channel());
    world.say_then_pass("salon", QUESTION, 0.1).await;

    for _ in 0..4 {
        world.kill(&manager).await;
    }
    assert!(world.context.directory.find(&manager).is_none());
    world.pass(700.0).await;

    assert_all_went_well(&world, 0.1).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_steps_of_a_round_loses_and_repeats_nothing() {
    for moment in MOMENTS {
        let world = salon().await;
        world.say_then_pass("salon", QUESTION, moment).await;

        let world = world.crash().await;
        follow_the_script(&world);
        world.pass(700.0).await;

        assert_all_went_well(&world, moment).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_dies_in_a_round_is_started_again() {
    let mut world = salon().await;
    world.say_then_pass("salon", QUESTION, 3.5).await;

    world.kill_replies("salon").await;
    world.pass(700.0).await;

    assert_all_went_well(&world, 3.5).await;
}

/// Kills this number of scheduler steps after the first vote was answered. Messages in the mailbox at that moment are lost.
fn saboteur(world: &World, steps: u32, kill: impl FnOnce() + Send + 'static) -> tokio::task::JoinHandle<()> {
    let answered = std::sync::Arc::new(tokio::sync::Notify::new());
    let first = answered.clone();
    world.side.answer_by(move |request| {
        first.notify_one();
        Some(Ok(vote(request)))
    });
    tokio::spawn(async move {
        answered.notified().await;
        for _ in 0..steps {
            one_turn().await;
        }
        kill();
    })
}

fn kill<P: Address + Send + 'static>(world: &World, place: P) -> impl FnOnce() + Send + 'static {
    let directory = world.context.directory.clone();
    move || {
        if let Some(actor) = directory.find(&place) {
            actor.kill();
        }
    }
}

macro_rules! survives_at_every_step {
    ($($name:ident: $place:expr;)+) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                for steps in 0..24 {
                    let mut world = salon().await;
                    let saboteur = saboteur(&world, steps, kill(&world, $place));

                    world.say_then_pass("salon", QUESTION, 700.0).await;

                    saboteur.await.unwrap();
                    // A manager whose round has ended is not replaced.
                    world.expect_deaths();
                    assert_all_went_well(&world, f64::from(steps)).await;
                }
            }
        )+
    };
}

survives_at_every_step! {
    a_manager_may_die_at_every_step: TurnTakingManagerKey(room("salon").channel());
    a_channel_may_die_at_every_step: ChannelActorKey(room("salon").channel());
    a_companion_may_die_at_every_step: CompanionKey("home".into(), "bruno".into());
    a_pool_may_die_at_every_step: PoolKey();
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_every_step_loses_and_repeats_nothing() {
    for steps in 0..24 {
        let world = salon().await;
        let root = world.root();
        let saboteur = saboteur(&world, steps, move || root.kill());
        world.say("salon", QUESTION).await;
        saboteur.await.unwrap();

        let world = world.crash().await;
        follow_the_script(&world);
        world.pass(700.0).await;

        assert_all_went_well(&world, f64::from(steps)).await;
    }
}
