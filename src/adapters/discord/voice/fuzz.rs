//! Fuzzes the input of a voice connection: datagrams, text messages, and binary messages about the DAVE group.

use std::time::Duration;

use super::messages::MAX_MESSAGE_BYTES;
use super::tests::world::{World, frames};
use super::{Counts, Event, MOST_WAITING};
use crate::fuzzing::{text, texts};

/// Packets with and without end-to-end encryption, padding and extension, an answer about our address, and a keepalive. If the first byte is odd,
/// the rest is encrypted for the transport, so that mutations reach the encrypted part.
pub fn datagrams() -> Vec<Vec<u8>> {
    let sealed = [&[2; 30][..], &[3; 8], &[5, 12, 0xfa, 0xfa]].concat();
    let ranges = [&[2; 30][..], &[3; 8], &[5, 0, 1, 14, 0xfa, 0xfa]].concat();
    let body =
        |flags: u8, clear: &[u8], body: &[u8]| [&[1, 0x80 | flags, 0x78, 0, 1, 0, 0, 3, 192, 0, 0, 0, 50], clear, body].concat();
    let mut answer = [&[0, 0, 2, 0, 70, 0, 0, 0x1b, 0x58][..], b"198.51.100.7"].concat();
    answer.resize(75, 1);
    vec![
        body(0, &[], &[0x78, 1, 2, 3]),
        body(0, &[], &sealed),
        body(0, &[], &ranges),
        body(0x20, &[], &[&sealed[..], &[0, 0, 3]].concat()),
        body(0x11, &[1, 1, 1, 1, 0xbe, 0xde, 0, 1], &[&[9; 4], &sealed[..]].concat()),
        body(0, &[], &[0xf8, 0xff, 0xfe]),
        answer,
        vec![0, 1, 0, 0, 0, 0, 0, 0, 0],
    ]
}

/// Asserts that a datagram is reported at most once, as from the named user, and otherwise refused for one reason.
pub fn datagram(bytes: &[u8]) {
    for dave_version in [0, 1] {
        let mut world = World::connected(dave_version);
        world.tell_numbered(5, serde_json::json!({"user_id": 1, "ssrc": 50}));
        let datagram = match bytes.split_first() {
            Some((kind, packet)) if kind & 1 == 1 && packet.len() >= 12 => {
                let clear = 12 + 4 * usize::from(packet[0] & 15) + if packet[0] & 16 == 0 { 0 } else { 4 };
                world.transport.seal(packet.to_vec(), clear.min(packet.len())).expect("it can be encrypted")
            }
            Some((_, packet)) => packet.to_vec(),
            None => Vec::new(),
        };
        for _ in 0..3 {
            world.hear_datagram(datagram.clone());
        }
        let heard = world.heard();
        assert!(heard.len() <= 1 && (dave_version == 0 || heard.is_empty()));
        assert!(heard.iter().all(|heard| heard.user == 1 && !heard.opus.is_empty() && heard.opus.len() < datagram.len()));
        let Counts { received, not_audio, malformed, unauthenticated, duplicates, plain_refused, kept, late, .. } =
            world.counts();
        let refused = not_audio + malformed + unauthenticated + duplicates + plain_refused + kept + late;
        // The first datagram answered the discovery. Silence without a known speaker is not counted.
        assert_eq!(received, 4);
        assert!(refused + heard.len() as u64 <= 3 && refused >= 2, "{:?}", world.counts());
    }
}

/// Messages of each kind, one per line.
pub fn messages() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"op":8,"d":{"v":8,"heartbeat_interval":13750.0}}"#,
        r#"{"op":2,"d":{"ssrc":7000,"ip":"127.0.0.1","port":5000,"modes":["aead_aes256_gcm_rtpsize","aead_xchacha20_poly1305_rtpsize"],"experiments":[],"streams":[]},"seq":1}"#,
        r#"{"op":4,"d":{"mode":"aead_aes256_gcm_rtpsize","secret_key":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,255],"dave_protocol_version":1},"seq":2}"#,
        "{\"op\":11,\"d\":{\"user_ids\":[\"1\",\"2\"]},\"seq\":3}\n{\"op\":5,\"d\":{\"user_id\":\"1\",\"ssrc\":50,\"speaking\":1},\"seq\":4}\n{\"op\":12,\"d\":{\"user_id\":\"2\",\"audio_ssrc\":51,\"video_ssrc\":0}}\n{\"op\":13,\"d\":{\"user_id\":\"2\"},\"seq\":65535}",
        "{\"op\":24,\"d\":{\"transition_id\":4,\"epoch\":1,\"protocol_version\":1},\"seq\":9}\n{\"op\":21,\"d\":{\"transition_id\":4,\"protocol_version\":0}}\n{\"op\":22,\"d\":{\"transition_id\":4}}\n{\"op\":21,\"d\":{\"transition_id\":0,\"protocol_version\":1}}",
        "{\"op\":6,\"d\":{\"t\":1501184119561}}\n{\"op\":9,\"d\":null}\n{\"op\":18,\"d\":{\"user_id\":\"1\",\"flags\":2}}\n{\"op\":20,\"d\":{\"user_id\":\"1\",\"platform\":0}}",
    ])
}

/// Asserts that messages in each phase leave the connection usable, and that effects are bounded.
pub fn message(bytes: &[u8]) {
    let text = text(bytes);
    let mut begun = World::begun();
    begun.open_socket();
    let mut resuming = World::connected(1);
    resuming.close(Some(4015));
    resuming.open_socket();
    for mut world in [begun, World::connected(0), World::connected(1), resuming] {
        for line in text.lines().filter(|line| line.len() <= MAX_MESSAGE_BYTES) {
            world.connection.text(line, world.now);
            world.carry_out();
        }
        is_usable(&mut world);
    }
}

/// Messages about the group: an external sender, proposals, and truncated messages.
pub fn group_messages() -> Vec<Vec<u8>> {
    let delivery = super::tests::delivery::Delivery::new(super::tests::world::CHANNEL);
    let sender = [&[0, 9, 25], &delivery.external_sender()[..]].concat();
    let removal = [&[0, 10, 27, 0], &delivery.remove(0, 1)[..]].concat();
    vec![
        sender,
        removal,
        vec![
            0, 11, 27, 1, 33, 32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
            27, 28, 29, 30, 31,
        ],
        [&[0, 12, 29, 0, 5, 0, 1, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0, 22][..], &[0; 40]].concat(),
        [&[0, 13, 30, 0, 6, 0, 2, 32][..], &[7; 80]].concat(),
        vec![0, 14, 31],
    ]
}

pub fn group_message(bytes: &[u8]) {
    let mut alone = World::connected(1);
    let sender = super::tests::delivery::Delivery::new(super::tests::world::CHANNEL).external_sender();
    alone.tell_binary(25, &sender);
    for mut world in [World::connected(0), alone] {
        world.connection.binary(bytes, world.now);
        world.carry_out();
        is_usable(&mut world);
    }
}

fn is_usable(world: &mut World) {
    assert!(world.events.len() < 1_000 && world.texts.len() < 1_000 && world.datagrams.len() < 1_000);
    let has_ended = world.events.iter().any(|event| matches!(event, Event::Ended(_)));
    world.play(1, frames(3));
    world.pass(Duration::from_millis(200));
    assert!(world.connection.waiting() <= MOST_WAITING);
    world.connection.leave();
    world.carry_out();
    let ends = world.take_events(|event| matches!(event, Event::Ended(_)).then_some(()));
    assert!(ends.len() == 1, "it ends once, whether it had ended ({has_ended}) or not");
}
