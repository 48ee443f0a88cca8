//! The connection that carries a whole call is lost, and made again.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::super::world::World;
use super::lobby;
use crate::backend::platform_calls;
use crate::ports::platform_call::{CallConnection, Ended, PlatformCall, PlatformCalls};

/// A connection that ends at once, each time like this, and in the end stays.
struct Brief {
    ends: Mutex<VecDeque<Ended>>,
    made: UnboundedSender<Instant>,
}

#[async_trait]
impl CallConnection for Brief {
    async fn live(&self, _: Arc<dyn PlatformCall>) -> Ended {
        self.made.send(Instant::now()).unwrap();
        let ended = self.ends.lock().pop_front();
        match ended {
            Some(ended) => ended,
            None => pending().await,
        }
    }
}

fn lost(has_worked: bool) -> Ended {
    Ended::Lost { after: None, has_worked, detail: "it is a test".to_owned() }
}

/// The call in the lobby, and when its connection is made.
async fn call(ends: impl IntoIterator<Item = Ended>) -> (World, Arc<dyn PlatformCalls>, UnboundedReceiver<Instant>) {
    let world = World::with_lobby().await;
    let calls = platform_calls(world.context.clone(), world.store.clone());
    let (made, connections) = unbounded_channel();
    calls.begin(&lobby(), None, Arc::new(Brief { ends: Mutex::new(ends.into_iter().collect()), made })).unwrap();
    (world, calls, connections)
}

/// After how many milliseconds the next connection was made.
async fn next(connections: &mut UnboundedReceiver<Instant>, before: &mut Instant) -> u128 {
    let made = connections.recv().await.unwrap();
    let waited = made.duration_since(*before).as_millis();
    *before = made;
    waited
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_worked_is_made_again_at_once_and_one_that_did_not_after_longer_and_longer_pauses() {
    let (_world, _calls, mut connections) = call([false, false, false, true, false, true].map(lost)).await;
    let mut before = connections.recv().await.unwrap();

    for expected in [1_000..1_510, 2_000..3_010, 4_000..6_010, 0..10, 1_000..1_510, 0..10] {
        let waited = next(&mut connections, &mut before).await;
        assert!(expected.contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_may_work_now_is_tried_at_once() {
    let (world, calls, mut connections) = call([false; 6].map(lost)).await;
    let mut before = connections.recv().await.unwrap();
    for _ in 0..5 {
        next(&mut connections, &mut before).await;
    }

    // The next pause is more than half a minute.
    world.rest().await;
    calls.try_again(&lobby().channel);

    let waited = next(&mut connections, &mut before).await;
    assert!(waited < 1_000, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_asks_for_a_pause_has_it() {
    let asked = Ended::Lost { after: Some(Duration::from_secs(60)), has_worked: true, detail: String::new() };
    let (world, calls, mut connections) = call([asked]).await;
    let mut before = connections.recv().await.unwrap();

    world.rest().await;
    calls.try_again(&lobby().channel);

    let waited = next(&mut connections, &mut before).await;
    assert!((60_000..60_010).contains(&waited), "{waited}");
}
