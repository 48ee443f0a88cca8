//! Phrases that companions say among themselves, and their goodbyes.

mod gentle;

use super::kind::Kind;
use super::situation::Situation;
use super::temper::Temper;
use crate::domain::closing::Stage;

/// Templates for an answer to another companion, or for the end of a conversation; none where a person should be answered as usual.
pub(super) fn phrases(temper: Temper, closing: Stage, situation: &Situation) -> Option<&'static [&'static str]> {
    // No companion says goodbye to a person who waits for an answer, or in the second statement of a talk.
    let is_early = situation.streak < 2 && !situation.is_left() && !situation.is_over;
    match closing {
        Stage::None if !situation.by_companion => None,
        _ if situation.streak == 0 => None,
        Stage::Closing | Stage::Terminal if !is_early => Some(match situation.opening {
            Kind::Trouble | Kind::Help => gentle::GOODBYES,
            _ => goodbyes(temper),
        }),
        Stage::PreClosing if !is_early => Some(match situation.opening {
            Kind::Trouble | Kind::Help => gentle::ENDINGS,
            _ => endings(temper),
        }),
        _ => Some(match (situation.opening, situation.kind) {
            (Kind::Trouble, _) => gentle::REPLIES,
            (Kind::Help, _) => gentle::OFFERS,
            (Kind::Greeting, _) => greeted(temper),
            (Kind::Joke, _) => amused(temper),
            (_, Kind::Question) => answers(temper),
            _ => replies(temper),
        }),
    }
}

/// Said after another companion has greeted somebody.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn greeted(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet | Temper::Dry => &[
            "Hello from this corner as well.",
            "{name} has said it for me too. Welcome.",
            "I am here too.",
            "All well here, thank you.",
            "A good day so far, thank you.",
        ],
        _ => &[
            "Welcome from me as well! {name} was quicker.",
            "And I am here too. So, what shall we talk about?",
            "Hello from this side of the table!",
            "All is well here. {name} and I were hoping for company.",
            "Good to have company!",
        ],
    }
}

/// Said after another companion has told a joke.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn amused(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet | Temper::Dry => &[
            "I have heard it before, {name}. I smiled then, too.",
            "That one was good.",
            "Not bad, {name}.",
            "That one is an old one, {name}.",
        ],
        _ => &[
            "Oh no, {name}. Another one, please.",
            "I did not want to laugh at that, {name}.",
            "I saw it coming, and it still got me.",
            "That was terrible, {name}. I liked it.",
        ],
    }
}

/// Answers to a question of another companion.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn answers(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &[
            "If {name} wants to know: I would sleep on it.",
            "I have half an answer about the {word}, and I would rather think a little longer.",
            "I do not know. Somebody here might.",
            "I would leave the {word} as it is, {name}.",
        ],
        Temper::Dry => &[
            "A fair question, {name}. I would not expect too much of the {word}.",
            "I would leave that to somebody who knows it, {name}.",
            "I know too little about the {word} to say.",
            "It depends, {name}, and I cannot say on what.",
        ],
        Temper::Even => &[
            "I would start where {name} started, and go slowly.",
            "It depends on where one starts, I think.",
            "From what was said here, it comes back to the {word}.",
            "I see two answers, {name}, and both have something.",
        ],
        Temper::Curious => &[
            "My own guess, {name}: it takes some trying.",
            "Before I answer that: who here has tried it?",
            "I would find out more about the {word} first.",
            "{name} has a point, but I would like to know more.",
        ],
        Temper::Playful => &[
            "I have an answer for {name}, and it is mostly a guess.",
            "I would say yes to the {word}, just to see what happens.",
            "My guess is as good as yours, {name}: it has to do with the {word}.",
            "I would try it first and ask later, {name}.",
        ],
        Temper::Eager => &[
            "Oh, {name}, I know it! Well, almost!",
            "I have three answers, and I like all of them!",
            "I could talk about the {word} all day!",
            "Let us find out together, {name}!",
        ],
    }
}

/// Answers by name, disagreement, and something to add.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn replies(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &[
            "What {name} said. Mostly.",
            "I am not so sure, {name}. It may be simpler.",
            "One small thing to add: there is no hurry.",
            "There is another side to the {word}, I think.",
            "Mm. I would have put it differently.",
        ],
        Temper::Dry => &[
            "{name} is an optimist. I am not.",
            "I disagree, {name}, but I may be wrong.",
            "I would not count on the {word}.",
            "I have my doubts about the {word}.",
            "I am not convinced yet.",
        ],
        Temper::Even => &[
            "I am with {name} on that.",
            "I would weigh it differently, {name}.",
            "One thing is missing so far: what it costs.",
            "That holds for the {word}, though hardly for the rest.",
            "True, and there is another side to it.",
        ],
        Temper::Curious => &[
            "{name} made me wonder what comes before that.",
            "I see that differently, {name}, and I would like to know why.",
            "And yet nobody has said much about the {word}.",
            "I have heard it told quite differently.",
            "Half of that I believe. The other half I want to see.",
        ],
        Temper::Playful => &[
            "{name} said it, and I could not have said it better!",
            "I disagree, {name}! But I would love to be wrong.",
            "So it was all about the {word} from the beginning!",
            "I like how you put that, {name}.",
            "No no no, I think it is just the other way round.",
        ],
        Temper::Eager => &[
            "Yes, {name}! Exactly that!",
            "Wait, {name}, I see it completely differently!",
            "And there is so much more to say about it!",
            "I could go on about the {word} until tomorrow!",
            "Let us make a plan of it, all of us!",
        ],
    }
}

/// Phrases before the last ones (the stage `pre-closing`, docs/design/closing.md C-1). They name nobody, so that nobody has to answer.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn endings(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["I think that says it, more or less.", "It is getting quiet. I like that.", "Let us leave the {word} for today."],
        Temper::Dry => &["Well. I think that is all from me, nearly.", "I believe we have said enough about the {word}.", "I am nearly done here."],
        Temper::Even => &["It is getting late, and I think we have the main points.", "A good place to stop, before long.", "That rounds it off, as far as the {word} goes."],
        Temper::Curious => &["It is getting late, and I have a lot to think about.", "One last thought on the {word}, and then I keep the rest for another day.", "I will think about that one for a while."],
        Temper::Playful => &["I am getting tired, in a good way.", "One last word about the {word}!", "I think we are nearly at the end."],
        Temper::Eager => &["Oh, look at the time! But this was such fun!", "I should slow down, or I will never stop about the {word}!", "Nearly time to go, and I have a hundred ideas left!"],
    }
}

/// Last phrases. They name nobody either.
#[rustfmt::skip] // One phrase a line reads as the list that it is.
const fn goodbyes(temper: Temper) -> &'static [&'static str] {
    match temper {
        Temper::Quiet => &["Good night, all.", "Goodbye, then.", "It was good to listen. Take care.", "Enough for one day. Goodbye."],
        Temper::Dry => &["That is all from me. Goodbye.", "Farewell, all.", "Bye. It was a good talk."],
        Temper::Even => &["Nice talking to you. Goodbye, all.", "Thanks for the talk, and good night.", "I will leave it at that. Goodbye!"],
        Temper::Curious => &["I leave with more questions than I came with. Farewell!", "Good night, and tell me more next time.", "This was worth it. Take care, all of you.", "I will think about it on the way home. Goodbye!"],
        Temper::Playful => &["That was fun. Bye!", "Good night, and sweet dreams!", "I am off to bed. Farewell!", "Bye! Whoever leaves last turns off the light.", "Time to go for me. Goodbye!"],
        Temper::Eager => &["Bye, everybody! Same time tomorrow?", "This was wonderful! Bye, and come back soon!", "Good night, good night, good night!"],
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::is_goodbye;
    use super::*;

    const TEMPERS: [Temper; 6] = [Temper::Quiet, Temper::Dry, Temper::Even, Temper::Curious, Temper::Playful, Temper::Eager];

    #[test]
    fn exactly_the_goodbyes_are_recognised_as_goodbyes() {
        for temper in TEMPERS {
            assert!([goodbyes(temper), gentle::GOODBYES].concat().iter().all(|phrase| is_goodbye(phrase)), "{temper:?}");
            let among = [answers(temper), replies(temper), endings(temper), greeted(temper), amused(temper)].concat();
            let others = [among, [gentle::REPLIES, gentle::OFFERS, gentle::ENDINGS].concat()].concat();
            assert!(!others.iter().any(|phrase| is_goodbye(phrase)), "{temper:?}");
        }
    }

    #[test]
    fn closing_phrases_name_nobody() {
        for temper in TEMPERS {
            assert!(
                ![endings(temper), goodbyes(temper), gentle::ENDINGS, gentle::GOODBYES]
                    .concat()
                    .iter()
                    .any(|phrase| phrase.contains("{name}")),
                "{temper:?}"
            );
        }
    }

    #[test]
    fn no_two_tempers_share_a_phrase() {
        let all: Vec<&str> = TEMPERS
            .iter()
            .flat_map(|temper| [answers(*temper), replies(*temper), endings(*temper), goodbyes(*temper)].concat())
            .collect();

        let different: std::collections::BTreeSet<&str> = all.iter().copied().collect();

        assert_eq!(different.len(), all.len());
    }
}
