//! Splits a text from Discord into plain text, code, links, and marks, which Discord displays in another form.

use super::snowflake::Snowflake;

/// The length limit of a mark, in bytes. Discord's longest mark is a command with a name of three times 32 characters.
const LONGEST_MARK: usize = 512;

/// A piece of a text. Concatenated, the pieces form the whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text, including other Markdown.
    Plain(&'a str),
    /// A backslash and the character that it escapes.
    Escaped(&'a str),
    /// Code, including its backticks. Its content is not interpreted.
    Code(&'a str),
    /// A link with `http://` or `https://`.
    Link(&'a str),
    /// A mark: its source text and its meaning.
    Mark(&'a str, Mark<'a>),
}

/// The meaning of a mark (Discord's documentation, "API Reference", "Message Formatting").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// `<@1>` and, from older clients, `<@!1>`.
    User(Snowflake),
    /// `<@&1>`
    Role(Snowflake),
    /// `<#1>`, also for a thread.
    Channel(Snowflake),
    /// `<:name:1>`, animated `<a:name:1>`.
    Emoji {
        /// 2 to 32 ASCII letters, digits and underscores.
        name: &'a str,
        id: Snowflake,
    },
    /// `<t:1618953630:R>`
    Time {
        /// Seconds since the Unix epoch.
        secs: i64,
        /// The display style. The default is `f`.
        style: char,
    },
    /// `</name:1>`, with subcommands `</name sub:1>`.
    Command(&'a str),
    /// `<id:customize>`: one of the guild's own pages.
    Page(&'a str),
}

/// Splits a text into pieces, in time proportional to its length.
///
/// Code is `` `…` `` or ``` ``…`` ``` within a line. Three or more backticks open code until as many again, or until the end.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    Pieces { rest: text, before: None, unclosed: [false; 2] }
}

impl<'a> Piece<'a> {
    /// The piece's source text.
    pub const fn text(&self) -> &'a str {
        match self {
            Self::Plain(text) | Self::Escaped(text) | Self::Code(text) | Self::Link(text) | Self::Mark(text, _) => text,
        }
    }
}

struct Pieces<'a> {
    rest: &'a str,
    before: Option<char>,
    /// Whether the rest of this line is known to have no further single backticks, and no further double ones.
    unclosed: [bool; 2],
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let mut at = 0;
        let bytes = self.rest.as_bytes();
        while at < bytes.len() {
            match self.special(at) {
                // The plain text before this piece is returned first.
                Ok(_) if at > 0 => return Some(Piece::Plain(self.consume_bytes(at))),
                Ok(piece) => {
                    self.consume_bytes(piece.text().len());
                    return Some(piece);
                }
                Err(plain) => at += plain,
            }
        }
        (at > 0).then(|| Piece::Plain(self.consume_bytes(at)))
    }
}

impl<'a> Pieces<'a> {
    fn consume_bytes(&mut self, length: usize) -> &'a str {
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.before = piece.chars().next_back().or(self.before);
        piece
    }

    /// The special piece at this position. If there is none, the number of bytes of plain text: at least one, and only whole
    /// characters.
    fn special(&mut self, at: usize) -> Result<Piece<'a>, usize> {
        let rest = &self.rest[at..];
        let first = rest.chars().next().ok_or(1_usize)?;
        match first {
            '\n' => {
                self.unclosed = [false; 2];
                Err(1)
            }
            '\\' => match rest.as_bytes().get(1) {
                Some(next) if next.is_ascii_punctuation() => Ok(Piece::Escaped(&rest[..2])),
                _ => Err(1),
            },
            '`' => self.code(rest).map(Piece::Code),
            '<' => mark(rest).map(|(text, mark)| Piece::Mark(text, mark)).ok_or(1),
            'h' => {
                let joined = self.rest[..at].chars().next_back().or(self.before).is_some_and(char::is_alphanumeric);
                let scheme = ["https://", "http://"].into_iter().find(|scheme| rest.starts_with(scheme)).ok_or(1_usize)?;
                let end = link_end(rest, scheme.len());
                if joined || end == scheme.len() { Err(1) } else { Ok(Piece::Link(&rest[..end])) }
            }
            _ => Err(first.len_utf8()),
        }
    }

    fn code(&mut self, rest: &'a str) -> Result<&'a str, usize> {
        let ticks = run(rest.as_bytes());
        if ticks >= 3 {
            self.unclosed = [false; 2];
            return Ok(&rest[..closing(&rest[ticks..], |found| found >= ticks).map_or(rest.len(), |end| ticks + end)]);
        }
        if self.unclosed[ticks - 1] {
            return Err(ticks);
        }
        let line_end = rest.find('\n').unwrap_or(rest.len());
        match closing(&rest[ticks..line_end], |found| found == ticks) {
            Some(end) => Ok(&rest[..ticks + end]),
            None => {
                self.unclosed[ticks - 1] = true;
                Err(ticks)
            }
        }
    }
}

/// The number of backticks at the start.
fn run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == b'`').count()
}

/// The end of the first run of backticks whose length satisfies `closes`.
fn closing(text: &str, closes: impl Fn(usize) -> bool) -> Option<usize> {
    let mut at = 0;
    while let Some(distance) = text[at..].find('`') {
        let found = run(&text.as_bytes()[at + distance..]);
        at += distance + found;
        if closes(found) {
            return Some(at);
        }
    }
    None
}

/// The end of a link: at white space, an angle bracket, a backtick, or a parenthesis that the link did not open.
fn link_end(text: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (distance, c) in text[start..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' | '<' | '>' | '`' => return start + distance,
            c if c.is_whitespace() => return start + distance,
            _ => {}
        }
    }
    text.len()
}

/// Parses a mark at the start of a text.
fn mark(text: &str) -> Option<(&str, Mark<'_>)> {
    let window = text.as_bytes().get(..LONGEST_MARK).unwrap_or(text.as_bytes());
    // Marks are not nested.
    let end = 1 + window[1..].iter().position(|byte| matches!(byte, b'>' | b'<' | b'\n'))?;
    if window[end] != b'>' {
        return None;
    }
    Some((&text[..=end], read_mark(&text[1..end])?))
}

fn read_mark(inside: &str) -> Option<Mark<'_>> {
    if let Some(rest) = inside.strip_prefix('@') {
        if let Some(role) = rest.strip_prefix('&') {
            return role.parse().ok().map(Mark::Role);
        }
        return rest.strip_prefix('!').unwrap_or(rest).parse().ok().map(Mark::User);
    }
    if let Some(channel) = inside.strip_prefix('#') {
        return channel.parse().ok().map(Mark::Channel);
    }
    if let Some(emoji) = inside.strip_prefix(':').or_else(|| inside.strip_prefix("a:")) {
        let (name, id) = emoji.split_once(':')?;
        return is_emoji_name(name).then_some(Mark::Emoji { name, id: id.parse().ok()? });
    }
    if let Some(time) = inside.strip_prefix("t:") {
        let (secs, style) = time.split_once(':').unwrap_or((time, "f"));
        let digits = secs.strip_prefix('-').unwrap_or(secs);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let mut styles = style.chars();
        let style = styles.next().filter(|style| style.is_ascii_alphabetic() && styles.next().is_none())?;
        return is_number.then_some(Mark::Time { secs: secs.parse().ok()?, style });
    }
    if let Some(command) = inside.strip_prefix('/') {
        let (name, id) = command.rsplit_once(':')?;
        id.parse::<Snowflake>().ok()?;
        return (!name.trim().is_empty() && !name.contains(':')).then_some(Mark::Command(name));
    }
    let page = inside.strip_prefix("id:")?;
    let is_page = page.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b":-".contains(&byte));
    (!page.is_empty() && is_page).then_some(Mark::Page(page))
}

/// Whether a name is valid for an emoji: 2 to 32 ASCII letters, digits and underscores.
pub fn is_emoji_name(name: &str) -> bool {
    (2..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::super::snowflake::id;
    use super::*;

    #[test]
    fn marks_are_parsed() {
        for (text, expected) in [
            ("<@12>", Some(Mark::User(id(12)))),
            ("<@!12>", Some(Mark::User(id(12)))),
            ("<@&12>", Some(Mark::Role(id(12)))),
            ("<#12>", Some(Mark::Channel(id(12)))),
            ("<:wave:12>", Some(Mark::Emoji { name: "wave", id: id(12) })),
            ("<a:wave_2:12>", Some(Mark::Emoji { name: "wave_2", id: id(12) })),
            ("<t:1618953630>", Some(Mark::Time { secs: 1_618_953_630, style: 'f' })),
            ("<t:-5:R>", Some(Mark::Time { secs: -5, style: 'R' })),
            ("</airhorn:12>", Some(Mark::Command("airhorn"))),
            ("</a b c:12>", Some(Mark::Command("a b c"))),
            ("<id:customize>", Some(Mark::Page("customize"))),
            ("<id:linked-roles:12>", Some(Mark::Page("linked-roles:12"))),
            ("<@>", None),
            ("<@0>", None),
            ("<@x>", None),
            ("<@ 12>", None),
            ("<@1\n2>", None),
            ("<@12", None),
            ("<>", None),
            ("<<@12", None),
            ("<:w:12>", None),
            ("<:wä:12>", None),
            ("<:wave:>", None),
            ("<b:wave:12>", None),
            ("<t:>", None),
            ("<t:+5>", None),
            ("<t:5:>", None),
            ("<t:5:RR>", None),
            ("<t:99999999999999999999>", None),
            ("</:12>", None),
            ("</x>", None),
            ("<id:>", None),
            ("<id:Täst>", None),
            ("<https://example.org>", None),
        ] {
            let found: Vec<_> = pieces(text).collect();

            match expected {
                Some(mark) => assert_eq!(found, [Piece::Mark(text, mark)], "{text}"),
                None => assert!(!found.iter().any(|piece| matches!(piece, Piece::Mark(..))), "{text} {found:?}"),
            }
        }
    }

    #[test]
    fn a_text_is_split_into_pieces() {
        for (text, expected) in [
            ("", &[][..]),
            ("hi", &["plain hi"]),
            ("a <@1>b", &["plain a ", "mark <@1>", "plain b"]),
            ("<<@1>>", &["plain <", "mark <@1>", "plain >"]),
            ("`<@1>`", &["code `<@1>`"]),
            ("``a`b``c", &["code ``a`b``", "plain c"]),
            ("`a\n<@1>`", &["plain `a\n", "mark <@1>", "plain `"]),
            ("` <@1>", &["plain ` ", "mark <@1>"]),
            ("x ```js\n<@1>\n``` y", &["plain x ", "code ```js\n<@1>\n```", "plain  y"]),
            ("```<@1>", &["code ```<@1>"]),
            ("\\<@1>", &["escaped \\<", "plain @1>"]),
            ("\\`<@1>`", &["escaped \\`", "mark <@1>", "plain `"]),
            ("\\ü \\", &["plain \\ü \\"]),
            ("see https://a.b/c(d)e) ok", &["plain see ", "link https://a.b/c(d)e", "plain ) ok"]),
            ("<https://a.b>", &["plain <", "link https://a.b", "plain >"]),
            ("xhttp://a http://", &["plain xhttp://a http://"]),
        ] {
            let found: Vec<_> = pieces(text).map(|piece| description(&piece)).collect();

            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn texts_with_many_opening_marks_are_split_fast() {
        for opening in ["`", "``x", "<@", "<", "\\", "https://(", "<t:"] {
            let text = opening.repeat(20_000);

            assert_eq!(pieces(&text).map(|piece| piece.text().len()).sum::<usize>(), text.len());
        }
    }

    fn description(piece: &Piece<'_>) -> String {
        let kind = match piece {
            Piece::Plain(_) => "plain",
            Piece::Escaped(_) => "escaped",
            Piece::Code(_) => "code",
            Piece::Link(_) => "link",
            Piece::Mark(..) => "mark",
        };
        format!("{kind} {}", piece.text())
    }
}
