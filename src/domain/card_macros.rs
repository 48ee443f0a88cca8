//! Expands the macros in the texts of cards, such as `{{char}}`, and removes comments and invisible characters.

use std::collections::BTreeSet;

use crate::recall::language_of;
use crate::text;

/// The maximum length of an expanded field, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// The maximum nesting depth of macros.
const MAX_DEPTH: usize = 16;
/// The maximum number of expansion passes.
const MAX_ROUNDS: usize = 4;
/// The maximum number of unknown macro names that are kept, and their maximum length.
const MAX_UNKNOWN: usize = 16;
const MAX_UNKNOWN_CHARS: usize = 32;

/// The words for `{{user}}`: a room has no particular user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    word: &'static str,
    /// In place of the word and an `s`. Empty if the language has none.
    genitive: &'static str,
}

/// The words for the user in a persona or lorebook and in a greeting, which is for everyone in the room, by the names of languages.
const USERS: [(&str, User, User); 6] = [
    ("english", user("whoever you talk to", ""), user("everyone", "")),
    ("german", user("dein Gegenüber", "deines Gegenübers"), user("alle", "aller")),
    ("spanish", user("quien habla contigo", ""), user("todos", "")),
    ("french", user("la personne qui te parle", ""), user("tout le monde", "")),
    ("portuguese", user("quem fala com você", ""), user("todos", "")),
    ("japanese", user("話し相手", ""), user("みんな", "")),
];

const fn user(word: &'static str, genitive: &'static str) -> User {
    User { word, genitive }
}

impl User {
    /// The words in English.
    pub const IN_PERSONA: Self = USERS[0].1;
    pub const IN_GREETING: Self = USERS[0].2;

    /// The words in a persona and in a greeting, in the language in which these texts seem to be written, or in English.
    pub fn of(texts: &[&str]) -> [Self; 2] {
        let text = texts.join("\n");
        let is_kana = |char| matches!(char, '\u{3041}'..='\u{30ff}');
        let language = if text.contains(is_kana) { Some("japanese") } else { language_of(&text) };
        let (_, persona, greeting) = USERS.into_iter().find(|(name, ..)| Some(*name) == language).unwrap_or(USERS[0]);
        [persona, greeting]
    }
}

/// The names for the two roles of a card.
#[derive(Clone, Copy)]
pub struct People<'a> {
    pub character: &'a str,
    pub user: User,
}

/// Findings while texts are expanded.
#[derive(Default)]
pub struct Found {
    /// The names of unknown macros. They are removed, because only the program of the card's author knows their values.
    pub unknown: BTreeSet<String>,
    /// The number of removed comments.
    pub comments: usize,
    /// The number of random choices and dice. Each is replaced by its first choice.
    pub chances: usize,
    /// The number of texts with invisible characters, which are removed.
    pub hidden: usize,
}

/// Expands the macros of a text to at most `MAX_TEXT_BYTES`, and removes comments, `<START>` and invisible characters.
///
/// A removal may leave behind another macro, so the result is expanded again. Otherwise, an import of an exported card would
/// expand it once more.
pub fn expanded(source: &str, people: People<'_>, found: &mut Found) -> String {
    let mut text = cleaned(source, found);
    for _ in 0..MAX_ROUNDS {
        let next = expanded_once(&text, people, found);
        if next == text {
            return text;
        }
        text = next;
    }
    while text.contains("{{") {
        text = text.replace("{{", "{");
    }
    text
}

/// One pass. `<user>` stands for the user, unless the text also has `</user>`, which makes it an ordinary tag.
fn expanded_once(source: &str, people: People<'_>, found: &mut Found) -> String {
    let mut out = String::new();
    let mut open = Vec::new();
    let mut rest = source;
    let mut may_have_comments = true;
    let user_is_tag = contains(source, "</user>");
    while let Some(first) = rest.chars().next() {
        if out.len() > MAX_TEXT_BYTES {
            out.truncate(text::first_bytes(&out, MAX_TEXT_BYTES).len());
            break;
        }
        if rest.starts_with("{{") && !rest.starts_with("{{{") && open.len() < MAX_DEPTH {
            open.push(out.len());
            out.push_str("{{");
            rest = &rest[2..];
        } else if rest.starts_with("}}")
            && let Some(begin) = open.pop()
        {
            let inner = out.split_off(begin);
            let value = value(&inner[2..], people, found);
            rest = push(&mut out, &value, people, &rest[2..]);
        } else if may_have_comments && rest.starts_with("<!--") {
            match rest.find("-->") {
                Some(end) => {
                    found.comments += 1;
                    rest = &rest[end + 3..];
                }
                None => may_have_comments = false,
            }
        } else if let Some((tag, value)) = tag(rest, people, user_is_tag) {
            rest = push(&mut out, value, people, &rest[tag..]);
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out.trim().to_owned()
}

/// The parts of a text between `<START>` tags.
pub fn dialogues(text: &str) -> Vec<&str> {
    const START: &str = "<start>";
    let small = text.to_ascii_lowercase();
    let mut begin = 0;
    let mut parts = Vec::new();
    for (at, _) in small.match_indices(START) {
        parts.push(&text[begin..at]);
        begin = at + START.len();
    }
    parts.push(&text[begin..]);
    parts
}

/// The length and the value of the tag at the beginning of a text.
fn tag<'a>(text: &str, people: People<'a>, user_is_tag: bool) -> Option<(usize, &'a str)> {
    let starts = |tag: &str| text.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag));
    match () {
        () if !text.starts_with('<') => None,
        () if starts("<char>") => Some((6, people.character)),
        () if starts("<bot>") => Some((5, people.character)),
        () if starts("<user>") && !user_is_tag => Some((6, people.user.word)),
        () if starts("<start>") => Some((7, "")),
        () => None,
    }
}

fn contains(text: &str, tag: &str) -> bool {
    text.as_bytes().windows(tag.len()).any(|window| window.eq_ignore_ascii_case(tag.as_bytes()))
}

/// The value of the macro with this text between its braces.
fn value(inner: &str, people: People<'_>, found: &mut Found) -> String {
    let trimmed = inner.trim();
    let small = trimmed.to_ascii_lowercase();
    let (name, values) = trimmed.split_once(':').unwrap_or((trimmed, ""));
    match (&*small, &*name.trim().to_ascii_lowercase()) {
        ("char" | "bot", _) => people.character.to_owned(),
        ("user", _) => people.user.word.to_owned(),
        ("newline", _) => "\n".to_owned(),
        // `{{original}}` stands for the program's own prompt text, which every prompt here contains anyway.
        ("original" | "trim" | "noop" | "", _) => String::new(),
        (_, "comment" | "hidden_key") => {
            found.comments += 1;
            String::new()
        }
        (comment, _) if comment.starts_with("//") => {
            found.comments += 1;
            String::new()
        }
        (_, "random" | "pick") => {
            found.chances += 1;
            first_choice(values)
        }
        _ => {
            if found.unknown.len() < MAX_UNKNOWN {
                let name = name.split_whitespace().next().unwrap_or_default();
                found.unknown.insert(text::one_line(name, MAX_UNKNOWN_CHARS));
            }
            String::new()
        }
    }
}

/// The first choice of `A,B,C`, where `\,` is a comma, or of `A::B::C`.
fn first_choice(values: &str) -> String {
    let values = values.trim_start_matches(':');
    if let Some((first, _)) = values.split_once("::") {
        return first.trim().to_owned();
    }
    let end = values.match_indices(',').map(|(at, _)| at).find(|at| !values[..*at].ends_with('\\'));
    values[..end.unwrap_or(values.len())].replace("\\,", ",").trim().to_owned()
}

/// Appends a value, and returns the text after it. The word for the user is capitalised at the beginning of a sentence, and takes up an `s` after it.
fn push<'a>(out: &mut String, value: &str, people: People<'_>, rest: &'a str) -> &'a str {
    let User { word, genitive } = people.user;
    let after_s =
        rest.strip_prefix('s').filter(|after| value == word && !genitive.is_empty() && !after.starts_with(char::is_alphanumeric));
    let (value, rest) = after_s.map_or((value, rest), |after| (genitive, after));
    let begins = || {
        let plain = out.trim_end_matches(['*', '_', '"', '“']);
        let words = out.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '"' | '“' | '”'));
        plain.ends_with('\n') || words.is_empty() || words.ends_with(['.', '!', '?'])
    };
    let mut chars = value.chars();
    match chars.next() {
        Some(first) if [word, genitive].contains(&value) && begins() => {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
        _ => out.push_str(value),
    }
    rest
}

/// Normalises line ends, and removes control characters and invisible characters, which could change the meaning unseen.
pub fn cleaned(text: &str, found: &mut Found) -> String {
    let plain = text.replace("\r\n", "\n").replace('\r', "\n");
    let seen: String = text::seen(&plain).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    found.hidden += usize::from(seen.len() < plain.len());
    seen.trim().to_owned()
}
