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
    Remark,
}

const GREETINGS: &str = "hi hello hey hola greetings howdy hiya morning evening afternoon hallo";
const HOW_IT_GOES: [&[&str]; 5] = [&["how", "are"], &["how", "is"], &["how", "s"], &["what", "s"], &["whats", "up"]];
const THANKS: &str = "thanks thank thx ty cheers gracias";
const GOODBYES: &str = "bye goodbye goodnight gn cya farewell";
const PARTINGS: [&[&str]; 4] = [&["good", "night"], &["take", "care"], &["see", "you"], &["see", "ya"]];
const ASKING: &str =
    "who whose what when where why how which can could should would does do did is are was were has have will anyone anybody any";
const SELF: &str = "i my me we our im ive us";
const SAD: &str = "lost died dead sad lonely sick ill fired failed depressed anxious funeral divorce miserable exhausted unhappy heartbroken stolen \
    crying rejected hospital afraid hurts awful terrible dumped scared";
const WANTING: &str =
    "tell give show sing write recommend suggest explain describe talk say imagine guess name please invent teach discuss lets";
const EVERYBODY: &str = "everybody everyone anybody anyone folks guys yall friends";

impl Kind {
    /// Classifies a text.
    pub fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let words = words(&lower);
        let has = |list: &str| words.iter().any(|word| listed(list, word));
        let first = words.first().copied().unwrap_or_default();
        let is_short = words.len() <= 6;
        let asks = text.contains(['?', '？']);
        let is_about_self = has(SELF) && !listed(ASKING, first);
        if text.ends_with(ENTERED_CALL) {
            Self::Greeting
        } else if !asks && !listed(ASKING, first) && is_short && is_goodbye(text) {
            Self::Goodbye
        } else if is_about_self && has(SAD) {
            Self::Trouble
        } else if words.iter().take(2).any(|word| listed(GREETINGS, word))
            && words.len() <= 8
            && (!asks || HOW_IT_GOES.iter().any(|phrase| contains(&words, phrase)))
        {
            Self::Greeting
        } else if first == "help" || contains(&words, &["help", "me"]) || contains(&words, &["need", "help"]) {
            Self::Help
        } else if has("joke jokes") && (asks || has("tell make give know another want need")) {
            Self::Joke
        } else if is_wanting(&words) {
            Self::Request
        } else if is_short && has(THANKS) && !asks {
            Self::Thanks
        } else if asks || listed(ASKING, first) && !contains(&words, &["what", "a"]) {
            Self::Question
        } else {
            Self::Remark
        }
    }

    /// Whether the author asks or requests something.
    pub fn asks(self) -> bool {
        matches!(self, Self::Question | Self::Help | Self::Joke | Self::Request)
    }
}

/// Whether a text addresses the whole room, is about its author, or is more than a remark, so that
/// silence would be strange.
pub(super) fn is_for_all(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    let has = |list: &str| words.iter().any(|word| listed(list, word));
    let is_called = has(EVERYBODY) || contains(&words, &["you", "all"]) || contains(&words, &["all", "of", "you"]);
    is_called || has(SELF) && words.len() >= 4 || Kind::of(text) != Kind::Remark
}

/// Whether a text is at most three words long, so that it needs no answer.
pub(super) fn is_brief(text: &str) -> bool {
    words(text).len() < 4 && text.is_ascii()
}

/// Whether a text says goodbye.
pub(super) fn is_goodbye(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    words.iter().any(|word| listed(GOODBYES, word)) || PARTINGS.iter().any(|phrase| contains(&words, phrase))
}

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Whether a list of words, separated by spaces, contains this one.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

fn contains(words: &[&str], phrase: &[&str]) -> bool {
    words.windows(phrase.len()).any(|window| window == phrase)
}

fn is_wanting(words: &[&str]) -> bool {
    let is_polite =
        matches!(words, ["can" | "could" | "would" | "will", "you" | "somebody" | "someone" | "anybody" | "anyone", ..]);
    let is_wish = |word: &&str| listed(WANTING, word);
    words.first().is_some_and(is_wish)
        || matches!(words, ["let", "us" | "s", ..] | [_, .., "please"])
        || is_polite && words.iter().take(4).any(is_wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified_as_a_person_would() {
        for (text, kind) in [
            ("Hello everyone, how are you all today?", Kind::Greeting),
            ("good morning everyone", Kind::Greeting),
            ("Hey, does anyone know a good pizza place?", Kind::Question),
            ("tell me a joke", Kind::Joke),
            ("Can you tell me about the moon?", Kind::Request),
            ("Let's plan a picnic", Kind::Request),
            ("I just lost my job and I do not know what to do.", Kind::Trouble),
            ("help, my bicycle chain keeps falling off", Kind::Help),
            ("can you help me with my homework?", Kind::Help),
            ("thanks Mira!", Kind::Thanks),
            ("Thanks Mira, and what comes next?", Kind::Question),
            ("ok bye", Kind::Goodbye),
            ("see you later", Kind::Goodbye),
            ("what makes a good night train?", Kind::Question),
            ("Why is the moon so bright", Kind::Question),
            ("what a night", Kind::Remark),
            ("I finally repaired the old telescope", Kind::Remark),
            ("", Kind::Remark),
        ] {
            assert_eq!(Kind::of(text), kind, "{text}");
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
