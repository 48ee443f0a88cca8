//! What models are told of the messages to which others reply.

use super::*;
use crate::actors::membership::opt_out::OptOutService;
use crate::domain::message::Quoted;
use crate::journeys::retaining::left_of;
use crate::journeys::world::Scripted;
use crate::ports::opt_out::OptOut;

/// A reply to a message of the platform, which says this if it is not on record.
fn reply(world: &World, id: &str, to: &str, by: &str, text: &str) -> InboundMessage {
    let from = Author { id: format!("discord:{by}").into(), name: "Bob".into(), role: Role::Person };
    let answered = Some(Answered::Other(from.id.clone(), Role::Person));
    let reply_to = Some(ReplyTo::Foreign { id: to.into(), by: answered, quoted: Some(Quoted::new(from, text)) });
    InboundMessage { reply_to, own_words: None, ..ana(world, id, "Ari, explain this") }
}

/// Whether a prompt of a decision, and one of a statement, have quoted this since the last call.
fn quoted(world: &World, text: &str) -> (bool, bool) {
    let count = |model: &Scripted| {
        let asked = std::mem::take(&mut *model.asked.lock());
        let quote = format!("\"from\":\"Bob\",\"text\":\"{text}\"}},\"text\":\"Ari, explain this\"");
        asked.iter().any(|request| request.messages.iter().any(|message| message.words().contains(&quote)))
    };
    (count(&world.side), count(&world.main))
}

#[tokio::test(start_paused = true)]
async fn a_reply_quotes_what_it_replies_to_unless_that_is_among_the_new_messages() {
    let world = world().await;
    world.side.answers([Ok("No.\nNO"), Ok("Me.\nYES"), Ok("Me.\nYES"), Ok("Me.\nYES")]);
    let bobs = InboundMessage { id: Some("1".into()), ..by("6", ana(&world, "1", "Ari, a riddle")) };
    let bobs = InboundMessage { from: Author { name: "Bob".into(), ..bobs.from.clone() }, ..bobs };
    say_in(&world, &general(), bobs).await;
    world.pass(20.0).await;
    quoted(&world, "");

    say_in(&world, &general(), reply(&world, "2", "1", "6", "what Discord shows")).await;
    world.pass(20.0).await;
    assert_eq!(quoted(&world, "Ari, a riddle"), (true, true), "it is on record");

    say_in(&world, &general(), reply(&world, "3", "0", "7", "an old riddle")).await;
    world.pass(20.0).await;
    assert_eq!(quoted(&world, "an old riddle"), (true, true), "Discord alone knows it");

    inbound_events(&world).deleted(&general(), &["1".into()]).await.unwrap();
    say_in(&world, &general(), reply(&world, "4", "1", "6", "what Discord shows")).await;
    world.pass(20.0).await;
    assert_eq!(quoted(&world, "what Discord shows"), (false, false), "it was deleted");
}

#[tokio::test(start_paused = true)]
async fn what_is_new_itself_is_not_quoted() {
    let world = world().await;
    world.side.answers([Ok("Me.\nYES")]);
    say_in(&world, &general(), ana(&world, "1", "a riddle")).await;

    say_in(&world, &general(), reply(&world, "2", "1", "6", "a riddle")).await;
    world.pass(20.0).await;

    let asked = world.side.asked.lock();
    let prompt = asked.last().unwrap().messages.last().unwrap().words();
    assert!(prompt.contains("a riddle") && !prompt.contains("replies_to"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn people_who_opted_out_are_not_quoted_and_forgotten_ones_no_more() {
    let world = world().await;
    let opt_outs = OptOutService::new(world.context.clone());
    world.side.answers([Ok("Bob asked about an old riddle.\nNO"), Ok("No.\nNO")]);
    say_in(&world, &general(), reply(&world, "1", "0", "7", "an old riddle")).await;
    world.pass(20.0).await;
    assert!(quoted(&world, "an old riddle").0);

    world.forget_in("discord:1", "discord:7", false).await.unwrap();
    let left = left_of("old riddle", &world).await;
    opt_outs.ignore(&"discord:1".into(), &"discord:7".into(), true).await.unwrap();
    let seq = say_in(&world, &general(), reply(&world, "2", "0", "7", "an old riddle")).await;
    world.pass(20.0).await;

    assert_eq!(left, 0);
    assert_eq!(message(&world, &general(), seq).await.quoted, None);
    assert_eq!(quoted(&world, "an old riddle"), (false, false));
}

#[tokio::test(start_paused = true)]
async fn a_quotation_goes_with_the_deletion_of_its_original_and_with_an_edit_that_changes_it() {
    let world = world().await;
    world.side.answers([Ok("Bob asked about an old riddle.\nNO"), Ok("No.\nNO"), Ok("No.\nNO")]);
    let mut quoting = Vec::new();
    for (id, original) in [("1", "10"), ("2", "10"), ("3", "11"), ("4", "12")] {
        quoting.push(say_in(&world, &general(), reply(&world, id, original, "7", "an old riddle")).await);
        world.pass(20.0).await;
    }
    let kept = || async {
        let mut kept = Vec::new();
        for seq in &quoting {
            kept.push(message(&world, &general(), *seq).await.quoted.is_some());
        }
        kept
    };

    inbound_events(&world).edited(&general(), "11", "an old riddle".into()).await.unwrap();
    assert_eq!(kept().await, [true; 4], "such as by the preview of a link");
    inbound_events(&world).deleted(&general(), &["10".into(), "99".into()]).await.unwrap();
    assert_eq!(kept().await, [false, false, true, true]);
    inbound_events(&world).edited(&general(), "11", "another riddle".into()).await.unwrap();
    assert_eq!(kept().await, [false, false, false, true]);
    inbound_events(&world).deleted(&general(), &["12".into()]).await.unwrap();

    assert_eq!(left_of("old riddle", &world).await, 0);
    world.pass(20.0).await;
    quoted(&world, "");
    say_in(&world, &general(), ana(&world, "5", "Ari, hello")).await;
    world.pass(20.0).await;
    assert_eq!(quoted(&world, "an old riddle"), (false, false));
}
