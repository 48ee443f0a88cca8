//! Handlers for invitations: operators create and revoke them, and guests join with them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::{Extension, Json as Answer};
use qrcodegen::{QrCode, QrCodeEcc};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Shared;
use super::auth::Admission;
use super::body::{InvitationPath, Json, QueryParams, RoomPath};
use super::guard::Caller;
use super::problem::{Problem, done};
use super::validation;
use super::visitor::{VisitedRoom, Visits};
use crate::ports::backend::guest_service::{InvitationView, NewInvitation, Preview};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::model_setup::Source;

/// The longest secret that is looked up, in characters. Valid secrets have 64.
const MAX_SECRET_CHARS: usize = 128;

/// A deletion of a room is complete or undone after this time.
const UNDELETED_WITHIN: Duration = Duration::from_secs(10);

/// How long a browser keeps the cookie of a guest. With the cookie, a guest who returns with another invitation may use the same name.
const COOKIE_KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The address of invitation links, and the invitations to a room.
#[derive(Serialize, JsonSchema)]
pub(super) struct Invitations {
    reach: Reach,
    /// Whether operating this server needs a token. The first invitation creates one.
    needs_sign_in: bool,
    /// Newest first.
    invitations: Vec<InvitationView>,
}

/// The address with which links begin, or the reason why links cannot be made.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Reach {
    Url {
        url: String,
        /// Whether the address works only on this computer.
        only_here: bool,
    },
    Nowhere {
        /// The steps that are needed before inviting is possible.
        problem: String,
    },
}

/// A new invitation.
#[derive(Serialize, JsonSchema)]
pub(super) struct Invited {
    invitation: InvitationView,
    /// The link. It is returned only once.
    link: String,
    /// The same link at each address at which the server can be reached now, `link` first.
    links: Vec<Link>,
    /// The path of the file with the admin token, if this request created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
}

/// A link at one address.
#[derive(Serialize, JsonSchema)]
pub(super) struct Link {
    url: String,
    /// The rows of its QR code, with `#` for dark modules. Absent: only this machine can use the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    qr: Option<Vec<String>>,
}

/// `GET /api/rooms/{room}/invitations`
pub(super) async fn list(State(console): State<Shared>, RoomPath(room): RoomPath) -> Result<Answer<Invitations>, Problem> {
    let mut invitations = console.backend()?.guests.invitations(&room).await?;
    for invitation in invitations.iter_mut().filter(|invitation| invitation.revoked_at.is_none()) {
        for guest in invitation.guests.iter_mut().filter(|guest| guest.left_at.is_none()) {
            guest.is_here = console.presence.is_here(&room, &guest.name);
        }
    }
    Ok(Answer(Invitations { reach: reach(&console), needs_sign_in: console.auth.is_needed(), invitations }))
}

/// `POST /api/rooms/{room}/invitations`
pub(super) async fn invite(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(new): Json<NewInvitation>,
) -> Result<Response, Problem> {
    if let Reach::Nowhere { problem } = reach(&console) {
        return Err(Problem::new(StatusCode::CONFLICT, problem));
    }
    // Checks that can refuse the request come before a token is created.
    console.backend()?.rooms.get(&room).await?;
    let made = console.auth.make_token(caller.address).await?;
    let (invitation, secret) = console.backend()?.guests.invite(&room, new).await?;
    let link_at = |(url, only_here): (String, bool)| {
        let url = format!("{url}/join#{}", secret.expose_secret());
        Link { qr: if only_here { None } else { qr(&url) }, url }
    };
    let links: Vec<_> = origins(&console).into_iter().map(link_at).collect();
    let link = links.first().map(|link| link.url.clone()).unwrap_or_default();
    let (token_file, cookie) = match made {
        Some((file, cookie)) => (Some(file), Some((SET_COOKIE, cookie))),
        None => (None, None),
    };
    let invited = Invited { invitation, link, links, token_file };
    Ok((StatusCode::CREATED, AppendHeaders(cookie), Answer(invited)).into_response())
}

/// `DELETE /api/rooms/{room}/invitations/{id}`
pub(super) async fn revoke(
    State(console): State<Shared>,
    InvitationPath(room, id): InvitationPath,
) -> Result<StatusCode, Problem> {
    done(console.backend()?.guests.revoke(&room, &id).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// The name of the guest.
    #[schemars(length(min = 1, max = 64))]
    name: String,
}

/// `DELETE /api/rooms/{room}/invitations/{id}/guests?name=`
pub(super) async fn remove_guest(
    State(console): State<Shared>,
    InvitationPath(room, id): InvitationPath,
    QueryParams(Named { name }): QueryParams<Named>,
) -> Result<StatusCode, Problem> {
    done(console.backend()?.guests.remove_guest(&room, &id, &name).await)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Secret {
    /// The part of the link after the `#`.
    #[schemars(with = "String")]
    secret: SecretString,
}

/// The preview of an invitation.
#[derive(Serialize, JsonSchema)]
pub(super) struct Looked {
    #[serde(flatten)]
    preview: Preview,
    /// Whether this browser belongs to an operator, and so needs no invitation.
    operator: bool,
    /// Whether no AI is connected, so that companions say ready-made sentences.
    demo: bool,
}

/// `POST /api/invitations/look`
pub(super) async fn look(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(Secret { secret }): Json<Secret>,
) -> Result<Answer<Looked>, Problem> {
    let cookies = console.auth.guest_cookies(&headers, caller.door.is_secure);
    let preview = console.backend()?.guests.look(bounded(&secret)?, &cookies).await?;
    Ok(Answer(Looked { preview, operator: caller.is_operator(), demo: is_demo(&console).await? }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Joining {
    /// The part of the link after the `#`.
    #[schemars(with = "String")]
    secret: SecretString,
    /// The name in the room, as `from` of a message. It must differ from every name in the guild's record, and must not look like one.
    #[schemars(length(min = 1, max = 64))]
    name: Arc<str>,
}

/// `POST /api/invitations/join`
pub(super) async fn join(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(Joining { secret, name }): Json<Joining>,
) -> Result<Response, Problem> {
    let name = validation::companion_name("name", &name)?;
    let cookies = console.auth.guest_cookies(&headers, caller.door.is_secure);
    // Operators who have said nothing yet are not on record, so the open rooms are checked, too.
    console.backend()?.guests.look(bounded(&secret)?, &cookies).await?;
    let too_many = |wait| Problem::too_many(Detail::key("refusals.names_too_often"), wait);
    console.guest_requests.take_name(bounded(&secret)?, caller.address, Instant::now()).map_err(too_many)?;
    if console.presence.has_host(&name) {
        return Err(Problem::invalid("name", Detail::key("refusals.name_here")));
    }
    let (visit, cookie) = console.backend()?.guests.join(bounded(&secret)?, name, &cookies).await?;
    let cookie = console.auth.guest_cookie(&visit.invitation, &cookie, COOKIE_KEPT, caller.door.is_secure);
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

async fn is_demo(console: &Shared) -> Result<bool, Problem> {
    Ok(console.models()?.models().await?.source == Source::Rehearsal)
}

fn bounded(secret: &SecretString) -> Result<&str, Problem> {
    let secret = secret.expose_secret();
    let is_possible = (1..=MAX_SECRET_CHARS).contains(&secret.len());
    if is_possible { Ok(secret) } else { Err(Problem::invalid("secret", Detail::key("refusals.no_secret"))) }
}

/// `GET /api/visit`
pub(super) async fn visit(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Answer<Visits>, Problem> {
    let mut rooms = Vec::new();
    for visit in caller.visits() {
        let Some(room) = RoomId::of(&visit.channel) else { continue };
        match console.backend()?.rooms.get(&room).await {
            Ok(room) => rooms.push(VisitedRoom::new(room, visit)),
            // The deletion of this room can still be undone.
            Err(Refused::NotFound(_)) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
    if rooms.is_empty() && !caller.visits().is_empty() {
        return Err(Problem::unavailable(Detail::key("refusals.deleting"), UNDELETED_WITHIN));
    }
    let models = console.models()?.models().await?;
    Ok(Answer(Visits { rooms, demo: models.source == Source::Rehearsal, sees_pictures: models.main.sees_pictures }))
}

/// Whether a person is typing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Typing {
    /// The person's name, as in `as` of the live view.
    #[schemars(length(min = 1, max = 64))]
    from: Arc<str>,
    typing: bool,
}

/// `PUT /api/rooms/{room}/typing`
pub(super) async fn typing(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
    Json(Typing { from, typing }): Json<Typing>,
) -> Result<StatusCode, Problem> {
    let from = caller.speaker(&room, validation::name("from", &from)?, &console)?;
    console.presence.typing(&room, &from, typing);
    Ok(StatusCode::NO_CONTENT)
}

/// The address with which links begin.
fn reach(console: &Shared) -> Reach {
    match origins(console).into_iter().next() {
        Some((url, only_here)) => Reach::Url { url, only_here },
        None => Reach::Nowhere {
            problem: "friends can be invited once this server has an address with https: put a proxy with TLS in front, and set server.public_url to \
                      its https:// address"
                .to_owned(),
        },
    }
}

/// The addresses at which links work, and whether only on this machine: the tunnel, the public address if it has https, the address in the machine's
/// network, or otherwise the one on this machine. Secrets and cookies are sent unencrypted over a network only where the operator has opened it.
fn origins(console: &Shared) -> Vec<(String, bool)> {
    let (tunnel, network) = console.addresses.urls();
    let public = console.settings.public_origin().filter(|origin| origin.starts_with("https://"));
    let mut origins: Vec<_> = tunnel.into_iter().chain(public).chain(network).map(|url| (url, false)).collect();
    if origins.is_empty() && super::host::is_loopback(console.bound.ip()) {
        origins.push((format!("http://{}", console.bound), true));
    }
    origins
}

fn qr(text: &str) -> Option<Vec<String>> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let row = |y| (0..code.size()).map(|x| if code.get_module(x, y) { '#' } else { ' ' }).collect();
    Some((0..code.size()).map(row).collect())
}

/// Ends the visits of this browser.
pub(super) async fn leave(console: &Shared, caller: &Caller) -> Result<(), Problem> {
    if let Admission::Guest(visits) = &caller.admission {
        for visit in visits.iter() {
            console.backend()?.guests.leave(visit).await?;
        }
    }
    Ok(())
}
