//! Renders a companion's statement for Discord: splits it to Discord's limits, and allows mentions only of mentionable people.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::incoming::MENTION_BREAKER;
use super::markup::{Mark, Piece, is_emoji_name, pieces};
use super::names::is_noncharacter;
use super::snowflake::Snowflake;
use crate::domain::split::split;

/// The length limit of a message, in characters (Discord's documentation, "Messages Resource", "Create Message"). Discord counts code points
/// (discord-api-docs issue 1315); [`split`] counts UTF-16 code units, of which there are never fewer.
const LIMIT: usize = 2_000;
/// Room for the backslash before a part that would begin as a heading.
const ESCAPE_ROOM: usize = 1;
/// The limit of people mentioned in one statement. Further names stay plain text. This prevents a prompt from making a model mention everyone.
const MAX_MENTIONS: usize = 10;
/// Replaces markup while a text is split. `FILLER` pads it to the markup's length, so that the split does not cut markup.
const PLACEHOLDER: char = '\u{fdd0}';
const FILLER: char = '\u{fe00}';
/// The markup for a line in small print.
const SMALL_PRINT: &str = "-# ";
/// The prefix of the server's notice. It distinguishes the notice from the companion's words.
const NOTICE: &str = "-# \u{24d8} ";
/// The prefix of the help button's custom id. The person's id follows.
pub const HELP_FOR: &str = "help:";
/// The prefixes of the `custom_id` of the buttons below a call of a tool. The number of the call follows.
pub const CONFIRM_CALL: &str = "call:yes:";
pub const DECLINE_CALL: &str = "call:no:";
/// The words that mention everyone after an `@`.
const EVERYONE: [&str; 2] = ["everyone", "here"];

/// The people and emojis that a statement may mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentionables {
    /// The people who took part in the conversation, if the settings and the person allow mentions: the id and the name that companions see
    /// (`User::shown`). Bots are not included.
    pub people: Vec<(Snowflake, Arc<str>)>,
    /// The guild's usable emojis. Empty in a direct message.
    pub emojis: Arc<[Emoji]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emoji {
    pub id: Snowflake,
    /// The emoji's name, without colons.
    pub name: Box<str>,
    pub animated: bool,
}

/// One message of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The content: 1 to 2,000 characters, at least one of them visible.
    pub content: String,
    /// The users mentioned in the part. `allowed_mentions` is always `parse: []` with these users, so roles and everyone cannot be mentioned.
    pub mentions: Vec<Snowflake>,
}

/// Renders a statement as one or more parts, in order. Empty if nothing in it is visible.
///
/// `@Name` of a mentionable person becomes a mention, which notifies the person once per statement. `:name:` of a guild's emoji becomes the emoji.
/// Mentions of other people, of roles and of everyone look the same, but notify no one. Links always show their target. Headings become bold lines.
pub fn render(statement: &str, mentionables: &Mentionables) -> Vec<Part> {
    let mut rendering = Rendering { mentionables, text: String::new(), marks: Vec::new(), mentioned: BTreeSet::new() };
    let clean: String = statement.replace(['\u{2028}', '\u{2029}'], "\n").chars().filter(|c| !is_dropped(*c)).collect();
    for piece in pieces(&without_headings(&clean)) {
        rendering.piece(&piece);
    }
    let mut marks = rendering.marks.into_iter();
    let mut mentioned = BTreeSet::new();
    let mut parts = Vec::new();
    // Discord detects mentions everywhere, even in code and after a backslash.
    for part in split(&without_everyone_mentions(&without_mentions(&rendering.text)), LIMIT - ESCAPE_ROOM) {
        let mut mentions = Vec::new();
        let mut content = fill_placeholders(&part, || {
            let mark = marks.next()?;
            mentions.extend(mark.user.filter(|user| mentioned.insert(*user)));
            Some(mark.text)
        });
        if heading(&content).is_some() {
            content.insert(0, '\\');
        }
        if content.chars().any(is_visible) {
            parts.push(Part { content, mentions });
        }
    }
    parts
}

impl Part {
    /// Appends the server's notice in small print, without mentions. `None` if the result is too long.
    pub fn with_notice(mut self, notice: Option<&str>) -> Option<Self> {
        if let Some(notice) = notice {
            self.content += &format!("\n{NOTICE}{}", without_everyone_mentions(&without_mentions(notice)));
        }
        (self.content.chars().count() <= LIMIT).then_some(self)
    }
}

/// Removes the notice that [`Part::with_notice`] appended.
pub fn without_notice(content: &str) -> &str {
    let (said, last) = content.rsplit_once('\n').unwrap_or(("", content));
    if last.starts_with(NOTICE) { said } else { content }
}

/// Whether two contents are the same to Discord. Discord trims contents, drops invisible characters, and may rewrite a mention in the newer form.
/// Therefore only visible characters are compared.
pub fn is_same(sent: &str, read: &str) -> bool {
    let visible = |text: &str| text.replace("<@!", "<@").chars().filter(|c| is_visible(*c)).collect::<String>();
    visible(sent) == visible(read)
}

/// Markup that a placeholder in the text represents.
struct Placeholder {
    text: String,
    user: Option<Snowflake>,
}

/// The text rendered so far.
struct Rendering<'a> {
    mentionables: &'a Mentionables,
    text: String,
    marks: Vec<Placeholder>,
    mentioned: BTreeSet<Snowflake>,
}

impl Rendering<'_> {
    fn piece(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Plain(text) => self.plain(text),
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
                // An emoji of another guild. Discord would show at most its name.
                None => self.text.push_str(&format!(":{name}:")),
            },
            Mark::Channel(_) | Mark::Time { .. } | Mark::Command(_) | Mark::Page(_) => {
                self.push_placeholder(raw.to_owned(), None)
            }
        }
    }

    fn plain(&mut self, text: &str) {
        let mut at = 0;
        while let Some(distance) = text[at..].find(['@', ':', ']']) {
            self.text.push_str(&text[at..at + distance]);
            at += distance;
            let rest = &text[at..];
            at += match rest.as_bytes()[0] {
                b'@' => self.at_sign(rest),
                b':' => self.colon(rest),
                _ => {
                    // A space prevents a link with a label, which would hide its target.
                    self.text.push_str(if rest.starts_with("](") { "] " } else { "]" });
                    1
                }
            };
        }
        self.text.push_str(&text[at..]);
    }

    /// Renders a text that begins with `@`. Returns how many bytes were consumed.
    fn at_sign(&mut self, rest: &str) -> usize {
        if mentions_everyone(&rest[1..]) {
            self.text.push('@');
            return 1;
        }
        let follows_word = self.text.chars().next_back().is_some_and(is_word);
        if let Some((id, length)) = self.named(&rest[1..]).filter(|(id, _)| !follows_word && self.may_mention(*id)) {
            self.mention(id);
            return 1 + length;
        }
        self.text.push('@');
        1
    }

    /// The person whose name the text begins with, by the longest match. `None` if several people have that name.
    fn named(&self, rest: &str) -> Option<(Snowflake, usize)> {
        let matching = self.mentionables.people.iter().filter_map(|(id, name)| Some((*id, length_of(rest, name)?)));
        let found: Vec<_> = matching.collect();
        let longest = found.iter().map(|(_, length)| *length).max()?;
        let mut owners = found.into_iter().filter(|(_, length)| *length == longest);
        let owner = owners.next()?;
        owners.all(|(id, _)| id == owner.0).then_some(owner)
    }

    fn colon(&mut self, rest: &str) -> usize {
        let name = rest[1..].find(':').map(|end| &rest[1..=end]);
        // A name of digits only is part of a time such as 10:30:00.
        let emoji = name.filter(|name| is_emoji_name(name) && !name.bytes().all(|byte| byte.is_ascii_digit()));
        let emoji = emoji
            .and_then(|name| self.mentionables.emojis.iter().filter(|emoji| *emoji.name == *name).min_by_key(|emoji| emoji.id));
        let Some(emoji) = emoji else {
            self.text.push(':');
            return 1;
        };
        self.emoji(emoji);
        emoji.name.len() + 2
    }

    fn may_mention(&self, id: Snowflake) -> bool {
        let is_mentionable = self.mentionables.people.iter().any(|(person, _)| *person == id);
        is_mentionable && (self.mentioned.contains(&id) || self.mentioned.len() < MAX_MENTIONS)
    }

    fn mention(&mut self, id: Snowflake) {
        self.mentioned.insert(id);
        self.push_placeholder(format!("<@{id}>"), Some(id));
    }

    fn emoji(&mut self, emoji: &Emoji) {
        // With an invalid name, Discord would show the markup as text.
        if is_emoji_name(&emoji.name) {
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

/// Replaces the placeholders of a part by their markup.
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

/// Turns headings into bold lines and small print into plain text, because neither is usual in chat. Code is unchanged.
fn without_headings(statement: &str) -> String {
    let mut out = String::with_capacity(statement.len());
    let mut at_start = true;
    for piece in pieces(statement) {
        let Piece::Plain(text) = piece else {
            out.push_str(piece.text());
            at_start = false;
            continue;
        };
        for line in text.split_inclusive('\n') {
            match heading(line).filter(|_| at_start) {
                Some((before, sign, title)) => {
                    let is_whole = title.ends_with('\n') || text.ends_with(title) && statement.ends_with(text);
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

/// The position of a line's heading or small-print markup, the markup, and the text after it. The markup may come after that of a quote or a list,
/// which stays.
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

/// Disarms each mention with an invisible character.
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

/// Whether `inside` is the inside of a mention: an id, with a sign before it for a role. Numbers that are too large or begin with a zero count too,
/// because Discord does not promise to reject them.
fn is_mention(inside: &str) -> bool {
    let id = inside.strip_prefix(['&', '!']).unwrap_or(inside);
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// Inserts an invisible character after each `@` that would mention everyone.
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

/// The length in bytes of a name at the beginning of a text, if it is a whole word there. Case is ignored.
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

/// Whether a character is removed: Discord would strip it, it reverses the text around it, or it has a special meaning in this module.
fn is_dropped(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, MENTION_BREAKER | '\u{feff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || is_noncharacter(c)
}

/// Whether a character is visible, or joins visible ones.
fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '\u{fe00}'..='\u{fe0f}') && !super::names::is_hidden(c)
}
