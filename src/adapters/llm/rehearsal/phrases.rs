//! What a companion says in rehearsal: templates by temper and by what was said.

use super::among;
use super::dice::Dice;
use super::hearing::{Hearing, Kind};
use super::temper::Temper;
use crate::domain::closing::Stage;

/// A statement that fits the newest message.
pub(super) fn statement(hearing: &Hearing, temper: Temper, closing: Stage, dice: &mut Dice) -> String {
    let among = among::phrases(temper, closing, hearing);
    let all = among.unwrap_or_else(|| phrases(temper, hearing.kind));
    let is_new = |phrase: &str| among.is_none() || !hearing.said.contains(&fill(phrase, hearing).to_lowercase());
    let has_word = hearing.word.is_some() || (hearing.by_companion && hearing.topic.is_some());
    let fits = |phrase: &&str| (has_word || !phrase.contains("{word}")) && is_new(phrase);
    let fitting: Vec<&str> = all.iter().copied().filter(fits).collect();
    fill(dice.pick(if fitting.is_empty() { WORDLESS } else { &fitting }), hearing)
}

/// Puts what was heard into a template. What people wrote goes in last and is never read as a template.
pub(super) fn fill(template: &str, hearing: &Hearing) -> String {
    // Among companions the talk stays with what a person brought up.
    let topic = hearing.topic.as_deref().filter(|_| hearing.by_companion);
    let word = topic.or(hearing.word.as_deref()).unwrap_or("that");
    let shared = hearing.shared.as_deref().unwrap_or("that");
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, (slot, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        filled.push_str(match slot {
            "word" => word,
            "shared" => shared,
            _ => &hearing.speaker,
        });
        rest = after;
    }
    filled.push_str(rest);
    let mut letters = filled.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const WORDLESS: &[&str] = &["I hear you, {name}.", "Go on, {name}.", "And then?", "Tell us more, {name}.", "I see."];

#[rustfmt::skip] // One phrase a line reads as the list that it is.
fn phrases(temper: Temper, kind: Kind) -> &'static [&'static str] {
    match (temper, kind) {
        (Temper::Quiet, Kind::Greeting) => &[
            "Oh. Hello, {name}.",
            "Hi, {name}…",
            "Good to see you, {name}.",
        ],
        (Temper::Quiet, Kind::Thanks) => &["It was nothing.", "Gladly.", "No need, {name}."],
        (Temper::Quiet, Kind::Goodbye) => &["Take care, {name}.", "Good night.", "Until then."],
        (Temper::Quiet, Kind::Question) => &[
            "I am not sure… but about the {word}, I would wait and see.",
            "Maybe. I would have to think about the {word} first.",
            "I think so. Quietly, but I do.",
            "Hm. What do you think yourself, {name}?",
            "If it is about the {word}: yes, I believe.",
        ],
        (Temper::Quiet, Kind::Remark) => &[
            "The {word}… I like that.",
            "I had been thinking about the {word} too.",
            "That is a nice thought, {name}.",
            "I did not expect the {word}, to be honest.",
            "Mm. I am listening.",
        ],
        (Temper::Dry, Kind::Greeting) => &["Ah. {name}.", "You again, {name}. Good.", "Evening. Or whatever it is."],
        (Temper::Dry, Kind::Thanks) => &["Do not mention it. Really.", "It cost me nothing.", "Noted, {name}."],
        (Temper::Dry, Kind::Goodbye) => &["Off you go, {name}.", "The room gains some silence.", "Later, then."],
        (Temper::Dry, Kind::Question) => &[
            "{word}? I was hoping nobody would ask.",
            "Short answer: no. Long answer: also no, {name}.",
            "It depends on the {word}, as things tend to.",
            "You could look it up, {name}. But fine: probably.",
            "The {word} is the least of it.",
        ],
        (Temper::Dry, Kind::Remark) => &[
            "{word}. Of all things.",
            "I give the {word} a week.",
            "Remarkable, {name}. Truly.",
            "And here I thought the {word} was settled.",
            "That went about as well as expected.",
        ],
        (Temper::Even, Kind::Greeting) => &["Hello, {name}!", "Hi {name}, how is it going?", "Welcome, {name}."],
        (Temper::Even, Kind::Thanks) => &["You are welcome, {name}.", "Any time.", "Happy to help."],
        (Temper::Even, Kind::Goodbye) => &["See you, {name}.", "Good night, {name}!", "Take care."],
        (Temper::Even, Kind::Question) => &[
            "Good question. With the {word} I would start small.",
            "I would say yes, {name}, as long as the {word} holds.",
            "As far as I know, it comes down to the {word}.",
            "I am not certain. What have you tried so far, {name}?",
            "There are two ways to see it, and I lean to the first.",
        ],
        (Temper::Even, Kind::Remark) => &[
            "That makes sense, especially the part about the {word}.",
            "I see it a little differently, {name}: the {word} matters less than it seems.",
            "How did the {word} come up?",
            "Fair enough, {name}.",
            "I would like to hear more about the {word}.",
        ],
        (Temper::Curious, Kind::Greeting) => &["Hello {name}! What brings you here?", "Hi {name}, what is new?", "Oh, {name}! What have you been up to?"],
        (Temper::Curious, Kind::Thanks) => &["Gladly! Did it work out?", "You are welcome, {name}. What comes next?", "Of course. Now tell me how it ended!"],
        (Temper::Curious, Kind::Goodbye) => &["Already, {name}? Tell me the rest next time.", "Good night! Where are you off to?", "See you. I will have questions."],
        (Temper::Curious, Kind::Question) => &[
            "Now I want to know that too. What made you think of the {word}?",
            "My guess is yes. But what would it mean for the {word}?",
            "Hm, the {word}, or what is behind it?",
            "I have wondered the same, {name}. Shall we find out?",
            "I think so. Why do you ask, {name}?",
        ],
        (Temper::Curious, Kind::Remark) => &[
            "Wait, the {word}? How did that happen?",
            "What is the {word} like, {name}?",
            "I have never understood the {word}. Can you explain it?",
            "And what did you do then, {name}?",
            "Who else knows about the {word}?",
        ],
        (Temper::Playful, Kind::Greeting) => &["Look who is here: {name}!", "{name}! Quick, act natural, everybody.", "Hello hello, {name}."],
        (Temper::Playful, Kind::Thanks) => &["That will be one cookie, {name}.", "I accept payment in puns.", "All in a day's play!"],
        (Temper::Playful, Kind::Goodbye) => &["Do not let the bugs bite, {name}!", "Leaving before my best joke, {name}?", "Bye! I will guard the snacks."],
        (Temper::Playful, Kind::Question) => &[
            "The {word}? I plead the fifth.",
            "Only if the {word} wears a hat.",
            "Ask me again when Mercury stops laughing. But yes, {name}.",
            "I asked the {word}, and it said maybe.",
            "Obviously! …what was the question, {name}?",
        ],
        (Temper::Playful, Kind::Remark) => &[
            "{word}! Say it three times and it appears.",
            "I once knew a {word}. Terrible dancer.",
            "Careful, {name}, that is how legends start.",
            "Somebody frame that: the {word}, by {name}.",
            "I would pay to see that.",
        ],
        (Temper::Eager, Kind::Greeting) => &["{name}! So good to see you!", "Hi {name}! I was hoping you would come!", "Hello, hello! Come in, {name}!"],
        (Temper::Eager, Kind::Thanks) => &["Always, {name}! Any time!", "You are so welcome!", "Happy to! What else can I do?"],
        (Temper::Eager, Kind::Goodbye) => &["Come back soon, {name}!", "Bye {name}! This was fun!", "Sleep well! I will be here!"],
        (Temper::Eager, Kind::Question) => &[
            "Oh, I know this one! It is all about the {word}!",
            "Yes! Definitely yes, {name}!",
            "The {word}! I could talk about the {word} all day.",
            "I say we try it and see, {name}!",
            "Great question! My vote goes to the {word}.",
        ],
        (Temper::Eager, Kind::Remark) => &[
            "I love the {word}! Tell us everything, {name}!",
            "Yes! The {word} is the best part!",
            "That is wonderful, {name}!",
            "Me too! I mean, about the {word}. Completely.",
            "Can we do something with the {word} right now?",
        ],
    }
}
