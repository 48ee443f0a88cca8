//! Binary frames: one Opus packet of 20 ms with a small header.

use super::{MAX_FRAME_BYTES, MAX_PACKET_BYTES, Refused};

pub(super) const MICROPHONE: u8 = 1;
pub(super) const COMPANION: u8 = 2;

/// A packet of a person's microphone. The frame has the kind `1`, the number (u32, big-endian), and the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicrophoneFrame<'a> {
    /// The time of capture, in frames of 20 ms. It also advances while the microphone is muted.
    pub number: u32,
    /// The Opus packet, 1 to [`MAX_PACKET_BYTES`] bytes.
    pub packet: &'a [u8],
}

impl<'a> MicrophoneFrame<'a> {
    /// Reads a frame from the page.
    ///
    /// # Errors
    /// Returns an error if the frame is of another kind, has no packet, or is too long.
    pub fn read(frame: &'a [u8]) -> Result<Self, Refused> {
        let ([number], packet) = read(MICROPHONE, frame)?;
        Ok(Self { number, packet })
    }
}

/// A packet of a companion's speech. The frame has the kind `2`, the number (u32, big-endian), the reply (u32, big-endian), and
/// the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompanionFrame<'a> {
    /// The number of the packet in the reply, from 0. It is consecutive across a resume. A gap means that packets were dropped.
    pub number: u32,
    /// The number of the reply.
    pub reply: u32,
    /// The Opus packet, 1 to [`MAX_PACKET_BYTES`] bytes.
    pub packet: &'a [u8],
}

impl<'a> CompanionFrame<'a> {
    /// Reads a frame from the server.
    ///
    /// # Errors
    /// The same as for [`MicrophoneFrame::read`].
    pub fn read(frame: &'a [u8]) -> Result<Self, Refused> {
        let ([number, reply], packet) = read(COMPANION, frame)?;
        Ok(Self { number, reply, packet })
    }

    /// The frame to send.
    pub fn write(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(9 + self.packet.len());
        frame.push(COMPANION);
        frame.extend(self.number.to_be_bytes());
        frame.extend(self.reply.to_be_bytes());
        frame.extend(self.packet);
        frame
    }
}

/// The numbers in the header of a binary frame, and its packet.
fn read<const NUMBERS: usize>(kind: u8, frame: &[u8]) -> Result<([u32; NUMBERS], &[u8]), Refused> {
    let bytes = frame.len();
    if bytes > MAX_FRAME_BYTES {
        return Err(Refused::TooLong { bytes });
    }
    let (&found, mut rest) = frame.split_first().ok_or(Refused::TooShort { bytes })?;
    if found != kind {
        return Err(Refused::UnknownKind { kind: found });
    }
    let mut numbers = [0; NUMBERS];
    for number in &mut numbers {
        let (head, tail) = rest.split_first_chunk().ok_or(Refused::TooShort { bytes })?;
        *number = u32::from_be_bytes(*head);
        rest = tail;
    }
    match rest.len() {
        0 => Err(Refused::TooShort { bytes }),
        length if length > MAX_PACKET_BYTES => Err(Refused::TooLong { bytes }),
        _ => Ok((numbers, rest)),
    }
}
