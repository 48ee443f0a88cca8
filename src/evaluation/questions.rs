//! Builds the request for a decision about a message of an excerpt, with the prompt that a companion would get in a room.

use std::sync::Arc;
use std::time::Duration;

use super::excerpts::{self, Excerpt};
use crate::actors::companion::question;
use crate::domain::address::{self, Incoming};
use crate::domain::answer::Verdict;
use crate::domain::id::{CompanionId, GuildId, Seq};
use crate::domain::message::{Author, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::names::Names;
use crate::domain::policy::names::CommonNames;
use crate::domain::prompt::{Other, PromptInput, RECENT_TURNS, Said, Scene};
use crate::domain::trigger::Trigger;
use crate::domain::vote::{self, MOST_IMPORTANCE};
use crate::ports::language_model::Request;
use crate::settings::Settings;
use crate::settings::companion::{Companion, CompanionFile};

/// The guild of all requests.
const GUILD: &str = "evaluation";
/// The start time of all excerpts, because they have no date: Monday, 2026-01-05, 12:00 UTC.
pub(super) const BEGAN: Moment = Moment::from_micros(1_767_614_400_000_000);
/// The maximum score of a NO. A YES has at least 0.5.
const MOST_FOR_NO: f64 = 0.499;

/// An excerpt from the view of one author, who takes the companion's role.
pub struct Room {
    companion: Companion,
    /// All messages. Their sequence number is the index plus one.
    said: Vec<Said>,
    others: Vec<Other>,
}

/// A model's judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub yes: bool,
    /// From 0 to 1, and grows with the importance that the model states. A YES has at least 0.5, a NO less.
    pub score: f64,
    pub is_readable: bool,
    /// The reason that the model gave.
    pub why: Option<String>,
}

/// A companion without special traits: neither its persona nor its chattiness favours an answer.
///
/// # Errors
/// Returns an error if the defaults of companions are invalid.
pub fn neutral(settings: &Settings) -> Result<Companion, String> {
    let file = CompanionFile {
        id: Some("author".into()),
        chattiness: Some("You speak when you have something to say, and leave room for others.".into()),
        persona: Some("You are a regular of this chat. You know its subject well, and you are friendly and brief.".into()),
        ..CompanionFile::default()
    };
    let problems = |problems: Vec<_>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Companion::from_file(file, None, &settings.companion_defaults).map_err(problems)
}

/// The same companion with the name of an author.
pub(super) fn named_as(companion: &Companion, author: &Arc<str>) -> Companion {
    Companion { id: CompanionId::from(&**author), name: author.clone(), aliases: Vec::new(), ..companion.clone() }
}

pub(super) fn moment(message: &excerpts::Message) -> Moment {
    BEGAN + Duration::from_secs_f64(message.t)
}

impl Room {
    /// Creates the room of an excerpt. The companion takes the name of the author.
    pub fn new(excerpt: &Excerpt, author: &Arc<str>, companion: &Companion, common: CommonNames) -> Self {
        let companion = named_as(companion, author);
        let names = Names::new([(companion.id.clone(), companion.names())]).ok().map(|names| names.with(common));
        let is_companion = |name: &str| name == &**author || excerpt.companions.iter().flatten().any(|other| &**other == name);
        let said = excerpt.messages.iter().map(|message| {
            let role = if is_companion(&message.from) { Role::Companion } else { Role::Person };
            let from = Author { role, ..Author::of_name(message.from.clone()) };
            let incoming = Incoming::new(&from, &message.text);
            let address = names.as_ref().map(|names| address::resolve(names, is_companion, &incoming)).unwrap_or_default();
            let said = Message { address, ..Message::new(from, message.text.clone()) };
            Said::new(Seq(message.n as u64 + 1), moment(message), Arc::new(said))
        });
        let other = |name: &Arc<str>| Other { name: name.clone(), chattiness: None };
        let others = excerpt.companions.iter().flatten().filter(|name| *name != author).map(other).collect();
        Self { said: said.collect(), companion, others }
    }

    /// The request for a decision after message `n`. The prompt assumes that the messages up to the companion's own last one are
    /// settled, and shows no message after `n`.
    pub fn request(&self, n: usize, settings: &Settings) -> Request {
        let words = &settings.prompt;
        let guild = GuildId::from(GUILD);
        let scene = Scene { others: self.others.clone(), ..Scene::new(self.said[n].at, words.zone_of(&guild).clone()) };
        question::request(self.input(n, settings), &self.companion, &scene, guild, self.companion.brief.as_deref(), words)
    }

    fn input(&self, n: usize, settings: &Settings) -> PromptInput {
        let shown = &self.said[..=n];
        let own = shown.iter().rposition(|said| said.message.is_by(&self.companion.id)).map_or(0, |own| own + 1);
        let first = own.max(shown.len().saturating_sub(settings.gate.max_buffer));
        let newest = &shown[n].message;
        let trigger = match newest.from.role {
            Role::Companion => Trigger::Turn,
            _ if newest.address.includes(&self.companion.id) => Trigger::DirectAddress,
            Role::Person | Role::Bot => Trigger::Lull,
        };
        PromptInput {
            trigger,
            message_count: (shown.len() - own) as u64,
            speaker: Some(newest.from.name.clone()),
            recent: shown[first.saturating_sub(RECENT_TURNS)..first].to_vec(),
            buffer: shown[first..].to_vec(),
            ..PromptInput::default()
        }
    }
}

/// Reads an answer as the gate does. An unreadable answer counts as NO.
pub fn judged(answer: &str, settings: &Settings) -> Judged {
    let vote = vote::read(answer, settings.prompt.verdict_words());
    let importance = vote.importance / MOST_IMPORTANCE;
    let yes = vote.verdict == Verdict::Yes;
    let score = match vote.verdict {
        Verdict::Yes => f64::midpoint(1.0, importance),
        Verdict::No => MOST_FOR_NO * importance,
        Verdict::Unreadable => 0.0,
    };
    Judged { yes, score, is_readable: vote.verdict != Verdict::Unreadable, why: vote.why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::tests::excerpt;
    use crate::samples::defaults;

    #[test]
    fn the_prompt_shows_the_messages_up_to_n_and_the_authors_own_as_the_companions() {
        let room = room();

        let request = room.request(3, defaults());

        let user = request.user();
        assert!(user.contains("why?") && user.contains("it rains") && !user.contains("later"), "{user}");
        assert!(request.messages[0].words().contains("al"), "{:?}", request.messages[0]);
        let input = room.input(3, defaults());
        let texts = |said: &[Said]| said.iter().map(|said| said.message.text.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (texts(&input.recent), texts(&input.buffer)),
            (vec!["hello".to_owned(), "it rains".into()], vec!["no".into(), "al, why?".into()])
        );
        assert!(input.recent[1].message.is_by(&"al".into()));
        assert_eq!((input.trigger, input.message_count), (Trigger::DirectAddress, 2));
        assert_eq!(room.input(2, defaults()).trigger, Trigger::Lull);
    }

    #[test]
    fn what_was_said_later_changes_no_question() {
        let mut other = excerpt(&[("bo", "hello", &[]), ("al", "it rains", &[]), ("bo", "no", &[]), ("bo", "al, why?", &[])]);
        other.messages[1].replies_to = vec![0];
        let other = Room::new(&other, &"al".into(), &neutral(defaults()).unwrap(), CommonNames::Vocative);

        assert_eq!(room().request(3, defaults()).messages, other.request(3, defaults()).messages);
    }

    #[test]
    fn the_score_follows_the_decision_and_then_the_importance() {
        let judged = |text: &str| super::judged(text, defaults());
        let vote = |decision: &str, importance: u8| {
            judged(&format!(
                r#"{{"reason": "so", "decision": "{decision}", "importance": {importance}, "selected": false, "closing": "none"}}"#
            ))
        };

        let scores = [vote("YES", 9), vote("YES", 0), vote("NO", 10), vote("NO", 2)].map(|judged| judged.score);

        assert!(scores.is_sorted_by(|one, other| one > other), "{scores:?}");
        assert!(scores[1] >= 0.5 && scores[2] < 0.5, "{scores:?}");
        assert_eq!(judged("perhaps"), Judged { yes: false, score: 0.0, is_readable: false, why: Some("perhaps".to_owned()) });
    }

    fn room() -> Room {
        let excerpt = excerpt(&[
            ("bo", "hello", &[]),
            ("al", "it rains", &[]),
            ("bo", "no", &[]),
            ("bo", "al, why?", &[]),
            ("al", "later", &[3]),
        ]);
        Room::new(&excerpt, &"al".into(), &neutral(defaults()).unwrap(), CommonNames::Vocative)
    }
}
