//! Keeps the frame numbers of a person's packets continuous across streams and connections.

use std::time::Duration;

use tokio::time::Instant;

/// Each stream starts at its own number. An offset makes a new stream continue after the previous one. The gap between them is measured by our
/// clock, in frames of 20 ms.
#[derive(Debug, Default)]
pub struct Numbers {
    current: Option<Stream>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// `None`: the connection that carried the stream has ended.
    line: Option<u64>,
    /// Added to the numbers of the stream's packets.
    offset: u32,
    /// The newest number that was returned.
    newest: u32,
    at: Instant,
}

impl Numbers {
    /// Returns the continuous number of a packet that arrived at `now`.
    pub fn of(&mut self, line: u64, number: u32, now: Instant) -> u32 {
        let offset = match self.current {
            Some(current) if current.line == Some(line) => current.offset,
            Some(current) => {
                let passed = now.saturating_duration_since(current.at).as_millis() / Duration::from_millis(20).as_millis();
                let next = current.newest.wrapping_add(u32::try_from(passed).unwrap_or(u32::MAX).max(1));
                next.wrapping_sub(number)
            }
            None => 0,
        };
        let number = number.wrapping_add(offset);
        let is_newer =
            self.current.is_none_or(|current| current.line != Some(line) || number.wrapping_sub(current.newest) < u32::MAX / 2);
        if is_newer {
            self.current = Some(Stream { line: Some(line), offset, newest: number, at: now });
        }
        number
    }

    /// Prepares for a new connection, which counts its lines from the start again.
    pub const fn reconnected(&mut self) {
        if let Some(current) = &mut self.current {
            current.line = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_when_another_stream_begins() {
        let (mut numbers, begin) = (Numbers::default(), Instant::now());
        let at = |frames: u32| begin + Duration::from_millis(20) * frames;
        assert_eq!(numbers.of(1, 700, at(0)), 700);
        assert_eq!(numbers.of(1, 702, at(2)), 702);
        assert_eq!(numbers.of(1, 701, at(3)), 701, "late");
        assert_eq!(numbers.of(2, 5, at(12)), 712, "ten frames later");
        assert_eq!(numbers.of(2, 6, at(13)), 713);
        assert_eq!(numbers.of(3, 9, at(13)), 714, "at once");
        numbers.reconnected();
        assert_eq!(numbers.of(3, 2, at(23)), 724, "over another connection");
    }
}
