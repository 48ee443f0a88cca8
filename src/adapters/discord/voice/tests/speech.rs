use std::time::Duration;

use serde_json::json;

use super::super::dave::SILENCE;
use super::super::{MOST_WAITING, Sent};
use super::call::Call;
use super::world::{TICK, World, frames};

#[test]
fn talk_is_announced_paced_and_followed_by_silence() {
    let mut world = World::connected(0);
    world.pass(Duration::from_millis(100));
    world.forget();
    world.play(7, frames(3));

    world.pass(Duration::from_millis(200));

    assert_eq!(
        world.told(5),
        [json!({"speaking": 1, "delay": 0, "ssrc": 7000}), json!({"speaking": 0, "delay": 0, "ssrc": 7000})]
    );
    let packets = world.packets();
    let (talk, silence) = packets.split_at(3);
    assert!(talk.iter().all(|(.., frame)| frame == &[0x78, 3, 232, 3, 232]));
    assert!(silence.len() == 5 && silence.iter().all(|(.., frame)| frame == &SILENCE));
    assert!(packets.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1 && pair[1].1 == pair[0].1 + 960));
    assert_eq!(world.sent(), [Sent { reply: 7, frames: 3 }]);
}

#[test]
fn timestamps_go_on_while_nothing_is_said() {
    let mut world = World::connected(0);
    world.play(1, frames(1));
    world.pass(Duration::from_secs(2));
    world.play(2, frames(1));
    world.pass(Duration::from_secs(1));

    let packets = world.packets();
    assert_eq!(packets.len(), 12);
    assert_eq!(packets[6].0, packets[5].0 + 1);
    assert_eq!(packets[6].1 - packets[0].1, 100 * 960);
}

#[test]
fn ducking_acts_on_the_next_frame_without_a_step() {
    let mut world = World::connected(0);
    world.play(1, vec![[10_000; 480]; 4]);
    world.pass(TICK);
    world.connection.duck(true);
    world.pass(TICK * 2);
    world.connection.duck(false);
    world.pass(TICK);

    let marks = world
        .packets()
        .into_iter()
        .map(|(.., frame)| (i16::from_be_bytes([frame[1], frame[2]]), i16::from_be_bytes([frame[3], frame[4]])));
    let marks: Vec<_> = marks.collect();
    assert_eq!(marks, [(10_000, 10_000), (9_938, 2_512), (2_512, 2_512), (2_574, 10_000)]);
}

#[test]
fn a_flush_acts_at_once_and_tells_what_was_sent() {
    let mut world = World::connected(0);
    world.play(5, frames(100));
    world.pass(TICK * 7);
    world.forget();

    world.connection.flush();
    world.carry_out();
    assert_eq!(world.sent(), [Sent { reply: 5, frames: 7 }]);
    world.pass(TICK * 20);

    let packets = world.packets();
    assert_eq!(packets.len(), 5);
    assert!(packets.iter().all(|(.., frame)| frame == &SILENCE));
}

#[test]
fn replies_are_counted_apart() {
    let mut world = World::connected(0);
    world.play(1, frames(7));
    world.play(2, frames(1));
    world.pass(TICK * 10);

    let sent: Vec<_> = world.sent().into_iter().map(|sent| (sent.reply, sent.frames)).collect();
    assert_eq!(sent, [(1, 5), (1, 7), (2, 1)]);
}

#[test]
fn late_ticks_are_made_up_for_and_long_stalls_are_skipped() {
    let mut world = World::connected(0);
    world.play(1, frames(1_000));
    world.pass(TICK);
    world.forget();
    let jump = |world: &mut World, millis| {
        world.now = world.now + Duration::from_millis(millis);
        world.connection.tick(world.now);
        world.carry_out();
        world.packets()
    };

    assert_eq!(jump(&mut world, 100).len(), 5);
    let before = jump(&mut world, 20).pop().unwrap();
    let after = jump(&mut world, 3_000);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].1 - before.1, 150 * 960);
    assert_eq!(after[0].0, before.0 + 1);
}

#[test]
fn the_connection_itself_drops_and_counts_what_is_too_much() {
    let mut world = World::connected(0);
    world.play(1, frames(MOST_WAITING + 5));
    assert_eq!((world.connection.waiting(), world.counts().frames_dropped), (MOST_WAITING, 5));
}

#[test]
fn audio_waits_until_there_is_a_key_and_is_never_sent_in_plain() {
    let mut call = Call::alone();
    call.world.play(1, frames(10));
    call.world.pass(TICK * 50);
    assert_eq!((call.world.packets().len(), call.world.counts().held), (0, 50));
    assert!(call.world.told(5).is_empty());

    call.join(1);
    call.world.pass(TICK * 20);

    let packets = call.world.packets();
    let understood: Vec<_> = packets.iter().take(10).map(|(.., frame)| call.members[0].understands(frame)).collect();
    assert!(understood.iter().all(|opus| opus.as_deref() == Some(&[0x78, 3, 232, 3, 232][..])));
    assert!(packets[10..].iter().all(|(.., frame)| frame == &SILENCE));
    assert_eq!(call.world.sent().pop().unwrap().frames, 10);
}
