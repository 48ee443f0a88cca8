//! Fuzzes the decoder with hostile packets: what it returns is whole frames, and a refused packet changes nothing for the next one.

use super::tests::{self, VECTORS};
use super::*;

/// Some packets after each other, each with its length (u16) before it.
pub(crate) fn streams() -> Vec<Vec<u8>> {
    VECTORS.iter().flat_map(|(_, bytes)| [40, 60].map(|first| tests::stream(bytes, first, 8))).collect()
}

/// Decodes a stream whose lengths may be wrong. The two highest bits of a length are half the number of frames that are lost before the
/// packet.
pub(crate) fn stream(bytes: &[u8]) {
    let (mut decoder, mut rest, mut number) = (Decoder::new().expect("a decoder"), bytes, 0_u32);
    while let Some((head, after)) = rest.split_first_chunk::<2>() {
        let head = u16::from_le_bytes(*head);
        let (packet, after) = after.split_at(after.len().min(usize::from(head & 0x3fff)));
        (rest, number) = (after, number.saturating_add(1 + u32::from(head >> 14) * 2));
        match decoder.decode(number, packet) {
            Ok(decoded) => {
                assert!(!packet.is_empty() && packet.len() <= MOST_BYTES);
                assert_eq!(decoded.samples.len(), HEARD_FRAME * (1 + decoded.concealed as usize));
                assert_eq!(decoded.first + decoded.concealed, number);
            }
            Err(error) => assert!(!matches!(error, PacketRefused::Late(_)) && error.to_string().len() < 200),
        }
    }
    number = number.saturating_add(1);
    let silence = decoder.decode(number, &[0xf8, 0xff, 0xfe]).map(|decoded| decoded.first + decoded.concealed);
    assert_eq!(silence, Ok(number), "what came before keeps a good packet from being decoded");
}
