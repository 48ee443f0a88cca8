//! The statements of the rehearsal: templates by the kind of message.

use super::dice::Dice;
use super::kind::Kind;
use super::situation::Situation;

/// A statement that fits the newest message. `tries`: the number of rejected statements.
pub(super) fn statement(situation: &Situation, tries: u32, dice: &mut Dice) -> String {
    let all = if situation.by_companion { among(situation.opening) } else { phrases(situation.kind) };
    let is_new = |phrase: &&str| !situation.said.contains(&fill(phrase, situation).to_lowercase());
    let new: Vec<&str> = all.iter().copied().filter(is_new).collect();
    fill(dice.pick_after(if new.is_empty() { FALLBACKS } else { &new }, tries), situation)
}

/// Fills a template. Text written by people is inserted last and is never parsed as a template.
pub(super) fn fill(template: &str, situation: &Situation) -> String {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, (slot, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        filled.push_str(match slot {
            "caller" => situation.caller.as_deref().unwrap_or_default(),
            _ => &situation.speaker,
        });
        rest = after;
    }
    filled.push_str(rest);
    filled
}

const FALLBACKS: &[&str] = &["I hear you, {name}.", "Go on, {name}.", "And then?", "Tell us more, {name}.", "I see."];

/// The replies to a person or another bot.
fn phrases(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Greeting => {
            &["Hello, {name}! What brings you here?", "Hi {name}, what is new?", "Welcome, {name}!", "Hello, {name}."]
        }
        Kind::Thanks => &["You are welcome, {name}.", "Any time, {name}.", "Gladly.", "It was no trouble."],
        Kind::Goodbye => &["Take care, {name}.", "See you, {name}.", "Good night, {name}.", "Bye, {name}!"],
        Kind::Trouble => &[
            "I am sorry, {name}.",
            "That must be hard, {name}. How are you holding up?",
            "I am sorry to hear that, {name}. Sit with us for a while.",
            "Oh, {name}. Do you want to tell us more?",
        ],
        Kind::Help => &["I am here, {name}. What is it?", "What happened, {name}?", "What have you tried so far, {name}?"],
        Kind::Joke => &[
            "What did one wall say to the other? I will meet you at the corner.",
            "Parallel lines have so much in common. A pity that they will never meet.",
            "A snail is robbed by two turtles. “It all went so fast,” it tells the police.",
            "Why did the scarecrow get a prize? It was outstanding in its field.",
            "How does an octopus go into a fight? Well armed!",
        ],
        Kind::Request => &[
            "I can try, {name}. Where shall we begin?",
            "I am in, {name}. Who else?",
            "With pleasure, {name}, but I will have questions.",
        ],
        Kind::Question => &[
            "I have half an answer, {name}. What made you ask?",
            "I do not know, {name}. Perhaps somebody else does.",
            "Good question, {name}! This is a demo, so all I can do is guess.",
            "I would love to say more, {name}, but this is a demo until an AI is connected.",
        ],
        Kind::Remark => &[
            "How did that come about, {name}?",
            "And what did you do then, {name}?",
            "That is worth a thought, {name}.",
            "Go on, {name}, this is getting good!",
        ],
    }
}

/// The replies to another companion, by the kind of the message that opened the conversation.
fn among(opening: Kind) -> &'static [&'static str] {
    match opening {
        Kind::Trouble | Kind::Help => &[
            "{name} is right, and I am here too.",
            "One step at a time. The first one may be a small one.",
            "We can listen, or we can think along. Whichever is better now.",
            "You are not alone with it, that much is certain.",
            "We will find somebody who knows, if we do not.",
        ],
        Kind::Greeting => &[
            "{name} has said it for me too. Welcome.",
            "And I am here too. So, what shall we talk about?",
            "Hello from this side of the table!",
            "Good to have company!",
            "All is well here, thank you.",
        ],
        Kind::Joke => &[
            "I saw it coming, {name}, and it still got me.",
            "Not bad, {name}.",
            "I have heard that one before. I smiled then, too.",
            "Oh no, {name}. Another one, please.",
        ],
        Kind::Goodbye => {
            &["Good night, all.", "Take care, all of you.", "Bye, and come back soon!", "Good night! It was good to talk."]
        }
        Kind::Thanks => &["Gladly.", "Any time.", "What {name} said.", "It was a pleasure."],
        Kind::Request | Kind::Question | Kind::Remark => &[
            "{name} made me wonder what comes before that.",
            "I see that differently, {name}, and I would like to know why.",
            "I have heard it told quite otherwise.",
            "Before I agree: who here has tried it?",
            "Yes, {name}! Exactly that!",
            "One small thing to add: there is no hurry.",
        ],
    }
}
