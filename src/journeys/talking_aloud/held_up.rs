//! While the store takes nothing, people are heard all the same, and ears that return too much wait.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_said_while_the_store_is_slow_reaches_the_ears() {
    let given = Arc::<AtomicUsize>::default();
    let gives = given.clone();
    let ears = Ears::new(move |mut sounds, results| {
        let gives = gives.clone();
        async move {
            while let Some(sound) = sounds.recv().await {
                gives.fetch_add(1, Ordering::Relaxed);
                if let Sound::Ended(stretch) = sound {
                    let _ = results.send(final_of("hello", stretch.started, stretch.ended, true)).await;
                }
            }
            Ok(())
        }
    });
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    world.store.hold();
    ana.say_something(&world).await;
    let first = given.load(Ordering::Relaxed);
    ana.say_something(&world).await;
    let both = given.load(Ordering::Relaxed);
    world.store.release();
    world.pass(5.0).await;

    assert!(first > 50 && both >= 2 * first - 5, "{first}, then {both}");
    assert_eq!((segments(&world).await, ears.asked()), (vec!["hello".to_owned(); 2], 1));
}

#[tokio::test(start_paused = true)]
async fn ears_that_return_more_than_the_store_takes_wait() {
    let returned = Arc::<AtomicUsize>::default();
    let returns = returned.clone();
    let ears = Ears::new(move |mut sounds, results| {
        let returns = returns.clone();
        async move {
            while let Some(sound) = sounds.recv().await {
                let Sound::Ended(stretch) = sound else { continue };
                for number in 0..300 {
                    let started = stretch.started + Duration::from_micros(number);
                    let _ = results.send(final_of("hello", started, stretch.ended, true)).await;
                    returns.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        }
    });
    let world = world_of(ears, Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    world.store.hold();
    ana.say_something(&world).await;
    let held = returned.load(Ordering::Relaxed);
    world.store.release();
    world.pass(5.0).await;

    assert!((64..70).contains(&held), "{held}");
    assert_eq!((returned.load(Ordering::Relaxed), segments(&world).await.len()), (300, 300));
}
