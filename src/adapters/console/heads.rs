//! Inspects the heads of requests as they arrive, for input that hyper accepts but a proxy in front may read differently (request smuggling): lines
//! that end without a carriage return, more than one length, encodings other than `chunked`.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::connection::HEAD_BYTES;

/// What is wrong with a head.
pub(super) type Fault = &'static str;

const BARE_LINE_END: Fault = "a line of the request's head does not end with CR LF";
const MANY_LENGTHS: Fault = "the request has more than one Content-Length or Transfer-Encoding; send one";
const OTHER_ENCODING: Fault = "the request's Transfer-Encoding is not chunked; send it as chunked or with a Content-Length";

/// The result for one request's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadInfo {
    pub(super) fault: Option<Fault>,
    /// The inspection does not find where the next request begins. The connection must be closed after this response, unless it is upgraded.
    pub(super) is_last: bool,
}

/// The results for the heads of one connection that hyper has not passed on yet, in order.
#[derive(Clone, Default)]
pub(super) struct Heads(Arc<Mutex<VecDeque<HeadInfo>>>);

impl Heads {
    /// Takes the result for the next request's head.
    pub(super) fn next(&self) -> HeadInfo {
        self.0.lock().pop_front().unwrap_or_default()
    }
}

/// Inspects the requests of one connection as they are read.
pub(super) struct Inspector {
    heads: Heads,
    position: Position,
    head: Head,
}

/// What the next byte belongs to.
#[derive(Clone, Copy)]
enum Position {
    Head,
    /// A body of which this many bytes are still to come.
    Body(u64),
    /// Bytes that are not inspected any more.
    Rest,
}

/// A head, as far as it has been read.
#[derive(Default)]
struct Head {
    line: Vec<u8>,
    has_started: bool,
    bytes: usize,
    fault: Option<Fault>,
    length: Option<u64>,
    is_chunked: bool,
    is_upgrade: bool,
}

impl Inspector {
    /// The results are added to `heads`.
    pub(super) fn new(heads: Heads) -> Self {
        Self { heads, position: Position::Head, head: Head::default() }
    }

    /// Inspects the bytes that follow those before.
    pub(super) fn inspect(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.position {
                Position::Rest => return,
                Position::Body(left) => {
                    let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[skipped..];
                    let left = left - skipped as u64;
                    self.position = if left == 0 { Position::Head } else { Position::Body(left) };
                }
                Position::Head => {
                    let piece = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
                    let (line, rest) = bytes.split_at(piece);
                    bytes = rest;
                    if let Some(next) = self.head.add(line) {
                        let head = std::mem::take(&mut self.head);
                        let info = HeadInfo { fault: head.fault, is_last: matches!(next, Position::Rest) };
                        self.heads.0.lock().push_back(info);
                        self.position = next;
                    }
                }
            }
        }
    }
}

impl Head {
    /// Adds a line or a part of one. Returns what follows the head, once the head is complete.
    fn add(&mut self, part: &[u8]) -> Option<Position> {
        self.bytes += part.len();
        if self.bytes > 2 * HEAD_BYTES {
            // hyper does not read so much of a head, and refuses the request.
            return Some(Position::Rest);
        }
        self.line.extend_from_slice(part);
        let line = self.line.strip_suffix(b"\n")?;
        let line = line.strip_suffix(b"\r").unwrap_or_else(|| {
            self.fault.get_or_insert(BARE_LINE_END);
            line
        });
        if line.is_empty() && self.has_started {
            return Some(self.body());
        }
        if self.has_started {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let is_named = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is_named("content-length") {
                // hyper refuses a length that is not a number.
                let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                if self.length.replace(length.unwrap_or(u64::MAX)).is_some() || self.is_chunked {
                    self.fault.get_or_insert(MANY_LENGTHS);
                }
            } else if is_named("transfer-encoding") {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    self.fault.get_or_insert(OTHER_ENCODING);
                }
                if std::mem::replace(&mut self.is_chunked, true) || self.length.is_some() {
                    self.fault.get_or_insert(MANY_LENGTHS);
                }
            } else if is_named("upgrade") {
                self.is_upgrade = true;
            }
        }
        // Empty lines before a request are ignored.
        self.has_started |= !line.is_empty();
        self.line.clear();
        None
    }

    /// What follows the head.
    fn body(&self) -> Position {
        if self.fault.is_some() || self.is_chunked || self.is_upgrade {
            return Position::Rest;
        }
        match self.length {
            None | Some(0) => Position::Head,
            Some(left) => Position::Body(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: HeadInfo = HeadInfo { fault: None, is_last: false };
    const LAST: HeadInfo = HeadInfo { fault: None, is_last: true };

    /// The results for these requests, read in pieces of this size.
    fn inspected(requests: &str, piece: usize) -> Vec<HeadInfo> {
        let heads = Heads::default();
        let mut inspector = Inspector::new(heads.clone());
        requests.as_bytes().chunks(piece).for_each(|piece| inspector.inspect(piece));
        heads.0.lock().drain(..).collect()
    }

    fn fault(fields: &str) -> Option<Fault> {
        let found = inspected(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), 7);
        assert_eq!(found.len(), 1, "{fields:?}");
        found[0].fault
    }

    proptest! {
        #[test]
        fn requests_are_separated_whatever_the_size_of_the_reads(piece in 1_usize..200) {
            let requests = "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 9\r\n\r\na\nb\r\n\r\nc\n\
                            GET /c HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n\
                            POST /d HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\nGET /e HTTP/1.1\n\n";

            prop_assert_eq!(inspected(requests, piece), [PLAIN, PLAIN, PLAIN, LAST]);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
            let mut inspector = Inspector::new(Heads::default());
            bytes.chunks(piece).for_each(|piece| inspector.inspect(piece));
        }
    }

    #[test]
    fn a_head_that_can_be_read_in_two_ways_has_a_fault() {
        assert_eq!(fault("X: 1\n"), Some(BARE_LINE_END));
        assert_eq!(fault("Content-Length: 5\r\ncontent-length: 5\r\n"), Some(MANY_LENGTHS));
        assert_eq!(fault("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), Some(MANY_LENGTHS));
        assert_eq!(fault("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), Some(MANY_LENGTHS));
        assert_eq!(fault("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), Some(MANY_LENGTHS));
        for other in ["gzip, chunked", "chunked, chunked", "identity", "\"chunked\"", "", "chunked;q=1"] {
            assert_eq!(fault(&format!("Transfer-Encoding: {other}\r\n")), Some(OTHER_ENCODING), "{other}");
        }
        for right in ["Content-Length: 0\r\n", "transfer-encoding:CHUNKED\t\r\n", "X: Content-Length: 5\r\nContent-Length: 0\r\n"]
        {
            assert_eq!(fault(right), None, "{right}");
        }
    }

    #[test]
    fn nothing_is_inspected_after_an_upgrade_request() {
        assert_eq!(inspected("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\n\nGET / HTTP/1.1\n\n", 10), [LAST]);
    }
}
