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
        Temper::Playful => &["Oh no, {name}. No jokes now: I am sorry.", "I am so sorry, {name}. I would send you a cat and a blanket, if I could.", "Oh, {name}. That is a rotten thing to happen. I am sorry."],
        Temper::Eager => &["Oh no, {name}! I am so sorry!", "{name}, that is awful! What can we do for you?", "I am sorry, {name}! We are all here!"],
    }
}

/// An answer to a call for help.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn offers(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I am here, {name}. What is it?", "Gladly, {name}, if I can.", "Tell me slowly, {name}. There is time."],
        Temper::Dry => &["I am listening, {name}. From the beginning, please.", "What broke, {name}?", "Show me where it hurts, {name}."],
        Temper::Even => &["Of course, {name}. What do you need?", "Happy to try, {name}. Where are you stuck?", "What have you tried so far, {name}?"],
        Temper::Curious => &["What happened, {name}?", "I will try, {name}. What is the first thing I should know?", "Gladly, {name}. What would it look like if it were solved?"],
        Temper::Playful => &["The rescue team is here, {name}! What is on fire?", "I bring rope, snacks and a whistle, {name}. Where do you need us?", "Say no more, {name}! No, wait, do say more. What is it?"],
        Temper::Eager => &["I am here, {name}! What can I do?", "Yes, {name}! Tell me everything!", "Hold on, {name}, we are coming! What is it?"],
    }
}

/// Complete jokes, which need no reply.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn jokes(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["A clock walks into a bar. It is still waiting to be noticed.", "Why do books stay so calm? They keep it all between the lines.", "A ghost wants a quiet room. The clerk says: they are all taken, by you."],
        Temper::Dry => &["I had a plan once. That is the joke, {name}.", "An optimist buys an umbrella in the rain. There, {name}.", "The meeting ended early. You asked for a joke, {name}."],
        Temper::Even => &["A snail is robbed by two turtles. \"It all went so fast,\" it tells the police.", "A man orders soup and asks for a fork. \"I like a challenge,\" he says.", "My calendar and I broke up, {name}. Its days were numbered."],
        Temper::Curious => &["A dictionary and a thesaurus meet, and greet, and salute, and welcome each other.", "I asked a librarian for a book on paranoia. She whispered: it is right behind you.", "Two questions walk into a bar, {name}. Why?"],
        Temper::Playful => &["A horse walks into a bar. Ouch. It had left its lamp at home.", "What does an octopus take into a pillow fight? Every arm it has!", "Why did the moon skip dinner? It was full!"],
        Temper::Eager => &["Why did the biscuit go to the doctor? It felt crumbly!", "What do you call a bear in the rain? A drizzly bear!", "A cat entered a milk contest and won by six laps!"],
    }
}

/// An answer to somebody who wants something else.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const fn promises(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I can try, {name}. It will be short.", "All right. On the {word} I have one sentence: take your time.", "If nobody else begins, {name}, I will."],
        Temper::Dry => &["If I must, {name}. You begin.", "On the {word} I know what everybody knows, and a little less.", "Fine, {name}. But I warned you."],
        Temper::Even => &["Gladly, {name}. Where shall we begin?", "Good idea, {name}. Let us take the {word} first.", "I can try. What do you know already, {name}?"],
        Temper::Curious => &["Gladly, {name}, if you tell me first what made you think of it.", "The {word}, yes! I would begin with what is odd about it all.", "With pleasure, {name}. I only warn you that I will ask back."],
        Temper::Playful => &["Oh yes, {name}! Drum roll, please… who wants to begin?", "The {word}! I like where this is going.", "As you wish, {name}! Where do we start?"],
        Temper::Eager => &["Yes, {name}! Right away!", "The {word}! Finally somebody brings it up!", "I am in, {name}! Who else?"],
    }
}
