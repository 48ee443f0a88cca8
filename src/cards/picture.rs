//! Checks that bytes are one complete picture in a format for browsers and within the size limits.

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::png;
use super::posted::{Parts, webp};
use crate::domain::named::named;

/// The maximum size of a picture file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The maximum length of a side, in pixels.
pub const MAX_SIDE: u32 = 4_096;
/// The maximum number of pixels. Decoding uses up to 16 bytes for each, and [`check`] and [`super::small::square`] release all of
/// it before they return.
pub const MAX_PIXELS: u64 = 8 << 20;
/// The maximum number of scans in a JPEG. Progressive files have about ten.
const MAX_SCANS: usize = 100;

named! {
    /// The supported formats.
    #[derive(JsonSchema)]
    pub enum Kind {
        Png = "png",
        Jpeg = "jpeg",
        WebP = "webp",
        /// Only as a picture of a message.
        Gif = "gif",
    }
}

impl Kind {
    /// Detects the format by its first bytes.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            _ if png::is_png(bytes) => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::WebP => "image/webp",
            Self::Gif => "image/gif",
        }
    }
}

/// The properties of a picture that was decoded to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Picture {
    pub kind: Kind,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// The reason why a picture is refused. The page has its own texts for `code` and the values.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, JsonSchema)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum NotAPicture {
    #[error("the picture has {bytes} bytes, at most {most} are allowed: make it smaller, or save it as JPEG or WebP")]
    TooLarge { bytes: usize, most: usize },
    #[error("this is not a picture: give a PNG, a JPEG or a WebP")]
    Unknown,
    #[error(
        "the picture has {width} × {height} pixels: at most {MAX_SIDE} on a side and {MAX_PIXELS} in all are allowed; make it smaller"
    )]
    TooManyPixels { width: u32, height: u32 },
    #[error("the picture ({kind}) is damaged or not whole: save it again")]
    Damaged { kind: Kind },
    #[error("the picture has {width} × {height} pixels, at most {MAX_SIDE} on a side are allowed: make it smaller")]
    TooLong { width: u32, height: u32 },
    #[error("the picture moves for more than {most} frames: post a shorter one")]
    TooManyFrames { most: usize },
}

/// Decodes a picture to its end. Decodes only the first frame of an animation.
///
/// # Errors
/// Returns an error if the file is too large, has an unknown format, has too many pixels, or is damaged.
pub fn check(bytes: &[u8]) -> Result<Picture, NotAPicture> {
    decoded(bytes).map(|(picture, _)| picture)
}

/// Like [`check`], and also returns the pixels row by row, each with its channels. A PNG's pixels are not returned; use
/// [`png::rows`].
pub(super) fn decoded(bytes: &[u8]) -> Result<(Picture, Vec<u8>), NotAPicture> {
    if bytes.len() > MAX_BYTES {
        return Err(NotAPicture::TooLarge { bytes: bytes.len(), most: MAX_BYTES });
    }
    let kind = Kind::of(bytes).filter(|kind| *kind != Kind::Gif).ok_or(NotAPicture::Unknown)?;
    let damaged = || NotAPicture::Damaged { kind };
    let Parts { width, height, scans, .. } = Parts::of(kind, bytes).ok_or_else(damaged)?;
    if width.max(height) > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(NotAPicture::TooManyPixels { width, height });
    }
    let pixels = match kind {
        _ if width == 0 || height == 0 || scans > MAX_SCANS => None,
        Kind::Png => png::is_intact(bytes).then(Vec::new),
        Kind::Jpeg => {
            let options = DecoderOptions::new_safe().set_strict_mode(true).set_max_width(usize::MAX).set_max_height(usize::MAX);
            // A scan of a few bytes can cover all pixels.
            JpegDecoder::new_with_options(ZCursor::new(bytes), options).decode().ok()
        }
        Kind::WebP => webp(bytes).map(|(.., pixels)| pixels),
        Kind::Gif => None,
    };
    Ok((Picture { kind, width, height }, pixels.ok_or_else(damaged)?))
}
