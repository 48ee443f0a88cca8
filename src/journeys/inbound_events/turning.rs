//! Whom a message addresses.

use super::*;

#[tokio::test(start_paused = true)]
async fn names_are_searched_in_the_persons_own_words() {
    let world = world().await;

    let shown = InboundMessage { own_words: Some("look at this".into()), ..ana(&world, "1", "look at this [picture: aria.png]") };
    let shown = say_in(&world, &general(), shown).await;
    let written = InboundMessage { own_words: Some("Ari, look".into()), ..ana(&world, "2", "…, look") };
    let written = say_in(&world, &general(), written).await;

    assert_eq!(message(&world, &general(), shown).await.address.companions, []);
    assert_eq!(message(&world, &general(), written).await.address.companions, ["aria".into()]);
    assert_eq!(&*message(&world, &general(), written).await.text, "…, look");
}

#[tokio::test(start_paused = true)]
async fn a_message_to_all_addresses_every_member_unless_it_names_one() {
    let world = world().await;
    let to_all = |id: &str, text: &str| InboundMessage { to_all: true, ..ana(&world, id, text) };

    let unnamed = say_in(&world, &general(), to_all("0", "hello you")).await;
    let named = say_in(&world, &general(), to_all("1", "Ari, what now?")).await;
    let absent = say_in(&world, &general(), to_all("2", "where is Cleo?")).await;
    let private = say_in(&world, &direct(), to_all("3", "Bruno, are you there?")).await;

    assert_eq!(message(&world, &general(), named).await.address.companions, ["aria".into()]);
    for to_both in [unnamed, absent] {
        assert_eq!(message(&world, &general(), to_both).await.address.companions, ["aria".into(), "bruno".into()]);
    }
    assert!(message(&world, &direct(), private).await.address.companions.contains(&"aria".into()), "the message is to her alone");
}

#[tokio::test(start_paused = true)]
async fn mentions_are_of_people() {
    let world = world().await;
    let mentioning = |id: &str, of: &str| InboundMessage { mentions: vec![of.into()], ..ana(&world, id, "hi") };

    let of_bob = say_in(&world, &general(), mentioning("1", "discord:6")).await;
    let of_herself = say_in(&world, &general(), mentioning("2", "discord:5")).await;

    let address = message(&world, &general(), of_bob).await.address;
    assert!(address.others && address.companions.is_empty());
    assert!(!message(&world, &general(), of_herself).await.address.others);
}

#[tokio::test(start_paused = true)]
async fn a_reply_addresses_the_author_of_the_answered_message() {
    let world = world().await;
    world.side.answers([Ok("Me.\nYES"), Ok("No.\nNO")]);
    say(&world, "1", "Ari?").await;
    world.pass(20.0).await;
    let bobs = say_in(&world, &general(), by("6", ana(&world, "2", "me too"))).await;
    let own = say(&world, "3", "so").await;
    let ours = |name: Option<&str>| Some(Answered::Ours(name.map(Into::into)));
    let bob = || Some(Answered::Other("discord:6".into(), Role::Person));

    let mut found = Vec::new();
    for (index, (answered, by)) in [
        ("2", None),
        ("2", ours(Some("Bruno"))),
        ("3", None),
        ("50", ours(Some("bruno"))),
        ("51", ours(Some("Nobody"))),
        ("52", ours(None)),
        ("53", bob()),
        ("54", None),
    ]
    .into_iter()
    .enumerate()
    {
        let reply_to = Some(ReplyTo::Foreign { id: answered.into(), by, quoted: None });
        let inbound_message = InboundMessage { reply_to, ..ana(&world, &format!("9{index}"), "yes") };
        let seq = say_in(&world, &general(), inbound_message).await;
        let address = message(&world, &general(), seq).await.address;
        let reply_to = world
            .try_history("discord:10")
            .await
            .unwrap()
            .messages
            .into_iter()
            .find(|message| message.seq == seq)
            .unwrap()
            .reply_to;
        found.push((address.companions, address.others, reply_to));
    }

    let to_bruno = vec!["bruno".into()];
    let expected = [
        (vec![], true, Some(bobs)),
        (vec![], true, Some(bobs)),
        (vec![], false, Some(own)),
        (to_bruno, false, None),
        (vec![], false, None),
        (vec![], false, None),
        (vec![], true, None),
        (vec![], false, None),
    ];
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn a_reply_to_a_statement_is_found_by_the_id_of_any_of_its_parts() {
    let (platform, world, lobby) = answering_in_two_parts().await;
    world.pass(20.0).await;
    assert_eq!(platform.posted().len(), 2);

    let reply_to = Some(ReplyTo::Foreign { id: "2".into(), by: None, quoted: None });
    let seq = say_in(&world, &lobby, InboundMessage { reply_to, ..ana(&world, "101", "yes") }).await;

    assert_eq!(message(&world, &lobby, seq).await.address.companions, ["aria".into()]);
}

#[tokio::test(start_paused = true)]
async fn the_settings_decide_which_messages_of_bots_are_accepted() {
    let beep = |world: &World, id: &str| InboundMessage {
        from: Author { id: "discord:9".into(), name: "beep".into(), role: Role::Bot },
        ..ana(world, id, "Ari, news")
    };
    let mut accepted = Vec::new();
    for policy in ["ignore", "mentions", "all"] {
        let world = with(World::with_overlay(json!({ "gate": { "foreign_bots": policy } })).await).await;
        let plain = inbound_events(&world).said(&general(), beep(&world, "1")).await.unwrap();
        let to_all = InboundMessage { to_all: true, ..beep(&world, "2") };
        let to_all = inbound_events(&world).said(&general(), to_all).await.unwrap();
        let reply_to = Some(ReplyTo::Foreign { id: "0".into(), by: Some(Answered::Ours(Some("Aria".into()))), quoted: None });
        let reply = inbound_events(&world).said(&general(), InboundMessage { reply_to, ..beep(&world, "3") }).await.unwrap();
        accepted.push([plain, to_all, reply].map(|taken| taken != Acceptance::Ignored));
    }

    assert_eq!(accepted, [[false; 3], [false, true, true], [true; 3]]);
}

#[tokio::test(start_paused = true)]
async fn messages_to_somebody_else_are_not_asked_about() {
    let world = world().await;
    let inbound_message = InboundMessage { mentions: vec!["discord:6".into()], ..ana(&world, "1", "what do you think?") };
    say_in(&world, &general(), inbound_message).await;

    world.pass(60.0).await;

    let decisions = world.decisions("discord:10").await;
    assert!(!decisions.is_empty());
    assert!(decisions.iter().all(|decision| decision["reason"] == "other_addressed"), "{decisions:?}");
    assert_eq!(world.side.asked.lock().len(), 0);
}
