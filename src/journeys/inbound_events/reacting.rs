//! Reactions on statements, messages relayed by bridges, and the acknowledgement of a stop.

use super::*;
use crate::ports::inbound_events::ReactionChange;

const THUMB: &str = "\u{1f44d}";

/// Aria's answer to the message 100, which has two parts, is on record.
async fn answered() -> (World, ChannelRef, Seq) {
    let (_, world, lobby) = answering_in_two_parts().await;
    world.pass(20.0).await;
    let messages = world.recorded("lobby", "message").await;
    let statement = messages.last().and_then(|message| message["seq"].as_u64()).expect("a statement");
    (world, lobby, Seq(statement))
}

async fn react(world: &World, lobby: &ChannelRef, change: ReactionChange) {
    inbound_events(world).reacted(lobby, change).await.unwrap();
    world.rest().await;
}

fn on(message: &str, by: &str, emoji: &str, removed: bool) -> ReactionChange {
    let (by, emoji) = (Some(PersonId::from(by)), Some(emoji.into()));
    ReactionChange { message: message.into(), by, emoji, removed }
}

/// The reactions on record: who, with what, and whether it was removed.
async fn reactions(world: &World, lobby: &ChannelRef) -> Vec<(String, String, bool)> {
    let journal = world.journal(&channel_key(lobby)).await.into_iter();
    let reaction = |event| match event {
        Event::Reacted { by, emoji, removed, .. } => Some((by.to_string(), emoji.to_string(), removed)),
        _ => None,
    };
    journal.filter_map(|recorded| reaction(recorded.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reaction_on_any_part_of_a_statement_is_recorded_once_with_its_removal() {
    let (world, lobby, statement) = answered().await;

    // A person's message, and one that nobody knows.
    for change in [on("100", "discord:5", THUMB, false), on("99", "discord:5", THUMB, false)] {
        react(&world, &lobby, change).await;
    }
    for removed in [true, false, false, true, true] {
        react(&world, &lobby, on("2", "discord:5", THUMB, removed)).await;
    }

    let ana = |removed| ("discord:5".to_owned(), THUMB.to_owned(), removed);
    assert_eq!(reactions(&world, &lobby).await, [ana(false), ana(true)]);
    let seen = world.recorded("lobby", "reacted").await;
    assert_eq!((&seen[0]["message"], &seen[0]["removed"], &seen[1]["removed"]), (&json!(statement), &json!(null), &json!(true)));
    assert_eq!(world.decisions("lobby").await.len(), 1, "nobody is asked about it");
}

#[tokio::test(start_paused = true)]
async fn a_moderator_removes_the_reactions_of_all_people() {
    let (world, lobby, _) = answered().await;
    for (by, emoji) in [("discord:5", THUMB), ("discord:5", "x"), ("discord:6", THUMB)] {
        react(&world, &lobby, on("1", by, emoji, false)).await;
    }

    let all = ReactionChange { message: "1".into(), by: None, emoji: Some(THUMB.into()), removed: true };
    react(&world, &lobby, all.clone()).await;
    react(&world, &lobby, ReactionChange { emoji: None, ..all }).await;

    let removed: Vec<_> = reactions(&world, &lobby).await.into_iter().filter(|(.., removed)| *removed).collect();
    assert_eq!(
        removed.iter().map(|(by, emoji, _)| (&**by, &**emoji)).collect::<Vec<_>>(),
        [("discord:5", THUMB), ("discord:6", THUMB), ("discord:5", "x")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_persons_reactions_on_a_statement_are_bounded_and_those_of_who_opted_out_not_recorded() {
    let (world, lobby, _) = answered().await;

    for number in 0..30 {
        react(&world, &lobby, on("1", "discord:5", &format!(":e{number}:"), false)).await;
    }
    world.context.opt_outs.insert(&lobby.guild, [&"discord:6".into()], ());
    react(&world, &lobby, on("1", "discord:6", THUMB, false)).await;

    assert_eq!(reactions(&world, &lobby).await.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn reactions_are_erased_with_the_person_and_with_the_statement() {
    let (world, lobby, statement) = answered().await;
    for by in ["discord:5", "discord:6"] {
        react(&world, &lobby, on("1", by, THUMB, false)).await;
    }

    world.forget_in("home", "discord:6", false).await.unwrap();
    let left = reactions(&world, &lobby).await;
    world.backend.messages.delete(&room("lobby"), statement).await.unwrap();

    let erased = (String::new(), String::new(), false);
    assert_eq!(left, [("discord:5".to_owned(), THUMB.to_owned(), false), erased.clone()]);
    assert_eq!(reactions(&world, &lobby).await, [erased.clone(), erased]);
    assert!(
        !world.everything().await.iter().any(|(key, _)| format!("{key:?}").contains("discord:6")),
        "no index names the person"
    );
}

#[tokio::test(start_paused = true)]
async fn reactions_are_erased_with_the_answers_to_a_person() {
    let (world, lobby, _) = answered().await;
    react(&world, &lobby, on("1", "discord:6", THUMB, false)).await;

    world.forget_in("home", "discord:5", true).await.unwrap();

    assert_eq!(reactions(&world, &lobby).await, [(String::new(), String::new(), false)]);
}

#[tokio::test(start_paused = true)]
async fn somebody_behind_a_bridge_is_answered_like_a_person_and_never_noted() {
    let world = world().await;
    let id = PersonId::behind(&"discord:77".into(), "Zoe");
    let from = Author { id: id.as_str().into(), name: "Zoe".into(), role: Role::Person };
    let echo = Author { name: "Aria".into(), ..from.clone() };

    say_in(&world, &general(), InboundMessage { from, ..ana(&world, "1", "Ari, news?") }).await;
    let echoed = inbound_events(&world).said(&general(), InboundMessage { from: echo, ..ana(&world, "2", "I say so.") }).await;
    world.pass(60.0).await;

    assert_eq!(echoed, Ok(Acceptance::Ignored), "a second bridge relays what Aria said");
    let asked = world.decisions("discord:10").await;
    assert!(asked.iter().any(|decision| decision["trigger"] == "direct_address" && decision["companion"] == "aria"), "{asked:?}");
    assert!(!world.context.may_be_noted(&general().guild, &id));
    assert!(world.context.may_be_noted(&general().guild, &"discord:5".into()));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_stops_statements_is_acknowledged_once() {
    let platform = Arc::new(FakePlatform::default());
    let world = World::with_platform(platform.clone()).await;
    let lobby = channel_ref("home", "console:lobby");
    world.side.answers([Ok("Me.\nYES")]);
    world.main.answers([Ok("It is far.")]);
    world.main.set_delay(Duration::from_secs(20));
    say_in(&world, &lobby, ana(&world, "100", "Ari, how far is it?")).await;
    world.pass(5.0).await;

    say_in(&world, &lobby, ana(&world, "101", "stop")).await;
    world.pass(60.0).await;
    say_in(&world, &lobby, ana(&world, "102", "stop")).await;
    world.pass(60.0).await;

    let failed = world.recorded("lobby", "failed").await;
    assert_eq!((failed.len(), &failed[0]["error"]), (1, &json!("cancelled")));
    assert_eq!(platform.acknowledged(), ["101"], "the second one stops nothing");
}
