//! The WebSockets of the voice gateway: reads, writes, and the heartbeat timeout.
//!
//! <https://docs.discord.com/developers/topics/voice-connections#establishing-a-voice-websocket-connection>

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State as Served};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep_until, timeout};

use super::Ended;
use super::sessions::{Frame, Order};
use super::state::Shared;

/// The version of the voice gateway that this test double speaks. Versions 4 to 7 number no messages; they are missing here.
const VERSION: &str = "8";

/// Serves the connections to a server until its task is aborted.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, server: usize) {
    let connect = move |Served(shared): Served<Arc<Shared>>, query, upgrade| connect(shared, server, query, upgrade);
    let router = Router::new().route("/", get(connect)).with_state(shared);
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // Tests measure when bytes are written, so they must leave at once.
        stream.set_nodelay(true).expect("a fresh connection");
    });
    axum::serve(listener, router).await.expect("a server runs until it is aborted");
}

async fn connect(
    shared: Arc<Shared>,
    server: usize,
    Query(query): Query<BTreeMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    match query.get("v").map_or("1", String::as_str) {
        VERSION => upgrade.on_upgrade(move |socket| serve_connection(socket, shared, server)),
        "4" | "5" | "6" | "7" => StatusCode::NOT_IMPLEMENTED.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Serves a connection to its end.
async fn serve_connection(mut socket: WebSocket, shared: Arc<Shared>, server: usize) {
    let (number, mut orders) = shared.with(|voice| {
        let (number, orders) = voice.open(server);
        let interval = voice.rules.heartbeat_interval.as_secs_f64() * 1_000.0;
        voice.send_unnumbered(number, 8, json!({ "v": 8, "heartbeat_interval": interval }));
        (number, orders)
    });
    let patience = |shared: &Shared| shared.look(|voice| voice.rules.heartbeat_interval + voice.rules.heartbeat_tolerance);
    let mut deadline = Instant::now() + patience(&shared);
    let end = loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => if let Some(end) = carry_out(&mut socket, order, patience(&shared)).await {
                    break end;
                },
                None => break Ended::Cut,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => if shared.with(|voice| voice.received(number, &text)) {
                    deadline = Instant::now() + patience(&shared);
                },
                Some(Ok(Message::Binary(bytes))) => shared.with(|voice| voice.received_binary(number, &bytes)),
                Some(Ok(Message::Close(frame))) => break Ended::Client(frame.map(|frame| frame.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break Ended::Broken,
            },
            () = sleep_until(deadline) => {
                shared.with(|voice| voice.close(number, 4009, "Session timeout."));
                deadline += Duration::from_secs(3_600);
            }
        }
    };
    // If we closed it, that is recorded already.
    shared.with(|voice| voice.closed(number, end));
}

/// Carries out an order. Returns how the connection ended, if it did.
async fn carry_out(socket: &mut WebSocket, order: Order, patience: Duration) -> Option<Ended> {
    let message = match order {
        Order::Send(Frame::Text(text)) => Message::Text(text.into()),
        Order::Send(Frame::Binary(bytes)) => Message::Binary(bytes.into()),
        Order::Close(code, reason) => {
            let frame = CloseFrame { code, reason: reason.into() };
            // The client may be gone already. Its close frame is not awaited.
            let _ = timeout(patience, socket.send(Message::Close(Some(frame)))).await;
            return Some(Ended::Here(code, reason));
        }
        Order::Cut => return Some(Ended::Cut),
    };
    // A client that does not read is treated as gone.
    match timeout(patience, socket.send(message)).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) | Err(_) => Some(Ended::Broken),
    }
}
