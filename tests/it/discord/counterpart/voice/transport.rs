//! RTP packets and their transport encryption in the two modes that Discord still offers.
//!
//! <https://docs.discord.com/developers/topics/voice-connections#transport-encryption-and-sending-voice>,
//! <https://www.rfc-editor.org/rfc/rfc3550#section-5.1>

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{AeadInPlace as _, KeyInit as _};
use chacha20poly1305::XChaCha20Poly1305;

/// The payload type of Opus.
pub const OPUS: u8 = 0x78;
/// The Opus frame that stands for silence.
pub const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// The last bytes of an end-to-end encrypted frame.
const MAGIC_MARKER: [u8; 2] = [0xfa, 0xfa];
const TAG: usize = 16;
const NONCE: usize = 4;

/// A transport encryption mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Aes256Gcm,
    XChaCha20Poly1305,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aead_aes256_gcm_rtpsize",
            Self::XChaCha20Poly1305 => "aead_xchacha20_poly1305_rtpsize",
        }
    }
}

/// A key with its mode, and the count of packets that it encrypted.
#[derive(Clone)]
pub struct Cipher {
    mode: Mode,
    key: [u8; 32],
    sent: u32,
}

impl Cipher {
    pub fn new(mode: Mode, key: [u8; 32]) -> Self {
        Self { mode, key, sent: 0 }
    }

    /// Encrypts a body behind its header.
    pub fn seal(&mut self, header: &[u8], mut body: Vec<u8>) -> Vec<u8> {
        self.sent = self.sent.wrapping_add(1);
        let nonce = self.sent.to_be_bytes();
        let tag = match self.mode {
            Mode::Aes256Gcm => {
                let cipher = Aes256Gcm::new(&self.key.into());
                cipher.encrypt_in_place_detached(&padded::<12>(nonce).into(), header, &mut body)
            }
            Mode::XChaCha20Poly1305 => {
                let cipher = XChaCha20Poly1305::new(&self.key.into());
                cipher.encrypt_in_place_detached(&padded::<24>(nonce).into(), header, &mut body)
            }
        };
        let tag = tag.expect("a body of this length can be encrypted");
        [header, &body, &tag, &nonce].concat()
    }

    /// Decrypts a packet whose first `header` bytes are in clear. None: it is not authentic, or too short.
    pub fn open(&self, packet: &[u8], header: usize) -> Option<Vec<u8>> {
        let (header, rest) = packet.split_at_checked(header)?;
        let (rest, nonce) = rest.split_last_chunk::<NONCE>()?;
        let (body, tag) = rest.split_last_chunk::<TAG>()?;
        let mut body = body.to_vec();
        let opened = match self.mode {
            Mode::Aes256Gcm => {
                let cipher = Aes256Gcm::new(&self.key.into());
                cipher.decrypt_in_place_detached(&padded::<12>(*nonce).into(), header, &mut body, &(*tag).into())
            }
            Mode::XChaCha20Poly1305 => {
                let cipher = XChaCha20Poly1305::new(&self.key.into());
                cipher.decrypt_in_place_detached(&padded::<24>(*nonce).into(), header, &mut body, &(*tag).into())
            }
        };
        opened.ok().map(|()| body)
    }
}

/// The nonce of a packet, with zeros behind it.
fn padded<const LENGTH: usize>(nonce: [u8; NONCE]) -> [u8; LENGTH] {
    let mut padded = [0; LENGTH];
    padded[..NONCE].copy_from_slice(&nonce);
    padded
}

/// The parts of an RTP header that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub padded: bool,
    pub extended: bool,
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    /// How many bytes are in clear: with the sources, and with the first four bytes of an extension.
    pub length: usize,
}

impl Header {
    pub fn new(sequence: u16, timestamp: u32, ssrc: u32) -> Self {
        Self { padded: false, extended: false, sequence, timestamp, ssrc, length: 12 }
    }

    /// The header of an RTP packet with Opus. None: it is something else.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (fixed, _) = packet.split_first_chunk::<12>()?;
        let [flags, kind, s0, s1, t0, t1, t2, t3, ssrc @ ..] = *fixed;
        let extended = flags & 0x10 != 0;
        let length = 12 + 4 * usize::from(flags & 0x0f) + if extended { 4 } else { 0 };
        let is_opus = flags >> 6 == 2 && kind & 0x7f == OPUS && packet.len() >= length + TAG + NONCE;
        is_opus.then_some(Self {
            padded: flags & 0x20 != 0,
            extended,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes(ssrc),
            length,
        })
    }

    /// The part of a decrypted body without extension and padding. None: their lengths are wrong.
    pub fn payload<'a>(&self, packet: &[u8], mut body: &'a [u8]) -> Option<&'a [u8]> {
        if self.padded {
            let padding = usize::from(*body.last()?);
            body = body.get(..body.len().checked_sub(padding).filter(|_| padding > 0)?)?;
        }
        if self.extended {
            let words = u16::from_be_bytes([*packet.get(self.length - 2)?, *packet.get(self.length - 1)?]);
            body = body.get(4 * usize::from(words)..)?;
        }
        Some(body)
    }
}

/// An encrypted packet.
pub fn packet(cipher: &mut Cipher, header: Header, payload: &[u8]) -> Vec<u8> {
    let mut clear = vec![0x80, OPUS];
    clear.extend(header.sequence.to_be_bytes());
    clear.extend(header.timestamp.to_be_bytes());
    clear.extend(header.ssrc.to_be_bytes());
    cipher.seal(&clear, payload.to_vec())
}

/// Whether a frame looks end-to-end encrypted.
///
/// <https://daveprotocol.com/#magic-marker>
pub fn is_end_to_end(frame: &[u8]) -> bool {
    frame.len() > 11 && frame.ends_with(&MAGIC_MARKER)
}
