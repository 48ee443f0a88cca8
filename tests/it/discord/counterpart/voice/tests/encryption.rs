//! The delivery service of end-to-end encryption.

use std::time::Duration;

use super::super::{Rules, VoiceServer};
use super::client::Socket;
use super::{ANA, BO, CHANNEL, CY, GUILD, call, frames, start};
use crate::discord::counterpart::Id;

/// A user to whom nothing else happens.
const DI: Id = Id(9_004);

#[tokio::test]
async fn each_change_of_members_begins_an_epoch() {
    let voice = start();
    let [ana, bo, cy] = call(&voice, [ANA, BO, CY]).await;
    let epoch = ana.look(|noted| noted.epoch);
    assert_eq!((bo.look(|noted| noted.epoch), cy.look(|noted| noted.epoch)), (epoch, epoch));

    cy.leave().await;
    ana.grouped(2).await;

    assert_eq!(ana.look(|noted| noted.epoch), epoch + 1);
    assert!(voice.look(|voice| {
        voice.journal.commits.last().is_some_and(|(channel, _, begun)| (*channel, *begun) == (CHANNEL, epoch + 1))
    }));
    assert!(voice.look(|voice| voice.journal.executed.iter().all(|(_, _, all_ready)| *all_ready)));
}

#[tokio::test]
async fn a_sole_member_gets_a_new_group() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;

    bo.leave().await;
    ana.until("the reset", |noted| noted.group.is_empty().then_some(())).await;
    assert_eq!(ana.say(&frames(1, 2)).await, 0, "there is nobody to encrypt for");
    let bo = voice.join(GUILD, CHANNEL, BO).await;
    ana.grouped(2).await;
    bo.grouped(2).await;

    ana.say(&frames(2, 2)).await;
    assert_eq!(bo.heard_from(ANA, 2).await.len(), 2);
    assert_eq!(voice.look(|voice| voice.journal.sole_resets), 1);
}

#[tokio::test]
async fn who_cannot_process_a_commit_is_removed_and_added_again() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    voice.garble_commit(CHANNEL, BO);

    let cy = voice.join(GUILD, CHANNEL, CY).await;

    bo.until("the report", |noted| (noted.reported == 1).then_some(())).await;
    for person in [&ana, &bo, &cy] {
        person.grouped(3).await;
    }
    voice.grouped(CHANNEL, 3).await;
    bo.say(&frames(2, 2)).await;
    assert_eq!((ana.heard_from(BO, 2).await.len(), cy.heard_from(BO, 2).await.len()), (2, 2));
}

#[tokio::test]
async fn who_cannot_process_a_welcome_is_removed_and_added_again() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    voice.garble_welcome(CHANNEL, CY);

    let cy = voice.join(GUILD, CHANNEL, CY).await;

    cy.until("the report", |noted| (noted.reported == 1).then_some(())).await;
    for person in [&ana, &bo, &cy] {
        person.grouped(3).await;
    }
    voice.grouped(CHANNEL, 3).await;
    cy.say(&frames(3, 2)).await;
    assert_eq!((ana.heard_from(CY, 2).await.len(), bo.heard_from(CY, 2).await.len()), (2, 2));
    assert_eq!(voice.look(|voice| voice.journal.reported[0].0), CY);
}

#[tokio::test]
async fn a_first_group_that_fails_is_made_again() {
    let voice = start();
    voice.garble_welcome(CHANNEL, ANA);
    voice.garble_welcome(CHANNEL, BO);

    let [ana, bo] = call(&voice, [ANA, BO]).await;

    assert_eq!(
        ana.look(|noted| noted.reported) + bo.look(|noted| noted.reported),
        voice.look(|voice| voice.journal.reported.len())
    );
    ana.say(&frames(1, 2)).await;
    assert_eq!(bo.heard_from(ANA, 2).await.len(), 2);
}

#[tokio::test]
async fn a_duplicate_user_is_proposed_and_revoked() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;

    voice.propose_duplicate(CHANNEL, ANA);
    for person in [&ana, &bo] {
        person.until("the refusal", |noted| (noted.refused_proposals == 1).then_some(())).await;
    }
    voice.revoke_duplicates(CHANNEL);
    let cy = voice.join(GUILD, CHANNEL, CY).await;

    cy.grouped(3).await;
    ana.grouped(3).await;
}

#[tokio::test]
async fn a_transition_can_be_executed_late_or_without_word() {
    let voice = VoiceServer::start(Rules { transition_timeout: Duration::from_millis(100), ..Rules::quick() });
    let [ana, bo] = call(&voice, [ANA, BO]).await;
    voice.delay_executes(Some(Duration::from_millis(50)));
    let cy = voice.join(GUILD, CHANNEL, CY).await;
    cy.grouped(3).await;
    voice.grouped(CHANNEL, 3).await;
    let executed = ana.until("the execution", |noted| (noted.executed == 1).then_some(noted.executed)).await;
    voice.delay_executes(None);

    voice.withhold_executes(1);
    let di = voice.join(GUILD, CHANNEL, DI).await;
    voice.grouped(CHANNEL, 4).await;
    assert_eq!((ana.look(|noted| noted.executed), bo.look(|noted| noted.executed)), (executed, executed));
    // They still encrypt with the keys of the epoch before, which who was there before can open.
    bo.say(&frames(2, 2)).await;
    assert_eq!(ana.heard_from(BO, 2).await.len(), 2);
    assert!(di.look(|noted| noted.heard.is_empty()));
}

#[tokio::test]
async fn a_call_goes_back_to_transport_encryption_and_forth() {
    let voice = VoiceServer::start(Rules { requires_dave: false, ..Rules::quick() });
    let [ana, bo] = call(&voice, [ANA, BO]).await;

    let cy = voice.join_without_dave(GUILD, CHANNEL, CY).await;
    for person in [&ana, &bo] {
        person.until("the downgrade", |noted| (noted.version == 0).then_some(())).await;
    }
    ana.say(&frames(1, 2)).await;
    assert_eq!((bo.heard_from(ANA, 2).await.len(), cy.heard_from(ANA, 2).await.len()), (2, 2));
    assert!(bo.heard().iter().all(|heard| !heard.end_to_end));

    cy.leave().await;
    for person in [&ana, &bo] {
        person.until("the upgrade", |noted| (noted.version == 1 && noted.can_encrypt).then_some(())).await;
    }
    ana.say(&frames(3, 2)).await;
    assert!(bo.heard_from(ANA, 4).await[2..].iter().all(|heard| heard.end_to_end));
}

#[tokio::test]
async fn plain_frames_are_counted_where_encryption_is_in_use() {
    let voice = start();
    let [ana, bo] = call(&voice, [ANA, BO]).await;

    ana.say_plainly(&frames(1, 3)).await;

    bo.until("the frames", |noted| (noted.plain == 3).then_some(())).await;
    assert_eq!(voice.counts(CHANNEL, ANA).plain, 3);
}

#[tokio::test]
async fn many_come_and_go_at_once() {
    let voice = VoiceServer::start(Rules { proposal_delay: Duration::from_millis(50), ..Rules::quick() });
    let joins = (0..10).map(|index| voice.join(GUILD, CHANNEL, Id(9_100 + index)));
    let mut people = futures_util::future::join_all(joins).await;
    for person in &people {
        person.grouped(10).await;
    }
    voice.grouped(CHANNEL, 10).await;
    futures_util::future::join_all(people.drain(..5).map(super::Person::leave)).await;

    for person in &people {
        person.grouped(5).await;
    }
    voice.grouped(CHANNEL, 5).await;

    let speaker = people.pop().expect("a person");
    speaker.say(&frames(1, 5)).await;
    for person in &people {
        assert_eq!(person.heard_from(speaker.seat.user, 5).await.len(), 5);
    }
}

#[tokio::test]
async fn the_proposal_for_someone_who_leaves_is_revoked() {
    let voice = start();
    let grant = voice.grant(GUILD, CHANNEL, ANA);
    let (mut socket, ..) = Socket::described(&grant).await;
    let bo = voice.join(GUILD, CHANNEL, BO).await;
    socket.op(11).await;
    socket.op(27).await;

    bo.leave().await;

    socket.op(13).await;
    socket.op(27).await;
    assert!(voice.look(|voice| voice.groups[&CHANNEL].is_settled() && voice.groups[&CHANNEL].members().is_empty()));
}
