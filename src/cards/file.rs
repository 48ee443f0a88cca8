//! Extracts the JSON of a card from a file.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::{Map, Value};

use super::card::Card;
use super::not_a_card::{NotACard, NotRead};
use super::picture::Kind;
use super::png::{self, Chunk};
use super::salvage::{SalvageKind, Salvages};

/// The maximum size of a card file, in bytes. Cards with a picture of one or two megabytes are common.
pub const MAX_CARD_BYTES: usize = 8 << 20;
/// The maximum length of a card's JSON, in bytes.
pub const MAX_JSON_BYTES: usize = 4 << 20;
/// The maximum number of chunks that are tried per keyword. Some programs append a new chunk and leave the old one in place.
const MAX_CANDIDATES: usize = 4;
/// The keywords of card chunks in a PNG, in order of preference.
pub(super) const KEYWORDS: [&str; 2] = ["ccv3", "chara"];

/// Prefixes that some programs write before base64.
const DATA_URIS: [&[u8]; 2] = [b"data:application/json;base64,", b"data:text/plain;base64,"];

/// The prefix of the keywords of asset chunks in a PNG.
const ASSET: &str = "chara-ext-asset_";

/// Decodes base64 without padding, and ignores trailing bits.
const LOOSE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads a character card: JSON, or a PNG with JSON in it.
///
/// # Errors
/// Returns an error if the file is not a card. The error names the kind of file and what to do.
pub fn read(bytes: &[u8]) -> Result<Card, NotACard> {
    if bytes.len() > MAX_CARD_BYTES {
        return Err(NotACard::TooLarge { bytes: bytes.len(), most: MAX_CARD_BYTES });
    }
    if png::is_png(bytes) {
        return from_png(bytes);
    }
    let other = |what| Err(NotACard::Other { what });
    match (Kind::of(bytes), bytes) {
        (Some(Kind::Jpeg), _) => other(NotRead::Jpeg),
        (Some(Kind::WebP), _) => other(NotRead::WebP),
        (_, [b'G', b'I', b'F', b'8', ..]) => other(NotRead::Gif),
        (_, [b'P', b'K', 3 | 5, 4 | 6, ..]) => other(NotRead::Archive),
        _ => from_text(bytes),
    }
}

fn from_text(bytes: &[u8]) -> Result<Card, NotACard> {
    if bytes.len() > MAX_JSON_BYTES {
        return Err(NotACard::TextTooLong { most: MAX_JSON_BYTES });
    }
    let mut salvages = Salvages::default();
    let text = utf8(bytes, &mut salvages);
    match text.trim_start().chars().next() {
        None => Err(NotACard::Empty),
        Some('{' | '"') => {
            let object = json(&text, &mut salvages).map_err(|what| NotACard::NotJson { what })?;
            Card::of(object, salvages)
        }
        Some('[') => Err(NotACard::Other { what: NotRead::OtherJson }),
        Some(_) => Err(NotACard::Other { what: NotRead::Other }),
    }
}

/// Reads the best chunk that can be parsed: `ccv3` before `chara`, and the first of several with the same keyword.
fn from_png(png: &[u8]) -> Result<Card, NotACard> {
    let mut salvages = Salvages::default();
    let chunks: Vec<Chunk<'_>> = png::chunks(png).filter(Chunk::is_text).collect();
    let mut failure = None;
    for keyword in KEYWORDS {
        let named = chunks.iter().filter(|chunk| chunk.keyword().as_deref() == Some(keyword));
        for chunk in named.take(MAX_CANDIDATES) {
            let mut inside = salvages.clone();
            let card = from_chunk(chunk, &mut inside).and_then(|object| {
                if !png::has_end(png) {
                    inside.file(SalvageKind::CutOff);
                }
                Card::of(object, inside)
            });
            match card {
                Ok(card) => {
                    let is_asset = |chunk: &&Chunk<'_>| chunk.keyword().is_some_and(|keyword| keyword.starts_with(ASSET));
                    let embedded_assets = chunks.iter().filter(is_asset).count();
                    return Ok(Card { picture: Some(png::without_texts(png)), embedded_assets, ..card });
                }
                Err(error) => {
                    salvages.file(SalvageKind::UnreadableChunk);
                    failure.get_or_insert(error);
                }
            }
        }
    }
    let absent = if png::has_end(png) { NotACard::NoCharacter } else { NotACard::CutOff };
    Err(failure.unwrap_or(absent))
}

fn from_chunk(chunk: &Chunk<'_>, salvages: &mut Salvages) -> Result<Map<String, Value>, NotACard> {
    // base64 needs four characters for three bytes, and some more for line breaks.
    let text = chunk.text(MAX_JSON_BYTES * 3 / 2).ok_or(NotACard::TextTooLong { most: MAX_JSON_BYTES })?;
    let encoded = DATA_URIS.iter().find_map(|uri| text.strip_prefix(*uri)).unwrap_or(&text);
    let decoded = match decoded(encoded, salvages) {
        Some(decoded) => Cow::Owned(decoded),
        None if text.trim_ascii_start().starts_with(b"{") => {
            salvages.file(SalvageKind::PlainJson);
            text
        }
        None if !chunk.is_whole => return Err(NotACard::CutOff),
        None => return Err(NotACard::Unreadable { what: "it is not base64".to_owned() }),
    };
    if decoded.len() > MAX_JSON_BYTES {
        return Err(NotACard::TextTooLong { most: MAX_JSON_BYTES });
    }
    if chunk.is_whole && !chunk.checksum_is_right {
        salvages.file(SalvageKind::WrongChecksum);
    }
    let text = utf8(&decoded, salvages);
    json(&text, salvages).map_err(|what| if chunk.is_whole { NotACard::Unreadable { what } } else { NotACard::CutOff })
}

fn decoded(text: &[u8], salvages: &mut Salvages) -> Option<Vec<u8>> {
    if let Ok(decoded) = STANDARD.decode(text) {
        return Some(decoded);
    }
    let plain = text.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != 0).map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    });
    let decoded = LOOSE.decode(plain.collect::<Vec<u8>>()).ok()?;
    salvages.file(SalvageKind::LooseBase64);
    Some(decoded)
}

/// Decodes a text and removes its byte order mark. Text with a mark of UTF-16 is decoded as such. Other text that is not UTF-8 is
/// decoded as Latin-1, the original encoding of texts in a PNG.
pub(super) fn utf8<'a>(bytes: &'a [u8], salvages: &mut Salvages) -> Cow<'a, str> {
    let without_mark = bytes.strip_prefix(b"\xef\xbb\xbf");
    if without_mark.is_some() {
        salvages.file(SalvageKind::ByteOrderMark);
    }
    let unit = match bytes {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    if let Some(unit) = unit {
        salvages.file(SalvageKind::NotUtf8);
        let units: Vec<u16> = bytes[2..].as_chunks().0.iter().map(|pair| unit(*pair)).collect();
        return Cow::Owned(String::from_utf16_lossy(&units));
    }
    let bytes = without_mark.unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            salvages.file(SalvageKind::NotUtf8);
            Cow::Owned(bytes.iter().copied().map(char::from).collect())
        }
    }
}

/// The JSON object in a text. The object may also be encoded as a JSON string. The parser refuses JSON that is nested too deeply.
pub(super) fn json(text: &str, salvages: &mut Salvages) -> Result<Map<String, Value>, String> {
    let text = text.trim_end_matches(['\0', ' ', '\n', '\r', '\t']);
    if let Ok(inner) = serde_json::from_str::<String>(text) {
        salvages.file(SalvageKind::LooseJson);
        return serde_json::from_str(&inner).map_err(|error| error.to_string());
    }
    serde_json::from_str(text).or_else(|_| {
        let read = serde_json::from_str(&mended(text)).map_err(|error| error.to_string())?;
        salvages.file(SalvageKind::LooseJson);
        Ok(read)
    })
}

/// Repairs invalid JSON that some programs write: `NaN` and infinity become null, half of a surrogate pair becomes U+FFFD, and a
/// comma before a closing bracket is removed.
fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let (mut rest, mut is_in_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        let no_number = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
        let (length, written) = match (is_in_string, first, no_number) {
            (true, '\\', _) => escape(rest),
            (false, _, Some(word)) => (word.len(), "null"),
            (false, ',', _) if rest[1..].trim_start().starts_with([']', '}']) => (1, ""),
            _ => {
                is_in_string ^= first == '"';
                (first.len_utf8(), &rest[..first.len_utf8()])
            }
        };
        mended.push_str(written);
        rest = &rest[length..];
    }
    mended
}

/// The length of the escape at the beginning, and its repaired form.
fn escape(text: &str) -> (usize, &str) {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok();
    let length = match (unit(0), unit(6)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
        (Some(0xd800..=0xdfff), _) => return (6, "\\ufffd"),
        (Some(_), _) => 6,
        (None, _) => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
    };
    (length, &text[..length])
}
