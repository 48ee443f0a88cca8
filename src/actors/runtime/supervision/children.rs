//! The children of one supervisor: starts them in the background, observes how they end, and restarts them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorCell, ActorId, ActorRef, Message, SupervisionEvent};
use tokio::time::Instant;

use super::child::{ChildSpec, Escalation};
use super::restarts::{RestartPolicy, Restarts, Verdict};
use crate::actors::messages::supervision::{Ending, Upkeep};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::ports::rng::Rng;

#[cfg(test)]
mod tests;

/// How many ends of unknown actors are remembered while a start is in progress.
const MAX_FOREIGN_ENDS: usize = 1_024;

/// A change of a child. The supervisor acts on it.
#[derive(Clone, Debug)]
#[must_use]
pub enum Report<K> {
    /// It started.
    Started { child: K, actor: ActorCell },
    /// It ended, and is restarted.
    Restarting {
        child: K,
        ending: Ending,
        /// The delay of the restart; zero for the first in a row.
        after: Duration,
    },
    /// It ended, and is not restarted.
    Ended { child: K, ending: Ending },
    /// It ended too often, and is not restarted. Return the escalation as an error, or continue without the child.
    Escalate { child: K, escalation: Escalation },
}

/// The children of one supervisor, by the names that it gives them. Dropping it cancels starts and restarts in progress.
pub struct Children<K, M> {
    myself: ActorRef<M>,
    rng: Arc<dyn Rng>,
    restarts: Restarts<K>,
    slots: BTreeMap<K, Slot>,
    names: HashMap<ActorId, K>,
    /// Ends that ractor reported before the start: supervision events overtake messages.
    early: Vec<(ActorId, Ending)>,
    attempts: u64,
}

struct Slot {
    spec: ChildSpec,
    phase: Phase,
    attempt: u64,
    wanted: bool,
}

enum Phase {
    Starting { _task: OwnedTask },
    Running(ActorCell),
    Waiting { _timer: OwnedTask },
}

impl<K, M> Children<K, M>
where
    K: Ord + Clone + Debug + Send + 'static,
    M: Message + From<Upkeep<K>>,
{
    /// No children yet. `rng` spreads the restarts.
    pub fn new(myself: ActorRef<M>, policy: RestartPolicy, rng: Arc<dyn Rng>) -> Self {
        Self {
            myself,
            rng,
            restarts: Restarts::new(policy),
            slots: BTreeMap::new(),
            names: HashMap::new(),
            early: Vec::new(),
            attempts: 0,
        }
    }

    /// Starts a child in the background, so that the caller's handler does not wait for its `pre_start`. [`Self::upkeep`] later reports
    /// `Report::Started` or a restart. False, without any effect, if a child of that name exists.
    pub fn start(&mut self, child: K, spec: ChildSpec) -> bool {
        if self.slots.contains_key(&child) {
            return false;
        }
        let (attempt, start) = self.launch(&child, &spec);
        self.slots.insert(child, Slot { spec, phase: Phase::Starting { _task: start }, attempt, wanted: true });
        true
    }

    /// Starts a child and waits until it runs: for the `pre_start` of a supervisor that cannot continue without it. A failed start is not
    /// retried.
    ///
    /// # Errors
    /// Why the child did not start, or that a child of that name exists.
    pub async fn start_and_wait(&mut self, child: K, spec: ChildSpec) -> Result<ActorCell, Ending> {
        if self.slots.contains_key(&child) {
            return Err(Ending::NotStarted { message: format!("{child:?} exists already") });
        }
        let actor = spec.clone().start(self.myself.get_cell()).await?;
        self.attempts += 1;
        self.names.insert(actor.get_id(), child.clone());
        let phase = Phase::Running(actor.clone());
        self.slots.insert(child, Slot { spec, phase, attempt: self.attempts, wanted: true });
        Ok(actor)
    }

    /// Handles a supervision event. `None` if it does not report the end of one of these children.
    pub fn observe(&mut self, event: SupervisionEvent) -> Option<Report<K>> {
        let (actor, ending) = Ending::read(event)?;
        match self.names.remove(&actor.get_id()) {
            Some(child) => self.ended(child, ending),
            None => {
                self.early.push((actor.get_id(), ending));
                self.forget_early();
                None
            }
        }
    }

    /// Handles a message that the supervisor sent to itself. None if there is nothing to report, or the message is stale.
    pub fn upkeep(&mut self, upkeep: Upkeep<K>) -> Option<Report<K>> {
        match upkeep {
            Upkeep::Due { child, attempt } => {
                self.current(&child, attempt)?;
                self.relaunch(&child);
                None
            }
            Upkeep::Spawned { child, attempt, outcome } => {
                if self.current(&child, attempt).is_none() {
                    // The start was cancelled in the meantime.
                    if let Ok(actor) = outcome {
                        actor.stop(None);
                    }
                    return None;
                }
                match outcome {
                    Ok(actor) => self.came_up(child, actor),
                    Err(ending) => self.ended(child, ending),
                }
            }
        }
    }

    /// Marks the child as no longer wanted: it is not restarted, and a start or restart in progress is cancelled. A running child
    /// is returned, and runs until the caller stops or kills it; its end is reported.
    pub fn dismiss(&mut self, child: &K) -> Option<ActorCell> {
        let slot = self.slots.get_mut(child)?;
        match &slot.phase {
            Phase::Running(actor) => {
                slot.wanted = false;
                Some(actor.clone())
            }
            Phase::Starting { .. } | Phase::Waiting { .. } => {
                self.remove(child);
                None
            }
        }
    }

    /// The child's actor, if it runs.
    pub fn get(&self, child: &K) -> Option<&ActorCell> {
        match &self.slots.get(child)?.phase {
            Phase::Running(actor) => Some(actor),
            Phase::Starting { .. } | Phase::Waiting { .. } => None,
        }
    }

    /// The running children, by name.
    pub fn running(&self) -> impl Iterator<Item = (&K, &ActorCell)> {
        self.slots.iter().filter_map(|(child, slot)| match &slot.phase {
            Phase::Running(actor) => Some((child, actor)),
            Phase::Starting { .. } | Phase::Waiting { .. } => None,
        })
    }

    /// The names of all children, including those that start or wait for a restart.
    pub fn names(&self) -> impl Iterator<Item = &K> {
        self.slots.keys()
    }

    /// Kills the running children in the order of their names, for a supervisor that fails. The runtime would kill them in an arbitrary order.
    pub fn kill_all(&self) {
        self.running().for_each(|(_, actor)| actor.kill());
    }

    fn came_up(&mut self, child: K, actor: ActorCell) -> Option<Report<K>> {
        let slot = self.slots.get_mut(&child)?;
        slot.phase = Phase::Running(actor.clone());
        self.restarts.started(&child, Instant::now());
        if let Some(index) = self.early.iter().position(|(id, _)| *id == actor.get_id()) {
            let (_, ending) = self.early.swap_remove(index);
            self.forget_early();
            return self.ended(child, ending);
        }
        self.forget_early();
        self.names.insert(actor.get_id(), child.clone());
        Some(Report::Started { child, actor })
    }

    fn ended(&mut self, child: K, ending: Ending) -> Option<Report<K>> {
        let slot = self.slots.get(&child)?;
        if !slot.wanted || !ending.calls_for_restart(slot.spec.restart_type) {
            self.remove(&child);
            return Some(Report::Ended { child, ending });
        }
        let now = Instant::now();
        let fraction = self.rng.fraction();
        let verdict = if ending.dependency_lost() {
            Verdict::RestartAt(self.restarts.dependency_lost(&child, now, fraction))
        } else {
            self.restarts.died(&child, now, fraction)
        };
        match verdict {
            Verdict::Escalate(excess) => {
                self.remove(&child);
                let escalation = Escalation { child: format!("{child:?}"), excess, ending };
                Some(Report::Escalate { child, escalation })
            }
            Verdict::RestartAt(at) => {
                let after = at.saturating_duration_since(now);
                if after.is_zero() {
                    self.relaunch(&child);
                } else {
                    self.relaunch_after(&child, after);
                }
                Some(Report::Restarting { child, ending, after })
            }
        }
    }

    fn relaunch(&mut self, child: &K) {
        let Some(spec) = self.slots.get(child).map(|slot| slot.spec.clone()) else { return };
        let (attempt, start) = self.launch(child, &spec);
        if let Some(slot) = self.slots.get_mut(child) {
            slot.attempt = attempt;
            slot.phase = Phase::Starting { _task: start };
        }
    }

    fn relaunch_after(&mut self, child: &K, delay: Duration) {
        let Some(slot) = self.slots.get_mut(child) else { return };
        self.attempts += 1;
        let due = Upkeep::Due { child: child.clone(), attempt: self.attempts };
        slot.attempt = self.attempts;
        slot.phase = Phase::Waiting { _timer: self.myself.send_after(delay, move || due.into()).into() };
    }

    fn launch(&mut self, child: &K, spec: &ChildSpec) -> (u64, OwnedTask) {
        self.attempts += 1;
        let (attempt, child, spec, myself) = (self.attempts, child.clone(), spec.clone(), self.myself.clone());
        let start = tokio::spawn(async move {
            let outcome = spec.start(myself.get_cell()).await;
            // The supervisor may have ended by then. ractor links no child to a stopping supervisor.
            let _ = myself.send_message(Upkeep::Spawned { child, attempt, outcome }.into());
        });
        (attempt, start.into())
    }

    fn current(&self, child: &K, attempt: u64) -> Option<&Slot> {
        self.slots.get(child).filter(|slot| slot.attempt == attempt)
    }

    fn remove(&mut self, child: &K) {
        self.slots.remove(child);
        self.restarts.forget(child);
        self.forget_early();
    }

    /// Early ends are needed only while a start is in progress. They include ends of actors that were not started here. So their
    /// number is bounded, far above what our own children can produce.
    fn forget_early(&mut self) {
        if !self.early.is_empty() {
            let starting = self.slots.values().filter(|slot| matches!(slot.phase, Phase::Starting { .. })).count();
            let max = if starting == 0 { 0 } else { starting + MAX_FOREIGN_ENDS };
            self.early.drain(..self.early.len().saturating_sub(max));
        }
    }
}
