//! Reads the packets of an Ogg file with one Opus stream (RFC 3533, RFC 7845). It allocates at most one packet.

use std::borrow::Cow;

/// The longest packet: 120 ms in frames of 2.5 ms, each of 1,275 bytes. No packet is longer (RFC 6716, section 3.2.1).
const MOST_PACKET_BYTES: usize = 48 * 1_277;
/// The longest header with comments and pictures that is skipped.
const MOST_TAGS_BYTES: usize = 256 * 1_024;
const PAGE_HEADER: usize = 27;
const CONTINUED: u8 = 1;
const FIRST: u8 = 2;

/// Why a file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is not Ogg with one Opus stream: {0}")]
pub struct Malformed(pub &'static str);

/// The audio packets of a file, in order. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
    /// The lacing values and the data of the current page that are not read yet.
    lacing: &'a [u8],
    data: &'a [u8],
    stream: Option<[u8; 4]>,
    is_broken: bool,
}

impl<'a> Packets<'a> {
    /// Reads the two headers of the stream.
    ///
    /// # Errors
    /// Returns an error if the file does not begin with them.
    pub fn of(file: &'a [u8]) -> Result<Self, Malformed> {
        let mut packets = Self { rest: file, lacing: &[], data: &[], stream: None, is_broken: false };
        let head = packets.packet(MOST_PACKET_BYTES)?.ok_or(Malformed("it is empty"))?;
        match *head {
            // Of other mappings of channels the packets hold several streams.
            [b'O', b'p', b'u', b's', b'H', b'e', b'a', b'd', 0..=15, 1 | 2, _, _, _, _, _, _, _, _, 0, ..] => {}
            _ => return Err(Malformed("it does not begin with the header of mono or stereo Opus")),
        }
        match packets.packet(MOST_TAGS_BYTES)? {
            Some(tags) if tags.starts_with(b"OpusTags") => Ok(packets),
            _ => Err(Malformed("its second packet is not the header with comments")),
        }
    }

    fn packet(&mut self, most: usize) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
        let mut whole: Cow<'a, [u8]> = Cow::Borrowed(&[]);
        let mut is_begun = false;
        loop {
            if self.lacing.is_empty() {
                if self.rest.is_empty() {
                    return if is_begun { Err(Malformed("it ends within a packet")) } else { Ok(None) };
                }
                self.page(is_begun)?;
                continue;
            }
            let full = self.lacing.iter().take_while(|length| **length == u8::MAX).count();
            let is_over = full < self.lacing.len();
            let (lacing, later) = self.lacing.split_at(full + usize::from(is_over));
            let length = lacing.iter().map(|length| usize::from(*length)).sum();
            // `page` has checked that the data are there.
            let (part, rest) = self.data.split_at_checked(length).ok_or(Malformed("a page is cut off"))?;
            (self.lacing, self.data) = (later, rest);
            if whole.len() + part.len() > most {
                return Err(Malformed("a packet is too long"));
            }
            if whole.is_empty() {
                whole = Cow::Borrowed(part)
            } else {
                whole.to_mut().extend_from_slice(part)
            }
            if is_over {
                return Ok(Some(whole));
            }
            is_begun = true;
        }
    }

    fn page(&mut self, continues: bool) -> Result<(), Malformed> {
        let cut_off = Malformed("a page is cut off");
        let (header, rest) = self.rest.split_at_checked(PAGE_HEADER).ok_or(cut_off)?;
        if !header.starts_with(b"OggS\0") {
            return Err(Malformed("a page does not begin with OggS"));
        }
        let (kind, stream) = (header[5], [header[14], header[15], header[16], header[17]]);
        let is_first = self.stream.is_none();
        if is_first != (kind & FIRST != 0) || *self.stream.get_or_insert(stream) != stream {
            return Err(Malformed("it has several streams"));
        }
        if continues != (kind & CONTINUED != 0) {
            return Err(Malformed("a page is missing"));
        }
        let (lacing, rest) = rest.split_at_checked(usize::from(header[26])).ok_or(cut_off)?;
        let length = lacing.iter().map(|length| usize::from(*length)).sum();
        (self.data, self.rest) = rest.split_at_checked(length).ok_or(cut_off)?;
        self.lacing = lacing;
        Ok(())
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Cow<'a, [u8]>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = if self.is_broken { Ok(None) } else { self.packet(MOST_PACKET_BYTES) };
        self.is_broken |= packet.is_err();
        packet.transpose()
    }
}
