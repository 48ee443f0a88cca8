//! Catching up: messages that were sent while no connection was up.

use std::time::Duration;

use tertulia::domain::moment::Moment;
use tertulia::settings::discord::Discord as Section;

use super::super::counterpart::{Counterpart, Does, INVITED, On, Permissions, Scope, now_ms};
use super::super::home::Home;
use super::{Process, home};

/// The number of requests for pages of channels' histories.
fn history_requests(discord: &Counterpart) -> usize {
    discord.requests("messages")
}

#[tokio::test]
async fn missed_messages_are_read_in_order_before_new_ones() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let process = Process::start(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("the message", |core| core.texts(general).len() == 1).await;
    process.stop().await;
    for number in 0..230 {
        discord.say(ana, general, &format!("missed {number}"));
    }

    let process = Process::connect(&discord, &core, |_| {}).await;
    discord.sessions(1).await;
    discord.say(ana, general, "live");
    core.until("all messages", |core| core.texts(general).len() == 232).await;
    process.wait_until_all_kept(&discord).await;

    let missed = (0..230).map(|number| format!("Ana: missed {number}"));
    let expected: Vec<_> = ["Ana: before".to_owned()].into_iter().chain(missed).chain(["Ana: live".to_owned()]).collect();
    assert_eq!(core.texts(general), expected);
    assert_eq!(core.catch_ups(general), [(230, None)]);
    assert_eq!(history_requests(&discord), 3);
}

#[tokio::test]
async fn no_history_is_requested_where_nothing_was_missed() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let other = discord.channel(guild, "other");
    let process = Process::start(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("the message", |core| core.texts(general).len() == 1).await;
    process.stop().await;
    discord.say(ana, other, "without a companion");

    Process::start(&discord, &core).await;

    assert_eq!((history_requests(&discord), core.catch_ups(general)), (0, vec![]));
}

#[tokio::test]
async fn messages_of_other_bots_are_read_only_once() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let beep = discord.foreign_bot("Beep");
    discord.join(guild, beep);
    discord.say(ana, general, "before");
    discord.say(beep, general, "beep");
    let newest = discord.say(beep, general, "boop");

    let first = Process::start(&discord, &core).await;
    core.until_marked(general, newest).await;
    first.stop().await;
    Process::start(&discord, &core).await;

    assert_eq!(core.texts(general), ["Ana: before"]);
    assert_eq!((history_requests(&discord), core.catch_ups(general)), (1, vec![(3, None)]));
}

#[tokio::test]
async fn messages_from_before_the_first_member_joined_are_not_read() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    discord.say(ana, general, "long ago");
    let since = Moment::from_micros((now_ms() + 3_600_000) * 1_000);
    core.add_companion_since(format!("discord:{guild}"), general, since);

    Process::start(&discord, &core).await;

    assert_eq!((core.texts(general).len(), history_requests(&discord)), (0, 0));
}

#[tokio::test]
async fn messages_over_the_backfill_limit_become_a_gap() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let ids: Vec<_> = (0..150).map(|number| discord.say(ana, general, &number.to_string())).collect();
    let process = Process::connect(&discord, &core, |settings| settings.backfill_messages = 120).await;
    process.wait_until_all_kept(&discord).await;

    assert_eq!((core.texts(general).len(), core.texts(general)[0].as_str()), (120, "Ana: 30"));
    let gaps = core.gaps(general);
    assert_eq!((gaps.len(), &*gaps[0].why, &*gaps[0].before), (1, "too_many", &*ids[30].to_string()));
    process.stop().await;
    // The gap is on record, so it is not looked for again.
    Process::start(&discord, &core).await;
    assert_eq!(core.catch_ups(general), [(0, Some("too_many".into())), (120, None)]);
}

#[tokio::test]
async fn the_gap_of_a_catch_up_that_is_interrupted_is_on_record() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let ids: Vec<_> = (0..150).map(|number| discord.say(ana, general, &number.to_string())).collect();
    core.hold_after(general, 50);
    let interrupted = Process::connect(&discord, &core, |settings| settings.backfill_messages = 120).await;
    core.until("some messages", |core| core.texts(general).len() == 50).await;
    interrupted.stop().await;
    core.release(general);

    Process::start(&discord, &core).await;

    let gaps: Vec<_> = core.gaps(general).into_iter().map(|gap| (gap.before, gap.why)).collect();
    assert_eq!(gaps, [(ids[30].to_string().into(), "too_many".into())]);
    assert_eq!(core.texts(general), (30..150).map(|number| format!("Ana: {number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn without_backfill_and_when_they_are_too_old_missed_messages_become_a_gap_and_no_history_is_requested() {
    let no_messages: fn(&mut Section) = |settings| settings.backfill_messages = 0;
    for (limits, why) in [(no_messages, "too_many"), (|settings| settings.backfill_secs = 0.0, "too_old")] {
        let (Home { discord, general, ana, .. }, core) = home().await;
        discord.say(ana, general, "missed");
        let process = Process::connect(&discord, &core, limits).await;
        process.wait_until_all_kept(&discord).await;
        discord.say(ana, general, "live");
        core.until("the message", |core| !core.texts(general).is_empty()).await;

        assert_eq!((core.texts(general), core.catch_ups(general)), (vec!["Ana: live".to_owned()], vec![(0, Some(why.into()))]));
        assert_eq!(history_requests(&discord), 0);
    }
}

#[tokio::test]
async fn a_history_that_the_bot_may_not_read_becomes_a_gap() {
    let (Home { discord, guild, general, ana, bot }, core) = home().await;
    discord.say(ana, general, "missed");
    discord.deny(general, bot, Permissions::READ_MESSAGE_HISTORY);
    discord.deny(general, guild, Permissions::READ_MESSAGE_HISTORY);

    Process::start(&discord, &core).await;

    assert_eq!((core.texts(general).len(), core.catch_ups(general)), (0, vec![(0, Some("nothing_shown".into()))]));
}

#[tokio::test]
async fn a_refusal_becomes_a_gap_and_other_errors_are_retried() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let (limited, broken, refused) =
        (discord.channel(guild, "limited"), discord.channel(guild, "broken"), discord.channel(guild, "refused"));
    for channel in [limited, broken, refused] {
        core.add_companion(guild, channel);
    }
    for channel in [general, limited, broken, refused] {
        discord.say(ana, channel, "missed");
    }
    let on = |channel| On { route: Some("messages"), channel: Some(channel), ..On::default() };
    discord.spoil_next(2, on(limited), Does::TooMany { retry_after: Duration::from_millis(50), scope: Scope::User });
    discord.spoil_next(1, on(broken), Does::Status(502));
    discord.spoil(on(refused), Does::Status(403));

    Process::start(&discord, &core).await;

    for channel in [general, limited, broken] {
        assert_eq!((core.texts(channel), core.catch_ups(channel)), (vec!["Ana: missed".to_owned()], vec![(1, None)]));
    }
    assert_eq!((core.texts(refused).len(), core.catch_ups(refused)), (0, vec![(0, Some("refused".into()))]));
}

#[tokio::test]
async fn threads_and_direct_messages_catch_up_and_archived_threads_do_not() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let (thread, archived) = (discord.thread(general, "aside", ana), discord.thread(general, "long over", ana));
    let (direct, _) = discord.direct(ana, "psst");
    let (idle, _) = discord.direct(discord.person("Bob"), "hello");
    core.add_companion_since(format!("dm:discord:{direct}"), direct, Moment::ZERO);
    core.add_companion_since(format!("dm:discord:{idle}"), idle, Moment::from_micros((now_ms() + 3_600_000) * 1_000));
    discord.say(ana, thread, "in a thread");
    discord.say(ana, archived, "in an old one");
    discord.with(|state| state.change_thread(archived, |thread| thread.archived = true));

    let process = Process::start(&discord, &core).await;

    assert_eq!((core.texts(thread), core.texts(direct)), (vec!["Ana: in a thread".to_owned()], vec!["Ana: psst".to_owned()]));
    assert!(core.last(direct).1.to_all);
    assert_eq!((core.texts(archived).len(), core.texts(idle).len()), (0, 0));
    assert_eq!(history_requests(&discord), 2);
    let title = process.client.platform.cache().title(&format!("discord:{idle}").as_str().into());
    assert_eq!(title.as_deref(), Some("direct message with Bob"));
}

#[tokio::test]
async fn messages_from_before_the_bot_was_invited_again_are_not_read() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let process = Process::start(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("the message", |core| core.texts(general).len() == 1).await;

    discord.expel_bot(guild);
    let hidden = discord.say(ana, general, "among ourselves");
    while now_ms() <= hidden.made_at_ms() {
        tokio::task::yield_now().await;
    }
    discord.invite_bot(guild, INVITED);
    discord.say(ana, general, "welcome back");
    core.until("the welcome message", |core| core.texts(general).len() >= 2).await;
    process.wait_until_all_kept(&discord).await;

    assert_eq!(core.texts(general), ["Ana: before", "Ana: welcome back"]);
}

#[tokio::test]
async fn a_reopened_thread_catches_up() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let thread = discord.thread(general, "aside", ana);
    discord.say(ana, thread, "before it was archived");
    discord.with(|state| state.change_thread(thread, |thread| thread.archived = true));
    let process = Process::start(&discord, &core).await;
    assert_eq!(core.texts(thread).len(), 0);

    discord.with(|state| state.change_thread(thread, |thread| thread.archived = false));
    discord.say(ana, thread, "and now");
    core.until("both messages", |core| core.texts(thread).len() == 2).await;
    process.wait_until_all_kept(&discord).await;

    assert_eq!(core.texts(thread), ["Ana: before it was archived", "Ana: and now"]);
}

#[tokio::test]
async fn messages_from_an_outage_are_read_when_it_is_over() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let process = Process::start(&discord, &core).await;

    process.stop().await;
    discord.say(ana, general, "meanwhile");
    discord.with(|state| state.gateway.sessions.clear());
    discord.set_outage(guild, true);
    let process = Process::connect(&discord, &core, |_| {}).await;
    discord.sessions(1).await;
    assert_eq!(core.texts(general).len(), 0);
    discord.set_outage(guild, false);

    core.until("the message", |core| core.texts(general) == ["Ana: meanwhile"]).await;
    process.wait_until_all_kept(&discord).await;
    assert_eq!(core.catch_ups(general), [(1, None)]);
}

#[tokio::test]
async fn a_session_that_resumes_in_a_new_process_reads_no_history() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let thread = discord.thread(general, "aside", ana);
    let process = Process::start(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("the message", |core| core.texts(general).len() == 1).await;
    process.wait_until_all_kept(&discord).await;
    let notes = process.stop().await;
    let role = discord.bot_role(guild);
    discord.say(ana, general, &format!("meanwhile <@&{role}> <#{general}>"));
    discord.say(ana, thread, "in a thread");

    let _process = Process::resume(&discord, &core, &notes).await;
    core.until("all messages", |core| core.texts(general).len() == 2 && core.texts(thread).len() == 1).await;

    // A resumed session does not report roles and channels again, so the new process requests them.
    assert_eq!(core.texts(general)[1], "Ana: meanwhile @tertulia #general");
    assert_eq!(core.last(thread).0.parent.map(|parent| parent.to_string()), Some(format!("discord:{general}")));
    assert_eq!((history_requests(&discord), core.catch_ups(general).len()), (0, 0));
    assert_eq!(discord.identifies(), 1);
}

#[tokio::test]
async fn messages_do_not_wait_for_the_channels_of_their_guild() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let process = Process::start(&discord, &core).await;
    process.wait_until_all_kept(&discord).await;
    let notes = process.stop().await;
    discord.say(ana, general, "meanwhile");
    let hang = discord.spoil(On { guild: Some(guild), ..On::default() }, Does::Hang);

    let _process = Process::resume(&discord, &core, &notes).await;
    core.until("the message", |core| core.texts(general) == ["Ana: meanwhile"]).await;
    discord.lift(hang);

    // The channels are requested nevertheless.
    discord.wait_for("the request for the channels", |state| state.journal.requests_of("guild_channels").count() == 1).await;
}

#[tokio::test]
async fn a_thread_whose_lookup_fails_once_loses_no_message() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let thread = discord.thread(general, "aside", ana);
    let process = Process::start(&discord, &core).await;
    process.wait_until_all_kept(&discord).await;
    let notes = process.stop().await;
    discord.say(ana, thread, "in a thread");
    discord.spoil_next(1, On { route: Some("channel"), channel: Some(thread), ..On::default() }, Does::Status(502));

    let _process = Process::resume(&discord, &core, &notes).await;

    core.until("the message", |core| core.texts(thread) == ["Ana: in a thread"]).await;
}

#[tokio::test]
async fn an_interrupted_catch_up_starts_again_with_the_resumed_session() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    for number in 0..3 {
        discord.say(ana, general, &number.to_string());
    }
    let hang = discord.spoil(On::route("messages"), Does::Hang);
    let process = Process::connect(&discord, &core, |_| {}).await;
    discord.wait_for("the request for the history", |state| state.journal.requests_of("messages").count() == 1).await;
    process.notes.until_session(0, |session| session["accepted"] == 1).await;

    let notes = process.stop().await;
    discord.lift(hang);
    let _process = Process::resume(&discord, &core, &notes).await;

    // The event that reports the guild was not kept, so Discord sends it again.
    core.until("all messages", |core| core.texts(general).len() == 3).await;
    core.until("the end of the catch-up", |core| core.catch_ups(general) == [(3, None)]).await;
}
