//! A guild that keeps failing is restarted as a whole once, then quarantined. Other guilds are not affected.

use ractor::{Actor, ActorProcessingErr, RpcReplyPort, call};
use tokio::sync::mpsc;

use super::world::Supervisor;
use super::*;
use crate::actors::runtime::quarantine::{Quarantine, QuarantinePolicy, Ruling};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::samples::Draws;

#[tokio::test(start_paused = true)]
async fn a_guild_that_keeps_failing_is_restarted_as_a_whole_once_and_then_quarantined() {
    let (guilds, mut reports) = guilds().await;

    cast!(guilds, GuildsRequest::Open("bad", true)).expect("it runs");

    assert_eq!(reports.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad restarts as a whole"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad is quarantined for 60 s"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad may come back"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(reports.recv().await.as_deref(), Some("bad is quarantined for 120 s"));
}

#[tokio::test(start_paused = true)]
async fn other_guilds_are_not_affected() {
    let (guilds, mut reports) = guilds().await;
    cast!(guilds, GuildsRequest::Open("good", false)).expect("it runs");
    assert_eq!(reports.recv().await.as_deref(), Some("good is up"));
    let good = call!(guilds, GuildsRequest::Find, "good").expect("it runs").expect("it is up");

    cast!(guilds, GuildsRequest::Open("bad", true)).expect("it runs");
    while reports.recv().await.as_deref() != Some("bad is quarantined for 60 s") {}

    let same = call!(guilds, GuildsRequest::Find, "good").expect("it runs").expect("it is up");
    assert_eq!((same.get_id(), same.get_status()), (good.get_id(), ActorStatus::Running));
    assert!(call!(guilds, GuildsRequest::Find, "bad").expect("it runs").is_none());
}

async fn guilds() -> (ActorRef<GuildsRequest>, mpsc::UnboundedReceiver<String>) {
    let (reports_tx, reports) = mpsc::unbounded_channel();
    (Actor::spawn(None, Guilds, reports_tx).await.expect("it starts").0, reports)
}

struct Guilds;

enum GuildsRequest {
    Open(&'static str, bool),
    Find(&'static str, RpcReplyPort<Option<ActorCell>>),
    QuarantineOver,
    Upkeep(Upkeep<(&'static str, bool)>),
}

impl From<Upkeep<(&'static str, bool)>> for GuildsRequest {
    fn from(upkeep: Upkeep<(&'static str, bool)>) -> Self {
        Self::Upkeep(upkeep)
    }
}

struct GuildsState {
    myself: ActorRef<GuildsRequest>,
    children: Children<(&'static str, bool), GuildsRequest>,
    quarantine: Quarantine,
    began: Instant,
    reports: mpsc::UnboundedSender<String>,
}

impl GuildsState {
    fn now(&self) -> Moment {
        Moment::ZERO + self.began.elapsed()
    }

    fn report(&self, text: String) {
        let _ = self.reports.send(text);
    }

    fn open(&mut self, name: &'static str, is_bad: bool) {
        let spec = ChildSpec::of(RestartType::Bulkhead, || (Supervisor, mpsc::unbounded_channel().0));
        assert!(self.children.start((name, is_bad), spec));
    }

    fn handle_report(&mut self, report: Option<Report<(&'static str, bool)>>) {
        match report {
            None => {}
            Some(Report::Started { child: (name, is_bad), actor, .. }) => {
                self.report(format!("{name} is up"));
                if is_bad {
                    let failing = ChildSpec::of(RestartType::Transient, || (FailsAtOnce, ()));
                    actor.send_message(Request::Start("failing", failing)).expect("it runs");
                }
            }
            Some(Report::Ended { child: (name, is_bad), ending }) => {
                assert!(ending.is_escalation(), "{ending}");
                let now = self.now();
                match self.quarantine.over_limit(&GuildId::from(name), &ending.to_string(), now) {
                    Ruling::RestartWhole => {
                        self.report(format!("{name} restarts as a whole"));
                        self.open(name, is_bad);
                    }
                    Ruling::Quarantine { until } => {
                        self.report(format!("{name} is quarantined for {} s", until.since(now).as_secs()));
                        self.myself.send_after(until.since(now), || GuildsRequest::QuarantineOver);
                    }
                }
            }
            Some(other) => panic!("unexpected: {other:?}"),
        }
    }
}

impl Actor for Guilds {
    type Msg = GuildsRequest;
    type State = GuildsState;
    type Arguments = mpsc::UnboundedSender<String>;

    async fn pre_start(
        &self,
        myself: ActorRef<GuildsRequest>,
        reports: Self::Arguments,
    ) -> Result<GuildsState, ActorProcessingErr> {
        let policy = RestartPolicy {
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(60),
            child_limit: 10,
            total_limit: 100,
            window: Duration::from_secs(600),
        };
        let quarantine = QuarantinePolicy {
            first: Duration::from_secs(60),
            longest: Duration::from_secs(3_600),
            forget_after: Duration::from_secs(7_200),
        };
        Ok(GuildsState {
            children: Children::new(myself.clone(), policy, Arc::new(Draws::default())),
            myself,
            quarantine: Quarantine::new(quarantine),
            began: Instant::now(),
            reports,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<GuildsRequest>,
        request: GuildsRequest,
        state: &mut GuildsState,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            GuildsRequest::Open(name, is_bad) => state.open(name, is_bad),
            GuildsRequest::Find(name, reply) => {
                let guild = state.children.running().find(|((each, _), _)| *each == name);
                reply.send(guild.map(|(_, actor)| actor.clone()))?;
            }
            GuildsRequest::QuarantineOver => {
                for guild in state.quarantine.take_due(state.now()) {
                    assert_eq!(guild.as_str(), "bad");
                    state.report("bad may come back".to_owned());
                    state.open("bad", true);
                }
            }
            GuildsRequest::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<GuildsRequest>,
        event: SupervisionEvent,
        state: &mut GuildsState,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.handle_report(report);
        Ok(())
    }
}

/// Fails as soon as it has started.
struct FailsAtOnce;

impl Actor for FailsAtOnce {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_start(&self, _: ActorRef<()>, (): &mut ()) -> Result<(), ActorProcessingErr> {
        Err("doomed".into())
    }
}
