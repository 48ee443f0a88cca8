//! A guild that keeps failing is restarted as a whole once, then kept away; the others do not notice.

use ractor::{Actor, ActorProcessingErr, RpcReplyPort, call};
use tokio::sync::mpsc;

use super::world::{Boss, Half};
use super::*;
use crate::actors::runtime::quarantine::{Quarantine, QuarantinePolicy, Ruling};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;

#[tokio::test(start_paused = true)]
async fn a_guild_that_keeps_failing_is_restarted_as_a_whole_once_and_then_kept_away() {
    let (guilds, mut told) = guilds().await;

    cast!(guilds, Town::Open("bad", true)).expect("it lives");

    assert_eq!(told.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(told.recv().await.as_deref(), Some("bad restarts as a whole"));
    assert_eq!(told.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(told.recv().await.as_deref(), Some("bad is kept away for 60 s"));
    assert_eq!(told.recv().await.as_deref(), Some("bad may come back"));
    assert_eq!(told.recv().await.as_deref(), Some("bad is up"));
    assert_eq!(told.recv().await.as_deref(), Some("bad is kept away for 120 s"));
}

#[tokio::test(start_paused = true)]
async fn the_other_guilds_do_not_notice() {
    let (guilds, mut told) = guilds().await;
    cast!(guilds, Town::Open("good", false)).expect("it lives");
    assert_eq!(told.recv().await.as_deref(), Some("good is up"));
    let good = call!(guilds, Town::Find, "good").expect("it lives").expect("it is up");

    cast!(guilds, Town::Open("bad", true)).expect("it lives");
    while told.recv().await.as_deref() != Some("bad is kept away for 60 s") {}

    let same = call!(guilds, Town::Find, "good").expect("it lives").expect("it is up");
    assert_eq!((same.get_id(), same.get_status()), (good.get_id(), ActorStatus::Running));
    assert!(call!(guilds, Town::Find, "bad").expect("it lives").is_none());
}

async fn guilds() -> (ActorRef<Town>, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    (Actor::spawn(None, Guilds, tell).await.expect("it starts").0, told)
}

struct Guilds;

enum Town {
    Open(&'static str, bool),
    Find(&'static str, RpcReplyPort<Option<ActorCell>>),
    Over,
    Upkeep(Upkeep<(&'static str, bool)>),
}

impl From<Upkeep<(&'static str, bool)>> for Town {
    fn from(upkeep: Upkeep<(&'static str, bool)>) -> Self {
        Self::Upkeep(upkeep)
    }
}

struct GuildsState {
    myself: ActorRef<Town>,
    children: Children<(&'static str, bool), Town>,
    quarantine: Quarantine,
    began: Instant,
    tell: mpsc::UnboundedSender<String>,
}

impl GuildsState {
    fn now(&self) -> Moment {
        Moment::ZERO + self.began.elapsed()
    }

    fn tell(&self, news: String) {
        let _ = self.tell.send(news);
    }

    fn open(&mut self, name: &'static str, is_bad: bool) {
        let spec = ChildSpec::of(RestartType::Bulkhead, || (Boss, mpsc::unbounded_channel().0));
        assert!(self.children.start((name, is_bad), spec));
    }

    fn carry_on(&mut self, report: Option<Report<(&'static str, bool)>>) {
        match report {
            None => {}
            Some(Report::Started { child: (name, is_bad), actor, .. }) => {
                self.tell(format!("{name} is up"));
                if is_bad {
                    let doomed = ChildSpec::of(RestartType::Transient, || (Doomed, ()));
                    actor.send_message(Ask::Start("doomed", doomed)).expect("it lives");
                }
            }
            Some(Report::Ended { child: (name, is_bad), ending }) => {
                assert!(ending.is_escalation(), "{ending}");
                let now = self.now();
                match self.quarantine.over_limit(&GuildId::from(name), &ending.to_string(), now) {
                    Ruling::RestartWhole => {
                        self.tell(format!("{name} restarts as a whole"));
                        self.open(name, is_bad);
                    }
                    Ruling::Quarantine { until } => {
                        self.tell(format!("{name} is kept away for {} s", until.since(now).as_secs()));
                        self.myself.send_after(until.since(now), || Town::Over);
                    }
                }
            }
            Some(other) => panic!("unexpected: {other:?}"),
        }
    }
}

impl Actor for Guilds {
    type Msg = Town;
    type State = GuildsState;
    type Arguments = mpsc::UnboundedSender<String>;

    async fn pre_start(&self, myself: ActorRef<Town>, tell: Self::Arguments) -> Result<GuildsState, ActorProcessingErr> {
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
            children: Children::new(myself.clone(), policy, Arc::new(Half)),
            myself,
            quarantine: Quarantine::new(quarantine),
            began: Instant::now(),
            tell,
        })
    }

    async fn handle(&self, _: ActorRef<Town>, town: Town, state: &mut GuildsState) -> Result<(), ActorProcessingErr> {
        match town {
            Town::Open(name, is_bad) => state.open(name, is_bad),
            Town::Find(name, reply) => {
                let guild = state.children.running().find(|((each, _), _)| *each == name);
                reply.send(guild.map(|(_, actor)| actor.clone()))?;
            }
            Town::Over => {
                for guild in state.quarantine.take_due(state.now()) {
                    assert_eq!(guild.as_str(), "bad");
                    state.tell("bad may come back".to_owned());
                    state.open("bad", true);
                }
            }
            Town::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.carry_on(report);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Town>,
        event: SupervisionEvent,
        state: &mut GuildsState,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.carry_on(report);
        Ok(())
    }
}

/// Fails as soon as it is up.
struct Doomed;

impl Actor for Doomed {
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
