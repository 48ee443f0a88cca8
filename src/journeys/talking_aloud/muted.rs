//! A platform mutes or deafens the companions in a call: they answer in writing.

use super::daily_limits::answers;
use super::*;
use crate::actors::calls::call_handle::CallHandle;
use crate::actors::calls::joined::Joined;
use crate::actors::inbound::Inbound;
use crate::ports::platform_call::PlatformCall as _;

const TEXT: &str = "Hello there. It is good to hear you.";

/// What a platform plays the call with, beside the page of Ana.
fn attach(world: &World) -> Arc<dyn Line> {
    let call = world.context.calls.get(&channel()).expect("a call");
    Joined::new(CallHandle::new(call, Inbound::new(world.context.clone()))).attach(Arc::<Page>::default())
}

async fn ask(world: &World, ana: &Caller) {
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(world, 12.0).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_muted_answers_in_writing_until_that_is_over() {
    let mut world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    let speaker = attach(&world);
    speaker.report(PersonAction::Silenced(true));
    world.rest().await;

    ask(&world, &ana).await;
    // The call remembers it for whoever is restarted.
    world.kill(&VoiceCallKey(channel())).await;
    ask(&world, &ana).await;
    world.kill(&crate::actors::runtime::actor_keys::ChannelActorKey(channel())).await;
    ask(&world, &ana).await;
    assert_eq!((answers(&world).await, ana.page.packets.lock().len()), (vec![(TEXT.to_owned(), false); 3], 0));

    speaker.report(PersonAction::Silenced(false));
    ask(&world, &ana).await;

    assert_eq!(answers(&world).await[3], (TEXT.to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn who_is_muted_while_preparing_an_answer_writes_it() {
    let world = world().await;
    world.main.write_at(Duration::from_millis(500), []);
    let ana = Caller::enter(&world, "ana").await;
    let speaker = attach(&world);
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    while !ana.page.has(|view| matches!(view, View::Thinking(_, true))) {
        world.pass(0.05).await;
    }

    speaker.report(PersonAction::Silenced(true));
    ana.listen(&world, 12.0).await;

    assert_eq!((answers(&world).await, ana.page.packets.lock().len()), (vec![(TEXT.to_owned(), false)], 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_muted_in_the_middle_of_an_answer_writes_the_rest_once_it_is_written() {
    for per_word in [0, 500] {
        let world = world().await;
        world.main.answer_by(|_| Some(Ok(format!("{TEXT} Come in, and sit down."))));
        world.main.write_at(Duration::from_millis(per_word), []);
        let ana = Caller::enter(&world, "ana").await;
        let speaker = attach(&world);
        ana.hear_the_beginning(&world).await;

        speaker.report(PersonAction::Silenced(true));
        world.rest().await;
        let played = ana.page.packets.lock().len();
        ana.listen(&world, 12.0).await;

        assert_eq!(ana.page.packets.lock().len(), played, "nothing more is spoken");
        assert_eq!(answers(&world).await, [(format!("{TEXT} Come in, and sit down."), true)], "{per_word}");
        assert_eq!(world.recorded("lobby", "interrupted").await[0]["verdict"], "silenced");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_is_not_wanted_any_more_is_not_written() {
    let world = world().await;
    world.main.answer_by(|_| Some(Ok(format!("{TEXT} Come in, and sit down."))));
    world.main.write_at(Duration::from_millis(500), []);
    let ana = Caller::enter(&world, "ana").await;
    let speaker = attach(&world);
    ana.hear_the_beginning(&world).await;

    speaker.report(PersonAction::Silenced(true));
    world.rest().await;
    world.say_with("lobby", json!({ "from": "ana", "text": "never mind" })).await;
    ana.listen(&world, 12.0).await;

    let answers = answers(&world).await;
    assert!(answers[0].1 && TEXT.starts_with(&answers[0].0), "{answers:?}");
}
