use std::time::Duration;

use serde_json::json;

use super::super::{Ended, Event, Server};
use super::call::Call;
use super::world::{World, frames, server};

#[test]
fn a_resume_replays_what_was_missed_and_nothing_twice() {
    let mut world = World::connected(0);
    world.number = 9;
    world.tell_numbered(11, json!({"user_ids": ["1"]}));
    world.close(Some(4015));
    assert_eq!(world.events.drain(..).collect::<Vec<_>>(), [Event::Here(1), Event::Resuming]);
    world.open_socket();
    assert_eq!(
        world.told(7),
        [json!({"server_id": "11", "session_id": "secret-session", "token": "secret-token", "seq_ack": 10})]
    );

    world.number = 8;
    for user in [5, 6, 7, 8] {
        world.tell_numbered(13, json!({"user_id": user}));
    }
    world.tell(json!({"op": 9, "d": null}));
    world.number = 11;
    world.tell_numbered(13, json!({"user_id": 8}));
    world.tell_numbered(13, json!({"user_id": 9}));

    let expected = [Event::Left(7), Event::Left(8), Event::Resumed, Event::Left(9)];
    assert_eq!(world.events.drain(..).collect::<Vec<_>>(), expected);
    assert_eq!((world.counts().messages_repeated, world.counts().resumes), (3, 1));
}

#[test]
fn numbers_of_messages_wrap() {
    let mut world = World::connected(0);
    for number in [30_000, 60_000, u16::MAX - 2] {
        world.number = number;
        world.tell_numbered(11, json!({"user_ids": []}));
    }
    for user in 1..6 {
        world.tell_numbered(13, json!({"user_id": user}));
    }
    world.tell_binary(99, &[]);
    assert_eq!(world.take_events(|event| matches!(event, Event::Left(_)).then_some(())).len(), 5);
    world.close(None);
    world.open_socket();
    assert_eq!(world.told(7)[0]["seq_ack"], 4);
}

#[test]
fn a_heartbeat_that_is_not_acknowledged_leads_to_a_resume() {
    let mut world = World::connected(0);
    world.acknowledges = false;
    world.pass(Duration::from_millis(9_900));
    assert_eq!((world.told(3).len(), world.opened.len()), (1, 1));

    world.pass(Duration::from_millis(200));
    assert_eq!((world.opened.len(), &world.closed[..]), (2, &[4900][..]));
    assert_eq!(world.counts().missed_acknowledgements, 1);
    world.open_socket();
    assert_eq!(world.told(7).len(), 1);
}

#[test]
fn attempts_wait_longer_and_longer_until_they_are_given_up() {
    let mut world = World::connected(0);
    world.pass(Duration::from_secs(2));
    let began = world.now;
    let mut waits = Vec::new();
    while world.ended().is_none() {
        let opened = world.opened.len();
        world.close(None);
        let before = world.now;
        while world.opened.len() == opened && !world.events.contains(&Event::Ended(Ended::Unreachable)) {
            world.pass(Duration::from_millis(20));
        }
        waits.push(world.now.since(before).as_millis());
    }
    assert_eq!(waits, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000, 0]);
    assert!(world.now.since(began) < Duration::from_secs(30));
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let mut world = World::begun();
    world.pass(Duration::from_secs(200));
    assert_eq!((world.ended(), world.opened.len()), (Some(Ended::Unreachable), 11));
}

#[test]
fn kills_once_a_second_are_all_resumed_and_speech_goes_on() {
    let mut call = Call::with(&[1]);
    for round in 0..50_u8 {
        call.world.play(1, frames(60));
        call.world.pass(Duration::from_millis(1_100));
        call.world.close(Some(4015));
        call.say(0, &[round, 1]);
        call.world.pass(Duration::from_millis(100));
        call.say(0, &[round, 2]);
        call.world.open_socket();
        call.world.tell(json!({"op": 9, "d": null}));
        assert_eq!(call.world.said(), [(1, vec![round, 1]), (1, vec![round, 2])]);
    }
    call.world.pass(Duration::from_millis(200));
    assert_eq!((call.world.counts().resumes, call.world.counts().sent), (50, 3_000));
    assert_eq!(call.world.ended(), None);
}

#[test]
fn a_change_of_the_group_during_an_outage_is_followed_after_the_resume() {
    let mut call = Call::with(&[1]);
    let (mut member, package) = call.newcomer(2);
    call.world.close(None);
    call.world.open_socket();
    call.world.tell_numbered(11, json!({"user_ids": ["2"]}));
    let list = call.delivery.add(call.epoch, &package);
    let (commit, welcome) = call.propose(&list).unwrap();
    call.world.tell(json!({"op": 9, "d": null}));
    call.commit(&commit);
    call.execute();
    member.dave.process_welcome(&welcome, None).unwrap();
    member.dave.prepare_transition(0, 1).unwrap();

    let frame = member.seal(&[5, 5]);
    call.world.hear(200, 1, &frame);

    assert_eq!(call.world.said(), [(2, vec![5, 5])]);
}

#[test]
fn a_move_to_another_server_keeps_what_waits_and_begins_a_session() {
    let mut world = World::connected(0);
    world.play(3, frames(100));
    world.pass(Duration::from_millis(200));
    world.forget();

    world.connection.move_to(Server { endpoint: "other.example:2048".to_owned(), ..server() }, world.now);
    world.carry_out();
    assert_eq!(world.opened.last().unwrap(), "other.example:2048/?v=8");
    world.number = 0;
    world.open_socket();
    assert_eq!((world.told(0).len(), world.told(7).len()), (1, 0));
    world.shake_hands(&["aead_aes256_gcm_rtpsize"]);
    world.describe(super::super::transport::Mode::Aes256Gcm, 0);
    world.pass(Duration::from_secs(3));

    assert_eq!(world.counts().sent, 100);
    assert_eq!(world.sent().pop().map(|sent| (sent.reply, sent.frames)), Some((3, 100)));
}
