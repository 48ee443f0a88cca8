//! Extracts the words of a decorated name: `🔥Ember`, `★ Nova ★`, `小蝶🦋`, `xX_Dark_Xx`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The minimum number of letters and digits in the remaining name.
const FEWEST_CHARS: usize = 2;

/// The words of a name without decoration. `None` if the name is not decorated, or if too little remains.
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
    // Stylised letters, such as bold or Gothic ones, become plain letters.
    let plain = words.join(" ").nfkc().collect::<String>();
    let letters = plain.chars().filter(|c| c.is_alphanumeric());
    let is_name = letters.clone().count() >= FEWEST_CHARS && letters.clone().any(|c| !c.is_numeric());
    // Underscores within a name often replace spaces.
    let is_decorated = plain != name && plain != name.replace('_', " ");
    (is_name && is_decorated).then_some(plain)
}

/// Whether a character belongs to no word: neither a letter, digit or mark, nor punctuation that occurs in names.
fn is_decoration(c: char) -> bool {
    let is_variant = matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}');
    let is_punctuation = matches!(c, '-' | '\'' | '’' | '.' | ',' | ':' | '!' | '?' | '@' | '#' | '&' | '+' | '/' | '%' | '$');
    let is_joint = matches!(c, '·' | '・' | '‧' | '\u{200c}' | '\u{200d}');
    is_variant || !(c.is_alphanumeric() || is_combining_mark(c) || is_punctuation || is_joint)
}

/// Removes hyphens, dots or colons if they are on both sides of a word.
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
