//! Files that people send with their messages, and the handler that returns them.

use std::time::Duration;

use axum::Extension;
use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::json;
use tertulia_cards::picture::NotAPicture;
use tertulia_cards::posted::{Posted, posted};
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::body::{FilePath, check_type, in_time, parse, permit, read};
use super::guard::Caller;
use super::limits::Share;
use super::problem::{Problem, off_thread};
use crate::domain::attachment::{
    Attachment, DESCRIPTION_CHARS, Kind, MOST_BYTES, MOST_FILES, MOST_TEXT_BYTES, NAME_CHARS, inline, with_lines,
};
use crate::domain::id::Seq;
use crate::ports::backend::Detail;
use crate::ports::inbound_events::{InboundMessage, StoredFile, Upload};

/// The largest JSON body of a message with files, in bytes. Base64 adds a third.
const MAX_WITH_UPLOADS_BYTES: usize = MOST_FILES * (MOST_BYTES / 3 + 1) * 4 + (1 << 20);

/// The maximum number of messages with files in memory. They have a limit of their own because guests send them, too. A guest sends one at a time,
/// and the guests of an invitation half of them.
pub(super) const MAX_UPLOADS: usize = 4;

const TEXT: &str = "text/plain; charset=utf-8";
/// A voice note: Ogg with Opus.
const VOICE: &str = "audio/ogg";

/// A JSON body of a message, possibly with files in base64. With files it counts as an upload in memory until its permit is dropped.
pub(super) struct JsonWithUploads<T>(pub(super) T, pub(super) Option<(OwnedSemaphorePermit, Option<Share>)>);

impl<T: DeserializeOwned> FromRequest<Shared> for JsonWithUploads<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, console: &Shared) -> Result<Self, Problem> {
        check_type(request.headers(), &["application/json"])?;
        let caller = request.extensions().get::<Caller>().cloned();
        let visit = caller.as_ref().and_then(|caller| caller.visit_at(request.uri().path())).cloned();
        let (body, most) = (request.into_body(), console.settings.max_body_bytes);
        if body.size_hint().exact().is_none_or(|bytes| bytes <= most as u64) {
            return parse(&read(body, console, most).await?).map(|body| Self(body, None));
        }
        let share = match visit {
            Some(visit) => Some(in_time(console.settings.body_timeout(), console.uploads_of_guests.acquire(&visit)).await?),
            None => None,
        };
        let place = (permit(&console.uploads).await?, share);
        parse(&read(body, console, MAX_WITH_UPLOADS_BYTES).await?).map(|body| Self(body, Some(place)))
    }
}

/// Checks the files of a message, and makes them its attachments. Its text gets a line for each.
pub(super) async fn take(message: &mut InboundMessage, console: &Shared) -> Result<(), Problem> {
    let uploads = std::mem::take(&mut message.uploads);
    if uploads.is_empty() {
        return Ok(());
    }
    if uploads.len() > MOST_FILES {
        let detail = Detail::of("refusals.too_many_files", json!({ "count": uploads.len(), "most": MOST_FILES }));
        return Err(Problem::invalid("files", detail));
    }
    let _one_at_a_time = console.checking_pictures.lock().await;
    let taken = off_thread(move || uploads.into_iter().zip(0..).map(|(upload, number)| checked(upload, number)).collect());
    let taken: Vec<(Attachment, StoredFile)> = taken.await?;
    (message.attachments, message.files) = taken.into_iter().unzip();
    if message.attachments.iter().any(|file| file.kind == Kind::Voice) {
        if message.attachments.len() > 1 || !message.text.is_empty() {
            return Err(Problem::invalid("files", Detail::key("refusals.voice_note_alone")));
        }
        // The recording itself says how long it is.
        message.voice_note = Some(Duration::ZERO);
    }
    message.own_words = Some(message.text.clone());
    message.text = with_lines(&message.text, &message.attachments);
    Ok(())
}

fn checked(upload: Upload, number: usize) -> Result<(Attachment, StoredFile), Problem> {
    let field = |name: &str| format!("files[{number}].{name}");
    let Upload { name, description, spoiler, data } = upload;
    let chars = description.chars().count();
    if chars > DESCRIPTION_CHARS {
        let detail = Detail::of("refusals.too_long", json!({ "chars": chars, "most": DESCRIPTION_CHARS }));
        return Err(Problem::invalid(field("description"), detail));
    }
    let refused = |detail| Problem::invalid(field("data"), detail);
    let is_text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok();
        text.is_some_and(|text| !text.chars().any(|c| c.is_control() && !c.is_whitespace()) && !text.trim().is_empty())
    };
    if data.0.starts_with(b"OggS") {
        let name = "voice-note.ogg".into();
        let attachment = Attachment::new(number.to_string().into(), VOICE.into(), name, data.0.len() as u64);
        let file = StoredFile { media_type: VOICE.into(), bytes: data.0.into() };
        return Ok((Attachment { kind: Kind::Voice, ..attachment }, file));
    }
    let (media_type, ending, pixels, bytes) = if is_text(&data.0) {
        if data.0.len() > MOST_TEXT_BYTES {
            return Err(refused(Detail::of("refusals.text_file_too_large", json!({ "most": MOST_TEXT_BYTES >> 10 }))));
        }
        (TEXT, "txt", None, data.0)
    } else {
        let Posted { kind, width, height, bytes } = posted(data.0).map_err(|why| refused(in_words(&why)))?;
        (kind.media_type(), kind.as_str(), Some((width, height)), bytes)
    };
    let name = Some(inline(&name, NAME_CHARS)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| format!("{}.{ending}", if pixels.is_some() { "picture" } else { "text" }));
    let attachment = Attachment {
        pixels,
        description: inline(&description, DESCRIPTION_CHARS).into(),
        is_spoiler: spoiler,
        ..Attachment::new(number.to_string().into(), media_type.into(), name.into(), bytes.len() as u64)
    };
    Ok((attachment, StoredFile { media_type: media_type.into(), bytes: bytes.into() }))
}

/// Why a file is refused.
fn in_words(why: &NotAPicture) -> Detail {
    let (key, values) = match why {
        NotAPicture::TooLarge { most, .. } => ("refusals.picture_too_large", json!({ "most": most >> 20 })),
        NotAPicture::TooLong { width, height } | NotAPicture::TooManyPixels { width, height } => {
            ("refusals.picture_too_long", json!({ "width": width, "height": height }))
        }
        NotAPicture::TooManyFrames { most } => ("refusals.picture_too_many_frames", json!({ "most": most })),
        NotAPicture::Damaged { .. } => ("refusals.picture_damaged", json!({})),
        NotAPicture::Unknown => ("refusals.not_a_file", json!({})),
    };
    Detail::of(key, values)
}

/// `GET /api/rooms/{room}/messages/{seq}/files/{file}`. Whatever the bytes are, browsers show them as a picture, a recording or plain text.
pub(super) async fn file(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    FilePath(room, seq, number): FilePath,
) -> Result<Response, Problem> {
    let visit = caller.in_room(&room, &console)?;
    if visit.is_some_and(|visit| seq <= visit.from) {
        return Err(no_file(seq, number));
    }
    let content = console.backend()?.records.file(&room, seq, number).await?;
    let is_shown = matches!(Kind::of(&content.media_type), Kind::Image | Kind::Audio);
    let known = ["image/png", "image/jpeg", "image/webp", "image/gif", VOICE, TEXT];
    let media_type = known.into_iter().find(|known| **known == *content.media_type).ok_or_else(|| no_file(seq, number))?;
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, if is_shown { "inline" } else { "attachment" }),
        // A file never changes. The browser forgets it some time after its message is deleted.
        (CACHE_CONTROL, "private, max-age=3600"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    Ok((headers, content.bytes.to_vec()).into_response())
}

fn no_file(message: Seq, file: u64) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("message {message} has no file {file}"))
}
