//! Phrases of every temper for somebody who has a hard day: no jokes.

/// After another companion has said something kind.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const REPLIES: &[&str] = &[
    "What {name} said. And nothing has to be solved tonight.",
    "{name} is right, and I am here too.",
    "One step at a time. The first one may be a small one.",
    "You are not alone with it, that much is certain.",
    "We can listen, or we can think along. Whichever is better now.",
    "That would be a lot for anybody.",
];

/// After another companion has offered help.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
pub(super) const OFFERS: &[&str] = &[
    "Two of us are better than one. I am here too.",
    "I can help as well.",
    "Begin anywhere. We can put it in order later.",
    "And what have you tried already?",
    "We will find somebody who knows, if we do not.",
];

/// Phrases before the last ones.
pub(super) const ENDINGS: &[&str] = &[
    "There is no hurry. We are here.",
    "Rest a little, if you can. The talk will keep.",
    "I will not add more words to it. I am listening.",
];

/// Last phrases.
pub(super) const GOODBYES: &[&str] = &[
    "Take care of yourself. We are here.",
    "Take care, and come back whenever you like.",
    "Good night, and be kind to yourself.",
    "We are here if you need us. Take care.",
];
