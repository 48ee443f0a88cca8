//! Extracts JSON bodies, query parameters and path segments. An error names the invalid field.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;
use super::{Shared, validation};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::ports::backend::Detail;
use crate::ports::backend::room::RoomId;
use crate::settings::strict::{self, Wrong};
use tertulia_cards::{MAX_CARD_BYTES, NotACard};

/// Bytes over the limit are read and discarded, so that the client can read the response: this many, or as many as the limit if that is more.
const DRAIN_BYTES: usize = 1 << 20;

/// The largest JSON body with files, in bytes. A card and a picture have up to 9 MiB, and base64 adds a third. The fields take up to 1.5 MiB.
const MAX_WITH_FILES_BYTES: usize = 14 << 20;

/// The maximum number of large bodies in memory. The permit of a body also covers the data decoded from it: up to 128 MiB for a picture.
pub(super) const MAX_LARGE_BODIES: usize = 4;

/// How long a request with a large body waits for a permit.
const LARGE_BODY_WAIT: Duration = Duration::from_secs(5);

/// A JSON body. A missing content type counts as JSON. Any other type is refused, so that pages of other sites cannot post forms here.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Shared) -> Result<Self, Problem> {
        check_type(request.headers(), &["application/json"])?;
        parse(&read(request.into_body(), console, console.settings.max_body_bytes).await?).map(Self)
    }
}

/// A JSON body that may contain a picture and a character card in base64. It counts as a large body in memory until its permit is dropped.
pub(super) struct JsonWithFiles<T>(pub(super) T, pub(super) OwnedSemaphorePermit);

impl<T: DeserializeOwned> FromRequest<Shared> for JsonWithFiles<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Shared) -> Result<Self, Problem> {
        check_type(request.headers(), &["application/json"])?;
        let place = place(console).await?;
        parse(&read(request.into_body(), console, MAX_WITH_FILES_BYTES).await?).map(|body| Self(body, place))
    }
}

/// The bytes of a character card. They count as a large body in memory until their permit is dropped.
pub(super) struct FileBody(pub(super) Vec<u8>, pub(super) OwnedSemaphorePermit);

impl FileBody {
    /// The accepted media types. Pages of other sites cannot post any of them without a CORS preflight.
    pub(super) const TYPES: [&str; 3] = ["application/octet-stream", "application/json", "image/png"];
}

impl FromRequest<Shared> for FileBody {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Shared) -> Result<Self, Problem> {
        check_type(request.headers(), &Self::TYPES)?;
        let place = place(console).await?;
        let too_large = |bytes| NotACard::TooLarge { bytes, most: MAX_CARD_BYTES }.into();
        read_or(request.into_body(), console, MAX_CARD_BYTES, too_large).await.map(|bytes| Self(bytes, place))
    }
}

/// Acquires a permit for a large body.
async fn place(console: &Shared) -> Result<OwnedSemaphorePermit, Problem> {
    permit(&console.large_bodies).await
}

pub(super) async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    in_time(LARGE_BODY_WAIT, async { of.clone().acquire_owned().await.ok() }).await
}

pub(super) async fn in_time<T>(wait: Duration, place: impl Future<Output = Option<T>>) -> Result<T, Problem> {
    let place = tokio::time::timeout(wait, place).await.ok().flatten();
    place.ok_or_else(|| Problem::unavailable(Detail::key("refusals.too_many_bodies"), LARGE_BODY_WAIT))
}

/// Checks the content type. A missing one counts as the first of `types`.
pub(super) fn check_type(headers: &HeaderMap, types: &[&str]) -> Result<(), Problem> {
    if media_type(headers).is_none_or(|media| types.contains(&&*media)) {
        return Ok(());
    }
    let what = if types.len() == 1 { "JSON" } else { "a file" };
    let detail = format!("the body must be {what}; send it with Content-Type: {}", types[0]);
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// The media type in lower case without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().unwrap_or("unreadable");
    value.split(';').next().map(|media| media.trim().to_ascii_lowercase())
}

/// Reads a whole body of at most `limit` bytes, within `server.body_timeout_secs`.
pub(super) async fn read(body: Body, console: &Shared, limit: usize) -> Result<Vec<u8>, Problem> {
    read_or(body, console, limit, |_| too_large(limit)).await
}

/// The error for a body of more than `limit` bytes.
pub(super) fn too_large(limit: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Detail::of("refusals.body_too_large", json!({ "most": limit })))
}

/// Like [`read`], with the caller's error for a body that is too large. `too_large` gets a lower bound of the body's size in bytes.
async fn read_or(body: Body, console: &Shared, limit: usize, too_large: impl Fn(usize) -> Problem) -> Result<Vec<u8>, Problem> {
    let told = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let most = limit + limit.max(DRAIN_BYTES);
    if told > most {
        return Err(too_large(told));
    }
    let whole = async {
        let mut pieces = body.into_data_stream();
        let (mut read, mut seen) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body ended too early; send it again"))?;
            seen += piece.len();
            if seen <= limit {
                read.extend_from_slice(&piece);
            } else if seen > most {
                break;
            }
        }
        if seen > limit { Err(too_large(seen)) } else { Ok(read) }
    };
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, Detail::key("refusals.too_slow"));
    tokio::time::timeout(console.settings.body_timeout(), whole).await.map_err(late)?
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let read = strict::json(bytes);
    let read = read.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body is not valid JSON: {error}")))?;
    read.map_err(|Wrong { field, detail, .. }| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_field(field))
}

/// Query parameters. A parameter with an empty value counts as missing. An unknown parameter is refused.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        parse_query(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parse_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let is_filled = |pair: &&str| !pair.split_once('=').is_some_and(|(_, value)| value.is_empty());
    form(&query.split('&').filter(is_filled).collect::<Vec<_>>().join("&"))
}

/// Parses `application/x-www-form-urlencoded`, the format of queries and forms.
pub(super) fn form<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, detail);
    let uri = Uri::builder().path_and_query(format!("/?{text}")).build().map_err(|error| bad(error.to_string()))?;
    let pairs = Query::try_from_uri(&uri).map_err(|rejection| bad(rejection.body_text()))?;
    strict::texts(pairs.0).map_err(|Wrong { field, detail, .. }| bad(detail).with_field(field))
}

/// A segment of a path.
trait Segment: Sized {
    /// Reads the segment with this name.
    fn read(name: &str, text: &str) -> Result<Self, Problem>;
}

impl Segment for RoomId {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        validation::room(name, text)
    }
}

impl Segment for CompanionId {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        validation::companion_id(name, text)?;
        Ok(text.into())
    }
}

impl Segment for Seq {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        number(name, text, "a message number").map(Self)
    }
}

impl Segment for Ticket {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        number(name, text, "the number of a call").map(Self)
    }
}

impl Segment for u64 {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        number(name, text, "a number")
    }
}

impl Segment for String {
    fn read(name: &str, text: &str) -> Result<Self, Problem> {
        validation::opaque_id(name, text, 128)?;
        Ok(text.to_owned())
    }
}

fn number(name: &str, text: &str, what: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| Problem::invalid(name, format!("{text:?} is not {what}")))
}

/// Declares extractors of paths, each with the names and types of its segments.
macro_rules! paths {
    ($($(#[$doc:meta])* $Extractor:ident($($name:ident: $Type:ty),+);)+) => {$(
        $(#[$doc])*
        pub(super) struct $Extractor($(pub(super) $Type),+);

        impl FromRequestParts<Shared> for $Extractor {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
                let mut texts = segments::<Vec<String>>(parts).await?.into_iter();
                Ok(Self($(Segment::read(stringify!($name), &texts.next().unwrap_or_default())?),+))
            }
        }
    )+};
}

paths! {
    RoomPath(room: RoomId);
    MessagePath(room: RoomId, seq: Seq);
    /// A room and the number of a reminder.
    ReminderPath(room: RoomId, id: u64);
    /// A room, and the number of a call of a tool in it.
    CallPath(room: RoomId, call: Ticket);
    /// A room, a message, and the number of its file.
    FilePath(room: RoomId, seq: Seq, file: u64);
    MemberPath(room: RoomId, companion: CompanionId);
    CompanionPath(companion: CompanionId);
    /// A companion, and the hash of its picture.
    PicturePath(companion: CompanionId, hash: String);
    /// A room, and the id of an invitation to it.
    InvitationPath(room: RoomId, id: String);
    /// The id of a quarantine entry.
    EntryPath(id: String);
}

/// The id of a lorebook. Any text may be one.
pub(super) struct BookPath(pub(super) String);

impl FromRequestParts<Shared> for BookPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        segments(parts).await.map(Self)
    }
}

async fn segments<T: DeserializeOwned + Send>(parts: &mut Parts) -> Result<T, Problem> {
    let Path(segments) = Path::from_request_parts(parts, &()).await.map_err(|rejection| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the path cannot be read: {}", rejection.body_text()))
    })?;
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::ports::backend::room::{RoomPatch, RoomPlan};
    use crate::ports::inbound_events::InboundMessage;

    fn refusal_of<T: DeserializeOwned>(body: &str) -> (u16, serde_json::Value) {
        let problem = parse::<T>(body.as_bytes()).map(drop).unwrap_err();
        let json: serde_json::Value = serde_json::from_slice(&problem.json()).unwrap();
        (problem.status().as_u16(), json["field"].clone())
    }

    #[test]
    fn wrong_missing_and_unknown_fields_are_named() {
        assert_eq!(
            refusal_of::<RoomPatch>(r#"{"companions": {"aria": {"paused": "yes"}}}"#),
            (422, "companions.aria.paused".into())
        );
        assert_eq!(refusal_of::<InboundMessage>(r#"{"from": "Ana"}"#), (422, "text".into()));
        assert_eq!(refusal_of::<InboundMessage>(r#"{"from": "Ana", "text": "hi", "colour": 1}"#), (422, "colour".into()));
        assert_eq!(refusal_of::<RoomPlan>(r#"{"guild": "home", "companions": ["aria", 7]}"#), (422, "companions[1]".into()));
    }

    #[test]
    fn an_error_names_the_field_its_value_and_the_expected_type() {
        let detail = |body: &str| {
            let problem = parse::<RoomPatch>(body.as_bytes()).map(drop).unwrap_err();
            (problem.status().as_u16(), problem.detail().to_string())
        };
        let patch = "must be an object of what is to change, such as {\"interjection\": \"quiet\"}";

        for (value, found) in
            [("null", "null"), ("5", "5"), ("\"quiet\"", "\"quiet\""), ("[]", "a list"), ("[\"quiet\"]", "a list")]
        {
            let body = format!(r#"{{"companions": {{"aria": {value}}}}}"#);
            assert_eq!(detail(&body), (422, format!("companions.aria is {found}, {patch}")));
        }
        assert_eq!(detail(r#"{"companions": null}"#).1, "companions is null, must be an object");
        assert_eq!(
            detail(r#"{"companions": {"aria": {"text_lull_timeout": "x"}}}"#).1,
            "companions.aria.text_lull_timeout is \"x\", must be a number"
        );
        assert_eq!(
            detail(r#"{"companions": {"aria": {"interjection": "chatty"}}}"#).1,
            "companions.aria.interjection is \"chatty\", must be one of very_quiet, quiet, average, eager, very_eager"
        );
        assert_eq!(detail(r#"{"paused": true, "paused": false}"#).1, "paused appears twice");
        assert_eq!(
            detail(r#"{"companions": {"aria": {"chatiness": "x"}}}"#).1,
            "companions.aria.chatiness is not known; did you mean chattiness?"
        );
    }

    #[test]
    fn invalid_json_and_invalid_values_have_different_statuses() {
        let bodies = ["", "{", "{\"paused\": true, }", "{} {}", "\u{0}"].map(|body| refusal_of::<RoomPatch>(body).0);

        assert_eq!(bodies, [400; 5]);
        assert_eq!(["[]", "7", "null", "\"x\""].map(|body| refusal_of::<RoomPatch>(body).0), [422; 4]);
    }

    #[test]
    fn an_error_in_the_query_names_the_parameter_and_the_allowed_values() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code)]
        struct Fields {
            room: String,
            #[serde(rename = "as")]
            form: Option<crate::ports::backend::keeping::ExportForm>,
            limit: Option<u64>,
        }
        let detail = |query: &str| parse_query::<Fields>(query).map(drop).unwrap_err().detail().to_string();

        assert_eq!(detail("rom=lobby"), "rom is not known; did you mean room?");
        assert_eq!(detail("room=lobby&as=x"), "as is \"x\", must be one of json, replay, chat, markdown, html");
        assert_eq!(detail("as=json"), "room is missing");
        assert_eq!(detail("room=a&room=b"), "room appears twice");
        assert_eq!(detail("room=a&limit=x"), "limit is \"x\", must be a whole number from 0 up");
    }

    #[test]
    fn escapes_in_a_form_are_decoded() {
        #[derive(Deserialize)]
        struct Fields {
            token: String,
        }

        assert_eq!(form::<Fields>("token=a%2Bb+c").unwrap().token, "a+b c");
        assert!(form::<Fields>("tok=1").is_err());
    }
}
