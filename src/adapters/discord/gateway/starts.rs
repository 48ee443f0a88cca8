//! Permits shards to identify: in sequence where Discord requires it, counted across restarts, and within the limits.

mod slots;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;
use twilight_model::gateway::CloseCode;

pub use self::slots::Slot;
use self::slots::Slots;
use super::super::identify::{IdentifyHistory, IdentifyLimit, Permission, advice};
use super::super::platform::Discord;
use super::super::rest::{Failed, Request, UNREACHABLE};
use super::super::wire::{GatewayBot, SessionStartLimit};
use super::Times;
use super::frame;
use super::status::timestamp;
use crate::domain::moment::Moment;
use crate::ports::backend::Detail;
use crate::ports::clock::Clock;
use crate::ports::gateway::Disconnected;
use crate::ports::notes::Notes;
use crate::settings::discord::MOST_SHARDS;
use crate::telemetry::instruments::{Instruments, NONE};

/// The name of the note that stores the identifies.
const NOTE: &str = "discord/identifies";
/// How long Discord's limits are valid before they are requested again.
const LIMITS_VALID_FOR: Duration = Duration::from_secs(600);
/// How often the limits are requested while no identifies are left. After the token was reset, Discord's count starts again.
const RETRY_EXHAUSTED_AFTER: Duration = Duration::from_secs(900);

/// The identifies of all shards of this process.
pub struct Starts {
    discord: Arc<Discord>,
    notes: Arc<dyn Notes>,
    clock: Arc<dyn Clock>,
    instruments: Instruments,
    times: Times,
    state: Mutex<State>,
    slots: Slots,
    /// The address that Discord announced. It has its own lock, so that a resuming shard need not wait for a request.
    url: SyncMutex<Option<String>>,
    /// When identifies will be available again. `None` if some are left.
    exhausted_until: SyncMutex<Option<Moment>>,
}

#[derive(Default)]
struct State {
    /// `None` until the note was read.
    history: Option<IdentifyHistory>,
    info: Option<GatewayInfo>,
}

/// The parsed response of `GET /gateway/bot`.
#[derive(Clone, Debug)]
pub struct GatewayInfo {
    pub limit: IdentifyLimit,
    /// The recommended number of shards.
    pub shards: NonZeroU32,
}

/// Parses the response. Caps the number of shards, because each connection costs resources here.
pub(super) fn gateway_info(answer: &GatewayBot, received_at: Moment, apart: Duration) -> GatewayInfo {
    let SessionStartLimit { remaining, reset_after, max_concurrency, .. } = answer.session_start_limit;
    let one = NonZeroU32::MIN;
    GatewayInfo {
        limit: IdentifyLimit {
            remaining,
            resets_at: received_at + Duration::from_millis(reset_after),
            max_concurrency: NonZeroU32::new(max_concurrency).unwrap_or(one),
            apart,
            received_at,
        },
        shards: NonZeroU32::new(answer.shards.min(MOST_SHARDS)).unwrap_or(one),
    }
}

impl Starts {
    pub fn new(
        discord: Arc<Discord>,
        notes: Arc<dyn Notes>,
        clock: Arc<dyn Clock>,
        instruments: Instruments,
        times: Times,
    ) -> Self {
        let (state, slots) = (Mutex::default(), Slots::default());
        Self {
            discord,
            notes,
            clock,
            instruments,
            times,
            state,
            slots,
            url: SyncMutex::default(),
            exhausted_until: SyncMutex::default(),
        }
    }

    /// Requests the current limits.
    ///
    /// # Errors
    /// Returns an error if Discord cannot be reached or refuses the token.
    pub async fn refresh(&self) -> Result<GatewayInfo, Disconnected> {
        let mut state = self.state.lock().await;
        state.info = None;
        self.load(&mut state).await.cloned()
    }

    /// The address that Discord announced, if already requested.
    pub fn url(&self) -> Option<String> {
        self.url.lock().clone()
    }

    /// The remaining identifies of today, without the reserve. 0 if unknown.
    pub async fn left(&self) -> u32 {
        let state = self.state.lock().await;
        let known = state.history.as_ref().zip(state.info.as_ref());
        known.map_or(0, |(history, info)| history.left(&info.limit, self.clock.now()))
    }

    /// Waits until this shard may connect in order to identify. The shard with the lowest number is first. `report` receives the reason for a long
    /// wait.
    ///
    /// # Errors
    /// Returns an error if the limits cannot be requested, or the stored identifies cannot be read.
    pub async fn wait_for_slot(&self, shard: u32, report: impl Fn(Detail)) -> Result<Slot<'_>, Disconnected> {
        let max_concurrency = {
            let mut state = self.state.lock().await;
            self.load(&mut state).await?.limit.max_concurrency
        };
        let slot = self.slots.acquire_slot(shard, max_concurrency).await;
        loop {
            let mut state = self.state.lock().await;
            let limit = self.load(&mut state).await?.limit;
            let now = self.clock.now();
            let mut history = state.history.clone().unwrap_or_default();
            let permission = history.request(shard, &limit, now);
            self.log_exhausted(&permission);
            let until = match permission {
                Permission::Now => return Ok(slot),
                Permission::At(at) => at.since(now),
                Permission::Exhausted(until) => {
                    // The next iteration must request Discord's limits again.
                    state.info = None;
                    report(none_left(until));
                    until.since(now).min(RETRY_EXHAUSTED_AFTER)
                }
            };
            drop(state);
            sleep(until).await;
        }
    }

    /// Waits until an identify is permitted. Counts and stores it before it is sent.
    ///
    /// # Errors
    /// Returns an error if no identify is permitted, or if it could not be stored.
    pub async fn reserve_identify(&self, shard: u32) -> Result<(), Disconnected> {
        loop {
            let mut state = self.state.lock().await;
            let limit = self.load(&mut state).await?.limit;
            let now = self.clock.now();
            let history = state.history.get_or_insert_default();
            let permission = history.request(shard, &limit, now);
            self.log_exhausted(&permission);
            match permission {
                Permission::Now => {
                    let left = history.left(&limit, now);
                    let bytes = serde_json::to_vec(history).map_err(|error| later(error.to_string().into()))?;
                    self.notes
                        .write(None, vec![(NOTE.to_owned(), Some(bytes))])
                        .await
                        .map_err(|error| later(error.to_string().into()))?;
                    self.instruments.discord_identifies_left.set(left.into(), NONE);
                    return Ok(());
                }
                Permission::At(at) => {
                    drop(state);
                    sleep(at.since(now)).await;
                }
                Permission::Exhausted(until) => return Err(later(none_left(until))),
            }
        }
    }

    /// Loads the stored identifies if needed, and requests Discord's limits if they are outdated.
    async fn load<'a>(&self, state: &'a mut MutexGuard<'_, State>) -> Result<&'a GatewayInfo, Disconnected> {
        if state.history.is_none() {
            let read = self.notes.read(None, NOTE).await.map_err(|error| later(error.to_string().into()))?;
            // An invalid note counts as empty. Discord's own count applies anyway.
            let history: IdentifyHistory = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            state.history = Some(history);
        }
        let now = self.clock.now();
        let is_old = |info: &GatewayInfo| now.since(info.limit.received_at) > LIMITS_VALID_FOR || now < info.limit.received_at;
        if state.info.as_ref().is_none_or(is_old) {
            let info = self.request_gateway().await?;
            if let Some(history) = &state.history {
                self.instruments.discord_identifies_left.set(history.left(&info.limit, now).into(), NONE);
            }
            state.info = Some(info);
        }
        state.info.as_ref().ok_or_else(|| later(Detail::key("refusals.discord_limits")))
    }

    async fn request_gateway(&self) -> Result<GatewayInfo, Disconnected> {
        let answer: GatewayBot = self.discord.rest().ask(Request::gateway()).await.map_err(disconnected)?;
        let url = frame::address(&answer.url);
        self.url.lock().clone_from(&url);
        Ok(gateway_info(&answer, self.clock.now(), self.times.apart))
    }

    /// Logs once when no identifies are left, and once when some are available again.
    fn log_exhausted(&self, permission: &Permission) {
        let mut exhausted = self.exhausted_until.lock();
        let now = if let Permission::Exhausted(until) = permission { Some(*until) } else { None };
        match (*exhausted, now) {
            (None, Some(until)) => tracing::error!(platform = "discord", "{}", none_left(until)),
            (Some(_), None) => tracing::info!(platform = "discord", "identifies are available again"),
            _ => {}
        }
        *exhausted = now;
    }
}

/// Converts a failed request for the gateway's limits to a reason for the operator.
pub(super) fn disconnected(failed: Failed) -> Disconnected {
    match failed {
        Failed::Refused(refusal) if refusal.status == 401 => Disconnected::Never(advice(CloseCode::AuthenticationFailed)),
        Failed::NotNow { after, detail } => Disconnected::Later { after, detail: unreachable(detail) },
        other => later(other.to_string().into()),
    }
}

/// An error of the network has a code.
fn unreachable(detail: String) -> Detail {
    let error = detail.strip_prefix(UNREACHABLE).map(str::to_owned);
    let detail = Detail::from(detail);
    match error {
        Some(error) => detail.coded("refusals.discord_unreachable", json!({ "error": error })),
        None => detail,
    }
}

fn later(detail: Detail) -> Disconnected {
    Disconnected::Later { after: None, detail }
}

fn none_left(until: Moment) -> Detail {
    Detail::of("refusals.discord_resets", json!({ "until": timestamp(until) }))
}
