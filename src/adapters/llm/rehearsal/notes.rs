//! Notes of the built-in model: what people say of themselves, in their own words.

use std::collections::BTreeSet;

use serde_json::json;

/// The beginnings of sentences in which people say something of themselves, in lower case.
const OF_ONESELF: &[&str] = &[
    "i am ",
    "i'm ",
    "i have ",
    "i've ",
    "i like ",
    "i prefer ",
    "i play ",
    "i work ",
    "i study ",
    "i will ",
    "i'll ",
    "i want to ",
    "my ",
    "our ",
    "ich bin ",
    "ich habe ",
    "ich mag ",
    "ich spiele ",
    "ich arbeite ",
    "mein ",
    "meine ",
    "soy ",
    "tengo ",
    "me gusta ",
    "mi ",
    "je suis ",
    "j'ai ",
    "j'aime ",
    "mon ",
    "ma ",
    "eu sou ",
    "eu tenho ",
    "eu gosto ",
    "meu ",
    "minha ",
];
/// Shorter sentences say too little, and longer ones are no notes.
const WORDS: std::ops::RangeInclusive<usize> = 4..=18;
const MOST: usize = 5;

/// A line for each note about the talk in a prompt.
pub(super) fn notes(prompt: &str) -> String {
    let mut seen = BTreeSet::new();
    let talk = prompt.split_once("<talk>").map_or("", |(_, rest)| rest.split("</talk>").next().unwrap_or_default());
    let noted = talk.lines().filter_map(|line| {
        let (begin, text) = line.split_once(": \"")?;
        let (number, who) = begin.split_once(' ')?;
        let text: String = serde_json::from_str(&format!("\"{text}")).ok()?;
        let sentence = text.split_inclusive(['.', '!', '?', '\n']).map(str::trim).find(|sentence| is_of_oneself(sentence))?;
        let number: u64 = number.parse().ok()?;
        let is_new = !who.ends_with(')') && seen.insert((who, sentence.to_lowercase()));
        is_new.then(|| json!({ "about": who, "text": format!("{who} says: {sentence}"), "from": [number] }).to_string())
    });
    noted.take(MOST).collect::<Vec<String>>().join("\n")
}

fn is_of_oneself(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    OF_ONESELF.iter().any(|begin| lower.starts_with(begin))
        && !lower.ends_with('?')
        && WORDS.contains(&lower.split_whitespace().count())
}
