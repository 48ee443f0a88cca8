//! The middleware in front of every route. It refuses requests from pages of other sites, limits the request rate, authenticates the caller, and
//! bounds the memory for responses.
//!
//! The route table has the access of each route (`access.rs`): everybody, guests in the rooms of their visits, or only operators, which is the
//! default. Operators have the admin token, if one is configured. Programs, such as Prometheus, may have their own tokens, each with a scope
//! (`tokens.rs`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, UPGRADE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::Shared;
use super::access::Access;
use super::auth::Admission;
use super::door::Door;
use super::limits::{Share, Slot, client_key};
use super::metrics;
use super::problem::Problem;
use crate::domain::message::Sender;
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::Visit;
use crate::ports::backend::room::RoomId;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; manifest-src 'self'; img-src 'self' blob:; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Routes whose responses may be long and take much memory to build.
const LONG_ROUTES: [&str; 9] = [
    "/api/decisions",
    "/api/rooms/{room}/history",
    "/api/usage",
    "/api/usage/receptions",
    "/api/usage/safety",
    "/api/why",
    "/api/companions/{companion}/card",
    PICTURES,
    FILES,
];

/// The pictures of companions, at most a mebibyte each.
pub(super) const PICTURES: &str = "/pictures/{companion}/{hash}";

/// The files of messages, at most four mebibytes each. They share the limits of [`PICTURES`].
pub(super) const FILES: &str = "/api/rooms/{room}/messages/{seq}/files/{file}";

/// The number of pictures that may be in memory.
pub(super) const MAX_PICTURES: usize = 32;

/// The number of long responses that may be in memory. Responses that are being built count, and so do responses that clients have not read yet. A
/// response with a thousand decisions takes about 10 MB to build.
pub(super) const MAX_LONG_RESPONSES: usize = 8;

/// The additional long responses for guests. They are counted separately, so that guests cannot delay the operator's responses.
pub(super) const MAX_LONG_FOR_GUESTS: usize = 8;

/// The maximum number of long responses for one visit, and for all visits of one invitation. The limits keep guests from delaying other guests.
pub(super) const LONG_SHARES: [usize; 2] = [1, 2];

/// The maximum number of pictures in memory for one visit, and for all visits of one invitation.
pub(super) const PICTURE_SHARES: [usize; 2] = [4, 8];

/// A response of at most this size in bytes is not counted. The limit on connections bounds the number of such responses.
const SHORT_BYTES: u64 = 16 << 10;

/// How long a request for a long response waits for a permit.
const LONG_RESPONSE_WAIT: Duration = Duration::from_secs(5);

/// The peer of a connection, and the door at which it arrived. The connection adds them to the request's extensions.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) door: Arc<Door>,
}

/// The client of a request, for handlers.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) address: IpAddr,
    pub(super) admission: Admission,
    pub(super) door: Arc<Door>,
}

impl Caller {
    pub(super) const fn is_operator(&self) -> bool {
        matches!(self.admission, Admission::Open | Admission::Program | Admission::Token(_) | Admission::Browser(_))
    }

    /// Who sends a message, whatever name it has.
    pub(super) fn sender(&self, headers: &HeaderMap) -> Option<Sender> {
        sender(&self.admission, headers)
    }

    /// The visits of a guest.
    pub(super) fn visits(&self) -> &[Visit] {
        if let Admission::Guest(visits) = &self.admission { visits } else { &[] }
    }

    /// The visit that a request belongs to: the visit to the room in its path, otherwise the first one.
    pub(super) fn visit_at(&self, path: &str) -> Option<&Visit> {
        let room = path.strip_prefix("/api/rooms/").and_then(|rest| RoomId::parse(rest.split('/').next()?));
        let channel = room.map(|room| room.channel());
        let visits = self.visits();
        visits.iter().find(|visit| Some(&visit.channel) == channel.as_ref()).or(visits.first())
    }

    /// Returns the guest's visit to this room, or `None` for operators.
    ///
    /// # Errors
    /// Returns an error if the guest was not invited to this room, or if the visit has ended. It may end while the request arrives.
    pub(super) fn in_room(&self, room: &RoomId, console: &Shared) -> Result<Option<&Visit>, Problem> {
        if self.is_operator() {
            return Ok(None);
        }
        let channel = room.channel();
        let visit = self.visits().iter().find(|visit| visit.channel == channel).ok_or_else(|| not_invited(room))?;
        if console.backend()?.guests.is_open(visit) {
            return Ok(Some(visit));
        }
        Err(Problem::new(StatusCode::UNAUTHORIZED, Detail::key("refusals.visit_ended")))
    }

    /// The name under which the caller speaks in a room. An operator may use any name that no guest has; a guest may use only the guest's own name.
    pub(super) fn speaker(&self, room: &RoomId, name: Arc<str>, console: &Shared) -> Result<Arc<str>, Problem> {
        match self.in_room(room, console)? {
            Some(visit) if visit.name != name => {
                Err(Problem::new(StatusCode::FORBIDDEN, Detail::of("refusals.one_name", json!({ "name": visit.name }))))
            }
            None if console.backend()?.guests.is_guests_name(room, &name) => {
                Err(Problem::invalid("from", Detail::of("refusals.name_of_guest", json!({ "name": name }))))
            }
            _ => Ok(name),
        }
    }

    /// Whether a live view or a call of this room may continue. The browser may have signed out, or the visit may have ended.
    pub(super) fn is_still_admitted(&self, room: Option<&RoomId>, console: &Shared) -> bool {
        match &self.admission {
            Admission::Browser(session) => console.auth.is_signed_in(session, Instant::now()),
            Admission::Program => true,
            Admission::Token(token) => console.auth.has_token(token),
            Admission::Open => !console.auth.is_needed(),
            Admission::Guest(_) => room.is_some_and(|room| self.in_room(room, console).is_ok()),
            Admission::Anonymous => false,
        }
    }
}

/// Who sends a message: a guest, or the operator in a browser. A program is neither, so the names that it sends have no rights (docs/design/tools.md
///
fn sender(admission: &Admission, headers: &HeaderMap) -> Option<Sender> {
    let is_page = || headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin");
    match admission {
        Admission::Guest(_) => Some(Sender::Guest),
        Admission::Browser(_) => Some(Sender::Operator),
        Admission::Open if is_page() => Some(Sender::Operator),
        Admission::Open | Admission::Program | Admission::Token(_) | Admission::Anonymous => None,
    }
}

/// The error is the same for a room that exists and for one that does not.
fn not_invited(room: &RoomId) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, Detail::of("refusals.not_invited", json!({ "room": room })))
}

/// The middleware around all routes.
pub(super) async fn guard(State(console): State<Shared>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    // The route's pattern, never the path, because the number of different paths has no bound.
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let route = console.access.pattern(route);
    let mut response = match admit(&console, &route, request) {
        Ok((request, _slot)) => {
            let visit = request.extensions().get::<Caller>().and_then(|caller| caller.visit_at(request.uri().path())).cloned();
            bounded(&console, &route, visit.as_ref(), next.run(request)).await
        }
        Err(refusal) => *refusal,
    };
    metrics::count_response(&console, route, response.status(), start.elapsed());
    add_security_headers(response.headers_mut());
    response
}

/// A long response. It is counted until its client has read it or has disconnected.
struct Unread {
    bytes: Bytes,
    _place: (OwnedSemaphorePermit, Option<Share>),
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Builds a response. A long one stays in memory until its client has read it, so at most [`MAX_LONG_RESPONSES`] exist; guests and pictures have
/// separate limits. If no permit becomes free in time, the request is refused. The page's files, which are in memory anyway, and streamed
/// responses, such as exports, are not counted.
async fn bounded(console: &Shared, route: &str, visit: Option<&Visit>, response: impl Future<Output = Response>) -> Response {
    let places = match route {
        PICTURES | FILES => &console.pictures,
        _ if visit.is_some() => &console.long_responses_for_guests,
        _ => &console.long_responses,
    };
    let [long, pictures] = &console.responses_for_guests;
    let shares = if matches!(route, PICTURES | FILES) { pictures } else { long };
    let take = async || {
        let share = match visit {
            Some(visit) => Some(shares.acquire(visit).await?),
            None => None,
        };
        Some((places.clone().acquire_owned().await.ok()?, share))
    };
    let take_place = async || timeout(LONG_RESPONSE_WAIT, take()).await.ok()?;
    let refuse = || Problem::unavailable(Detail::key("refusals.too_many_answers"), LONG_RESPONSE_WAIT).into_response();
    // Building a long response takes many times its size.
    let mut place = None;
    if LONG_ROUTES.contains(&route) {
        place = take_place().await;
        if place.is_none() {
            return refuse();
        }
    }
    let response = response.await;
    let is_built = route.starts_with("/api/") || matches!(route, "/metrics" | PICTURES);
    if !is_built || response.body().size_hint().exact().is_none_or(|bytes| bytes <= SHORT_BYTES) {
        return response;
    }
    let Some(place) = (match place {
        Some(place) => Some(place),
        None => take_place().await,
    }) else {
        return refuse();
    };
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(parts, Body::from(Bytes::from_owner(Unread { bytes, _place: place }))),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Returns the request, and the slot that it takes until it is answered if it came through a trusted proxy.
fn admit(console: &Shared, route: &str, mut request: Request) -> Result<(Request, Option<Slot>), Box<Response>> {
    let refuse = |problem: Problem| Box::new(problem.into_response());
    let peer = request.extensions().get::<Peer>().cloned();
    let Peer { address: peer, door } =
        peer.ok_or_else(|| refuse(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request has no peer address")))?;
    let address = door.client(peer, request.headers());
    // A proxy's connections have no limit per address, so one client could keep all of them open with slow bodies.
    let slot = door.proxies.is_trusted(peer).then(|| console.requests_by_proxy.acquire(client_key(address))).transpose();
    let slot = slot.map_err(|_| {
        let detail = "this address has too many requests open; wait for some, or raise server.max_connections_per_address";
        refuse(Problem::too_many(detail, console.settings.body_timeout()))
    })?;
    let path = request.uri().path();
    let now = Instant::now();
    let is_probe = is_probe(path);
    let admitted = check(console, &door, &request, address, now);

    // The token is checked before the rate limit. So anonymous clients that share the operator's address, for example behind a proxy, neither use
    // up the operator's requests nor prevent the operator from signing in. Attempts with wrong tokens have their own limit.
    if !is_probe && !is_sign_in_file(path) {
        let is_authenticated = admitted.as_ref().is_ok_and(|admission| *admission != Admission::Anonymous);
        let limiter = if is_authenticated { &console.requests } else { &console.anonymous_requests };
        limiter.take_token(address, now).map_err(|wait| {
            let settings = "server.requests_per_second and server.request_burst";
            let detail = format!("too many requests from this address; wait and try again, or raise {settings}");
            refuse(Problem::too_many(Detail::from(detail).coded("refusals.too_many_requests", json!({})), wait))
        })?;
    }
    let mut admission = admitted.map_err(refuse)?;
    // If no token is configured, a probe from a page of another site still counts as anonymous.
    // Without a token, requests from this machine are the operator's. Those of a proxy on it can come from anybody.
    let is_by_proxy = admission == Admission::Open && OF_PROXIES.iter().any(|name| request.headers().contains_key(*name));
    if is_by_proxy || is_probe && admission == Admission::Open && !is_same_site(&door, &request) {
        admission = Admission::Anonymous;
    }
    let access = console.access.of(route, request.method());
    match &admission {
        Admission::Anonymous if is_by_proxy && access != Access::Everybody => {
            let detail = "this request comes through a proxy, and without an admin token everybody behind it would be the operator; set \
                          server.admin_token_file, and server.public_url to the proxy's address (docs/network.md)";
            return Err(refuse(Problem::new(StatusCode::FORBIDDEN, detail)));
        }
        // While another node runs the channels, this node has no page to sign in to.
        Admission::Anonymous if path == "/" && console.stands_by().is_some() => {}
        Admission::Anonymous if access != Access::Everybody => {
            if path == "/" {
                // A former guest has no token to sign in with.
                let was_guest = !console.auth.guest_cookies(request.headers(), door.is_secure).is_empty();
                let to = if was_guest { "/join?ended" } else { if_for_guests(&door, "/join", "/signin") };
                return Err(Box::new((StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()));
            }
            let cookies = console.auth.guest_cookies(request.headers(), door.is_secure);
            match console.backend() {
                // While the store is closed, the open visits are unknown.
                Err(closed) if !cookies.is_empty() => return Err(refuse(closed.into())),
                Ok(backend) if !cookies.is_empty() && backend.guests.was_removed(&cookies) => {
                    return Err(refuse(Problem::new(StatusCode::UNAUTHORIZED, Detail::key("refusals.guest_removed"))));
                }
                _ => {}
            }
            let of_operators = "an admin token is needed: send Authorization: Bearer … or sign in at /signin";
            let of_guests = "this address is for guests; open an invitation link, or operate the server at its own address";
            let detail = if_for_guests(&door, of_guests, of_operators);
            return Err(refuse(Problem::new(StatusCode::UNAUTHORIZED, detail)));
        }
        Admission::Token(token) if access != Access::Everybody && !token.scope.allows(route, request.method()) => {
            let detail = format!(
                "the token {} is for {} alone; use one for more, or make it with `tertulia token make`",
                token.name, token.scope
            );
            return Err(refuse(Problem::new(StatusCode::FORBIDDEN, detail)));
        }
        Admission::Guest(_) if access == Access::Operators => {
            return Err(refuse(Problem::new(StatusCode::FORBIDDEN, Detail::key("refusals.not_for_guests"))));
        }
        _ => {}
    }
    let caller = Caller { address, admission, door };
    if let Some(visit) = caller.visit_at(path) {
        let too_many = |wait| refuse(Problem::too_many(Detail::key("refusals.guests_too_often"), wait));
        console.guest_requests.take_token(visit, now).map_err(too_many)?;
    }
    request.extensions_mut().insert(caller);
    Ok((request, slot))
}

/// Headers with which proxies pass requests on.
const OF_PROXIES: [&str; 6] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip"];

pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// The files that a browser needs for signing in. Serving them costs no more than refusing them.
fn is_sign_in_file(path: &str) -> bool {
    matches!(path, "/signin" | "/page/signin.css" | "/page/base.css" | "/page/theme.js" | "/page/icon.svg")
}

fn if_for_guests<'a>(door: &Door, then: &'a str, otherwise: &'a str) -> &'a str {
    if door.is_for_guests { then } else { otherwise }
}

/// Checks the host, origin and credentials of a request, in this order.
fn check(console: &Shared, door: &Door, request: &Request, address: IpAddr, now: Instant) -> Result<Admission, Problem> {
    let path = request.uri().path();
    let headers = request.headers();
    // Probes, and Prometheus with a token, may use a host name that is not configured.
    let is_machine = is_probe(path) || (path == "/metrics" && !door.is_for_guests && console.auth.is_needed());
    if !is_machine {
        let host = door.names.check_host(request.uri(), headers)?;
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if changes || headers.contains_key(UPGRADE) {
            door.names.check_origin(host, headers)?;
        } else if path.starts_with("/api/") {
            door.names.check_site(headers)?;
        }
    }
    if door.is_for_guests && path == "/signin" {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "nobody signs in at this address, which is for guests; open an invitation link",
        ));
    }
    let admission = if door.is_for_guests { Admission::Anonymous } else { console.auth.admit(headers, address, now)? };
    if admission != Admission::Anonymous {
        return Ok(admission);
    }
    let Ok(backend) = console.backend() else { return Ok(admission) };
    let visits: Arc<[Visit]> =
        console.auth.guest_cookies(headers, door.is_secure).iter().filter_map(|cookie| backend.guests.visit(cookie)).collect();
    Ok(if visits.is_empty() { admission } else { Admission::Guest(visits) })
}

/// Whether a request has a host name of this server and was not started by another site.
fn is_same_site(door: &Door, request: &Request) -> bool {
    let names = &door.names;
    names.check_host(request.uri(), request.headers()).is_ok() && names.check_site(request.headers()).is_ok()
}

fn add_security_headers(headers: &mut HeaderMap) {
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // No other site may load our responses as scripts or images, or hold a reference to our window.
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    // Not `no-referrer`, because browsers would then send `Origin: null` with our own sign-in form.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_sends_a_name_is_not_the_operator() {
        let of = |site: &'static str| HeaderMap::from_iter([("sec-fetch-site".parse().unwrap(), HeaderValue::from_static(site))]);

        assert_eq!(sender(&Admission::Open, &of("same-origin")), Some(Sender::Operator));
        assert_eq!(sender(&Admission::Guest([].into()), &HeaderMap::new()), Some(Sender::Guest));
        for admission in [Admission::Program, Admission::Anonymous] {
            assert_eq!(sender(&admission, &of("same-origin")), None, "{admission:?}");
        }
        for site in ["none", "cross-site", "same-site"] {
            assert_eq!(sender(&Admission::Open, &of(site)), None, "{site}");
        }
        assert_eq!(sender(&Admission::Open, &HeaderMap::new()), None);
    }
}
