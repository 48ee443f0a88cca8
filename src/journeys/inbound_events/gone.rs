//! Channels and guilds that are gone.

use super::*;
use crate::ports::language_model::NoAnswer;

/// Ana has said something in the channel and in its thread.
async fn world_with_thread() -> World {
    let world = world().await;
    say(&world, "1", "hello").await;
    say_in(&world, &thread(), ana(&world, "2", "hello")).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_deleted_channel_takes_its_messages_and_threads_along() {
    let world = world_with_thread().await;

    inbound_events(&world).channel_gone(&"discord:2".into(), &general().channel).await.unwrap();
    let of_another_guild = world.history("discord:10").await.len();
    inbound_events(&world).channel_gone(&general().guild, &general().channel).await.unwrap();
    inbound_events(&world).channel_gone(&general().guild, &general().channel).await.unwrap();
    inbound_events(&world).channel_gone(&general().guild, &other().channel).await.unwrap();

    assert_eq!(of_another_guild, 1);
    for channel_ref in [general(), thread()] {
        assert!(!inbound_events(&world).listens(&channel_ref));
        assert_eq!(events(&world, &channel_ref).await, 0);
        assert_eq!(inbound_events(&world).said(&channel_ref, ana(&world, "3", "hello?")).await, Ok(Acceptance::Ignored));
    }
    let world = world.crash().await;
    assert!(!inbound_events(&world).listens(&general()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_a_channel_completes_although_its_caller_goes_away() {
    let world = world_with_thread().await;

    for steps in 0..12 {
        let (inbound, guild, channel) = (inbound_events(&world), general().guild, general().channel);
        let mut gone = std::pin::pin!(inbound.channel_gone(&guild, &channel));
        for _ in 0..steps {
            if futures_util::poll!(&mut gone).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    inbound_events(&world).channel_gone(&general().guild, &general().channel).await.unwrap();

    let world = world.crash().await;
    assert_eq!(world.context.memberships.all(), []);
    for channel_ref in [general(), thread()] {
        assert_eq!(events(&world, &channel_ref).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_lost_guild_nothing_continues_and_it_may_return() {
    let world = world().await;
    admit(&world, &other(), "aria").await;
    world.side.answers([Ok("Me.\nYES"), Ok("No.\nNO")]);
    world.main.set_delay(Duration::from_secs(30));
    say(&world, "1", "Ari?").await;
    say_in(&world, &other(), ana(&world, "2", "hello")).await;
    world.pass(5.0).await;
    let before = world.side.asked.lock().len();

    inbound_events(&world).guild_gone(&general().guild).await.unwrap();
    world.pass(600.0).await;

    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "Ari?")]));
    assert_eq!(world.side.asked.lock().len(), before);
    assert_eq!(world.recorded("discord:20", "cleared").await.len(), 1);
    assert!(inbound_events(&world).listens(&general()));
    say(&world, "3", "Ari?").await;
    world.pass(5.0).await;
    assert!(world.side.asked.lock().len() > before);
}

#[tokio::test(start_paused = true)]
async fn a_guild_lost_while_its_channels_sleep_is_cleared_too() {
    let world = world().await;
    world.side.answers([Err(NoAnswer::TimedOut { after: Duration::from_secs(1) })]);
    say(&world, "1", "hello").await;
    world.pass(15.0).await;
    let world = world.crash().await;

    inbound_events(&world).guild_gone(&general().guild).await.unwrap();
    world.pass(3_600.0).await;

    assert_eq!(world.reader().head(&channel_key(&general())).await.unwrap().pending, None);
    assert_eq!(world.decisions("discord:10").await, Vec::<serde_json::Value>::new());
}
