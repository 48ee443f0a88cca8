//! The encryption between us and the voice server (Discord's documentation, "Transport Encryption Modes").
//!
//! The nonce is a 32-bit number. A packet ends with it. In the cipher's nonce, it comes first, followed by zeros.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use chacha20poly1305::aead::AeadInPlace as _;
use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305};

const TAG: usize = 16;
const NONCE: usize = 4;

/// An encryption mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The preferred mode.
    Aes256Gcm,
    /// The mode that every server offers.
    XChaCha20Poly1305,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Aes256Gcm, Self::XChaCha20Poly1305];

    /// The best of the offered modes that we support.
    pub fn choose<'a>(offered: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| offered.clone().any(|name| name == mode.name()))
    }

    /// The name in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aead_aes256_gcm_rtpsize",
            Self::XChaCha20Poly1305 => "aead_xchacha20_poly1305_rtpsize",
        }
    }
}

/// The cipher of a session, and its nonces.
pub struct Transport {
    cipher: Cipher,
    /// The nonce of the next packet. `None`: all are used up, which takes years.
    next: Option<u32>,
}

enum Cipher {
    Aes(Box<LessSafeKey>),
    XChaCha(Box<XChaCha20Poly1305>),
}

impl Transport {
    /// Returns `None` if the key is invalid.
    pub fn new(mode: Mode, key: &[u8; 32]) -> Option<Self> {
        let cipher = match mode {
            Mode::Aes256Gcm => Cipher::Aes(Box::new(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?))),
            Mode::XChaCha20Poly1305 => Cipher::XChaCha(Box::new(XChaCha20Poly1305::new(key.into()))),
        };
        Some(Self { cipher, next: Some(0) })
    }

    /// Decrypts a packet in place. Returns the plaintext and the nonce. `clear` is the length of the unencrypted header.
    pub fn open<'a>(&self, packet: &'a mut [u8], clear: usize) -> Option<(&'a [u8], u32)> {
        let (head, sealed) = packet.split_at_mut_checked(clear)?;
        let end = sealed.len().checked_sub(NONCE)?;
        let (sealed, nonce) = sealed.split_at_mut(end);
        let nonce = [nonce[0], nonce[1], nonce[2], nonce[3]];
        let opened = match &self.cipher {
            Cipher::Aes(key) => {
                let nonce = Nonce::assume_unique_for_key(padded(nonce));
                &*key.open_in_place(nonce, Aad::from(&*head), sealed).ok()?
            }
            Cipher::XChaCha(key) => {
                let end = sealed.len().checked_sub(TAG)?;
                let (body, tag) = sealed.split_at_mut(end);
                let nonce = padded::<24>(nonce);
                key.decrypt_in_place_detached(&nonce.into(), head, body, Tag::from_slice(tag)).ok()?;
                &*body
            }
        };
        Some((opened, u32::from_be_bytes(nonce)))
    }

    /// Encrypts a packet in place, except for its header.
    pub fn seal(&mut self, mut packet: Vec<u8>, header: usize) -> Option<Vec<u8>> {
        let number = self.next?;
        self.next = number.checked_add(1);
        let nonce = number.to_be_bytes();
        let (head, body) = packet.split_at_mut_checked(header)?;
        match &self.cipher {
            Cipher::Aes(key) => {
                let unique = Nonce::assume_unique_for_key(padded(nonce));
                let tag = key.seal_in_place_separate_tag(unique, Aad::from(&*head), body).ok()?;
                packet.extend_from_slice(tag.as_ref());
            }
            Cipher::XChaCha(key) => {
                let tag = key.encrypt_in_place_detached(&padded::<24>(nonce).into(), head, body).ok()?;
                packet.extend_from_slice(&tag);
            }
        }
        packet.extend_from_slice(&nonce);
        Some(packet)
    }
}

fn padded<const LENGTH: usize>(nonce: [u8; NONCE]) -> [u8; LENGTH] {
    let mut padded = [0; LENGTH];
    padded[..NONCE].copy_from_slice(&nonce);
    padded
}
