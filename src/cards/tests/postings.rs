//! What is taken of a picture that somebody posts.

use std::io::Cursor;

use image_webp::{WebPDecoder, WebPEncoder};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use super::*;
use crate::picture::{Kind, NotAPicture};
use crate::posted::{Posted, posted, still};

const PROGRESSIVE: &[u8] = include_bytes!("pictures/progressive.jpg");
const WIDTH: usize = 24;
const HEIGHT: usize = 16;

/// A picture with a bright corner at the top left.
fn pixels(channels: usize) -> Vec<u8> {
    let pixel = |x: usize, y: usize| if x < 12 && y < 8 { [250, 240, 20, 255] } else { [20, 30, 90, 255] };
    (0..HEIGHT).flat_map(|y| (0..WIDTH).flat_map(move |x| pixel(x, y).into_iter().take(channels))).collect()
}

fn png(before: &[Chunk]) -> Vec<u8> {
    let rows: Vec<u8> = pixels(3).chunks(3 * WIDTH).flat_map(|row| [&[0], row].concat()).collect();
    let pixels = (*b"IDAT", zlib(&rows));
    png_of(&[&[header(24, 16)], before, &[pixels, (*b"IEND", Vec::new())]].concat())
}

fn jpeg() -> Vec<u8> {
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, 95);
    encoder.encode(&pixels(3), 24, 16, jpeg_encoder::ColorType::Rgb).unwrap();
    jpeg
}

/// A JPEG with further segments after its beginning.
fn jpeg_with(segments: &[(u8, &[u8])]) -> Vec<u8> {
    let written = segments
        .iter()
        .flat_map(|(marker, data)| [&[0xff, *marker][..], &u16::try_from(data.len() + 2).unwrap().to_be_bytes(), data].concat());
    [&[0xff, 0xd8][..], &written.collect::<Vec<_>>(), &jpeg()[2..]].concat()
}

fn webp() -> Vec<u8> {
    let mut webp = Vec::new();
    WebPEncoder::new(&mut webp).encode(&pixels(4), 24, 16, image_webp::ColorType::Rgba8).unwrap();
    webp
}

fn gif(frames: usize) -> Vec<u8> {
    let mut gif = Vec::new();
    let mut encoder = gif::Encoder::new(&mut gif, 24, 16, &[20, 30, 90, 250, 240, 20]).unwrap();
    for frame in 0..frames {
        let bright = |at: usize| u8::from(frame == 0 && at % WIDTH < 12 && at / WIDTH < 8);
        let indices: Vec<u8> = (0..WIDTH * HEIGHT).map(bright).collect();
        encoder.write_frame(&gif::Frame::from_indexed_pixels(24, 16, indices, None)).unwrap();
    }
    drop(encoder);
    gif
}

/// Exif data with the place where a picture was taken, turned like this.
fn exif(orientation: u16) -> Vec<u8> {
    let entry = [&[0x01, 0x12, 0, 3, 0, 0, 0, 1][..], &orientation.to_be_bytes(), &[0, 0]].concat();
    [b"MM\0*\0\0\0\x08\0\x01", &entry[..], b"\0\0\0\0Lisbon"].concat()
}

/// Red, green and blue of every pixel.
fn decoded(kind: Kind, bytes: &[u8]) -> Vec<[u8; 3]> {
    let rgb =
        |pixels: &[u8], channels: usize| pixels.chunks_exact(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    match kind {
        Kind::Png => {
            let mut rgba = Vec::new();
            crate::png::rows(bytes, |row| rgba.extend_from_slice(row)).unwrap();
            rgb(&rgba, 4)
        }
        Kind::Jpeg => rgb(&JpegDecoder::new(ZCursor::new(bytes)).decode().unwrap(), 3),
        Kind::WebP => {
            let mut decoder = WebPDecoder::new(Cursor::new(bytes)).unwrap();
            let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
            decoder.read_image(&mut pixels).unwrap();
            rgb(&pixels, if decoder.has_alpha() { 4 } else { 3 })
        }
        Kind::Gif => {
            let (kind, png) = still(Kind::Gif, bytes.to_vec()).unwrap();
            decoded(kind, &png)
        }
    }
}

/// The corner that is bright: columns from the left, rows from the top.
fn bright_corner(posted: &Posted) -> (usize, usize) {
    let (width, height) = (posted.width as usize, posted.height as usize);
    let pixels = decoded(posted.kind, &posted.bytes);
    let is_bright = |(x, y): &(usize, usize)| pixels[(y * (height - 5) + 2) * width + x * (width - 5) + 2][0] > 200;
    let corners: Vec<_> = [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().filter(is_bright).collect();
    let [corner] = corners[..] else { panic!("bright corners of {posted:?}: {corners:?}") };
    corner
}

#[test]
fn a_picture_without_metadata_keeps_its_bytes() {
    for bytes in [png(&[]), jpeg(), PROGRESSIVE.to_vec(), webp(), gif(3)] {
        let taken = posted(bytes.clone()).unwrap();

        assert!(taken.bytes == bytes, "{:?}", taken.kind);
    }
}

#[test]
fn metadata_goes_and_the_pixels_stay() {
    let xmp = gif(2);
    let xmp = [&xmp[..19], b"\x21\xff\x0bXMP DataXMP\x06Lisbon\0", b"\x21\xfe\x06Lisbon\0", &xmp[19..]].concat();
    let with_exif = [b"EXIF\x06\0\0\0Lisbon", &b"XMP \x06\0\0\0Lisbon"[..]].concat();
    let chunks = &webp()[12..];
    let extended = [&b"VP8X\x0a\0\0\0\x1c\0\0\0\x17\0\0\x0f\0\0"[..], chunks, &with_exif].concat();
    let length = u32::try_from(extended.len() + 4).unwrap().to_le_bytes();
    let extended = [&b"RIFF"[..], &length, b"WEBP", &extended].concat();
    let texts = [text_chunk("Comment", b"Lisbon"), (*b"eXIf", exif(1)), (*b"tIME", b"Lisbon1".to_vec())];
    let exif = [b"Exif\0\0", &exif(1)[..]].concat();
    let files = [
        png(&texts),
        jpeg_with(&[(0xe1, &exif), (0xed, b"Photoshop Lisbon"), (0xfe, b"Lisbon"), (0xe2, b"MPF\0Lisbon")]),
        [&jpeg()[..], b"a second picture taken in Lisbon"].concat(),
        xmp,
        extended,
    ];
    let plain = [png(&[]), jpeg(), jpeg(), gif(2), webp()];
    for (bytes, plain) in files.into_iter().zip(plain) {
        let taken = posted(bytes).unwrap();

        assert!(!taken.bytes.windows(6).any(|word| word == b"Lisbon"), "{:?}", taken.kind);
        assert_eq!((taken.width, taken.height), (24, 16));
        assert!(decoded(taken.kind, &taken.bytes) == decoded(taken.kind, &plain), "{:?}", taken.kind);
        assert_eq!(posted(taken.bytes.clone()).map(|again| again.bytes == taken.bytes), Ok(true), "{:?}", taken.kind);
    }
}

#[test]
fn a_picture_is_turned_as_its_exif_data_says() {
    // The corner where the top left one goes, for each orientation.
    let corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (1, 0), (1, 1), (0, 1)];
    for (orientation, corner) in (1..=8).zip(corners) {
        let exif = exif(orientation);
        let in_jpeg = [b"Exif\0\0", &exif[..]].concat();
        for bytes in [png(&[(*b"eXIf", exif.clone())]), jpeg_with(&[(0xe1, &in_jpeg)])] {
            let taken = posted(bytes).unwrap();

            assert_eq!(bright_corner(&taken), corner, "{:?} turned by {orientation}", taken.kind);
            assert_eq!((taken.width, taken.height), if orientation < 5 { (24, 16) } else { (16, 24) });
        }
    }
}

#[test]
fn the_first_frame_of_a_gif_is_a_png_with_the_same_pixels() {
    let (kind, bytes) = still(Kind::Gif, gif(3)).unwrap();

    let expected: Vec<[u8; 3]> = pixels(3).as_chunks().0.to_vec();
    assert!(kind == Kind::Png && decoded(kind, &bytes) == expected);
    assert_eq!(still(Kind::Jpeg, jpeg()), Some((Kind::Jpeg, jpeg())));
}

#[test]
fn bombs_are_refused_before_anything_is_decoded() {
    let wide = png_of(&[header(40_000, 40_000), (*b"IDAT", zlib(&vec![0; 1 << 20])), (*b"IEND", Vec::new())]);
    let huge = [&b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x11\0\x02\x11\0\x03\x11\0"[..], &jpeg()[2..]].concat();
    let cases = [
        (wide, NotAPicture::TooLong { width: 40_000, height: 40_000 }),
        (huge, NotAPicture::TooLong { width: 65_535, height: 65_535 }),
        (gif(5_000), NotAPicture::TooManyFrames { most: 1_000 }),
        (vec![0; (4 << 20) + 1], NotAPicture::TooLarge { bytes: (4 << 20) + 1, most: 4 << 20 }),
        (jpeg()[..60].to_vec(), NotAPicture::Damaged { kind: Kind::Jpeg }),
        (gif(2)[..40].to_vec(), NotAPicture::Damaged { kind: Kind::Gif }),
        (b"<svg onload=alert(1)>".to_vec(), NotAPicture::Unknown),
    ];
    for (bytes, refusal) in cases {
        assert_eq!(posted(bytes), Err(refusal));
    }
}
