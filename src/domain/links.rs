//! Finds the end of a URL in a text.

/// The end of a URL whose rest begins at `start`. It ends before white space, a quotation mark, an angle bracket, punctuation of a script without
/// spaces, or a closing parenthesis without an opening one.
pub(crate) fn link_end(text: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (distance, c) in text[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' | '<' | '>' | '"' | '“' | '”' | '„' | '«' | '»' => return start + distance,
            '\u{3000}'..='\u{303f}'
            | '，'
            | '；'
            | '：'
            | '？'
            | '！'
            | '…'
            | '～'
            | '（'
            | '）'
            | '［'
            | '］'
            | '｛'
            | '｝'
            | '｡'
            | '､'
            | '｢'
            | '｣' => {
                return start + distance;
            }
            c if c.is_whitespace() => return start + distance,
            _ => {}
        }
    }
    text.len()
}

/// The length of the URL at the beginning of a text, without punctuation after it, and its host. `before` is the character before the text.
pub(crate) fn web_address(before: Option<char>, text: &str) -> Option<(usize, &str)> {
    if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let begins = |start: &&str| text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
    let start = ["https://", "http://", "www."].into_iter().find(begins)?.len();
    if !text[start..].starts_with(char::is_alphanumeric) {
        return None;
    }
    let address =
        text[..link_end(text, start)].trim_end_matches(['.', ',', ':', ';', '!', '?', '*', '_', '~', '`', '\'', ']', '}']);
    let rest = address.get(if start == 4 { 0 } else { start }..)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = |host: &&str| host.starts_with(char::is_alphanumeric);
    let host = authority.rsplit('@').next().filter(is_host).unwrap_or(authority).split(':').next().unwrap_or_default();
    Some((address.len(), host.strip_prefix("www.").filter(is_host).unwrap_or(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_before_what_surrounds_it() {
        for (address, after, host) in [
            ("https://example.org/docs/start?lang=en&x=%20y#top", " for", "example.org"),
            ("https://en.wikipedia.org/wiki/Rust_(game)", ") and", "en.wikipedia.org"),
            ("HTTP://www.example.org", ".", "example.org"),
            ("www.example.org/a", ", b", "example.org"),
            ("https://me@example.org:8080/a", "", "example.org"),
            ("https://example.org/a", "，谢谢", "example.org"),
            ("https://example.org/a", "」を", "example.org"),
            ("https://例え.jp/道", "。", "例え.jp"),
            ("http://127.0.0.1:7878", "", "127.0.0.1"),
            ("https://www", ".", "www"),
        ] {
            assert_eq!(web_address(None, &format!("{address}{after}")), Some((address.len(), host)), "{address}");
        }
        for text in ["https://", "https:///a", "www. x", "ftp://a.b", "example.org", "", "https://)"] {
            assert_eq!(web_address(None, text), None, "{text}");
        }
        assert_eq!(web_address(Some('x'), "https://a.b"), None);
    }
}
