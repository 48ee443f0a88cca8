//! Cleans people's names, and adapts companions' names to Discord's rules.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::snowflake::Snowflake;

/// The length limit of a person's name, in characters. Discord allows 32, and 80 for a webhook's name.
const MAX_NAME_CHARS: usize = 80;
/// The limit of characters read of a name. With hidden characters, a name may be longer than Discord's limits.
const MAX_READ_CHARS: usize = 1_000;
/// The limit of combining marks in a row. It suffices for every script, but the marks cannot cover neighbouring lines.
const MAX_COMBINING_MARKS: usize = 3;
/// The length limit of a webhook's name, in characters (Discord's documentation, "Webhook Resource", "Create Webhook").
const MAX_USERNAME_CHARS: usize = 80;
/// Words that Discord refuses anywhere in a webhook's name, each with the letter to replace and its replacement.
const REFUSED_WITHIN: [(&str, char, char); 2] = [("discord", 'i', 'í'), ("clyde", 'e', 'é')];
/// Names that Discord refuses as a whole, in the same form.
const REFUSED_WHOLE: [(&str, char, char); 2] = [("everyone", 'e', 'é'), ("here", 'e', 'é')];

/// The display name of a person: the first of `names` that is visible after [`plain`]. Callers pass the nickname in the guild, the global display
/// name and the username, in this order.
///
/// If no name is visible, the result is `user` with the last four digits of the id, so that it stays the same.
pub fn shown<'a>(names: impl IntoIterator<Item = &'a str>, id: Snowflake) -> String {
    let plain = names.into_iter().map(plain).find(|name| !name.is_empty());
    plain.unwrap_or_else(|| format!("user {}", id.get() % 10_000))
}

/// Removes characters that hide, reverse or cover the text around a name: control characters, direction marks, invisible characters, stacked
/// accents. White space becomes single spaces. The result is composed (NFC) and has at most 80 characters. It is empty if nothing visible is left.
pub fn plain(name: &str) -> String {
    let mut plain: String = name.chars().take(MAX_READ_CHARS).collect();
    // After removing characters, their neighbours may compose. Repeat until nothing changes.
    loop {
        let plainer = plainer(&plain);
        if plainer == plain {
            return plain;
        }
        plain = plainer;
    }
}

/// One pass of [`plain`].
fn plainer(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut marks = 0;
    for c in name.nfc() {
        let last = kept.chars().next_back();
        let has_letter = last.is_some_and(|last| last != ' ');
        let is_kept = if c.is_whitespace() {
            marks = 0;
            if has_letter {
                kept.push(' ');
            }
            false
        } else if is_joiner(c) {
            // The joiner may be visible: in emoji, and in scripts other than Latin.
            has_letter && last.is_some_and(|last| !last.is_ascii() && !is_joiner(last))
        } else if is_combining_mark(c) {
            marks += 1;
            marks <= MAX_COMBINING_MARKS && has_letter && !is_hidden(c)
        } else {
            marks = 0;
            !is_hidden(c)
        };
        if is_kept {
            kept.push(c);
        }
    }
    let cut: String = kept.chars().take(MAX_NAME_CHARS).collect();
    let visible = cut.trim_end_matches([' ', '\u{200c}', '\u{200d}']);
    if visible.chars().any(|c| !is_blank(c)) { visible.to_owned() } else { String::new() }
}

/// Converts a companion's name to a webhook's username: 1 to 80 characters, plain, without words that Discord refuses.
///
/// Discord refuses `clyde` and `discord` anywhere in a username, and since 2022 also the names that are forbidden for users. Such words get one
/// accent and look nearly the same. A name without visible characters becomes `companion`.
pub fn username(name: &str) -> String {
    let mut name = plain(name);
    for (word, from, to) in REFUSED_WITHIN {
        while let Some(at) = find_ignoring_case(&name, word) {
            change(&mut name, at, word.len(), from, to);
        }
    }
    for (word, from, to) in REFUSED_WHOLE {
        if name.eq_ignore_ascii_case(word) {
            change(&mut name, 0, word.len(), from, to);
        }
    }
    // These are forbidden in users' names (documentation, "Usernames and Nicknames"). Some of these rules apply to webhooks, too.
    let name: String = name
        .chars()
        .map(|c| match c {
            '@' => '＠',
            '#' => '＃',
            ':' => '：',
            '`' => '´',
            c => c,
        })
        .take(MAX_USERNAME_CHARS)
        .collect();
    let name = name.trim_end();
    if name.is_empty() { "companion".to_owned() } else { name.to_owned() }
}

/// Whether Discord treats two names as equal. It trims them and collapses white space.
pub fn is_same(left: &str, right: &str) -> bool {
    left.split_whitespace().eq(right.split_whitespace())
}

/// Whether a character is invisible, changes how others are displayed, or ends a line.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || is_noncharacter(c)
}

/// Whether a character is one of Unicode's 66 noncharacters.
pub(super) fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || (c as u32) & 0xfffe == 0xfffe
}

/// Whether a character joins or separates its neighbours and has no visible form of its own. Includes variation selectors.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character has no visible form: joiners, spaces, Hangul fillers, the empty Braille pattern.
fn is_blank(c: char) -> bool {
    is_joiner(c) || matches!(c, ' ' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}')
}

fn find_ignoring_case(name: &str, word: &str) -> Option<usize> {
    name.as_bytes().windows(word.len()).position(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// Replaces the first occurrence of a letter with the accented one.
fn change(name: &mut String, at: usize, length: usize, from: char, to: char) {
    let Some(distance) = name[at..at + length].find([from, from.to_ascii_uppercase()]) else { return };
    let index = at + distance;
    let accented = if name[index..].starts_with(from) { to.to_string() } else { to.to_uppercase().to_string() };
    name.replace_range(index..=index, &accented);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleaned_name_stays_recognisable() {
        for (name, expected) in [
            ("Ana", "Ana"),
            ("  Ana \t Lee\n", "Ana Lee"),
            ("Zoe\u{308}", "Zoë"),
            ("\u{202e}anA\u{202c}", "anA"),
            ("A\u{200b}n\u{2060}a\u{0}", "Ana"),
            ("a\u{2028}b", "a b"),
            ("👩\u{200d}🚀 Ana ❤\u{fe0f}", "👩\u{200d}🚀 Ana ❤\u{fe0f}"),
            ("A\u{200d}na\u{200d}", "Ana"),
            ("نام\u{200c}ها", "نام\u{200c}ها"),
            ("Z\u{334}\u{335}\u{336}\u{337}\u{338}\u{339}algo", "Z\u{334}\u{335}\u{336}algo"),
            ("山田", "山田"),
            ("\u{3164}", ""),
            ("\u{301}", ""),
            ("\u{200b} \u{2800}", ""),
            ("", ""),
        ] {
            assert_eq!(plain(name), plain(expected), "{name:?}");
            assert_eq!(plain(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_name_is_bounded() {
        assert_eq!(plain(&"é".repeat(1_000)).chars().count(), MAX_NAME_CHARS);
    }

    #[test]
    fn the_first_visible_name_is_shown() {
        let id = Snowflake::new(1_234_567_890).unwrap();

        assert_eq!(shown(["Nick", "Global", "user"], id), "Nick");
        assert_eq!(shown(["\u{3164}", "Global", "user"], id), "Global");
        assert_eq!(shown(["", " ", "\u{200b}"], id), "user 7890");
    }

    #[test]
    fn a_companions_name_is_changed_until_discord_accepts_it() {
        for (name, expected) in [
            ("Aria", "Aria"),
            (" Mira  Vale ", "Mira Vale"),
            ("Discordia", "Díscordia"),
            ("DISCORD fan", "DÍSCORD fan"),
            ("Clyde", "Clydé"),
            ("discord discord", "díscord díscord"),
            ("here", "hére"),
            ("Everyone", "Éveryone"),
            ("Heather", "Heather"),
            ("a@b #1: ```", "a＠b ＃1： ´´´"),
            ("\u{200b}", "companion"),
            ("", "companion"),
        ] {
            assert_eq!(username(name), expected, "{name:?}");
        }
    }

    #[test]
    fn names_that_differ_in_white_space_are_the_same() {
        assert!(is_same("Mira  Vale", " Mira Vale"));
        assert!(!is_same("Mira", "mira"));
    }
}
