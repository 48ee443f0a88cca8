//! Handlers for signing in and out: a form for browsers, JSON for scripts.

use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;

use super::body::{self, Json, media_type};
use super::guard::Caller;
use super::page::Page;
use super::problem::Problem;
use super::{Shared, invitations};

const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    #[schemars(with = "String")]
    token: SecretString,
}

/// `POST /signin`: responds to a form with a redirect to the page, and to JSON with 204. Both responses set the cookie.
pub(super) async fn sign_in(State(console): State<Shared>, Extension(caller): Extension<Caller>, request: Request) -> Response {
    let headers = request.headers().clone();
    let is_form = is_form(&headers);
    let sign_in = match token(&console, request, is_form).await {
        Ok(sign_in) => sign_in,
        Err(problem) => return problem.into_response(),
    };
    match console.auth.sign_in(sign_in.token.expose_secret(), caller.address, Instant::now()) {
        Ok(cookie) if is_form => (StatusCode::SEE_OTHER, [(LOCATION, "/".to_owned()), (SET_COOKIE, cookie)]).into_response(),
        Ok(cookie) => (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response(),
        Err(problem) if is_form => {
            let page = Html(Page::embedded().refused_sign_in(problem.detail(), &headers));
            let mut response = problem.into_response();
            response.headers_mut().remove(CONTENT_TYPE);
            let (parts, _) = response.into_parts();
            (parts.status, parts.headers, page).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// `POST /signout`
pub(super) async fn sign_out(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    invitations::leave(&console, &caller).await?;
    // A browser sends the cookie of an operator's session also to other ports of the host.
    let cookie = (!caller.door.is_for_guests).then(|| [(SET_COOKIE, console.auth.sign_out(&headers))]);
    Ok(if is_form(&headers) {
        (StatusCode::SEE_OTHER, cookie, [(LOCATION, "/signin")]).into_response()
    } else {
        (StatusCode::NO_CONTENT, cookie, ()).into_response()
    })
}

async fn token(console: &Shared, request: Request, is_form: bool) -> Result<SignIn, Problem> {
    if !is_form {
        return Json::from_request(request, console).await.map(|Json(sign_in)| sign_in);
    }
    let bytes = body::read(request.into_body(), console, console.settings.max_body_bytes).await?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    // The parser's error is not returned, because it may contain the token.
    body::form(text).map_err(|_| Problem::invalid("token", "is missing from the form"))
}

fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|media| media == FORM)
}
