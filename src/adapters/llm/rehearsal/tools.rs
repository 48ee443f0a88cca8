//! Calls tools that the new messages ask for: dice, the time in a place, polls, and reminders (docs/design/tools.md X-19).

use serde_json::{Value, json};

use super::kind::{listed, words};
use super::situation::printable;
use crate::domain::message::Role as Author;
use crate::domain::question_context::{Answered, Line, QuestionContext};
use crate::domain::text::one_line;
use crate::domain::tools::Cause;
use crate::domain::tools::built_in::Poll;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{Request, Role, ToolCall};
use crate::texts::Language;

/// The numbers from one, in three languages.
const NUMBERS: &str = "one eins uno,two zwei dos,three drei tres,four vier cuatro,five fünf cinco,six sechs seis,seven sieben siete,\
    eight acht ocho,nine neun nueve,ten zehn diez,eleven elf once,twelve zwölf doce";
const ONE: &str = "a an ein eine einen einem einer un una";
const LISTING: &str = "list show which what zeig zeige welche was lista muestra muéstrame qué que cuáles";
const CANCELLING: &str = "cancel delete remove lösche lösch storniere absagen cancela borra elimina anula";

/// A parser of answers would read these characters as a thought or an object.
const UNSAFE: [char; 4] = ['<', '>', '{', '}'];
const POLLS: [&str; 3] = ["poll", "umfrage", "encuesta"];
/// The ways in which people ask for a reminder.
const REMINDING: [(Language, &[&str]); 3] = [
    (Language::English, &["remind me"]),
    (Language::German, &["erinnere mich", "erinner mich"]),
    (Language::Spanish, &["recuérdame", "recuerdame"]),
];

/// What a message asks for.
#[derive(Debug, PartialEq)]
enum Ask {
    Call(&'static str, Value),
    /// A reminder, in words that are not understood.
    Unclear(Language),
}

/// The new messages that a statement answers.
pub(super) fn answered(request: &Request, context: &QuestionContext, trigger: Trigger) -> Answered {
    request.extensions.get::<Answered>().cloned().unwrap_or_else(|| {
        let newest = || context.newest.last().cloned();
        let asked = newest().filter(|line| line.from.role == Author::Person).into_iter().collect();
        Answered { asked, reminders: newest().filter(|_| trigger.acknowledges_events()).into_iter().collect() }
    })
}

/// The calls that the messages ask for, and that this reply has not made; and what is said about the others, for which there is no call.
pub(super) fn wanted(request: &Request, answered: &Answered) -> (Vec<ToolCall>, Vec<String>) {
    let calls = request.messages.iter().flat_map(|message| match &message.role {
        Role::Assistant { tool_calls } => &tool_calls[..],
        _ => &[],
    });
    let mut made: Vec<(&str, Option<Value>)> =
        calls.map(|call| (&*call.name, serde_json::from_str(&call.arguments).ok())).collect();
    let (has_made, cause) = (!made.is_empty(), request.extensions.get::<Cause>());
    let (mut wanted, mut excuses) = (Vec::new(), Vec::new());
    for line in &answered.asked {
        let who = printable(&line.from.name);
        // A reminder is for the one person whose right counts.
        let is_cause = |cause: &Cause| cause.by.as_ref().is_some_and(|by| by.person.as_str() == &*line.from.id);
        match ask(&line.text) {
            Some(Ask::Call(name, arguments)) => {
                let is_this = |(tool, of): &(&str, Option<Value>)| *tool == name && of.as_ref() == Some(&arguments);
                if let Some(at) = made.iter().position(is_this) {
                    made.swap_remove(at);
                } else if name == "remind" && !cause.is_none_or(is_cause) || has_made && request.tools.is_empty() {
                    excuses.push(format!("{who}, please ask me that again: I could not do it in this answer."));
                } else if request.tools.iter().any(|tool| tool.name == name) {
                    wanted.push(ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_string() });
                } else {
                    excuses.push(format!("{who}, I may not do that here."));
                }
            }
            Some(Ask::Unclear(language)) => excuses.push(language.say("reminders.understood", &[])),
            None => {}
        }
    }
    (wanted, excuses)
}

fn ask(text: &str) -> Option<Ask> {
    let lower = text.to_lowercase();
    let said = words(&lower);
    let has = |list: &str| said.iter().any(|word| listed(list, word));
    let plainly = text.to_ascii_lowercase();
    for (language, ways) in REMINDING {
        let Some(at) = ways.iter().find_map(|way| Some(plainly.find(way)? + way.len())).filter(|_| !has("did")) else { continue };
        return Some(match reminder(&text[at..].split_whitespace().collect::<Vec<_>>()) {
            Some((key, time, text)) => Ask::Call("remind", json!({ "action": "set", key: time, "text": text })),
            None => Ask::Unclear(language),
        });
    }
    let is_roll = has("roll");
    if (is_roll || has("würfle würfeln wirf werfen tira tirar lanza lanzar"))
        && let Some(dice) = dice(&lower, &said, if is_roll { "dice die dies" } else { "würfel dado dados" })
    {
        return Some(Ask::Call("roll", json!({ "dice": dice })));
    }
    let of = said.iter().position(|word| listed("reminder reminders erinnerung erinnerungen recordatorio recordatorios", word));
    if let Some(of) = of {
        let mut next = said[of + 1..].iter().filter(|word| !listed("number nummer número numero nr no", word));
        if has(CANCELLING)
            && let Some(number) = next.next().copied().and_then(number)
        {
            return Some(Ask::Call("remind", json!({ "action": "cancel", "number": number as u64 })));
        }
        // Their numbers are in the list.
        let is_list = has(CANCELLING) || has(LISTING) && listed("reminders erinnerungen recordatorios", said[of]);
        return is_list.then(|| Ask::Call("remind", json!({ "action": "list" })));
    }
    let after = |word: &str| plainly.find(word).map(|at| &text[at + word.len()..]);
    if let Some(Ok(poll)) = POLLS.into_iter().find_map(after).and_then(poll) {
        return Some(Ask::Call("poll", json!(poll)));
    }
    if has("time") && has("what whats tell") {
        let (_, place) = text.rsplit_once(" in ")?;
        return Some(Ask::Call("time", json!({ "zone": place.trim_end_matches(|c: char| !c.is_alphanumeric()) })));
    }
    None
}

/// The poll of `: Where do we eat? Here, there or at home`.
fn poll(said: &str) -> Option<Result<Poll, String>> {
    let (question, options) = said.split_once('?')?;
    let options = [" or ", " oder ", " o "].iter().fold(options.to_owned(), |options, or| options.replace(or, ","));
    let options: Vec<&str> = options.split(',').map(|option| option.trim_matches([' ', '.', '!', '?'])).collect();
    let question = format!("{}?", question.trim_start_matches([':', ' ']));
    Some(Poll::read(json!({ "question": question, "options": options }).as_object()?))
}

fn number(word: &str) -> Option<f64> {
    let named = || NUMBERS.split(',').position(|names| listed(names, word)).map(|index| index as f64 + 1.0);
    word.parse().ok().filter(|number: &f64| number.is_finite()).or_else(named)
}

fn count(word: &str) -> Option<f64> {
    number(word).or(listed(ONE, word).then_some(1.0))
}

/// The dice of `roll 2d6` or `roll two dice`, where `names` are the words for dice.
fn dice(lower: &str, said: &[&str], names: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let is_dice = |word: &&str| {
        let Some((count, rest)) = word.split_once(['d', 'w']) else { return false };
        count.chars().all(is_digit) && rest.starts_with(|c| is_digit(c) || c == '%')
    };
    let mut all = lower.split(|c: char| !c.is_ascii_alphanumeric() && !"+-%".contains(c));
    if let Some(dice) = all.find(is_dice) {
        return Some(dice.to_owned());
    }
    let at = said.iter().rposition(|word| listed(names, word))?;
    let before = &said[at.saturating_sub(3)..at];
    let sided = before.iter().position(|word| *word == "sided").filter(|at| *at > 0);
    let sides = sided.and_then(|at| number(before[at - 1])).unwrap_or(6.0);
    let many = before[..sided.map_or(before.len(), |at| at - 1)].iter().find_map(|word| count(word));
    Some(format!("{}d{sides}", many.unwrap_or(1.0)))
}

const OTHER_DAYS: &str = "monday tuesday wednesday thursday friday saturday sunday next week january february april june july august september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag übermorgen nächsten nächste woche januar februar märz mai juni juli oktober dezember lunes martes miércoles jueves viernes sábado domingo próximo próxima semana enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre";

/// The argument, its value, and the words of `in ten minutes to feed the cat` or `tomorrow at 9 to feed the cat`.
fn reminder(said: &[&str]) -> Option<(&'static str, Value, String)> {
    let is_part = |c: char| c.is_alphanumeric();
    let plain: Vec<String> =
        said.iter().map(|word| word.trim_matches(|c| !is_part(c)).to_lowercase().replace(".m", "m")).collect();
    let word = |at: usize| plain.get(at).map_or("", String::as_str);
    let find = |list: &str| plain.iter().position(|word| listed(list, word));
    let is_wait = |at: &usize| listed("in en", word(*at)) && count(word(at + 1)).is_some() && unit(word(at + 2)).is_some();
    let (key, time, mut gone) = if let Some(at) = (0..said.len()).find(is_wait) {
        ("in_minutes", json!(count(word(at + 1))? * unit(word(at + 2))?), vec![at, at + 1, at + 2])
    } else {
        // Days that the tool has no words for.
        if find(OTHER_DAYS).is_some() {
            return None;
        }
        let at = (0..said.len()).find(|at| listed("at um las la", word(*at)) && clock(word(at + 1), word(at + 2)).is_some())?;
        let time = clock(word(at + 1), word(at + 2))?;
        let day = find("tomorrow morgen mañana");
        let mut gone = vec![at, at + 1];
        gone.extend(listed("am pm uhr", word(at + 2)).then_some(at + 2));
        gone.extend(at.checked_sub(1).filter(|before| word(*before) == "a"));
        gone.extend(day.or_else(|| find("today heute hoy")));
        ("at", json!(if day.is_some() { format!("tomorrow {time}") } else { time }), gone)
    };
    let first = (0..said.len()).find(|at| !gone.contains(at))?;
    gone.extend(listed("to about that an daran dass de que", word(first)).then_some(first));
    let kept: Vec<&str> = (0..said.len()).filter(|at| !gone.contains(at)).map(|at| said[at]).collect();
    let text = kept.join(" ").trim_end_matches(['.', '!', '?']).to_owned();
    (!text.is_empty()).then_some((key, time, text))
}

/// The minutes of a unit of time.
fn unit(word: &str) -> Option<f64> {
    match word.trim_end_matches(['s', 'n', 'e']) {
        "min" | "minut" | "minuto" => Some(1.0),
        "hour" | "hr" | "stund" | "hora" => Some(60.0),
        "day" | "tag" | "día" | "dia" => Some(1_440.0),
        _ => None,
    }
}

/// A time of day, such as `14:30`, `9` or `9pm`, as the tool reads it. `next` is the word after it.
fn clock(word: &str, next: &str) -> Option<String> {
    let (time, half) = ["am", "pm"].into_iter().find_map(|half| Some((word.strip_suffix(half)?, half))).unwrap_or((word, next));
    let (hour, minute) = time.split_once([':', '.']).unwrap_or((time, "0"));
    let (hour, minute): (u32, u32) = (hour.parse().ok().or_else(|| number(hour).map(|hour| hour as u32))?, minute.parse().ok()?);
    let hour = match half {
        "am" | "pm" if (1..=12).contains(&hour) => hour % 12 + if half == "pm" { 12 } else { 0 },
        _ => hour,
    };
    (hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}

/// What a companion says when a reminder is due, in the language of the room. `None`: this is the event of none.
pub(super) fn reminded(event: &Line) -> Option<String> {
    Language::ALL.into_iter().find_map(|language| {
        let before = language.say("reminders.due", &[("who", &event.from.name), ("text", &"")]);
        let text = event.text.strip_prefix(&*before)?;
        let (who, text) = (printable(&event.from.name), one_line(&text.replace(UNSAFE, ""), 300));
        Some(language.say("reminders.plain", &[("who", &who), ("text", &text)]))
    })
}

/// What the calls at the end of the prompt have answered, as sentences.
pub(super) fn told(request: &Request) -> Vec<String> {
    let ends = request.messages.iter().filter(|message| matches!(message.role, Role::Tool { .. }));
    ends.filter_map(|message| serde_json::from_str::<Value>(&message.words()).ok()).map(|end| told_of(&end)).collect()
}

fn told_of(end: &Value) -> String {
    let text = one_line(&end["text"].as_str().unwrap_or_default().replace(UNSAFE, "").replace('\n', "; "), 1_500);
    match (end["tool"].as_str(), end["outcome"].as_str()) {
        (Some("remind"), Some("answered")) => format!("All right: {text}."),
        (Some("poll"), Some("answered")) => "Here is the poll.".to_owned(),
        (Some("roll"), Some("answered")) => format!("I rolled {text}."),
        (_, Some("answered")) => format!("It is {text}."),
        (_, outcome) => format!("That did not work: {}.", if text.is_empty() { outcome.unwrap_or_default() } else { &text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_read_from_what_people_say() {
        let poll =
            |question: &str, options: [&str; 2]| Some(Ask::Call("poll", json!({ "question": question, "options": options })));

        assert_eq!(ask("Aria, poll: Where do we eat? Here or there!"), poll("Where do we eat?", ["Here", "there"]));
        assert_eq!(ask("Umfrage: Tee? Ja, nein"), poll("Tee?", ["Ja", "nein"]));
        assert_eq!(ask("Aria, encuesta: ¿Té? sí o no"), poll("¿Té?", ["sí", "no"]));
        for text in ["Aria, a poll?", "poll: Tea? Yes", "Did you see the poll?"] {
            assert_eq!(ask(text), None, "{text}");
        }
    }

    #[test]
    fn a_reminder_is_read_from_what_people_say() {
        let set =
            |key: &str, time: Value, text: &str| Some(Ask::Call("remind", json!({ "action": "set", key: time, "text": text })));
        let cases = [
            ("Aria, remind me in ten minutes to feed the cat!", "in_minutes", json!(10.0), "feed the cat"),
            ("Remind me about tea in 2.5 hours, Aria", "in_minutes", json!(150.0), "tea Aria"),
            ("aria remind me to call Ben in a day.", "in_minutes", json!(1_440.0), "call Ben"),
            ("Erinnere mich in zehn Minuten daran, Ben anzurufen.", "in_minutes", json!(10.0), "Ben anzurufen"),
            ("Recuérdame en dos horas que llame a Ben", "in_minutes", json!(120.0), "llame a Ben"),
            ("remind me in one hour to roll 2d6", "in_minutes", json!(60.0), "roll 2d6"),
            ("Please remind me to test it at 5:30 p.m. today.", "at", json!("17:30"), "test it"),
            (
                "remind me to yell at me until I call Ben at 11:00 AM tomorrow",
                "at",
                json!("tomorrow 11:00"),
                "yell at me until I call Ben",
            ),
            ("remind me tomorrow at 9 to eat", "at", json!("tomorrow 09:00"), "eat"),
            ("Remind me at 14:30 to call Ben in Rome", "at", json!("14:30"), "call Ben in Rome"),
            ("remind me to eat at 9 pm.", "at", json!("21:00"), "eat"),
            ("erinnere mich morgen um 14.30 Uhr an Tee", "at", json!("tomorrow 14:30"), "Tee"),
            ("recuérdame mañana a las nueve que coma", "at", json!("tomorrow 09:00"), "coma"),
        ];
        for (text, key, time, words) in cases {
            assert_eq!(ask(text), set(key, time, words), "{text}");
        }
        for (at, texts) in [
            (
                0,
                &[
                    "remind me",
                    "remind me to call Ben",
                    "remind me in two minutes",
                    "remind me at 25:00 to eat",
                    "İ remind me in",
                ][..],
            ),
            (1, &["Aria, erinnere mich an Tee"]),
            (2, &["recuérdame algo"]),
        ] {
            for text in texts {
                assert_eq!(ask(text), Some(Ask::Unclear(REMINDING[at].0)), "{text}");
            }
        }
    }

    #[test]
    fn reminders_are_listed_and_cancelled_and_dice_are_counted() {
        let list = || Some(Ask::Call("remind", json!({ "action": "list" })));
        let cancel = |number: u64| Some(Ask::Call("remind", json!({ "action": "cancel", "number": number })));
        let roll = |dice: &str| Some(Ask::Call("roll", json!({ "dice": dice })));

        for text in [
            "Aria, list my reminders",
            "What reminders do I have?",
            "Zeig meine Erinnerungen",
            "¿Qué recordatorios tengo?",
            "cancel my reminder about a cat",
        ] {
            assert_eq!(ask(text), list(), "{text}");
        }
        for text in
            ["cancel reminder 2", "Aria, cancel the reminder number two!", "Lösche Erinnerung zwei", "cancela el recordatorio 2"]
        {
            assert_eq!(ask(text), cancel(2), "{text}");
        }
        for (text, expected) in [
            ("Aria, roll two dice please", "2d6"),
            ("roll a 20-sided die", "1d20"),
            ("Aria, wirf drei Würfel", "3d6"),
            ("würfle 2w6", "2w6"),
            ("tira diez dados", "10d6"),
        ] {
            assert_eq!(ask(text), roll(expected), "{text}");
        }
        for text in ["what did you remind me of in May?", "Wirf die Decke weg", "reminders are useful"] {
            assert_eq!(ask(text), None, "{text}");
        }
    }
}
