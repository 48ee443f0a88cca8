//! One WebSocket of the gateway: reads, writes, and the heartbeat timeout.
//!
//! <https://docs.discord.com/developers/events/gateway#transport-compression>

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use flate2::{Compress, Compression, FlushCompress};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use super::identify::PayloadKind;
use super::sessions::Order;
use super::state::Shared;
use super::{Closed, Connects};

/// Serves a connection to its end.
pub async fn serve(mut socket: WebSocket, shared: Arc<Shared>, by_resume_url: bool, compresses: bool) {
    let mut compress = compresses.then(|| Compress::new(Compression::default(), true));
    let (number, mut orders, heartbeat_timeout, grace) = shared.with(|state| {
        let (number, orders) = state.open(by_resume_url, compresses);
        let mute = if by_resume_url { state.faults.resume_connects } else { state.faults.connects } == Connects::Mute;
        if !mute {
            let interval = u64::try_from(state.rules.heartbeat_interval.as_millis()).unwrap_or(u64::MAX);
            let hello = json!({ "op": 10, "d": { "heartbeat_interval": interval }, "s": null, "t": null });
            state.send(number, &hello);
        }
        (number, orders, state.rules.heartbeat_timeout(), state.rules.reconnect_grace)
    });
    let mut deadline = Instant::now() + heartbeat_timeout;
    let mut close_at = None::<Instant>;
    let end = loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::CloseLater) => close_at = Some(Instant::now() + grace),
                // If we closed it, that is recorded already.
                Some(order) => if let Some(end) = carry_out(&mut socket, &mut compress, &shared, number, order, heartbeat_timeout).await {
                    break end;
                },
                None => break Closed::Cut,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if shared.with(|state| state.received(number, &text)) == PayloadKind::Heartbeat {
                        deadline = Instant::now() + shared.look(|state| state.rules.heartbeat_timeout());
                    }
                }
                // With `encoding=json` nothing is binary.
                Some(Ok(Message::Binary(_))) => shared.with(|state| state.close(number, 4002, "Error while decoding payload.")),
                Some(Ok(Message::Close(frame))) => break Closed::Client(frame.map(|frame| frame.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break Closed::Broken,
            },
            // The session stays. The documentation says that this forces a RESUME, and names no close code.
            () = sleep_until(deadline) => {
                shared.with(|state| state.close(number, 4000, "Heartbeat missed."));
                deadline += Duration::from_secs(3_600);
            }
            () = sleep_until(close_at.unwrap_or(deadline)), if close_at.is_some() => {
                shared.with(|state| state.close(number, 4000, "Reconnect."));
                close_at = None;
            }
        }
    };
    shared.with(|state| state.closed(number, end));
}

/// Carries out an order. Returns how the connection ended, if it did.
async fn carry_out(
    socket: &mut WebSocket,
    compress: &mut Option<Compress>,
    shared: &Shared,
    number: usize,
    order: Order,
    write_timeout: Duration,
) -> Option<Closed> {
    let (message, delivery) = match order {
        Order::Send(text, delivery) => {
            (compress.as_mut().map_or_else(|| Message::Text(text.as_str().into()), |stream| compressed(stream, &text)), delivery)
        }
        Order::SendBytes(bytes) => (Message::Binary(bytes.into()), None),
        Order::Close(code, reason) => {
            let frame = CloseFrame { code, reason: reason.into() };
            // The client may be gone already. Its close frame is not awaited.
            let _ = timeout(write_timeout, socket.send(Message::Close(Some(frame)))).await;
            return Some(Closed::Here(code, reason.to_owned()));
        }
        Order::CloseLater => return None,
        Order::Cut => return Some(Closed::Cut),
    };
    // A client that does not read is treated as gone.
    match timeout(write_timeout, socket.send(message)).await {
        Ok(Ok(())) => {
            if let Some(delivery) = delivery {
                shared.with(|state| state.journal.deliveries[delivery].sent.push(number));
            }
            None
        }
        Ok(Err(_)) | Err(_) => Some(Closed::Broken),
    }
}

/// Compresses a frame as the next part of the connection's zlib stream.
fn compressed(stream: &mut Compress, text: &str) -> Message {
    let mut bytes = Vec::with_capacity(text.len() + 64);
    let start = stream.total_in();
    loop {
        let taken = usize::try_from(stream.total_in() - start).expect("a length that fits");
        stream.compress_vec(&text.as_bytes()[taken..], &mut bytes, FlushCompress::Sync).expect("the stream accepts more input");
        if bytes.len() < bytes.capacity() {
            return Message::Binary(bytes.into());
        }
        bytes.reserve(bytes.len());
    }
}
