//! The state of a voice call: participants, microphones, recognition streams, received speech, and the companions' replies.
//!
//! [`CallState::handle`] processes an input and returns effects. Times are durations since the call began.

mod faults;
mod input;
pub mod playback;
mod reply;
mod speech_buffer;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use faults::Faults;
pub use input::{Aloud, Audience, CallEffect, Effect, Gone, Input, Notice, World};
pub use speech_buffer::{HEARD_RATE, Sound, SpeechBuffer};
pub use view::{End, Person, PersonAction, Trouble, View};

use super::id::PersonId;
use super::message::Author;
use super::voice::echo::PlayedWords;
use super::voice::interruption;
use super::voice::said::Said;
use super::voice::speech::{HOP, Pulse};
use super::voice::utterance;
use reply::{Replying, number};

/// How long after the last voice a person's speech is still recognised.
const LINGERS_FOR: Duration = Duration::from_secs(2);
/// How long a person whose connection was lost stays in the call.
pub const KEPT_FOR: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct CallState {
    people: BTreeMap<PersonId, Participant>,
    lines: BTreeMap<u64, Connected>,
    /// The connection that plays to all participants, and whether it is silenced ([`PersonAction::Silenced`]).
    player: Option<(u64, bool)>,
    next_line: u64,
    streams: BTreeSet<PersonId>,
    replying: Replying,
    played: PlayedWords,
    /// Whether the newest sentence with a known result could not be spoken.
    voices_fail: bool,
    /// The newest onset of any person. The delay of ducking is measured from it.
    onset: Option<Duration>,
    /// The newest offset of any person, until a reply answers it.
    offset: Option<Duration>,
    /// When the time limit `voice.max_call_secs` began to run.
    limited_since: Duration,
}

#[derive(Debug, Default)]
struct Participant {
    author: Option<Author>,
    /// A number that is unique in the call. Ids of segments contain it instead of the person's name.
    number: u64,
    buffer: SpeechBuffer,
    /// The connection that has the microphone.
    microphone: Option<u64>,
    is_muted: bool,
    is_ignored: bool,
    talks: bool,
    /// Whether a typed text is being said.
    says: bool,
    /// When the person last began to talk, and when the person last stopped.
    onset: Option<Duration>,
    offset: Option<Duration>,
    /// When the last connection ended, and why. `None` while there is a connection.
    gone: Option<(Duration, Gone)>,
}

#[derive(Debug)]
struct Connected {
    user: PersonId,
    is_greeted: bool,
}

impl Participant {
    fn has_left(&self) -> bool {
        self.gone.is_some_and(|(_, gone)| gone == Gone::Left)
    }

    fn view(&self, user: &PersonId) -> Person {
        Person {
            user: user.clone(),
            is_muted: self.is_muted,
            only_listens: self.microphone.is_none(),
            is_ignored: self.is_ignored,
            talks: self.talks,
        }
    }

    /// The priority of the person's recognition stream: whether it is needed, and then the onset. It is needed while the person talks, and after that
    /// until all words have arrived, for at most [`LINGERS_FOR`]. The person with the larger value gets a stream.
    fn need_of_stream(&self, now: Duration) -> (bool, Option<Duration>) {
        let has_just_talked = self.offset.is_some_and(|offset| now.saturating_sub(offset) < LINGERS_FOR);
        (self.talks || has_just_talked && self.buffer.awaits_words(), self.onset)
    }
}

impl CallState {
    /// Adds the connection that plays to all participants, in place of the previous one. Returns its number.
    pub fn attach(&mut self) -> u64 {
        let line = self.new_line();
        self.player = Some((line, false));
        line
    }

    fn new_line(&mut self) -> u64 {
        self.next_line += 1;
        self.next_line
    }

    /// Adds a connection, and returns its number. A connection with a microphone takes it from the person's previous connection, whose number is also
    /// returned. Returns `None` for a new person if the call already has `most` people.
    pub fn enter(&mut self, author: Author, has_microphone: bool, most: usize) -> Option<(u64, Option<u64>)> {
        let user = PersonId::from(&*author.id);
        if self.person(&user).is_none() && self.people().count() >= most {
            return None;
        }
        let line = self.new_line();
        let new = || Participant { number: line, ..Participant::default() };
        let participant = self.people.entry(user.clone()).or_insert_with(new);
        participant.author = Some(author);
        if participant.gone.take().is_some_and(|(_, gone)| gone == Gone::Left) {
            (participant.is_muted, participant.is_ignored) = (false, false);
        }
        let mut moved = None;
        if has_microphone {
            participant.is_muted = false;
            moved = participant.microphone.replace(line).filter(|before| self.lines.remove(before).is_some());
        }
        self.lines.insert(line, Connected { user, is_greeted: false });
        Some((line, moved))
    }

    /// The people in the call, by id.
    pub fn people(&self) -> impl Iterator<Item = Person> {
        self.people.iter().filter(|(_, participant)| !participant.has_left()).map(|(user, participant)| participant.view(user))
    }

    pub fn person(&self, user: &PersonId) -> Option<Person> {
        self.people.get(user).filter(|participant| !participant.has_left()).map(|participant| participant.view(user))
    }

    /// The number of people whose speech is processed. It includes people who have just left.
    pub fn count(&self) -> usize {
        self.people.len()
    }

    pub fn clear(&mut self) -> Vec<PersonId> {
        (self.player, self.lines) = (None, BTreeMap::new());
        std::mem::take(&mut self.people).into_keys().collect()
    }

    pub fn is_connected(&self, user: &PersonId) -> bool {
        self.people.get(user).is_some_and(|participant| participant.gone.is_none())
    }

    pub fn author(&self, user: &PersonId) -> Option<Author> {
        self.people.get(user)?.author.clone()
    }

    pub fn number(&self, user: &PersonId) -> u64 {
        self.people.get(user).map_or(u64::MAX, |participant| participant.number)
    }

    /// Whether the person's speech is not processed now, and whether the person opted out in this call.
    pub fn deafness(&self, user: &PersonId) -> (bool, bool) {
        self.people.get(user).map_or((true, false), |participant| (participant.is_muted, participant.is_ignored))
    }

    /// The received speech of a person, even if the person has just left.
    pub fn buffer(&mut self, user: &PersonId) -> Option<&mut SpeechBuffer> {
        self.people.get_mut(user).map(|participant| &mut participant.buffer)
    }

    /// The person at a connection, and the person's received speech. `None` if the connection does not have the microphone.
    pub fn microphone(&mut self, line: u64) -> Option<(PersonId, &mut SpeechBuffer)> {
        let user = self.lines.get(&line)?.user.clone();
        let participant = self.people.get_mut(&user).filter(|participant| participant.microphone == Some(line))?;
        Some((user, &mut participant.buffer))
    }

    pub fn audience(&self, audience: &Audience) -> Vec<u64> {
        let greeted = self.lines.iter().filter(|(_, connected)| connected.is_greeted);
        let speaker = self.player.map(|(line, _)| line);
        match audience {
            Audience::All => greeted.map(|(line, _)| *line).chain(speaker).collect(),
            Audience::Others(user) => greeted.filter(|(_, other)| other.user != *user).map(|(line, _)| *line).collect(),
            Audience::Person(user) => {
                greeted.filter(|(_, other)| other.user == *user).map(|(line, _)| *line).chain(speaker).collect()
            }
            Audience::Lines(lines) => lines.clone(),
        }
    }

    /// Opens a recognition stream for a talker. If `most` streams are open, the one with the lowest need is closed, and its person is returned.
    /// Returns `None` if all open streams have a higher need.
    pub fn open_stream(&mut self, user: &PersonId, most: usize, now: Duration) -> Option<Option<PersonId>> {
        let mut displaced = None;
        if self.streams.len() >= most && !self.streams.contains(user) {
            let (needed_least, other) = self.streams.iter().map(|other| (self.need_of_stream(other, now), other)).min()?;
            if needed_least >= (true, self.need_of_stream(user, now).1) {
                return None;
            }
            displaced = Some(other.clone());
        }
        if let Some(other) = &displaced {
            self.streams.remove(other);
        }
        self.streams.insert(user.clone());
        Some(displaced)
    }

    pub fn close_stream(&mut self, user: &PersonId) {
        self.streams.remove(user);
    }

    /// Whether a person talks or has outstanding words, and when the person began to talk.
    pub fn need_of_stream(&self, user: &PersonId, now: Duration) -> (bool, Option<Duration>) {
        self.people.get(user).map_or((false, None), |participant| participant.need_of_stream(now))
    }

    /// Whether the newest sentence could not be spoken.
    pub const fn voices_fail(&self) -> bool {
        self.voices_fail
    }

    pub const fn played(&self) -> &PlayedWords {
        &self.played
    }

    pub fn handle(&mut self, input: Input, world: &World<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let out = &mut effects;
        match input {
            Input::Started => self.start(world, out),
            Input::Entered { user } => self.greet(&user, world, out),
            Input::Parted { line, gone } => self.part(line, gone, None, world, out),
            Input::Acted { line, action } => self.act(line, action, world, out),
            Input::Pulse { user, pulse } => self.pulse(&user, pulse, world, out),
            Input::SaidAll { user } => self.people.get_mut(&user).into_iter().for_each(|participant| participant.says = false),
            Input::OptOutChanged { user } => self.opt_out_changed(&user, world, out),
            Input::Away { user } => self.away(&user, world, out),
            Input::Limit { limit } => self.limit(limit, world, out),
            Input::Conversation(effect) => self.carry_out(effect, world, out),
            Input::Audio { reply, sentence, piece } => self.add_audio(reply, sentence, piece, world, out),
            Input::AudioFailed { reply, sentence } => self.fail_audio(reply, sentence, world, out),
            Input::Tick => self.tick(world, out),
        }
        effects
    }

    fn start(&mut self, world: &World<'_>, out: &mut Vec<Effect>) {
        self.replying.restart(world.at);
        self.people.values_mut().for_each(|participant| participant.says = false);
        for user in self.people.keys().cloned().collect::<Vec<_>>() {
            if self.is_connected(&user) {
                self.greet(&user, world, out);
            } else {
                out.push(Effect::Hear(user.clone()));
                self.report_opt_out(&user, world, out);
                self.parted(&user, true, out);
            }
        }
        out.push(Effect::Record(None));
    }

    /// Greets the new connections of a person with the people in the call and the reply in progress, and shows the person to the others. A person
    /// whose connection was lost is back. Does nothing if the person's connections have all ended by now.
    fn greet(&mut self, user: &PersonId, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(person) = self.person(user).filter(|_| self.is_connected(user)) else { return };
        out.push(Effect::Hear(user.clone()));
        let entered = View::Entered { you: user.clone(), people: self.people().collect() };
        let going_on = self.replying.going_on();
        let new = self.lines.iter_mut().filter(|(_, connected)| connected.user == *user && !connected.is_greeted);
        let mut is_new = false;
        for (line, connected) in new {
            (connected.is_greeted, is_new) = (true, true);
            let views = std::iter::once(&entered).chain(&going_on).cloned();
            out.extend(views.map(|view| Effect::Show(Audience::Lines(vec![*line]), view)));
        }
        if is_new {
            out.push(Effect::Show(Audience::Others(user.clone()), View::Joined(person)));
        }
        out.push(notice(utterance::Input::Joined { user: user.clone() }));
        self.report_opt_out(user, world, out);
        out.push(Effect::Greet(user.clone()));
    }

    /// Removes a connection. It may have been removed before.
    fn part(&mut self, line: u64, gone: Gone, end: Option<End>, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(Connected { user, .. }) = self.lines.remove(&line) else {
            let speaker = self.player.take_if(|(speaker, _)| *speaker == line);
            return out.extend(speaker.map(|(line, _)| Effect::Disconnect(line, None)));
        };
        let is_last = !self.lines.values().any(|other| other.user == user);
        if let Some(participant) = self.people.get_mut(&user) {
            let had_microphone = participant.microphone.take_if(|microphone| *microphone == line).is_some();
            if is_last {
                participant.gone = Some((world.now, gone));
            }
            self.parted(&user, had_microphone, out);
        }
        out.push(Effect::Disconnect(line, end));
    }

    /// Handles the end of a person's connection: ends the speech if the connection had the microphone, and shows the person's new state to the
    /// others.
    fn parted(&self, user: &PersonId, had_microphone: bool, out: &mut Vec<Effect>) {
        if had_microphone {
            out.extend([Effect::StopSpeech(user.clone()), Effect::Finalize(user.clone())]);
            out.push(notice(utterance::Input::Muted { user: user.clone() }));
        }
        let gone = self.people.get(user).and_then(|participant| participant.gone).map(|(_, gone)| gone);
        if gone == Some(Gone::Lost) {
            out.push(notice(utterance::Input::SocketLost { user: user.clone() }));
            out.push(away_after(KEPT_FOR, user));
        }
        out.push(show(self.person(user).map_or_else(|| View::Left(user.clone()), View::Changed)));
        if gone == Some(Gone::Left) {
            out.extend([Effect::Record(Some(user.clone())), away_after(LINGERS_FOR, user)]);
        }
    }

    fn act(&mut self, line: u64, action: PersonAction, world: &World<'_>, out: &mut Vec<Effect>) {
        if let Some((_, is_silenced)) = self.player.as_mut().filter(|(speaker, _)| *speaker == line)
            && let PersonAction::Silenced(silenced) = action
        {
            *is_silenced = silenced;
            return out.push(Effect::Notice(Notice::Silenced(silenced)));
        }
        if let PersonAction::Played { reply, position } = action {
            return self.played_at(line, reply, position, world, out);
        }
        let Some(user) = self.lines.get(&line).map(|connected| connected.user.clone()) else { return };
        let Some(participant) = self.people.get_mut(&user) else { return };
        let before = participant.view(&user);
        match action {
            PersonAction::Muted(is_muted) if participant.microphone == Some(line) && participant.is_muted != is_muted => {
                participant.is_muted = is_muted;
                out.push(show(View::Changed(Person { is_muted, ..before })));
                if is_muted {
                    out.extend([Effect::StopSpeech(user.clone()), Effect::Finalize(user.clone())]);
                    out.push(notice(utterance::Input::Muted { user }));
                }
            }
            PersonAction::Ignored(is_ignored) if participant.is_ignored != is_ignored => {
                participant.is_ignored = is_ignored;
                out.push(show(View::Changed(Person { is_ignored, ..before })));
                self.opt_out_changed(&user, world, out);
            }
            PersonAction::Stop { reply } => {
                let ticket = self.replying.ticket().filter(|ticket| number(*ticket) == reply);
                let stop = |ticket| Effect::Notice(Notice::Reply { ticket, told: interruption::Input::StopPressed });
                out.extend(ticket.map(stop));
            }
            PersonAction::Say(text) if !participant.is_ignored && !(world.is_opted_out)(&user) => {
                let trouble = |trouble| Effect::Show(Audience::Person(user.clone()), View::Trouble(trouble));
                out.push(match Said::new(&text) {
                    Ok(_) if participant.says => trouble(Trouble::SaysAlready),
                    Ok(said) => {
                        participant.says = true;
                        Effect::Say(user, said)
                    }
                    Err(_) => trouble(Trouble::SaysTooMuch),
                });
            }
            PersonAction::Leave => self.part(line, Gone::Left, Some(End::Left), world, out),
            PersonAction::Muted(_) | PersonAction::Ignored(_) | PersonAction::Say(_) => {}
            PersonAction::Silenced(_) | PersonAction::Played { .. } => {}
        }
    }

    fn pulse(&mut self, user: &PersonId, pulse: Pulse, world: &World<'_>, out: &mut Vec<Effect>) {
        let voiced = |from, to| Effect::Notice(Notice::Voiced { user: user.clone(), from, to });
        match pulse {
            Pulse::Started { started, until } => {
                self.onset = Some(world.now);
                if let Some(participant) = self.people.get_mut(user) {
                    (participant.talks, participant.onset) = (true, Some(world.now));
                }
                out.push(show(View::Talking(user.clone(), true)));
                out.extend([notice(utterance::Input::Started { user: user.clone(), started }), voiced(started, until)]);
            }
            // Only a reply needs every voiced hop.
            Pulse::Voiced { from, to } => out.extend(self.replying.ticket().map(|_| voiced(from, to))),
            Pulse::Cut(stretch) => out.push(voiced(stretch.ended, stretch.ended + HOP)),
            Pulse::Ended(stretch) => {
                self.offset = Some(world.now);
                if let Some(participant) = self.people.get_mut(user) {
                    (participant.talks, participant.offset) = (false, Some(world.now));
                }
                out.push(show(View::Talking(user.clone(), false)));
                out.push(notice(utterance::Input::Ended { user: user.clone(), ended: stretch.ended }));
            }
        }
    }

    /// Handles a changed opt-out. For a person who has opted out, speech that is not journaled is deleted at once.
    fn opt_out_changed(&mut self, user: &PersonId, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(participant) = self.people.get_mut(user) else { return };
        if participant.is_ignored || (world.is_opted_out)(user) {
            participant.says = false;
            participant.buffer.forget();
            let user = || user.clone();
            out.extend([Effect::StopSaying(user()), Effect::StopSpeech(user()), Effect::ForgetWords(user())]);
        }
        self.report_opt_out(user, world, out);
    }

    /// Reports to the channel whether the person has opted out. The opt-out of a single call is stored only here.
    fn report_opt_out(&self, user: &PersonId, world: &World<'_>, out: &mut Vec<Effect>) {
        let (is_ignored, user) = (self.deafness(user).1 || (world.is_opted_out)(user), user.clone());
        out.push(notice(match is_ignored {
            true => utterance::Input::OptedOut { user },
            false => utterance::Input::OptedIn { user },
        }));
    }

    /// Removes a person who has been without a connection for long enough. A person whose connection was lost for too long has left; the channel
    /// journals that by itself.
    fn away(&mut self, user: &PersonId, world: &World<'_>, out: &mut Vec<Effect>) {
        let Some(participant) = self.people.get_mut(user) else { return };
        let Some((since, gone)) = participant.gone.map(|(at, gone)| (world.now.saturating_sub(at), gone)) else { return };
        if since < if gone == Gone::Lost { KEPT_FOR } else { LINGERS_FOR } {
            return;
        }
        if gone == Gone::Lost {
            participant.gone = Some((world.now, Gone::Left));
            out.extend([Effect::ForgetRecord(user.clone()), show(View::Left(user.clone()))]);
        }
        // The store may not have accepted the last words yet.
        if participant.buffer.journaling > 0 {
            return out.push(away_after(LINGERS_FOR, user));
        }
        self.people.remove(user);
        out.extend([Effect::StopSaying(user.clone()), Effect::Remove(user.clone())]);
    }

    /// Ends the participation of all people once the time limit has passed, and schedules the next check. The limit then starts again.
    fn limit(&mut self, limit: Duration, world: &World<'_>, out: &mut Vec<Effect>) {
        if world.now.saturating_sub(self.limited_since) >= limit {
            // The removed people see the message, too.
            let everybody = Audience::Lines(self.audience(&Audience::All));
            out.push(Effect::Show(everybody, View::Trouble(Trouble::CallTooLong)));
            for line in self.lines.keys().copied().collect::<Vec<_>>() {
                self.part(line, Gone::Left, Some(End::Ended), world, out);
            }
            out.extend(self.player.map(|(line, _)| Effect::Disconnect(line, Some(End::Ended))));
            self.limited_since = world.now;
        }
        out.push(Effect::After((self.limited_since + limit).saturating_sub(world.now), Input::Limit { limit }));
    }
}

fn away_after(after: Duration, user: &PersonId) -> Effect {
    Effect::After(after, Input::Away { user: user.clone() })
}

const fn show(view: View) -> Effect {
    Effect::Show(Audience::All, view)
}

const fn notice(input: utterance::Input) -> Effect {
    Effect::Notice(Notice::Call(input))
}
