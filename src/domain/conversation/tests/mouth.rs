//! What plays spoken replies in a scene, and checks them independently: one voice at a time, nothing begun twice, and nothing heard that was not
//! played.

use std::collections::BTreeSet;

use super::super::super::voice::interruption;
use super::super::*;

/// The mouth of all companions.
#[derive(Debug, Default)]
pub(super) struct Mouth {
    ticket: Option<Ticket>,
    sentences: Vec<Sentence>,
    /// The number of sentences that were told to the conversation.
    told: usize,
    position: Duration,
    is_playing: bool,
    /// Whether all sentences were said.
    is_all: bool,
    /// Whether the rest of a sentence was dropped.
    has_stalled: bool,
    /// The replies of which a sentence was about to be heard.
    started: BTreeSet<Ticket>,
    /// The replies of which something was heard, as far as it is on record.
    heard: BTreeSet<Ticket>,
}

#[derive(Debug)]
struct Sentence {
    text: Arc<str>,
    sent: Duration,
    is_whole: bool,
}

/// Something that the mouth does.
#[derive(Clone, Copy, Debug)]
pub(super) enum MouthAct {
    FirstAudio,
    /// Sends audio of the sentence that is not whole.
    Send(u32),
    Whole,
    /// Plays on.
    Play(u32),
    Finish,
    Stall,
    Stop,
    ShutDown,
}

impl Mouth {
    pub(super) fn follow(&mut self, ticket: Ticket, aloud: &Aloud) {
        match aloud {
            Aloud::Prepare { .. } => self.check_is_new(ticket),
            Aloud::Say { sentence, text } => {
                if self.ticket != Some(ticket) {
                    self.check_is_new(ticket);
                    assert!(!self.is_playing, "two voices at once");
                    self.is_all = false;
                    (self.ticket, self.told, self.position) = (Some(ticket), 0, Duration::ZERO);
                    self.sentences.clear();
                    self.has_stalled = false;
                }
                assert_eq!(*sentence, self.sentences.len(), "a sentence is missing");
                assert!(!self.is_all, "a sentence is said after the last one");
                self.sentences.push(Sentence { text: text.clone(), sent: Duration::ZERO, is_whole: false });
            }
            Aloud::SaidAll => {
                assert!(!self.is_all, "a reply is said to be whole twice");
                self.is_all = self.ticket == Some(ticket);
            }
            Aloud::Start { .. } => {}
            Aloud::Play(effect) => match effect {
                interruption::Effect::Speak | interruption::Effect::Resume { .. } => {
                    assert!(self.started.contains(&ticket), "a reply is heard before its first sentence is on record");
                    assert!(!self.is_playing, "two voices at once");
                    assert_eq!(self.ticket, Some(ticket), "a reply is heard that nobody said");
                    self.is_playing = true;
                }
                interruption::Effect::Pause => self.is_playing = false,
                interruption::Effect::Ended(_) if self.ticket == Some(ticket) => self.is_playing = false,
                _ => {}
            },
        }
    }

    fn check_is_new(&self, ticket: Ticket) {
        assert!(!self.started.contains(&ticket), "a reply that has begun is said again");
        assert!(!self.heard.contains(&ticket), "a reply that was heard is said again");
    }

    pub(super) fn heard(&mut self, ticket: Ticket) {
        self.heard.insert(ticket);
    }

    pub(super) fn started(&mut self, ticket: Ticket) {
        self.started.insert(ticket);
    }

    /// How far this reply was played, in milliseconds. `None`: it is another one, or a sentence of it was dropped.
    pub(super) fn played_ms(&self, ticket: Ticket) -> Option<u64> {
        (self.ticket == Some(ticket) && !self.has_stalled).then_some(self.position.as_millis() as u64)
    }

    /// The process dies. What had begun and was not heard, as far as is known, may be said again.
    pub(super) fn die(&mut self) {
        self.restart();
        self.started.clear();
    }

    /// It begins anew, and knows nothing any more.
    pub(super) fn restart(&mut self) {
        (self.ticket, self.is_playing, self.is_all) = (None, false, false);
    }

    /// What the mouth tells when it does something now.
    pub(super) fn tell(&mut self, act: MouthAct) -> Vec<(Ticket, interruption::Input)> {
        let Some(ticket) = self.ticket else { return Vec::new() };
        let mut told: Vec<_> = self.sentences[self.told..]
            .iter()
            .map(|sentence| interruption::Input::Sentence { text: sentence.text.clone(), words: Vec::new() })
            .collect();
        self.told = self.sentences.len();
        let open = self.sentences.iter().position(|sentence| !sentence.is_whole);
        match act {
            MouthAct::FirstAudio => told.push(interruption::Input::FirstAudio),
            MouthAct::Send(ms) if self.is_playing => {
                let length = Duration::from_millis(ms.into());
                if let Some(open) = open {
                    self.sentences[open].sent += length;
                    told.push(interruption::Input::Audio { sentence: open, length });
                }
            }
            MouthAct::Whole if self.is_playing => {
                if let Some(open) = open.filter(|open| !self.sentences[*open].sent.is_zero()) {
                    self.sentences[open].is_whole = true;
                    told.push(interruption::Input::Whole { sentence: open });
                }
            }
            MouthAct::Play(ms) => {
                let sent: Duration = self.sentences.iter().map(|sentence| sentence.sent).sum();
                if self.is_playing {
                    self.position = (self.position + Duration::from_millis(ms.into())).min(sent);
                }
                told.push(interruption::Input::Played { position: self.position });
            }
            MouthAct::Finish if self.is_all => {
                // No audio follows.
                self.sentences.iter_mut().for_each(|sentence| sentence.is_whole = true);
                told.push(interruption::Input::Finished);
            }
            MouthAct::Stall => {
                if let Some(open) = open.filter(|_| self.is_playing) {
                    self.sentences[open].is_whole = true;
                }
                self.has_stalled = true;
                told.push(interruption::Input::Stall);
            }
            MouthAct::Stop => told.push(interruption::Input::StopPressed),
            MouthAct::ShutDown => told.push(interruption::Input::ShutDown),
            MouthAct::Send(_) | MouthAct::Whole | MouthAct::Finish => {}
        }
        told.into_iter().map(|told| (ticket, told)).collect()
    }

    /// What was heard, as a statement says, has been played.
    pub(super) fn check_heard(&self, posting: &Posting) {
        let Some(spoken) = posting.spoken.as_ref().filter(|_| self.ticket == Some(posting.ticket)) else { return };
        assert!(!self.position.is_zero(), "{:?} was heard, and nothing was played", posting.text);
        if self.has_stalled {
            return;
        }
        let full: String = self.sentences.iter().map(|sentence| &*sentence.text).collect();
        let written = spoken.rest.as_deref().unwrap_or_default();
        let heard = posting.text.strip_suffix(written.trim()).unwrap_or(&posting.text).trim();
        assert!(full.trim_start().starts_with(heard), "{heard:?} was heard of {full:?}");
        // Each character that was heard lasted, at a pace that is as fast as the words could be said.
        let mut start = Duration::ZERO;
        let mut left = heard.chars().count();
        for sentence in &self.sentences {
            let chars = sentence.text.trim().chars().count();
            let of_it = left.min(chars);
            let played = self.position.saturating_sub(start).min(sentence.sent);
            assert!(of_it == 0 || !played.is_zero(), "{heard:?} was heard, and nothing of {:?} was played", sentence.text);
            let share = of_it as f64 / chars.max(1) as f64;
            let audible = played.as_secs_f64() / sentence.sent.as_secs_f64().max(1e-9);
            assert!(of_it == 0 || share <= audible + 0.001, "{share} of {:?} was heard, and {audible} played", sentence.text);
            left = left.saturating_sub(of_it + 1);
            start += sentence.sent;
        }
    }
}
