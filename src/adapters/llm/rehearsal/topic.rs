//! Finds the words of a message that it is about, to be quoted; none if that is uncertain.

use super::kind::listed;

/// Words after which a noun stands, perhaps with adjectives before it.
const BEFORE: &str = "a an the my your our his her their its this that these which what any some about of like love hate prefer play buy two three four five";
/// Words that end it.
const AFTER: &str = "i you we he she it they me us them who what which when where why how am is are was were be been do does did has have had can could \
    shall should will would may might must and or but if so than then as at by for from in into of on off out over to up with without not no yes all \
    along again ever never just also too very there here now soon lately today tonight tomorrow yesterday about after before during while because that \
    this these the a an my your our his her their its every each any some more most";
/// Words that say too little alone.
const VAGUE: &str = "bit chance couple day days end evening fact kind last lot morning moment month night number one ones part people person place point \
    reason same side sort thing things time times way week weekend word words year years";

/// Up to two words, in small letters. `names`: words that name somebody.
pub(super) fn topic(text: &str, names: &[String]) -> Option<String> {
    let tokens: Vec<(&str, bool)> = tokens(text).collect();
    let lower: Vec<String> = tokens.iter().map(|(word, _)| word.to_lowercase()).collect();
    // "A" is also a word of other languages.
    let is_english = |word: &&String| *word != "a" && (listed(AFTER, word) || listed(BEFORE, word));
    if lower.iter().filter(is_english).count() * 4 < tokens.len() {
        return None;
    }
    // Capitalised words are names, or begin a sentence.
    let is_content = |at: usize| {
        let word = tokens[at].0;
        word.len() > 2
            && word.chars().all(|c| c.is_ascii_lowercase())
            && !listed(AFTER, word)
            && !names.iter().any(|name| name == word)
    };
    let found = (0..tokens.len().saturating_sub(1)).filter(|at| {
        let is_before = listed(BEFORE, &lower[*at]) || lower[*at].bytes().all(|byte| byte.is_ascii_digit());
        is_before && !tokens[*at].1
    });
    let phrase = |at: usize| {
        let is_pair = |at: usize| !tokens[at].1 && tokens.get(at + 1).is_some() && is_content(at + 1);
        // "The street bend there": the third word would say what the second one is.
        let ends = |at: usize| tokens[at].1 || at + 1 == tokens.len() || !is_content(at + 1);
        match is_content(at) {
            true if is_pair(at) && ends(at + 1) => Some(format!("{} {}", tokens[at].0, tokens[at + 1].0)),
            true if ends(at) && !listed(VAGUE, tokens[at].0) => Some(tokens[at].0.to_owned()),
            _ => None,
        }
    };
    found.into_iter().find_map(|at| phrase(at + 1))
}

/// Words that say in a question what one wants, not what it is about.
const WANTING: &str = "remember know tell told said say saying think gave give get got mean meant please anybody anyone somebody";

/// Whether a word in lower case tells something about the matter of a question.
pub(super) fn is_telling(word: &str) -> bool {
    word.chars().count() > 2 && ![BEFORE, AFTER, VAGUE, WANTING].iter().any(|list| listed(list, word))
}

/// The words of a text, and whether something else than a space follows each.
fn tokens(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_whitespace().filter_map(|part| {
        let word = part.trim_matches(|c: char| !c.is_alphanumeric());
        (!word.is_empty()).then(|| (word, !part.ends_with(word)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_of_a_message_is_one_or_two_of_its_words_or_none() {
        for (text, expected) in [
            ("who knows the old harbour?", Some("old harbour")),
            ("I just lost my job and I do not know what to do", Some("job")),
            ("What is a tertulia?", Some("tertulia")),
            ("my sourdough has failed for the third time", Some("sourdough")),
            ("which board game shall we play on Friday?", Some("board game")),
            ("we saw 17 comets", Some("comets")),
            ("what do you all think of night trains?", Some("night trains")),
            ("Do you like cats?", Some("cats")),
            ("What did you do last weekend?", None),
            ("Cleo, are you the funniest?", Some("funniest")),
            ("aria, what would cleo say about bruno?", None),
            ("I met my Ana yesterday", None),
            ("Does anybody get along?", None),
            ("ok", None),
            ("¿Vamos a comer a la playa?", None),
            ("Das ist a problem der Zeit", None),
            ("今日はいい天気ですね", None),
            ("", None),
        ] {
            let names = ["ana", "aria", "bruno", "cleo"].map(str::to_owned);
            assert_eq!(topic(text, &names).as_deref(), expected, "{text}");
        }
    }
}
