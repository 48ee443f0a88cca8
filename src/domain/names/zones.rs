//! Finds the parts of a text in which names do not count: code, links, other addresses and quoted lines.

use std::ops::Range;

use super::super::links::link_end;
use super::is_word;

/// Top-level domains and file extensions. Words that are likely to begin a sentence after a missing space are left out.
const ENDINGS: &str = "ai app au biz br ca ch cloud cn com de dev edu eu example fr gg gov ie info internal io jp lan local localhost \
    net nl nz onion org pl pt ru test tv uk xyz bmp cfg conf cpp css csv db doc docx exe gif gz htm html ini java \
    jpeg jpg js json log md mp3 mp4 ogg pdf png py rs sh sql svg tar toml ts txt wav webm webp xlsx xml yaml";

/// The byte ranges of a text in which names are ignored, ascending.
///
/// These are code (`` `…` `` and ``` ``…`` ``` within a line; three or more backticks, or a line of tildes, up to the same again
/// or the end), links (`scheme://…`, `www.…`, the target of `[text](target)`), mail addresses, hosts, paths, short codes of emoji
/// (`:name:`) and quoted lines (`>`; `>>> ` quotes the whole rest, as in Discord). The search takes linear time.
#[derive(Debug, Default)]
pub(crate) struct Zones(Vec<Range<usize>>);

impl Zones {
    /// Finds the zones of a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut zones = Self::default();
        let mut at = 0;
        while at < text.len() {
            at = zones.line(text, at);
        }
        zones
    }

    /// Whether a range overlaps one of the zones.
    pub(crate) fn touch(&self, range: Range<usize>) -> bool {
        let after = self.0.partition_point(|zone| zone.end <= range.start);
        self.0.get(after).is_some_and(|zone| zone.start < range.end)
    }

    #[cfg(test)]
    pub(super) fn into_ranges(self) -> Vec<Range<usize>> {
        self.0
    }

    /// Reads the line that begins at `at`. Returns the start of the next one.
    fn line(&mut self, text: &str, at: usize) -> usize {
        let end = line_end(text, at);
        let line = text[at..end].trim_start();
        if line.starts_with(">>> ") {
            self.0.push(at..text.len());
            return text.len();
        }
        if line.starts_with('>') {
            self.0.push(at..end);
            return end + 1;
        }
        let tildes = run(line, 0, b'~');
        if tildes >= 3 {
            let close = tilde_close(text, end + 1, tildes);
            self.0.push(at..close);
            return close;
        }
        self.inline(text, at, end)
    }

    /// Reads code and links in a line. Returns the start of the next line to read. Code may span several lines.
    fn inline(&mut self, text: &str, start: usize, end: usize) -> usize {
        let (mut end, mut at, mut floor) = (end, start, start);
        let mut bracket = false;
        let mut parentheses: Option<Vec<Range<usize>>> = None;
        let bytes = text.as_bytes();
        while at < end {
            let locator = if is_locator_byte(bytes[at]) && (at == start || !is_locator_byte(bytes[at - 1])) {
                locator_end(text, at)
            } else {
                None
            };
            let zone = match bytes[at] {
                _ if locator.is_some() => locator.map(|close| at..close),
                b'`' => {
                    let ticks = run(text, at, b'`');
                    let close = tick_close(text, at + ticks, if ticks < 3 { end } else { text.len() }, ticks);
                    match close {
                        Some(close) => Some(at..close),
                        None if ticks >= 3 => Some(at..text.len()),
                        None => {
                            at += ticks;
                            continue;
                        }
                    }
                }
                b':' if text[at..].starts_with("://") => {
                    let scheme = scheme_start(text, floor, at);
                    (scheme < at).then(|| scheme..link_end(text, at + 3))
                }
                b':' if !text[..at].ends_with(is_word) => short_code_end(text, at).map(|close| at..close),
                b'w' | b'W' if bytes.get(at..at + 4).is_some_and(|four| four.eq_ignore_ascii_case(b"www.")) => {
                    let joined = text[..at].chars().next_back().is_some_and(is_word);
                    (!joined).then(|| at..link_end(text, at + 4))
                }
                b'[' => {
                    bracket = true;
                    None
                }
                b']' if bracket && bytes.get(at + 1) == Some(&b'(') => {
                    let pairs = parentheses.get_or_insert_with(|| pairs(text, at, end));
                    let index = pairs.binary_search_by_key(&(at + 1), |pair| pair.start);
                    index.ok().map(|index| pairs[index].clone())
                }
                _ => None,
            };
            let Some(zone) = zone else {
                at += 1;
                continue;
            };
            (at, floor) = (zone.end, zone.end);
            if at > end {
                end = line_end(text, at);
                parentheses = None;
            }
            self.0.push(zone);
        }
        end + 1
    }
}

/// Whether a byte may be part of a mail address, a host or a path.
const fn is_locator_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'@' | b'/' | b'\\' | b':' | b'~')
}

/// The end of the mail address, host or path that begins here.
fn locator_end(text: &str, at: usize) -> Option<usize> {
    let length = text.as_bytes()[at..].iter().take_while(|byte| is_locator_byte(**byte)).count();
    let locator = text[at..at + length].trim_end_matches(['.', ':', '-', '_', '~']);
    let is_locator = match locator.split_once('@') {
        Some((local, host)) => !local.is_empty() && host.contains('.'),
        None => !locator.contains("://") && (is_path(locator) || is_host(locator)),
    };
    is_locator.then(|| at + locator.len())
}

/// Whether this is an absolute path, or a relative path with folders and a file.
fn is_path(text: &str) -> bool {
    let is_drive = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && text[1..].starts_with(":\\");
    let (folders, file) = text.rsplit_once('/').unwrap_or_default();
    is_drive
        || ["~/", "./", "../", "\\\\"].iter().any(|root| text.starts_with(root))
        || folders.starts_with('/')
        || !folders.is_empty() && has_known_ending(file)
}

/// Whether this is a host, optionally with a port and a path, or a file name.
fn is_host(text: &str) -> bool {
    let host = text.split(['/', ':']).next().unwrap_or_default();
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    host.split('.').all(is_label) && has_known_ending(host)
}

fn has_known_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.split(' ').any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The end of the emoji short code that begins here.
fn short_code_end(text: &str, at: usize) -> Option<usize> {
    let length =
        text.as_bytes()[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(byte)).count();
    let close = at + 1 + length;
    (length > 0 && text.as_bytes().get(close) == Some(&b':')).then_some(close + 1)
}

/// The end of the line that contains `at`, without its line feed.
fn line_end(text: &str, at: usize) -> usize {
    text.as_bytes()[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length)
}

/// The length of the run of this byte from `at` on.
fn run(text: &str, at: usize, byte: u8) -> usize {
    text.as_bytes()[at..].iter().take_while(|other| **other == byte).count()
}

/// The end of the line that closes a tilde block, or the end of the text.
fn tilde_close(text: &str, mut at: usize, tildes: usize) -> usize {
    while at < text.len() {
        let end = line_end(text, at);
        if run(text[at..end].trim_start(), 0, b'~') >= tildes {
            return end;
        }
        at = end + 1;
    }
    text.len()
}

/// The end of the closing backticks: exactly as many as `ticks` for one and two, at least as many for more.
fn tick_close(text: &str, mut at: usize, end: usize, ticks: usize) -> Option<usize> {
    while let Some(distance) = text.as_bytes()[at..end].iter().position(|byte| *byte == b'`') {
        let found = run(text, at + distance, b'`');
        at += distance + found;
        if found == ticks || (ticks >= 3 && found > ticks) {
            return Some(at);
        }
    }
    None
}

/// The start of the URL scheme that ends before `end`. `end` itself if there is none.
fn scheme_start(text: &str, floor: usize, end: usize) -> usize {
    let part = &text.as_bytes()[floor..end];
    let length = part.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(byte)).count();
    let start = end - length;
    let digits = text.as_bytes()[start..end].iter().take_while(|byte| !byte.is_ascii_alphabetic()).count();
    start + digits
}

/// The pairs of parentheses in a part of a text, sorted by their start. Each range includes both parentheses.
fn pairs(text: &str, start: usize, end: usize) -> Vec<Range<usize>> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (distance, byte) in text.as_bytes()[start..end].iter().enumerate() {
        match byte {
            b'(' => open.push(start + distance),
            b')' => pairs.extend(open.pop().map(|first| first..start + distance + 1)),
            _ => {}
        }
    }
    pairs.sort_unstable_by_key(|pair| pair.start);
    pairs
}
