//! Accepts the connections of one door, and serves them until it closes.

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::door::Door;
use super::{ACCEPT_PAUSE, Shared, connection, is_peer_error};
use crate::telemetry::instruments::NONE;

/// Serves connections until `stop` completes. Then finishes the requests in flight, for at most `server.drain_secs`.
pub(super) async fn serve(
    listener: TcpListener,
    door: Arc<Door>,
    router: Router,
    shared: Shared,
    stop: impl Future<Output = ()>,
) {
    let mut connections = JoinSet::new();
    accept(listener, &door, router, &shared, &mut connections, stop).await;
    door.closing.send_replace(true);
    let drained = async {
        while connections.join_next().await.is_some() {}
        // WebSockets run outside the connections' tasks. Each holds a receiver until it is closed.
        door.closing.closed().await;
    };
    if tokio::time::timeout(shared.settings.drain(), drained).await.is_err() {
        tracing::warn!(open = connections.len(), "cutting off connections that did not end in time");
    }
}

async fn accept(
    listener: TcpListener,
    door: &Arc<Door>,
    router: Router,
    shared: &Shared,
    connections: &mut JoinSet<()>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match connection::slot(&shared.connections, peer.ip(), door) {
                Ok(slot) => {
                    let (router, shared, door) = (router.clone(), shared.clone(), door.clone());
                    shared.instruments.http_connections.add(1, NONE);
                    connections.spawn(async move {
                        connection::serve(stream, peer, router, &shared.settings, door).await;
                        drop(slot);
                    });
                }
                Err(full) => {
                    shared.instruments.http_connections_refused.add(1, NONE);
                    tracing::debug!(%peer, ?full, "connection refused");
                }
            },
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
