//! What is made of messages.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::world::{ANA, APPLICATION, BOB, BOT, Call, GENERAL, HOME, OTHER, OWN_ROLE, World, fate, id, message, user, with};
use crate::domain::message::{Author, Role};
use crate::ports::inbound_events::{Answered, Answers, InboundMessage};

/// What a message becomes; none if nothing is said.
async fn heard(changes: Value) -> Option<InboundMessage> {
    let mut world = World::new().await;
    world.kept("MESSAGE_CREATE", with(message(50, GENERAL, "hi"), changes)).await;
    match world.core.calls().pop() {
        Some(Call::Said(_, inbound_message)) => Some(inbound_message),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_somebody_says_where_a_companion_lives_is_taken_in() {
    let mut world = World::new().await;
    let told = message(4_194_304_000, GENERAL, "hi <@301>");

    world
        .kept("MESSAGE_CREATE", with(told, json!({ "mentions": [with(user(BOB, "bob"), json!({ "global_name": "Bob" }))] })))
        .await;

    let [Call::Said(channel_ref, inbound_message)] = &world.core.calls()[..] else { panic!("{:?}", world.core.calls()) };
    assert_eq!(
        (channel_ref.guild.as_str(), channel_ref.channel.as_str(), &channel_ref.parent),
        ("discord:100", "discord:200", &None)
    );
    let from = Author { id: "discord:300".into(), name: "Ana".into(), role: Role::Person };
    assert_eq!((&*inbound_message.id, &inbound_message.from), ("4194304000", &from));
    assert_eq!((&*inbound_message.text, &*inbound_message.own_words), ("hi @Bob", "hi \u{fffc}"));
    assert_eq!(inbound_message.at, id(4_194_304_000).time());
    assert_eq!(
        (&inbound_message.mentions[..], inbound_message.to_all, &inbound_message.answers),
        (&["discord:301".into()][..], false, &None)
    );
}

#[tokio::test(start_paused = true)]
async fn while_discord_does_not_tell_the_time_messages_wait_only_shortly() {
    // It takes connections and answers nothing.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = World::with_api(&format!("http://{}/api", hanging.local_addr().unwrap())).await;
    world.core.with_members.lock().unwrap().insert(id(OTHER).channel());
    let (clocks, now) = (world.discord.clocks(), Instant::now());
    clocks.answered("Fri, 15 Jan 2027 08:00:00 GMT", clocks.here(), now);
    // The machine's clock does not go on with its timers.
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert!(clocks.was_set());
    let began = Instant::now();

    let told = [
        world.tell("MESSAGE_CREATE", message(50, GENERAL, "hi")).await,
        world.tell("MESSAGE_CREATE", message(51, OTHER, "hi")).await,
    ];
    for told in told {
        fate(told).await;
    }

    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(world.core.calls().len(), 2);
}

#[tokio::test]
async fn what_is_said_where_nobody_lives_is_nobodys_business() {
    let mut world = World::new().await;

    world.kept("MESSAGE_CREATE", message(50, OTHER, "hi")).await;

    assert_eq!(world.core.calls(), []);
}

#[tokio::test]
async fn a_mention_of_the_bot_or_of_its_own_role_is_to_all() {
    let role = |role: u64| json!({ "mention_roles": [role.to_string()] });

    assert!(heard(json!({ "mentions": [user(BOT, "Tertulia")] })).await.unwrap().to_all);
    assert!(heard(role(OWN_ROLE)).await.unwrap().to_all);
    assert!(!heard(role(HOME)).await.unwrap().to_all);
    assert!(!heard(json!({ "mention_everyone": true })).await.unwrap().to_all);
}

#[tokio::test]
async fn a_direct_message_is_to_all_and_a_guild_of_its_own() {
    let mut world = World::new().await;
    let mut told = message(50, 700, "psst");
    told.as_object_mut().unwrap().remove("guild_id");

    world.kept("MESSAGE_CREATE", told).await;

    let [Call::Said(channel_ref, inbound_message)] = &world.core.calls()[..] else { panic!() };
    assert_eq!((channel_ref.guild.as_str(), channel_ref.channel.as_str()), ("dm:discord:700", "discord:700"));
    assert!(inbound_message.to_all);
    assert_eq!(world.discord.cache().title(&channel_ref.channel).as_deref(), Some("direct message with Ana"));
}

#[tokio::test]
async fn an_answer_tells_whose_the_answered_message_is() {
    let answering = |author: Value, more: Value| {
        let answered = with(with(message(40, GENERAL, "before"), json!({ "author": author })), more);
        let reference = json!({ "type": 0, "message_id": "40", "channel_id": GENERAL.to_string() });
        heard(json!({ "type": 19, "message_reference": reference, "referenced_message": answered }))
    };
    let webhook = json!({ "webhook_id": "77", "application_id": APPLICATION.to_string() });
    let by = |answers: Option<InboundMessage>| answers.unwrap().answers.unwrap();

    let ours = by(answering(user(77, "Mira"), webhook).await);
    let others = by(answering(user(BOB, "Bob"), json!({})).await);
    let gone = heard(json!({ "type": 19, "message_reference": { "message_id": "40" }, "referenced_message": null })).await;

    assert_eq!(ours, Answers { message: "40".into(), by: Some(Answered::Ours(Some("Mira".into()))) });
    assert_eq!(others.by, Some(Answered::Other("discord:301".into(), Role::Person)));
    assert_eq!(by(gone), Answers { message: "40".into(), by: None });
}

#[tokio::test]
async fn what_hangs_on_a_message_is_told() {
    let inbound_message = heard(json!({
        "content": "look",
        "attachments": [{ "id": "1", "filename": "cat.png", "content_type": "image/png", "size": 5, "flags": 8 }, 7],
        "sticker_items": [{ "id": "1", "name": "Wave", "format_type": 1 }],
        "poll": { "question": { "text": "Pizza?" }, "answers": [{ "answer_id": 1, "poll_media": { "text": "yes" } }] },
    }))
    .await
    .unwrap();

    assert_eq!(
        inbound_message.text.lines().collect::<Vec<_>>(),
        ["look", "[image: cat.png, hidden as a spoiler]", "[sticker: Wave]", "[poll: Pizza? Answers: yes]",]
    );
}

#[tokio::test]
async fn a_forwarded_message_is_told_with_the_names_in_it() {
    let snapshot =
        json!({ "message": { "type": 0, "content": "ask <@301>", "mentions": [user(BOB, "Bob")], "attachments": [] } });

    let inbound_message = heard(json!({
        "content": "",
        "message_reference": { "type": 1, "message_id": "40", "channel_id": "9" },
        "message_snapshots": [snapshot],
    }))
    .await
    .unwrap();

    assert_eq!((&*inbound_message.text, &*inbound_message.own_words), ("[forwarded]\n> ask @Bob", ""));
    assert_eq!((inbound_message.answers, inbound_message.mentions.len()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_talk_or_our_own_is_marked_as_heard_and_not_told() {
    for (what, changes) in [
        ("a join", json!({ "type": 7 })),
        ("an answer to one person alone", json!({ "flags": 64 })),
        ("embeds alone", json!({ "content": "", "embeds": [{ "title": "A link" }] })),
        ("our webhook", json!({ "author": user(77, "Mira"), "webhook_id": "77", "application_id": APPLICATION.to_string() })),
        ("our bot", json!({ "author": user(BOT, "Tertulia") })),
        ("Discord", json!({ "author": with(user(643, "Discord"), json!({ "system": true })) })),
    ] {
        let mut world = World::new().await;

        world.kept("MESSAGE_CREATE", with(message(50, GENERAL, "hi"), changes)).await;

        assert_eq!(world.core.calls(), [], "{what}");
        assert_eq!(world.marked(GENERAL).await, "50", "{what}");
        assert_eq!(world.discord.cache().newest(id(GENERAL)), Some(id(50)), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_taken_in_is_marked_as_heard_and_not_called() {
    let mut world = World::new().await;
    world.core.ignored.lock().unwrap().insert(format!("discord:{BOB}"));

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "hi")).await;
    world.kept("MESSAGE_CREATE", with(message(51, GENERAL, "hi"), json!({ "author": user(BOB, "Bob") }))).await;

    assert_eq!(world.marked(GENERAL).await, "51");
    assert_eq!(world.discord.cache().mentionables(id(GENERAL)).people, [(id(ANA), "Ana".into())]);
    world.core.ignored.lock().unwrap().insert(format!("discord:{ANA}"));
    world.kept("MESSAGE_CREATE", message(52, GENERAL, "ignore me")).await;
    assert_eq!(world.discord.cache().mentionables(id(GENERAL)).people, []);
}

#[tokio::test(start_paused = true)]
async fn marks_that_cannot_be_written_are_written_later() {
    let mut world = World::new().await;
    *world.pad.fails.lock().unwrap() = 2;

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "")).await;

    assert_eq!(world.marked(GENERAL).await, "50");
}

#[tokio::test]
async fn a_foreign_bot_and_a_foreign_webhook_are_bots() {
    let bot = heard(json!({ "author": with(user(5, "Beep"), json!({ "bot": true })) })).await.unwrap();
    let webhook = heard(json!({ "author": user(6, "Mira"), "webhook_id": "6" })).await.unwrap();

    assert_eq!((bot.from.role, webhook.from.role), (Role::Bot, Role::Bot));
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_left_out_and_the_next_one_heard() {
    for broken in [
        json!({ "author": null }),
        json!({ "author": { "id": "x" } }),
        json!({ "type": "0" }),
        json!({ "webhook_id": true }),
        json!({ "guild_id": {} }),
        json!({ "id": -1 }),
        json!({ "content": 5 }),
        json!({ "author": with(user(5, "Beep"), json!({ "bot": "yes" })) }),
    ] {
        let mut world = World::new().await;

        world.kept("MESSAGE_CREATE", with(message(50, GENERAL, "hi"), broken.clone())).await;
        world.kept("MESSAGE_CREATE", message(51, GENERAL, "there")).await;

        assert_eq!(world.core.texts(GENERAL), ["there"], "{broken}");
    }
}

#[tokio::test]
async fn what_is_not_needed_may_be_anything() {
    let odd = json!({
        "member": 7, "mentions": "x", "mention_roles": [true, "x", OWN_ROLE], "attachments": { "a": 1 }, "embeds": 3,
        "edited_timestamp": 4, "poll": [], "message_reference": 1, "referenced_message": "x", "message_snapshots": 0, "pinned": [],
        "timestamp": null, "components": 9, "new_field": { "deep": [[[[]]]] }, "sticker_items": [{ "name": 5 }, null],
    });

    let inbound_message = heard(odd).await.unwrap();

    assert_eq!((&*inbound_message.text, inbound_message.to_all), ("hi", true));
}

#[tokio::test]
async fn ids_may_be_numbers() {
    let author = json!({ "id": ANA, "username": "Ana" });

    let inbound_message = heard(json!({ "id": 60, "channel_id": GENERAL, "guild_id": HOME, "author": author })).await.unwrap();

    assert_eq!((&*inbound_message.id, &*inbound_message.from.id), ("60", "discord:300"));
}
