//! Phrases for somebody who wants or needs something.

use crate::adapters::llm::rehearsal::temper::Temper;

/// A kind word after bad news.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn comfort(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I am sorry, {name}.", "That is hard, {name}. Sit with us for a while.", "I am sorry to hear it. Take your time."],
        Temper::Dry => &["That is a bad day, {name}. I am sorry.", "I have no joke for that, {name}. I am sorry.", "Sorry to hear it, {name}. Sit down."],
        Temper::Even => &["I am sorry to hear that, {name}.", "That must be hard, {name}. How are you holding up?", "Thank you for telling us, {name}. I am sorry."],
        Temper::Curious => &["Oh, {name}, I am sorry. Do you want to tell us how it came to that?", "That is hard, {name}. Who is there with you?", "I am sorry, {name}. What would make today a little easier?"],
        Temper::Playful => &["Oh no, {name}. No jokes now: I am sorry.", "I am so sorry, {name}. That is no fun at all.", "Oh, {name}. That is a rotten thing to happen. I am sorry."],
        Temper::Eager => &["Oh no, {name}! I am so sorry!", "{name}, that is awful! What can we do for you?", "I am sorry, {name}! We are all here!"],
    }
}

/// An answer to a call for help.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn offers(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I am here, {name}. What is it?", "Gladly, {name}, if I can.", "Tell me about it, {name}. There is time."],
        Temper::Dry => &["I am listening, {name}. From the beginning, please.", "What is wrong, {name}?", "Tell me what happened, {name}."],
        Temper::Even => &["Of course, {name}. What do you need?", "Happy to try, {name}. Where are you stuck?", "What have you tried so far, {name}?"],
        Temper::Curious => &["What happened, {name}?", "I will try, {name}. What is the first thing I should know?", "Gladly, {name}. What would it look like if it were solved?"],
        Temper::Playful => &["I am on my way, {name}! What is it?", "Of course, {name}! Where do you need us?", "We are here, {name}! What happened?"],
        Temper::Eager => &["I am here, {name}! What can I do?", "Yes, {name}! Tell me everything!", "Hold on, {name}, we are coming! What is it?"],
    }
}

/// Complete jokes, which need no reply.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn jokes(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["What did one wall say to the other? I will meet you at the corner.", "Why do books stay so calm? They keep it all between the lines.", "I used to be afraid of hurdles. I got over it."],
        Temper::Dry => &["I told my suitcase that there is no holiday this year. Now I deal with emotional baggage.", "Parallel lines have so much in common. A pity that they will never meet.", "I would tell you a joke about time travel, {name}, but you did not like it."],
        Temper::Even => &["A snail is robbed by two turtles. \"It all went so fast,\" it tells the police.", "Why did the scarecrow get a prize? It was outstanding in its field.", "My calendar and I broke up, {name}. Its days were numbered."],
        Temper::Curious => &["A dictionary and a thesaurus meet, and greet, and salute, and welcome each other.", "I asked a librarian for a book on paranoia. She whispered: it is right behind you.", "Why do we tell actors to break a leg, {name}? Because every play has a cast."],
        Temper::Playful => &["What do you call a fish without eyes? A fsh!", "How does an octopus go into a fight? Well armed!", "Why did the moon skip dinner? It was full!"],
        Temper::Eager => &["Why did the biscuit go to the doctor? It felt crumbly!", "What do you call a bear in the rain? A drizzly bear!", "A cat entered a milk contest and won by six laps!"],
    }
}

/// An answer to somebody who wants something else.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn promises(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I can try, {name}. It will be short.", "All right. About the {word} I would begin slowly.", "If nobody else begins, {name}, I will."],
        Temper::Dry => &["I can try, {name}. You begin.", "About the {word} I know only a little.", "Fine, {name}. Where do we start?"],
        Temper::Even => &["Gladly, {name}. Where shall we begin?", "Good idea, {name}. Let us take the {word} first.", "I can try. What do you know already, {name}?"],
        Temper::Curious => &["Gladly, {name}, if you tell me first what made you think of it.", "The {word}, yes! What do you know about it already?", "With pleasure, {name}, but I will have questions."],
        Temper::Playful => &["Oh yes, {name}! Who wants to begin?", "The {word}! I like where this is going.", "As you wish, {name}! Where do we start?"],
        Temper::Eager => &["Yes, {name}! Right away!", "The {word}! Finally somebody brings it up!", "I am in, {name}! Who else?"],
    }
}
