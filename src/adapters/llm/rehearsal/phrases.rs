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
        Temper::Playful => &["Look who is here: {name}!", "{name}! Quick, act natural, everybody.", "Hello hello, {name}. You are just in time for nothing!"],
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
        Temper::Playful => &["That will be one cookie, {name}.", "I accept payment in puns.", "All in a day's play!"],
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
            "I am not sure… about the {word}, I would wait and see.",
            "I would have to think about the {word} first.",
            "I have a guess. Quietly, but I do.",
            "Hm. What do you think yourself, {name}?",
            "With the {word}, less is more, I believe.",
        ],
        Temper::Dry => &[
            "The {word}? I was hoping nobody would ask.",
            "Short answer: it depends. Long answer: it depends, {name}.",
            "It depends on the {word}, as things tend to.",
            "You could look it up, {name}. I will wait.",
            "Nobody knows what to do about the {word}. Why should I?",
        ],
        Temper::Even => &[
            "Good question. With the {word} I would start small.",
            "I would ask somebody who knows the {word} well, {name}.",
            "As far as I know, it comes down to the {word}.",
            "I am not certain. What have you tried so far, {name}?",
            "There are two ways to see it, and I lean to the first.",
        ],
        Temper::Curious => &[
            "Now I want to know that too. What made you think of the {word}?",
            "I have a guess. But what would it mean for the {word}?",
            "Hm. Is it about the {word}, or about what is behind it?",
            "I have wondered the same, {name}. Shall we find out?",
            "I have half an answer. Why do you ask, {name}?",
            "It depends on whom you ask, {name}. Whom did you have in mind?",
        ],
        Temper::Playful => &[
            "The {word}? I plead the fifth.",
            "Only a fool would speak about the {word} without a hat. One moment, my hat!",
            "Ask me again when Mercury stops laughing, {name}!",
            "I asked an owl about the {word}. It only said \"who\".",
            "I know this one! …No, that was a song. Help me, everybody!",
            "My left shoe has an opinion on that, {name}, and it is not for children.",
            "I have two answers, {name}, and they are fighting in the garden.",
        ],
        Temper::Eager => &[
            "Oh, I know this one! It is all about the {word}!",
            "I have an idea, {name}! I have ten, in fact!",
            "The {word}! I could talk about the {word} all day.",
            "I say we try it and see, {name}!",
            "Great question! It made me think of the {word} in a new way!",
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
            "The {word}! Say it three times and something happens.",
            "I once wrote a song about the {word}. It had no refrain.",
            "Careful, {name}, that is how legends start.",
            "Somebody frame that: the {word}, by {name}.",
            "Now that is a beginning, {name}! And then?",
            "Wait, {name}, I need popcorn for this. Go on!",
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
