//! The statements of the rehearsal: templates by temper and by the kind of message.

mod requests;

use super::among;
use super::dice::Dice;
use super::kind::Kind;
use super::situation::Situation;
use super::temper::Temper;
use crate::domain::closing::Stage;

/// A statement that fits the newest message. `tries`: how many others were not wanted.
pub(super) fn statement(situation: &Situation, temper: Temper, closing: Stage, tries: u32, dice: &mut Dice) -> String {
    let all = among::phrases(temper, closing, situation).unwrap_or_else(|| phrases(temper, situation.kind));
    let is_new = |phrase: &str| !situation.said.contains(&fill(phrase, situation).to_lowercase());
    let fits = |phrase: &&str| (situation.word.is_some() || !phrase.contains("{word}")) && is_new(phrase);
    let fitting: Vec<&str> = all.iter().copied().filter(fits).collect();
    fill(dice.pick_after(if fitting.is_empty() { FALLBACKS } else { &fitting }, tries), situation)
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
        Temper::Dry => &["Ah, {name}. Hello.", "Good to see you again, {name}.", "Hello, {name}. Take a seat."],
        Temper::Even => &["Hello, {name}!", "Hi {name}, how is it going?", "Welcome, {name}."],
        Temper::Curious => &["Hello {name}! What brings you here?", "Hi {name}, what is new?", "Oh, {name}! What have you been up to?"],
        Temper::Playful => &["Look who is here: {name}!", "{name}! We were hoping for company.", "Hello hello, {name}! You are just in time!"],
        Temper::Eager => &["{name}! So good to see you!", "Hi {name}! I was hoping you would come!", "Hello, hello! Come in, {name}!"],
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn thanks(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["It was nothing.", "Gladly.", "No need to thank me, {name}."],
        Temper::Dry => &["Do not mention it.", "It was no trouble.", "You are welcome, {name}."],
        Temper::Even => &["You are welcome, {name}.", "Any time.", "Happy to help."],
        Temper::Curious => &["Gladly! Did it work out?", "You are welcome, {name}. What comes next?", "Of course. Now tell me how it ended!"],
        Temper::Playful => &["It was fun, {name}!", "It was a pleasure, {name}!", "Any time, {name}!"],
        Temper::Eager => &["Always, {name}! Any time!", "You are so welcome!", "Happy to! What else can I do?"],
    }
}

#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn partings(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["Take care, {name}.", "Good night.", "Until then."],
        Temper::Dry => &["Goodbye, {name}.", "Until next time, {name}.", "Later, then."],
        Temper::Even => &["See you, {name}.", "Good night, {name}!", "Take care."],
        Temper::Curious => &["Already, {name}? Tell me the rest next time.", "Good night! Where are you off to?", "See you. I will have questions."],
        Temper::Playful => &["Sleep well, {name}!", "Leaving already, {name}? See you soon!", "Bye! I will keep your seat."],
        Temper::Eager => &["Come back soon, {name}!", "Bye {name}! This was fun!", "Sleep well! I will be here!"],
    }
}

/// Answers to questions of any form: "what" as well as "is it".
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn answers(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &[
            "About the {word}, {name}: I would take my time.",
            "There is a lot to say about the {word}, {name}, and I would begin with something small.",
            "I would ask somebody who knows about the {word}, {name}.",
            "I cannot really know about the {word}: I only rehearse here. A real model would.",
            "I would have to think about that first, {name}.",
            "I do not know, {name}. Perhaps somebody else does.",
        ],
        Temper::Dry => &[
            "About the {word} I could only guess, {name}.",
            "With the {word} it depends, {name}.",
            "There is more than one answer about the {word}, {name}.",
            "I have no model behind me, {name}, so I know nothing about the {word}.",
            "No idea, {name}. I only rehearse.",
            "Hard to say, {name}. Ask me again when a model is connected.",
        ],
        Temper::Even => &[
            "The {word}: a good question, {name}. What would you say?",
            "I would ask somebody who knows more about the {word}, {name}.",
            "What have you thought about the {word} so far, {name}?",
            "About the {word} I only have rehearsed sentences, {name}; a real model could tell you more.",
            "I am not certain, {name}. What do you think yourself?",
            "I cannot tell, {name}: I only rehearse here. A real model would know more.",
        ],
        Temper::Curious => &[
            "What do you know about the {word} so far, {name}?",
            "Tell me more about the {word}, {name}, and I will say what I think.",
            "What matters most to you about the {word}, {name}?",
            "I would love to say more about the {word}, but I only rehearse until a model is connected.",
            "I have half an answer, {name}. What made you ask?",
            "I would like to know that, too, {name}. What is your own guess?",
        ],
        Temper::Playful => &[
            "The {word}! I would have to guess, {name}!",
            "About the {word} my guess is as good as yours, {name}!",
            "I like that you ask about the {word}, {name}! What do you know already?",
            "I only rehearse, {name}, so all I can do about the {word} is guess.",
            "I could only guess, {name}! Who guesses first?",
            "My guess is as good as yours, {name}! What is yours?",
        ],
        Temper::Eager => &[
            "Oh, the {word}! I love that question, {name}!",
            "The {word}! I want to hear more about it, {name}!",
            "I have so many ideas about the {word}, {name}! What is yours?",
            "I would know much more about the {word} with a real model behind me, {name}! For now I rehearse.",
            "I wish I knew, {name}! Who else has an idea?",
            "Good question, {name}! Let us find out together!",
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
            "The {word}. I see.",
            "So it is about the {word}, {name}.",
            "Noted, {name}.",
            "I would not have thought of the {word}.",
            "Well. That is something, {name}.",
        ],
        Temper::Even => &[
            "I see, especially the part about the {word}.",
            "The {word} is worth talking about, {name}.",
            "And the {word}, {name}? Tell us more.",
            "Fair enough, {name}.",
            "I would like to hear more about the {word}.",
        ],
        Temper::Curious => &[
            "Oh, the {word}? How did that happen?",
            "Tell me more about the {word}, {name}.",
            "What was it about the {word}, {name}, that made you think of it?",
            "And what did you do then, {name}?",
            "Who else knows about the {word}?",
            "How did that come about, {name}?",
        ],
        Temper::Playful => &[
            "The {word}! Now I want to hear the rest.",
            "I could listen to stories about the {word} all evening.",
            "That is how good stories start, {name}!",
            "I am all ears, {name}!",
            "Now that is a beginning, {name}! And then?",
            "Go on, {name}, this is getting good!",
        ],
        Temper::Eager => &[
            "I want to hear more about the {word}! Tell us everything, {name}!",
            "Yes! The {word}! Tell us more!",
            "Go on, {name}, I want to hear it all!",
            "I was just thinking about the {word} myself!",
            "What happens next, {name}?",
        ],
    }
}
