//! The voice call of a channel: journals what the conversation hands over, and carries out what it wants done in the call.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::State;
use crate::actors::erasure::deletion::delete_messages;
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{HandOver, WriterMessage};
use crate::domain::conversation::{Aloud, Input, Notice};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::voice::interruption;
use crate::domain::voice::utterance::{self, Effect};
use crate::journal::reader::Reader;
use crate::ports::voice_call::CallEffect;
use crate::telemetry::plain::Plain;

/// How often something is tried that the store must take. The attempts take a minute. After that only a restart tries again.
const MAX_ATTEMPTS: u32 = 6;
/// The pause after the first attempt. Each of the others is twice as long as the one before.
const PAUSE: Duration = Duration::from_secs(2);

impl State {
    /// Has the messages of a hand-over journaled. They come back to the channel as one message.
    pub(super) fn journal_hand_over(&self, messages: Vec<Event>) {
        let channel = self.myself.clone();
        self.send(WriterMessage::HandOver(HandOver {
            channel_key: self.channel_key.clone(),
            at: None,
            handled: self.conversation.handled(),
            messages,
            reply: Reply::new(move |result| {
                if let Err(lost) = result {
                    // A channel that has stopped reads from the record whether they are there.
                    let _ = channel.cast(ChannelMessage::NotHandedOver(lost));
                }
            }),
        }));
    }

    /// Handles the messages of a hand-over. Those that kill the channel are skipped.
    pub(super) fn receive_hand_over(&mut self, batch: Vec<Recorded>, committed: Moment) {
        let Some(first) = batch.first() else { return };
        self.note_received(batch.len());
        // If they kill the channel, its successor folds them one by one, and finds which one does.
        self.in_flight.mark(first.seq);
        self.traces.receive_hand_over(&batch, committed);
        self.step(Input::HandedOver(batch));
        self.in_flight.clear();
    }

    /// Handles what happened in the call and is not on record. Who is not in the call has nothing to be ignored.
    pub(super) fn hear(&mut self, notice: Notice) {
        if let Notice::Call(utterance::Input::OptedOut { user }) = &notice
            && !self.conversation.speakers().contains(user)
        {
            return;
        }
        self.step(Input::Voice(notice));
    }

    /// Ignores everybody in the call who has opted out. The opt-out may be older than this channel, or than their words.
    pub(super) fn ignore_opted_out(&mut self) {
        let (guild, opt_outs) = (&self.channel_key.guild, &self.context.opt_outs);
        let ignored: Vec<_> = self.conversation.speakers().into_iter().filter(|user| opt_outs.holds(guild, user)).collect();
        for user in ignored {
            self.step(Input::Voice(Notice::Call(utterance::Input::OptedOut { user })));
        }
    }

    pub(super) fn carry_out_in_call(&self, effect: Effect) {
        let effect = match effect {
            Effect::Finalize { user } => CallEffect::Finalize { user },
            Effect::CountsAsNoise { user } => CallEffect::CountsAsNoise { user },
            Effect::Left { user } => return self.record_left(&user),
            Effect::Redact { user } => return self.redact_speech(&user),
            // The conversation follows these itself.
            Effect::HandOver(_) | Effect::Quiet { .. } => return,
        };
        self.context.voice_calls.carry_out(&self.channel_key.channel, effect);
    }

    /// Does something for a spoken reply: what makes it heard waits until that is on record.
    pub(super) fn follow_reply(&mut self, ticket: Ticket, aloud: Aloud) {
        let waits = matches!(aloud, Aloud::Start { .. } | Aloud::Play(interruption::Effect::Speak));
        let effect = CallEffect::Reply { ticket, turn: self.traces.turn_of(ticket), aloud };
        if waits {
            self.calls_after_commit.push(effect);
        } else {
            self.context.voice_calls.carry_out(&self.channel_key.channel, effect);
        }
    }

    /// Makes a reply heard, now that this is on record. It may have ended or paused meanwhile; then it is resumed where it paused.
    pub(super) fn play_on_record(&self, effect: CallEffect) {
        let is_wanted = match &effect {
            CallEffect::Reply { ticket, aloud: Aloud::Play(_), .. } => self.conversation.plays_aloud(*ticket),
            CallEffect::Reply { ticket, .. } => self.conversation.spoken_reply() == Some(*ticket),
            CallEffect::Finalize { .. } | CallEffect::CountsAsNoise { .. } | CallEffect::Restarted { .. } => true,
        };
        if is_wanted {
            self.context.voice_calls.carry_out(&self.channel_key.channel, effect);
        }
    }

    /// Puts on record that a person has left whose socket was lost.
    fn record_left(&self, user: &PersonId) {
        let Some(joined) = self.conversation.joined_call_at(user) else { return };
        let (context, channel_key) = (self.context.clone(), self.channel_key.clone());
        let (channel, user, attempts) = (self.myself.clone(), user.clone(), AtomicU32::new(0));
        self.insist("the end of a person's call could not be journaled", move || {
            let (context, channel_key, channel, user) = (context.clone(), channel_key.clone(), channel.clone(), user.clone());
            let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                // It may have been journaled all the same, and the person may be back.
                if !is_first {
                    let (sender, answer) = oneshot::channel();
                    channel.cast(ChannelMessage::Inspect(RpcReplyPort::from(sender))).map_err(|error| error.to_string())?;
                    let look = answer.await.map_err(|error| error.to_string())?;
                    if look.conversation.joined_call_at(&user) != Some(joined) {
                        return Ok(());
                    }
                }
                let event = Reader::new(&*context.store).event(&channel_key, joined).await.map_err(|error| error.to_string())?;
                let Some(Recorded { event: Event::VoiceJoined { from }, .. }) = event else { return Ok(()) };
                // Who was forgotten meanwhile has left.
                if from.id.is_empty() {
                    return Ok(());
                }
                let left = Inbound::new((*context).clone()).accept(&channel_key, Event::VoiceLeft { from }, None).await;
                left.map(drop).map_err(|error| error.to_string())
            }
        });
    }

    /// Deletes what a person said and was not handed over.
    fn redact_speech(&self, user: &PersonId) {
        let segments: BTreeSet<Seq> = self.conversation.buffered_segments_of(user).into_iter().collect();
        if segments.is_empty() {
            return;
        }
        let (context, channel_key) = (self.context.clone(), self.channel_key.clone());
        self.insist(
            "what a person said who wants to be ignored could not be deleted; a restart of the channel tries again",
            move || {
                let (context, channel_key, segments) = (context.clone(), channel_key.clone(), segments.clone());
                async move { delete_messages(&context, &channel_key, &segments).await.map_err(|error| error.to_string()) }
            },
        );
    }

    /// Repeats an attempt in a task of its own until it succeeds. The attempts wait for this channel, so it must not wait for them.
    fn insist<F, T>(&self, failure: &'static str, attempt: F)
    where
        F: Fn() -> T + Send + 'static,
        T: Future<Output = Result<(), String>> + Send,
    {
        let channel = self.channel_key.channel.clone();
        tokio::spawn(async move {
            let mut pause = PAUSE;
            for number in 1..=MAX_ATTEMPTS {
                match attempt().await {
                    Ok(()) => return,
                    Err(error) if number == MAX_ATTEMPTS => {
                        tracing::error!(channel = %Plain(channel.as_str()), error, "{failure}");
                    }
                    Err(_) => tokio::time::sleep(pause).await,
                }
                pause *= 2;
            }
        });
    }
}
