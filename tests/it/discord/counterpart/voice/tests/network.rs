//! Datagrams, and networks that lose, repeat, reorder and delay them.

use std::time::Duration;

use super::super::person::FRAME;
use super::super::{Network, Rules, VoiceServer};
use super::client::Socket;
use super::{ANA, BO, CHANNEL, CY, GUILD, call, frames, heard, start};

#[tokio::test]
async fn a_lossy_network_loses_the_same_at_every_run() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let voice = start();
        let [ana, bo] = call(&voice, [ANA, BO]).await;
        voice.set_downlink(CHANNEL, BO, Network { loss: 0.2, ..Network::default() });

        ana.say(&frames(1, 100)).await;

        voice.until("all frames", |voice| (voice.counts.get(&ana.seat)?.received == 100).then_some(())).await;
        let counts = voice.counts(CHANNEL, BO);
        assert!((5..40).contains(&counts.lost) && counts.lost + counts.sent == 100, "{counts:?}");
        assert_eq!(bo.heard_from(ANA, counts.sent).await.len(), counts.sent);
        runs.push(heard(&bo.heard()).into_iter().collect::<Vec<_>>());
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn a_network_can_repeat_reorder_and_delay() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    let delay = Duration::from_millis(30);
    voice.set_downlink(CHANNEL, BO, Network { duplicates: 0.5, reordering: 0.3, delay, ..Network::default() });
    let begin = tokio::time::Instant::now();

    ana.talk(&frames(1, 20)).await;

    voice.until("all frames", |voice| (voice.counts.get(&ana.seat)?.received == 20).then_some(())).await;
    let counts = voice.counts(CHANNEL, BO);
    assert!(counts.duplicated > 0 && counts.reordered > 0, "{counts:?}");
    // A repeated packet cannot be opened twice, so each frame is heard once.
    let heard_by_bo = bo.until("the frames", |noted| (heard(&noted.heard).len() == 20).then(|| noted.heard.clone())).await;
    assert!(heard_by_bo[0].at - begin >= delay && heard_by_bo[19].at - begin >= FRAME * 19);
    assert!(!heard_by_bo.is_sorted_by_key(|heard| heard.sequence));
}

#[tokio::test]
async fn audio_can_be_cut_alone() {
    let voice = start();
    let [ana, bo, cy] = call(&voice, [ANA, BO, CY]).await;
    voice.set_uplink(CHANNEL, ANA, Network::cut());
    ana.say(&frames(1, 3)).await;
    voice.until("the loss", |voice| (voice.counts.get(&ana.seat)?.lost == 3).then_some(())).await;
    voice.set_uplink(CHANNEL, ANA, Network::default());
    voice.set_downlink(CHANNEL, BO, Network::cut());

    ana.say(&frames(2, 3)).await;

    assert_eq!(heard(&cy.heard_from(ANA, 3).await), frames(2, 3).into_iter().collect());
    assert_eq!((bo.heard().len(), voice.counts(CHANNEL, BO).lost), (0, 3));
}

#[tokio::test]
async fn forged_packets_are_counted_and_dropped() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    let mut forged = vec![0x80, 0x78, 0, 1, 0, 0, 0, 1];
    forged.extend(ana.ssrc.to_be_bytes());
    forged.extend([0; 40]);

    bo.send_datagram(&forged);
    bo.send_datagram(&forged[..20]);
    bo.send_datagram(&[0; 8]);

    voice.until("the count", |voice| (voice.counts.get(&ana.seat)?.not_authentic == 1).then_some(())).await;
    voice.until("the other", |voice| (voice.journal.strange_datagrams == 1).then_some(())).await;
    assert_eq!(bo.heard().len(), 0);
}

#[tokio::test]
async fn who_never_says_that_it_speaks_is_disconnected() {
    use super::super::transport::{Cipher, Header, packet};
    let voice = VoiceServer::start(Rules { packets_before_speaking: 2, ..Rules::quick() });
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ready, description) = Socket::described(&grant).await;
    let key: Vec<u8> = serde_json::from_value(description["secret_key"].clone()).expect("bytes");
    let mut cipher = Cipher::new(super::super::Mode::Aes256Gcm, key.try_into().expect("32 bytes"));
    let ssrc = ready["ssrc"].as_u64().expect("an SSRC") as u32;
    let udp = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");

    for sequence in 0..3 {
        let datagram = packet(&mut cipher, Header::new(sequence, 0, ssrc), &[1; 20], 0, false);
        let to = ("127.0.0.1", ready["port"].as_u64().expect("a port") as u16);
        udp.send_to(&datagram, to).await.expect("a local address");
    }

    assert_eq!(socket.closed().await, Some(4020));
    assert_eq!(voice.counts(CHANNEL, ANA).before_speaking, 3);
}
