//! Error responses: `application/problem+json` (RFC 9457) that names the field and says what to do.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::domain::error_code::ErrorCode;
use crate::ports::backend::{DAMAGED, Detail, Refused};
use crate::texts::Language;
use tertulia_cards::NotACard;
use tertulia_cards::picture::NotAPicture;

/// Why a request was refused.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: Detail,
    field: Option<String>,
    /// Why a file cannot be used.
    file: Option<Box<Value>>,
    retry_after: Option<Duration>,
    kind: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    /// The error, and how to fix it.
    detail: &'a str,
    /// The path of the invalid field or parameter, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// The error for programs that word it themselves, in another language: a `code` and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "why")]
    why: Option<Value>,
}

/// A code with its values.
fn why(_: &mut SchemaGenerator) -> Schema {
    // The page has one text for each kind of file that is no card and no picture.
    let of_files = ["not_cards.", "not_pictures."].into_iter().flat_map(Language::keys).filter(|code| !code.starts_with("is_"));
    let codes: BTreeSet<_> = Language::keys(ErrorCode::SECTION).into_iter().chain(of_files).chain(["other"]).collect();
    json_schema!({
        "type": "object",
        "required": ["code"],
        "properties": { "code": { "type": "string", "enum": codes } },
    })
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<Detail>) -> Self {
        Self { status, detail: detail.into(), field: None, file: None, retry_after: None, kind: "about:blank" }
    }

    /// An invalid value in a body or path: 422.
    pub(super) fn invalid(field: impl Into<String>, detail: impl Into<Detail>) -> Self {
        Self { field: Some(field.into()), ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }

    /// An invalid or missing query parameter: 400.
    pub(super) fn query(field: impl Into<String>, detail: impl Into<Detail>) -> Self {
        Self { field: Some(field.into()), ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }

    fn of_file(is_too_large: bool, detail: impl Into<Detail>) -> Self {
        Self::new(if is_too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::UNPROCESSABLE_ENTITY }, detail)
    }

    pub(super) fn with_field(mut self, field: Option<String>) -> Self {
        self.field = field;
        self
    }

    pub(super) fn too_many(detail: impl Into<Detail>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    pub(super) fn unavailable(detail: impl Into<Detail>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn detail(&self) -> &Detail {
        &self.detail
    }

    /// The body of the response.
    pub(super) fn json(&self) -> Vec<u8> {
        let body = Body {
            kind: self.kind,
            title: self.status.canonical_reason().unwrap_or("Refused"),
            status: self.status.as_u16(),
            detail: &self.detail,
            field: self.field.as_deref(),
            why: self.file.as_deref().cloned().or_else(|| self.detail.code.as_ref().map(|code| json!(code))),
        };
        // Serializing strings and a number cannot fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotFound(detail) => Self::new(StatusCode::NOT_FOUND, detail),
            Refused::Conflict(detail) => Self::new(StatusCode::CONFLICT, detail),
            Refused::Invalid { field, detail } => Self::invalid(field, detail),
            Refused::TooLarge(detail) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail),
            Refused::TooMany { detail, retry_after } => Self::too_many(detail, retry_after),
            Refused::Unavailable { detail, retry_after } => {
                Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
            }
            Refused::Damaged(detail) => Self { kind: DAMAGED, ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail) },
            Refused::Broken(detail) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail),
        }
    }
}

impl From<NotACard> for Problem {
    fn from(why: NotACard) -> Self {
        let is_too_large = matches!(why, NotACard::TooLarge { .. } | NotACard::TextTooLong { .. });
        Self { file: Some(Box::new(json!(why))), ..Self::of_file(is_too_large, why.to_string()) }
    }
}

impl From<NotAPicture> for Problem {
    fn from(why: NotAPicture) -> Self {
        let is_too_large = matches!(why, NotAPicture::TooLarge { .. });
        Self { file: Some(Box::new(json!(why))), ..Self::of_file(is_too_large, why.to_string()) }
    }
}

/// The response to a request that was carried out and has no result.
pub(super) fn done(outcome: Result<(), Refused>) -> Result<StatusCode, Problem> {
    outcome?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs slow work on a blocking thread, so that other requests are not delayed.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, Detail::key("refusals.failed"));
    spawn_blocking(work).await.map_err(failed)?
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.json()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tertulia\""));
        }
        response
    }
}

/// The seconds of a wait, rounded up and at least 1, so that a client that waits this long is not too early.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_in_whole_seconds_rounded_up() {
        let waits = [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(1_001), Duration::from_secs(2)];

        assert_eq!(waits.map(whole_seconds), [1, 1, 2, 2]);
    }

    #[test]
    fn a_problem_has_status_field_and_detail() {
        let problem = Problem::invalid("text", "is empty; write something");

        let json: serde_json::Value = serde_json::from_slice(&problem.json()).unwrap();

        assert_eq!(json["status"], 422);
        assert_eq!(json["field"], "text");
        assert_eq!(json["detail"], "is empty; write something");
    }
}
