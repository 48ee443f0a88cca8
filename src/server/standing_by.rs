//! A standby node: it watches the store, and shows its owner, until it owns the store itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use super::compacting::runtime;
use super::open_store::check_copies;
use super::signals::Signals;
use super::{Ended, address, announce, cannot_serve};
use crate::adapters::console::{Console, Served};
use crate::adapters::store::postgres::PostgresStore;
use crate::adapters::system::{SystemClock, SystemRng};
use crate::ports::store::StoreError;
use crate::settings::server::Server;
use crate::telemetry::Telemetry;

/// At a start, a store without an owner is taken within this time. Only after it does the console show the standby state.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// Waits until this node owns the store. Returns false if a stop signal came first.
///
/// # Errors
/// Returns an error if the console cannot be served.
pub(super) fn own(
    store: &Arc<PostgresStore>,
    settings: &Server,
    data: &Path,
    telemetry: &Telemetry,
    signals: &Signals,
    is_first: bool,
) -> Result<bool, Ended> {
    let mut stop = signals.stop();
    runtime()?.block_on(async {
        let mut owned = Box::pin(store.own(None));
        let failed = |error: StoreError| Ended::Failed(error.into());
        if is_first {
            tokio::select! {
                outcome = timeout(AT_ONCE, &mut owned) => if let Ok(owned) = outcome {
                    owned.map_err(failed)?;
                    return check_copies(&**store).await.map(|()| true);
                },
                _ = stop.wait_for(|stopped| *stopped) => return Ok(false),
            }
        }
        let served = Served::StandingBy(store.clone());
        let (rng, clock) = (Arc::new(SystemRng), Arc::new(SystemClock));
        let console = Console::bind(settings, served, rng, clock, telemetry.metrics()).await.map_err(cannot_serve)?;
        let address = console.address();
        let _note =
            address::write(data, address).context("the server's address file cannot be written").map_err(Ended::Failed)?;
        announce("standing by", address);
        tracing::info!(%address, "standing by for the node that owns the store");
        let mut outcome = Ok(false);
        let until_owned = async {
            outcome = tokio::select! {
                owned = owned => owned.map(|()| true).map_err(failed),
                _ = stop.wait_for(|stopped| *stopped) => Ok(false),
            };
        };
        console.serve(until_owned).await;
        if matches!(outcome, Ok(true)) {
            // The store may have been copied while this node was a standby.
            check_copies(&**store).await?;
        }
        outcome
    })
}
