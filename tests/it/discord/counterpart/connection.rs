//! A WebSocket of the gateway: what is read from it, what is written to it, and when it has been quiet for too long.
//!
//! <https://docs.discord.com/developers/events/gateway#transport-compression>

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use flate2::{Compress, Compression, FlushCompress};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use super::faults::Connects;
use super::identify::Heard;
use super::journal::Closed;
use super::sessions::Order;
use super::state::Shared;

/// Serves a connection to its end.
pub async fn serve(mut socket: WebSocket, shared: Arc<Shared>, by_resume_url: bool, compresses: bool) {
    let mut compress = compresses.then(|| Compress::new(Compression::default(), true));
    let (number, mut orders, patience, grace) = shared.with(|state| {
        let (number, orders) = state.open(by_resume_url, compresses);
        let mute = if by_resume_url { state.faults.resume_connects } else { state.faults.connects } == Connects::Mute;
        if !mute {
            let interval = u64::try_from(state.rules.heartbeat_interval.as_millis()).unwrap_or(u64::MAX);
            let hello = json!({ "op": 10, "d": { "heartbeat_interval": interval }, "s": null, "t": null });
            state.send(number, &hello);
        }
        (number, orders, state.rules.patience(), state.rules.reconnect_grace)
    });
    let mut deadline = Instant::now() + patience;
    let mut close_at = None::<Instant>;
    let how = loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::CloseLater) => close_at = Some(Instant::now() + grace),
                // Ours is on record already.
                Some(order) => if let Some(how) = carry_out(&mut socket, &mut compress, &shared, number, order, patience).await {
                    break how;
                },
                None => break Closed::Cut,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if shared.with(|state| state.received(number, &text)) == Heard::Heartbeat {
                        deadline = Instant::now() + shared.look(|state| state.rules.patience());
                    }
                }
                // With `encoding=json` nothing is binary.
                Some(Ok(Message::Binary(_))) => shared.with(|state| state.close(number, 4002, "Error while decoding payload.")),
                Some(Ok(Message::Close(frame))) => break Closed::Client(frame.map(|frame| frame.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break Closed::Broken,
            },
            // The session stays: the documentation says that this forces a RESUME, and names no code.
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
    shared.with(|state| state.closed(number, how));
}

/// Does what is to be done. Returns how the connection ended, if it did.
async fn carry_out(
    socket: &mut WebSocket,
    compress: &mut Option<Compress>,
    shared: &Shared,
    number: usize,
    order: Order,
    patience: Duration,
) -> Option<Closed> {
    let (message, delivery) = match order {
        Order::Send(text, delivery) => {
            (compress.as_mut().map_or_else(|| Message::Text(text.as_str().into()), |stream| compressed(stream, &text)), delivery)
        }
        Order::SendBytes(bytes) => (Message::Binary(bytes.into()), None),
        Order::Close(code, reason) => {
            let frame = CloseFrame { code, reason: reason.into() };
            // It may be gone already. Its own close frame is not waited for.
            let _ = timeout(patience, socket.send(Message::Close(Some(frame)))).await;
            return Some(Closed::Here(code, reason.to_owned()));
        }
        Order::CloseLater => return None,
        Order::Cut => return Some(Closed::Cut),
    };
    // Who does not read is as good as gone.
    match timeout(patience, socket.send(message)).await {
        Ok(Ok(())) => {
            if let Some(delivery) = delivery {
                shared.with(|state| state.journal.deliveries[delivery].sent.push(number));
            }
            None
        }
        Ok(Err(_)) | Err(_) => Some(Closed::Broken),
    }
}

/// A frame in the stream of its connection.
fn compressed(stream: &mut Compress, text: &str) -> Message {
    let mut bytes = Vec::with_capacity(text.len() + 64);
    let began = stream.total_in();
    loop {
        let taken = usize::try_from(stream.total_in() - began).expect("a frame of this length");
        stream.compress_vec(&text.as_bytes()[taken..], &mut bytes, FlushCompress::Sync).expect("a stream goes on");
        if bytes.len() < bytes.capacity() {
            return Message::Binary(bytes.into());
        }
        bytes.reserve(bytes.len());
    }
}
