//! Calls of scripted people.

use std::time::Duration;

use super::super::{Mode, Rules, Speaking, VoiceServer};
use super::{ANA, BO, CHANNEL, CY, GUILD, call, frames, heard, start};

#[tokio::test]
async fn two_people_hear_each_other_end_to_end_encrypted() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;

    assert_eq!((ana.say(&frames(1, 20)).await, bo.say(&frames(2, 20)).await), (20, 20));

    let (by_bo, by_ana) = (bo.heard_from(ANA, 20).await, ana.heard_from(BO, 20).await);
    assert!(by_bo.iter().chain(&by_ana).all(|heard| heard.end_to_end));
    let said: Vec<Vec<u8>> = by_bo.iter().map(|heard| heard.frame.clone()).collect();
    assert_eq!((said, by_bo[0].ssrc), (frames(1, 20), ana.ssrc));
    assert_eq!(heard(&by_ana), heard(&by_ana[..20]));
    let counts = voice.counts(CHANNEL, ANA);
    assert_eq!((counts.received, counts.end_to_end, counts.plain, counts.sent), (20, 20, 0, 20));
}

#[tokio::test]
async fn both_modes_of_transport_encryption_work() {
    for mode in [Mode::Aes256Gcm, Mode::XChaCha20Poly1305] {
        let voice = VoiceServer::start(Rules { modes: vec![mode], ..Rules::quick() });
        let [ana, bo] = call(&voice, [ANA, BO]).await;

        ana.say(&frames(1, 3)).await;

        assert_eq!(bo.heard_from(ANA, 3).await.len(), 3);
    }
}

#[tokio::test]
async fn padding_and_extensions_are_no_part_of_a_frame() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    voice.set_packets(9, true);

    ana.say(&frames(1, 3)).await;

    let said: Vec<Vec<u8>> = bo.heard_from(ANA, 3).await.into_iter().map(|heard| heard.frame).collect();
    assert_eq!(said, frames(1, 3));
}

#[tokio::test]
async fn speaking_events_can_lie_come_late_or_be_missing() {
    let voice = start();
    voice.set_speaking(CHANNEL, ANA, Speaking::Names(CY));
    voice.set_speaking(CHANNEL, BO, Speaking::Missing);
    voice.set_speaking(CHANNEL, CY, Speaking::Late(Duration::from_millis(50)));
    let [ana, bo, cy] = call(&voice, [ANA, BO, CY]).await;

    for person in [&ana, &bo, &cy] {
        person.say(&frames(person.seat.user.0 as u8, 2)).await;
    }

    // The keys tell the truth.
    assert_eq!((bo.heard_from(ANA, 2).await.len(), cy.heard_from(BO, 2).await.len()), (2, 2));
    let frame = ana.heard_from(CY, 1).await[0].clone();
    let named = bo.until("two events", |noted| (noted.speaking.len() == 2).then(|| noted.speaking.clone())).await;
    assert_eq!([named[0], named[1]].map(|(_, user, ssrc, _)| (user, ssrc)), [(CY, ana.ssrc), (CY, cy.ssrc)]);
    assert!(ana.look(|noted| noted.speaking.iter().all(|(at, ..)| *at > frame.at)));
}

#[tokio::test]
async fn a_member_can_get_another_ssrc() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    ana.say(&frames(1, 1)).await;
    bo.heard_from(ANA, 1).await;

    let ssrc = voice.change_ssrc(CHANNEL, ANA);
    ana.say(&frames(2, 1)).await;

    assert_eq!(bo.heard_from(ANA, 2).await[1].ssrc, ssrc);
    bo.until("the event", |noted| (noted.speaking.last()?.2 == ssrc).then_some(())).await;
}

#[tokio::test]
async fn people_leave_and_others_come() {
    let voice = start();
    let [ana, bo, cy] = call(&voice, [ANA, BO, CY]).await;

    cy.leave().await;
    voice.grouped(CHANNEL, 2).await;
    ana.grouped(2).await;
    bo.grouped(2).await;
    assert!(!ana.look(|noted| noted.others.contains(&CY)));
    let cy = voice.join(GUILD, CHANNEL, CY).await;
    cy.grouped(3).await;
    bo.grouped(3).await;
    voice.grouped(CHANNEL, 3).await;

    ana.say(&frames(1, 5)).await;
    assert_eq!((bo.heard_from(ANA, 5).await.len(), cy.heard_from(ANA, 5).await.len()), (5, 5));
}

#[tokio::test]
async fn the_muted_are_not_heard_and_the_deafened_hear_nothing() {
    let voice = start();
    let [ana, bo, cy] = call(&voice, [ANA, BO, CY]).await;
    voice.set_muted(CHANNEL, ANA, true);
    voice.set_deafened(CHANNEL, BO, true);

    ana.say(&frames(1, 3)).await;
    voice.until("the frames", |voice| (voice.counts.get(&ana.seat)?.received == 3).then_some(())).await;
    cy.say(&frames(3, 3)).await;

    assert_eq!(ana.heard_from(CY, 3).await.len(), 3);
    assert_eq!((bo.heard().len(), cy.heard().len()), (0, 0));
    // Discord sends silence in the name of some who are muted.
    voice.send_silence(CHANNEL, ANA, 7, 960);
    let silence = cy.until("silence", |noted| noted.heard.first().cloned()).await;
    assert_eq!((silence.end_to_end, silence.user), (false, Some(ANA)));
}
