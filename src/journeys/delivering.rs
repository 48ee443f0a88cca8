//! Statements on their way to a platform: each part is posted once, whatever dies, fails or does not answer.

use std::sync::Arc;
use std::time::Duration;

use super::world::{World, lines, room};
use crate::actors::inbound::Inbound;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{OutboxWrite, Record, Request, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::domain::event::Event;
use crate::domain::id::Ticket;
use crate::journal::record::{OutboxRecord, PartRecord};
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Edit;
use crate::ports::chat_platform::fake::{FakePlatform, Fate, TAKES};
use crate::ports::chat_platform::{NotRead, NotSent};
use crate::ports::inbound_events::{ChannelRef, InboundEvents as _};
use crate::samples::lobby;

/// Three times longer than the platform's shortest parts.
const LONG: &str = "First comes a sentence. Then there is another one. And then the third ends it.";

/// How `LONG` is cut.
const PARTS: [&str; 3] = ["First comes a sentence.", "Then there is another one.", "And then the third ends it."];

#[tokio::test(start_paused = true)]
async fn a_statement_is_posted_and_put_on_record_and_does_not_count_as_the_newest_message_received() {
    let (platform, world) = asked("Hello!").await;
    let channel_ref = ChannelRef { guild: lobby().guild, channel: lobby().channel, parent: None };

    world.pass(60.0).await;

    delivered(&platform, &world, 1).await;
    assert_eq!(platform.pictures(), [Some("https://example.org/aria.png".into())]);
    // Earlier messages, sent while no connection was up, may still have to be read.
    assert_eq!(Inbound::new(world.context.clone()).reached(&channel_ref).await.unwrap().unwrap().newest, None);
}

#[tokio::test(start_paused = true)]
async fn a_channel_without_its_platform_sleeps_and_keeps_its_owed_replies() {
    let (platform, world) = asked("Hello!").await;
    world.main.set_delay(Duration::from_secs(21));
    world.pass(5.0).await;

    let world = world.crash_with_platform(None).await;
    world.pass(60.0).await;

    assert_eq!((owed(&world).await, world.main.asked_for("aria")), (1, 0));
    let world = world.crash_with_platform(Some(platform.clone())).await;
    world.pass(60.0).await;
    assert_eq!((platform.posted(), owed(&world).await), (lines(&[("Aria", "Hello!")]), 0));
}

#[tokio::test(start_paused = true)]
async fn a_typing_indicator_shows_while_the_model_writes() {
    let (platform, world) = asked("Hello!").await;
    world.main.set_delay(Duration::from_secs(21));

    world.pass(60.0).await;

    assert_eq!(platform.typed(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_long_statement_is_sent_in_parts_found_by_the_id_of_each_and_is_being_sent_meanwhile() {
    let (platform, world) = asked_for_long().await;

    world.pass(60.0).await;

    assert_eq!(texts(&platform), PARTS);
    let reader = world.reader();
    let by_id = [reader.message(&lobby(), "1").await.unwrap(), reader.message(&lobby(), "3").await.unwrap()];
    assert!(by_id[0].is_some() && by_id[0] == by_id[1], "{by_id:?}");
    let took = |name: &str| {
        let spans = world.spans.named(name);
        let [span] = &spans[..] else { panic!("expected one span {name}") };
        span.end_time.duration_since(span.start_time).unwrap().as_millis()
    };
    assert_eq!((took("invoke_agent Aria"), took("send console")), (1_000, 3 * TAKES.as_millis()));
}

#[tokio::test(start_paused = true)]
async fn a_posted_statement_is_edited_and_deleted_where_it_was_posted() {
    let (platform, world) = asked_for_long().await;
    world.pass(60.0).await;
    let statement = world.reader().message(&lobby(), "1").await.unwrap().unwrap();
    let edit = async |text: &str| world.backend.messages.edit(&room("lobby"), statement, Edit { text: text.into() }).await;
    let stored = async || world.reader().event(&lobby(), statement).await.unwrap();
    let text = async || match stored().await.map(|recorded| recorded.event) {
        Some(Event::Said { message, .. }) => message.text.to_string(),
        _ => panic!("no message"),
    };

    assert!(matches!(edit(&format!("{LONG} {LONG}")).await, Err(Refused::Invalid { .. })), "it takes more messages");
    platform.will([Fate::Fails(NotSent::Refused("no".into()))]);
    assert!(matches!(edit("Short.").await, Err(Refused::Conflict(_))));
    assert_eq!((texts(&platform).len(), text().await), (3, LONG.to_owned()));
    edit("Shorter than it was before. But long.").await.unwrap();
    assert_eq!(texts(&platform), ["Shorter than it was before.", "But long."]);
    let channel_ref = ChannelRef { guild: lobby().guild, channel: lobby().channel, parent: None };
    Inbound::new(world.context.clone()).deleted(&channel_ref, &["3".into()]).await.unwrap();
    assert_eq!(text().await, "Shorter than it was before. But long.");
    world.backend.messages.delete(&room("lobby"), statement).await.unwrap();

    assert_eq!((texts(&platform).len(), text().await), (0, String::new()));
}

#[tokio::test(start_paused = true)]
async fn earlier_posts_of_the_same_words_are_not_taken_for_a_part_that_never_arrived() {
    let (platform, world) = asked("Hello!").await;
    world.pass(60.0).await;
    platform.forgets();
    platform.will([Fate::Fails(cut_off())]);
    asked_again(&world).await;

    world.pass(60.0).await;

    delivered(&platform, &world, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_part_recorded_with_the_id_of_another_message_is_looked_up_again() {
    let (platform, world) = asked("Hello!").await;
    world.pass(60.0).await;
    asked_again(&world).await;
    world.pass(1.5).await;
    let world = world.crash_with_platform(None).await;
    let (ticket, owed_before) = world.reader().outbox(&lobby()).await.unwrap().remove(0);
    let mistaken = OutboxRecord { text: Some("Hello!".into()), parts: vec![PartRecord::Sent { id: "1".into() }], ..owed_before };
    put_owed(&world, ticket, mistaken).await;

    let world = world.crash_with_platform(Some(platform.clone())).await;
    world.pass(60.0).await;

    delivered(&platform, &world, 2).await;
}

#[tokio::test(start_paused = true)]
async fn no_part_is_sent_after_one_with_unknown_outcome() {
    let (platform, world) = asked_for_long().await;
    platform.will([Fate::Fails(cut_off())]);
    platform.hides(NotRead::Never("no permission".into()));

    world.pass(120.0).await;

    assert_eq!(platform.posted(), lines(&[]));
    assert_eq!(owed(&world).await, 0);
    // It may have arrived, so it counts as said. It is not counted as posted.
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one"), ("aria", "First comes a sentence.")]));
    let sends = |outcome| world.total("tertulia_platform_sends_total", &[("send_outcome", outcome)]);
    assert_eq!((sends("unconfirmed"), sends("posted")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn no_model_is_asked_while_nothing_can_be_posted() {
    let (platform, world) = asked("Hello!").await;
    // The failure is found out while the statement is written, and known from then on.
    platform.will([Fate::Fails(NotSent::Unpostable("no permission".into()))]);
    world.pass(60.0).await;
    platform.takes_nothing(true);
    let calls = || world.side.asked_for("aria") + world.main.asked_for("aria");
    let before = calls();

    for text in ["Ari, two", "Ari, three", "Ari, four"] {
        world.say_then_pass("lobby", text, 60.0).await;
    }

    assert_eq!((before, calls()), (2, 2));
    let decisions = world.decisions("lobby").await;
    let unpostable: Vec<_> = decisions.iter().filter(|decision| decision["reason"] == "unpostable").collect();
    assert_eq!(unpostable.len(), 3, "{decisions:?}");
    assert!(unpostable.iter().all(|decision| decision["decision"] == "NO" && decision["trigger"] == "direct_address"));
    platform.takes_nothing(false);
    asked_again(&world).await;
    world.pass(60.0).await;
    assert_eq!(platform.posted(), lines(&[("Aria", "Hello!")]));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_could_not_be_posted_is_not_written() {
    let platform = Arc::<FakePlatform>::default();
    let world = World::with_platform(platform.clone()).await;
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.side.set_delay(Duration::from_secs(5));
    world.say_then_pass("lobby", "Ari, one", 2.0).await;

    platform.takes_nothing(true);
    world.pass(60.0).await;

    assert_eq!((world.side.asked_for("aria"), world.main.asked_for("aria")), (1, 0));
    assert_eq!(world.recorded("lobby", "failed").await.len(), 1);
    assert_eq!(owed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_long_outage_fail_the_reply_and_a_short_one_does_not() {
    let refused = NotSent::Refused("AutoMod".into());
    let barred = NotSent::Unpostable("no permission".into());
    for (error, times, code) in [
        (later(None), 5, None),
        (later(None), 40, Some("undelivered")),
        (cut_off(), 1_000, Some("undelivered")),
        (refused, 1, Some("post_refused")),
        (barred, 1, Some("unpostable")),
    ] {
        let (platform, world) = asked("Hello!").await;
        platform.will((0..times).map(|_| Fate::Fails(error.clone())));

        world.pass(1_500.0).await;

        assert_eq!(platform.posted().len(), usize::from(code.is_none()), "{error:?}, {times} times");
        let failed = world.recorded("lobby", "failed").await;
        assert_eq!(
            failed.iter().map(|failed| &failed["error"]).collect::<Vec<_>>(),
            Vec::from_iter(code),
            "{error:?}, {times} times"
        );
        if let Some(code) = code {
            assert_eq!(world.total("tertulia_statements_failed_total", &[("error_type", code)]), 1);
        }
        assert_eq!(owed(&world).await, 0, "{error:?}, {times} times");
    }
}

#[tokio::test(start_paused = true)]
async fn clearing_stops_further_parts_and_keeps_posted_parts_on_record() {
    let (platform, world) = asked_for_long().await;
    // In the middle of the second part.
    world.pass(2.8).await;

    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(texts(&platform), PARTS[..2]);
    assert_eq!(world.history("lobby").await[1], ("aria".to_owned(), PARTS[..2].join("\n")));
    assert_eq!(owed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_room_recreated_after_its_deletion_repeats_no_nonce() {
    let (platform, world) = asked("Hello!").await;
    world.pass(60.0).await;
    world.delete_room("lobby").await;

    world.open("lobby", &["aria"]).await;
    asked_again(&world).await;
    world.pass(60.0).await;

    assert_eq!(platform.posted(), lines(&[("Aria", "Hello!"), ("Aria", "Hello!")]));
    assert_ne!(platform.nonces()[0], platform.nonces()[1]);
}

#[tokio::test(start_paused = true)]
async fn a_part_sent_again_after_a_crash_has_the_same_nonce() {
    let (platform, world) = asked("Hello!").await;
    // It was sent and posted, and the sender got no answer.
    platform.will([Fate::Hangs]);
    world.pass(2.5).await;
    platform.loses_sight();

    let world = world.crash_with_platform(Some(platform.clone())).await;
    world.pass(60.0).await;

    assert_eq!(platform.posted().len(), 2);
    assert_eq!(platform.nonces()[0], platform.nonces()[1]);
}

#[tokio::test(start_paused = true)]
async fn a_part_is_looked_up_under_the_name_it_was_sent_with_after_a_reload() {
    let (platform, mut world) = asked("Hello!").await;
    platform.will([Fate::Silent]);
    world.pass(4.0).await;

    world.reload_companions(&["ben"]).await;
    world.kill(&ChannelActorKey(room("lobby").channel())).await;
    world.pass(60.0).await;

    delivered(&platform, &world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn repeated_words_are_not_taken_for_a_dropped_statement_that_never_arrived() {
    let (platform, world) = asked("Hello!").await;
    platform.will([Fate::Fails(cut_off()), Fate::Silent]);
    world.pass(4.0).await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();

    asked_again(&world).await;
    world.pass(120.0).await;

    assert_eq!(platform.posted(), lines(&[("Aria", "Hello!")]));
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari, one"), ("Ana", "Ari, two"), ("aria", "Hello!")]));
    assert_eq!(owed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_statement_whose_commit_is_lost_is_a_send_that_failed() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari, one", 1.9).await;
    world.store.hold();
    world.pass(0.5).await;

    world.kill(&WriterKey()).await;
    world.store.release();
    world.pass(60.0).await;

    let sends = |outcome| world.total("tertulia_platform_sends_total", &[("platform", "console"), ("send_outcome", outcome)]);
    assert_eq!((sends("failed"), sends("posted")), (1, 1), "it was sent again, and stored once");
    assert_eq!(world.history("lobby").await.len(), 2);
}

/// `Hello!` was posted as often as Ana asked, each is on record after its question, and no reply is owed.
async fn delivered(platform: &FakePlatform, world: &World, times: usize) {
    assert_eq!(platform.posted(), lines(&[("Aria", "Hello!"); 2][..times]));
    let talk = [("Ana", "Ari, one"), ("aria", "Hello!"), ("Ana", "Ari, two"), ("aria", "Hello!")];
    assert_eq!(world.history("lobby").await, lines(&talk[..2 * times]));
    assert_eq!(owed(world).await, 0);
}

fn texts(platform: &FakePlatform) -> Vec<String> {
    platform.posted().into_iter().map(|(_, text)| text).collect()
}

fn cut_off() -> NotSent {
    NotSent::Unknown { detail: "cut off".into(), within: Duration::from_secs(10) }
}

/// A world in which Aria was just addressed and will say this, and the platform of its lobby.
async fn asked(words: &'static str) -> (Arc<FakePlatform>, World) {
    let platform = Arc::<FakePlatform>::default();
    let world = World::with_platform(platform.clone()).await;
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.main.answers([Ok(words)]);
    world.say("lobby", "Ari, one").await;
    (platform, world)
}

/// The same, with a statement of three parts.
async fn asked_for_long() -> (Arc<FakePlatform>, World) {
    let (platform, world) = asked(LONG).await;
    platform.takes_at_most(32);
    (platform, world)
}

/// Aria is addressed once more, and says the same.
async fn asked_again(world: &World) {
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.main.answers([Ok("Hello!")]);
    world.say("lobby", "Ari, two").await;
}

/// Stores an owed reply of the lobby, with how far its statement was posted.
pub(super) async fn put_owed(world: &World, ticket: Ticket, owed: OutboxRecord) {
    let (reply, committed) = Reply::awaited();
    let outbox = vec![OutboxWrite::Put(ticket, owed)];
    let (at, made, usage) = (world.context.clock.now(), Vec::new(), Vec::new());
    let record = Record { channel_key: lobby(), at, made, quiet: None, snapshot: None, outbox, usage, reply };
    let writer = world.context.directory.find(&WriterKey()).unwrap();
    writer.cast(WriterMessage::Request(Request::Record(record))).unwrap();
    committed.await.unwrap().unwrap();
}

async fn owed(world: &World) -> usize {
    world.reader().outbox(&lobby()).await.unwrap().len()
}

fn later(secs: Option<u64>) -> NotSent {
    NotSent::Later { after: secs.map(Duration::from_secs), detail: "busy".into() }
}
