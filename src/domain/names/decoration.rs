//! Finds the words of a name that is decorated: `🔥Ember`, `★ Nova ★`, `小蝶🦋`, `xX_Dark_Xx`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What is left needs as many letters or digits to be a name.
const FEWEST_CHARS: usize = 2;

/// The words of a name without what decorates them. `None`: nothing decorates it, or too little is left to be a name.
pub(super) fn undecorated(name: &str) -> Option<String> {
    let mut words: Vec<&str> =
        name.split(is_decoration).map(without_hyphens).filter(|word| word.contains(char::is_alphanumeric)).collect();
    if let [first, .., last] = words[..]
        && words.len() > 2
        && is_x(first)
        && is_x(last)
    {
        words = words[1..words.len() - 1].to_vec();
    }
    if let [only] = words[..] {
        let inside = only.strip_prefix("xX").and_then(|rest| rest.strip_suffix("Xx"));
        words = vec![inside.filter(|inside| !inside.is_empty()).unwrap_or(only)];
    }
    // Letters of another style, such as bold or Gothic ones, are those letters.
    let plain = words.join(" ").nfkc().collect::<String>();
    let letters = plain.chars().filter(|c| c.is_alphanumeric());
    let is_name = letters.clone().count() >= FEWEST_CHARS && letters.clone().any(|c| !c.is_numeric());
    // Underscores within a name are how some write white space.
    let is_decorated = plain != name && plain != name.replace('_', " ");
    (is_name && is_decorated).then_some(plain)
}

/// Whether a character is no part of any word: neither a letter, a digit nor a mark, nor punctuation that names have.
fn is_decoration(c: char) -> bool {
    let is_variant = matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}');
    let is_punctuation = matches!(c, '-' | '\'' | '’' | '.' | ',' | ':' | '!' | '?' | '@' | '#' | '&' | '+' | '/' | '%' | '$');
    let is_joint = matches!(c, '·' | '・' | '‧' | '\u{200c}' | '\u{200d}');
    is_variant || !(c.is_alphanumeric() || is_combining_mark(c) || is_punctuation || is_joint)
}

/// A word without the hyphens or dots on both its sides.
fn without_hyphens(word: &str) -> &str {
    let inside = word.trim_matches(['-', '.', ':']);
    if word.starts_with(['-', '.', ':']) && word.ends_with(['-', '.', ':']) { inside } else { word }
}

fn is_x(word: &str) -> bool {
    word.bytes().all(|byte| matches!(byte, b'x' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_decorated_name_are_found() {
        for (name, expected) in [
            ("🔥Ember", "Ember"),
            ("★ Nova ★", "Nova"),
            ("小蝶🦋", "小蝶"),
            ("xX_Dark_Xx", "Dark"),
            ("xXDarkXx", "Dark"),
            ("x_Dark_Lord_x", "Dark Lord"),
            ("❤️Rosa❤️", "Rosa"),
            ("👩‍🚀 Mira Vale", "Mira Vale"),
            ("꧁༺Luna༻꧂", "Luna"),
            ("【Nova】", "Nova"),
            ("~*Lily*~", "Lily"),
            ("-=Max=-", "Max"),
            ("--Max--", "Max"),
            ("_kai_", "kai"),
            ("★Mary_Jane★", "Mary Jane"),
            ("Nova™", "Nova"),
            ("𝓔𝓶𝓫𝓮𝓻", "Ember"),
            ("Ｎｏｖａ", "Nova"),
            ("✨अदिति✨", "अदिति"),
            ("Zoë♡", "Zoë"),
            ("C-3PO🤖", "C-3PO"),
            ("D'Arcy ⚔", "D'Arcy"),
        ] {
            assert_eq!(undecorated(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_name_without_decoration_has_no_second_one() {
        for name in [
            "Ember",
            "Mira Vale",
            "night_owl",
            "Mary_Jane",
            "C++",
            "C-3PO",
            "c3po!",
            "@x",
            ".NET",
            "D'Arcy",
            "Dr. Who",
            "小蝶",
            "Max",
            "xX",
            "🤖",
            "★",
            "★ 7 ★",
            "蝶🦋",
            "",
            "A★",
        ] {
            assert_eq!(undecorated(name), None, "{name}");
        }
    }
}
