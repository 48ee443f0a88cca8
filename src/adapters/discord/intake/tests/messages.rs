//! How messages are converted and handed over.

use serde_json::{Value, json};

use super::world::{ANA, APPLICATION, BOB, BOT, Call, GENERAL, HOME, OWN_ROLE, World, id, message, user, with};
use crate::domain::message::{Author, Quoted, Role};
use crate::ports::inbound_events::{Answered, InboundMessage, ReactionChange, ReplyTo};

/// The inbound message for an event; none if nothing is handed over.
async fn inbound_message(changes: Value) -> Option<InboundMessage> {
    let mut world = World::new().await;
    world.kept("MESSAGE_CREATE", with(message(50, GENERAL, "hi"), changes)).await;
    match world.core.calls().pop() {
        Some(Call::Said(_, inbound_message)) => Some(inbound_message),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_message_in_a_channel_with_companions_is_handed_over() {
    let mut world = World::new().await;
    let event = message(4_194_304_000, GENERAL, "hi <@301>");

    world
        .kept("MESSAGE_CREATE", with(event, json!({ "mentions": [with(user(BOB, "bob"), json!({ "global_name": "Bob" }))] })))
        .await;

    let [Call::Said(channel_ref, inbound_message)] = &world.core.calls()[..] else { panic!("{:?}", world.core.calls()) };
    assert_eq!(
        (channel_ref.guild.as_str(), channel_ref.channel.as_str(), &channel_ref.parent),
        ("discord:100", "discord:200", &None)
    );
    let from = Author { id: "discord:300".into(), name: "Ana".into(), role: Role::Person };
    assert_eq!((inbound_message.id.as_deref(), &inbound_message.from), (Some("4194304000"), &from));
    assert_eq!((&*inbound_message.text, inbound_message.own_words.as_deref()), ("hi @Bob", Some("hi \u{fffc}")));
    assert_eq!(inbound_message.said_at, Some(id(4_194_304_000).time()));
    assert_eq!(
        (&inbound_message.mentions[..], inbound_message.to_all, &inbound_message.reply_to),
        (&["discord:301".into()][..], false, &None)
    );
}

#[tokio::test]
async fn a_mention_of_the_bot_or_its_role_addresses_all_companions_and_its_name_does_not() {
    let role = |role: u64| json!({ "mention_roles": [role.to_string()] });

    assert!(inbound_message(json!({ "mentions": [user(BOT, "Tertulia")] })).await.unwrap().to_all);
    assert!(inbound_message(role(OWN_ROLE)).await.unwrap().to_all);
    assert!(!inbound_message(role(HOME)).await.unwrap().to_all);
    assert!(!inbound_message(json!({ "mention_everyone": true })).await.unwrap().to_all);
    assert!(!inbound_message(json!({ "content": "Tertulia?" })).await.unwrap().to_all);
}

#[tokio::test]
async fn an_answer_reports_the_author_of_the_answered_message() {
    let answering = |author: Value, more: Value| {
        let answered = with(with(message(40, GENERAL, "before"), json!({ "author": author })), more);
        let reference = json!({ "type": 0, "message_id": "40", "channel_id": GENERAL.to_string() });
        inbound_message(json!({ "type": 19, "message_reference": reference, "referenced_message": answered }))
    };
    let webhook = json!({ "webhook_id": "77", "application_id": APPLICATION.to_string() });
    let by = |answer: Option<InboundMessage>| answer.unwrap().reply_to.unwrap();

    let ours = by(answering(user(77, "Mira"), webhook).await);
    let others = by(answering(user(BOB, "Bob"), json!({})).await);
    let gone =
        inbound_message(json!({ "type": 19, "message_reference": { "message_id": "40" }, "referenced_message": null })).await;

    let mira = Author { id: "".into(), name: "Mira".into(), role: Role::Companion };
    let quoted = Some(Quoted::new(mira, "before"));
    assert_eq!(ours, ReplyTo::Foreign { id: "40".into(), by: Some(Answered::Ours(Some("Mira".into()))), quoted });
    assert!(matches!(others, ReplyTo::Foreign { by: Some(Answered::Other(bob, Role::Person)), .. } if &*bob == "discord:301"));
    assert_eq!(by(gone), ReplyTo::Foreign { id: "40".into(), by: None, quoted: None });
}

#[tokio::test]
async fn names_in_the_title_of_a_thread_count_with_its_first_message() {
    const THREAD: u64 = 400;
    for first in [500, THREAD] {
        let mut world = World::new().await;
        let reported = json!({
            "id": THREAD.to_string(), "guild_id": HOME.to_string(), "parent_id": GENERAL.to_string(), "type": 11, "name": "Mira, why?",
        });
        world.kept("THREAD_CREATE", reported).await;

        for number in [first, first + 1] {
            world.kept("MESSAGE_CREATE", message(number, THREAD, "hi")).await;
        }

        let words = world.core.calls().into_iter().map(|call| match call {
            Call::Said(_, said) => said.own_words.unwrap().to_string(),
            other => panic!("{other:?}"),
        });
        assert_eq!(words.collect::<Vec<_>>(), ["Mira, why?\nhi", "hi"]);
    }
}

#[tokio::test(start_paused = true)]
async fn system_messages_and_our_own_are_marked_and_not_handed_over() {
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
async fn messages_of_people_who_opted_out_are_marked_and_the_people_not_mentioned() {
    let mut world = World::new().await;
    world.core.ignored.lock().insert(format!("discord:{BOB}"));

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "hi")).await;
    world.kept("MESSAGE_CREATE", with(message(51, GENERAL, "hi"), json!({ "author": user(BOB, "Bob") }))).await;

    assert_eq!(world.marked(GENERAL).await, "51");
    assert_eq!(world.discord.cache().mentionables(id(GENERAL)).people, [(id(ANA), "Ana".into())]);
    world.core.ignored.lock().insert(format!("discord:{ANA}"));
    world.kept("MESSAGE_CREATE", message(52, GENERAL, "ignore me")).await;
    assert_eq!(world.discord.cache().mentionables(id(GENERAL)).people, []);
}

#[tokio::test(start_paused = true)]
async fn failed_writes_of_marks_are_retried() {
    let mut world = World::new().await;
    *world.pad.fails.lock() = 2;

    world.kept("MESSAGE_CREATE", message(50, GENERAL, "")).await;

    assert_eq!(world.marked(GENERAL).await, "50");
}

#[tokio::test]
async fn an_unreadable_message_is_skipped_and_the_next_one_handed_over() {
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
async fn unneeded_fields_may_have_any_value() {
    let odd = json!({
        "member": 7, "mentions": "x", "mention_roles": [true, "x", OWN_ROLE], "attachments": { "a": 1 }, "embeds": 3,
        "edited_timestamp": 4, "poll": [], "message_reference": 1, "referenced_message": "x", "message_snapshots": 0, "pinned": [],
        "timestamp": null, "components": 9, "new_field": { "deep": [[[[]]]] }, "sticker_items": [{ "name": 5 }, null],
    });

    let inbound_message = inbound_message(odd).await.unwrap();

    assert_eq!((&*inbound_message.text, inbound_message.to_all), ("hi", true));
}

#[tokio::test]
async fn somebody_behind_a_bridge_counts_as_a_person_with_the_shown_name() {
    for (bridge, changes) in [
        ("77", json!({ "author": user(77, "Zoe"), "webhook_id": "77" })),
        ("88", json!({ "author": user(77, "Zoe"), "webhook_id": "77", "application_id": "88" })),
        ("99", json!({ "author": with(user(99, "Zoe"), json!({ "bot": true })) })),
    ] {
        let mut from = Vec::new();
        for bridges in [vec![bridge.to_owned()], vec!["5".to_owned(), ANA.to_string()]] {
            let mut world = World::with_settings(|settings| settings.bridges = bridges).await;
            world.kept("MESSAGE_CREATE", with(message(50, GENERAL, "hi"), changes.clone())).await;
            let Some(Call::Said(_, said)) = world.core.calls().pop() else { panic!("it is not handed over") };
            from.push((said.from.id.to_string(), said.from.name.to_string(), said.from.role));
        }
        let id = format!("bridge:discord:{bridge}:Zoe");
        assert_eq!(from[0], (id, "Zoe".to_owned(), Role::Person));
        assert_eq!(from[1].2, Role::Bot, "not one of these");
    }
}

#[tokio::test]
async fn reactions_are_handed_over_only_if_they_are_kept() {
    let reaction = json!({ "channel_id": GENERAL.to_string(), "guild_id": HOME.to_string(), "message_id": "50" });
    let by = |user: u64, emoji: Value| with(reaction.clone(), json!({ "user_id": user.to_string(), "emoji": emoji }));
    let (thumb, wave) = (json!({ "id": null, "name": "\u{1f44d}" }), json!({ "id": "31", "name": "wave" }));
    let of_bot = json!({ "member": { "user": with(user(BOB, "Bob"), json!({ "bot": true })) } });
    let mut handed_over = Vec::new();

    for keeps in [false, true] {
        let mut world = World::with_settings(|settings| settings.reactions = keeps).await;
        world.kept("MESSAGE_REACTION_ADD", by(ANA, thumb.clone())).await;
        world.kept("MESSAGE_REACTION_ADD", by(BOT, thumb.clone())).await;
        world.kept("MESSAGE_REACTION_ADD", with(by(BOB, thumb.clone()), of_bot.clone())).await;
        world.kept("MESSAGE_REACTION_ADD", reaction.clone()).await;
        world.kept("MESSAGE_REACTION_REMOVE", by(ANA, wave.clone())).await;
        // The emoji was deleted from its server meanwhile.
        world.kept("MESSAGE_REACTION_REMOVE", by(ANA, json!({ "id": "31", "name": null }))).await;
        world.kept("MESSAGE_REACTION_REMOVE_EMOJI", with(reaction.clone(), json!({ "emoji": thumb }))).await;
        world.kept("MESSAGE_REACTION_REMOVE_ALL", reaction.clone()).await;
        handed_over.push(world.core.calls());
    }

    let changes: Vec<_> = handed_over
        .pop()
        .unwrap()
        .into_iter()
        .map(|call| match call {
            Call::Reacted(_, ReactionChange { by, emoji, removed, message }) if *message == *"50" => {
                (by.map(|by| by.to_string()), emoji.map(|emoji| emoji.to_string()), removed)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        changes,
        [
            (some("discord:300"), some("\u{1f44d}"), false),
            (some("discord:300"), some(":wave:"), true),
            (some("discord:300"), some(":unknown:"), true),
            (None, some("\u{1f44d}"), true),
            (None, None, true),
        ]
    );
    assert_eq!(handed_over, [vec![]]);
}
