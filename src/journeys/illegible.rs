//! Journal entries that cannot be read. They may be anybody's, so an erasure that must leave them reports it.

use futures_util::StreamExt;
use serde_json::json;

use super::abroad::{self, ana, general};
use super::world::{World, channel_key, room};
use crate::actors::erasure::retention;
use crate::actors::inbound::Inbound;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::ports::backend::decisions::{DecisionQuery, Decisions};
use crate::ports::backend::keeping::{Forgotten, Person};
use crate::ports::backend::{Detail, Refused};
use crate::ports::inbound_events::{InboundError, InboundEvents, InboundMessage, ReplyTo};
use crate::ports::store::Value;
use crate::ports::store::key::{ChannelNo, Key};

#[tokio::test(start_paused = true)]
async fn a_forgotten_person_stays_listed_beside_an_unreadable_entry_and_that_is_reported() {
    let world = World::with_lobby().await;
    let damaged = sent_by_ana(&world, 3).await[1];
    let intact = put(&world, damaged, b"?").await;

    let first = world.forget("Ana", false).await;
    let remaining = everything(&world).await;
    let again = world.forget("Ana", false).await;

    for refused in [first, again] {
        let detail = left(refused);
        assert!(detail.contains("console:lobby") && detail.contains("everything readable is deleted"), "{detail}");
    }
    assert!(!remaining.contains("zebra-0") && !remaining.contains("zebra-2"), "everything readable is deleted: {remaining}");
    assert_eq!(listed(&world).await, 1, "the unreadable entry is found again");

    // Restores the value, as a backup would.
    put(&world, damaged, intact).await;
    let forgotten = world.forget("Ana", false).await.unwrap();

    assert_eq!(forgotten.messages, 1);
    assert!(!everything(&world).await.contains("zebra"));
    assert_eq!(listed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_deletes_all_but_an_unreadable_entry_stays_listed() {
    let world = World::with_lobby().await;
    let sent = sent_by_ana(&world, 2).await;
    let intact = put(&world, sent[1], b"?").await;
    let other = world.say("lobby", "so it goes").await;

    world.backend.messages.delete(&room("lobby"), sent[0]).await.unwrap();
    world.backend.messages.delete(&room("lobby"), other).await.unwrap();

    assert_eq!(listed(&world).await, 1);
    put(&world, sent[1], intact).await;
    world.forget("Ana", false).await.unwrap();
    assert!(!everything(&world).await.contains("zebra"));
}

#[tokio::test(start_paused = true)]
async fn an_export_of_a_person_has_everything_readable_and_reports_the_rest() {
    let world = World::with_lobby().await;
    let sent = sent_by_ana(&world, 3).await;
    put(&world, sent[1], b"?").await;

    let lines = world.backend.records.export_person(Person { guild: "home".into(), id: "Ana".into() }).await.unwrap();
    let lines: Vec<_> = lines.collect().await;

    let [Ok(first), Ok(last), Err(Refused::Damaged(detail))] = &lines[..] else { panic!("{lines:?}") };
    assert!(first.contains("zebra-0") && last.contains("zebra-2"));
    assert!(detail.starts_with("1 entry where Ana said something cannot be read"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_person_in_an_unreadable_room_is_forgotten_and_exported_everywhere_else() {
    for is_nameless in [false, true] {
        let world = World::with_lobby().await;
        world.open("den", &["bruno"]).await;
        let sent = sent_by_ana(&world, 2).await;
        world.say_then_pass("den", "zebra-den", 60.0).await;
        let first = |ward, no| if is_nameless { key::channel_of(ward, no) } else { Key::event(ward, no, sent[0]) };
        world.damage(&channel_key("lobby"), first).await;

        let lines = world.backend.records.export_person(Person { guild: "home".into(), id: "Ana".into() }).await.unwrap();
        let lines: Vec<_> = lines.collect().await;
        let forgotten = world.forget("Ana", false).await;

        let [Ok(line), Err(Refused::Damaged(missing))] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.contains("zebra-den") && missing.contains("the rest is exported"), "{line} {missing}");
        let Err(Refused::Damaged(detail)) = forgotten else { panic!("no error is reported: {forgotten:?}") };
        assert!(detail.contains(if is_nameless { "channel 0 of ward" } else { "console:lobby" }), "{detail}");
        assert!(world.history("den").await.iter().all(|(_, text)| !text.contains("zebra")), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_readable_before_an_unreadable_last_entry_is_forgotten() {
    for is_restarted in [false, true] {
        let world = World::with_lobby().await;
        sent_by_ana(&world, 3).await;
        let last = last_of(&world).await;
        put(&world, last, b"?").await;
        let world = if is_restarted { world.crash().await } else { world };

        let first = world.forget("Ana", false).await;
        let remaining = everything(&world).await;
        let again = world.forget("Ana", false).await;

        for refused in [first, again] {
            left(refused);
        }
        assert!(!remaining.contains("zebra"), "restarted: {is_restarted}: {remaining}");
        assert_eq!(listed(&world).await, 1, "the unreadable entry is found again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_room_with_an_unreadable_last_entry_is_shown_as_far_as_possible() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say("lobby", "early").await;
    let damaged = world.say("lobby", "late").await;
    for seq in damaged.0..=last_of(&world).await.0 {
        put(&world, Seq(seq), b"?").await;
    }
    let world = world.crash().await;

    let state = world.state("lobby").await;
    let why = world.why("lobby", Some("aria"), None).await.unwrap();
    let rooms = world.backend.rooms.list().await.unwrap();
    world.pass(1.0).await;
    let (listed, later) = (world.backend.maintenance.quarantine().await.unwrap().channels, world.state("lobby").await);
    let asked_later = world.why("lobby", Some("aria"), None).await.unwrap();

    let named = format!("event {damaged} of channel console:lobby of guild home cannot be read: it has format version 63");
    for kept_away in [state.kept_away.as_ref().unwrap(), later.kept_away.as_ref().unwrap()] {
        assert!(kept_away.detail.contains(&named) && kept_away.detail.contains("restore an earlier backup"), "{kept_away:?}");
    }
    assert_eq!(
        state.companions[0].buffer.iter().map(|text| &**text).collect::<Vec<_>>(),
        ["early"],
        "everything before it is shown"
    );
    let [entry] = &listed[..] else { panic!("it is not listed: {listed:?}") };
    assert!((&*entry.id, &*entry.room) == ("channel:console:lobby", "lobby") && entry.detail.contains(&named), "{entry:?}");
    assert_eq!(later.kept_away.and_then(|kept_away| kept_away.id), Some(entry.id.clone()));
    for why in [why, asked_later] {
        let end = why.story.last().unwrap();
        assert!(
            end.seq == Some(damaged) && end.text.contains("cannot be read") && end.text.contains("history verify"),
            "{end:?}"
        );
        let waiting = why.waiting_for.unwrap().text;
        assert!(waiting.starts_with("The history of this room cannot be read"), "{waiting}");
    }
    assert_eq!(rooms.rooms.len(), 2);

    world.backend.rooms.delete(&room("lobby")).await.unwrap();
    world.rest().await;
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap().channels, []);
    assert_eq!(world.backend.rooms.list().await.unwrap().rooms.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn forgetting_beside_an_unreadable_snapshot_redacts_the_record_and_reports_it() {
    let world = World::with_lobby().await;
    sent_by_ana(&world, 3).await;
    let world = world.crash().await;
    world.put(&channel_key("lobby"), key::snapshot, b"?").await;

    left(world.forget("Ana", false).await);

    assert!(!everything(&world).await.contains("zebra"));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_usage_record_silences_nobody() {
    let world = World::with_lobby().await;
    sent_by_ana(&world, 1).await;
    world.put(&channel_key("lobby"), |_, no| key::usage(&"home".into(), world.context.clock.now(), no, 99), b"?").await;
    let world = world.crash().await;

    let seq = world.say_then_pass("lobby", "Ari, one", 60.0).await;

    assert!(world.backend.maintenance.quarantine().await.unwrap().channels.is_empty());
    let decided = world.recorded("lobby", "decision").await;
    assert!(decided.iter().any(|decision| decision["seq"].as_u64() > Some(seq.0)), "{decided:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_are_accepted_although_the_pending_mark_is_unreadable() {
    let world = World::with_lobby().await;
    sent_by_ana(&world, 1).await;
    let world = world.crash().await;
    world.put(&channel_key("lobby"), key::pending, b"?").await;
    let world = world.crash().await;

    let seq = world.say("lobby", "Ari, one").await;

    assert!(seq > Seq(1));
}

#[tokio::test(start_paused = true)]
async fn a_platform_is_caught_up_with_beside_an_unreadable_entry_and_an_answer_to_it_is_accepted() {
    let (world, channel_key) = on_a_platform("hello").await;
    let damaged = world.reader().message(&channel_key, "101").await.unwrap().unwrap();
    world.put(&channel_key, |ward, no| Key::event(ward, no, damaged), b"?").await;
    let newest = async || Inbound::new(world.context.clone()).reached(&general()).await.unwrap().unwrap().newest;

    let before = newest().await;
    let reply_to = Some(ReplyTo::Foreign { id: "101".into(), by: None, quoted: None });
    abroad::deliver(&world, &general(), InboundMessage { reply_to, ..ana(&world, "102", "an answer") }).await;

    assert_eq!(before.as_deref(), Some("100"), "everything after it is read again");
    assert_eq!(newest().await.as_deref(), Some("102"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_on_a_platform_works_beside_an_unreadable_id() {
    let (world, channel_key) = on_a_platform("zebra").await;
    let reader = world.reader();
    let intact = reader.message(&channel_key, "100").await.unwrap().unwrap();
    world.damage(&channel_key, |ward, no| key::message_id(ward, no, "101")).await;

    let deleted = Inbound::new(world.context.clone()).deleted(&general(), &["101".into(), "100".into()]).await;

    assert!(matches!(deleted, Err(InboundError::Broken(_))), "the error is reported: {deleted:?}");
    let Some(Event::Said { message, .. }) = reader.event(&channel_key, intact).await.unwrap().map(|recorded| recorded.event)
    else {
        panic!("it exists")
    };
    assert_eq!(&*message.text, "");
}

#[tokio::test(start_paused = true)]
async fn retention_deletes_old_events_beside_an_unreadable_entry() {
    let world = World::with_lobby_settings(json!({ "storage": { "retention_days": 2 } })).await;
    sent_by_ana(&world, 3).await;
    world.pass(3.0 * 86_400.0).await;
    // Halving a journal begins with its first entry.
    put(&world, Seq(1), b"?").await;

    let passed = retention::pass(&world.context).await;

    assert_eq!((passed.channels, passed.failed), (1, 0));
    assert!(!everything(&world).await.contains("zebra"));
}

#[tokio::test(start_paused = true)]
async fn reads_of_a_room_with_unreadable_records_say_so_and_what_to_do() {
    let (world, sent) = torn_lobby().await;
    let world = world.crash().await;

    let history = world.try_history("lobby").await.map(drop);
    let why = world.why("lobby", Some("aria"), None).await.map(drop);
    let deleted = world.backend.messages.delete(&room("lobby"), sent[0]).await.map(drop);
    let accepted = world.try_say("lobby", json!({ "from": "Ana", "text": "hello?" })).await.map(drop);
    let state = world.state("lobby").await;
    let rooms = world.backend.rooms.list().await.unwrap().rooms;

    let named = "what is on record of channel console:lobby of guild home cannot be read (`tertulia history verify` says what): ";
    for (asked, refused) in [("history", history), ("why", why), ("unsay", deleted), ("say", accepted)] {
        let Err(Refused::Damaged(detail)) = refused else { panic!("{asked}: {refused:?}") };
        assert!(detail.starts_with(named) && detail.contains("is torn"), "{asked}: {detail}");
    }
    assert!(state.kept_away.unwrap().detail.contains(named));
    assert_eq!(rooms.len(), 2);
    let seq = world.say_then_pass("den", "Bruno?", 60.0).await;
    let everywhere = DecisionQuery { room: None, companion: None, after: None, limit: 10 };
    let Decisions { decisions, unreadable } = world.backend.records.decisions(everywhere).await.unwrap();
    assert_eq!(unreadable, [room("lobby")]);
    assert!(decisions.iter().any(|decision| *decision.room == *"den"), "{decisions:?}");
    assert!(world.recorded("den", "decision").await.iter().any(|decision| decision["seq"].as_u64() > Some(seq.0)));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_room_is_reported_to_those_who_watch_all_rooms_and_the_others_go_on() {
    let (world, sent) = torn_lobby().await;

    let mut resumed = world.watch_rooms(&format!("lobby.{}", sent[0])).await;
    let seen = resumed.seen().await;
    let world = world.crash().await;
    let mut watching = world.watch_rooms("").await;
    let after_crash = watching.seen().await;
    world.say("den", "Bruno?").await;

    let is_reported = |event: &serde_json::Value| {
        let named = "what is on record of channel console:lobby of guild home cannot be read";
        event["event"] == "unreadable"
            && event["channel"] == "console:lobby"
            && event["error"].as_str().is_some_and(|error| error.contains(named))
    };
    assert!(seen.iter().any(is_reported), "{seen:?}");
    assert!(after_crash.iter().any(is_reported), "{after_crash:?}");
    assert!(watching.seen().await.iter().any(|event| event["event"] == "message" && event["channel"] == "console:den"));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_deletes_what_follows_an_unreadable_part_stays_listed() {
    let world = World::with_lobby().await;
    let sent = sent_by_ana(&world, 3).await;
    let lobby = channel_key("lobby");
    world.damage(&lobby, |ward, no| Key::event(ward, no, sent[0])).await;

    let deleted = world.backend.messages.delete(&room("lobby"), sent[2]).await;

    assert_eq!(deleted, Ok(sent[2]));
    let remaining = world.reader().event(&lobby, sent[2]).await.unwrap().unwrap();
    assert!(matches!(&remaining.event, Event::Said { message, .. } if message.text.is_empty()), "{remaining:?}");
    assert_eq!(listed(&world).await, 1, "the unreadable part may be this person's");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_beside_an_unreadable_snapshot_names_the_room() {
    let world = World::with_lobby().await;
    let sent = sent_by_ana(&world, 1).await;
    world.damage(&channel_key("lobby"), key::snapshot).await;

    let deleted = world.backend.messages.delete(&room("lobby"), sent[0]).await;

    let Err(Refused::Damaged(detail)) = deleted else { panic!("{deleted:?}") };
    assert!(detail.contains("console:lobby of guild home cannot be read") && detail.contains("is torn"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_decoded_is_reported_with_its_room_and_what_to_do() {
    type Of = fn(&ChannelKey, ChannelNo) -> Key;
    let needed: [(&str, Of); 3] = [
        ("the number", |channel_key, _| key::channel_name(channel_key)),
        ("the number of the last event", |channel_key, no| Key::head(channel_key.ward(), no)),
        ("the marker of a deletion in progress", |channel_key, no| key::sweep(channel_key.ward(), no)),
    ];
    for (what, of) in needed {
        let world = World::with_lobby().await;
        sent_by_ana(&world, 1).await;
        let lobby = channel_key("lobby");
        world.put(&lobby, |_, no| of(&lobby, no), b"\x01!").await;
        let world = world.crash().await;

        let history = world.try_history("lobby").await.map(drop);
        let state = world.state("lobby").await;
        let kept_away = Err(Refused::Damaged(Detail::from(state.kept_away.unwrap().detail.to_string())));
        let deleted = world.backend.rooms.delete(&room("lobby")).await.map(drop);

        // Messages are shown even without the number of the last event.
        let is_told = what == "the number of the last event";
        assert_eq!(history.is_ok(), is_told, "{what}: {history:?}");
        let history = if is_told { kept_away.clone() } else { history };
        for (asked, refused) in [("history", history), ("state", kept_away), ("delete", deleted)] {
            let Err(Refused::Damaged(detail)) = refused else { panic!("{what}: {asked}: {refused:?}") };
            let named =
                "what is on record of channel console:lobby of guild home cannot be read (`tertulia history verify` says what): ";
            assert!(
                detail.contains(&format!("{named}{what}: ")) && detail.contains("with `tertulia history restore`"),
                "{asked}: {detail}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_beside_an_unreadable_one() {
    let world = World::with_lobby().await;
    let sent = sent_by_ana(&world, 1).await;
    world.put(&channel_key("lobby"), |ward, no| key::dead_letter(ward, no, sent[0]), b"?").await;
    let world = world.crash().await;
    world.say_then_pass("lobby", "Ari?", 1.0).await;

    let listed = world.backend.maintenance.quarantine().await.unwrap();

    assert_eq!(listed.messages, []);
    let [entry] = &listed.channels[..] else { panic!("its room is not listed: {listed:?}") };
    assert!(entry.detail.contains(&format!("the dead letter of event {} of channel console:lobby", sent[0])), "{}", entry.detail);
}

#[tokio::test(start_paused = true)]
async fn a_person_stays_opted_out_although_the_record_of_it_is_unreadable() {
    let world = World::with_lobby().await;
    sent_by_ana(&world, 1).await;
    world.put(&channel_key("lobby"), |_, _| key::opt_out(&"home".into(), &"Ben".into()), b"?").await;

    let world = world.crash().await;

    assert!(world.context.opt_outs.holds(&"home".into(), &"Ben".into()));
    assert!(!world.context.opt_outs.holds(&"home".into(), &"Ana".into()));
}

#[tokio::test(start_paused = true)]
async fn undecodable_ids_and_owed_replies_are_reported_with_their_room() {
    let (world, channel_key) = on_a_platform("hello").await;
    let reader = world.reader();
    world.put(&channel_key, |ward, no| key::message_id(ward, no, "100"), b"?").await;
    world.put(&channel_key, |ward, no| key::outbox(ward, no, Ticket(7)), b"?").await;

    let message = reader.message(&channel_key, "100").await.unwrap_err().to_string();
    let owed = reader.outbox(&channel_key).await.unwrap_err().to_string();
    let so_far = reader.restore_so_far(&channel_key).await.unwrap();

    for (refused, what) in [(&message, "an entry of the index of messages"), (&owed, "the owed reply 7")] {
        assert!(refused.starts_with(&format!("{what} of {channel_key} cannot be read: it has format version 63")), "{refused}");
        assert!(refused.ends_with("or delete the room"), "{refused}");
    }
    assert_eq!(so_far.wrong.map(|error| error.to_string()), Some(owed));
    assert!(so_far.restored.head > Seq::NONE, "the readable part is shown");
}

/// A system in which Ana sent messages to the channel under the ids 100 and 101.
async fn on_a_platform(text: &str) -> (World, ChannelKey) {
    let world = World::new().await;
    world.backend.rooms.admit(&general(), &"aria".into()).await.unwrap();
    for id in ["100", "101"] {
        abroad::deliver(&world, &general(), ana(&world, id, text)).await;
    }
    world.pass(60.0).await;
    (world, ChannelKey::new(&general().guild, &general().channel))
}

/// A lobby in which Ana has sent messages, and whose last entry is torn; and another room. Returns the numbers of the messages, too.
async fn torn_lobby() -> (World, Vec<Seq>) {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    let sent = sent_by_ana(&world, 3).await;
    let last = last_of(&world).await;
    world.damage(&channel_key("lobby"), |ward, no| Key::event(ward, no, last)).await;
    (world, sent)
}

/// The number of the journal's last entry.
async fn last_of(world: &World) -> Seq {
    world.reader().head(&channel_key("lobby")).await.unwrap().last
}

async fn sent_by_ana(world: &World, times: usize) -> Vec<Seq> {
    let mut sent = Vec::new();
    for number in 0..times {
        sent.push(world.say("lobby", &format!("zebra-{number}")).await);
    }
    world.pass(60.0).await;
    sent
}

/// Stores a value in the place of an event of the lobby, and returns the old value.
async fn put(world: &World, seq: Seq, value: impl Into<Value>) -> Value {
    world.put(&channel_key("lobby"), |ward, no| Key::event(ward, no, seq), value).await.unwrap()
}

/// What is reported about the one entry that may be Ana's and had to be left.
fn left(forgotten: Result<Forgotten, Refused>) -> String {
    let Err(Refused::Damaged(detail)) = forgotten else { panic!("no error is reported: {forgotten:?}") };
    assert!(detail.starts_with("1 entry cannot be read and may be this person's"), "{detail}");
    detail.to_string()
}

/// The number of channels in which Ana is listed.
async fn listed(world: &World) -> usize {
    world.reader().listed(&"home".into(), &"Ana".into()).await.unwrap().len()
}

async fn everything(world: &World) -> String {
    world.everything().await.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}
