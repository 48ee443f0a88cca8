//! Stands before every route: recognises foreign pages, holds back who asks too often, lets in who may come in, and answers for handlers
//! that panic.
//!
//! Without a token: `/healthz`, `/readyz` (its details only with one), `/signin` and the files of the page but for `index.html`. Everything
//! else needs the token, once one is configured: `/metrics` too, which Prometheus shows as a bearer token.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, UPGRADE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tokio::time::Instant;

use super::Shared;
use super::auth::Admission;
use super::connection::HEAD_BYTES;
use super::heads::Fault;
use super::metrics;
use super::problem::Problem;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// From where a request came; put there by the connection.
#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// What is wrong with a request's head; put there by the connection.
#[derive(Clone, Copy)]
pub(super) struct Malformed(pub(super) Fault);

/// What handlers may know about who asks.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) address: IpAddr,
    pub(super) admission: Admission,
}

/// The layer around all routes.
pub(super) async fn guard(State(console): State<Shared>, request: Request, next: Next) -> Response {
    let is_static = is_file(request.uri().path());
    let began = Instant::now();
    // The pattern, never the path: what is asked for is without number.
    let route = request.extensions().get::<MatchedPath>().map_or_else(|| "none".into(), |route| route.as_str().to_owned());
    let mut response = match admit(&console, request) {
        Ok(request) => {
            let _turn = console.answers.turn(&route).await;
            match AssertUnwindSafe(next.run(request)).catch_unwind().await {
                Ok(response) if is_static => response,
                Ok(response) => console.answers.counted(response).await,
                // The panic itself was logged by the hook where it happened.
                Err(_) => {
                    metrics::panicked(&console);
                    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "something of the server's is broken; its log says what")
                        .into_response()
                }
            }
        }
        Err(refusal) => *refusal,
    };
    metrics::answered(&console, &route, response.status(), began.elapsed());
    // Files are asked for each time, and answered with 304 where nothing changed.
    protect(response.headers_mut(), if is_static { "no-cache" } else { "no-store" });
    response
}

fn admit(console: &Shared, mut request: Request) -> Result<Request, Box<Response>> {
    let refuse = |problem: Problem| Box::new(problem.into_response());
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let peer = peer.ok_or_else(|| refuse(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request has no sender")))?;
    let address = console.proxies.client(peer, request.headers());
    let path = request.uri().path();
    let now = Instant::now();
    let is_probe = is_probe(path);
    let admitted = check(console, &request, address, now);

    // The token is checked before this: strangers who share its address, as behind a proxy, neither use up what the operator may ask for nor
    // keep it from signing in. Wrong tokens are bounded by themselves.
    if !is_probe && !is_way_in(path) {
        let is_known = admitted.as_ref().is_ok_and(|admission| *admission != Admission::Stranger);
        let requests = if is_known { &console.requests } else { &console.strangers };
        requests.take(address, now).map_err(|wait| {
            let settings = "server.requests_per_second and server.request_burst";
            refuse(Problem::too_many(
                format!("too many requests from this address; wait and try again, or raise {settings}"),
                wait,
            ))
        })?;
    }
    let mut admission = admitted.map_err(refuse)?;
    // Where no token is needed, a foreign page gets no further than any stranger.
    if is_probe && admission == Admission::Open && !is_ours(console, &request) {
        admission = Admission::Stranger;
    }
    let is_public = is_probe || path == "/signin" || path.strip_prefix("/page/").is_some_and(|name| console.page.is_public(name));
    if admission == Admission::Stranger && !is_public {
        if path == "/" {
            return Err(Box::new((StatusCode::SEE_OTHER, [(LOCATION, "/signin")]).into_response()));
        }
        let way_out = "an admin token is needed: send Authorization: Bearer … or sign in at /signin";
        return Err(refuse(Problem::new(StatusCode::UNAUTHORIZED, way_out)));
    }
    request.extensions_mut().insert(Caller { address, admission });
    Ok(request)
}

fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// What a browser needs to sign in. Answering it costs no more than refusing it.
fn is_way_in(path: &str) -> bool {
    matches!(path, "/signin" | "/page/signin.css" | "/page/base.css" | "/page/theme.js" | "/page/icon.svg")
}

/// Whether a request may be read at all, and as whom.
fn check(console: &Shared, request: &Request, address: IpAddr, now: Instant) -> Result<Admission, Problem> {
    let path = request.uri().path();
    let headers = request.headers();
    if let Some(Malformed(fault)) = request.extensions().get() {
        return Err(Problem::new(StatusCode::BAD_REQUEST, *fault));
    }
    let bytes = head_bytes(request);
    if bytes > HEAD_BYTES {
        let detail =
            format!("the request's head has {bytes} bytes, at most {HEAD_BYTES} are accepted; send fewer or shorter fields");
        return Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail));
    }
    // Probes and, behind a token, Prometheus may know the server by a name that nobody configured.
    let is_machine = is_probe(path) || (path == "/metrics" && console.auth.is_needed());
    if !is_machine {
        let host = console.names.check_host(request.uri(), headers)?;
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if changes || headers.contains_key(UPGRADE) {
            console.names.check_origin(host, headers)?;
        } else if path.starts_with("/api/") {
            console.names.check_site(headers)?;
        }
    }
    console.auth.admit(headers, address, now)
}

/// How long a request's head is, as it is usually written: without more white space than is needed.
fn head_bytes(request: &Request) -> usize {
    let target = request.uri().to_string().len();
    let line = request.method().as_str().len() + " ".len() + target + " HTTP/1.1\r\n".len();
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + ": ".len() + value.len() + "\r\n".len());
    line + fields.sum::<usize>() + "\r\n".len()
}

/// Whether a request names this server as it may be named, and no other site started it.
fn is_ours(console: &Shared, request: &Request) -> bool {
    let names = &console.names;
    names.check_host(request.uri(), request.headers()).is_ok() && names.check_site(request.headers()).is_ok()
}

fn is_file(path: &str) -> bool {
    path == "/" || path.starts_with("/page/")
}

fn protect(headers: &mut HeaderMap, cache: &'static str) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // No other site may load an answer of ours as its own script or picture, nor hold a handle on our window.
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    // Not `no-referrer`: with it browsers send `Origin: null` with our own sign-in form.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
}
