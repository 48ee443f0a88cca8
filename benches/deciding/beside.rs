//! What stands beside deciding: handing a message to a channel's actor, and having it on disk.

use std::fs::File;

use divan::Bencher;
use divan::counter::ItemsCount;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

/// Messages that are handed over before it is waited for the last to be handled.
const BURST: usize = 1_000;

/// Counts down, and tells when it is done.
struct Counter;

enum Counted {
    One,
    Last(oneshot::Sender<()>),
}

impl Actor for Counter {
    type Msg = Counted;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Counted>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Counted>, message: Counted, count: &mut u64) -> Result<(), ActorProcessingErr> {
        *count += 1;
        if let Counted::Last(told) = message {
            let _ = told.send(());
        }
        Ok(())
    }
}

/// Handing messages to an actor, which handles them.
#[divan::bench]
fn beside_handing_over_to_an_actor(bencher: Bencher<'_, '_>) {
    let runtime = Runtime::new().expect("a runtime");
    let (actor, _) = runtime.block_on(Actor::spawn(None, Counter, ())).expect("an actor");
    bencher.counter(ItemsCount::new(BURST)).bench_local(|| {
        for _ in 1..BURST {
            let _ = actor.cast(Counted::One);
        }
        let (tell, told) = oneshot::channel();
        let _ = actor.cast(Counted::Last(tell));
        runtime.block_on(told)
    });
    actor.stop(None);
}

/// Handing them to a task.
#[divan::bench]
fn beside_handing_over_to_a_task(bencher: Bencher<'_, '_>) {
    let runtime = Runtime::new().expect("a runtime");
    let (task, mut tasks) = mpsc::unbounded_channel();
    runtime.spawn(async move {
        while let Some(message) = tasks.recv().await {
            if let Counted::Last(told) = message {
                let _ = told.send(());
            }
        }
    });
    bencher.counter(ItemsCount::new(BURST)).bench_local(|| {
        for _ in 1..BURST {
            let _ = task.send(Counted::One);
        }
        let (tell, told) = oneshot::channel();
        let _ = task.send(Counted::Last(tell));
        runtime.block_on(told)
    });
}

/// Handing one to an actor and waiting until it is handled: a channel that slept in the meantime.
#[divan::bench]
fn beside_calling_an_actor(bencher: Bencher<'_, '_>) {
    let runtime = Runtime::new().expect("a runtime");
    let (actor, _) = runtime.block_on(Actor::spawn(None, Counter, ())).expect("an actor");
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        let (tell, told) = oneshot::channel();
        let _ = actor.cast(Counted::Last(tell));
        runtime.block_on(told)
    });
    actor.stop(None);
}

/// Committing one record to sled so that it survives power loss, as the writer does for a group.
#[divan::bench(sample_count = 50)]
fn beside_a_commit(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let db = sled::open(folder.path()).expect("a store");
    let file = File::open(folder.path().join("db")).expect("its file");
    let mut key = 0_u64;
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        key += 1;
        db.insert(key.to_be_bytes(), &[7_u8; 200][..]).expect("it is written");
        db.flush().expect("it is flushed");
        file.sync_data().expect("it is synced");
    });
}
