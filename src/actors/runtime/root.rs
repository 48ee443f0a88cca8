//! The root of the supervision tree: starts all actors in order, restarts those that fail, and stops them in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::supervision::Upkeep;
use crate::actors::models::SideModels;
use crate::actors::runtime::actor_keys::GuildsKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Sort;
use crate::actors::runtime::guilds::Guilds;
use crate::actors::runtime::pending;
use crate::actors::runtime::platforms::Connections;
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::reports_children;
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::actors::runtime::switchboard::{Switchboard, deliver};
use crate::actors::writer::{self, Deliver, Writer};
use crate::domain::id::Ward;
use crate::journal::reader::Pending;

/// The children of the root are restarted immediately, then after 0.1 s, doubling to 5 s. After more than 50 restarts of one child in a row, or 200
/// of all children in a minute, the process ends. If that child is the connection supervisor, it pauses instead.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(100),
    longest_delay: Duration::from_secs(5),
    child_limit: 50,
    total_limit: 200,
    window: Duration::from_secs(60),
};

/// The pause of the connection supervisor after it exceeded its restart limit. Failing connections must not affect other actors.
const PLATFORMS_PAUSE: Duration = Duration::from_secs(60);

pub struct Root;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    Writer,
    SideModels,
    Switchboard,
    Guilds,
    /// The supervisor of the connections to platforms.
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

pub enum RootMessage {
    /// The memberships are loaded: wake the guilds that have pending work, and connect to platforms. Before this, inbound events could not
    /// be assigned to members.
    WakePending,
    /// The pause of the connection supervisor is over.
    Connect,
    /// The root's own supervision messages.
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
}

impl Actor for Root {
    type Msg = RootMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<RootMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let children = Children::new(myself.clone(), RESTARTS, context.rng.clone());
        let mut state = State { context, myself, children };
        for child in [Child::Writer, Child::SideModels, Child::Switchboard, Child::Guilds] {
            let spec = state.spec(child);
            state.children.start_and_wait(child, spec).await.map_err(|ending| ending.to_string())?;
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
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    reports_children!(RootMessage);
}

impl State {
    fn spec(&self, child: Child) -> ChildSpec {
        let context = self.context.clone();
        match child {
            Child::Writer => ChildSpec::of(RestartType::Permanent, move || {
                let (deliverer, bounds) = (context.clone(), writer::Bounds::default());
                let deliver: Deliver = Arc::new(move |guild, channel, message| deliver(guild, channel, message, &deliverer));
                (Writer, writer::Arguments { context: context.clone(), deliver, bounds })
            }),
            Child::SideModels => ChildSpec::of(RestartType::Permanent, move || {
                let (settings, rng, directory) =
                    (context.settings.models.clone(), context.rng.clone(), context.directory.clone());
                (SideModels { settings, rng, instruments: context.recorder.instruments().clone(), directory }, ())
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

    fn handle_report(&mut self, report: Option<Report<Child>>) -> Result<(), ActorProcessingErr> {
        match report {
            None | Some(Report::Ended { .. }) => {}
            Some(Report::Started { child, .. }) => match child {
                Child::Guilds => wake_pending(self.context.clone()),
                // The messages in the old mailbox are lost.
                Child::Writer | Child::Switchboard => pending::recover(self.context.clone()),
                Child::SideModels | Child::Platforms => {}
            },
            Some(Report::Restarting { child, ending, after }) => {
                self.context.restarting(child.sort(), child.sort().as_str(), &ending, after);
            }
            Some(Report::Escalate { child, escalation }) => {
                let escalation = Escalation { child: child.sort().to_string(), ..escalation };
                self.context.escalated(child.sort(), &escalation.child, &escalation.to_string());
                if child != Child::Platforms {
                    return Err(escalation.into());
                }
                self.myself.send_after(PLATFORMS_PAUSE, || RootMessage::Connect);
            }
        }
        Ok(())
    }
}

/// Starts the guilds that have pending work. Each guild wakes its own channels.
fn wake_pending(context: ActorContext) {
    tokio::spawn(async move {
        let wards = (0..=u8::MAX).map(Ward).collect();
        let open = |ward, pending: Pending| {
            pending::log_nameless(ward, &pending);
            pending::wake_when_due(&context, pending.due);
            let guilds: BTreeSet<_> = pending.channels.into_iter().map(|record| record.guild).collect();
            for guild in guilds {
                if let Some(actor) = context.directory.find(&GuildsKey()) {
                    // If the guild supervisor is being restarted, the root wakes them once it has started.
                    let _ = actor.cast(GuildsMessage::Open(guild, None));
                }
            }
        };
        pending::read_wards(&*context.store, wards, open).await;
    });
}
