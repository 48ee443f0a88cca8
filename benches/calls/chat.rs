//! The messages by people in the measurement: the human side of the recorded talks, and evenings of a group chat generated from a seed.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use tertulia::domain::message::Modality;
use tertulia::domain::moment::Moment;
use tertulia::evaluation::excerpts::{Message, read};
use tertulia::replay::{Action, Script, ScriptedEvent, ScriptedMessage};

/// The number of evenings. Each is a separate conversation.
pub const EVENINGS: u64 = 24;
/// Messages of an evening.
const MESSAGES: usize = 25;

/// The share of gaps between messages that are longer than ten seconds. Measured in public logs: 70 to 72 in a hundred.
const LONG_GAPS: f64 = 0.71;
/// The share of messages by the author of the message before. Measured: 27 to 53 in a hundred.
const GOES_ON: f64 = 0.35;
/// How often an addressed person answers. Measured: 54 to 65 times in a hundred.
const ANSWERS: f64 = 0.6;
/// The share of messages for one person, by a mention or as a reply. Chosen, not measured.
const FOR_A_PERSON: f64 = 0.35;
/// The share of messages that name a companion, and of these the share that names a second one. Chosen, not measured.
const FOR_A_COMPANION: f64 = 0.15;
const FOR_TWO: f64 = 0.15;

const PEOPLE: [&str; 6] = ["Rosa", "Duarte", "Inês", "Tomé", "Vera", "Kai"];

const REMARKS: [&str; 24] = [
    "the bus was late again",
    "I finally fixed the bike",
    "my sourdough did not rise",
    "the new map pack is out",
    "that ending was too long",
    "I could sleep for a week",
    "rain all weekend, they say",
    "we lost by one point",
    "the crows are back on the roof",
    "somebody parked in front of the gate",
    "I tried the soup place",
    "no signal down there at all",
    "the printer ate my paper",
    "she said yes",
    "it is cold in here",
    "my exam is on Thursday",
    "I like the old version better",
    "they changed the timetable",
    "the radio play starts at nine",
    "found my keys in the fridge",
    "level nine took me all evening",
    "half the team is ill",
    "I will bring bread",
    "nothing works on a Monday",
];
const QUESTIONS: [&str; 10] = [
    "who is in on Saturday?",
    "has anyone seen the second part?",
    "what do you cook with leeks?",
    "which train is the good one?",
    "is the shop still open?",
    "how do you get past the gate?",
    "why is it so quiet?",
    "does anyone have a spare charger?",
    "where do we meet?",
    "how far did you get?",
];
const MORE: [&str; 10] = [
    "and then it stopped",
    "for real",
    "twice!",
    "at least I think so",
    "anyway",
    "or maybe tomorrow",
    "with pictures",
    "that was all",
    "never again",
    "sorry, had to say it",
];
const SHORT: [&str; 8] = ["yes", "no idea", "around eight", "haha", "the left one", "not yet", "on my way", "same here"];

/// The human side of the recorded talks, each a script without companions and answers.
pub fn recorded() -> anyhow::Result<Vec<Script>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let human_side = |path: &Path| {
        let script = Script::from_toml(&fs::read_to_string(path)?).with_context(|| format!("{} is no script", path.display()))?;
        let people = script.events.into_iter().filter(|event| matches!(&event.action, Action::Say(saying) if !saying.bot));
        scripted(people.collect())
    };
    paths.iter().map(|path| human_side(path)).collect()
}

/// The excerpts of a file of recorded chat between people, as `tertulia-lab evaluate` reads it.
pub fn excerpts(file: &str) -> anyhow::Result<Vec<Script>> {
    let said = |message: &Message| ScriptedEvent {
        at: Moment::from_micros((message.t * 1e6) as u64),
        channel: "room".to_owned(),
        action: Action::Say(saying(&message.from, message.text.as_ref().to_owned())),
    };
    let excerpts = read(&[file]).map_err(anyhow::Error::msg)?;
    excerpts.iter().map(|excerpt| scripted(excerpt.messages.iter().map(said).collect())).collect()
}

/// Evenings of a group chat with this number of companions.
pub fn evenings(present: usize) -> anyhow::Result<Vec<Script>> {
    (0..EVENINGS).map(|evening| scripted(Evening::new(evening, present).messages())).collect()
}

/// The actual proportions of the generated evenings, in words.
pub fn proportions(evenings: &[Script]) -> String {
    let (mut gaps, mut long, mut went_on, mut personal, mut answered, mut called) = (0, 0, 0, 0, 0, 0);
    for evening in evenings {
        let said: Vec<_> = evening.events.iter().filter_map(saying_of).collect();
        called += said.iter().filter(|(_, saying)| saying.text.starts_with("Aria,")).count();
        for pair in said.windows(2) {
            let [(earlier, one), (later, next)] = pair else { continue };
            gaps += 1;
            long += usize::from(later.since(*earlier).as_secs() >= 10);
            went_on += usize::from(one.from == next.from);
            if let Some(person) = one.mentions.first().or(one.reply_to.as_ref()).filter(|_| !SHORT.contains(&&*one.text)) {
                personal += 1;
                answered += usize::from(next.from == *person && next.reply_to.as_ref() == Some(&one.from));
            }
        }
    }
    let percent = |part: usize, whole: usize| part * 100 / whole.max(1);
    format!(
        "{} % of the gaps are longer than 10 s; {} % of the messages go on with the author's own; {} % are meant for another person by a \
         mention or as a reply, who answers {} % of them at once; {} % call a companion.",
        percent(long, gaps),
        percent(went_on, gaps),
        percent(personal, gaps),
        percent(answered, personal),
        percent(called, gaps)
    )
}

/// The time and content of a message.
pub fn saying_of(event: &ScriptedEvent) -> Option<(Moment, &ScriptedMessage)> {
    match &event.action {
        Action::Say(saying) => Some((event.at, saying)),
        _ => None,
    }
}

fn scripted(events: Vec<ScriptedEvent>) -> anyhow::Result<Script> {
    let empty = Script::from_toml("companions = []").context("a script without anything cannot be read")?;
    Ok(Script { events, ..empty })
}

/// Generates one evening.
struct Evening<'a> {
    dice: Dice,
    companions: &'a [&'a str],
    secs: f64,
}

impl Evening<'_> {
    fn new(seed: u64, present: usize) -> Self {
        const COMPANIONS: [&str; 8] = ["Aria", "Bruno", "Cleo", "Dora", "Elio", "Fina", "Gaspar", "Hana"];
        Self { dice: Dice(seed), companions: &COMPANIONS[..present], secs: 0.0 }
    }

    fn messages(mut self) -> Vec<ScriptedEvent> {
        let mut said: Vec<ScriptedEvent> = Vec::new();
        let mut last = PEOPLE[0];
        // The person whom the last message addresses, and its author.
        let mut asked: Option<(&str, &str)> = None;
        while said.len() < MESSAGES {
            // Each message uses the same number of random numbers in every case, so that all casts get the same chat.
            let [gap, length, answers, who, whom, aim, form, companion, second, text] = [(); 10].map(|()| self.dice.fraction());
            self.secs += if gap < LONG_GAPS { 10.0 - 35.0 * (1.0 - length).ln() } else { 1.0 + 9.0 * length };
            let answering = asked.take().filter(|_| answers < ANSWERS);
            let mut saying = saying(last, String::new());
            if let Some((answerer, asker)) = answering {
                saying.from = answerer.to_owned();
                saying.text = pick(&SHORT, text).to_owned();
                saying.reply_to = Some(asker.to_owned());
            } else if who < GOES_ON {
                saying.text = pick(&MORE, text).to_owned();
            } else {
                let from = pick(&PEOPLE, (who - GOES_ON) / (1.0 - GOES_ON));
                let words = if form < 0.25 { pick(&QUESTIONS, text) } else { pick(&REMARKS, text) };
                saying.from = from.to_owned();
                if aim < FOR_A_COMPANION {
                    let name = pick(self.companions, companion);
                    let other = pick(self.companions, second);
                    let is_for_two = aim < FOR_A_COMPANION * FOR_TWO && other != name;
                    saying.text = if is_for_two { format!("{name}, {other}: {words}") } else { format!("{name}, {words}") };
                } else {
                    saying.text = words.to_owned();
                    let person = pick(&PEOPLE, whom);
                    if aim < FOR_A_COMPANION + FOR_A_PERSON && person != from {
                        asked = Some((person, from));
                        if form < 0.5 {
                            saying.mentions = vec![person.to_owned()];
                        } else {
                            saying.reply_to = Some(person.to_owned());
                        }
                    }
                }
            }
            last = PEOPLE.into_iter().find(|person| *person == saying.from).unwrap_or(last);
            let at = Moment::from_micros((self.secs * 1e6) as u64);
            said.push(ScriptedEvent { at, channel: "room".to_owned(), action: Action::Say(saying) });
        }
        said
    }
}

fn saying(from: &str, text: String) -> ScriptedMessage {
    ScriptedMessage {
        from: from.to_owned(),
        text,
        mentions: Vec::new(),
        reply_to: None,
        bot: false,
        direct: false,
        modality: Modality::default(),
        lull_endpoint: false,
        kind: None,
    }
}

fn pick<'a>(list: &[&'a str], fraction: f64) -> &'a str {
    list[((fraction * list.len() as f64) as usize).min(list.len() - 1)]
}

/// SplitMix64. It is written here, so that its numbers do not change with a crate's version.
struct Dice(u64);

impl Dice {
    /// A number from 0 (included) to 1 (excluded).
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
