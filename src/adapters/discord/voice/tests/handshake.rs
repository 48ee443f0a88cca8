use std::time::Duration;

use serde_json::json;

use super::super::transport::Mode;
use super::super::{Ended, Event};
use super::world::{KEY, OWN_SSRC, World};

#[test]
fn a_call_is_entered_with_the_preferred_mode() {
    let mut world = World::begun();
    assert_eq!(world.opened, ["voice.example/?v=8"]);

    world.open_socket();
    let identify = world.told(0).pop().unwrap();
    assert_eq!(
        identify,
        json!({"server_id": "11", "user_id": "900", "session_id": "secret-session", "token": "secret-token", "max_dave_protocol_version": 1})
    );

    world.shake_hands(&["aead_xchacha20_poly1305_rtpsize", "aead_aes256_gcm_rtpsize"]);
    assert_eq!(world.datagram_addresses, ["127.0.0.1:5000"]);
    let request = world.datagrams.pop_front().unwrap();
    assert_eq!((request.len(), &request[..8]), (74, &[0, 1, 0, 70, 0, 0, 0x1b, 0x58][..]));
    let data = json!({"address": "198.51.100.7", "port": 4321, "mode": "aead_aes256_gcm_rtpsize"});
    assert_eq!(world.told(1), [json!({"protocol": "udp", "data": data})]);

    world.describe(Mode::Aes256Gcm, 0);
    assert_eq!(world.events, [Event::Connected, Event::EndToEnd(false)]);
}

#[test]
fn a_server_without_aes_gets_xchacha20() {
    let mut world = World::begun();
    world.open_socket();
    world.shake_hands(&["xsalsa20_poly1305_lite_rtpsize", "aead_xchacha20_poly1305_rtpsize"]);
    assert_eq!(world.told(1)[0]["data"]["mode"], "aead_xchacha20_poly1305_rtpsize");
    world.describe(Mode::XChaCha20Poly1305, 0);
    world.transport = super::super::transport::Transport::new(Mode::XChaCha20Poly1305, &KEY).unwrap();
    world.tell_numbered(5, json!({"user_id": "1", "ssrc": 50, "speaking": 1}));

    world.hear(50, 1, &[1, 2, 3]);

    assert_eq!(world.said(), [(1, vec![1, 2, 3])]);
}

#[test]
fn a_server_with_no_mode_of_ours_ends_the_connection() {
    for modes in [&["xsalsa20_poly1305"][..], &[]] {
        let mut world = World::begun();
        world.open_socket();
        world.tell_numbered(2, json!({"ssrc": 1, "ip": "127.0.0.1", "port": 5000, "modes": modes}));

        assert_eq!((world.ended(), world.closed.len()), (Some(Ended::NoMode), 1));
        assert!(world.datagrams.is_empty());
    }
}

#[test]
fn messages_before_the_session_is_described_are_followed_in_their_order() {
    let mut world = World::begun();
    world.open_socket();
    world.tell_numbered(11, json!({"user_ids": ["1", "2"]}));
    world.tell_numbered(5, json!({"user_id": "1", "ssrc": 50, "speaking": 1}));
    world.tell_numbered(13, json!({"user_id": "2"}));
    world.shake_hands(&["aead_aes256_gcm_rtpsize"]);
    world.tell_numbered(5, json!({"user_id": "3", "ssrc": 50, "speaking": 1}));
    assert!(world.events.is_empty());

    world.describe(Mode::Aes256Gcm, 0);
    world.hear(50, 1, &[1, 2, 3]);

    let expected = [Event::Connected, Event::EndToEnd(false), Event::Here(1), Event::Here(2), Event::Left(2)];
    assert_eq!(world.events.drain(..).take(5).collect::<Vec<_>>(), expected);
    world.hear(50, 2, &[4, 5, 6]);
    assert_eq!(world.said(), [(3, vec![4, 5, 6])]);
}

#[test]
fn more_early_messages_than_fit_are_counted() {
    let mut world = World::begun();
    world.open_socket();
    for user in 0..300 {
        world.tell_numbered(11, json!({"user_ids": [user]}));
    }
    assert_eq!(world.counts().messages_refused, 300 - 256);
}

#[test]
fn the_question_for_our_address_is_repeated_and_then_given_up() {
    let mut world = World::begun();
    world.open_socket();
    let ready = json!({"ssrc": OWN_SSRC, "ip": "127.0.0.1", "port": 5_000, "modes": ["aead_aes256_gcm_rtpsize"]});
    world.tell_numbered(2, ready);
    world.hear_datagram(vec![0; 74]);
    world.hear_datagram(vec![0, 2, 0, 70]);

    let asked = |world: &World| world.datagrams.iter().filter(|datagram| datagram.len() == 74).count();
    world.pass(Duration::from_millis(200));
    assert_eq!(asked(&world), 2);
    world.pass(Duration::from_millis(5_900));
    assert_eq!((asked(&world), world.opened.len()), (5, 1));

    world.pass(Duration::from_millis(300));
    assert_eq!((world.opened.len(), world.closed.len()), (2, 1));
    world.connection.opened(world.now);
    world.carry_out();
    assert_eq!(world.told(0).len(), 2, "it begins again");
}

#[test]
fn heartbeats_tell_the_newest_message_and_keepalives_go_out() {
    let mut world = World::connected(0);
    world.number = 41;
    world.tell_numbered(11, json!({"user_ids": ["1"]}));

    world.pass(Duration::from_secs(21));

    let beats = world.told(3);
    assert_eq!(beats.len(), 4);
    assert!(beats.iter().all(|beat| beat["seq_ack"] == 42 && beat["t"].is_u64()));
    let keepalives: Vec<_> = world.datagrams.iter().filter(|datagram| datagram.len() == 8).map(|datagram| datagram[0]).collect();
    assert_eq!(keepalives, [0, 1, 2, 3]);
    assert_eq!(world.counts().missed_acknowledgements, 0);
}

#[test]
fn heartbeat_intervals_that_make_no_sense_are_replaced() {
    for interval in [json!(0), json!(-5), json!("x"), json!(1e300), json!(null)] {
        let mut world = World::connected(0);
        world.tell(json!({"op": 8, "d": {"heartbeat_interval": interval}}));
        world.pass(Duration::from_secs(20));
        assert!((0..=4).contains(&world.told(3).len()), "{interval}");
    }
}

#[test]
fn messages_that_cannot_be_parsed_are_counted_and_change_nothing() {
    let mut world = World::connected(1);
    for text in ["", "{", "[]", r#"{"op":-1}"#, r#"{"op":13,"d":{}}"#, r#"{"op":22,"d":{"transition_id":70000}}"#, r#"{"op":11}"#]
    {
        world.connection.text(text, world.now);
    }
    for bytes in [&[][..], &[0, 1], &[0, 1, 27], &[0, 1, 27, 2], &[0, 1, 29, 0]] {
        world.connection.binary(bytes, world.now);
    }
    world.carry_out();
    assert_eq!(world.counts().messages_refused, 12);
    assert!(world.events.is_empty());
}
