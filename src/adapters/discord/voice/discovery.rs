//! Asks the voice server for our external address (Discord's documentation, "IP Discovery").

use std::net::IpAddr;

const LENGTH: usize = 74;
/// The length in the header, which does not count the fields for type and length.
const STATED_LENGTH: u16 = 70;
const ADDRESS: std::ops::Range<usize> = 8..72;
const REQUEST: u16 = 1;
const ANSWER: u16 = 2;

/// Builds the request for the stream with this SSRC.
pub fn request(ssrc: u32) -> Vec<u8> {
    let mut request = Vec::with_capacity(LENGTH);
    request.extend(REQUEST.to_be_bytes());
    request.extend(STATED_LENGTH.to_be_bytes());
    request.extend(ssrc.to_be_bytes());
    request.resize(LENGTH, 0);
    request
}

/// Parses the external address and port from the answer for the stream with this SSRC.
pub fn answer(datagram: &[u8], ssrc: u32) -> Option<(IpAddr, u16)> {
    let datagram: &[u8; LENGTH] = datagram.try_into().ok()?;
    let head = [ANSWER.to_be_bytes(), STATED_LENGTH.to_be_bytes()].concat();
    if datagram[..4] != head || datagram[4..8] != ssrc.to_be_bytes() {
        return None;
    }
    let text = datagram[ADDRESS].split(|&byte| byte == 0).next()?;
    let address = std::str::from_utf8(text).ok()?.parse().ok()?;
    let port = u16::from_be_bytes([datagram[72], datagram[73]]);
    (port != 0).then_some((address, port))
}
