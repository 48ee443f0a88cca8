use std::sync::Arc;

use ractor::Actor;

use super::super::tests::{channel_context, conversation_after, next, probe};
use super::super::{Arguments as ChannelArguments, Channel};
use super::*;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::event::{Event, Recorded, RoundOpened};

const DEADLINE: Moment = Moment::from_micros(20_000_000);
const ROUND: Seq = Seq(7);

fn round_opened(deadline: Moment) -> Event {
    Event::RoundOpened(RoundOpened { message: ROUND, deadline, asked: vec!["zed".into()], listening: Vec::new() })
}

#[tokio::test(start_paused = true)]
async fn the_channel_watches_the_deadline_alone_if_no_manager_does_and_a_little_later_otherwise() {
    let (channel, _received) = channel_context().await;
    let conversation = conversation_after(&channel, [round_opened(DEADLINE)]);
    let mut host = RoundHost::default();

    assert_eq!(host.next_deadline(&conversation), Some(DEADLINE));
    assert_eq!(host.manage(ROUND, &conversation, Moment::ZERO, &channel), Watched::ByManager);
    assert_eq!(host.next_deadline(&conversation), Some(DEADLINE + GRACE));
    host.stop();
    assert_eq!(host.next_deadline(&conversation), Some(DEADLINE));
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_stops_is_replaced_three_times_while_its_round_is_open() {
    let (channel, _received) = channel_context().await;
    let conversation = conversation_after(&channel, [round_opened(DEADLINE)]);
    let mut host = RoundHost::default();
    host.manage(ROUND, &conversation, Moment::ZERO, &channel);

    let mut replaced = 0;
    while let Some(manager) = &host.manager {
        let stopped = manager.actor.get_id();
        assert!(host.replace_stopped(stopped, &conversation, Moment::ZERO, &channel));
        assert!(!host.replace_stopped(stopped, &conversation, Moment::ZERO, &channel), "it is replaced already");
        replaced += u32::from(host.manager.is_some());
    }

    assert_eq!(replaced, MAX_MANAGERS - 1);
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_reports_its_deadline_too_early_must_wait() {
    let (channel, _received) = channel_context().await;
    let (manager, mut received) = probe().await;
    let arguments = ChannelArguments {
        channel_key: channel.key,
        context: channel.context,
        budgets: Arc::default(),
        in_flight: Arc::default(),
    };
    let mut state = Channel.pre_start(channel.actor, arguments).await.unwrap();
    state.with_world(|conversation, now, world| {
        let event = round_opened(now + Duration::from_secs(20));
        conversation.fold(&Recorded { seq: Seq(8), at: now, handled: ROUND, turn: None, event }, world);
    });
    state.rounds.manager = Some(RoundManager { actor: manager, rounds: [ROUND].into(), number: 1 });

    state.round_due(ROUND);

    let ManagerMessage::ExtendDeadline { timeout: wait, .. } = next(&mut received).await else { panic!("unexpected message") };
    assert!(wait > Duration::from_secs(10) && wait <= Duration::from_secs(20), "{wait:?}");
    assert!(state.conversation.turns().round(ROUND).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_must_wait_reports_the_deadline_after_that() {
    let (channel, mut received) = channel_context().await;
    let round = Round::new(ROUND, Moment::ZERO, Moment::ZERO, &[], &["zed".into()]);
    let arguments = Arguments {
        channel_key: channel.key.clone(),
        rounds: vec![OpenRound { round, timeout: Duration::from_secs(1) }],
        external: ["zed".into()].into(),
        channel: channel.actor.clone(),
        context: ActorContext::clone(&channel.context),
    };
    let began = tokio::time::Instant::now();
    let (actor, _) = Actor::spawn(None, TurnTakingManager, arguments).await.unwrap();
    let host = RoundHost { manager: Some(RoundManager { actor, rounds: [ROUND].into(), number: 1 }) };

    let mut due = Vec::new();
    for _ in 0..2 {
        let ChannelMessage::RoundDue(round) = next(&mut received).await else { panic!("unexpected message") };
        due.push((round, began.elapsed().as_secs()));
        host.extend_deadline(round, Duration::from_secs(3));
    }

    assert_eq!(due, [(ROUND, 1), (ROUND, 4)]);
}
