//! Parses server-sent events that are split into arbitrary chunks, in bounded memory.
//!
//! Format: <https://html.spec.whatwg.org/multipage/server-sent-events.html>. Only `data` is used, and whether an event is an error.

use serde::de::IgnoredAny;

use crate::adapters::endpoint::failure::Broken;

/// Longer events are rejected. Some servers send probabilities of many tokens with each word.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(in crate::adapters) struct Events {
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that were consumed.
    consumed: usize,
    /// The number of bytes at the start of the buffer that contain no further line ending.
    searched: usize,
    data: Option<Vec<u8>>,
    /// Whether the current event is named `error`.
    names_error: bool,
    is_error: bool,
    after_return: bool,
}

impl Events {
    /// Adds a chunk. Call this when [`Self::next`] returns nothing more.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.buffer.drain(..self.consumed);
        self.searched -= self.consumed;
        self.consumed = 0;
        if self.buffer.len() + self.data.as_ref().map_or(0, Vec::len) > MAX_EVENT_BYTES {
            return Err(Broken::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The data of the next complete event.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                self.is_error = std::mem::take(&mut self.names_error);
                if let Some(data) = self.data.take() {
                    return Some(data);
                }
            } else if let Some(data) = self.take_line(&line) {
                self.is_error = self.names_error;
                return Some(data);
            }
        }
    }

    /// The data of the last event at the end of the stream, if its final empty line is missing. Some servers omit that line.
    pub fn last(&mut self) -> Option<Vec<u8>> {
        let rest = self.buffer.split_off(self.consumed);
        let before = self.take_line(&rest);
        self.is_error = if before.is_some() { self.names_error } else { std::mem::take(&mut self.names_error) };
        before.or_else(|| self.data.take())
    }

    /// Whether the event that was returned last is named `error`.
    pub const fn is_error(&self) -> bool {
        self.is_error
    }

    /// Takes the next line. A line ends with `\n`, `\r\n` or `\r`. The `\n` of a `\r\n` may arrive in a later chunk.
    fn next_line(&mut self) -> Option<Vec<u8>> {
        if self.after_return && self.consumed < self.buffer.len() {
            self.after_return = false;
            if self.buffer[self.consumed] == b'\n' {
                self.consumed += 1;
            }
        }
        let from = self.searched.max(self.consumed);
        let Some(end) = self.buffer[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|end| from + end) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer[self.consumed..end].to_vec();
        self.after_return = self.buffer[end] == b'\r';
        self.consumed = end + 1;
        self.searched = self.consumed;
        Some(line)
    }

    /// Adds a line. If the data before it is already complete JSON and the line begins another event, returns that data. This handles servers that
    /// write no empty lines, or lines of bare JSON.
    fn take_line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if let Some(name) = line.strip_prefix(b"event:") {
            self.names_error = name.trim_ascii() == b"error";
        }
        // Some servers write a bare error object into the stream.
        let bare = || Some(line).filter(|line| line.starts_with(b"{"));
        let value = line.strip_prefix(b"data:").or_else(bare)?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let begins = value.starts_with(b"{") || value == b"[DONE]";
        let is_json = |data: &Vec<u8>| serde_json::from_slice::<IgnoredAny>(data).is_ok();
        let before = if begins { self.data.take_if(|data| is_json(data)) } else { None };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut events_read = Vec::new();
        for piece in pieces {
            events.feed(piece).expect("short");
            events_read.extend(std::iter::from_fn(|| events.next()));
        }
        events_read.extend(std::iter::from_fn(|| events.last()));
        events_read.into_iter().map(|data| String::from_utf8(data).expect("text")).collect()
    }

    #[test]
    fn comments_other_fields_and_all_line_endings_are_parsed() {
        let stream = b"\xef\xbb\xbf: hello\n\nevent: x\ndata: one\r\n\r\nid: 7\rdata:two\r\rdata: a\ndata: b\n\n";

        let events_read = read(&[stream]);

        assert_eq!(events_read, ["one", "two", "a\nb"]);
    }

    #[test]
    fn an_event_that_is_named_error_and_an_error_without_a_field_are_found() {
        let mut events = Events::default();
        events
            .feed(b"event: error\ndata: {\"message\": 1}\n\ndata: two\n\n{\"error\": 3}\n\nevent:error\ndata: 4")
            .expect("short");

        let mut read = Vec::new();
        while let Some(data) = events.next() {
            read.push((data, events.is_error()));
        }
        let last = events.last().expect("an event");
        read.push((last, events.is_error()));

        let expected: [(&[u8], bool); 4] =
            [(b"{\"message\": 1}", true), (b"two", false), (b"{\"error\": 3}", false), (b"4", true)];
        assert_eq!(read, expected.map(|(data, is_error)| (data.to_vec(), is_error)));
    }

    #[test]
    fn lines_of_json_are_events_without_empty_lines_or_fields() {
        for stream in [
            "data: {\"a\": 1}\ndata: {\"b\":\ndata: 2}\ndata: {\"c\": 3}\ndata: [DONE]",
            "{\"a\": 1}\n{\"b\":\ndata: 2}\n\n{\"c\": 3}\r\ndata: [DONE]\n",
        ] {
            assert_eq!(read(&[stream.as_bytes()]), ["{\"a\": 1}", "{\"b\":\n2}", "{\"c\": 3}", "[DONE]"], "{stream}");
        }
    }

    #[test]
    fn a_last_event_without_its_empty_line_counts() {
        let events_read = read(&[b"data: one\n\ndata: [DO", b"NE]"]);

        assert_eq!(events_read, ["one", "[DONE]"]);
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut events = Events::default();
        let piece = [b'x'; 64 * 1024];

        let fed = (0..100).take_while(|_| events.feed(&piece).is_ok() && events.next().is_none()).count();

        assert!(fed <= 17, "{fed} pieces were taken");
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(cuts in prop::collection::vec(0..60_usize, 0..8)) {
            let stream = "data: é1\r\n\r\n: c\n\ndata: zwei\ndata: 2\n\ndata: 3\r\rdata: [DONE]\n\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();

            prop_assert_eq!(read(&pieces), ["é1", "zwei\n2", "3", "[DONE]"]);
        }
    }
}
