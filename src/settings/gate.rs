//! `[gate]`
#![allow(missing_docs)]
use std::time::Duration;
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    pub skip_when_other_addressed: bool,
    pub foreign_bots: ForeignBots,
    pub max_buffer: usize,
    pub stale_after_secs: f64,
    pub stale_address_after_secs: f64,
    pub evaluations_per_hour: u32,
    pub guild_evaluations_per_hour: u32,
    pub addresses_per_minute: u32,
    pub guild_statements_per_day: u32,
}
impl Gate {
    pub fn stale_after(&self) -> Duration {
        Duration::from_secs_f64(self.stale_after_secs)
    }
    pub fn stale_address_after(&self) -> Duration {
        Duration::from_secs_f64(self.stale_address_after_secs)
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignBots {
    Ignore,
    Mentions,
    All,
}
