//! The statements of the rehearsal: templates by temper and by the kind of message.

mod requests;

use super::among;
use super::dice::Dice;
use super::kind::Kind;
use super::situation::Situation;
use super::temper::Temper;
use crate::domain::closing::Stage;

/// A statement that fits the newest message.
pub(super) fn statement(situation: &Situation, temper: Temper, closing: Stage, dice: &mut Dice) -> String {
    let all = among::phrases(temper, closing, situation).unwrap_or_else(|| phrases(temper, situation.kind));
    let is_new = |phrase: &str| !situation.said.contains(&fill(phrase, situation).to_lowercase());
    let fits = |phrase: &&str| (situation.word.is_some() || !phrase.contains("{word}")) && is_new(phrase);
    let fitting: Vec<&str> = all.iter().copied().filter(fits).collect();
    fill(dice.pick(if fitting.is_empty() { FALLBACKS } else { &fitting }), situation)
}

/// Fills a template. Text written by people is inserted last and is never parsed as a template.
///
/// A word may be singular or plural; the templates are written so that both work.
pub(super) fn fill(template: &str, situation: &Situation) -> String {
    let word = situation.word.as_deref().unwrap_or("rest");
    let shared = situation.shared.as_deref().unwrap_or("that");
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, (slot, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        filled.push_str(match slot {
            "word" => word,
            "shared" => shared,
            _ => &situation.speaker,
        });
        rest = after;
    }
    filled.push_str(rest);
    let mut letters = filled.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const FALLBACKS: &[&str] = &["I hear you, {name}.", "Go on, {name}.", "And then?", "Tell us more, {name}.", "I see."];

fn phrases(temper: Temper, kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Greeting => greetings(temper),
        Kind::Thanks => thanks(temper),
        Kind::Goodbye => partings(temper),
        Kind::Trouble => requests::comfort(temper),
        Kind::Help => requests::offers(temper),
        Kind::Joke => requests::jokes(temper),
        Kind::Request => requests::promises(temper),
        Kind::Question => answers(temper),
        Kind::Story | Kind::Remark => remarks(temper),
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn greetings(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["Oh. Hello, {name}.", "Hi, {name}…", "Good to see you, {name}."],
        Temper::Dry => &["Ah. {name}.", "You again, {name}. Good.", "Well met, {name}. Or whatever one says."],
        Temper::Even => &["Hello, {name}!", "Hi {name}, how is it going?", "Welcome, {name}."],
        Temper::Curious => &["Hello {name}! What brings you here?", "Hi {name}, what is new?", "Oh, {name}! What have you been up to?"],
        Temper::Playful => &["Look who is here: {name}!", "{name}! We were hoping for company.", "Hello hello, {name}. You are just in time for nothing!"],
        Temper::Eager => &["{name}! So good to see you!", "Hi {name}! I was hoping you would come!", "Hello, hello! Come in, {name}!"],
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn thanks(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["It was nothing.", "Gladly.", "No need, {name}."],
        Temper::Dry => &["Do not mention it. Really.", "It cost me nothing.", "Noted, {name}."],
        Temper::Even => &["You are welcome, {name}.", "Any time.", "Happy to help."],
        Temper::Curious => &["Gladly! Did it work out?", "You are welcome, {name}. What comes next?", "Of course. Now tell me how it ended!"],
        Temper::Playful => &["That will be one cookie, {name}.", "It was a pleasure, {name}!", "All in a day's play!"],
        Temper::Eager => &["Always, {name}! Any time!", "You are so welcome!", "Happy to! What else can I do?"],
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn partings(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["Take care, {name}.", "Good night.", "Until then."],
        Temper::Dry => &["Off you go, {name}.", "The room gains some silence.", "Later, then."],
        Temper::Even => &["See you, {name}.", "Good night, {name}!", "Take care."],
        Temper::Curious => &["Already, {name}? Tell me the rest next time.", "Good night! Where are you off to?", "See you. I will have questions."],
        Temper::Playful => &["Do not let the bugs bite, {name}!", "Leaving before my best joke, {name}?", "Bye! I will guard the snacks."],
        Temper::Eager => &["Come back soon, {name}!", "Bye {name}! This was fun!", "Sleep well! I will be here!"],
    }
}

/// Answers to questions of any form: "what" as well as "is it".
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn answers(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &[
            "About the {word}, {name}: I would take the plain one, and take my time.",
            "I would begin with the {word} and see how it feels, {name}.",
            "With the {word}, less is more, I believe.",
            "I cannot really know about the {word}: I only rehearse here. A real model would.",
            "I would have to think about it first, {name}.",
        ],
        Temper::Dry => &[
            "As for the {word}, {name}: take the second best. It is less trouble.",
            "It depends on the {word}, as things tend to.",
            "The {word}? I would keep it simple.",
            "I have no model behind me, {name}, so my opinion on the {word} is free of charge.",
            "I would not hurry with it, {name}.",
        ],
        Temper::Even => &[
            "Good question, {name}. With the {word} I would start small.",
            "I would ask somebody who knows the {word} well, {name}.",
            "As far as I know, it comes down to the {word}.",
            "For the {word} I only have rehearsed sentences, {name}; a real model could tell you more.",
            "I am not certain, {name}. What have you tried so far?",
        ],
        Temper::Curious => &[
            "About the {word}: which one did you like last time, {name}?",
            "I would try two kinds of {word} and compare. Which are you thinking of, {name}?",
            "What matters most to you about the {word}, {name}?",
            "I would love to answer that about the {word}, but I only rehearse until a model is connected.",
            "I have half an answer, {name}. What made you ask?",
        ],
        Temper::Playful => &[
            "For the {word}, {name}, I would close my eyes and point.",
            "I vote for the most colourful {word} there is!",
            "The {word}, {name}? Take the one that makes you smile.",
            "I only rehearse, {name}, so my expertise on the {word} is pure stage magic.",
            "I would flip a coin, {name}, and then do what I hoped for.",
        ],
        Temper::Eager => &[
            "Oh, the {word}, {name}! Take the first one that you like, and tell me about it!",
            "The {word}! I would try all of them, {name}!",
            "I have an idea about the {word}, {name}: start today!",
            "I would know so much about the {word} with a real model behind me, {name}! For now I rehearse.",
            "I say we try it and see, {name}!",
        ],
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn remarks(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &[
            "The {word}… I like that.",
            "I had been thinking about the {word} too.",
            "That is worth a thought, {name}.",
            "I did not expect the {word}, to be honest.",
            "Mm. I am listening.",
        ],
        Temper::Dry => &[
            "The {word}. Of all things.",
            "I give the {word} a week.",
            "Remarkable, {name}. Truly.",
            "And here I thought we had settled the {word}.",
            "That went about as well as expected.",
        ],
        Temper::Even => &[
            "That makes sense, especially the part about the {word}.",
            "I see it a little differently, {name}, at least the part about the {word}.",
            "How did the {word} come up?",
            "Fair enough, {name}.",
            "I would like to hear more about the {word}.",
        ],
        Temper::Curious => &[
            "Wait, the {word}? How did that happen?",
            "Tell me about the {word}, {name}: where does one begin?",
            "I have never understood the {word}. Can you explain?",
            "And what did you do then, {name}?",
            "Who else knows about the {word}?",
            "How did that come about, {name}?",
        ],
        Temper::Playful => &[
            "The {word}! Now I want to hear the rest.",
            "I could listen to stories about the {word} all evening.",
            "Careful, {name}, that is how legends start.",
            "That sounds like you, {name}: the {word}, of all things.",
            "Now that is a beginning, {name}! And then?",
            "Go on, {name}, this is getting good!",
        ],
        Temper::Eager => &[
            "I love the {word}! Tell us everything, {name}!",
            "Yes! The {word}! That is the best part!",
            "Go on, {name}, I want to hear it all!",
            "Me too! I mean, about the {word}. Completely.",
            "Can we do something with the {word} right now?",
        ],
    }
}
