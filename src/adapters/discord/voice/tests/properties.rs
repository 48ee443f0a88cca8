//! What holds whatever comes, in whatever order.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::super::Server;
use super::super::stream::{Arrival, Window};
use super::call::Call;
use super::world::{TICK, World, frames, server};

/// What the network and the server do with the next packet of a member.
#[derive(Clone, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// It comes this many packets later.
    Late(usize),
    Twice,
    /// The server puts it on another stream.
    Moved(u32),
    /// One byte is damaged before the server encrypts it.
    Damaged(usize),
    /// The server says that this user is on the stream.
    Lie(u64),
    /// The server says that somebody left, who comes back at once.
    Left(u64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => (1..9_usize).prop_map(Fate::Late),
        1 => Just(Fate::Twice),
        1 => (0..5_u32).prop_map(|stream| Fate::Moved(100 * stream)),
        1 => any::<usize>().prop_map(Fate::Damaged),
        1 => (1..5_u64).prop_map(Fate::Lie),
        1 => (1..4_u64).prop_map(Fate::Left),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Text(u64, u64, u16, u16),
    Binary(u8, Vec<u8>),
    Datagram(u32, u16, Vec<u8>),
    Raw(Vec<u8>),
    Ticks(u64),
    Close(Option<u16>),
    Open,
    Resumed,
    HandShake(u16),
    Play(u64, usize),
    Duck(bool),
    Flush,
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || vec(any::<u8>(), 0..60);
    let code = prop_oneof![Just(None), Just(Some(4015)), Just(Some(1006)), (4000..4025_u16).prop_map(Some)];
    prop_oneof![
        8 => (prop_oneof![Just(5_u64), Just(11), Just(12), Just(13), 20..25_u64], 0..4_u64, 0..4_u16, 0..3_u16)
            .prop_map(|(op, user, transition, version)| Step::Text(op, user, transition, version)),
        3 => (25..31_u8, bytes()).prop_map(|(op, bytes)| Step::Binary(op, bytes)),
        4 => (0..4_u32, 0..20_u16, bytes()).prop_map(|(ssrc, sequence, bytes)| Step::Datagram(ssrc, sequence, bytes)),
        1 => bytes().prop_map(Step::Raw),
        4 => prop_oneof![1..10_u64, Just(200_u64)].prop_map(Step::Ticks),
        1 => code.prop_map(Step::Close),
        2 => Just(Step::Open),
        2 => Just(Step::Resumed),
        2 => (0..2_u16).prop_map(Step::HandShake),
        3 => (0..3_u64, 0..40_usize).prop_map(|(reply, frames)| Step::Play(reply, frames)),
        1 => any::<bool>().prop_map(Step::Duck),
        1 => Just(Step::Flush),
        1 => Just(Step::Move),
    ]
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Text(op, user, transition, version) => {
            let data = json!({
                "user_id": user, "user_ids": [user], "ssrc": transition, "audio_ssrc": transition,
                "transition_id": transition, "protocol_version": version, "epoch": user,
            });
            world.tell_numbered(op, data);
        }
        Step::Binary(op, bytes) => world.tell_binary(op, &bytes),
        Step::Datagram(ssrc, sequence, bytes) => world.hear(ssrc, sequence, &bytes),
        Step::Raw(bytes) => world.hear_datagram(bytes),
        Step::Ticks(ticks) => world.pass(TICK * u32::try_from(ticks).unwrap()),
        Step::Close(code) => world.close(code),
        Step::Open => world.open_socket(),
        Step::Resumed => world.tell(json!({"op": 9, "d": null})),
        Step::HandShake(dave_version) => {
            world.open_socket();
            world.shake_hands(&["aead_aes256_gcm_rtpsize"]);
            world.describe(super::super::transport::Mode::Aes256Gcm, dave_version);
        }
        Step::Play(reply, count) => world.play(reply, frames(count)),
        Step::Duck(on) => world.connection.duck(on),
        Step::Flush => world.connection.flush(),
        Step::Move => world.connection.move_to(Server { endpoint: "other".to_owned(), ..server() }, world.now),
    }
    world.carry_out();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each packet is heard once at most, as what was said, from who said it.
    #[test]
    fn nobody_is_heard_as_somebody_else(fates in vec((0..3_usize, fate()), 1..120)) {
        let mut call = Call::with(&[1, 2, 3]);
        let mut late: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut intact = 0;
        for (number, (at, fate)) in fates.into_iter().enumerate() {
            let opus = [0x78, u8::try_from(at + 1).unwrap(), u8::try_from(number).unwrap()];
            let packet = call.packet(at, &opus);
            match fate {
                Fate::Arrives => { intact += 1; call.world.hear_datagram(packet) }
                Fate::Lost => {}
                Fate::Late(by) => late.push((number + by, packet)),
                Fate::Twice => {
                    call.world.hear_datagram(packet.clone());
                    call.world.hear_datagram(packet);
                }
                Fate::Moved(ssrc) => {
                    let frame = call.members[at].seal(&opus);
                    call.world.hear(ssrc, call.members[at].sequence, &frame);
                }
                Fate::Damaged(byte) => {
                    let mut frame = call.members[at].seal(&opus);
                    let byte = byte % frame.len();
                    frame[byte] ^= 0x10;
                    call.world.hear(call.members[at].ssrc, call.members[at].sequence, &frame);
                }
                Fate::Lie(user) => call.world.tell_numbered(5, json!({"user_id": user, "ssrc": call.members[at].ssrc})),
                Fate::Left(user) => {
                    call.world.tell_numbered(13, json!({"user_id": user}));
                    call.world.tell_numbered(11, json!({"user_ids": [user]}));
                }
            }
            let due: Vec<_> = late.extract_if(.., |(due, _)| *due <= number).collect();
            due.into_iter().for_each(|(_, packet)| call.world.hear_datagram(packet));
            call.world.pass(TICK);
        }
        let heard = call.world.heard();
        let mut once = BTreeSet::new();
        for heard in &heard {
            prop_assert_eq!((heard.opus[0], u64::from(heard.opus[1])), (0x78, heard.user));
            prop_assert!(once.insert(heard.opus[2]), "heard twice");
        }
        let numbers: BTreeSet<_> = heard.iter().map(|heard| (heard.line, heard.number)).collect();
        prop_assert!(numbers.len() <= heard.len());
        prop_assert!(intact == 0 || !heard.is_empty());
    }

    /// Whatever the server sends, and whatever comes from the network: nothing panics, and [`World`] checks that nothing is sent in plain in a call that
    /// is encrypted. What is counted adds up.
    #[test]
    fn nothing_that_comes_breaks_the_connection(steps in vec(step(), 1..80)) {
        let mut call = Call::with(&[1]);
        for step in steps {
            take(&mut call.world, step);
        }
        let counts = call.world.counts();
        let packets = counts.heard + counts.not_audio + counts.malformed + counts.unauthenticated + counts.duplicates + counts.late
            + counts.plain_refused + counts.undecryptable;
        prop_assert!(packets <= counts.received + 64, "{counts:?}");
        prop_assert!(call.world.connection.waiting() <= super::super::MOST_WAITING);
    }

    /// Under any losses and any order within the window, and with any outages, each member that speaks after the last change of the group is heard.
    #[test]
    fn changes_of_the_group_lose_no_speaker(joins in 1..4_u64, outages in vec(any::<bool>(), 4)) {
        let mut call = Call::with(&[1]);
        for user in 2..2 + joins {
            let is_out = outages[usize::try_from(user - 2).unwrap()];
            if is_out {
                call.world.close(Some(4015));
                call.world.pass(Duration::from_millis(40));
                call.world.open_socket();
            }
            call.prepare_join(user);
            if is_out {
                call.world.tell(json!({"op": 9, "d": null}));
            }
            call.execute();
        }
        call.world.forget();
        for at in 0..call.members.len() {
            call.say(at, &[1, u8::try_from(at + 1).unwrap()]);
        }
        let said = call.world.said();
        prop_assert_eq!(said.len(), call.members.len());
        prop_assert!(said.iter().all(|(user, opus)| *user == u64::from(opus[1])));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A recording of packets brings nothing new, in whatever order it is sent.
    #[test]
    fn no_packet_is_taken_twice(steps in vec((-300_i32..300, any::<bool>()), 1..200)) {
        let mut window = Window::new(0, 0);
        let mut taken = BTreeSet::from([(0, 0)]);
        let mut sequence = 0_i32;
        let mut sent: Vec<(u16, u32)> = vec![(0, 0)];
        for (nonce, (step, again)) in (1..).zip(steps) {
            let packet = match again {
                true => sent[step.unsigned_abs() as usize % sent.len()],
                false => {
                    sequence += step;
                    (sequence as u16, nonce)
                }
            };
            sent.push(packet);
            if !matches!(window.record_packet(packet.0, packet.1), Arrival::Duplicate | Arrival::Late) {
                prop_assert!(taken.insert(packet), "{packet:?} was taken twice");
            }
        }
    }
}
