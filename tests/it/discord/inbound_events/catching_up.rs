//! What was said while nobody listened.

use std::sync::Arc;
use std::time::Duration;

use tertulia::domain::moment::Moment;

use super::super::counterpart::Counterpart;
use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::driver::make::INVITED;
use super::super::counterpart::faults::{Does, On, Scope};
use super::super::counterpart::id::Id;
use super::super::counterpart::moment::now_ms;
use super::super::counterpart::permissions::READ_MESSAGE_HISTORY;
use super::core::Core;
use super::{Process, counterpart};

/// A guild where a companion lives in one channel, and where Ana is.
async fn home() -> (Counterpart, Arc<Core>, [Id; 3]) {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    core.load_rooms(guild, general);
    (discord, core, [guild, general, ana])
}

fn questions(discord: &Counterpart) -> usize {
    discord.look(|state| state.journal.requests_of("messages").count())
}

/// A new session of a new process.
async fn again(discord: &Counterpart, core: &Arc<Core>) -> (Process, super::Connection) {
    let process = Process::new(discord, core);
    let mut connection = process.connect(discord).await;
    connection.settled().await;
    (process, connection)
}

#[tokio::test]
async fn what_was_missed_is_read_in_its_order_before_what_comes_then() {
    let (discord, core, [_, general, ana]) = home().await;
    let (process, connection) = again(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("it", |core| core.texts(general).len() == 1).await;
    drop((process, connection));
    for number in 0..230 {
        discord.say(ana, general, &format!("missed {number}"));
    }

    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    discord.sessions(1).await;
    discord.say(ana, general, "live");
    core.until("all of it", |core| core.texts(general).len() == 232).await;
    connection.settled().await;

    let missed = (0..230).map(|number| format!("Ana: missed {number}"));
    let expected: Vec<_> = ["Ana: before".to_owned()].into_iter().chain(missed).chain(["Ana: live".to_owned()]).collect();
    assert_eq!(core.texts(general), expected);
    assert_eq!(core.read(general), [(230, None)]);
    assert_eq!(questions(&discord), 3);
}

#[tokio::test]
async fn where_nothing_was_said_nothing_is_asked_for() {
    let (discord, core, [guild, general, ana]) = home().await;
    let other = discord.channel(guild, "other");
    let (process, connection) = again(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("it", |core| core.texts(general).len() == 1).await;
    drop((process, connection));
    discord.say(ana, other, "where nobody lives");

    again(&discord, &core).await;

    assert_eq!((questions(&discord), core.read(general)), (0, vec![]));
}

#[tokio::test]
async fn what_other_bots_said_is_read_once_and_not_again() {
    let (discord, core, [guild, general, ana]) = home().await;
    let bot = discord.foreign_bot("Beep");
    discord.join(guild, bot);
    discord.say(ana, general, "before");
    discord.say(bot, general, "beep");
    let newest = discord.say(bot, general, "boop");

    let first = again(&discord, &core).await;
    core.until("the mark", |core| core.mark(general) == Some(newest.to_string())).await;
    drop(first);
    again(&discord, &core).await;

    assert_eq!(core.texts(general), ["Ana: before"]);
    assert_eq!((questions(&discord), core.read(general)), (1, vec![(3, None)]));
}

#[tokio::test]
async fn what_was_said_before_anybody_lived_there_is_not_read() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    discord.say(ana, general, "long ago");
    let since = Moment::from_micros((now_ms() + 3_600_000) * 1_000);
    core.move_in_at(format!("discord:{guild}"), general, since);

    again(&discord, &core).await;

    assert_eq!((core.texts(general).len(), questions(&discord)), (0, 0));
}

#[tokio::test]
async fn more_than_may_be_read_is_a_gap() {
    let (discord, core, [_, general, ana]) = home().await;
    let ids: Vec<_> = (0..150).map(|number| discord.say(ana, general, &number.to_string())).collect();
    let process = Process::with(&discord, &core, |settings| settings.backfill_messages = 120);

    let mut connection = process.connect(&discord).await;
    connection.settled().await;

    assert_eq!((core.texts(general).len(), core.texts(general)[0].as_str()), (120, "Ana: 30"));
    let missed = core.missed(general);
    assert_eq!((missed.len(), missed[0].why, &*missed[0].before), (1, "too_many", &*ids[30].to_string()));
    drop((process, connection));
    // It is on record, and not looked for again.
    again(&discord, &core).await;
    assert_eq!(core.read(general).len(), 1);
}

#[tokio::test]
async fn with_no_backfill_everything_missed_is_a_gap_without_a_question() {
    let (discord, core, [_, general, ana]) = home().await;
    discord.say(ana, general, "missed");
    let process = Process::with(&discord, &core, |settings| settings.backfill_messages = 0);

    let mut connection = process.connect(&discord).await;
    connection.settled().await;
    discord.say(ana, general, "live");
    core.until("it", |core| !core.texts(general).is_empty()).await;

    assert_eq!((core.texts(general), core.read(general)), (vec!["Ana: live".to_owned()], vec![(0, Some("too_many"))]));
    assert_eq!(questions(&discord), 0);
}

#[tokio::test]
async fn what_is_too_old_is_a_gap() {
    let (discord, core, [_, general, ana]) = home().await;
    discord.say(ana, general, "missed");
    let process = Process::with(&discord, &core, |settings| settings.backfill_secs = 0.0);

    let mut connection = process.connect(&discord).await;
    connection.settled().await;

    assert_eq!((core.texts(general).len(), core.read(general)), (0, vec![(0, Some("too_old"))]));
}

#[tokio::test]
async fn where_the_history_may_not_be_read_the_gap_is_on_record() {
    let (discord, core, [guild, general, ana]) = home().await;
    discord.say(ana, general, "missed");
    discord.overwrite(general, Overwrite::member(discord.look(|state| state.world.bot()), 0, READ_MESSAGE_HISTORY));
    discord.overwrite(general, Overwrite::role(guild, 0, READ_MESSAGE_HISTORY));

    again(&discord, &core).await;

    assert_eq!((core.texts(general).len(), core.read(general)), (0, vec![(0, Some("nothing_shown"))]));
}

#[tokio::test]
async fn a_refusal_is_a_gap_and_trouble_is_waited_for() {
    let (discord, core, [guild, general, ana]) = home().await;
    let (limited, broken, refused) =
        (discord.channel(guild, "limited"), discord.channel(guild, "broken"), discord.channel(guild, "refused"));
    for channel in [limited, broken, refused] {
        core.load_rooms(guild, channel);
    }
    for channel in [general, limited, broken, refused] {
        discord.say(ana, channel, "missed");
    }
    let on = |channel| On { route: Some("messages"), channel: Some(channel), ..On::default() };
    discord.spoil_next(2, on(limited), Does::TooMany { retry_after: Duration::from_millis(50), scope: Scope::User });
    discord.spoil_next(1, on(broken), Does::Status(502));
    discord.spoil(on(refused), Does::Status(403));

    again(&discord, &core).await;

    for channel in [general, limited, broken] {
        assert_eq!((core.texts(channel), core.read(channel)), (vec!["Ana: missed".to_owned()], vec![(1, None)]));
    }
    assert_eq!((core.texts(refused).len(), core.read(refused)), (0, vec![(0, Some("refused"))]));
}

#[tokio::test]
async fn threads_and_direct_messages_are_caught_up_with_and_archived_threads_are_not() {
    let (discord, core, [_, general, ana]) = home().await;
    let (thread, archived) = (
        discord.thread(general, Kind::PublicThread, "aside", ana),
        discord.thread(general, Kind::PublicThread, "long over", ana),
    );
    let (talk, _) = discord.direct(ana, "psst");
    let (idle, _) = discord.direct(discord.person("Bob"), "hello");
    core.move_in_at(format!("dm:discord:{talk}"), talk, Moment::ZERO);
    core.move_in_at(format!("dm:discord:{idle}"), idle, Moment::from_micros((now_ms() + 3_600_000) * 1_000));
    discord.say(ana, thread, "in a thread");
    discord.say(ana, archived, "in an old one");
    discord.with(|state| state.change_thread(archived, |thread| thread.archived = true));

    let (process, _connection) = again(&discord, &core).await;

    assert_eq!((core.texts(thread), core.texts(talk)), (vec!["Ana: in a thread".to_owned()], vec!["Ana: psst".to_owned()]));
    assert!(core.last(talk).1.to_all);
    assert_eq!((core.texts(archived).len(), core.texts(idle).len()), (0, 0));
    assert_eq!(questions(&discord), 2);
    let title = process.discord.cache().title(&format!("discord:{idle}").as_str().into());
    assert_eq!(title.as_deref(), Some("direct message with Bob"));
}

#[tokio::test]
async fn what_was_said_before_the_bot_was_invited_again_is_not_read() {
    let (discord, core, [guild, general, ana]) = home().await;
    let (process, mut connection) = again(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("it", |core| core.texts(general).len() == 1).await;

    discord.expel_bot(guild);
    let hidden = discord.say(ana, general, "among ourselves");
    while now_ms() <= hidden.made_at_ms() {
        tokio::task::yield_now().await;
    }
    discord.invite_bot(guild, INVITED);
    discord.say(ana, general, "welcome back");
    core.until("the welcome", |core| core.texts(general).len() >= 2).await;
    connection.settled().await;
    drop(process);

    assert_eq!(core.texts(general), ["Ana: before", "Ana: welcome back"]);
}

#[tokio::test]
async fn a_thread_that_comes_back_is_caught_up_with() {
    let (discord, core, [_, general, ana]) = home().await;
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    discord.say(ana, thread, "before it was archived");
    discord.with(|state| state.change_thread(thread, |thread| thread.archived = true));
    let (_process, mut connection) = again(&discord, &core).await;
    assert_eq!(core.texts(thread).len(), 0);

    discord.with(|state| state.change_thread(thread, |thread| thread.archived = false));
    discord.say(ana, thread, "and now");
    core.until("both", |core| core.texts(thread).len() == 2).await;
    connection.settled().await;

    assert_eq!(core.texts(thread), ["Ana: before it was archived", "Ana: and now"]);
}

#[tokio::test]
async fn what_was_said_in_an_outage_is_read_when_it_is_over() {
    let (discord, core, [guild, general, ana]) = home().await;
    let (_process, mut connection) = again(&discord, &core).await;
    let told = connection.seen.borrow().told;

    discord.cut(0);
    let session = connection.end().await;
    discord.say(ana, general, "meanwhile");
    discord.with(|state| state.gateway.sessions.clear());
    assert!(session.sequence >= told);
    let process = Process::new(&discord, &core);
    discord.set_outage(guild, true);
    connection = process.connect(&discord).await;
    discord.sessions(1).await;
    assert_eq!(core.texts(general).len(), 0);
    discord.set_outage(guild, false);

    core.until("it", |core| core.texts(general) == ["Ana: meanwhile"]).await;
    connection.settled().await;
    assert_eq!(core.read(general), [(1, None)]);
}

#[tokio::test]
async fn a_session_that_goes_on_needs_no_reading_even_in_a_new_process() {
    let (discord, core, [guild, general, ana]) = home().await;
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    let (process, mut connection) = again(&discord, &core).await;
    discord.say(ana, general, "before");
    core.until("it", |core| core.texts(general).len() == 1).await;
    connection.settled().await;
    let session = connection.end().await;
    drop(process);
    let bot = discord.look(|state| state.world.bot());
    let role =
        discord.look(|state| state.world.guilds[&guild].roles.values().find(|role| role.bot == Some(bot)).expect("a role").id);
    discord.say(ana, general, &format!("meanwhile <@&{role}> <#{general}>"));
    discord.say(ana, thread, "in a thread");

    let process = Process::new(&discord, &core);
    let _connection = process.resume(&discord, &session).await;
    core.until("all of it", |core| core.texts(general).len() == 2 && core.texts(thread).len() == 1).await;

    // What the process before was told is asked for.
    assert_eq!(core.texts(general)[1], "Ana: meanwhile @tertulia #general");
    assert_eq!(core.last(thread).0.parent.map(|parent| parent.to_string()), Some(format!("discord:{general}")));
    assert_eq!((questions(&discord), core.read(general).len()), (0, 0));
    assert_eq!(discord.look(|state| state.journal.identifies.len()), 1);
}

#[tokio::test]
async fn what_is_said_does_not_wait_for_what_a_guild_is_called() {
    let (discord, core, [guild, general, ana]) = home().await;
    let (process, mut connection) = again(&discord, &core).await;
    connection.settled().await;
    let session = connection.end().await;
    drop(process);
    discord.say(ana, general, "meanwhile");
    let hanging = discord.spoil(On { guild: Some(guild), ..On::default() }, Does::Hang);

    let process = Process::new(&discord, &core);
    let _connection = process.resume(&discord, &session).await;
    core.until("it", |core| core.texts(general) == ["Ana: meanwhile"]).await;
    discord.lift(hanging);

    // It is asked for all the same.
    discord.until("the questions", |state| (state.journal.requests_of("guild_channels").count() == 1).then_some(())).await;
}

#[tokio::test]
async fn a_thread_that_cannot_be_asked_for_at_once_loses_nothing() {
    let (discord, core, [_, general, ana]) = home().await;
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    let (process, mut connection) = again(&discord, &core).await;
    connection.settled().await;
    let session = connection.end().await;
    drop(process);
    discord.say(ana, thread, "in a thread");
    discord.spoil_next(1, On { route: Some("channel"), channel: Some(thread), ..On::default() }, Does::Status(502));

    let process = Process::new(&discord, &core);
    let _connection = process.resume(&discord, &session).await;

    core.until("it", |core| core.texts(thread) == ["Ana: in a thread"]).await;
}

#[tokio::test]
async fn a_catch_up_that_is_cut_off_begins_again_where_it_was() {
    let (discord, core, [_, general, ana]) = home().await;
    for number in 0..3 {
        discord.say(ana, general, &number.to_string());
    }
    let hang = discord.spoil(On { route: Some("messages"), ..On::default() }, Does::Hang);
    let process = Process::new(&discord, &core);
    let connection = process.connect(&discord).await;
    discord.until("the question", |state| (state.journal.requests_of("messages").count() == 1).then_some(())).await;

    let session = connection.end().await;
    discord.lift(hang);
    let _connection = process.resume(&discord, &session).await;

    // The guild was not accepted, so that it is told again.
    core.until("all of it", |core| core.texts(general).len() == 3).await;
    core.until("the end of it", |core| core.read(general) == [(3, None)]).await;
}
