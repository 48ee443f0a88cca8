use std::time::Duration;

use serde_json::json;

use super::super::Event;
use super::super::dave::SILENCE;
use super::call::Call;
use super::world::{TICK, World, frames};

#[test]
fn everybody_is_heard_without_being_named() {
    let mut call = Call::with(&[1, 2, 3]);
    for round in 0..10 {
        for at in 0..3 {
            call.say(at, &[round, at as u8]);
        }
    }
    let said = call.world.said();
    assert_eq!(said.len(), 30);
    assert!(said.iter().all(|(user, opus)| *user == u64::from(opus[1]) + 1));
    assert_eq!(call.world.counts().discovered, 3);
}

#[test]
fn who_is_named_wrongly_is_heard_as_who_they_are() {
    let mut call = Call::with(&[1, 2, 3]);
    for (user, ssrc) in [(2, 100), (3, 200), (1, 300), (9, 100)] {
        call.world.tell_numbered(5, json!({"user_id": user, "ssrc": ssrc, "speaking": 1}));
    }
    for at in 0..3 {
        call.say(at, &[7, at as u8]);
        call.world.tell_numbered(5, json!({"user_id": (at + 1) % 3 + 1, "ssrc": 100 * (at + 1), "speaking": 1}));
        call.say(at, &[8, at as u8]);
    }
    let said = call.world.said();
    assert_eq!(said.len(), 6);
    assert!(said.iter().all(|(user, opus)| *user == u64::from(opus[1]) + 1));
}

#[test]
fn what_we_say_is_understood_by_everybody_before_and_after_a_change() {
    let mut call = Call::with(&[1, 2]);
    call.world.play(1, frames(30));
    call.world.pass(TICK * 10);
    call.prepare_join(3);
    call.world.pass(TICK * 10);
    let before = call.world.packets();
    call.execute();
    call.world.pass(TICK * 10);
    let after = call.world.packets();

    assert_eq!((before.len(), after.len()), (20, 10));
    for (.., frame) in &before {
        assert!(call.members[0].understands(frame).is_some() && call.members[1].understands(frame).is_some());
        assert_eq!(call.members[2].understands(frame), None);
    }
    assert!(after.iter().all(|(.., frame)| (0..3).all(|at| call.members[at].understands(frame).is_some())));
}

#[test]
fn a_prepared_transition_is_acknowledged_and_transition_zero_is_not() {
    let mut call = Call::alone();
    call.prepare_join(1);
    assert_eq!(call.world.told(23), [json!({"transition_id": call.transition()})]);
    call.world.play(1, frames(5));
    call.world.pass(TICK * 3);
    assert_eq!(call.world.packets().len(), 0, "only the execution switches the sender");
    call.execute();
    call.world.pass(TICK * 5);
    assert_eq!(call.world.packets().len(), 5);

    // The sole member reset: there is nobody to encrypt for.
    call.world.tell_numbered(24, json!({"epoch": 1, "protocol_version": 1}));
    call.world.tell_numbered(21, json!({"transition_id": 0, "protocol_version": 1}));
    assert_eq!((call.world.told_binary(26).len(), call.world.told(23).len()), (1, 0));
    call.world.forget();
    call.world.play(1, frames(5));
    call.world.pass(TICK * 20);
    assert!(call.world.packets().iter().all(|(.., frame)| frame == &SILENCE));
}

#[test]
fn frames_that_no_key_opens_yet_are_heard_when_there_is_one() {
    let mut call = Call::with(&[1]);
    let (mut member, package) = call.newcomer(2);
    call.world.tell_numbered(11, json!({"user_ids": ["2"]}));
    let list = call.delivery.add(call.epoch, &package);
    let (commit, welcome) = call.propose(&list).unwrap();
    member.dave.process_welcome(&welcome, None).unwrap();
    member.dave.prepare_transition(0, 1).unwrap();
    for sequence in 1..=30 {
        let frame = member.seal(&[sequence, 2]);
        call.world.hear(200, sequence.into(), &frame);
    }
    assert_eq!(call.world.heard().len(), 0);

    call.commit(&commit);

    let said: Vec<_> = call.world.heard().into_iter().map(|heard| (heard.user, heard.number, heard.opus[0])).collect();
    let expected: Vec<_> = (6..=30_u8).map(|sequence| (2, u32::from(sequence) + 44, sequence)).collect();
    assert_eq!(said, expected);
    let counts = call.world.counts();
    assert_eq!((counts.kept, counts.opened_later, counts.undecryptable), (30, 25, 5));
}

#[test]
fn frames_are_not_kept_for_longer_than_a_second() {
    let mut call = Call::with(&[1]);
    let (mut member, package) = call.newcomer(2);
    call.world.tell_numbered(11, json!({"user_ids": ["2"]}));
    let list = call.delivery.add(call.epoch, &package);
    let (commit, welcome) = call.propose(&list).unwrap();
    member.dave.process_welcome(&welcome, None).unwrap();
    member.dave.prepare_transition(0, 1).unwrap();
    let frame = member.seal(&[1, 2]);
    call.world.hear(200, 1, &frame);
    call.world.pass(Duration::from_millis(1_100));
    call.commit(&commit);

    assert_eq!((call.world.heard().len(), call.world.counts().undecryptable), (0, 1));
}

#[test]
fn all_keys_are_tried_three_times_a_second_at_most() {
    let mut call = Call::with(&[1]);
    let packets: Vec<_> = (0..4).map(|_| call.packet(0, &[5, 5])).collect();
    // What nobody has a key for uses up the trials of the stream.
    let mut garbage = call.members[0].seal(&[1, 1]);
    garbage[0] ^= 1;
    for sequence in 100..103 {
        call.world.hear(100, sequence, &garbage);
    }
    call.world.hear_datagram(packets[0].clone());
    assert_eq!(call.world.heard().len(), 0);

    call.world.pass(Duration::from_millis(1_000));
    call.world.hear_datagram(packets[1].clone());
    assert_eq!(call.world.said(), [(1, vec![5, 5])]);
}

#[test]
fn frames_without_encryption_are_refused_unless_they_are_silence() {
    let mut call = Call::with(&[1]);
    call.world.tell_numbered(5, json!({"user_id": 1, "ssrc": 100, "speaking": 1}));
    call.world.hear(100, 1_000, &SILENCE);
    assert_eq!(call.world.heard().len(), 0, "it is not certain whose silence it is");
    call.world.hear(100, 1_001, &[0x78, 1, 2, 3]);
    assert_eq!((call.world.heard().len(), call.world.counts().plain_refused), (0, 1));

    call.members[0].sequence = 1_001;
    call.say(0, &[4, 4]);
    call.world.hear(100, 1_003, &SILENCE);
    call.world.hear(100, 1_004, &[0xf8, 0xff, 0xff]);
    assert_eq!(call.world.said(), [(1, vec![4, 4]), (1, SILENCE.to_vec())]);
    assert_eq!(call.world.counts().plain_refused, 2);
}

#[test]
fn padding_is_taken_off_before_the_mark_is_looked_for() {
    let mut call = Call::with(&[1]);
    let frame = call.members[0].seal(&[6, 6, 6]);
    let mut packet = super::super::rtp::header(100, 1, 960);
    packet[0] |= 0x20;
    packet.extend_from_slice(&frame);
    packet.extend([0, 0, 0, 4]);
    let packet = call.world.transport.seal(packet, 12).unwrap();
    call.world.hear_datagram(packet);
    assert_eq!(call.world.said(), [(1, vec![6, 6, 6])]);
}

#[test]
fn a_commit_that_cannot_be_followed_leads_to_another_key_package_and_back_into_the_group() {
    let mut call = Call::with(&[1]);
    let package = call.fail(2);
    assert_eq!(call.world.told(31), [json!({"transition_id": call.transition()})]);
    assert_eq!((call.world.counts().dave_recoveries, call.world.ended()), (1, None));

    call.add_again(&package);
    call.say(0, &[1, 0]);
    call.say(1, &[1, 1]);
    call.world.play(1, frames(3));
    call.world.pass(TICK * 3);

    assert_eq!(call.world.said(), [(1, vec![1, 0]), (2, vec![1, 1])]);
    let packets = call.world.packets();
    assert_eq!(packets.len(), 3);
    assert!(packets.iter().all(|(.., frame)| (0..2).all(|at| call.members[at].understands(frame).is_some())));
}

#[test]
fn failures_in_a_row_are_told_one_after_the_other() {
    let mut call = Call::with(&[1]);
    for transition in 50..60_u8 {
        call.world.tell_binary(30, &[0, transition, 1, 2, 3]);
    }
    assert_eq!((call.world.told(31), call.world.told_binary(26).len()), (vec![json!({"transition_id": 50})], 1));
    call.world.pass(Duration::from_millis(300));
    assert_eq!((call.world.told(31), call.world.told_binary(26).len()), (vec![json!({"transition_id": 59})], 1));
    call.world.pass(Duration::from_secs(2));
    assert_eq!((call.world.told(31).len(), call.world.counts().dave_failures), (0, 10));
}

#[test]
fn proposals_that_make_no_sense_are_survived() {
    let mut call = Call::with(&[1]);
    // Ourselves, a second time.
    let (_, package) = call.newcomer(super::world::OWN);
    let duplicate = call.delivery.add(call.epoch, &package);
    // Somebody of whom nobody has told.
    let (_, package) = call.newcomer(77);
    let stranger = call.delivery.add(call.epoch, &package);
    // Of another epoch, of another server, and damaged.
    let past = call.delivery.add(0, &package);
    let foreign = super::delivery::Delivery::new(super::world::CHANNEL).add(call.epoch, &package);
    for list in [stranger, past, foreign, duplicate, vec![], vec![0xff; 40], vec![1, 0]] {
        call.world.tell_binary(27, &[&[0], &list[..]].concat());
        call.world.tell_binary(27, &[&[1], &list[..]].concat());
    }
    assert!(call.world.told_binary(28).is_empty());
    call.say(0, &[1, 2]);
    call.world.play(1, frames(2));
    call.world.pass(TICK * 2);

    assert_eq!((call.world.said(), call.world.packets().len()), (vec![(1, vec![1, 2])], 2));
    assert!(call.world.counts().dave_failures >= 12);
}

#[test]
fn a_downgrade_and_an_upgrade_are_followed() {
    let mut call = Call::with(&[1]);
    call.world.tell_numbered(5, json!({"user_id": 1, "ssrc": 100, "speaking": 1}));
    call.world.tell_numbered(21, json!({"transition_id": 900, "protocol_version": 0}));
    assert_eq!(call.world.told(23), [json!({"transition_id": 900})]);
    call.say(0, &[1, 1]);
    call.world.hear(100, 2, &[0x78, 2]);
    call.world.play(1, frames(1));
    call.world.pass(TICK);
    assert!(call.members[0].understands(&call.world.packets()[0].2).is_some(), "only the execution switches the sender");
    call.world.tell_numbered(22, json!({"transition_id": 900}));
    call.world.play(1, frames(1));
    call.world.pass(TICK);
    assert_eq!(call.world.packets()[0].2, [0x78, 3, 232, 3, 232]);
    call.world.hear(100, 3, &[0x78, 3]);
    assert_eq!(call.world.said(), [(1, vec![1, 1]), (1, vec![0x78, 2]), (1, vec![0x78, 3])]);
    assert_eq!(
        call.world.take_events(|event| matches!(event, Event::EndToEnd(_)).then(|| event.clone())),
        [Event::EndToEnd(false)]
    );

    // Another group from the beginning.
    call.world.tell_numbered(24, json!({"epoch": 1, "protocol_version": 1, "transition_id": 901}));
    assert_eq!(call.world.told_binary(26).len(), 1);
    let mut after = Call::beginning(call.world);
    after.world.play(1, frames(1));
    after.world.pass(TICK);
    assert_eq!(after.world.packets()[0].2, [0x78, 3, 232, 3, 232], "in plain until the execution");
    after.world.forget();
    after.join(1);
    after.members[0].sequence = 10;
    after.say(0, &[9, 9]);
    after.world.pass(Duration::from_secs(3));
    after.world.hear(100, 20, &[0x78, 4]);
    after.world.play(1, frames(1));
    after.world.pass(TICK);

    assert_eq!(after.world.said(), [(1, vec![9, 9])]);
    let last = after.world.packets().pop().unwrap().2;
    assert!(after.members[0].understands(&last).is_some());
    assert_eq!(after.world.counts().plain_refused, 1);
}

#[test]
fn somebody_who_comes_again_is_heard_on_the_new_stream() {
    let mut call = Call::with(&[1, 2]);
    call.say(0, &[1, 1]);
    let old = call.packet(0, &[1, 2]);
    call.members[0].ssrc = 555;
    call.say(0, &[1, 3]);
    call.world.hear_datagram(old);
    call.say(1, &[2, 1]);

    let heard: Vec<_> = call.world.heard().into_iter().map(|heard| (heard.user, heard.line, heard.opus[1])).collect();
    assert_eq!(heard, [(1, 1, 1), (1, 2, 3), (2, 3, 1)]);
    assert_eq!(call.world.counts().late, 1);
}

#[test]
fn a_packet_that_is_sent_again_on_another_stream_is_not_heard_again() {
    let mut call = Call::with(&[1]);
    let frame = call.members[0].seal(&[1, 1]);
    call.world.hear(100, 1, &frame);
    call.world.hear(100, 2, &frame);
    call.world.hear(300, 1, &frame);
    assert_eq!(call.world.said(), [(1, vec![1, 1])]);
}

#[test]
fn a_call_without_anybody_who_has_keys_is_survived() {
    let mut world = World::connected(1);
    world.tell_numbered(22, json!({"transition_id": 5}));
    world.tell_numbered(21, json!({"transition_id": 5, "protocol_version": 1}));
    world.tell_numbered(24, json!({"epoch": 7, "protocol_version": 1}));
    world.tell_numbered(24, json!({"epoch": 1, "protocol_version": 9}));
    world.tell_numbered(24, json!({"epoch": 1, "protocol_version": 0}));
    for op in [25, 27, 29, 30] {
        for payload in [&[][..], &[0], &[0, 0, 0, 0], &[1; 100]] {
            world.tell_binary(op, payload);
        }
    }
    world.play(1, frames(10));
    world.pass(Duration::from_secs(1));
    assert_eq!((world.packets().len(), world.ended()), (0, None));
    assert!(world.counts().dave_failures > 5);
}
