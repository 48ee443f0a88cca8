//! Measures the pool: what happens in it, and how much waits and runs at the moment.

use super::schedule::{Happening, Schedule, Spent};
use crate::domain::moment::Moment;
use crate::domain::priority::Priority;
use crate::ports::language_model::ModelRole;
use crate::telemetry::instruments::kinds::Share;
use crate::telemetry::instruments::{Instruments, NONE};

/// What one pool adds to what is measured. What waits and runs in it is over when this is dropped, and it with its pool.
#[derive(Debug)]
pub(super) struct Measures {
    instruments: Instruments,
    loads: [Load; 2],
    circuit_open: Share,
}

#[derive(Debug)]
struct Load {
    role: ModelRole,
    waiting: [(Priority, Share); Priority::ALL.len()],
    running: Share,
}

impl Measures {
    pub(super) fn new(instruments: Instruments) -> Self {
        let loads = [ModelRole::Side, ModelRole::Main].map(|role| Load {
            role,
            waiting: Priority::ALL.map(|priority| (priority, instruments.pool_waiting.share([role.as_str(), priority.as_str()]))),
            running: instruments.pool_running.share([role.as_str()]),
        });
        Self { circuit_open: instruments.breakers_open.share(NONE), loads, instruments }
    }

    /// A question was answered, with a text or without.
    pub(super) fn answered(&self, role: ModelRole, spent: Spent) {
        self.instruments.pool_wait.record(spent.waited.as_secs_f64(), [role.as_str()]);
    }

    /// A summary was shed before it was a question.
    pub(super) fn shed_summary(&self) {
        self.instruments.pool_shed.add(1, [ModelRole::Side.as_str(), Priority::Summary.as_str()]);
    }

    /// Takes what happened in the schedule, and how it stands now.
    pub(super) fn take(&mut self, schedule: &mut Schedule, now: Moment) {
        for happening in schedule.take_happened() {
            match happening {
                Happening::Retried(role) => self.instruments.pool_retries.add(1, [role.as_str()]),
                Happening::TimedOut(role) => self.instruments.pool_timeouts.add(1, [role.as_str()]),
                Happening::Shed(role, priority) => self.instruments.pool_shed.add(1, [role.as_str(), priority.as_str()]),
                Happening::Panicked(role) => self.instruments.pool_panics.add(1, [role.as_str()]),
                Happening::NoPrompt(role) => self.instruments.pool_unworded.add(1, [role.as_str()]),
                Happening::Opened => self.instruments.breakers_opened.add(1, NONE),
            }
        }
        for load in &mut self.loads {
            for (priority, waiting) in &mut load.waiting {
                waiting.set(schedule.waiting(load.role, *priority));
            }
            load.running.set(schedule.running(load.role));
        }
        self.circuit_open.set(schedule.circuit_open(now).count());
    }
}
