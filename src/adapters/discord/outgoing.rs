//! What a companion's statement becomes on Discord: parts that it takes, in which nobody is mentioned who may not be.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::incoming::MENTION_BREAKER;
use super::markup::{Mark, Piece, is_emoji_name, pieces};
use super::names::is_noncharacter;
use super::snowflake::Snowflake;
use crate::domain::split::split;

/// Characters of a message (Discord's documentation, "Messages Resource", "Create Message"). Discord counts code points
/// (discord-api-docs issue 1315); [`split`] counts UTF-16 code units, which are never fewer.
const LIMIT: usize = 2_000;
/// A part whose first words only look like a heading gets a backslash.
const ROOM_FOR_A_BACKSLASH: usize = 1;
/// People that one statement may call; whoever talks a model into calling all gets names.
const MAX_MENTIONS: usize = 10;
/// The flag of a message whose links are not to be unfolded.
pub const SUPPRESS_EMBEDS: u64 = 1 << 2;
/// Stands for a mark while a text is split, with `FILLER` up to the mark's length: what belongs together is not torn.
const PLACEHOLDER: char = '\u{fdd0}';
const FILLER: char = '\u{fe00}';
/// What makes a line small.
const SMALL_PRINT: &str = "-# ";
/// What calls everybody, without its `@`.
const EVERYONE: [&str; 2] = ["everyone", "here"];

/// What a statement may point at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mentionables<'a> {
    /// The people who may be mentioned: who took part in the talk, if the settings and the person allow it. No bots.
    pub people: &'a [MentionablePerson<'a>],
    /// The guild's emojis that can be used; in a direct message none.
    pub emojis: &'a [Emoji<'a>],
}

/// Somebody who may be mentioned.
#[derive(Clone, Copy, Debug)]
pub struct MentionablePerson<'a> {
    /// Whom a mention means.
    pub id: Snowflake,
    /// The name under which companions know them: `User::shown`.
    pub name: &'a str,
}

/// An emoji of the guild.
#[derive(Clone, Copy, Debug)]
pub struct Emoji<'a> {
    /// Which one.
    pub id: Snowflake,
    /// Its name, without colons.
    pub name: &'a str,
    /// Whether it moves.
    pub animated: bool,
}

/// One message of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its content: 1 to 2,000 characters, with something to be seen.
    pub content: String,
    /// The users that it calls: `allowed_mentions` is `parse: []` and these, always, so that neither roles nor everyone can be mentioned.
    pub mentions: Vec<Snowflake>,
}

/// The parts of a statement, in order; none if nothing in it can be seen.
///
/// `@Name` of somebody around calls them, once in a statement; `:name:` of the guild's emojis shows them. Other people's ids, roles and
/// everyone stay as they are to the eye, and call nobody. The target of a link is always to be seen, headings are bold lines.
pub fn render(words: &str, mentionables: &Mentionables<'_>) -> Vec<Part> {
    let mut rendering = Rendering { mentionables, text: String::new(), marks: Vec::new(), mentioned: BTreeSet::new() };
    let clean: String = words.replace(['\u{2028}', '\u{2029}'], "\n").chars().filter(|c| !is_dropped(*c)).collect();
    for piece in pieces(&without_headings(&clean)) {
        rendering.piece(&piece);
    }
    let mut marks = rendering.marks.into_iter();
    let mut mentioned = BTreeSet::new();
    let mut parts = Vec::new();
    // Discord looks for these everywhere, in code and behind a backslash too.
    for part in split(&without_everyone_mentions(&without_mentions(&rendering.text)), LIMIT - ROOM_FOR_A_BACKSLASH) {
        let mut mentions = Vec::new();
        let mut content = fill_placeholders(&part, || {
            let mark = marks.next()?;
            mentions.extend(mark.user.filter(|user| mentioned.insert(*user)));
            Some(mark.text)
        });
        if heading(&content).is_some() {
            content.insert(0, '\\');
        }
        if content.chars().any(is_seen) {
            parts.push(Part { content, mentions });
        }
    }
    parts
}

/// Whether two contents are the same to Discord, which trims them, drops characters that are not seen, and may write a mark in its newer
/// form: they are compared by what is seen.
pub fn is_same(sent: &str, read: &str) -> bool {
    let seen = |text: &str| text.replace("<@!", "<@").chars().filter(|c| is_seen(*c)).collect::<String>();
    seen(sent) == seen(read)
}

/// A mark that stands in the text as stand-ins.
struct Placeholder {
    text: String,
    user: Option<Snowflake>,
}

/// What is rendering so far.
struct Rendering<'a> {
    mentionables: &'a Mentionables<'a>,
    text: String,
    marks: Vec<Placeholder>,
    mentioned: BTreeSet<Snowflake>,
}

impl Rendering<'_> {
    fn piece(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Plain(words) => self.plain(words),
            Piece::Code(text) | Piece::Escaped(text) | Piece::Link(text) => self.text.push_str(text),
            Piece::Mark(raw, mark) => self.mark(raw, mark),
        }
    }

    fn mark(&mut self, raw: &str, mark: &Mark<'_>) {
        match mark {
            Mark::User(id) if self.may_mention(*id) => self.mention(*id),
            Mark::User(_) | Mark::Role(_) => self.text.push_str(&raw.replacen('<', &format!("<{MENTION_BREAKER}"), 1)),
            Mark::Emoji { id, name } => match self.mentionables.emojis.iter().find(|emoji| emoji.id == *id) {
                Some(emoji) => self.emoji(emoji),
                // Of another guild: Discord would show its name alone, if anything.
                None => self.text.push_str(&format!(":{name}:")),
            },
            Mark::Channel(_) | Mark::Time { .. } | Mark::Command(_) | Mark::Page(_) => {
                self.push_placeholder(raw.to_owned(), None)
            }
        }
    }

    fn plain(&mut self, words: &str) {
        let mut at = 0;
        while let Some(distance) = words[at..].find(['@', ':', ']']) {
            self.text.push_str(&words[at..at + distance]);
            at += distance;
            let rest = &words[at..];
            at += match rest.as_bytes()[0] {
                b'@' => self.at_sign(rest),
                b':' => self.colon(rest),
                _ => {
                    // With a space between, no label hides where a link leads.
                    self.text.push_str(if rest.starts_with("](") { "] " } else { "]" });
                    1
                }
            };
        }
        self.text.push_str(&words[at..]);
    }

    /// Writes what an `@` begins, and says how much of the words that is.
    fn at_sign(&mut self, rest: &str) -> usize {
        if mentions_everyone(&rest[1..]) {
            self.text.push('@');
            return 1;
        }
        let joined = self.text.chars().next_back().is_some_and(is_word);
        if let Some((id, length)) = self.named(&rest[1..]).filter(|(id, _)| !joined && self.may_mention(*id)) {
            self.mention(id);
            return 1 + length;
        }
        self.text.push('@');
        1
    }

    /// Whose name this begins with, the longest; nobody's if several have it.
    fn named(&self, rest: &str) -> Option<(Snowflake, usize)> {
        let matching = self.mentionables.people.iter().filter_map(|person| Some((person.id, length_of(rest, person.name)?)));
        let found: Vec<_> = matching.collect();
        let longest = found.iter().map(|(_, length)| *length).max()?;
        let mut owners = found.into_iter().filter(|(_, length)| *length == longest);
        let owner = owners.next()?;
        owners.all(|(id, _)| id == owner.0).then_some(owner)
    }

    fn colon(&mut self, rest: &str) -> usize {
        let name = rest[1..].find(':').map(|end| &rest[1..=end]);
        // Times are rendering so: 10:30:00.
        let emoji = name.filter(|name| is_emoji_name(name) && !name.bytes().all(|byte| byte.is_ascii_digit()));
        let emoji = emoji
            .and_then(|name| self.mentionables.emojis.iter().filter(|emoji| emoji.name == name).min_by_key(|emoji| emoji.id));
        let Some(emoji) = emoji else {
            self.text.push(':');
            return 1;
        };
        self.emoji(emoji);
        emoji.name.len() + 2
    }

    fn may_mention(&self, id: Snowflake) -> bool {
        let is_around = self.mentionables.people.iter().any(|person| person.id == id);
        is_around && (self.mentioned.contains(&id) || self.mentioned.len() < MAX_MENTIONS)
    }

    fn mention(&mut self, id: Snowflake) {
        self.mentioned.insert(id);
        self.push_placeholder(format!("<@{id}>"), Some(id));
    }

    fn emoji(&mut self, emoji: &Emoji<'_>) {
        // One whose name is none would be text to Discord.
        if is_emoji_name(emoji.name) {
            let kind = if emoji.animated { "a" } else { "" };
            self.push_placeholder(format!("<{kind}:{}:{}>", emoji.name, emoji.id), None);
        } else {
            self.text.push_str(&format!(":{}:", emoji.name));
        }
    }

    fn push_placeholder(&mut self, text: String, user: Option<Snowflake>) {
        self.text.push(PLACEHOLDER);
        self.text.extend(std::iter::repeat_n(FILLER, text.encode_utf16().count().saturating_sub(1)));
        self.marks.push(Placeholder { text, user });
    }
}

/// A part with its marks in the places of their stand-ins.
fn fill_placeholders(part: &str, mut next: impl FnMut() -> Option<String>) -> String {
    let mut content = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find(PLACEHOLDER) {
        content.push_str(&rest[..at]);
        let after = &rest[at + PLACEHOLDER.len_utf8()..];
        let mark = next().unwrap_or_default();
        let fillers = mark.encode_utf16().count().saturating_sub(1);
        content.push_str(&mark);
        rest = after.char_indices().nth(fillers).map_or("", |(end, _)| &after[end..]);
    }
    content.push_str(rest);
    content
}

/// With headings made bold lines, and small print plain: neither is how one talks. Code stays as it is.
fn without_headings(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    let mut at_start = true;
    for piece in pieces(words) {
        let Piece::Plain(text) = piece else {
            out.push_str(piece.text());
            at_start = false;
            continue;
        };
        for line in text.split_inclusive('\n') {
            match heading(line).filter(|_| at_start) {
                Some((before, sign, title)) => {
                    let is_whole = title.ends_with('\n') || text.ends_with(title) && words.ends_with(text);
                    let title_end = title.trim_end().len();
                    let is_bold = is_whole && sign != SMALL_PRINT && !title.contains(['*', '_']) && title_end > 0;
                    let stars = if is_bold { "**" } else { "" };
                    out.push_str(&line[..before]);
                    out.push_str(&[stars, &title[..title_end], stars, &title[title_end..]].concat());
                }
                None => out.push_str(line),
            }
            at_start = line.ends_with('\n');
        }
    }
    out
}

/// Where the sign of a heading or of small print stands in a line, which it is, and what follows it.
///
/// It may come after the signs of a quote or a list, which stay.
fn heading(line: &str) -> Option<(usize, &'static str, &str)> {
    let mut at = line.len() - line.trim_start_matches(' ').len();
    loop {
        let rest = &line[at..];
        let sign = ["# ", "## ", "### ", SMALL_PRINT].into_iter().find(|sign| rest.starts_with(sign));
        if let Some(sign) = sign {
            return Some((at, sign, rest[sign.len()..].trim_start_matches(' ')));
        }
        let inner = ["> ", "- ", "* "].into_iter().find_map(|sign| rest.strip_prefix(sign))?;
        at = line.len() - inner.trim_start_matches(' ').len();
    }
}

/// With an unseen character in each mark that would call somebody.
fn without_mentions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, rest) in text.split('<').enumerate() {
        if index > 0 {
            out.push('<');
            let calls = rest.starts_with('@') && rest.find('>').is_some_and(|end| is_mention(&rest[1..end]));
            out.extend(calls.then_some(MENTION_BREAKER));
        }
        out.push_str(rest);
    }
    out
}

/// Whether it is the inside of a mark that calls: an id, of a role with its sign before it. Nobody promises that Discord takes no number for one
/// that begins with a zero or is too large.
fn is_mention(inside: &str) -> bool {
    let id = inside.strip_prefix(['&', '!']).unwrap_or(inside);
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// With an unseen character after each `@` that would call everybody.
fn without_everyone_mentions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, rest) in text.split('@').enumerate() {
        if index > 0 {
            out.push('@');
            out.extend(mentions_everyone(rest).then_some(MENTION_BREAKER));
        }
        out.push_str(rest);
    }
    out
}

fn mentions_everyone(rest: &str) -> bool {
    EVERYONE
        .into_iter()
        .any(|word| rest.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())))
}

/// How many bytes a name takes at the beginning of a text, if it stands there as a whole, in any case.
fn length_of(text: &str, name: &str) -> Option<usize> {
    let mut rest = text.chars();
    for expected in name.chars() {
        let found = rest.next()?;
        if found != expected && !found.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    let rest = rest.as_str();
    let ends = !(name.chars().next_back().is_some_and(is_word) && rest.chars().next().is_some_and(is_word));
    (ends && !name.is_empty()).then(|| text.len() - rest.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What Discord would strip, or what turns the text around it; and what stands for something else here.
fn is_dropped(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, MENTION_BREAKER | '\u{feff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || is_noncharacter(c)
}

/// Whether there is something to be seen of it, or it joins what is.
fn is_seen(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '\u{fe00}'..='\u{fe0f}') && !super::names::is_hidden(c)
}
