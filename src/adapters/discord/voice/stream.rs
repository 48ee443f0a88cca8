//! One stream of packets: detects duplicates and late packets, and computes when each packet was captured.

use super::rtp::SAMPLES_PER_FRAME;

/// Packets this far behind the newest one are too late.
const WINDOW: i16 = 256;
/// The number of a stream's first packet. It leaves room for packets that were captured before it but arrive later.
const FIRST_NUMBER: i64 = 50;
const FRAME: i64 = SAMPLES_PER_FRAME as i64;

/// How a packet arrived, judged by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is ahead of all others.
    Newest,
    /// It arrived after newer packets.
    Overtaken,
    /// It had arrived before.
    Duplicate,
    /// It is too late.
    Late,
    /// The stream has restarted.
    Restarted,
}

/// The packets that have arrived, within a sliding window.
pub struct Window {
    newest: u16,
    /// Bit `n`: the packet `n` before the newest one has arrived.
    seen: [u64; WINDOW as usize / 64],
    /// The newest nonce of the transport. Each packet has its own nonce, so a replayed packet never has a newer one.
    nonce: u32,
    /// The nonce at which the stream restarted. Packets without a newer nonce are from before the restart.
    floor: Option<u32>,
    /// The sequence number that would confirm a restart.
    next_of_restart: Option<u16>,
}

impl Window {
    /// Starts with the first packet of a stream.
    pub fn new(sequence: u16, nonce: u32) -> Self {
        Self { newest: sequence, seen: [1, 0, 0, 0], nonce, floor: None, next_of_restart: None }
    }

    /// How many packets are missing between the newest packet and this one. Returns 0 after a jump beyond the window, which does not show how many
    /// packets were lost.
    pub fn skipped_by(&self, sequence: u16) -> u64 {
        let ahead = sequence.wrapping_sub(self.newest) as i16;
        if (1..=WINDOW).contains(&ahead) { u64::from(ahead.unsigned_abs()) - 1 } else { 0 }
    }

    /// Records an authenticated packet.
    pub fn record_packet(&mut self, sequence: u16, nonce: u32) -> Arrival {
        let is_newer_than = |than: u32| nonce.wrapping_sub(than) as i32 > 0;
        if self.floor.is_some_and(|floor| !is_newer_than(floor)) {
            return Arrival::Late;
        }
        let is_fresh = is_newer_than(self.nonce);
        let ahead = sequence.wrapping_sub(self.newest) as i16;
        let arrival = if ahead > 0 {
            self.shift(ahead.unsigned_abs().into());
            self.newest = sequence;
            self.mark(0);
            Arrival::Newest
        } else if ahead <= -WINDOW {
            // Two fresh packets in a row: the client has chosen another initial sequence number (RFC 3550, A.1).
            if is_fresh && self.next_of_restart == Some(sequence) {
                *self = Self { floor: Some(self.nonce), ..Self::new(sequence, nonce) };
                return Arrival::Restarted;
            }
            self.next_of_restart = is_fresh.then(|| sequence.wrapping_add(1));
            Arrival::Late
        } else if self.mark(ahead.unsigned_abs().into()) {
            Arrival::Overtaken
        } else {
            Arrival::Duplicate
        };
        if is_fresh {
            self.nonce = nonce;
        }
        arrival
    }

    /// Marks the packet at this distance behind the newest one. Returns whether it was unmarked.
    fn mark(&mut self, behind: usize) -> bool {
        let (word, bit) = (behind / 64, 1 << (behind % 64));
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    fn shift(&mut self, by: usize) {
        let (words, bits) = (by / 64, by % 64);
        for word in (0..self.seen.len()).rev() {
            let from = |back: usize| word.checked_sub(back).map_or(0, |from| self.seen[from]);
            let carried = if bits == 0 { 0 } else { from(words + 1) >> (64 - bits) };
            self.seen[word] = (from(words) << bits) | carried;
        }
    }
}

/// Computes the capture times of a stream's packets.
#[derive(Clone, Copy)]
pub struct CaptureClock {
    newest: u32,
    /// The position of the newest packet, in samples after the first one.
    position: i64,
}

impl CaptureClock {
    /// Starts with the first packet of a stream.
    pub const fn new(timestamp: u32) -> Self {
        Self { newest: timestamp, position: 0 }
    }

    /// The number of the packet with this timestamp, in frames. `None` if it was captured more than `FIRST_NUMBER`
    /// frames before the first packet, or if the number overflows.
    pub fn number(&mut self, timestamp: u32) -> Option<u32> {
        let ahead = i64::from(timestamp.wrapping_sub(self.newest) as i32);
        let position = self.position.checked_add(ahead)?;
        let number = u32::try_from((position + FRAME / 2).div_euclid(FRAME) + FIRST_NUMBER).ok()?;
        if ahead > 0 {
            (self.newest, self.position) = (timestamp, position);
        }
        Some(number)
    }

    /// Whether the timestamp of the newest packet is so far behind earlier ones that the client must have restarted.
    pub fn is_set_back(&self, timestamp: u32) -> bool {
        i64::from(timestamp.wrapping_sub(self.newest) as i32) < -FIRST_NUMBER * FRAME
    }
}
