//! After a crash it is read back what was posted.

use std::collections::BTreeSet;
use std::sync::Arc;

use tertulia::ports::chat_platform::{ChatPlatform as _, NotRead, Part};

use super::super::counterpart::channels::Overwrite;
use super::super::counterpart::faults::{Does, On};
use super::super::counterpart::permissions::READ_MESSAGE_HISTORY;
use super::{client, direct, home, part, say, snowflake};

#[tokio::test]
async fn what_was_posted_is_found_by_a_client_that_knows_nothing() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let (talk, asked) = discord.direct(ana, "hi");
    let before = discord.say(ana, general, "Good evening");
    let first = client(&discord);
    let (open, private) = (part(general, "**Good** evening "), direct(talk, "Hello"));
    let posted = [say(&first, &open).await, say(&first, &private).await];
    discord.say(ana, general, "**Good** evening ");
    // A webhook that was replaced since is still ours.
    discord.remove_webhook(discord.look(|state| *state.world.webhooks.keys().next().expect("one")));

    let second = client(&discord);
    let found_open = second.find(&open, Some(&before.to_string()), &nothing()).await.expect("it can be read");
    let found_private = second.find(&private, Some(&asked.to_string()), &nothing()).await.expect("it can be read");

    assert_eq!(found_open.as_deref(), Some(&*posted[0].to_string()));
    assert_eq!(found_private.as_deref(), Some(&*posted[1].to_string()));
    assert_eq!(second.newest(&open.channel, &[]), found_open);
}

#[tokio::test]
async fn only_the_same_words_by_the_same_speaker_after_that_message_are_it() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let client = client(&discord);
    let words = part(general, "Well.");
    let earlier = say(&client, &words).await;
    say(&client, &Part { name: "Zed".into(), ..words.clone() }).await;
    say(&client, &part(general, "Well, well.")).await;
    discord.say(ana, general, "Well.");

    let found = client.find(&words, Some(&earlier.to_string()), &nothing()).await;

    assert_eq!(found, Ok(None));
}

#[tokio::test]
async fn the_same_words_on_record_as_something_else_are_not_it() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let before = discord.say(ana, general, "hi").to_string();
    let first = client(&discord);
    let words = part(general, "Well.");
    let earlier: Arc<str> = say(&first, &words).await.to_string().into();
    let second = client(&discord);
    let taken = BTreeSet::from([earlier.clone()]);

    let newest = second.newest(&words.channel, &["1".into(), earlier.clone(), before.as_str().into()]);
    let missing = second.find(&words, Some(&before), &taken).await;
    let posted = say(&first, &words).await.to_string();
    let found = second.find(&words, Some(&before), &taken).await;

    assert_eq!(newest, Some(earlier));
    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("it can be read").as_deref(), Some(&*posted));
}

#[tokio::test]
async fn what_may_be_it_is_not_sent_again() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    let words = part(general, "Hello @Ana");
    first.cache().person_spoke(Some(snowflake(guild)), snowflake(general), snowflake(ana), "Ana");

    say(&first, &words).await;
    let called = second.find(&words, Some(&before), &nothing()).await;
    let other = discord.channel(guild, "other");
    let begun = discord.say(ana, other, "hi").to_string();
    let foreign = discord.foreign_webhook(other, "somebody's");
    discord.say_by_webhook(foreign, "Mira", "Hello");
    let foreign = second.find(&part(other, "Hello"), Some(&begun), &nothing()).await;
    let unrecorded = second.find(&part(other, "Hello"), None, &nothing()).await;

    for never in [called, foreign, unrecorded] {
        assert!(matches!(never, Err(NotRead::Never(_))), "{never:?}");
    }
}

#[tokio::test]
async fn what_discord_withholds_is_found_and_not_sent_again() {
    let (discord, guild, general) = home().await;
    discord.set_privileged(0);
    let ana = discord.member(guild, "Ana");
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    say(&first, &part(general, "Something else")).await;
    let words = part(general, "Well.");

    // What else the companion said there is told apart by the webhook's own token.
    let missing = second.find(&words, Some(&before), &nothing()).await;
    let posted = say(&first, &words).await;
    let found = second.find(&words, Some(&before), &nothing()).await;

    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("it can be read").as_deref(), Some(&*posted.to_string()));
    assert_eq!(discord.posts().len(), 2);
}

#[tokio::test]
async fn what_nobody_can_be_shown_any_more_is_told_by_its_speaker_and_its_order() {
    let (discord, guild, general) = home().await;
    discord.set_privileged(0);
    let ana = discord.member(guild, "Ana");
    let before = discord.say(ana, general, "hi").to_string();
    let (first, second) = (client(&discord), client(&discord));
    say(&first, &Part { name: "Zed".into(), ..part(general, "Not I") }).await;
    let words = part(general, "Well.");
    let posted = say(&first, &words).await.to_string();
    discord.remove_webhook(discord.look(|state| *state.world.webhooks.keys().next().expect("one")));

    let found = second.find(&words, Some(&before), &nothing()).await;
    // On record it is something else, and nothing is there that could be it.
    let missing = second.find(&words, Some(&before), &BTreeSet::from([posted.as_str().into()])).await;

    assert_eq!(found.expect("it can be read").as_deref(), Some(&*posted));
    assert_eq!(missing, Ok(None));
}

#[tokio::test]
async fn where_the_history_may_not_be_read_nothing_is_known() {
    let (discord, guild, general) = home().await;
    let bot_role = discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0]);
    let client = client(&discord);
    let words = part(general, "Hello");
    let before = client.newest(&words.channel, &[]).expect("always");
    let empty = client.find(&words, Some(&before), &nothing()).await;
    say(&client, &words).await;

    for overwrite in [Overwrite::role(bot_role, 0, READ_MESSAGE_HISTORY), Overwrite::role(guild, 0, READ_MESSAGE_HISTORY)] {
        discord.overwrite(general, overwrite);
    }
    let hidden = client.find(&words, Some(&before), &nothing()).await;
    discord.remove_channel(general);
    let gone = client.find(&words, Some(&before), &nothing()).await;

    assert_eq!(empty, Ok(None));
    assert!(matches!(&hidden, Err(NotRead::Never(why)) if why.contains("allow Read Message History")), "{hidden:?}");
    assert!(matches!(&gone, Err(NotRead::Never(why)) if why.contains("does not exist any more")), "{gone:?}");
}

#[tokio::test]
async fn a_page_is_not_all() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let before = discord.say(ana, general, "hi").to_string();
    for n in 0..250 {
        discord.say(ana, general, &format!("{n}"));
    }
    let client = client(&discord);
    let words = part(general, "At last");
    let missing = client.find(&words, Some(&before), &nothing()).await;
    let posted = say(&client, &words).await.to_string();
    let found = client.find(&words, Some(&before), &nothing()).await;
    for n in 0..1_000 {
        discord.say(ana, general, &format!("{n}"));
    }
    let lost = client.find(&part(general, "Never sent"), Some(&before), &nothing()).await;

    assert_eq!(missing, Ok(None));
    assert_eq!(found.expect("it can be read").as_deref(), Some(&*posted));
    assert!(matches!(&lost, Err(NotRead::Never(why)) if why.contains("too many messages")), "{lost:?}");
}

#[tokio::test]
async fn a_look_that_fails_is_tried_again() {
    let (discord, _, general) = home().await;
    let client = client(&discord);
    let words = part(general, "Hello");
    let before = client.newest(&words.channel, &[]).expect("always");
    let posted = say(&client, &words).await.to_string();

    for does in [Does::Status(502), Does::Cut, Does::Garbled] {
        discord.spoil_next(1, On { route: Some("messages"), ..On::default() }, does.clone());
        let later = client.find(&words, Some(&before), &nothing()).await;
        assert!(matches!(later, Err(NotRead::Later { .. })), "{does:?}: {later:?}");
    }
    let found = client.find(&words, Some(&before), &nothing()).await;

    assert_eq!(found.expect("it can be read").as_deref(), Some(&*posted));
}

/// Nothing of what is there is on record.
fn nothing() -> BTreeSet<Arc<str>> {
    BTreeSet::new()
}
