//! People who opt out.

use super::*;
use crate::actors::membership::opt_out::OptOutService;
use crate::ports::opt_out::OptOut;

#[tokio::test(start_paused = true)]
async fn no_message_of_a_person_who_opted_out_is_accepted() {
    let world = world().await;
    say(&world, "1", "before").await;
    assert_eq!(ignore(&world, "1", true).await, (true, true));
    let before = events(&world, &general()).await;

    assert_eq!(inbound_events(&world).said(&general(), ana(&world, "2", "Ari?")).await, Ok(Acceptance::Ignored));
    inbound_events(&world).edited(&general(), "1", "after".into()).await.unwrap();
    assert_eq!(inbound_events(&world).said(&thread(), ana(&world, "3", "Ari?")).await, Ok(Acceptance::Ignored));

    assert_eq!(events(&world, &general()).await, before);
    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "before")]));
    assert_eq!(events(&world, &thread()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn earlier_messages_can_be_deleted_and_replies_to_the_person_address_others() {
    let world = world().await;
    say(&world, "1", "before").await;
    ignore(&world, "1", true).await;
    let bob = |id: &str, text: &str| by("6", ana(&world, id, text));

    let mention = InboundMessage { mentions: vec!["discord:5".into()], ..bob("2", "hi") };
    let mention = say_in(&world, &general(), mention).await;
    let reply_to = Some(ReplyTo::Foreign { id: "1".into(), by: None, quoted: None });
    let reply = say_in(&world, &general(), InboundMessage { reply_to, ..bob("3", "hi") }).await;
    inbound_events(&world).deleted(&general(), &["1".into()]).await.unwrap();

    for seq in [mention, reply] {
        assert!(message(&world, &general(), seq).await.address.others);
    }
    assert_eq!(world.history("discord:10").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_opt_out_holds_in_one_guild_over_crashes_and_forgetting_until_it_is_withdrawn() {
    let world = world().await;
    let elsewhere = channel_ref("discord:2", "discord:30");
    admit(&world, &elsewhere, "aria").await;
    say(&world, "1", "before").await;
    assert_eq!(ignore(&world, "1", true).await, (true, true));
    assert_eq!(ignore(&world, "1", true).await, (false, true));

    let world = world.crash().await;
    world.forget_in("discord:1", "discord:5", false).await.unwrap();
    let world = world.crash().await;

    assert_eq!(inbound_events(&world).said(&general(), ana(&world, "2", "hi")).await, Ok(Acceptance::Ignored));
    say_in(&world, &elsewhere, ana(&world, "2", "hi")).await;
    say_in(&world, &general(), by("6", ana(&world, "3", "hi"))).await;
    assert_eq!(ignore(&world, "1", false).await, (true, false));
    say(&world, "4", "heard again").await;
    let world = world.crash().await;
    say(&world, "5", "and again").await;
}

/// Whether this changed the opt-out, and whether the person has opted out now.
async fn ignore(world: &World, guild: &str, ignored: bool) -> (bool, bool) {
    let (guild, ana) = (format!("discord:{guild}").into(), PersonId::from("discord:5"));
    let ignoring = OptOutService::new(world.context.clone());
    let changed = ignoring.ignore(&guild, &ana, ignored).await.unwrap();
    (changed, ignoring.is_ignored(&guild, &ana))
}
