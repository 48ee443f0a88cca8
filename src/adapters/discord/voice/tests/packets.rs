use serde_json::json;

use super::super::dave::is_encrypted;
use super::super::rtp;
use super::super::transport::{Mode, Transport};
use super::world::{KEY, World};

fn named() -> World {
    let mut world = World::connected(0);
    world.tell_numbered(5, json!({"user_id": "1", "ssrc": 50, "speaking": 1}));
    world
}

/// A packet with these flags in its first byte, what follows the fixed header in clear, and what is encrypted.
fn packet(world: &mut World, flags: u8, clear: &[u8], body: &[u8]) -> Vec<u8> {
    let mut packet = rtp::header(50, 1, 960);
    packet[0] |= flags;
    packet.extend_from_slice(clear);
    let header = packet.len();
    packet.extend_from_slice(body);
    world.transport.seal(packet, header).unwrap()
}

#[test]
fn csrcs_extension_and_padding_are_taken_off() {
    for (flags, clear, body) in [
        (0, &[][..], &[7, 8, 9][..]),
        (0x02, &[1; 8], &[7, 8, 9]),
        (0x10, &[0xbe, 0xde, 0, 1], &[1, 2, 3, 4, 7, 8, 9]),
        (0x20, &[], &[7, 8, 9, 0, 0, 3]),
        (0x31, &[1, 1, 1, 1, 0xbe, 0xde, 0, 1], &[1, 2, 3, 4, 7, 8, 9, 1]),
    ] {
        let mut world = named();
        let packet = packet(&mut world, flags, clear, body);
        world.hear_datagram(packet);
        assert_eq!(world.said(), [(1, vec![7, 8, 9])], "{flags:x}");
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    for (flags, clear, body) in [
        (0x20, &[][..], &[7, 8, 0][..]),
        (0x20, &[], &[7, 8, 4]),
        (0x20, &[], &[7, 8, 3]),
        (0x10, &[0xbe, 0xde, 0xff, 0xff], &[1, 2, 3, 4]),
        (0x10, &[0xbe, 0xde, 0, 1], &[1, 2, 3, 4]),
        (0x30, &[0xbe, 0xde, 0, 1], &[1, 2, 3, 4, 2, 2]),
    ] {
        let mut world = named();
        let packet = packet(&mut world, flags, clear, body);
        world.hear_datagram(packet);
        assert_eq!((world.heard().len(), world.counts().malformed), (0, 1), "{flags:x} {body:?}");
    }
}

#[test]
fn what_is_no_packet_is_counted() {
    let mut world = named();
    let valid = world.packet(50, 1, &[1, 2, 3]);
    for length in 0..valid.len() {
        world.hear_datagram(valid[..length].to_vec());
    }
    for at in 0..valid.len() {
        let mut damaged = valid.clone();
        damaged[at] ^= 0x80;
        world.hear_datagram(damaged);
    }
    let counts = world.counts();
    assert_eq!(world.heard().len(), 0);
    assert_eq!(counts.received, 2 * valid.len() as u64 + 1);
    assert_eq!(counts.not_audio + counts.malformed + counts.unauthenticated, counts.received - 1);
}

#[test]
fn packets_that_come_twice_are_heard_once() {
    let mut world = named();
    let packets: Vec<_> = (1..5).map(|sequence| world.packet(50, sequence, &[9, 9])).collect();
    for at in [1, 0, 1, 3, 0, 2, 3, 2] {
        world.hear_datagram(packets[at].clone());
    }
    let numbers: Vec<_> = world.heard().into_iter().map(|heard| heard.number).collect();
    assert_eq!(numbers, [50, 49, 52, 51]);
    assert_eq!(world.counts().duplicates, 4);
}

#[test]
fn somebody_who_is_named_late_is_heard_from_the_beginning() {
    let mut world = World::connected(0);
    for sequence in 1..4 {
        world.hear(50, sequence, &[9, 9]);
    }
    assert_eq!(world.heard().len(), 0);

    world.tell_numbered(5, json!({"user_id": "1", "ssrc": 50, "speaking": 1}));
    world.hear(50, 4, &[9, 9]);

    let heard: Vec<_> = world.heard().into_iter().map(|heard| (heard.user, heard.line, heard.number)).collect();
    assert_eq!(heard, [(1, 1, 50), (1, 1, 51), (1, 1, 52), (1, 1, 53)]);
}

#[test]
fn another_stream_of_somebody_begins_another_line() {
    let mut world = named();
    world.hear(50, 1, &[9, 9]);
    world.tell_numbered(5, json!({"user_id": "1", "ssrc": 51, "speaking": 1}));
    world.hear(51, 700, &[9, 9]);
    world.hear(50, 2, &[8, 8]);

    let heard: Vec<_> = world.heard().into_iter().map(|heard| (heard.line, heard.number)).collect();
    assert_eq!(heard, [(1, 50), (2, 50)]);
    assert_eq!(world.counts().late, 1);
}

#[test]
fn both_modes_open_what_they_sealed_and_nothing_else() {
    for mode in [Mode::Aes256Gcm, Mode::XChaCha20Poly1305] {
        let mut transport = Transport::new(mode, &KEY).unwrap();
        let other = Transport::new(mode, &[8; 32]).unwrap();
        for number in 0..3_u32 {
            let mut packet = rtp::header(1, 2, 3);
            packet.extend_from_slice(&[5; 40]);
            let sealed = transport.seal(packet, 12).unwrap();
            assert_eq!(sealed.len(), 12 + 40 + 20);
            assert_eq!(other.open(&mut sealed.clone(), 12), None);
            assert_eq!(transport.open(&mut sealed.clone(), 12), Some((&[5; 40][..], number)));
            for length in 0..sealed.len() {
                assert_eq!(transport.open(&mut sealed[..length].to_vec(), 12), None);
            }
        }
    }
}

#[test]
fn frames_of_the_protocol_are_recognised_by_their_end() {
    let frame = |nonce: &[u8], length: u8, mark: [u8; 2]| [&[1; 20][..], &[2; 8], nonce, &[length], &mark].concat();
    assert!(is_encrypted(&frame(&[5], 12, [0xfa, 0xfa])));
    assert!(is_encrypted(&frame(&[0x85, 0x80, 1], 14, [0xfa, 0xfa])));
    for other in [
        frame(&[5], 12, [0xfa, 0xfb]),
        frame(&[5], 11, [0xfa, 0xfa]),
        frame(&[0x85], 12, [0xfa, 0xfa]),
        frame(&[5, 5], 13, [0xfa, 0xfa]),
        frame(&[5], 200, [0xfa, 0xfa]),
        frame(&[0x80, 0x80, 0x80, 0x80, 0x80, 1], 17, [0xfa, 0xfa]),
        [&[2; 8][..], &[5, 12, 0xfa, 0xfa]].concat(),
        vec![0xfa, 0xfa],
        vec![],
    ] {
        assert!(!is_encrypted(&other), "{other:?}");
    }
}
