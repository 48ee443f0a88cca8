//! The common parts of live views and calls: slots for WebSockets, upgrade and close.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use super::Shared;
use super::limits::{Share, Slot, client_key};
use super::problem::Problem;
use crate::adapters::slots::NoSlot;
use crate::domain::guests::MOST_GUESTS;
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::Visit;
use crate::settings::server::Server;

/// The sizes of the buffers of a WebSocket, in bytes. Every message and every pong is flushed before the next one is made, so the write buffer
/// holds only the message that is being sent.
const READ_BUFFER_BYTES: usize = 4 << 10;
const WRITE_BUFFER_BYTES: usize = 8 << 10;

pub(super) type Requested = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// An upgrade to a WebSocket that receives messages of up to `max_bytes`.
pub(super) fn upgrade(requested: Requested, max_bytes: usize) -> Result<WebSocketUpgrade, Problem> {
    let upgrade = requested.map_err(|_| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket endpoint; connect to it with ws:// or wss://")
    })?;
    let upgrade = upgrade.max_message_size(max_bytes).max_frame_size(max_bytes);
    Ok(upgrade.read_buffer_size(READ_BUFFER_BYTES).write_buffer_size(WRITE_BUFFER_BYTES))
}

/// The number of live views and calls that a visit may have open.
pub(super) const MOST_OF_VISIT: usize = 6;

/// The number of live views and calls that all guests of an invitation may have open: twice the number of guests, and at most a quarter of all.
pub(super) fn most_of_invitation(settings: &Server) -> usize {
    (settings.max_live / 4).clamp(1, 2 * usize::from(MOST_GUESTS))
}

/// Takes a slot for a live view or a call.
///
/// # Errors
/// Returns an error if all slots are taken, or those of the client or the guest.
pub(super) fn slot(console: &Shared, address: IpAddr, visit: Option<&Visit>) -> Result<(Slot, Option<Share>), Problem> {
    let wait = console.settings.live_ping();
    let of_guest = |visit| {
        let detail = Detail::key("refusals.guests_too_many_views");
        console.slots_for_guests.try_acquire(visit).ok_or_else(|| Problem::too_many(detail, wait))
    };
    let share = visit.map(of_guest).transpose()?;
    let slot = console.slots.acquire(client_key(address)).map_err(|full| match full {
        NoSlot::Full => Problem::unavailable(Detail::key("refusals.too_many_views"), wait),
        NoSlot::FullForClient => {
            let detail = Detail::key("refusals.too_many_views_here");
            Problem::too_many(detail, wait)
        }
    })?;
    Ok((slot, share))
}

/// Closes a WebSocket, and reads until the peer has closed it, too. If unread bytes were left, the system would reset the connection before the
/// peer could read the reason. Waits at most a second for a peer that does not read or close.
pub(super) async fn close(
    sink: &mut SplitSink<WebSocket, Message>,
    inbound: &mut SplitStream<WebSocket>,
    code: u16,
    reason: &str,
) {
    let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let close = async {
        sink.send(frame).await?;
        sink.close().await?;
        while let Some(Ok(_)) = inbound.next().await {}
        Ok::<(), axum::Error>(())
    };
    let _ = timeout(Duration::from_secs(1), close).await;
}
