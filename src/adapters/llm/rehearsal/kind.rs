//! Classifies a message by a few of its words.

use crate::domain::event::ENTERED_CALL;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Greeting,
    Thanks,
    Goodbye,
    /// Bad news about the author.
    Trouble,
    /// A call for help.
    Help,
    /// A request for a joke.
    Joke,
    /// Another request.
    Request,
    Question,
    /// The author talks about themselves.
    Story,
    Remark,
}

const GREETINGS: [&str; 11] =
    ["hi", "hello", "hey", "hola", "greetings", "howdy", "hiya", "morning", "evening", "afternoon", "hallo"];
const THANKS: [&str; 6] = ["thanks", "thank", "thx", "ty", "cheers", "gracias"];
const GOODBYES: [&str; 6] = ["bye", "goodbye", "goodnight", "gn", "cya", "farewell"];
const ASKING: [&str; 25] = [
    "who", "whose", "what", "when", "where", "why", "how", "which", "can", "could", "should", "would", "does", "do", "did", "is",
    "are", "was", "were", "has", "have", "will", "anyone", "anybody", "any",
];
const SELF: [&str; 8] = ["i", "my", "me", "we", "our", "im", "ive", "us"];
const SAD: [&str; 29] = [
    "lost",
    "died",
    "dead",
    "sad",
    "lonely",
    "sick",
    "ill",
    "fired",
    "failed",
    "depressed",
    "anxious",
    "funeral",
    "divorce",
    "divorced",
    "miserable",
    "exhausted",
    "unhappy",
    "heartbroken",
    "stolen",
    "crying",
    "cry",
    "rejected",
    "hospital",
    "afraid",
    "hurts",
    "awful",
    "terrible",
    "dumped",
    "scared",
];
const WANTING: [&str; 18] = [
    "tell",
    "give",
    "show",
    "sing",
    "write",
    "recommend",
    "suggest",
    "explain",
    "describe",
    "talk",
    "say",
    "imagine",
    "guess",
    "name",
    "please",
    "invent",
    "teach",
    "discuss",
];
const EVERYBODY: [&str; 8] = ["everybody", "everyone", "anybody", "anyone", "folks", "guys", "yall", "friends"];

impl Kind {
    /// Classifies a text.
    pub fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let words = words(&lower);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
        let first = words.first().copied().unwrap_or_default();
        let is_short = words.len() <= 6;
        let asks = text.contains(['?', '？']);
        if text.ends_with(ENTERED_CALL) {
            Self::Greeting
        } else if !asks && !ASKING.contains(&first) && (is_goodbye(text) && is_short || is_parting(&words)) {
            Self::Goodbye
        } else if has(&SAD) && has(&SELF) && !ASKING.contains(&first) {
            Self::Trouble
        } else if is_greeting(&words, asks) {
            Self::Greeting
        } else if has(&["help"])
            && (words.len() <= 2
                || first == "help"
                || contains_phrase(&words, &["help", "me"])
                || contains_phrase(&words, &["need", "help"]))
        {
            Self::Help
        } else if has(&["joke", "jokes"]) && (asks || has(&["tell", "make", "give", "know", "another", "want", "need"])) {
            Self::Joke
        } else if is_wanting(&words) {
            Self::Request
        } else if is_short && has(&THANKS) && !asks {
            Self::Thanks
        } else if asks || (ASKING.contains(&first) && !contains_phrase(&words, &["what", "a"])) {
            Self::Question
        } else if has(&SELF) && words.len() >= 4 {
            Self::Story
        } else {
            Self::Remark
        }
    }
}

/// Whether a text addresses the whole room, so that silence would be strange.
pub(super) fn is_for_all(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    let calls = words.iter().any(|word| EVERYBODY.contains(word));
    calls
        || contains_phrase(&words, &["you", "all"])
        || contains_phrase(&words, &["all", "of", "you"])
        || Kind::of(text) != Kind::Remark
}

/// Whether a text is at most three words long, so that nobody has to answer it.
pub(super) fn is_brief(text: &str) -> bool {
    words(text).len() < 4 && text.is_ascii()
}

/// Whether a text says goodbye.
pub(super) fn is_goodbye(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    words.iter().any(|word| GOODBYES.contains(word))
        || contains_phrase(&words, &["good", "night"])
        || contains_phrase(&words, &["take", "care"])
}

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn contains_phrase(words: &[&str], phrase: &[&str]) -> bool {
    words.windows(phrase.len()).any(|window| window == phrase)
}

fn is_parting(words: &[&str]) -> bool {
    let first = words.first().copied().unwrap_or_default();
    words.len() <= 3 && matches!(first, "later" | "night")
        || words.len() <= 6 && (contains_phrase(words, &["see", "you"]) || contains_phrase(words, &["see", "ya"]))
}

fn is_greeting(words: &[&str], asks: bool) -> bool {
    let begins = words.iter().take(2).any(|word| GREETINGS.contains(word)) || words.len() <= 6 && words.contains(&"hello");
    let how = [
        ["how", "are"],
        ["how", "is"],
        ["how", "s"],
        ["what", "s"],
        ["whats", "up"],
        ["how", "do"],
        ["is", "anyone"],
        ["is", "anybody"],
        ["anybody", "here"],
        ["anyone", "here"],
    ];
    let how = how.iter().any(|pair| contains_phrase(words, pair));
    begins && (if asks { how && words.len() <= 12 } else { words.len() <= 8 })
}

fn is_wanting(words: &[&str]) -> bool {
    let first = words.first().copied().unwrap_or_default();
    let polite = matches!(words, ["can" | "could" | "would" | "will", "you" | "somebody" | "someone" | "anybody" | "anyone", ..]);
    let verb = words.iter().take(4).any(|word| WANTING.contains(word));
    let together = first == "lets" || matches!(words, ["let", "us" | "s", ..]);
    WANTING.contains(&first) || together || (polite && verb) || (words.len() > 1 && words.last() == Some(&"please"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[(&str, Kind)] = &[
        ("Hello everyone, how are you all today?", Kind::Greeting),
        ("good morning everyone", Kind::Greeting),
        ("Hey, does anyone know a good pizza place?", Kind::Question),
        ("tell me a joke", Kind::Joke),
        ("Can you tell me about the moon?", Kind::Request),
        ("Let us talk about the moon, all of you", Kind::Request),
        ("Let's plan a picnic", Kind::Request),
        ("I just lost my job and I do not know what to do.", Kind::Trouble),
        ("My dog died", Kind::Trouble),
        ("help", Kind::Help),
        ("help, my bicycle chain keeps falling off", Kind::Help),
        ("can you help me with my homework?", Kind::Help),
        ("thanks Mira!", Kind::Thanks),
        ("Thanks Mira, and what comes next?", Kind::Question),
        ("ok bye", Kind::Goodbye),
        ("see you later", Kind::Goodbye),
        ("what makes a good night train?", Kind::Question),
        ("night trains are running again", Kind::Remark),
        ("Why is the moon so bright", Kind::Question),
        ("what a night", Kind::Remark),
        ("I finally repaired the old telescope", Kind::Story),
        ("ok", Kind::Remark),
        ("", Kind::Remark),
    ];

    #[test]
    fn messages_are_classified_as_a_person_would() {
        for (text, kind) in TABLE {
            assert_eq!(Kind::of(text), *kind, "{text}");
        }
    }

    #[test]
    fn messages_to_the_whole_room_are_distinguished_from_remarks() {
        for text in ["Let us talk about the moon, all of you", "help", "everybody look", "I lost my job", "rain again, you all"] {
            assert!(is_for_all(text), "{text}");
        }
        for text in ["ok", "lol", "the lamp fell over", ""] {
            assert!(!is_for_all(text), "{text}");
        }
    }
}
