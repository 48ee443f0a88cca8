//! Looking up posted parts in a channel's history after a crash.

use std::collections::BTreeSet;
use std::sync::Arc;

use tertulia::ports::chat_platform::{ChatPlatform as _, NotRead, Part};

use super::super::counterpart::{Does, Intents, On, Permissions};
use super::super::home::{Home, part, snowflake};
use super::{Scene, client, direct, say};

#[tokio::test]
async fn posted_parts_are_found_by_a_client_with_an_empty_cache() {
    let Home { discord, general, ana, .. } = Home::new().await;
    let (direct_channel, request) = discord.direct(ana, "hi");
    let before = discord.say(ana, general, "Good evening");
    let first = client(&discord);
    let (open, private) = (part(general, "**Good** evening "), direct(direct_channel, "Hello"));
    let posted = [say(&first, &open).await, say(&first, &private).await];
    discord.say(ana, general, "**Good** evening ");
    // A deleted webhook still counts as ours.
    discord.remove_webhook(discord.look(|state| *state.world.webhooks.keys().next().expect("a webhook")));

    let second = client(&discord);
    let found_open = second.find(&open, Some(&before.to_string()), &none_taken()).await.expect("the history can be read");
    let found_private = second.find(&private, Some(&request.to_string()), &none_taken()).await.expect("the history can be read");

    assert_eq!(found_open.as_deref(), Some(&*posted[0].to_string()));
    assert_eq!(found_private.as_deref(), Some(&*posted[1].to_string()));
    assert_eq!(second.newest(&open.channel, &[]), found_open);
}

#[tokio::test]
async fn a_message_that_is_recorded_as_another_part_does_not_match() {
    let Home { discord, general, ana, .. } = Home::new().await;
    let before = discord.say(ana, general, "hi").to_string();
    let first = client(&discord);
    let statement = part(general, "Well.");
    let earlier: Arc<str> = say(&first, &statement).await.to_string().into();
    let second = client(&discord);
    let taken = BTreeSet::from([earlier.clone()]);

    let newest = second.newest(&statement.channel, &["1".into(), earlier.clone(), before.as_str().into()]);
    let missing = second.find(&statement, Some(&before), &taken).await;
    let posted = say(&first, &statement).await.to_string();
    let found = second.find(&statement, Some(&before), &taken).await;

    assert_eq!(newest, Some(earlier));
    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("the history can be read").as_deref(), Some(&*posted));
}

#[tokio::test]
async fn a_part_with_an_uncertain_match_is_not_sent_again() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    let statement = part(general, "Hello @Ana");
    first.cache().person_spoke(Some(snowflake(guild)), snowflake(general), snowflake(ana), "Ana");

    say(&first, &statement).await;
    let mentioning = second.find(&statement, Some(&before), &none_taken()).await;
    let other = discord.channel(guild, "other");
    let start = discord.say(ana, other, "hi").to_string();
    let webhook = discord.foreign_webhook(other, "somebody's");
    discord.say_by_webhook(webhook, "Mira", "Hello");
    let foreign = second.find(&part(other, "Hello"), Some(&start), &none_taken()).await;
    let without_start = second.find(&part(other, "Hello"), None, &none_taken()).await;

    for found in [mentioning, foreign, without_start] {
        assert!(matches!(found, Err(NotRead::Never(_))), "{found:?}");
    }
}

#[tokio::test]
async fn a_part_whose_content_discord_withholds_is_found() {
    let Home { discord, general, ana, .. } = Home::new().await;
    discord.set_privileged(Intents::empty());
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    say(&first, &part(general, "Something else")).await;
    let statement = part(general, "Well.");

    // With the webhook's token, Discord returns the content. So the companion's other statement does not match.
    let missing = second.find(&statement, Some(&before), &none_taken()).await;
    let posted = say(&first, &statement).await;
    let found = second.find(&statement, Some(&before), &none_taken()).await;

    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("the history can be read").as_deref(), Some(&*posted.to_string()));
    assert_eq!(discord.posts().len(), 2);
}

#[tokio::test]
async fn without_its_webhook_a_part_with_withheld_content_is_found_by_speaker_and_order() {
    let Home { discord, general, ana, .. } = Home::new().await;
    discord.set_privileged(Intents::empty());
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    say(&first, &Part { name: "Zed".into(), ..part(general, "Not I") }).await;
    let statement = part(general, "Well.");
    let posted = say(&first, &statement).await.to_string();
    discord.remove_webhook(discord.look(|state| *state.world.webhooks.keys().next().expect("a webhook")));

    let found = second.find(&statement, Some(&before), &none_taken()).await;
    // The message is on record as another part, and there is no other candidate.
    let missing = second.find(&statement, Some(&before), &BTreeSet::from([posted.as_str().into()])).await;

    assert_eq!(found.expect("the history can be read").as_deref(), Some(&*posted));
    assert_eq!(missing, Ok(None));
}

#[tokio::test]
async fn without_access_to_the_history_the_outcome_stays_unknown() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let bot_role = discord.bot_role(guild);
    let statement = part(general, "Hello");
    let before = client.newest(&statement.channel, &[]).expect("a Discord channel always has one");
    let empty = client.find(&statement, Some(&before), &none_taken()).await;
    say(&client, &statement).await;

    for role in [bot_role, guild] {
        discord.deny(general, role, Permissions::READ_MESSAGE_HISTORY);
    }
    let hidden = client.find(&statement, Some(&before), &none_taken()).await;
    discord.remove_channel(general);
    let gone = client.find(&statement, Some(&before), &none_taken()).await;

    assert_eq!(empty, Ok(None));
    assert!(matches!(&hidden, Err(NotRead::Never(why)) if why.contains("allow Read Message History")), "{hidden:?}");
    assert!(matches!(&gone, Err(NotRead::Never(why)) if why.contains("does not exist any more")), "{gone:?}");
}

#[tokio::test]
async fn a_lookup_reads_several_pages_and_gives_up_after_a_thousand_messages() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;
    let before = discord.say(ana, general, "hi").to_string();
    for n in 0..250 {
        discord.say(ana, general, &n.to_string());
    }
    let statement = part(general, "At last");
    let missing = client.find(&statement, Some(&before), &none_taken()).await;
    let posted = say(&client, &statement).await.to_string();
    let found = client.find(&statement, Some(&before), &none_taken()).await;
    for n in 0..1_000 {
        discord.say(ana, general, &n.to_string());
    }
    let lost = client.find(&part(general, "Never sent"), Some(&before), &none_taken()).await;

    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("the history can be read").as_deref(), Some(&*posted));
    assert!(matches!(&lost, Err(NotRead::Never(why)) if why.contains("too many messages")), "{lost:?}");
}

#[tokio::test]
async fn a_failed_lookup_can_be_repeated() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    let statement = part(general, "Hello");
    let before = client.newest(&statement.channel, &[]).expect("a Discord channel always has one");
    let posted = say(&client, &statement).await.to_string();

    for does in [Does::Status(502), Does::Cut, Does::Garbled] {
        discord.spoil_next(1, On::route("messages"), does.clone());
        let later = client.find(&statement, Some(&before), &none_taken()).await;
        assert!(matches!(later, Err(NotRead::Later { .. })), "{does:?}: {later:?}");
    }
    let found = client.find(&statement, Some(&before), &none_taken()).await;

    assert_eq!(found.expect("the history can be read").as_deref(), Some(&*posted));
}

/// No message is on record as another part.
fn none_taken() -> BTreeSet<Arc<str>> {
    BTreeSet::new()
}
