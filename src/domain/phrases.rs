//! Finds the phrases of a list in texts, whatever their case, accents and punctuation.

use aho_corasick::AhoCorasick;

/// The phrases of a list, each with its meaning, and the automaton that finds all of them in one pass.
pub(super) struct Phrases<T> {
    meanings: Vec<T>,
    finder: Option<AhoCorasick>,
}

impl<T: Copy> Phrases<T> {
    /// A phrase has lower-case letters without accents. `*` at its end stands for any end of the word. Its words must be surrounded by spaces, unless
    /// it has other letters than those of ASCII.
    pub(super) fn new(phrases: impl IntoIterator<Item = (T, &'static str)>) -> Self {
        let pattern = |words: &str| match words.strip_suffix('*') {
            Some(beginning) => format!(" {beginning}"),
            None if words.is_ascii() => format!(" {words} "),
            None => words.to_owned(),
        };
        let (meanings, words): (Vec<_>, Vec<_>) = phrases.into_iter().unzip();
        // The automaton can always be built, because the patterns are few texts.
        Self { meanings, finder: AhoCorasick::new(words.into_iter().map(pattern)).ok() }
    }

    /// The meanings of the phrases in a text.
    pub(super) fn found_in(&self, text: &str) -> Vec<T> {
        let folded = folded(text);
        let found = self.finder.iter().flat_map(|finder| finder.find_overlapping_iter(&folded));
        found.map(|found| self.meanings[found.pattern()]).collect()
    }
}

/// The phrases of a list, each with the heading above it. A line has one phrase, or several with commas between them.
pub(super) fn sections(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut section = "";
    let phrases = list.lines().map(str::trim).filter(|line| !line.starts_with('#')).flat_map(move |line| {
        let heading = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        section = heading.unwrap_or(section);
        let phrases = if heading.is_some() { "" } else { line };
        phrases.split(',').map(move |phrase| (section, phrase.trim()))
    });
    phrases.filter(|(_, phrase)| !phrase.is_empty())
}

/// The words of a text in lower case, without accents and apostrophes, with one space before and after each.
pub(super) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    let mut add = |c: char| match c {
        // Apostrophes, accents of their own, and invisible characters.
        '\'' | '‘' | '’' | '`' | '´' | 'ʼ' | '′' | '＇' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{ad}' => {
        }
        c if c.is_alphanumeric() => folded.push(plain(c)),
        _ if folded.ends_with(' ') => {}
        _ => folded.push(' '),
    };
    for c in text.chars() {
        if c.is_ascii() { add(c.to_ascii_lowercase()) } else { c.to_lowercase().for_each(&mut add) }
    }
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
    folded
}

const fn plain(c: char) -> char {
    match c {
        'á' | 'à' | 'â' | 'ä' | 'ã' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' | 'õ' => 'o',
        'ú' | 'ù' | 'û' | 'ü' => 'u',
        'ñ' => 'n',
        'ç' => 'c',
        _ => c,
    }
}
