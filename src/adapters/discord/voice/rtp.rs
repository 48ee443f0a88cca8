//! The headers of RTP packets (RFC 3550, 5.1) in Discord's `rtpsize` modes. The fixed header, the CSRCs and the extension's preamble are
//! authenticated; everything else is encrypted.

/// The payload type of audio.
const AUDIO: u8 = 120;
const VERSION: u8 = 2;
const FIXED: usize = 12;
/// The length of the authentication tag and the nonce at the end of a packet.
pub const TRAILER: usize = 20;
/// The length of a 20 ms frame on the RTP clock.
pub const SAMPLES_PER_FRAME: u32 = 960;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The length of the unencrypted part.
    pub clear: usize,
    /// The stream.
    pub ssrc: u32,
    /// The position in the stream.
    pub sequence: u16,
    /// The time of capture, in samples at 48 kHz.
    pub timestamp: u32,
    has_padding: bool,
    /// The length of the extension, without its preamble.
    extension: usize,
}

/// Why a datagram is no valid audio packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPacket {
    /// It has another purpose, such as the answer to a keepalive.
    NotAudio,
    /// It is shorter than its header demands.
    Malformed,
}

/// Parses the header of a datagram.
///
/// # Errors
/// Returns an error if the datagram is not an audio packet, or is too short.
pub fn parse(datagram: &[u8]) -> Result<Header, NoPacket> {
    let Some(fixed) = datagram.first_chunk::<FIXED>() else { return Err(NoPacket::NotAudio) };
    if fixed[0] >> 6 != VERSION || fixed[1] & 0x7f != AUDIO {
        return Err(NoPacket::NotAudio);
    }
    let has_extension = fixed[0] & 0x10 != 0;
    let clear = FIXED + 4 * usize::from(fixed[0] & 0x0f) + if has_extension { 4 } else { 0 };
    if datagram.len() <= clear + TRAILER {
        return Err(NoPacket::Malformed);
    }
    let extension = match has_extension {
        true => 4 * usize::from(u16::from_be_bytes([datagram[clear - 2], datagram[clear - 1]])),
        false => 0,
    };
    Ok(Header {
        clear,
        ssrc: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        sequence: u16::from_be_bytes([fixed[2], fixed[3]]),
        timestamp: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        has_padding: fixed[0] & 0x20 != 0,
        extension,
    })
}

impl Header {
    /// The payload of a decrypted packet, without padding and extension. Returns `None` if it is empty, or if their lengths are invalid.
    pub fn payload<'a>(&self, decrypted: &'a [u8]) -> Option<&'a [u8]> {
        let padding = match (self.has_padding, decrypted.last()) {
            (true, Some(0)) => return None,
            (true, Some(&padding)) => usize::from(padding),
            (true, None) => return None,
            (false, _) => 0,
        };
        let end = decrypted.len().checked_sub(padding)?;
        decrypted.get(self.extension..end).filter(|payload| !payload.is_empty())
    }
}

/// Builds the header of an outgoing packet.
pub fn header(ssrc: u32, sequence: u16, timestamp: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(FIXED + 256);
    header.extend([VERSION << 6, AUDIO]);
    header.extend(sequence.to_be_bytes());
    header.extend(timestamp.to_be_bytes());
    header.extend(ssrc.to_be_bytes());
    header
}
