//! A voice call that plays what companions say, in paused time, and keeps a ledger of it.
//!
//! It is independent of the code that it checks: a sentence plays only when its start is on record, and the ledger knows what was played.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::domain::conversation::{Aloud, Notice};
use crate::domain::id::{ChannelId, Ticket};
use crate::domain::voice::interruption;
use crate::ports::voice_call::CallEffect;

/// How often it tells the position.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// From the first sentence to the first audio.
const FIRST_AUDIO: Duration = Duration::from_millis(400);
/// The time that a word takes.
const WORD: Duration = Duration::from_millis(400);
/// After this time without audio the synthesis of a sentence stalls.
const STALLS_AFTER: Duration = Duration::from_secs(2);

/// How a reply sounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Voice {
    /// As it should.
    #[default]
    Fine,
    /// No audio is made.
    Silent,
    /// The synthesis of this sentence stalls.
    Stalls(usize),
    /// Playback is lost at this position.
    Lost(Duration),
}

/// One reply, as it was played.
#[derive(Clone, Debug)]
pub(crate) struct Performance {
    pub(crate) channel: ChannelId,
    pub(crate) ticket: Ticket,
    pub(crate) sentences: Vec<Arc<str>>,
    /// The audio of each sentence. Of one that was dropped it is zero.
    pub(crate) sent: Vec<Duration>,
    /// The furthest position that was played.
    pub(crate) played: Duration,
}

impl Performance {
    /// What was spoken, without the sentences that were dropped.
    pub(crate) fn text(&self) -> String {
        self.spoken().map(|(sentence, _)| sentence).collect()
    }

    /// The sentences that were not dropped, each with its audio.
    fn spoken(&self) -> impl Iterator<Item = (&str, Duration)> {
        let sent = self.sent.iter().copied().map(Some).chain(std::iter::repeat(None));
        let spoken = self.sentences.iter().zip(sent).filter(|(_, sent)| sent.is_none_or(|sent| !sent.is_zero()));
        spoken.map(|(sentence, sent)| (&**sentence, sent.unwrap_or_default()))
    }

    /// Whether these words can have been heard: they are the beginning of what was not dropped, and the share of each sentence was played.
    pub(crate) fn can_be_heard(&self, words: &str) -> bool {
        let text = self.text();
        let Some(end) = text.trim_start().strip_prefix(words.trim()).map(|rest| text.len() - rest.len()) else { return false };
        let mut left = text[..end].chars().count();
        let mut start = Duration::ZERO;
        for (sentence, sent) in self.spoken() {
            let chars = sentence.chars().count();
            let (of_it, blank) = (left.min(chars), chars - sentence.trim_start().chars().count());
            let played = self.played.saturating_sub(start).min(sent);
            let share = of_it as f64 / chars as f64;
            if of_it > blank && share > played.as_secs_f64() / sent.as_secs_f64().max(1e-9) + 0.001 {
                return false;
            }
            (left, start) = (left - of_it, start + sent);
        }
        true
    }
}

/// What was played, and what must never happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The replies that began to play, in this order.
    pub(crate) performances: Vec<Performance>,
    /// Rules that were broken.
    pub(crate) faults: Vec<String>,
    /// The reply that is being prepared or played in each channel.
    pub(crate) active: BTreeMap<ChannelId, Ticket>,
    /// How each reply was to sound.
    pub(crate) voices: Vec<(ChannelId, Ticket, Voice)>,
    /// What was to be done for replies, and when.
    pub(crate) told: Vec<(Instant, ChannelId, Aloud)>,
}

impl Ledger {
    /// How a reply was played. If it was begun again before anything that was heard was on record, the newest attempt counts.
    pub(crate) fn performance(&self, channel: &ChannelId, ticket: Ticket) -> Option<&Performance> {
        self.performances.iter().rfind(|one| one.channel == *channel && one.ticket == ticket)
    }
}

/// The ledger, which outlives the mouth.
pub(crate) type Shared = Arc<Mutex<Ledger>>;

fn lock(ledger: &Shared) -> MutexGuard<'_, Ledger> {
    ledger.lock()
}

/// The mouth of all companions in one channel.
struct Mouth {
    channel: ChannelId,
    ledger: Shared,
    voice: Voice,
    ticket: Ticket,
    sentences: Vec<Arc<str>>,
    is_all: bool,
    /// The number of sentences that were told.
    told: usize,
    first_audio_at: Option<Instant>,
    sent: Vec<Duration>,
    /// The number of sentences whose start is on record.
    startable: usize,
    is_finished: bool,
    position: Duration,
    plays_since: Option<Instant>,
    /// Since when the next sentence has no audio.
    stalls_since: Option<Instant>,
    /// Where its performance is in the ledger.
    performance: Option<usize>,
}

impl Mouth {
    fn new(channel: ChannelId, ledger: Shared, voice: Voice, ticket: Ticket) -> Self {
        Self {
            channel,
            ledger,
            voice,
            ticket,
            sentences: Vec::new(),
            is_all: false,
            told: 0,
            first_audio_at: None,
            sent: Vec::new(),
            startable: 0,
            is_finished: false,
            position: Duration::ZERO,
            plays_since: None,
            stalls_since: None,
            performance: None,
        }
    }

    fn fault(&self, fault: &str) {
        let fault = format!("{} #{}: {fault}", self.channel.as_str(), self.ticket.0);
        lock(&self.ledger).faults.push(fault);
    }

    /// Plays from a position, which may be the one where it stands.
    fn play(&mut self, from: Option<Duration>) {
        self.pause();
        if self.startable == 0 {
            self.fault("it is heard before the start of its first sentence is on record");
        }
        self.position = from.unwrap_or(self.position);
        self.plays_since = Some(Instant::now());
        if self.performance.is_none() {
            let mut ledger = lock(&self.ledger);
            let (channel, ticket, sentences) = (self.channel.clone(), self.ticket, self.sentences.clone());
            self.performance = Some(ledger.performances.len());
            let (sent, played) = (Vec::new(), Duration::ZERO);
            ledger.performances.push(Performance { channel, ticket, sentences, sent, played });
        }
    }

    fn pause(&mut self) -> Duration {
        self.position = self.position_now();
        self.plays_since = None;
        self.note();
        self.position
    }

    /// Notes in the ledger how far it was played.
    fn note(&self) {
        let Some(performance) = self.performance else { return };
        let mut ledger = lock(&self.ledger);
        let performance = &mut ledger.performances[performance];
        performance.played = performance.played.max(self.position_now());
        performance.sent.clone_from(&self.sent);
        performance.sentences.clone_from(&self.sentences);
    }

    fn position_now(&self) -> Duration {
        let played = self.plays_since.map_or(Duration::ZERO, |since| since.elapsed());
        let end = self.sent.iter().take(self.startable).sum();
        let position = (self.position + played).min(end);
        match self.voice {
            Voice::Lost(at) => position.min(at),
            _ => position,
        }
    }

    fn is_playing(&self) -> bool {
        self.plays_since.is_some()
    }

    /// When it has something to tell.
    fn wakes_at(&self) -> Option<Instant> {
        self.first_audio_at.or_else(|| self.is_playing().then(|| Instant::now() + REPORT_EVERY))
    }

    /// What it has to tell now.
    fn tell(&mut self) -> Vec<interruption::Input> {
        let mut told: Vec<_> = Vec::new();
        if self.first_audio_at.is_some_and(|at| at > Instant::now()) {
            return told;
        }
        let untold = self.sentences[self.told..].iter();
        told.extend(untold.map(|text| interruption::Input::Sentence { text: text.clone(), words: Vec::new() }));
        self.told = self.sentences.len();
        if self.first_audio_at.take().is_some() {
            told.push(if self.voice == Voice::Silent { interruption::Input::Finished } else { interruption::Input::FirstAudio });
        }
        if !self.is_playing() {
            return told;
        }
        let position = self.position_now();
        if position != self.position {
            self.position = position;
            self.plays_since = Some(Instant::now());
        }
        told.push(interruption::Input::Played { position });
        // One sentence is made ahead of the one that plays.
        while self.sent.len() < self.sentences.len() && self.ends_before_last() <= position {
            let number = self.sent.len();
            if self.voice == Voice::Stalls(number) {
                let since = *self.stalls_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= STALLS_AFTER {
                    told.push(interruption::Input::Stall);
                }
                break;
            }
            let length = WORD * self.sentences[number].split_whitespace().count().max(1) as u32;
            self.sent.push(length);
            told.extend([
                interruption::Input::Audio { sentence: number, length },
                interruption::Input::Whole { sentence: number },
            ]);
        }
        if self.is_all && self.sent.len() == self.sentences.len() && !self.is_finished {
            self.is_finished = true;
            told.push(interruption::Input::Finished);
        }
        self.note();
        told
    }

    /// Where the newest sentence with audio begins.
    fn ends_before_last(&self) -> Duration {
        self.sent.iter().take(self.sent.len().saturating_sub(1)).sum()
    }

    fn follow(&mut self, aloud: &Aloud) -> Vec<interruption::Input> {
        match aloud {
            Aloud::Prepare { .. } => {}
            Aloud::Say { sentence, text } => {
                if *sentence != self.sentences.len() {
                    self.fault("a sentence is missing, or is said again");
                }
                if self.sentences.is_empty() {
                    self.first_audio_at = Some(Instant::now() + FIRST_AUDIO);
                }
                self.sentences.push(text.clone());
            }
            Aloud::SaidAll => self.is_all = true,
            Aloud::Start { sentence } => {
                // What was played before is not played faster.
                self.pause_and_go_on();
                self.startable = self.startable.max(sentence + 1);
            }
            Aloud::Play(interruption::Effect::Speak) => {
                if !self.is_playing() {
                    self.play(None);
                }
                return self.tell();
            }
            Aloud::Play(interruption::Effect::Resume { from }) => {
                self.play(Some(*from));
                return self.tell();
            }
            Aloud::Play(interruption::Effect::Pause) => {
                let position = self.pause();
                return vec![interruption::Input::Played { position }];
            }
            Aloud::Play(interruption::Effect::SentenceDropped { .. }) => {
                self.sent.push(Duration::ZERO);
                self.stalls_since = None;
                self.voice = Voice::Fine;
            }
            Aloud::Play(_) => {}
        }
        Vec::new()
    }

    fn pause_and_go_on(&mut self) {
        if self.is_playing() {
            self.pause();
            self.plays_since = Some(Instant::now());
        }
    }
}

/// Plays what is to be done in calls, until the sender is gone. `voice` draws how a reply sounds; `tell` tells a channel.
pub(crate) async fn play(
    mut effects: UnboundedReceiver<(ChannelId, CallEffect)>,
    ledger: Shared,
    mut voice: impl FnMut(&ChannelId) -> Voice + Send,
    tell: impl Fn(&ChannelId, Notice) + Send,
) {
    let mut mouths: BTreeMap<ChannelId, Mouth> = BTreeMap::new();
    loop {
        let next = mouths.values().filter_map(Mouth::wakes_at).min();
        let wakes_at = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        let effect = tokio::select! {
            biased;
            effect = effects.recv() => match effect {
                Some(effect) => Some(effect),
                None => return,
            },
            () = tokio::time::sleep_until(wakes_at) => None,
        };
        match effect {
            Some((channel, CallEffect::Reply { ticket, aloud, .. })) => {
                lock(&ledger).told.push((Instant::now(), channel.clone(), aloud.clone()));
                let current = mouths.get(&channel).map(|mouth| mouth.ticket);
                let begins =
                    matches!(aloud, Aloud::Prepare { .. }) || matches!(aloud, Aloud::Say { .. }) && current != Some(ticket);
                if begins {
                    if let Some(before) = mouths.get_mut(&channel).filter(|before| before.is_playing()) {
                        before.pause();
                        before.fault("another reply begins while it plays");
                    }
                    let voice = voice(&channel);
                    lock(&ledger).voices.push((channel.clone(), ticket, voice));
                    mouths.insert(channel.clone(), Mouth::new(channel.clone(), ledger.clone(), voice, ticket));
                } else if current != Some(ticket) {
                    continue;
                }
                let Some(mouth) = mouths.get_mut(&channel) else { continue };
                lock(&ledger).active.insert(channel.clone(), ticket);
                let told = mouth.follow(&aloud);
                if matches!(aloud, Aloud::Play(interruption::Effect::Ended(_))) {
                    mouth.pause();
                    mouths.remove(&channel);
                    lock(&ledger).active.remove(&channel);
                }
                for told in told {
                    tell(&channel, Notice::Reply { ticket, told });
                }
            }
            Some((channel, CallEffect::Restarted { .. })) => {
                lock(&ledger).active.remove(&channel);
                if let Some(mut before) = mouths.remove(&channel) {
                    before.pause();
                }
            }
            Some(_) => {}
            None => {
                for (channel, mouth) in &mut mouths {
                    for told in mouth.tell() {
                        tell(channel, Notice::Reply { ticket: mouth.ticket, told });
                    }
                }
            }
        }
    }
}
