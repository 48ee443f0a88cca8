//! Removes the markup that a model left in text that is to be spoken (docs/design/voice.md A-61).

use super::super::links::web_address;
use super::unspoken::{Fence, direction};

/// Removing markup from a line can produce new markup, so several passes run. No line that a person would write needs more than this.
const MOST_PASSES: usize = 8;

/// The displayed text of a spoken statement: without Markdown, without emoji, and with links reduced to their labels. Blocks of code, addresses and
/// stage directions are kept, although they are not spoken as written. No word is lost. Empty if nothing is left to say. The running time is linear
/// in the length of the text.
pub fn spoken_text(text: &str) -> String {
    let mut code: Option<Fence> = None;
    let mut lines = Vec::new();
    for line in text.trim().lines() {
        if let Some(fence) = code {
            code = (!fence.is_closed_by(line)).then_some(fence);
            lines.push(line.to_owned());
        } else if let Some(fence) = Fence::of(line) {
            code = Some(fence);
            lines.push(line.to_owned());
        } else {
            lines.extend(spoken_line(line));
        }
    }
    lines.join("\n").trim().to_owned()
}

/// Removes the markup of one line. `None` if the line is only a rule.
fn spoken_line(line: &str) -> Option<String> {
    let mut spoken = line.trim().to_owned();
    for _ in 0..MOST_PASSES {
        if is_rule(&spoken) {
            return None;
        }
        let next = without_marks(without_prefixes(&spoken)).trim().to_owned();
        if next == spoken {
            return Some(spoken);
        }
        spoken = next;
    }
    // Without these characters one more pass leaves no markup.
    let plain = spoken.replace(['*', '_', '~', '`', '[', ']', '<', '>', '\u{200d}', '\u{20e3}'], "").replace('|', " ");
    let plain = without_marks(&plain);
    let spoken = without_prefixes(&plain);
    (!is_rule(spoken)).then(|| spoken.to_owned())
}

/// Whether a line is only a separator: a rule, the underline of a heading or the header row of a table, or a fence around code.
fn is_rule(line: &str) -> bool {
    line.trim().len() >= 3 && line.chars().all(|c| c.is_whitespace() || "-=_*~`|:".contains(c))
}

/// Removes all heading, quotation and list item marks at the beginning of a line.
fn without_prefixes(line: &str) -> &str {
    let mut rest = line.trim();
    loop {
        let next = without_prefix(rest);
        if next.len() == rest.len() {
            return rest;
        }
        rest = next;
    }
}

/// Removes the first such mark. The number of a list item counts as a word.
fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(['#', '>']);
    if rest.len() < line.len() && (rest.starts_with(char::is_whitespace) || line.starts_with('>')) {
        return rest.trim_start();
    }
    let item = line.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with(char::is_whitespace));
    item.map_or(line, str::trim_start)
}

/// Removes the marks inside a line.
fn without_marks(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut rest, mut before, mut is_gap) = (line, None, false);
    while let Some(c) = rest.chars().next() {
        if let Some((text, after)) = link(rest).or_else(|| address(rest)) {
            out.push_str(text);
            (rest, before, is_gap) = (after, text.chars().last(), false);
            continue;
        }
        let kept_whole = direction(&out, rest).or_else(|| web_address(before, rest).map(|(length, _)| length));
        if let Some(length) = kept_whole {
            let (text, after) = rest.split_at(length);
            out.push_str(text);
            (rest, before, is_gap) = (after, text.chars().last(), false);
            continue;
        }
        let run = &rest[..rest.len() - rest.trim_start_matches(c).len()];
        let kept = match c {
            '*' | '_' | '~' | '`' | '|' => kept(run, before, rest[run.len()..].chars().next()),
            _ if is_emoji(c, before, rest[run.len()..].chars().next()) => "",
            _ => run,
        };
        let after = &rest[run.len()..];
        let is_space = kept.starts_with(char::is_whitespace);
        let is_end = matches!(c, '.' | ',' | '!' | '?' | ';' | ':' | '…') && after.chars().next().is_none_or(char::is_whitespace);
        // Where something was removed, the white space on both sides is joined to one.
        if is_gap && (is_space || is_end) {
            out.truncate(out.trim_end().len());
        }
        out.push_str(kept);
        is_gap = kept.is_empty() || is_gap && is_space;
        (rest, before) = (after, Some(c));
    }
    out
}

/// The part to keep of a run of equal marks between two characters.
fn kept(run: &str, before: Option<char>, after: Option<char>) -> &str {
    let are = |is: fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
    let is_apart = before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
    match run.as_bytes()[0] {
        // Two or more of them are always marks.
        b'*' | b'_' | b'~' if run.len() == 1 && is_apart => run,
        b'*' if are(char::is_numeric) => run,
        b'_' if are(char::is_alphanumeric) => run,
        b'~' if run.len() == 1 => run,
        // A separator of table cells also separates words.
        b'|' if !are(char::is_whitespace) && before.is_some() && after.is_some() => " ",
        _ => "",
    }
}

/// The label of the link or image at the beginning of a text, and the text after it. The search ends at the next bracket, so that no part of a text
/// is searched twice.
fn link(text: &str) -> Option<(&str, &str)> {
    let label = text.strip_prefix('!').unwrap_or(text).strip_prefix('[')?;
    let (label, rest) = label.split_at(label.find(['[', ']'])?);
    let target = rest.strip_prefix("](")?;
    let (target, rest) = target.split_at(target.find(['[', ']', ')'])?);
    let rest = rest.strip_prefix(')')?;
    let target = target.split_whitespace().next().unwrap_or_default();
    let is_target = target.contains("://") || ["mailto:", "/", "#", "www.", "."].iter().any(|start| target.starts_with(start));
    is_target.then_some((label, rest))
}

/// The address in angle brackets at the beginning of a text, and the text after it.
fn address(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('<')?;
    let (address, rest) = text.split_at(text.find(['<', '>', ' '])?);
    address.contains("://").then_some((address, rest.strip_prefix('>')?))
}

/// Whether a character is part of an emoji: a picture, a modifier or a joiner. Letters and digits in circles and squares are not.
fn is_emoji(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_picture = |c: char| {
        matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b05}'..='\u{2b07}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}' | '\u{2b55}')
            || matches!(c, '\u{231a}' | '\u{231b}' | '\u{23e9}'..='\u{23fa}' | '\u{e0020}'..='\u{e007f}')
    };
    match c {
        '\u{fe0f}' | '\u{20e3}' => true,
        '\u{200d}' => [before, after].into_iter().flatten().any(|near| is_picture(near) || near == '\u{fe0f}'),
        c => is_picture(c) && !c.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_is_removed() {
        for (text, expected) in [
            ("Well, *that* is **quite** a `boat`.", "Well, that is quite a boat."),
            ("***All*** of ~~it~~ __this__ and _that_", "All of it this and that"),
            (
                "# A heading\n\n> quoted\n> again\n---\n- one\n* two\n+ three\n• four\n1. five",
                "A heading\n\nquoted\nagain\none\ntwo\nthree\nfour\n1. five",
            ),
            (
                "See [the chart](https://example.org/a_b \"Tide\") or <https://example.org>.",
                "See the chart or https://example.org.",
            ),
            ("![A boat](/boat.png) **[here](#top)**", "A boat here"),
            ("**Try:**\n```rust\nlet *x* = _2_;\n```\n*So* it _is_", "Try:\n```rust\nlet *x* = _2_;\n```\nSo it is"),
            ("`one` ```line```", "one line"),
            ("_See_ https://a.example/b_c*d_e. **Now**", "See https://a.example/b_c*d_e. Now"),
            ("*smiles* **Hello**. *waves* I *really* mean it", "*smiles* Hello. *waves* I really mean it"),
            ("| a | b |\n|---|---|\n| c|d |", "a b\nc d"),
            ("||the end||", "the end"),
            ("Hello 😀! 👩‍👩‍👧 We ❤️ it 👍🏽.", "Hello! We it."),
            ("1️⃣ first 🇪🇸", "1 first"),
            ("😀", ""),
        ] {
            assert_eq!(spoken_text(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_markup_stays() {
        for text in [
            "",
            "2 * 3 and 2*3, ~5 of them",
            "snake_case_name - a dash",
            "[sic](he said) and [a]",
            "f(x) < 3 > 2",
            "#1 and -5",
            "क्‍ष",
            "Ⓜ",
            "C# – well… “yes”, ja!",
            "one\n\ntwo",
        ] {
            assert_eq!(spoken_text(text), text);
        }
    }

    /// The characters of which words are made, word by word.
    fn words(text: &str) -> Vec<String> {
        let letters = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        text.split_whitespace().map(letters).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn a_line_of_nothing_but_marks_is_read_quickly() {
        for (part, left) in [("> ", 0), ("- ", 0), ("*a", 50_000), ("[](a", 200_000), ("![", 100_000), ("<://", 200_000)] {
            assert_eq!(spoken_text(&format!("{}x", part.repeat(50_000))).len(), left + 1, "{part}");
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_nothing_is_left_to_remove(text in prop_oneof![
            any::<String>(),
            "[a-c1 \n*_~`#>|<!\\[\\]()😀\u{200d}\u{fe0f}❤.,-]{0,40}",
        ]) {
            let spoken = spoken_text(&text);
            prop_assert_eq!(spoken_text(&spoken), &*spoken);
            // Cells of a table may stand without white space between them.
            let has_links = text.contains("](") || text.contains("://");
            prop_assert!(has_links || words(&spoken) == words(&text.replace('|', " ")), "{:?} became {:?}", text, spoken);
        }
    }
}
