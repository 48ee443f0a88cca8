//! The pool's metrics: counters of events, and gauges of waiting and running calls.

use super::schedule::{CallStats, PoolEvent, Schedule};
use crate::domain::moment::Moment;
use crate::domain::priority::Priority;
use crate::ports::language_model::ModelRole;
use crate::telemetry::instruments::kinds::Share;
use crate::telemetry::instruments::{Instruments, NONE};

/// One pool's part in the metrics. Its share of the gauges is removed when it is dropped with the pool.
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

    /// Records the wait time of a question that was answered, with a text or an error.
    pub(super) fn answered(&self, role: ModelRole, stats: CallStats) {
        self.instruments.pool_wait.record(stats.waited.as_secs_f64(), [role.as_str()]);
    }

    /// Counts the events of the schedule, and updates the gauges.
    pub(super) fn record_schedule(&mut self, schedule: &mut Schedule, now: Moment) {
        for event in schedule.take_events() {
            match event {
                PoolEvent::Retried(role) => self.instruments.pool_retries.add(1, [role.as_str()]),
                PoolEvent::TimedOut(role) => self.instruments.pool_timeouts.add(1, [role.as_str()]),
                PoolEvent::Shed(role, priority) => self.instruments.pool_shed.add(1, [role.as_str(), priority.as_str()]),
                PoolEvent::Panicked(role) => self.instruments.pool_panics.add(1, [role.as_str()]),
                PoolEvent::NoPrompt(role) => self.instruments.pool_no_prompt.add(1, [role.as_str()]),
                PoolEvent::Opened => self.instruments.breakers_opened.add(1, NONE),
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
