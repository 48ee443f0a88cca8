//! What is a picture for a companion.

use super::*;
use crate::picture::{Kind, MAX_BYTES, MAX_SIDE, NotAPicture, Picture, check};
use crate::png::rgba;
use crate::small;

/// Real pictures, made with Pillow 13: 7 by 5 pixels, baseline and progressive JPEG, lossy and lossless WebP.
const JPEG: &[u8] = include_bytes!("pictures/baseline.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("pictures/progressive.jpg");
const LOSSY: &[u8] = include_bytes!("pictures/lossy.webp");
const LOSSLESS: &[u8] = include_bytes!("pictures/lossless.webp");

fn header_of(width: u32, height: u32, depth: u8, colour: u8, interlaced: u8) -> Chunk {
    (*b"IHDR", [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, interlaced]].concat())
}

fn png_with(header: Chunk, palette: bool, pixels: &[u8]) -> Vec<u8> {
    let palette = palette.then(|| (*b"PLTE", vec![1, 2, 3]));
    let rest = [(*b"IDAT", zlib(pixels)), (*b"IEND", Vec::new())];
    png_of(&[header].into_iter().chain(palette).chain(rest).collect::<Vec<_>>())
}

#[test]
fn whole_pictures_are_taken_with_their_size() {
    for (bytes, kind) in [(JPEG, Kind::Jpeg), (PROGRESSIVE, Kind::Jpeg), (LOSSY, Kind::WebP), (LOSSLESS, Kind::WebP)] {
        assert_eq!(check(bytes), Ok(Picture { kind, width: 7, height: 5 }));
    }
    assert_eq!(check(&small_png(&[], &[])), Ok(Picture { kind: Kind::Png, width: 2, height: 2 }));
    assert_eq!(check(&[&small_png(&[], &[])[..], b"more"].concat()).map(|picture| picture.kind), Ok(Kind::Png));
}

#[test]
fn a_picture_that_is_cut_off_is_refused() {
    for whole in [JPEG, PROGRESSIVE, LOSSY, LOSSLESS, &small_png(&[], &[])] {
        for end in 0..whole.len() {
            assert!(check(&whole[..end]).is_err(), "{:?} cut at {end}", Kind::of(whole));
        }
    }
}

#[test]
fn every_form_of_png_has_as_many_bytes_as_its_header_says() {
    // Of 3 by 5 pixels, the rows with the byte of their filter, whole and in the passes of Adam7, as counted by hand.
    let forms = [
        (1, 0, [2; 5], [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        (8, 0, [4; 5], [2, 2, 2, 2, 3, 2, 2, 2, 4, 4]),
        (8, 2, [10; 5], [4, 4, 4, 4, 7, 4, 4, 4, 10, 10]),
        (4, 3, [3; 5], [2, 2, 2, 2, 2, 2, 2, 2, 3, 3]),
        (16, 6, [25; 5], [9, 9, 9, 9, 17, 9, 9, 9, 25, 25]),
    ];
    for (depth, colour, plain, interlaced) in forms {
        for (interlace, rows) in [(0, &plain[..]), (1, &interlaced[..])] {
            let header = || header_of(3, 5, depth, colour, interlace);
            let pixels = vec![0; rows.iter().sum()];
            let is_whole = |pixels: &[u8]| check(&png_with(header(), colour == 3, pixels)).is_ok();

            assert!(is_whole(&pixels), "{depth} bits of colour {colour}, interlaced {interlace}");
            assert!(!is_whole(&pixels[1..]) && is_whole(&[&pixels[..], &[7]].concat()));
        }
    }
}

#[test]
fn a_png_that_breaks_its_own_rules_is_refused() {
    let row = [0; 7];
    let mut wrong_filter = [row, row].concat();
    wrong_filter[7] = 5;
    let broken = [
        png_with(header_of(2, 2, 8, 3, 0), false, &[0; 6]),
        png_with(header_of(2, 2, 3, 2, 0), false, &[0; 14]),
        png_with(header_of(2, 2, 8, 2, 2), false, &[0; 14]),
        png_with(header_of(0, 2, 8, 2, 0), false, &[]),
        png_with(header(2, 2), false, &wrong_filter),
        png_of(&[header(2, 2), (*b"IEND", Vec::new())]),
        png_of(&[(*b"IDAT", zlib(&row)), header(2, 2), (*b"IEND", Vec::new())]),
        png_of(&[header(2, 2), (*b"IDAT", b"no zlib".to_vec()), (*b"IEND", Vec::new())]),
        small_png(&[(*b"ABCD", Vec::new())], &[]),
        small_png(&[header(2, 2)], &[]),
    ];

    for png in broken {
        assert_eq!(check(&png), Err(NotAPicture::Damaged { kind: Kind::Png }));
    }
    let mut wrong_checksum = small_png(&[], &[]);
    let last = wrong_checksum.len() - 13;
    wrong_checksum[last] ^= 1;
    assert_eq!(check(&wrong_checksum), Err(NotAPicture::Damaged { kind: Kind::Png }));
}

#[test]
fn a_picture_that_is_too_large_is_refused_before_it_is_decoded() {
    let bomb = png_with(header(MAX_SIDE, MAX_SIDE), false, &vec![0; 32 << 20]);
    let mut jpeg = JPEG.to_vec();
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).expect("a frame");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let mut webp = LOSSLESS.to_vec();
    // Of 14 bits each: one less than width and height.
    webp[21..25].copy_from_slice(&(4_999_u32 | 4_999 << 14).to_le_bytes());

    assert!(bomb.len() < MAX_BYTES);
    assert_eq!(check(&bomb), Err(NotAPicture::TooManyPixels { width: MAX_SIDE, height: MAX_SIDE }));
    assert_eq!(check(&jpeg), Err(NotAPicture::TooManyPixels { width: 65_535, height: 65_535 }));
    assert_eq!(check(&webp), Err(NotAPicture::TooManyPixels { width: 5_000, height: 5_000 }));
    assert_eq!(check(&vec![0; MAX_BYTES + 1]), Err(NotAPicture::TooLarge { bytes: MAX_BYTES + 1, most: MAX_BYTES }));
}

#[test]
fn a_jpeg_of_countless_scans_is_refused() {
    let scan = PROGRESSIVE.windows(2).rposition(|marker| marker == [0xff, 0xda]).expect("a scan");
    let last = &PROGRESSIVE[scan..PROGRESSIVE.len() - 2];
    let many = [&PROGRESSIVE[..scan], &last.repeat(200), &[0xff, 0xd9]].concat();

    assert_eq!(check(&many), Err(NotAPicture::Damaged { kind: Kind::Jpeg }));
}

#[test]
fn what_is_no_picture_is_told_with_the_way_out() {
    for bytes in [&b""[..], b"GIF89a", b"BM......", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", b"RIFF....WAVE"] {
        let error = check(bytes).expect_err("it is no picture");
        assert_eq!(error.to_string(), "this is not a picture: give a PNG, a JPEG or a WebP");
    }
}

/// The small square of a picture, with so much behind its end that it saves something.
fn small_of(picture: &[u8], side: u32) -> Option<Vec<u8>> {
    small::square(&[picture, &[0; 1_000]].concat(), side)
}

/// The pixels of a small square.
fn pixels_of(square: &[u8]) -> Vec<[u8; 4]> {
    let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(square)).expect("a WebP");
    let mut pixels = vec![0; decoder.output_buffer_size().expect("it is small")];
    decoder.read_image(&mut pixels).expect("it is whole");
    pixels.chunks_exact(if decoder.has_alpha() { 4 } else { 3 }).map(rgba).collect()
}

#[test]
fn the_middle_of_a_picture_is_made_small() {
    // Two colours beside each other, in rows with each filter.
    let rows = |a: [u8; 3], b: [u8; 3]| {
        let difference = |of: [u8; 3], other: [u8; 3]| [0, 1, 2].map(|at| of[at].wrapping_sub(other[at]));
        let half = |one: [u8; 3], other: [u8; 3]| [0, 1, 2].map(|at| one[at].midpoint(other[at]));
        let row = |filter: u8, left: [[u8; 3]; 5], right: [[u8; 3]; 5]| {
            [&[filter][..], left.as_flattened(), right.as_flattened()].concat()
        };
        let (none, first) = ([[0; 3]; 5], |one| [one, [0; 3], [0; 3], [0; 3], [0; 3]]);
        let average = row(3, first(difference(a, half([0; 3], a))), first(difference(b, half(a, b))));
        [row(0, [a; 5], [b; 5]), row(1, first(a), first(difference(b, a))), row(2, none, none), average, row(4, none, none)]
            .concat()
    };
    let [red, green, blue, grey] = [[200, 1, 0], [0, 101, 0], [0, 3, 50], [9, 9, 9]];
    let png = png_with(header(10, 10), false, &[rows(red, green), rows(blue, grey)].concat());

    let square = small_of(&png, 2).expect("it is smaller");

    assert_eq!(pixels_of(&square), [red, green, blue, grey].map(|colour| rgba(&colour)));
    // Only the middle of a broad one, and colours of a palette.
    let broad = png_with(header_of(9, 4, 8, 3, 0), true, &[0; 40]);
    assert_eq!(pixels_of(&small_of(&broad, 2).expect("it is smaller")), [[1, 2, 3, 255]; 4]);
    for picture in [JPEG, PROGRESSIVE, LOSSY, LOSSLESS] {
        let square = small_of(picture, 2).expect("it is smaller");
        assert_eq!(check(&square), Ok(Picture { kind: Kind::WebP, width: 2, height: 2 }));
    }
}

#[test]
fn opacity_weighs_the_colours_of_a_small_picture() {
    // Each row: white that is opaque, and black that is not.
    let row = [&[0][..], &[255; 4], &[0; 4], &[255; 4], &[0; 4]].concat();
    let png = png_with(header_of(4, 4, 8, 6, 0), false, &row.repeat(4));

    assert_eq!(pixels_of(&small_of(&png, 2).expect("it is smaller")), [[255, 255, 255, 127]; 4]);
}

#[test]
fn a_picture_is_sent_itself_where_a_small_one_might_look_otherwise() {
    let interlaced = png_with(header_of(8, 8, 8, 0, 1), false, &[0; 79]);
    let turned = [&JPEG[..2], b"\xff\xe1\x00\x08Exif\0\0", &JPEG[2..]].concat();

    for picture in [&interlaced[..], &turned] {
        assert!(check(picture).is_ok());
        assert_eq!(small_of(picture, 2), None);
    }
    assert_eq!(small_of(JPEG, 3), None);
    assert_eq!(small::square(&png_with(header_of(9, 4, 8, 3, 0), true, &[0; 40]), 2), None, "it would be larger");
    assert_eq!([1, 64, 65, 192, 193].map(small::side_for), [Some(64), Some(64), Some(96), Some(192), None]);
}
