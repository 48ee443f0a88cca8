//! Checks pictures that people post without decoding them, and removes metadata such as where they were taken.
//!
//! A picture that Exif data turns is decoded, turned and encoded again. All others keep the bytes of their pixels.

use std::io::Cursor;

use image_webp::WebPDecoder;
use jpeg_encoder::{ColorType, Encoder};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::picture::{Kind, MAX_SIDE, NotAPicture};
use super::png;
use crate::domain::attachment::MOST_BYTES;

/// The most frames of an animation.
const MAX_FRAMES: usize = 1_000;
/// The most scans of a JPEG. Progressive files have about ten.
const MAX_SCANS: usize = 32;
/// The quality of turned JPEGs. The second one is used if the first makes the file too large.
const QUALITIES: [u8; 2] = [93, 80];

/// A picture as it is stored and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    pub kind: Kind,
    /// In pixels, after turning.
    pub width: u32,
    pub height: u32,
    pub bytes: Vec<u8>,
}

/// Checks a picture, turns it as its Exif data says, and removes all metadata except colour profiles.
///
/// # Errors
/// Returns an error if the file is too large, has an unknown format or too many pixels or frames, or is damaged. Only a picture
/// that must be turned is decoded, so this takes neither long nor much memory.
pub fn posted(bytes: Vec<u8>) -> Result<Posted, NotAPicture> {
    if bytes.len() > MOST_BYTES {
        return Err(NotAPicture::TooLarge { bytes: bytes.len(), most: MOST_BYTES });
    }
    let kind = Kind::of(&bytes).ok_or(NotAPicture::Unknown)?;
    let parts = Parts::of(kind, &bytes).ok_or(NotAPicture::Damaged { kind })?;
    let Parts { width, height, orientation, scans, frames, kept } = parts;
    if width.max(height) > MAX_SIDE {
        return Err(NotAPicture::TooLong { width, height });
    }
    if frames > MAX_FRAMES {
        return Err(NotAPicture::TooManyFrames { most: MAX_FRAMES });
    }
    if width == 0 || height == 0 || scans > MAX_SCANS || kind == Kind::Png && !png::is_intact(&bytes) {
        return Err(NotAPicture::Damaged { kind });
    }
    if orientation > 1 {
        return turned(kind, &bytes, orientation).ok_or(NotAPicture::Damaged { kind })?;
    }
    Ok(Posted { kind, width, height, bytes: if kept.len() < bytes.len() { kept } else { bytes } })
}

/// A picture for a model: the first frame of an animation as PNG, and all others as they are. `None` if that frame cannot be
/// decoded or is too large.
pub fn still(kind: Kind, bytes: Vec<u8>) -> Option<(Kind, Vec<u8>)> {
    let (width, height, pixels) = match kind {
        Kind::Gif => {
            let mut options = gif::DecodeOptions::new();
            options.set_color_output(gif::ColorOutput::RGBA);
            let mut decoder = options.read_info(Cursor::new(&bytes)).ok()?;
            let (width, height) = (decoder.width(), decoder.height());
            let frame = decoder.read_next_frame().ok()??;
            if width == 0 || frame.width == 0 {
                return None;
            }
            let mut pixels = vec![0; 4 * usize::from(width) * usize::from(height)];
            let (left, row) = (usize::from(frame.left.min(width)), 4 * usize::from(width));
            let shown = 4 * usize::from(frame.width).min(usize::from(width) - left);
            let rows = pixels.chunks_exact_mut(row).skip(frame.top.into());
            for (into, from) in rows.zip(frame.buffer.chunks_exact(4 * usize::from(frame.width))) {
                into[4 * left..4 * left + shown].copy_from_slice(&from[..shown]);
            }
            (u32::from(width), u32::from(height), pixels)
        }
        Kind::WebP if WebPDecoder::new(Cursor::new(&bytes)).ok()?.is_animated() => webp(&bytes)?,
        Kind::Png | Kind::Jpeg | Kind::WebP => return Some((kind, bytes)),
    };
    Some((Kind::Png, png::encode(width, height, &pixels))).filter(|(_, png)| png.len() <= 2 * MOST_BYTES)
}

/// What the structure of a file says, and the file without metadata.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) width: u32,
    pub(super) height: u32,
    /// As in Exif: 1 is upright.
    orientation: u16,
    pub(super) scans: usize,
    frames: usize,
    kept: Vec<u8>,
}

impl Parts {
    /// `None` if the file is damaged.
    pub(super) fn of(kind: Kind, bytes: &[u8]) -> Option<Self> {
        match kind {
            Kind::Png => of_png(bytes),
            Kind::Jpeg => of_jpeg(bytes),
            Kind::WebP => of_webp(bytes),
            Kind::Gif => of_gif(bytes),
        }
    }
}

fn of_png(bytes: &[u8]) -> Option<Parts> {
    let (width, height) = png::size(bytes)?;
    let orientation = png::exif(bytes).map_or(1, orientation);
    Some(Parts { width, height, orientation, frames: png::frames(bytes), kept: png::picture_alone(bytes), ..Parts::default() })
}

fn of_jpeg(bytes: &[u8]) -> Option<Parts> {
    const EXIF: &[u8] = b"Exif\0\0";
    let mut parts = Parts { orientation: 1, kept: bytes[..2].to_vec(), ..Parts::default() };
    let mut rest = &bytes[2..];
    loop {
        let (&[0xff, marker], after) = rest.split_first_chunk::<2>()? else { return None };
        match marker {
            // Fill bytes.
            0xff => {
                rest = &rest[1..];
                continue;
            }
            0xd9 => break,
            0x01 | 0xd0..=0xd7 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes(*after.first_chunk()?));
        let data = after.get(2..length)?;
        let is_kept = match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let [_, h1, h0, w1, w0] = *data.first_chunk()?;
                parts.height = parts.height.max(u16::from_be_bytes([h1, h0]).into());
                parts.width = parts.width.max(u16::from_be_bytes([w1, w0]).into());
                true
            }
            0xe1 => {
                parts.orientation = data.strip_prefix(EXIF).map_or(parts.orientation, orientation);
                false
            }
            // JFIF without a thumbnail, how colours are encoded, and colour profiles.
            0xe0 => data.starts_with(b"JFIF\0") && data.len() == 14,
            0xee => data.starts_with(b"Adobe"),
            0xe2 => data.starts_with(b"ICC_PROFILE\0"),
            0xe3..=0xef | 0xfe => false,
            _ => true,
        };
        let mut end = 2 + length;
        if marker == 0xda {
            parts.scans += 1;
            // The pixels end at the next marker that is neither an escaped byte nor a restart.
            let is_end = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff);
            end += rest.get(end..)?.windows(2).position(is_end)?;
        }
        if is_kept {
            parts.kept.extend_from_slice(rest.get(..end)?);
        }
        rest = rest.get(end..)?;
    }
    parts.kept.extend([0xff, 0xd9]);
    (parts.scans > 0).then_some(parts)
}

fn of_webp(bytes: &[u8]) -> Option<Parts> {
    const OF_PICTURE: [&[u8; 4]; 7] = [b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];
    /// The bits of the header for Exif data and XMP.
    const METADATA: u8 = 0x0c;
    let (width, height) = WebPDecoder::new(Cursor::new(bytes)).ok()?.dimensions();
    let length = usize::try_from(u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?)).ok()?;
    let mut rest = bytes.get(12..8 + length)?;
    let mut parts = Parts { width, height, orientation: 1, kept: bytes[..12].to_vec(), ..Parts::default() };
    while !rest.is_empty() {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*after.first_chunk()?)).ok()?;
        let data = after.get(4..)?.get(..length)?;
        let end = rest.len().min(8 + length.next_multiple_of(2));
        if name == b"EXIF" {
            parts.orientation = orientation(data.strip_prefix(b"Exif\0\0").unwrap_or(data));
        }
        parts.frames += usize::from(name == b"ANMF");
        if OF_PICTURE.contains(&name) {
            let at = parts.kept.len();
            parts.kept.extend_from_slice(&rest[..end]);
            if name == b"VP8X" {
                *parts.kept.get_mut(at + 8)? &= !METADATA;
            }
        }
        rest = &rest[end..];
    }
    let length = u32::try_from(parts.kept.len() - 8).ok()?;
    parts.kept[4..8].copy_from_slice(&length.to_le_bytes());
    Some(parts)
}

fn of_gif(bytes: &[u8]) -> Option<Parts> {
    let &[w0, w1, h0, h1, flags, _, _] = bytes.get(6..)?.first_chunk()?;
    let table = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << (1 + (flags & 7)) };
    let mut at = 13 + table(flags);
    let mut parts = Parts { orientation: 1, kept: bytes.get(..at)?.to_vec(), ..Parts::default() };
    (parts.width, parts.height) = (u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into());
    loop {
        let begin = at;
        let is_kept = match *bytes.get(at)? {
            0x3b => break,
            0x2c => {
                parts.frames += 1;
                at += 11 + table(*bytes.get(at + 9)?);
                true
            }
            0x21 => {
                at += 2;
                let name = bytes.get(at + 1..)?;
                // Control of frames, and how often they repeat.
                match *bytes.get(at - 1)? {
                    0xf9 => true,
                    0xff => name.starts_with(b"NETSCAPE2.0") || name.starts_with(b"ANIMEXTS1.0"),
                    _ => false,
                }
            }
            _ => return None,
        };
        loop {
            let length = usize::from(*bytes.get(at)?);
            at += 1 + length;
            if length == 0 {
                break;
            }
        }
        if is_kept {
            parts.kept.extend_from_slice(bytes.get(begin..at)?);
        }
    }
    parts.kept.push(0x3b);
    (parts.frames > 0).then_some(parts)
}

/// The orientation in Exif data. 1 if there is none.
fn orientation(tiff: &[u8]) -> u16 {
    const TAG: u16 = 0x0112;
    let read = || {
        let is_little = match tiff.first_chunk()? {
            b"II" => true,
            b"MM" => false,
            _ => return None,
        };
        let short = |at: usize| {
            let bytes = *tiff.get(at..)?.first_chunk()?;
            Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
        };
        let long = *tiff.get(4..)?.first_chunk()?;
        let at = usize::try_from(if is_little { u32::from_le_bytes(long) } else { u32::from_be_bytes(long) }).ok()?;
        let entries = usize::from(short(at)?);
        let entry = (0..entries).map(|n| at + 2 + 12 * n).find(|entry| short(*entry) == Some(TAG))?;
        short(entry + 8)
    };
    read().filter(|orientation| (1..=8).contains(orientation)).unwrap_or(1)
}

/// Decodes a picture, turns it, and encodes it again: a JPEG as JPEG, and others as PNG. `None` if it cannot be decoded.
fn turned(kind: Kind, bytes: &[u8], orientation: u16) -> Option<Result<Posted, NotAPicture>> {
    let (kind, width, height, bytes) = if kind == Kind::Jpeg {
        let options = DecoderOptions::new_safe().set_max_width(usize::MAX).set_max_height(usize::MAX);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().ok()?;
        let colours = if decoder.input_colorspace() == Some(ColorSpace::Luma) { ColorSpace::Luma } else { ColorSpace::RGB };
        decoder.set_options(options.jpeg_set_out_colorspace(colours));
        let profile = decoder.icc_profile();
        let pixels = decoder.decode().ok()?;
        let info = decoder.info()?;
        let channels = colours.num_components();
        let (width, height, pixels) = turn(&pixels, info.width.into(), info.height.into(), channels, orientation)?;
        let colours = if channels == 1 { ColorType::Luma } else { ColorType::Rgb };
        let mut jpeg = Vec::new();
        for quality in QUALITIES {
            jpeg.clear();
            let mut encoder = Encoder::new(&mut jpeg, quality);
            if let Some(profile) = &profile {
                encoder.add_icc_profile(profile).ok()?;
            }
            encoder.encode(&pixels, u16::try_from(width).ok()?, u16::try_from(height).ok()?, colours).ok()?;
            if jpeg.len() <= MOST_BYTES {
                break;
            }
        }
        (kind, width, height, jpeg)
    } else {
        let (width, height, pixels) = if kind == Kind::Png {
            let (width, height) = png::size(bytes)?;
            let mut pixels = Vec::new();
            png::rows(bytes, |row| pixels.extend_from_slice(row))?;
            (width, height, pixels)
        } else {
            webp(bytes)?
        };
        let (width, height, pixels) = turn(&pixels, width, height, 4, orientation)?;
        (Kind::Png, width, height, png::encode(width, height, &pixels))
    };
    let too_large = NotAPicture::TooLarge { bytes: bytes.len(), most: MOST_BYTES };
    Some(if bytes.len() <= MOST_BYTES { Ok(Posted { kind, width, height, bytes }) } else { Err(too_large) })
}

/// The width, the height and the pixels of a WebP, or of its first frame, as red, green, blue and opacity.
pub(super) fn webp(bytes: &[u8]) -> Option<(u32, u32, Vec<u8>)> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).ok()?;
    let (width, height) = decoder.dimensions();
    decoder.set_memory_limit(MOST_BYTES);
    let mut pixels = vec![0; decoder.output_buffer_size()?];
    decoder.read_image(&mut pixels).ok()?;
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    Some((width, height, pixels.chunks_exact(channels).flat_map(png::rgba).collect()))
}

/// Turns and mirrors pixels as Exif says. Returns the new width and height, too.
fn turn(pixels: &[u8], width: u32, height: u32, channels: usize, orientation: u16) -> Option<(u32, u32, Vec<u8>)> {
    let is_turned = orientation >= 5;
    let (to_width, to_height) = if is_turned { (height, width) } else { (width, height) };
    let mut turned = Vec::with_capacity(pixels.len());
    for y in 0..to_height {
        for x in 0..to_width {
            let (right, bottom) = (width - 1, height - 1);
            let (from_x, from_y) = match orientation {
                2 => (right - x, y),
                3 => (right - x, bottom - y),
                4 => (x, bottom - y),
                5 => (y, x),
                6 => (y, bottom - x),
                7 => (right - y, bottom - x),
                8 => (right - y, x),
                _ => (x, y),
            };
            let at = (usize::try_from(from_y).ok()? * usize::try_from(width).ok()? + usize::try_from(from_x).ok()?) * channels;
            turned.extend_from_slice(pixels.get(at..at + channels)?);
        }
    }
    Some((to_width, to_height, turned))
}
