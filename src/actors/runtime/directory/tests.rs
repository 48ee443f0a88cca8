use ractor::{Actor, ActorProcessingErr};

use super::*;

#[tokio::test(start_paused = true)]
async fn an_actor_is_found_under_its_address() {
    let directory = Directory::new();
    let actor = listener::<u8>().await;
    let _entry = directory.register(&TestKey("lobby"), &actor);

    let found = directory.find(&TestKey("lobby"));

    assert_eq!(found, Some(actor));
    assert_eq!(directory.find(&TestKey("attic")), None);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_actor_replaces_its_predecessor() {
    let directory = Directory::new();
    let (old, new) = (listener::<u8>().await, listener::<u8>().await);
    let old_entry = directory.register(&TestKey("lobby"), &old);
    let _new_entry = directory.register(&TestKey("lobby"), &new);

    drop(old_entry);

    assert_eq!(directory.find(&TestKey("lobby")), Some(new));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_entry_is_removed() {
    let directory = Directory::new();
    let entry = directory.register(&TestKey("lobby"), &listener::<u8>().await);

    drop(entry);

    assert_eq!(directory.find(&TestKey("lobby")), None);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_actor_is_not_found() {
    let directory = Directory::new();
    let actor = listener::<u8>().await;
    let _entry = directory.register(&TestKey("lobby"), &actor);

    actor.stop_and_wait(None, None).await.expect("it stops");

    assert_eq!(directory.find(&TestKey("lobby")), None);
}

#[tokio::test(start_paused = true)]
async fn two_systems_do_not_see_each_other() {
    let (one, other) = (Directory::new(), Directory::new());
    let actor = listener::<u8>().await;

    let _entry = one.register(&TestKey("lobby"), &actor);

    assert_eq!(other.find(&TestKey("lobby")), None);
}

struct TestKey(&'static str);

impl ActorKey for TestKey {
    type Message = u8;

    fn address(&self) -> Address {
        Address::Channel(self.0.into())
    }
}

struct Listener<M>(std::marker::PhantomData<fn() -> M>);

impl<M: Message + Sync> Actor for Listener<M> {
    type Msg = M;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

async fn listener<M: Message + Sync>() -> ActorRef<M> {
    Actor::spawn(None, Listener(std::marker::PhantomData), ()).await.expect("it starts").0
}
