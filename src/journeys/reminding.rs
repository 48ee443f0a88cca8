//! Reminders: due once, by the machine's clock, in rooms that sleep and over restarts; posted by the server if no companion says them; and erased.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;

use super::retaining::left_of;
use super::world::{World, channel_key, lines, refusal, room};
use crate::actors::erasure::retention;
use crate::actors::writer::requests::look;
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::PersonId;
use crate::domain::message::Author;
use crate::domain::reminders::{MOST_OPEN, NewReminder};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::reminder_service::ReminderView;
use crate::ports::chat_platform::NotSent;
use crate::ports::chat_platform::fake::{FakePlatform, Fate};
use crate::ports::language_model::{LanguageModel as _, Role};
use crate::settings::models;

const LOBBY: &str = "lobby";
const MINUTE: f64 = 60.0;
const DUE: (&str, &str) = ("Ana", "Reminder for Ana: feed the cat");
const POSTED: (&str, &str) = ("Ana", "Ana, here is your reminder: feed the cat");

fn in_minutes(minutes: f64) -> NewReminder {
    NewReminder {
        of: Author::of_name("Ana".into()),
        text: "feed the cat".into(),
        at: None,
        in_minutes: Some(minutes),
        zone: None,
        companion: Some("aria".into()),
        asked: Vec::new(),
    }
}

async fn remind(world: &World, minutes: f64) -> u64 {
    world.backend.reminders.remind(&room(LOBBY), in_minutes(minutes)).await.unwrap().reminder.id
}

async fn open(world: &World) -> Vec<ReminderView> {
    world.backend.reminders.reminders(&room(LOBBY), None).await.unwrap()
}

async fn is_asleep(world: &World) -> bool {
    look(&world.context, &channel_key(LOBBY).channel).await.is_none()
}

#[tokio::test(start_paused = true)]
async fn a_reminder_wakes_its_room_and_is_said_once() {
    let world = World::with_lobby().await;
    world.main.answers([Ok("Ana, your cat is hungry.")]);
    remind(&world, 60.0).await;
    world.pass(59.0 * MINUTE).await;
    let before = (is_asleep(&world).await, world.history(LOBBY).await, open(&world).await.len());

    world.pass(2.0 * MINUTE).await;

    assert_eq!(before, (true, lines(&[]), 1));
    let said = lines(&[DUE, ("aria", "Ana, your cat is hungry.")]);
    assert_eq!((world.history(LOBBY).await, open(&world).await), (said.clone(), Vec::new()));
    let why = world.why(LOBBY, Some("aria"), None).await.unwrap();
    assert_eq!(why.story[0].text, "A reminder that Ana had set was due: “Reminder for Ana: feed the cat”");
    let counted = |fate| world.total("tertulia_reminders_total", &[("reminder_fate", fate)]);
    assert_eq!([counted("set"), counted("due"), counted("posted")], [1, 1, 0]);
    assert_eq!(world.spans.named("reminder.announce").len(), 1);
    let world = world.crash().await;
    world.pass(3_600.0).await;
    assert_eq!(world.history(LOBBY).await, said);
}

#[tokio::test(start_paused = true)]
async fn a_reminder_that_was_due_during_a_downtime_says_when() {
    let world = World::with_lobby().await;
    for text in ["feed the cat", "water the plants"] {
        let new = NewReminder { text: text.into(), ..in_minutes(10.0) };
        world.backend.reminders.remind(&room(LOBBY), new).await.unwrap();
    }
    world.rest().await;

    world.set_clock(86_400);
    let world = world.crash().await;
    world.pass(10.0 * MINUTE).await;

    let late = |what: &str| format!("Reminder for Ana: {what} (This was due at 2026-05-01 12:10.)");
    let (cat, plants) = (late("feed the cat"), late("water the plants"));
    let answer = ("aria", "Hello!");
    assert_eq!(world.history(LOBBY).await, lines(&[("Ana", &*cat), ("Ana", &*plants), answer, answer]));
}

#[tokio::test(start_paused = true)]
async fn a_reminder_is_due_by_the_machines_clock_however_it_is_set() {
    let world = World::with_lobby().await;
    remind(&world, 10.0).await;

    world.set_clock(-3_600);
    world.pass(30.0 * MINUTE).await;
    let set_back = world.history(LOBBY).await;
    world.set_clock(7_200);
    world.pass(2.0 * MINUTE).await;
    let ahead = world.history(LOBBY).await;
    world.set_clock(-7_200);
    world.pass(60.0 * MINUTE).await;

    assert_eq!(set_back, lines(&[]));
    assert_eq!(ahead.len(), 2, "{ahead:?}");
    assert_eq!(world.history(LOBBY).await, ahead);
    // Another one that is set while the room's own clock is ahead of the machine's.
    remind(&world, 10.0).await;
    world.pass(9.0 * MINUTE).await;
    assert_eq!(world.history(LOBBY).await.len(), 2);
    world.pass(2.0 * MINUTE).await;
    assert_eq!(world.history(LOBBY).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_crash_around_its_time_loses_and_repeats_nothing() {
    for ms in (0..3_000).step_by(125) {
        let world = World::with_lobby().await;
        remind(&world, 1.0).await;
        world.pass(59.0 + f64::from(ms) / 1_000.0).await;

        let world = world.crash().await;
        world.pass(30.0).await;

        assert_eq!(world.history(LOBBY).await, lines(&[DUE, ("aria", "Hello!")]), "{ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_companion_says_the_server_posts_once() {
    for case in ["failing", "paused", "deserted"] {
        let world = World::with_lobby().await;
        world.main.answers([Err(refusal())]);
        remind(&world, 10.0).await;
        match case {
            "paused" => drop(world.patch(LOBBY, json!({ "paused": true })).await),
            "deserted" => drop(world.put_room(LOBBY, json!({ "guild": "home", "companions": [] })).await),
            _ => {}
        }

        world.pass(15.0 * MINUTE).await;

        let said = lines(&[DUE, POSTED]);
        assert_eq!(world.history(LOBBY).await, said, "{case}");
        let history = world.try_history(LOBBY).await.unwrap();
        let posted = WhyAt::Message(history.messages[1].seq.to_string().into());
        let why = world.why(LOBBY, None, Some(posted)).await.unwrap();
        let expected = format!("No companion said the reminder, so the server posted it: “{}”", POSTED.1);
        assert_eq!(why.story[0].text, expected, "{case}");
        let world = world.crash().await;
        world.pass(60.0 * MINUTE).await;
        assert_eq!(world.history(LOBBY).await, said, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_platform_the_server_posts_it_as_itself_and_tries_again() {
    let platform = Arc::new(FakePlatform::default());
    let world = World::with_platform(platform.clone()).await;
    world.main.answers([Err(refusal())]);
    platform.will([Fate::Fails(NotSent::Unpostable("no".into()))]);
    remind(&world, 10.0).await;

    world.pass(15.0 * MINUTE).await;
    assert_eq!(platform.announced(), Vec::<String>::new());
    let world = world.crash().await;
    world.pass(60.0 * MINUTE).await;

    let late = format!("{} (This was due at 12:10.)", POSTED.1);
    assert_eq!(platform.announced(), [&*late]);
    assert_eq!((world.history(LOBBY).await, platform.posted()), (lines(&[DUE, ("Ana", &*late)]), Vec::new()));
}

/// Aria calls the tool when she is addressed, and says something when it has answered, or when a reminder is due.
async fn with_tool(call: &'static str) -> World {
    let world = World::with_willing_lobby().await;
    script(&world, call);
    world
}

fn script(world: &World, call: &'static str) {
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answer_by(move |request| {
        let is_answered = request.messages.iter().any(|message| matches!(message.role, Role::Tool { .. }));
        let is_offered = request.tools.iter().any(|tool| tool.name == "remind");
        Some(Ok(if is_offered && !is_answered { call.to_owned() } else { "Meow.".to_owned() }))
    });
}

/// The built-in model answers.
fn rehearse(world: &World) {
    let model = Rehearsal::new(&models::Rehearsal { seed: 7, pace: 0.0 });
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answer_by(move |request| {
        let answer = model.ask(request, None).now_or_never()?.ok()?;
        let calls = answer.tool_calls.iter().map(|call| format!("CALL {} {}\n", call.name, call.arguments)).collect::<String>();
        Some(Ok(if calls.is_empty() { answer.text().into_owned() } else { calls }))
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_a_companion_writes_is_not_lost() {
    let world = World::with_lobby().await;
    rehearse(&world);
    world.main.set_delay(Duration::from_secs(8));

    world.say_then_pass(LOBBY, "Ari, roll two dice please", 6.0).await;
    let asked = world.say_then_pass(LOBBY, "Ari, remind me in ten minutes to feed Mora", 60.0).await;

    let said: String =
        world.history(LOBBY).await.into_iter().filter(|(who, _)| who == "aria").map(|(_, text)| text + "\n").collect();
    assert!(said.contains("I rolled 2d6: ") && said.contains("reminder 1 is set"), "{said}");
    assert_eq!(open(&world).await.iter().map(|one| &*one.text).collect::<Vec<_>>(), ["feed Mora"]);
    world.backend.messages.delete(&room(LOBBY), asked).await.unwrap();
    assert_eq!((open(&world).await, left_of("feed Mora", &world).await), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_reminder_is_said_beside_the_answer_to_somebody_else() {
    let world = World::with_lobby().await;
    rehearse(&world);
    world.side.set_delay(Duration::from_secs(4));
    remind(&world, 1.0).await;
    world.pass(58.0).await;

    let hello = world.say_with(LOBBY, json!({ "from": "Nora", "text": "Hello Ari!" })).await;
    world.pass(60.0).await;

    let history = world.history(LOBBY).await;
    let [hers, due, (_, answer)] = &history[..] else { panic!("{history:?}") };
    assert_eq!([hers, due], [&("Nora".to_owned(), "Hello Ari!".to_owned()), &(DUE.0.to_owned(), DUE.1.to_owned())]);
    let (reminder, greeting) = answer.split_once('\n').unwrap();
    assert_eq!(reminder, POSTED.1);
    assert!(greeting.contains("Nora"), "{answer}");
    let prompt = world.main.asked.lock()[0].messages.iter().map(|message| message.words().into_owned()).collect::<String>();
    assert!(prompt.contains("you must acknowledge now"), "{prompt}");
    let why = world.why(LOBBY, None, Some(WhyAt::Message(hello.to_string().into()))).await.unwrap();
    assert!(why.companions[0].text.starts_with("Nora called Aria by name"), "{}", why.companions[0].text);
}

fn count(events: &[Recorded], is_one: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|recorded| is_one(&recorded.event)).count()
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_is_asked_sets_it_once_whenever_the_server_dies() {
    const CALL: &str = r#"CALL remind {"action": "set", "text": "feed the cat", "in_minutes": 10}"#;
    for ms in (0..3_000).step_by(250) {
        let world = with_tool(CALL).await;
        world.say(LOBBY, "Ari, remind me in ten minutes to feed the cat").await;
        world.pass(f64::from(ms) / 1_000.0).await;

        let world = world.crash().await;
        script(&world, CALL);
        world.pass(30.0).await;
        let set = open(&world).await;
        world.pass(11.0 * MINUTE).await;

        let events = world.journal(&channel_key(LOBBY)).await;
        assert_eq!(set.iter().map(|one| (&*one.from, &*one.text)).collect::<Vec<_>>(), [("Ana", "feed the cat")], "{ms}");
        assert_eq!(count(&events, |event| matches!(event, Event::ReminderSet(_))), 1, "{ms}");
        let is_due = |event: &Event| matches!(event, Event::Said { message, .. } if message.reminder.is_some());
        assert_eq!(count(&events, is_due), 1, "{ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_companion_lists_and_cancels_only_those_of_who_asks() {
    let world = with_tool(r#"CALL remind {"action": "cancel", "number": 2}"#).await;
    let mine = remind(&world, 60.0).await;
    let bens = NewReminder { of: Author::of_name("Ben".into()), ..in_minutes(60.0) };
    world.backend.reminders.remind(&room(LOBBY), bens).await.unwrap();

    world.say_then_pass(LOBBY, "Ari, cancel number two", 30.0).await;
    let of_another = open(&world).await.len();
    script(&world, r#"CALL remind {"action": "list"}"#);
    world.say_then_pass(LOBBY, "Ari, which reminders do I have?", 30.0).await;
    let asked = world.main.asked.lock().last().unwrap().messages.last().unwrap().words().into_owned();
    script(&world, r#"CALL remind {"action": "cancel", "number": 1}"#);
    world.say_then_pass(LOBBY, "Ari, cancel number one", 30.0).await;

    assert_eq!((mine, of_another), (1, 2));
    assert!(asked.contains("1: 2026-05-01 13:00 (UTC), feed the cat") && !asked.contains("2: "), "{asked}");
    assert_eq!(open(&world).await.iter().map(|one| one.id).collect::<Vec<_>>(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_reminder_does_not_come() {
    let world = World::with_lobby().await;
    let (first, second) = (remind(&world, 10.0).await, remind(&world, 20.0).await);
    world.pass(400.0).await;
    let service = &world.backend.reminders;

    let of_another = service.cancel_reminder(&room(LOBBY), first, Some(&PersonId::from("Ben"))).await;
    service.cancel_reminder(&room(LOBBY), first, Some(&PersonId::from("Ana"))).await.unwrap();
    let again = service.cancel_reminder(&room(LOBBY), first, None).await;
    world.pass(10.0 * MINUTE).await;

    assert!(matches!((of_another, again), (Err(Refused::NotFound(_)), Err(Refused::NotFound(_)))));
    assert_eq!(world.history(LOBBY).await, lines(&[]));
    assert_eq!(open(&world).await.iter().map(|one| one.id).collect::<Vec<_>>(), [second]);
}

#[tokio::test(start_paused = true)]
async fn a_person_has_so_many_and_others_have_their_own() {
    let world = World::with_lobby().await;
    for _ in 0..MOST_OPEN {
        remind(&world, 10.0).await;
    }

    let one_more = world.backend.reminders.remind(&room(LOBBY), in_minutes(10.0)).await;
    let bens = NewReminder { of: Author::of_name("Ben".into()), ..in_minutes(10.0) };

    assert!(matches!(one_more, Err(Refused::Conflict(_))), "{one_more:?}");
    assert!(world.backend.reminders.remind(&room(LOBBY), bens).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_person_leaves_no_reminder() {
    let world = World::with_lobby_settings(json!({ "storage": { "retention_days": 2 } })).await;
    remind(&world, 9.0 * 24.0 * 60.0).await;
    world.say_then_pass(LOBBY, "hello", 3.0 * 86_400.0).await;
    world.say_with(LOBBY, json!({ "from": "Ben", "text": "news" })).await;
    world.pass(1_000.0).await;
    assert!(retention::pass(&world.context).await.events > 0);
    let kept = (open(&world).await.len(), left_of("feed the cat", &world).await);

    let forgotten = world.forget("Ana", false).await.unwrap();

    assert_eq!(kept, (1, 1), "retention keeps its text in the snapshot until it is due");
    assert_eq!((forgotten.reminders, open(&world).await), (1, Vec::new()));
    assert_eq!((left_of("feed the cat", &world).await, left_of("Ana", &world).await), (0, 0));
    let world = world.crash().await;
    world.pass(10.0 * 86_400.0).await;
    assert_eq!(world.history(LOBBY).await, lines(&[("Ben", "news")]));
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_the_message_that_asked_erases_it() {
    let world = World::with_lobby().await;
    let asked = world.say(LOBBY, "Ari, remind me to feed the cat in an hour").await;
    let new = NewReminder { asked: vec![asked], ..in_minutes(60.0) };
    world.backend.reminders.remind(&room(LOBBY), new).await.unwrap();
    world.pass(1_000.0).await;

    world.backend.messages.delete(&room(LOBBY), asked).await.unwrap();

    assert_eq!((open(&world).await, left_of("feed the cat", &world).await), (Vec::new(), 0));
    world.pass(7_200.0).await;
    let is_due = |event: &Event| matches!(event, Event::Said { message, .. } if message.reminder.is_some());
    assert!(!world.journal(&channel_key(LOBBY)).await.iter().any(|recorded| is_due(&recorded.event)));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_room_reminds_nobody() {
    let world = World::with_lobby().await;
    remind(&world, 60.0).await;
    world.pass(600.0).await;
    world.delete_room(LOBBY).await;

    world.pass(7_200.0).await;

    assert_eq!(left_of("feed the cat", &world).await, 0);
    world.open(LOBBY, &["aria"]).await;
    assert_eq!(world.journal(&ChannelKey::new(&"home".into(), &room(LOBBY).channel())).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_time_is_read_in_the_zone_that_the_person_chose() {
    let world = World::with_lobby().await;
    let (service, ana) = (&world.backend.reminders, PersonId::from("Ana"));
    let at = |time: &str| NewReminder { at: Some(time.into()), in_minutes: None, ..in_minutes(0.0) };
    let set = async |time: &str| service.remind(&room(LOBBY), at(time)).await.unwrap().reminder;
    assert_eq!(&*service.time_zone(&"home".into(), &ana).await.unwrap(), "UTC");

    service.set_time_zone(&"home".into(), &ana, Some("America/New_York")).await.unwrap();
    let here = set("2026-05-01T14:30").await;
    let refused = service.set_time_zone(&"home".into(), &ana, Some("Mars/Olympus")).await;
    world.forget("Ana", false).await.unwrap();

    assert_eq!(
        (here.due.to_string().as_str(), &*here.local),
        ("2026-05-01T18:30:00.000Z", "2026-05-01 14:30 (America/New_York)")
    );
    assert!(matches!(refused, Err(Refused::Invalid { .. })), "{refused:?}");
    assert_eq!(&*service.time_zone(&"home".into(), &ana).await.unwrap(), "UTC");
}
