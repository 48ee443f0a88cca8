//! A reply is spoken while the model still writes it.

use super::*;
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::ports::language_model::Role;

const TEXT: &str = "Hello there. It is good to hear you, after all this time. Come in, and sit down.";
const FIRST: &str = "Hello there.";
const PER_WORD: Duration = Duration::from_millis(500);

/// Ana has asked Aria, who writes two words a second, and whose next answers are lost after so many words.
async fn asked(lost_after: impl IntoIterator<Item = usize>) -> (World, Caller) {
    let world = world().await;
    world.main.answer_by(|_| Some(Ok(TEXT.to_owned())));
    world.main.write_at(PER_WORD, lost_after);
    let ana = Caller::enter(&world, "ana").await;
    ana.line.report(PersonAction::Say("Aria, may I come in?".into()));
    (world, ana)
}

async fn statements(world: &World) -> Vec<String> {
    let said = world.history("lobby").await.into_iter().filter(|(by, _)| by == "aria");
    said.map(|(_, text)| text).collect()
}

impl Caller {
    /// Listens until a sentence begins. Returns how long that took.
    async fn listen_for(&self, world: &World, sentence: &str) -> Duration {
        let since = world.context.clock.now();
        let begins = |view: &View| matches!(view, View::Sentence { text, .. } if text.trim() == sentence);
        while !self.page.has(begins) {
            self.listen(world, 0.1).await;
            assert!(world.context.clock.now().since(since) < Duration::from_secs(60), "{:?}", self.page.seen());
        }
        world.context.clock.now().since(since)
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_is_heard_before_the_last_is_written() {
    let (world, ana) = asked([]).await;
    let words = TEXT.split(' ').count() as u32;

    let first = ana.listen_for(&world, FIRST).await;
    let last = ana.listen_for(&world, "Come in, and sit down.").await;
    ana.listen(&world, 10.0).await;

    assert!(first < PER_WORD * words, "{first:?}");
    assert!(first + last > PER_WORD * words, "{last:?}");
    assert!(ana.page.has(|view| matches!(view, View::Done(_))));
    assert_eq!(statements(&world).await, [TEXT]);
    assert_eq!(world.main.asked_for("aria"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sentence_is_heard_before_a_call_of_a_tool_and_the_rest_after_it() {
    let (world, ana) = asked([]).await;
    world.main.answer_by(|request| {
        let has_called = request.messages.iter().any(|message| matches!(message.role, Role::Tool { .. }));
        let text = if has_called { "It is a six." } else { "Let me look.\nCALL roll {\"dice\":\"d6\"}" };
        Some(Ok(text.to_owned()))
    });

    ana.listen_for(&world, "Let me look.").await;
    ana.listen_for(&world, "It is a six.").await;
    ana.listen(&world, 10.0).await;

    assert_eq!(statements(&world).await, ["Let me look. It is a six."]);
    assert_eq!(world.recorded("lobby", "tool_answered").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_after_its_first_sentence_ends_with_it() {
    let (world, ana) = asked([5]).await;

    ana.listen(&world, 40.0).await;

    assert!(ana.page.has(|view| matches!(view, View::Done(_))), "{:?}", ana.page.seen());
    assert_eq!(statements(&world).await, [FIRST]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_before_its_first_sentence_is_asked_again() {
    let (world, ana) = asked([1]).await;

    ana.listen(&world, 40.0).await;

    assert_eq!(statements(&world).await, [TEXT]);
    assert_eq!(world.main.asked_for("aria"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_dies_after_its_first_sentence_is_not_said_again() {
    let (world, ana) = asked([]).await;
    ana.listen_for(&world, FIRST).await;

    // It is not restarted.
    let actor = world.context.directory.find(&ChannelActorKey(channel())).expect("the channel runs");
    actor.get_children().iter().for_each(ractor::ActorCell::kill);
    ana.listen(&world, 40.0).await;

    assert_eq!(statements(&world).await, [FIRST]);
    assert_eq!(world.main.asked_for("aria"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_while_it_is_written_keeps_what_was_heard() {
    let (world, ana) = asked([]).await;
    ana.listen_for(&world, FIRST).await;
    ana.listen(&world, 0.4).await;
    let reply = ana.page.packets.lock().last().unwrap().reply;

    ana.line.report(PersonAction::Stop { reply });
    ana.listen(&world, 40.0).await;

    let [heard] = &statements(&world).await[..] else { panic!("{:?}", ana.page.seen()) };
    assert!(FIRST.starts_with(&**heard) && heard.len() < FIRST.len(), "{heard}");
    assert!(!ana.page.has(|view| matches!(view, View::Sentence { text, .. } if text.trim() != FIRST)));
}
