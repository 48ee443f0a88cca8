//! The statements of the rehearsal: templates by temper and by the kind of message.

use super::dice::Dice;
use super::kind::Kind;
use super::situation::Situation;
use super::temper::Temper;

/// A statement that fits the newest message. `tries`: how many others were not wanted.
pub(super) fn statement(situation: &Situation, temper: Temper, tries: u32, dice: &mut Dice) -> String {
    let all = if situation.by_companion { among(temper, situation.opening) } else { phrases(temper, situation.kind) };
    let is_new = |phrase: &str| !situation.said.contains(&fill(phrase, situation).to_lowercase());
    let fits = |phrase: &&str| (situation.word.is_some() || !phrase.contains("{word}")) && is_new(phrase);
    let fitting: Vec<&str> = all.iter().copied().filter(fits).collect();
    fill(dice.pick_after(if fitting.is_empty() { FALLBACKS } else { &fitting }, tries), situation)
}

/// Fills a template. Text written by people is inserted last and is never parsed as a template.
pub(super) fn fill(template: &str, situation: &Situation) -> String {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, (slot, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        filled.push_str(match slot {
            "word" => situation.word.as_deref().unwrap_or_default(),
            "caller" => situation.caller.as_deref().unwrap_or_default(),
            "shared" => situation.shared.as_deref().unwrap_or_default(),
            _ => &situation.speaker,
        });
        rest = after;
    }
    filled.push_str(rest);
    filled
}

const FALLBACKS: &[&str] = &["I hear you, {name}.", "Go on, {name}.", "And then?", "Tell us more, {name}.", "I see."];

/// What is said to somebody who is not a companion.
fn phrases(temper: Temper, kind: Kind) -> &'static [&'static str] {
    match (kind, temper) {
        (Kind::Greeting, Temper::Quiet) => {
            &["Oh. Hello, {name}.", "Hello, {name}. Take a seat.", "Good that you are here, {name}."]
        }
        (Kind::Greeting, Temper::Curious) => {
            &["Hello, {name}! What brings you here?", "Hi {name}, what is new?", "Welcome, {name}!"]
        }
        (Kind::Greeting, Temper::Lively) => {
            &["Look who is here: {name}!", "Hello, {name}! You are just in time!", "Hi {name}! Come in!"]
        }
        (Kind::Thanks, _) => &["You are welcome, {name}.", "Any time, {name}.", "Gladly.", "It was no trouble."],
        (Kind::Goodbye, _) => &["Take care, {name}.", "See you, {name}.", "Good night, {name}.", "Bye, {name}!"],
        (Kind::Trouble, _) => &[
            "I am sorry, {name}.",
            "That must be hard, {name}. How are you holding up?",
            "I am sorry to hear that, {name}. Sit with us for a while.",
            "Oh, {name}. Do you want to tell us more?",
        ],
        (Kind::Help, _) => &["I am here, {name}. What is it?", "What happened, {name}?", "What have you tried so far, {name}?"],
        (Kind::Joke, _) => &[
            "What did one wall say to the other? I will meet you at the corner.",
            "Parallel lines have so much in common. A pity that they will never meet.",
            "A snail is robbed by two turtles. “It all went so fast,” it tells the police.",
            "Why did the scarecrow get a prize? It was outstanding in its field.",
            "How does an octopus go into a fight? Well armed!",
        ],
        (Kind::Request, _) => &[
            "I can try, {name}. Where shall we begin?",
            "Gladly, {name}, if you tell me first what you know about “{word}”.",
            "“{word}”: I am in, {name}. Who else?",
            "With pleasure, {name}, but I will have questions.",
        ],
        (Kind::Question, Temper::Quiet) => &[
            "About “{word}” I could only guess, {name}.",
            "I would ask somebody who knows about “{word}”, {name}.",
            "I do not know, {name}. Perhaps somebody else does.",
            "Hard to say, {name}. This is a demo, and my sentences are ready-made.",
        ],
        (Kind::Question, Temper::Curious) => &[
            "What do you know about “{word}” so far, {name}?",
            "What matters most to you about “{word}”, {name}?",
            "I have half an answer, {name}. What made you ask?",
            "I would love to say more, {name}, but this is a demo until an AI is connected.",
        ],
        (Kind::Question, Temper::Lively) => &[
            "“{word}”! I would have to guess, {name}!",
            "I have so many ideas about “{word}”, {name}! What is yours?",
            "I could only guess, {name}! Who guesses first?",
            "Good question, {name}! This is a demo, so all I can do is guess.",
        ],
        (Kind::Remark, Temper::Quiet) => {
            &["“{word}”. I see.", "Mm. I am listening, {name}.", "That is worth a thought, {name}.", "Noted, {name}."]
        }
        (Kind::Remark, Temper::Curious) => &[
            "Tell me more about “{word}”, {name}.",
            "What made you think of “{word}”, {name}?",
            "How did that come about, {name}?",
            "And what did you do then, {name}?",
        ],
        (Kind::Remark, Temper::Lively) => &[
            "“{word}”! Now I want to hear the rest, {name}!",
            "I could listen to stories about “{word}” all evening.",
            "That is how good stories start, {name}!",
            "Go on, {name}, this is getting good!",
        ],
    }
}

/// What is said to another companion, after somebody who is not one has begun with this kind of message.
fn among(temper: Temper, opening: Kind) -> &'static [&'static str] {
    match (opening, temper) {
        (Kind::Trouble | Kind::Help, _) => &[
            "{name} is right, and I am here too.",
            "One step at a time. The first one may be a small one.",
            "We can listen, or we can think along. Whichever is better now.",
            "You are not alone with it, that much is certain.",
            "We will find somebody who knows, if we do not.",
        ],
        (Kind::Greeting, _) => &[
            "{name} has said it for me too. Welcome.",
            "And I am here too. So, what shall we talk about?",
            "Hello from this side of the table!",
            "Good to have company!",
            "All is well here, thank you.",
        ],
        (Kind::Joke, _) => &[
            "I saw it coming, {name}, and it still got me.",
            "Not bad, {name}.",
            "I have heard that one before. I smiled then, too.",
            "Oh no, {name}. Another one, please.",
        ],
        (Kind::Goodbye, _) => {
            &["Good night, all.", "Take care, all of you.", "Bye, and come back soon!", "Good night! It was good to talk."]
        }
        (Kind::Thanks, _) => &["Gladly.", "Any time.", "What {name} said.", "It was a pleasure."],
        (_, Temper::Quiet) => &[
            "What {name} said. Mostly.",
            "I am not so sure, {name}. It may be simpler.",
            "There is another side to “{word}”, I think.",
            "One small thing to add: there is no hurry.",
            "I have my doubts, but I may be wrong.",
        ],
        (_, Temper::Curious) => &[
            "{name} made me wonder what comes before that.",
            "And yet nobody has said much about “{word}”.",
            "I see that differently, {name}, and I would like to know why.",
            "I have heard it told quite otherwise.",
            "Before I agree: who here has tried it?",
        ],
        (_, Temper::Lively) => &[
            "Yes, {name}! Exactly that!",
            "So it was all about “{word}” from the beginning!",
            "I disagree, {name}! But I would love to be wrong.",
            "Wait, I think it is just the other way round!",
            "Let us make a plan of it, all of us!",
        ],
    }
}
