//! Decides whether readers may confuse two names, by Unicode's confusable characters (UTS #39), in any case.

use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

use super::text::seen;

/// Whether two names look alike. This includes equal names.
pub fn look_alike(one: &str, other: &str) -> bool {
    let other = shapes(other);
    shapes(one).iter().any(|shape| other.contains(shape))
}

/// The shapes of a name without its separators, as written and in lower case: `I` looks like `l`, and `i` does not. Names look alike if they have a
/// shape in common.
pub fn shapes(name: &str) -> [String; 2] {
    let plain = plain(name);
    [plain.clone(), plain.to_lowercase()].map(|name| {
        let shape = skeleton(&name).collect::<String>().to_lowercase();
        let letters = shape.replace(|c| SEPARATORS.contains(c), "");
        if letters.is_empty() { shape } else { letters }
    })
}

/// The shape of a text in lower case.
pub fn shape(text: &str) -> String {
    skeleton(&plain(text).to_lowercase()).collect::<String>().to_lowercase()
}

/// What readers hardly notice in or around a name.
const SEPARATORS: &str = " .,:;_-~*'\"`\u{b7}";

fn plain(text: &str) -> String {
    // U+2800 is rendered as a blank.
    let is_blank = |c: char| c.is_whitespace() || c == '\u{2800}';
    let plain = seen(text).nfkc().collect::<String>();
    plain.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_confusable_characters_look_alike() {
        for (one, other) in [
            ("Aria", "\u{410}ria"),
            ("Aria", "\u{430}r\u{456}\u{430}"),
            ("Aria", "\u{ff21}\u{ff52}\u{ff49}\u{ff41}"),
            ("Aria", "ar\u{131}a"),
            ("Bruno", "Brun0"),
            ("Lara", "Iara"),
            ("Old Ben", "old\u{a0}\u{3000}BEN"),
            ("Aria", "ARIA"),
            ("Aria", "A\u{ad}ria"),
            ("Aria", "\u{200b}Ar\u{2060}ia\u{202e}"),
            ("Aria", "Aria\u{fffc}"),
            ("Aria", "\u{2800}Aria\u{2800}"),
            ("Aria", "A r i a"),
            ("Aria", "'Aria."),
            ("Aria", "Ar\u{b7}ia"),
            ("Al", "A|"),
        ] {
            assert!(look_alike(one, other) && look_alike(other, one), "{one} {other}");
        }
    }

    #[test]
    fn names_that_differ_in_a_letter_do_not_look_alike() {
        for (one, other) in [
            ("Aria", "Arla"),
            ("Aria", "Ari"),
            ("Zoé", "Zoe"),
            ("Иван", "Ivan"),
            ("Bruno", "Cleo"),
            ("山田", "山口"),
            ("!", "?"),
            ("C", "C#"),
        ] {
            assert!(!look_alike(one, other), "{one} {other}");
        }
    }
}
