use ractor::{Actor, ActorProcessingErr, Message};
use tokio::sync::mpsc;

use super::super::{Arguments as ChannelArguments, Channel};
use super::*;
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::event::{Recorded, RoundOpened};
use crate::samples::{context, lobby, recorded};

/// Forwards its messages to the test.
struct Probe<M>(mpsc::UnboundedSender<M>);

impl<M: Message> Actor for Probe<M> {
    type Msg = M;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<M>, message: M, (): &mut ()) -> Result<(), ActorProcessingErr> {
        // The test may be over.
        let _ = self.0.send(message);
        Ok(())
    }
}

async fn probe<M: Message>() -> (ActorRef<M>, mpsc::UnboundedReceiver<M>) {
    let (sender, received) = mpsc::unbounded_channel();
    let (actor, _) = Actor::spawn(None, Probe(sender), ()).await.unwrap();
    (actor, received)
}

async fn next<M>(received: &mut mpsc::UnboundedReceiver<M>) -> M {
    tokio::time::timeout(Duration::from_secs(60), received.recv()).await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_reports_its_deadline_too_early_must_wait() {
    let (channel, _) = probe().await;
    let (manager, mut received) = probe().await;
    let context = Arc::new(context());
    let arguments = ChannelArguments { channel_key: lobby(), context, budgets: Arc::default(), in_flight: Arc::default() };
    let mut state = Channel.pre_start(channel, arguments).await.unwrap();
    let round = Seq(7);
    state.with_world(|conversation, now, world| {
        let opened = RoundOpened {
            message: round,
            deadline: now + Duration::from_secs(20),
            asked: vec!["zed".into()],
            listening: Vec::new(),
        };
        let event = Event::RoundOpened(opened);
        conversation.fold(&Recorded { at: now, handled: round, ..recorded(8, event) }, world);
    });
    state.manager = Some(RoundManager { actor: manager, rounds: [round].into(), number: 1 });

    state.round_due(round);

    let ManagerMessage::ExtendDeadline { timeout: wait, .. } = next(&mut received).await else { panic!("unexpected message") };
    assert!(wait > Duration::from_secs(10) && wait <= Duration::from_secs(20), "{wait:?}");
    assert!(state.conversation.round(round).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_must_wait_reports_the_deadline_after_that() {
    let (channel, mut received) = probe().await;
    let round = Round::new(Seq(7), Moment::ZERO, Moment::ZERO, &[], &["zed".into()]);
    let arguments = Arguments {
        channel_key: lobby(),
        rounds: vec![OpenRound { round, timeout: Duration::from_secs(1) }],
        external: ["zed".into()].into(),
        channel,
        context: context(),
    };
    let began = tokio::time::Instant::now();
    let (manager, _) = Actor::spawn(None, TurnTakingManager, arguments).await.unwrap();

    let mut due = Vec::new();
    for _ in 0..2 {
        let ChannelMessage::RoundDue(round) = next(&mut received).await else { panic!("unexpected message") };
        due.push((round, began.elapsed().as_secs()));
        manager.cast(ManagerMessage::ExtendDeadline { message: round, timeout: Duration::from_secs(3) }).unwrap();
    }

    assert_eq!(due, [(Seq(7), 1), (Seq(7), 4)]);
    manager.stop(None);
}
