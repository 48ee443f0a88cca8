//! Decompresses the gateway's messages: one zlib stream per connection, with bounded frames (Discord's documentation, "Gateway", "Transport
//! Compression").

use flate2::{Decompress, FlushDecompress, Status};

use super::frame::MAX_FRAME_BYTES;

/// The end of a frame's last message (RFC 1951, an empty stored block).
const END: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// The step size of the buffer, in bytes.
const ROOM: usize = 32 * 1024;

/// The zlib stream of one connection.
pub struct Inflate {
    stream: Decompress,
    /// The decompressed part of the current frame.
    frame: Vec<u8>,
    /// The last four bytes received.
    tail: [u8; 4],
}

/// The stream is invalid, or a frame is too long. The rest of the stream cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled;

impl Inflate {
    pub fn new() -> Self {
        Self { stream: Decompress::new(true), frame: Vec::new(), tail: [0xff; 4] }
    }

    /// Decompresses a message. Returns its frame, or `None` if the frame continues in the next message.
    ///
    /// # Errors
    /// See [`Garbled`].
    pub fn decompress(&mut self, message: &[u8]) -> Result<Option<String>, Garbled> {
        self.inflate(message)?;
        for byte in &message[message.len().saturating_sub(END.len())..] {
            self.tail.rotate_left(1);
            self.tail[END.len() - 1] = *byte;
        }
        if self.tail != END {
            return Ok(None);
        }
        String::from_utf8(std::mem::take(&mut self.frame)).map(Some).map_err(|_| Garbled)
    }

    fn inflate(&mut self, mut message: &[u8]) -> Result<(), Garbled> {
        loop {
            if self.frame.len() >= MAX_FRAME_BYTES {
                return Err(Garbled);
            }
            if self.frame.len() == self.frame.capacity() {
                self.frame.reserve(ROOM);
            }
            let (consumed_before, length_before) = (self.stream.total_in(), self.frame.len());
            let status = self.stream.decompress_vec(message, &mut self.frame, FlushDecompress::Sync).map_err(|_| Garbled)?;
            let consumed = usize::try_from(self.stream.total_in() - consumed_before).map_err(|_| Garbled)?;
            message = message.get(consumed..).ok_or(Garbled)?;
            let is_done = message.is_empty() && self.frame.len() < self.frame.capacity();
            let is_stuck = consumed == 0 && self.frame.len() == length_before;
            match status {
                _ if is_done && !matches!(status, Status::StreamEnd) => return Ok(()),
                // Discord never ends the stream. If it ended, the connection would wait forever for the next frame.
                Status::StreamEnd => return Err(Garbled),
                Status::Ok | Status::BufError if is_stuck => return Err(Garbled),
                Status::Ok | Status::BufError => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, FlushCompress};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_share_one_stream_and_may_be_split() {
        let (mut sender, mut inflate) = (Compress::new(Compression::default(), true), Inflate::new());
        let [first, second, third] =
            ["{\"op\":10}", "", "{\"op\":10}"].map(|text| deflated(&mut sender, text.as_bytes(), FlushCompress::Sync));

        assert_eq!(inflate.decompress(&first), Ok(Some("{\"op\":10}".to_owned())));
        assert!(matches!(inflate.decompress(&second), Ok(Some(empty)) if empty.is_empty()) || second.is_empty());
        for cut in 1..third.len() {
            let mut again = Inflate::new();
            again.decompress(&first).unwrap();
            again.decompress(&second).unwrap();

            assert_eq!(again.decompress(&third[..cut]), Ok(None), "{cut}");
            assert_eq!(again.decompress(&third[cut..]), Ok(Some("{\"op\":10}".to_owned())), "{cut}");
        }
    }

    #[test]
    fn a_stream_that_ends_is_garbled() {
        let mut ended = deflated(&mut Compress::new(Compression::default(), true), b"{\"op\":10}", FlushCompress::Finish);
        ended.extend(END);

        assert_eq!(Inflate::new().decompress(&ended), Err(Garbled));
    }

    #[test]
    fn an_overlong_frame_is_refused_before_it_fills_the_memory() {
        let bomb = deflated(&mut Compress::new(Compression::best(), true), &vec![b'x'; MAX_FRAME_BYTES * 2], FlushCompress::Sync);
        let mut inflate = Inflate::new();

        assert_eq!(inflate.decompress(&bomb), Err(Garbled));
        assert!(bomb.len() < 1_000_000 && inflate.frame.capacity() <= MAX_FRAME_BYTES * 2, "{}", inflate.frame.capacity());
    }

    #[test]
    fn invalid_utf8_is_garbled() {
        let bytes = deflated(&mut Compress::new(Compression::default(), true), &[0xff, 0xfe], FlushCompress::Sync);

        assert_eq!(Inflate::new().decompress(&bytes), Err(Garbled));
    }

    proptest! {
        #[test]
        fn no_input_causes_a_panic_or_an_endless_loop(
            text in ".{0,200}",
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut message = deflated(&mut Compress::new(Compression::default(), true), text.as_bytes(), FlushCompress::Sync);
            let index = at.index(message.len());
            message[index] = byte;
            message.extend(&noise);
            message.extend(END);

            // Both calls return.
            let _ = Inflate::new().decompress(&message);
            let _ = Inflate::new().decompress(&noise);
        }
    }

    fn deflated(stream: &mut Compress, bytes: &[u8], flush: FlushCompress) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 1_024);
        stream.compress_vec(bytes, &mut out, flush).unwrap();
        out
    }
}
