//! One connection: carries audio to a service and results back, independently of the service's protocol.

use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{Instant, sleep_until};

use crate::adapters::endpoint::failure::{Broken, Failures};
use crate::adapters::speech::little_endian;
use crate::adapters::web_socket::{NORMAL_CLOSURE, Received, WebSocket};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Recognised, Sound};

/// The time without sent data after which a keep-alive is sent. A service closes the connection after 10 s.
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// Messages to send, and results to return.
#[derive(Default)]
pub(in crate::adapters::speech) struct Output {
    pub send: Vec<Sent>,
    pub results: Vec<Recognised>,
}

/// A message to the service.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::adapters::speech) enum Sent {
    Text(&'static str),
    /// Audio as bytes. Never empty, because an empty message would end the connection.
    Audio(Vec<u8>),
}

impl Output {
    pub fn text(&mut self, text: &'static str) {
        self.send.push(Sent::Text(text));
    }

    pub fn audio(&mut self, samples: &[i16]) {
        if !samples.is_empty() {
            self.send.push(Sent::Audio(little_endian(samples)));
        }
    }
}

/// A protocol, without the socket.
pub(in crate::adapters::speech) trait Protocol: Send {
    fn sound(&mut self, sound: &Sound, now: Instant, out: &mut Output);

    /// # Errors
    /// Returns an error if the connection cannot be used any more.
    fn message(&mut self, text: &str, now: Instant, out: &mut Output) -> Result<(), Broken>;

    /// When [`Self::wake`] is due.
    fn deadline(&self) -> Option<Instant>;

    fn wake(&mut self, now: Instant, out: &mut Output);

    /// Called when nothing was sent for a while.
    fn keep_alive(&mut self, out: &mut Output);

    /// Called when no more audio follows: requests all results.
    fn close(&mut self, out: &mut Output);

    /// Whether all results have arrived.
    fn is_over(&self) -> bool;

    /// Called when all results have arrived.
    fn finish(&mut self, out: &mut Output);

    /// Called when the connection has failed. Returns the words whose audio the caller will not send again.
    fn cut(&mut self, out: &mut Output);
}

/// Runs until `sounds` is closed and all results are returned, or until `results` is closed. After `sounds` is closed, the service has `patience` to
/// return the rest.
///
/// # Errors
/// Returns an error if the connection failed.
pub(in crate::adapters::speech) async fn run(
    mut socket: WebSocket,
    protocol: &mut impl Protocol,
    mut sounds: Receiver<Sound>,
    results: &Sender<Recognised>,
    failures: &Failures,
    patience: Duration,
) -> Result<(), NoAnswer> {
    let mut quiet_since = Instant::now();
    let mut closing_by = None;
    loop {
        let mut out = Output::default();
        let due = [protocol.deadline(), closing_by].into_iter().flatten().fold(quiet_since + KEEP_ALIVE, Instant::min);
        let mut failed = None;
        tokio::select! {
            biased;
            () = results.closed() => return Ok(()),
            () = sleep_until(due) => {
                let now = Instant::now();
                if closing_by.is_some_and(|by| by <= now) {
                    failed = Some(NoAnswer::TimedOut { after: patience });
                }
                protocol.wake(now, &mut out);
                if quiet_since + KEEP_ALIVE <= now {
                    protocol.keep_alive(&mut out);
                }
            }
            sound = sounds.recv(), if closing_by.is_none() && !socket.is_congested() => match sound {
                Some(sound) => protocol.sound(&sound, Instant::now(), &mut out),
                None => {
                    protocol.close(&mut out);
                    closing_by = Some(Instant::now() + patience);
                }
            },
            received = socket.next() => match received {
                Received::Text(text) => {
                    failed = protocol.message(&text, Instant::now(), &mut out).err().map(|broken| failures.in_answer(broken));
                }
                Received::Binary(_) | Received::Drained => {}
                // A regular close after `close` means that all results have arrived.
                Received::Closed { code: Some(NORMAL_CLOSURE), .. } if closing_by.is_some() => {
                    protocol.finish(&mut out);
                    return hand_over(out.results, results).await.map_or(Ok(()), Ok);
                }
                Received::Closed { code, reason, .. } => failed = Some(failures.closed(code, &reason)),
            },
        }
        if failed.is_some() {
            protocol.cut(&mut out);
        }
        let is_over = failed.is_none() && closing_by.is_some() && protocol.is_over();
        if is_over {
            protocol.finish(&mut out);
        }
        for sent in out.send {
            quiet_since = Instant::now();
            match sent {
                Sent::Text(text) => socket.send_text(text.to_owned()),
                Sent::Audio(bytes) => socket.send_binary(bytes),
            }
        }
        if hand_over(out.results, results).await.is_none() {
            return Ok(());
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        if is_over {
            socket.close(NORMAL_CLOSURE);
            return Ok(());
        }
    }
}

/// Sends the results. Returns `None` if `results` is closed.
async fn hand_over(all: Vec<Recognised>, results: &Sender<Recognised>) -> Option<()> {
    for result in all {
        results.send(result).await.ok()?;
    }
    Some(())
}
