//! Scales pictures down to small squares, for avatars.

use image_webp::{ColorType, WebPEncoder};

use super::picture::{Kind, decoded};
use super::png;

/// The available sizes of small pictures, in pixels.
const SIDES: [u32; 3] = [64, 96, 192];

/// The smallest available size for a picture that is shown with `size` pixels. `None` if only the full picture is large enough.
pub fn side_for(size: u32) -> Option<u32> {
    SIDES.into_iter().find(|side| size <= *side)
}

/// The centre of a picture as a square WebP with this side. `None` if the result saves little or could look different in a
/// browser: if the picture is less than twice as large, is a PNG of a rare kind, is animated, or has Exif data, which may rotate
/// it.
pub fn square(bytes: &[u8], side: u32) -> Option<Vec<u8>> {
    // Chunk names of Exif data and animations.
    const OTHERWISE: [&[u8; 4]; 5] = [b"Exif", b"eXIf", b"EXIF", b"acTL", b"ANIM"];
    if bytes.windows(4).any(|bytes| OTHERWISE.iter().any(|mark| bytes == *mark)) {
        return None;
    }
    let (picture, pixels) = decoded(bytes).ok()?;
    let mut square = Square::of(picture.width, picture.height, side)?;
    match picture.kind {
        Kind::Png => png::rows(bytes, |row| square.add_row(row.as_chunks().0.iter().copied()))?,
        Kind::Jpeg | Kind::WebP | Kind::Gif => {
            let row = usize::try_from(picture.width).ok()?;
            let channels = pixels.len() / row / usize::try_from(picture.height).ok()?;
            for row in pixels.chunks_exact(row * channels) {
                square.add_row(row.chunks_exact(channels).map(png::rgba));
            }
        }
    }
    let mut small = Vec::new();
    WebPEncoder::new(&mut small).encode(&square.pixels(), side, side, ColorType::Rgba8).ok()?;
    (small.len() < bytes.len()).then_some(small)
}

/// Sums up the pixels of the picture's centre for each pixel of the square.
struct Square {
    side: u32,
    /// The side of the centre, in pixels of the picture.
    whole: u32,
    /// The position of the centre in the picture.
    left: u32,
    top: u32,
    /// The next row of the picture.
    row: u32,
    /// Red, green and blue, each multiplied by opacity; opacity; number of pixels.
    sums: Vec<[u32; 5]>,
}

impl Square {
    fn of(width: u32, height: u32, side: u32) -> Option<Self> {
        let whole = width.min(height);
        let sums = vec![[0; 5]; usize::try_from(side * side).ok()?];
        (whole >= 2 * side).then(|| Self { side, whole, left: (width - whole) / 2, top: (height - whole) / 2, row: 0, sums })
    }

    /// Maps a row or column of the picture to the square. `None` if it is outside the centre.
    fn place(&self, at: u32, begin: u32) -> Option<usize> {
        let at = at.checked_sub(begin).filter(|at| *at < self.whole)?;
        usize::try_from(at * self.side / self.whole).ok()
    }

    fn add_row(&mut self, row: impl Iterator<Item = [u8; 4]>) {
        let y = self.place(self.row, self.top);
        self.row += 1;
        let Some(y) = y else { return };
        for (pixel, at) in row.zip(0..) {
            let Some(x) = self.place(at, self.left) else { continue };
            let [colours @ .., opacity] = pixel.map(u32::from);
            let sums = &mut self.sums[y * self.side as usize + x];
            for (sum, colour) in sums.iter_mut().zip(colours) {
                *sum += colour * opacity;
            }
            sums[3] += opacity;
            sums[4] += 1;
        }
    }

    fn pixels(&self) -> Vec<u8> {
        let pixel = |[red, green, blue, opacity, count]: [u32; 5]| {
            let colour = |sum: u32| sum.checked_div(opacity).unwrap_or_default();
            [colour(red), colour(green), colour(blue), opacity.checked_div(count).unwrap_or_default()]
        };
        self.sums.iter().flat_map(|sums| pixel(*sums)).map(|value| u8::try_from(value).unwrap_or(u8::MAX)).collect()
    }
}
