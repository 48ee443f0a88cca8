//! The HTTP server: the gateway at `/` and, for RESUME, at `/resume`; the API under `/api`. All use one port.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Path, Query, State as Served};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::state::Shared;
use super::{Connects, connection, rest};

/// Marks a response whose connection must be cut instead of answered.
#[derive(Clone)]
struct Cut;

/// Serves until its task is aborted.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let router = Router::new()
        .route("/", get(|shared, query, upgrade| connect(shared, query, upgrade, false)))
        .route("/resume", get(|shared, query, upgrade| connect(shared, query, upgrade, true)))
        .route("/resume/", get(|shared, query, upgrade| connect(shared, query, upgrade, true)))
        .route("/attachments/{file}", get(file))
        .fallback(api)
        .layer(DefaultBodyLimit::max(25 << 20))
        .with_state(shared);
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Tests measure when bytes are written, so they must leave at once.
        stream.set_nodelay(true).expect("a fresh connection");
        connections.spawn(serve_connection(stream, router.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// The address of a listener.
pub fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let router = router.clone();
        async move {
            let response = router.oneshot(request.map(Body::new)).await.unwrap_or_else(|never: Infallible| match never {});
            // An error here makes hyper close the connection without an answer.
            if response.extensions().get::<Cut>().is_some() { Err(io::Error::other("cut")) } else { Ok(response) }
        }
    });
    // An error here means that the connection was cut, which the client sees.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

/// <https://docs.discord.com/developers/events/gateway#connecting>
async fn connect(
    Served(shared): Served<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
    upgrade: WebSocketUpgrade,
    by_resume_url: bool,
) -> Response {
    let connects = |state: &super::state::State| if by_resume_url { state.faults.resume_connects } else { state.faults.connects };
    shared.until(|state| (connects(state) != Connects::Hanging).then_some(())).await;
    if shared.look(connects) == Connects::Refused {
        shared.with(|state| state.journal.refused_connects += 1);
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let given = |name: &str| query.get(name).map_or("", String::as_str);
    let unsupported = match (given("encoding"), given("compress")) {
        ("etf", _) => Some("encoding=etf"),
        (_, "zstd-stream") => Some("transport compression by zstd"),
        _ => None,
    };
    if let Some(unsupported) = unsupported {
        shared.with(|state| state.journal.unsupported.push(unsupported.to_owned()));
        return StatusCode::NOT_IMPLEMENTED.into_response();
    }
    if !["9", "10"].contains(&given("v")) {
        return upgrade.on_upgrade(|mut socket| async move {
            let frame = CloseFrame { code: 4012, reason: "Invalid API version.".into() };
            // The client may be gone already.
            let _ = socket.send(Message::Close(Some(frame))).await;
        });
    }
    let compresses = given("compress") == "zlib-stream";
    upgrade.on_upgrade(move |socket| connection::serve(socket, shared, by_resume_url, compresses))
}

/// The file server, which on Discord is on other hosts.
///
/// <https://docs.discord.com/developers/reference#cdn-endpoints>
async fn file(Served(shared): Served<Arc<Shared>>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let stored = shared.with(|state| {
        let stored = state.files.get_mut(&name)?;
        stored.asked += 1;
        stored.had_token |= headers.contains_key(AUTHORIZATION);
        Some(stored.clone())
    });
    let Some(stored) = stored else { return StatusCode::NOT_FOUND.into_response() };
    let status = StatusCode::from_u16(stored.status).expect("a status");
    let mut response = (status, stored.bytes).into_response();
    if let Some(location) = stored.location {
        response.headers_mut().insert(LOCATION, location.parse().expect("an address"));
    }
    response
}

async fn api(Served(shared): Served<Arc<Shared>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    rest::handle(shared, method, uri, headers, body).await.unwrap_or_else(|| {
        let mut response = Response::default();
        response.extensions_mut().insert(Cut);
        response
    })
}
