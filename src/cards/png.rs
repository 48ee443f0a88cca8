//! Reads the chunks of a PNG even if it is damaged, checks it as a picture, and replaces its text chunks.
//!
//! The format is specified in <https://www.w3.org/TR/png-3/>.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use flate2::read::DeflateDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const TEXTS: [&[u8; 4]; 3] = [b"tEXt", b"zTXt", b"iTXt"];

pub(super) fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

/// One chunk of a PNG.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) kind: [u8; 4],
    pub(super) data: &'a [u8],
    /// Whether the file contains the chunk to its end.
    pub(super) is_whole: bool,
    pub(super) checksum_is_right: bool,
    /// The whole chunk, from its length to its checksum.
    all: &'a [u8],
}

/// The chunks of a PNG up to `IEND` or to the end of a truncated file.
pub(super) fn chunks(png: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut rest = png.strip_prefix(SIGNATURE).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let data = &after[..length.min(after.len())];
        let checksum = after.get(length..).and_then(|after| after.first_chunk::<4>());
        let is_right = |checksum: &[u8; 4]| {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(kind);
            hasher.update(data);
            hasher.finalize() == u32::from_be_bytes(*checksum)
        };
        let all = &rest[..rest.len().min(length.saturating_add(12))];
        rest = if kind == b"IEND" { &[] } else { &rest[all.len()..] };
        Some(Chunk { kind: *kind, data, is_whole: checksum.is_some(), checksum_is_right: checksum.is_some_and(is_right), all })
    })
}

/// Whether a PNG has an `IEND` chunk.
pub(super) fn has_end(png: &[u8]) -> bool {
    chunks(png).any(|chunk| &chunk.kind == b"IEND")
}

impl<'a> Chunk<'a> {
    pub(super) fn is_text(&self) -> bool {
        TEXTS.contains(&&self.kind)
    }

    /// The keyword of a text chunk, in lower case.
    pub(super) fn keyword(&self) -> Option<String> {
        let end = self.data.iter().take(80).position(|byte| *byte == 0)?;
        self.is_text().then(|| String::from_utf8_lossy(&self.data[..end]).to_ascii_lowercase())
    }

    /// The text of a text chunk. `None` if it cannot be decompressed or is longer than `most` bytes.
    pub(super) fn text(&self, most: usize) -> Option<Cow<'a, [u8]>> {
        let after_nul = |bytes: &'a [u8]| bytes.iter().position(|byte| *byte == 0).map(|nul| &bytes[nul + 1..]);
        let value = after_nul(self.data)?;
        let (text, is_compressed) = match &self.kind {
            b"tEXt" => (value, false),
            b"zTXt" => (value.get(1..)?, true),
            _ => (after_nul(after_nul(value.get(2..)?)?)?, value.first() == Some(&1)),
        };
        match is_compressed {
            true => inflated(text, most).map(Cow::Owned),
            false => (text.len() <= most).then_some(Cow::Borrowed(text)),
        }
    }
}

/// Decompresses a zlib stream as far as possible. `None` if the result is longer than `most` bytes.
fn inflated(compressed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    // Without the header and the checksum, which may be wrong or missing. What comes before damage counts.
    let _ = DeflateDecoder::new(compressed.get(2..).unwrap_or_default()).take(most as u64 + 1).read_to_end(&mut text);
    (text.len() <= most).then_some(text)
}

/// Removes the text chunks of a PNG and all bytes after `IEND`.
pub(super) fn without_texts(png: &[u8]) -> Vec<u8> {
    let kept = chunks(png).filter(|chunk| !chunk.is_text()).flat_map(|chunk| chunk.all);
    SIGNATURE.iter().chain(kept).copied().collect()
}

/// The chunks that are kept of a posted picture: pixels, colours and frames, without texts, times and other metadata.
const OF_PICTURE: [&[u8; 4]; 16] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"cICP", b"bKGD", b"pHYs", b"acTL",
    b"fcTL", b"fdAT",
];

/// Removes everything from a PNG that is not the picture.
pub(super) fn picture_alone(png: &[u8]) -> Vec<u8> {
    let kept = chunks(png).filter(|chunk| OF_PICTURE.contains(&&chunk.kind)).flat_map(|chunk| chunk.all);
    SIGNATURE.iter().chain(kept).copied().collect()
}

/// The number of frames that an animated PNG says it has.
pub(super) fn frames(png: &[u8]) -> usize {
    chunks(png).filter(|chunk| &chunk.kind == b"fcTL").count()
}

/// The Exif data of a PNG.
pub(super) fn exif(png: &[u8]) -> Option<&[u8]> {
    chunks(png).find(|chunk| &chunk.kind == b"eXIf").map(|chunk| chunk.data)
}

/// Encodes rows of pixels with red, green, blue and opacity.
pub(super) fn encode(width: u32, height: u32, rgba: &[u8]) -> Vec<u8> {
    let mut png = SIGNATURE.to_vec();
    put(&mut png, b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat());
    let mut pixels = ZlibEncoder::new(Vec::new(), Compression::fast());
    for row in rgba.chunks_exact(4 * width as usize) {
        // Each byte is stored as its difference from the pixel to the left.
        let left = [0; 4].iter().chain(row);
        let filtered: Vec<u8> =
            [1].into_iter().chain(row.iter().zip(left).map(|(byte, left)| byte.wrapping_sub(*left))).collect();
        // Writing to a Vec does not fail.
        let _ = pixels.write_all(&filtered);
    }
    put(&mut png, b"IDAT", &pixels.finish().unwrap_or_default());
    put(&mut png, b"IEND", &[]);
    png
}

/// Writes text chunks before the pixels, where every program looks. They replace chunks with the same keywords.
pub(super) fn with_texts(png: &[u8], texts: &[(&str, &[u8])]) -> Vec<u8> {
    let is_replaced = |chunk: &Chunk<'_>| chunk.keyword().is_some_and(|keyword| texts.iter().any(|(other, _)| *other == keyword));
    let mut written = SIGNATURE.to_vec();
    let mut left = Some(texts);
    for chunk in chunks(png).filter(|chunk| !is_replaced(chunk)) {
        if matches!(&chunk.kind, b"IDAT" | b"IEND") {
            for (keyword, text) in left.take().unwrap_or_default() {
                put(&mut written, b"tEXt", &[keyword.as_bytes(), b"\0", text].concat());
            }
        }
        written.extend_from_slice(chunk.all);
    }
    written
}

pub(super) fn put(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let begin = png.len() + 4;
    png.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    png.extend_from_slice(kind);
    png.extend_from_slice(data);
    png.extend(crc32fast::hash(&png[begin..]).to_be_bytes());
}

/// The width and height in the header. `None` without a header.
pub(super) fn size(png: &[u8]) -> Option<(u32, u32)> {
    let header = chunks(png).next().filter(|chunk| &chunk.kind == b"IHDR")?;
    let (width, rest) = header.data.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*rest.first_chunk::<4>()?)))
}

/// Whether every critical chunk is intact and in its place, and the pixels are as many as the header says. At most one row of pixels is in memory.
pub(super) fn is_intact(png: &[u8]) -> bool {
    read(png, |_| Some(())).is_some()
}

/// Decodes a PNG row by row, each pixel as red, green, blue and opacity. `None` if the PNG is damaged, interlaced, or does not have
/// a depth of eight bits.
pub(super) fn rows(png: &[u8], mut taken: impl FnMut(&[u8])) -> Option<()> {
    let first = |kind: &[u8; 4]| chunks(png).find(|chunk| &chunk.kind == kind).map_or(&[][..], |chunk| chunk.data);
    let (palette, opacities) = (first(b"PLTE"), first(b"tRNS"));
    let &[8, colour, _, _, 0] = first(b"IHDR").get(8..)? else { return None };
    let width = usize::try_from(size(png)?.0).ok()?;
    let (mut before, mut rgba) = (Vec::new(), Vec::new());
    read(png, |row| {
        let channels = (row.len() - 1) / width;
        before.resize(row.len(), 0);
        unfilter(row, &before, channels)?;
        rgba.clear();
        for pixel in row[1..].chunks_exact(channels) {
            rgba.extend(match (colour, pixel) {
                (3, [at]) => {
                    let at = usize::from(*at);
                    let [red, green, blue] = *palette.get(at * 3..)?.first_chunk()?;
                    [red, green, blue, opacities.get(at).copied().unwrap_or(u8::MAX)]
                }
                _ => self::rgba(pixel),
            });
        }
        taken(&rgba);
        std::mem::swap(&mut before, row);
        Some(())
    })
}

/// Checks a PNG, and passes each row of pixels, as it is filtered and with the byte of its filter. `None` if it is damaged, or if `taken` returns that.
fn read(png: &[u8], mut taken: impl FnMut(&mut Vec<u8>) -> Option<()>) -> Option<()> {
    let mut all = chunks(png).peekable();
    let header = all.next().filter(|header| header.is_whole && header.checksum_is_right)?;
    let (width, height) = size(png)?;
    let &[depth, colour, 0, 0, interlaced @ 0..=1] = header.data.get(8..)? else { return None };
    let channels = match (colour, depth) {
        (0, 1 | 2 | 4 | 8 | 16) | (3, 1 | 2 | 4 | 8) => 1,
        (2, 8 | 16) => 3,
        (4, 8 | 16) => 2,
        (6, 8 | 16) => 4,
        _ => return None,
    };
    let mut rows = Rows::new(width, height, channels * u64::from(depth), interlaced == 1);
    let mut stream = Decompress::new(true);
    let (mut has_palette, mut pixels_are_done) = (false, false);
    while let Some(chunk) = all.next() {
        let is_critical = !chunk.kind[0] & 0x20 != 0;
        if !chunk.is_whole || is_critical && !chunk.checksum_is_right {
            return None;
        }
        match &chunk.kind {
            b"PLTE" if chunk.data.len() % 3 == 0 && (3..=768).contains(&chunk.data.len()) => has_palette = true,
            b"IDAT" if !pixels_are_done && (has_palette || colour != 3) => {
                rows.decompress(&mut stream, chunk.data, &mut taken)?;
                pixels_are_done = all.peek().is_none_or(|next| &next.kind != b"IDAT");
            }
            b"IEND" => return (pixels_are_done && rows.are_complete()).then_some(()),
            _ if is_critical => return None,
            _ => {}
        }
    }
    None
}

/// Reverses the filter of a row. The row's first byte selects the filter, which predicts each byte from those to the left and
/// above.
fn unfilter(row: &mut [u8], above: &[u8], channels: usize) -> Option<()> {
    for at in 1..row.len() {
        let left_of = |row: &[u8]| if at > channels { row[at - channels] } else { 0 };
        let (left, up, corner) = (left_of(row), above[at], left_of(above));
        let predicted = match row[0] {
            0 => 0,
            1 => left,
            2 => up,
            3 => left.midpoint(up),
            4 => {
                let [a, b, c] = [left, up, corner].map(i16::from);
                let estimate = a + b - c;
                let [to_left, to_up, to_corner] = [a, b, c].map(|other| (estimate - other).abs());
                if to_left <= to_up && to_left <= to_corner {
                    left
                } else if to_up <= to_corner {
                    up
                } else {
                    corner
                }
            }
            _ => return None,
        };
        row[at] = row[at].wrapping_add(predicted);
    }
    Some(())
}

/// Converts a pixel of one to four channels (grey or colours, with or without opacity) to RGBA.
pub(super) fn rgba(pixel: &[u8]) -> [u8; 4] {
    match *pixel {
        [grey] => [grey, grey, grey, 255],
        [grey, opacity] => [grey, grey, grey, opacity],
        [red, green, blue] => [red, green, blue, 255],
        [red, green, blue, opacity, ..] => [red, green, blue, opacity],
        [] => [0; 4],
    }
}

/// The rows of pixels that are still missing.
struct Rows {
    /// For each pass over the picture: the length of a row in bytes, including the filter byte, and the number of rows that are missing.
    passes: Vec<(usize, u32)>,
    /// The part of the current row that is there.
    row: Vec<u8>,
    has_ended: bool,
}

impl Rows {
    fn new(width: u32, height: u32, bits: u64, is_interlaced: bool) -> Self {
        // The passes of Adam7: start x, start y, step in x, step in y.
        const ADAM7: [[u32; 4]; 7] =
            [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];
        const WHOLE: [[u32; 4]; 1] = [[0, 0, 1, 1]];
        let passes: &[[u32; 4]] = if is_interlaced { &ADAM7 } else { &WHOLE };
        let passes = passes.iter().rev().filter_map(|[x, y, step_x, step_y]| {
            let columns = width.saturating_sub(*x).div_ceil(*step_x);
            let rows = height.saturating_sub(*y).div_ceil(*step_y);
            let length = usize::try_from(1 + (u64::from(columns) * bits).div_ceil(8)).ok()?;
            (columns > 0 && rows > 0).then_some((length, rows))
        });
        Self { passes: passes.collect(), row: Vec::new(), has_ended: false }
    }

    /// Decompresses the next piece of pixels, and passes the rows that are complete. `None` if they are not valid.
    fn decompress(
        &mut self,
        stream: &mut Decompress,
        mut compressed: &[u8],
        taken: &mut impl FnMut(&mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let mut buffer = [0; 16 << 10];
        while !self.has_ended {
            let (before_in, before_out) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(compressed, &mut buffer, FlushDecompress::None).ok()?;
            let read = usize::try_from(stream.total_in() - before_in).ok()?;
            let given = usize::try_from(stream.total_out() - before_out).ok()?;
            compressed = &compressed[read..];
            self.add(&buffer[..given], taken)?;
            self.has_ended |= status == Status::StreamEnd;
            if read == 0 && given == 0 {
                break;
            }
        }
        Some(())
    }

    fn add(&mut self, mut pixels: &[u8], taken: &mut impl FnMut(&mut Vec<u8>) -> Option<()>) -> Option<()> {
        while !pixels.is_empty() {
            let Some((length, rows)) = self.passes.last_mut() else {
                // Like browsers, we ignore surplus pixels.
                self.has_ended = true;
                return Some(());
            };
            let (begin, rest) = pixels.split_at(pixels.len().min(*length - self.row.len()));
            self.row.extend_from_slice(begin);
            pixels = rest;
            // The byte of the filter.
            if self.row[0] > 4 {
                return None;
            }
            if self.row.len() == *length {
                taken(&mut self.row)?;
                self.row.clear();
                *rows -= 1;
                if *rows == 0 {
                    self.passes.pop();
                }
            }
        }
        Some(())
    }

    fn are_complete(&self) -> bool {
        self.has_ended && self.passes.is_empty()
    }
}
