//! People interrupt a companion: with speech of 0.3, 2 and 5 seconds, with backchannel, and with Stop.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::Context as _;
use tertulia::adapters::console::voice::protocol::{PageMessage, ServerMessage};
use tertulia::adapters::speech::rehearsal::Voice;
use tokio::time::Instant;

use super::page::{Event, FRAME, Page, SILENCE, Say, What, duration, sentence};
use super::server::Server;
use super::{Times, load};

const ROOM: &str = "trial";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The packets in 0.3, 2 and 5 s, and what they have to lead to: it goes on, resumes, is cut.
const SPEECH: [usize; 3] = [15, 100, 250];
/// Which of them follow each other.
const KINDS: [usize; 10] = [0, 1, 2, 0, 1, 0, 0, 1, 0, 0];
/// The voiced time, and the packets in which it makes a reply pause (docs/design/voice.md A-25): by itself, and if the companion is tolerant.
const INSISTS: [(Duration, usize); 2] = [(Duration::from_millis(500), 50), (Duration::from_secs(2), 150)];
const BACKCHANNEL: [&str; 5] = ["mhm", "yeah", "okay", "yeah okay", "right yeah okay"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    WentOn,
    Resumed,
    Cut,
}

/// What one interruption led to.
struct Outcome {
    end: End,
    /// When the first loud packet, the one with the onset, and the last voiced one were sent.
    first: Option<Instant>,
    onset: Option<Instant>,
    last: Option<Instant>,
    /// When the packets were sent with which the reply has to pause.
    insisted: [Option<Instant>; 2],
    ducked: Option<Instant>,
    paused: Option<Instant>,
    ended: Instant,
    /// The words of the server's account of what was heard, and those that were played and received.
    words: Option<[usize; 3]>,
}

/// Interrupts with nobody else, or with 40 more people: 20 with open microphones in the same room, and 20 who talk in another one.
pub async fn run(trials: usize, has_others: bool) -> anyhow::Result<()> {
    let server = Server::start().await?;
    server.room(ROOM).await?;
    let mut talk = Talk { page: Page::enter(&server.url, ROOM, "Ana").await?, reply: None, sentences: BTreeMap::new() };
    let mut others = Vec::new();
    if has_others {
        server.room("other").await?;
        others.push(load(&server, ROOM, 20, &sentence()[..SILENCE]).await?);
        others.push(load(&server, "other", 20, &sentence()).await?);
    }
    println!("\n### Interruptions, {}\n", if has_others { "40 others in two rooms" } else { "nobody else" });

    let busy = (Instant::now(), server.processor_time()?);
    let mut outcomes = Vec::new();
    for trial in 0..trials {
        let kind = KINDS[trial % KINDS.len()];
        outcomes.push((kind, talk.interrupt(Say::Packets(speech(SPEECH[kind], trial))).await?));
    }
    let spoken = |kind: usize| outcomes.iter().filter(move |(of, _)| *of == kind).map(|(_, outcome)| outcome);
    let all = || outcomes.iter().map(|(_, outcome)| outcome);

    println!("{}", Times::HEAD);
    let since = |at: Option<Instant>, from: Option<Instant>, rule: Duration| Some(at?.saturating_duration_since(from? + rule));
    Times::of(all().filter_map(|one| since(one.ducked, one.first, Duration::ZERO))).print("first loud packet to duck");
    Times::of(all().filter_map(|one| since(one.ducked, one.onset, Duration::ZERO)))
        .print("of it, after the packet with the onset");
    Times::of(all().filter_map(Outcome::pause)).print("packet that fulfils the rule to pause");
    let (went_on, resumed) = (Duration::from_millis(300), Duration::from_millis(800));
    let last = |end: End| all().filter(move |one| one.end == end);
    Times::of(last(End::WentOn).filter_map(|one| since(Some(one.ended), one.last, went_on)))
        .print("0.3 s of silence to full level");
    Times::of(last(End::Resumed).filter_map(|one| since(Some(one.ended), one.last, resumed))).print("0.8 s of silence to resume");
    println!();
    for (kind, right) in [End::WentOn, End::Resumed, End::Cut].into_iter().enumerate() {
        let count = |end: End| spoken(kind).filter(|one| one.end == end).count();
        println!(
            "* {:.1} s of speech, expected {right:?}: {} went on, {} resumed, {} cut.",
            SPEECH[kind] as f64 * FRAME.as_secs_f64(),
            count(End::WentOn),
            count(End::Resumed),
            count(End::Cut)
        );
    }

    let mut goes_on = 0;
    let backchannels = trials.div_ceil(2);
    for trial in 0..backchannels {
        let text = BACKCHANNEL[trial % BACKCHANNEL.len()].to_owned();
        let outcome = talk.interrupt(Say::Message(PageMessage::Say { text })).await?;
        goes_on += usize::from(outcome.end != End::Cut);
    }
    println!("* Backchannel: {goes_on} of {backchannels} went on or resumed.");

    let mut words: Vec<_> = all().filter_map(|one| one.words).collect();
    for _ in 0..trials.div_ceil(10) {
        talk.listen().await?;
        let reply = talk.reply.context("a reply")?;
        words.extend(talk.interrupt(Say::Message(PageMessage::Stop { reply })).await?.words);
    }
    let furthest = |of: usize| words.iter().map(|words| words[0].abs_diff(words[of])).max().unwrap_or_default();
    println!(
        "* {} cuts: heard differs by at most {} words from what was played, and {} from what was received.",
        words.len(),
        furthest(1),
        furthest(2)
    );
    let share = (server.processor_time()? - busy.1).as_secs_f64() / busy.0.elapsed().as_secs_f64();
    println!("* The server took {:.1} % of a core. Packets: {}.", share * 100.0, server.packets().await?);
    Ok(())
}

/// So many packets of speech without a pause, from the first or the second word on.
fn speech(packets: usize, trial: usize) -> Vec<&'static [u8]> {
    let begin = [0, 31][trial % 2];
    sentence().into_iter().skip(15).take(SPOKEN).cycle().skip(begin).take(packets).collect()
}

/// The packets of the sentence from its first word to its last.
const SPOKEN: usize = 141;

/// A person who talks with a companion.
struct Talk {
    page: Page,
    reply: Option<u32>,
    /// The sentences of the reply, and where they begin.
    sentences: BTreeMap<Duration, String>,
}

impl Talk {
    /// Waits until a reply plays, and asks for one if necessary.
    async fn listen(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut is_asked = false;
        loop {
            match self.page.next(Duration::from_millis(100)).await {
                Some(event) => self.apply_event(&event),
                None => anyhow::ensure!(begun.elapsed() < 2 * PATIENCE, "no reply is spoken"),
            }
            if self.reply.is_some() {
                return Ok(());
            }
            // The companion may have more to say without being asked.
            if begun.elapsed() > Duration::from_secs(3) && !is_asked {
                is_asked = true;
                self.page.say(Say::Message(PageMessage::Say { text: "Aria, tell us more.".into() }))?;
            }
        }
    }

    /// Interrupts the companion, and waits until the interruption is over and quiet.
    async fn interrupt(&mut self, say: Say) -> anyhow::Result<Outcome> {
        self.listen().await?;
        // A second in which nothing is said.
        let quiet = Instant::now() + Duration::from_secs(1);
        while let Some(event) = self.page.next(quiet.saturating_duration_since(Instant::now())).await {
            self.apply_event(&event);
        }
        self.listen().await?;
        self.page.say(say)?;
        let mut outcome = Outcome::new();
        let (begun, mut recent) = (Instant::now(), VecDeque::new());
        let end = loop {
            let event = self.page.next(PATIENCE).await.context("nothing happens in the call")?;
            self.apply_event(&event);
            let is_quiet = outcome.last.is_none_or(|last| last.elapsed() > Duration::from_millis(200));
            match event.what {
                What::Sent { voiced, is_onset } => {
                    outcome.first.get_or_insert(event.at);
                    if is_onset {
                        outcome.onset.get_or_insert(event.at);
                    }
                    if !voiced.is_zero() {
                        outcome.last = Some(event.at);
                    }
                    recent.push_front((event.at, voiced));
                    for ((share, packets), insisted) in INSISTS.iter().zip(&mut outcome.insisted) {
                        let within = event.at - FRAME * *packets as u32;
                        let sum: Duration = recent.iter().take_while(|(at, _)| *at > within).map(|(_, voiced)| *voiced).sum();
                        if insisted.is_none() && sum >= *share {
                            *insisted = Some(event.at);
                        }
                    }
                }
                What::Told(ServerMessage::Duck { on: true, .. }) => drop(outcome.ducked.get_or_insert(event.at)),
                What::Told(ServerMessage::Flush { .. }) => drop(outcome.paused.get_or_insert(event.at)),
                What::Told(ServerMessage::Duck { on: false, .. }) if is_quiet => break End::WentOn,
                What::Told(ServerMessage::Resume { .. }) if is_quiet => break End::Resumed,
                What::Told(ServerMessage::Cut { heard, .. }) => {
                    let count = |position| self.words_until(position);
                    outcome.words = Some([heard.split_whitespace().count(), count(event.played), count(event.received)]);
                    break End::Cut;
                }
                _ => {}
            }
            anyhow::ensure!(begun.elapsed() < PATIENCE, "the interruption leads to nothing");
        };
        (outcome.end, outcome.ended) = (end, Instant::now());
        Ok(outcome)
    }

    fn apply_event(&mut self, event: &Event) {
        match &event.what {
            What::Told(ServerMessage::Speaking { reply, .. }) => (self.reply, self.sentences) = (Some(*reply), BTreeMap::new()),
            What::Told(ServerMessage::Sentence { from, text, .. }) => drop(self.sentences.insert(duration(*from), text.clone())),
            What::Told(ServerMessage::Cut { .. } | ServerMessage::Done { .. }) => self.reply = None,
            _ => {}
        }
    }

    /// The words that end before this position, by the times that the built-in voice gives them.
    fn words_until(&self, position: Duration) -> usize {
        let ends = self
            .sentences
            .iter()
            .flat_map(|(from, text)| Voice::of("aria", 1.0).words(text.as_str()).map(|word| *from + word.end));
        ends.filter(|end| *end <= position).count()
    }
}

impl Outcome {
    fn new() -> Self {
        let (end, ended, insisted) = (End::WentOn, Instant::now(), [None; 2]);
        Self { end, first: None, onset: None, last: None, insisted, ducked: None, paused: None, ended, words: None }
    }

    /// From the packet with which the reply has to pause to the pause. A companion is tolerant if it pauses with the second rule.
    fn pause(&self) -> Option<Duration> {
        let paused = self.paused?;
        let by = self.insisted.iter().flatten().rfind(|insisted| **insisted <= paused)?;
        Some(paused - *by)
    }
}
