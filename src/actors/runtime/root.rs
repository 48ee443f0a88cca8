//! The root of the tree: starts everything in order, starts again what fails, and stops it in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};

use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::supervision::Upkeep;
use crate::actors::models::SideModels;
use crate::actors::runtime::actor_keys::{GuildsKey, PoolKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Registration, Sort};
use crate::actors::runtime::guilds::Guilds;
use crate::actors::runtime::pending;
use crate::actors::runtime::platforms::Connections;
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::actors::runtime::switchboard::{self, Switchboard};
use crate::actors::writer::{self, Fate, Writer};
use crate::domain::id::Ward;
use crate::journal::reader::Pending;
use crate::telemetry::operations::{self, ActorFacts};

/// The node's own actors are started again at once, then after 0.1 s, doubling to 5 s; more than 50 times in a minute, and the process ends.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(100),
    longest_delay: Duration::from_secs(5),
    child_limit: 50,
    total_limit: 200,
    window: Duration::from_secs(60),
};

/// How long the connections to platforms are left alone once they failed too often: that is no reason for anybody else to fail.
const PLATFORMS_PAUSE: Duration = Duration::from_secs(60);

pub struct Root;

/// A child of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    Writer,
    SideModels,
    Switchboard,
    Guilds,
    /// Who supervises the connections to platforms.
    Platforms,
}

impl Child {
    const fn sort(self) -> Sort {
        match self {
            Self::Writer => Sort::Writer,
            Self::SideModels => Sort::Models,
            Self::Switchboard => Sort::Switchboard,
            Self::Guilds => Sort::Guilds,
            Self::Platforms => Sort::Platforms,
        }
    }
}

/// What the root is told.
pub enum RootMessage {
    /// Who lives where is known: wake the guilds that have something to do, and connect to platforms, of which nobody could say before
    /// whether what is heard there concerns anybody.
    WakePending,
    /// The connections to platforms were left alone for long enough.
    Connect,
    /// What its supervision tells itself.
    Upkeep(Upkeep<Child>),
}

impl From<Upkeep<Child>> for RootMessage {
    fn from(upkeep: Upkeep<Child>) -> Self {
        Self::Upkeep(upkeep)
    }
}

pub struct State {
    context: ActorContext,
    myself: ActorRef<RootMessage>,
    children: Children<Child, RootMessage>,
    registrations: Vec<(Child, Registration)>,
}

impl Actor for Root {
    type Msg = RootMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<RootMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let children = Children::new(myself.clone(), RESTARTS, context.rng.clone());
        let mut state = State { context, myself, children, registrations: Vec::new() };
        for child in [Child::Writer, Child::SideModels, Child::Switchboard, Child::Guilds] {
            let spec = state.spec(child);
            let actor = state.children.start_and_wait(child, spec).await.map_err(|ending| ending.to_string())?;
            state.register(child, &actor);
        }
        Ok(state)
    }

    async fn handle(&self, _: ActorRef<RootMessage>, message: RootMessage, state: &mut State) -> Result<(), ActorProcessingErr> {
        match message {
            RootMessage::WakePending => {
                wake_pending(state.context.clone());
                state.connect();
            }
            RootMessage::Connect => state.connect(),
            RootMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.carry_on(report)?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<RootMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.carry_on(report)
    }
}

impl State {
    fn spec(&self, child: Child) -> ChildSpec {
        let context = self.context.clone();
        match child {
            Child::Writer => ChildSpec::of(RestartType::Permanent, move || (Writer, writer_arguments(&context))),
            Child::SideModels => ChildSpec::of(RestartType::Permanent, move || {
                let (settings, rng) = (context.settings.models.clone(), context.rng.clone());
                (SideModels { settings, rng, instruments: context.recorder.instruments().clone() }, ())
            }),
            Child::Switchboard => ChildSpec::of(RestartType::Permanent, move || (Switchboard, context.clone())),
            Child::Guilds => ChildSpec::of(RestartType::Permanent, move || (Guilds, context.clone())),
            Child::Platforms => ChildSpec::of(RestartType::Permanent, move || (Connections, context.clone())),
        }
    }

    fn connect(&mut self) {
        let spec = self.spec(Child::Platforms);
        self.children.start(Child::Platforms, spec);
    }

    /// The writer and the pool know no directory; the others enter themselves.
    fn register(&mut self, child: Child, actor: &ActorCell) {
        self.registrations.retain(|(known, _)| *known != child);
        let directory = &self.context.directory;
        let registration = match child {
            Child::Writer => directory.register(&WriterKey(), &actor.clone().into()),
            Child::SideModels => directory.register(&PoolKey(), &actor.clone().into()),
            Child::Switchboard | Child::Guilds | Child::Platforms => return,
        };
        self.registrations.push((child, registration));
    }

    fn carry_on(&mut self, report: Option<Report<Child>>) -> Result<(), ActorProcessingErr> {
        match report {
            None | Some(Report::Ended { .. }) => {}
            Some(Report::Started { child, actor, .. }) => {
                self.register(child, &actor);
                match child {
                    Child::Guilds => wake_pending(self.context.clone()),
                    // What either had in its mailbox is gone with it.
                    Child::Writer | Child::Switchboard => pending::look_again(self.context.clone()),
                    _ => {}
                }
            }
            Some(Report::Restarting { child, ending, after }) => {
                ending.measure(child.sort().as_str(), self.context.recorder.instruments());
                let (sort, ending) = (child.sort().as_str(), ending.to_string());
                let facts = ActorFacts { sort, address: sort, ending: &ending, at: self.context.clock.now() };
                operations::restarted(&self.context.recorder, &facts, after);
            }
            Some(Report::Escalate { child, escalation }) => {
                let sort = child.sort().as_str();
                let escalation = Escalation { child: sort.to_owned(), ..escalation };
                let ending = escalation.to_string();
                let facts = ActorFacts { sort, address: sort, ending: &ending, at: self.context.clock.now() };
                operations::escalated(&self.context.recorder, &facts);
                if child != Child::Platforms {
                    return Err(escalation.into());
                }
                self.myself.send_after(PLATFORMS_PAUSE, || RootMessage::Connect);
            }
        }
        Ok(())
    }
}

fn writer_arguments(context: &ActorContext) -> writer::Arguments {
    let (deliverer, failed) = (context.clone(), context.store_failed.clone());
    writer::Arguments {
        platforms: context.platforms.clone(),
        store: context.store.clone(),
        clock: context.clock.clone(),
        hub: context.hub.clone(),
        instruments: context.recorder.instruments().clone(),
        deliver: Arc::new(move |guild, channel, recorded, committed| {
            switchboard::deliver(guild, channel, recorded, committed, &deliverer);
        }),
        report: Arc::new(move |fate| match fate {
            Fate::StoreFailed(detail) => failed(detail),
        }),
        bounds: writer::Bounds::default(),
    }
}

/// Opens the guilds that have something to do. Each wakes its channels by itself.
fn wake_pending(context: ActorContext) {
    tokio::spawn(async move {
        let wards = (0..=u8::MAX).map(Ward).collect();
        let open = |ward, pending: Pending| {
            pending::tell_nameless(ward, &pending);
            let guilds: BTreeSet<_> = pending.channels.into_iter().map(|record| record.guild).collect();
            for guild in guilds {
                if let Some(actor) = context.directory.find(&GuildsKey()) {
                    // A supervisor that is gone opens them when it is back.
                    let _ = actor.cast(GuildsMessage::Open(guild, None));
                }
            }
        };
        pending::of_wards(&*context.store, wards, open).await;
    });
}
