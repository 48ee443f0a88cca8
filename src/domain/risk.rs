//! Signs that somebody wants to die or to hurt themselves, in what people say to companions (docs/design/safety.md N-8).
//!
//! A list of phrases raises the question, and a model answers it with its vote. Where no model answers, the unmistakable phrases decide alone.

use std::sync::LazyLock;

/// How clear a sign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// It raises the question.
    Possible,
    /// It counts where no model answers.
    Clear,
}

/// Marks of a joke, of a game or a story, and of talk about others. With one of them no phrase is clear.
const NOT_EARNEST: &[&str] = &[
    "lol",
    "lmao",
    "lmfao",
    "rofl",
    "haha*",
    "hehe*",
    "jaja*",
    "xd",
    "jk",
    "mdr",
    "ptdr",
    "kkk*",
    "rsrs",
    "boss",
    "respawn*",
    "lobby",
    "level",
    "nerf*",
    "speedrun*",
    "npc",
    "gta",
    "lyric*",
    "song",
    "lied",
    "songtext",
    "cancion",
    "chanson",
    "musica",
    "movie",
    "film*",
    "pelicula",
    "filme",
    "serie*",
    "buch",
    "book",
    "roman",
    "novel*",
    "libro",
    "livro",
    "livre",
    "folge",
    "episode*",
    "spiel*",
    "game*",
    "juego*",
    "partida",
    "jogo",
    "jeu",
    "morir de",
    "morirme de",
    "muero de",
    "die of",
    "die from",
    "sterben vor",
    "sterbe vor",
    "mourir de",
    "morrer de",
    "my friend",
    "a friend",
    "his friend",
    "my brother",
    "my sister",
    "my cousin",
    "kumpel",
    "ein freund",
    "eine freundin",
    "mein bruder",
    "un amigo",
    "una amiga",
    "mi hermano",
    "mi hermana",
    "um amigo",
    "uma amiga",
    "un ami",
    "une amie",
];
const NOT_EARNEST_SIGNS: &[char] = &['💀', '😂', '🤣', '😆', '☠', '笑', '草'];

static PHRASES: LazyLock<Vec<(Sign, Phrase)>> = LazyLock::new(|| {
    let lines = include_str!("risk/words.txt").lines().map(str::trim);
    let phrases = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    let clear = |line: &'static str| line.strip_prefix('!').map_or((Sign::Possible, line), |line| (Sign::Clear, line));
    phrases
        .map(|line| {
            let (sign, words) = clear(line);
            (sign, Phrase::new(words))
        })
        .collect()
});

/// Consecutive words. The last may stand for all words that begin with it.
struct Phrase {
    text: String,
    /// Japanese has no spaces between words.
    is_anywhere: bool,
}

impl Phrase {
    fn new(words: &str) -> Self {
        match words.is_ascii() {
            true => {
                let words = words.split(' ').map(|word| format!(" {word}")).collect::<String>();
                let text = words.strip_suffix('*').map_or_else(|| format!("{words} "), str::to_owned);
                Self { text, is_anywhere: false }
            }
            false => Self { text: words.to_owned(), is_anywhere: true },
        }
    }

    fn is_in(&self, folded: &str, text: &str) -> bool {
        if self.is_anywhere { text.contains(&self.text) } else { self.is_in_words(folded) }
    }

    /// An asterisk in the middle stands for the end of a word, too.
    fn is_in_words(&self, folded: &str) -> bool {
        let Some((begin, rest)) = self.text.split_once('*') else { return folded.contains(&self.text) };
        folded.match_indices(begin).any(|(at, _)| {
            let after = folded[at + begin.len()..].trim_start_matches(char::is_alphanumeric);
            after.starts_with(rest)
        })
    }
}

/// The clearest sign in a text.
pub fn sign(text: &str) -> Option<Sign> {
    let folded = folded(text);
    let found = PHRASES.iter().filter(|(_, phrase)| phrase.is_in(&folded, text)).map(|(sign, _)| *sign).max()?;
    let is_light = text.contains(NOT_EARNEST_SIGNS) || NOT_EARNEST.iter().any(|mark| Phrase::new(mark).is_in_words(&folded));
    Some(if is_light { Sign::Possible } else { found })
}

/// The words of a text in lower case, without accents and apostrophes, with one space before and after each.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            '\'' | '’' | '`' | '´' => {}
            c if c.is_alphanumeric() => folded.push(plain(c)),
            _ if folded.ends_with(' ') => {}
            _ => folded.push(' '),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmistakable_phrases_are_found_in_every_language() {
        for text in [
            "honestly i don’t want to live anymore",
            "I WANT TO DIE.",
            "Ich will nicht mehr leben…",
            "ich möchte sterben",
            "ya no quiero vivir así",
            "quisiera estar muerta",
            "j'ai envie de mourir",
            "não quero mais viver",
            "もう死にたい",
        ] {
            assert_eq!(sign(text), Some(Sign::Clear), "{text}");
        }
    }

    #[test]
    fn what_may_be_meant_otherwise_only_raises_the_question() {
        for text in [
            "i keep dying at this boss",
            "kms this is so embarrassing",
            "I want to die 💀",
            "Ich will sterben, haha",
            "me muero de risa",
        ] {
            assert_eq!(sign(text), Some(Sign::Possible), "{text}");
        }
        for text in ["What time is it?", "Wir gehen ins Kino.", "¿Qué hora es?", "", "🦀"] {
            assert_eq!(sign(text), None, "{text}");
        }
    }
}
