//! RESUME, with the messages that were missed.

use serde_json::json;

use super::super::{Rules, VoiceServer};
use super::client::Socket;
use super::{ANA, BO, CHANNEL, GUILD, start};

/// The numbers of messages up to RESUMED and so many more.
async fn numbers(socket: &mut Socket, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let payload = socket.next().await.expect("a message");
        numbers.extend(payload["seq"].as_i64());
    }
    numbers
}

#[tokio::test]
async fn missed_messages_are_sent_again() {
    for resumed_first in [true, false] {
        let voice = VoiceServer::start(Rules { resumed_first, ..Rules::quick() });
        let grant = voice.grant(GUILD, CHANNEL, ANA);
        let (mut socket, ..) = Socket::described(&grant).await;
        socket.op(25).await;
        let newest = socket.newest;
        voice.cut(CHANNEL, ANA);
        assert_eq!(socket.closed().await, None);

        let bo = voice.join(GUILD, CHANNEL, BO).await;
        voice.members(CHANNEL, 2).await;
        bo.set_speaking(1);
        voice.until("speaking", |voice| voice.journal.speaking.first().cloned()).await;
        let mut socket = Socket::open(&grant.endpoint).await;
        socket.resume(&grant, newest).await;

        let first = socket.next().await.expect("a message");
        assert_eq!(first["op"] == 9, resumed_first);
        let (mut ops, mut replayed) = (vec![first["op"].as_u64()], 0);
        while !(ops.contains(&Some(5)) && ops.contains(&Some(9))) {
            let payload = socket.next().await.expect("a message");
            replayed += usize::from(payload["seq"].is_i64());
            ops.push(payload["op"].as_u64());
        }
        assert!(replayed >= 1 && ops.contains(&Some(11)), "{ops:?}");
        let (identified, resumed) = voice.look(|voice| (voice.journal.identifies[0].clone(), voice.journal.resumes[0].clone()));
        assert_eq!((resumed.user, resumed.replayed.is_some()), (Some(ANA), true));
        assert!(resumed.at > identified.at);
    }
}

#[tokio::test]
async fn numbers_wrap() {
    let voice = VoiceServer::start(Rules { first_sequence: u16::MAX - 1, ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ..) = Socket::described(&grant).await;
    assert_eq!(numbers(&mut socket, 1).await, [0], "after 65534 and 65535");
    voice.cut(CHANNEL, ANA);

    let mut socket = Socket::open(&grant.endpoint).await;
    socket.resume(&grant, 65_534).await;

    assert_eq!(numbers(&mut socket, 2).await, [65_535, 0]);
}

#[tokio::test]
async fn without_the_missed_messages_there_is_no_resume() {
    let voice = VoiceServer::start(Rules { resume_buffer: 2, ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ..) = Socket::described(&grant).await;
    socket.op(25).await;
    voice.cut(CHANNEL, ANA);

    let mut socket = Socket::open(&grant.endpoint).await;
    socket.resume(&grant, -1).await;

    assert_eq!(socket.closed().await, Some(4006));
    // It may identify again.
    Socket::described(&grant).await;
}

#[tokio::test]
async fn a_session_that_ended_cannot_be_resumed() {
    let voice = start();
    for code in [4006, 4014, 4022] {
        let grant = voice.grant(GUILD, CHANNEL, ANA);
        let (mut socket, ..) = Socket::described(&grant).await;
        voice.close(CHANNEL, ANA, code, "A test.");
        assert_eq!(socket.closed().await, Some(code));
        let mut socket = Socket::open(&grant.endpoint).await;
        socket.resume(&grant, 1).await;
        assert_eq!(socket.closed().await, Some(4006));
    }
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ..) = Socket::described(&grant).await;
    voice.close(CHANNEL, ANA, 4015, "A crash.");
    assert_eq!(socket.closed().await, Some(4015));
    let mut socket = Socket::open(&grant.endpoint).await;
    socket.resume(&grant, 1).await;
    socket.op(9).await;
    voice.end_call(CHANNEL);
    assert_eq!(socket.closed().await, Some(4022));
}

#[tokio::test]
async fn who_does_not_come_back_in_time_has_left() {
    let voice = VoiceServer::start(Rules { resume_window: std::time::Duration::from_millis(50), ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (socket, ..) = Socket::described(&grant).await;
    let bo = voice.join(GUILD, CHANNEL, BO).await;

    drop(socket);

    bo.until("Ana's leaving", |noted| (!noted.others.contains(&ANA)).then_some(())).await;
    voice.members(CHANNEL, 1).await;
}

#[tokio::test]
async fn faults_of_the_connection() {
    let voice = start();
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    voice.refuse_connects(1);
    assert!(tokio_tungstenite::connect_async(format!("{}/?v=8", grant.endpoint)).await.is_err());
    let (mut socket, ..) = Socket::described(&grant).await;
    socket.op(25).await;

    voice.stop_acknowledging(CHANNEL, ANA);
    socket.send(3, json!({ "t": 1, "seq_ack": 1 })).await;
    voice.until("a heartbeat", |voice| (voice.counts.values().next()?.heartbeats == 1).then_some(())).await;
    voice.send_text(CHANNEL, ANA, "{}");
    voice.send_bytes(CHANNEL, ANA, &[0, 9, 99]);
    assert_eq!(socket.next().await, Some(json!({})), "no acknowledgement came before");
    assert_eq!(socket.next().await, Some(json!({ "op": 99, "seq": 9 })));
    socket.newest = 3;
    voice.silence(CHANNEL, ANA);
    let bo = voice.join(GUILD, CHANNEL, BO).await;
    voice.cut(CHANNEL, ANA);
    assert_eq!(socket.next().await, None);
    voice.fail_resumes(1);
    let newest = socket.newest;
    let mut socket = Socket::open(&grant.endpoint).await;
    socket.resume(&grant, newest).await;
    assert_eq!(socket.closed().await, Some(4006));
    bo.leave().await;
}
