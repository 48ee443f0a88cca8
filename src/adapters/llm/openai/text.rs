//! Text whose characters may be split across chunks.

use std::fmt;

use serde::de::{Deserializer as _, Error, Visitor};
use serde_json::value::RawValue;

/// The text of a chunk. A character outside the basic plane is escaped as a surrogate pair, and the two surrogates may arrive in
/// different chunks. A single surrogate is encoded like a character here (WTF-8).
#[derive(Default)]
pub(super) struct Units(Vec<u8>);

impl Units {
    /// The string in a JSON value. Empty if the value is not a string.
    pub fn of(value: &RawValue) -> Self {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }

        // serde_json decodes a lone surrogate only into bytes.
        let is_string = value.get().starts_with('"');
        let mut decoder = serde_json::Deserializer::from_str(value.get());
        Self(if is_string { decoder.deserialize_bytes(Bytes).unwrap_or_default() } else { Vec::new() })
    }

    /// The JSON value itself.
    pub fn of_json(value: &RawValue) -> Self {
        Self(value.get().as_bytes().to_vec())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn append(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }
}

/// Joins surrogate pairs.
#[derive(Default)]
pub(super) struct Joiner {
    /// A high surrogate, whose low surrogate may arrive in the next chunk.
    high: Option<u32>,
}

impl Joiner {
    /// The text of the next chunk. Unpaired surrogates become a replacement character.
    pub fn push(&mut self, piece: &Units) -> String {
        let mut text = String::new();
        let mut rest = &piece.0[..];
        while !rest.is_empty() {
            let whole = rest.windows(3).position(is_half).unwrap_or(rest.len());
            if whole > 0 {
                text.extend(self.high.take().map(|_| char::REPLACEMENT_CHARACTER));
                text.push_str(&String::from_utf8_lossy(&rest[..whole]));
                rest = &rest[whole..];
                continue;
            }
            let half = 0xD000 | u32::from(rest[1] & 0x3F) << 6 | u32::from(rest[2] & 0x3F);
            rest = &rest[3..];
            match self.high.take() {
                Some(high) if half >= 0xDC00 => {
                    text.extend(char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (half - 0xDC00)));
                }
                before => {
                    text.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                    if half < 0xDC00 {
                        self.high = Some(half);
                    } else {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                }
            }
        }
        text
    }
}

/// Whether three bytes encode a surrogate (U+D800 to U+DFFF).
fn is_half(bytes: &[u8]) -> bool {
    matches!(bytes, [0xED, 0xA0..=0xBF, _])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(pieces: &[&str]) -> String {
        let mut joiner = Joiner::default();
        let unit = |json: &&str| Units::of(serde_json::from_str(json).expect("JSON"));
        pieces.iter().map(|piece| joiner.push(&unit(piece))).collect()
    }

    #[test]
    fn a_character_that_pieces_cut_in_two_is_whole() {
        for (pieces, expected) in [
            (&[r#""a\ud83d""#, r#""\ude00b""#][..], "a😀b"),
            (&[r#""\ud83d""#, r#""""#, r#""\ude00\ud83d\ude00""#], "😀😀"),
            (&[r#""\ud83d\ude00""#], "😀"),
            (&[r#""\ud83d""#, r#""b""#], "\u{fffd}b"),
            (&[r#""\ude00""#, r#""b""#], "\u{fffd}b"),
            (&[r#""\ud83d""#, r#""\ud83d""#, r#""\ude00""#], "\u{fffd}😀"),
            (&[r#""a\ud83d""#], "a"),
            (&["7", r#""é\n""#, "[]"], "é\n"),
        ] {
            assert_eq!(joined(pieces), expected, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn escapes_may_be_cut_anywhere(text in "[aé港😀🦋]{0,12}", cuts in prop::collection::vec(0..24_usize, 0..6)) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(units.len())).chain([0, units.len()]).collect();
            cuts.sort_unstable();
            let escaped = |part: &[u16]| format!("\"{}\"", part.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
            let pieces: Vec<_> = cuts.windows(2).map(|pair| escaped(&units[pair[0]..pair[1]])).collect();
            let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();

            prop_assert_eq!(joined(&pieces), text);
        }
    }
}
