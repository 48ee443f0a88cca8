//! One connection: carries sounds to a service and results back, whatever the service's protocol is.

use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{Instant, sleep_until};

use crate::adapters::endpoint::failure::{Broken, Failures};
use crate::adapters::speech::little_endian;
use crate::adapters::web_socket::{NORMAL_CLOSURE, Received, WebSocket};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::{Recognised, Sound};

/// The pause in what is sent after which the connection is kept alive. A service ends it after 10 s.
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// What a connection sends and returns.
#[derive(Default)]
pub(in crate::adapters::speech) struct Output {
    pub send: Vec<Sent>,
    pub results: Vec<Recognised>,
}

/// A message to the service.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::adapters::speech) enum Sent {
    Text(&'static str),
    /// Audio as bytes. Never empty: that would end the connection.
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
    /// The connection is of no use any more.
    fn message(&mut self, text: &str, now: Instant, out: &mut Output) -> Result<(), Broken>;

    /// When [`Self::wake`] is due.
    fn deadline(&self) -> Option<Instant>;

    fn wake(&mut self, now: Instant, out: &mut Output);

    /// Nothing was sent for a while.
    fn keep_alive(&mut self, out: &mut Output);

    /// No more sounds follow: asks for all results.
    fn close(&mut self, out: &mut Output);

    /// Whether all results are there.
    fn is_over(&self) -> bool;

    /// All results are there.
    fn finish(&mut self, out: &mut Output);

    /// The connection has failed. What the caller cannot have recognised again is returned.
    fn cut(&mut self, out: &mut Output);
}

/// Listens until `sounds` is closed and all results are returned, for which the service has `patience`, or until nobody takes them.
///
/// # Errors
/// The connection failed.
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
                // The end of the connection is the end of what was asked for.
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

/// None: nobody takes them.
async fn hand_over(all: Vec<Recognised>, results: &Sender<Recognised>) -> Option<()> {
    for result in all {
        results.send(result).await.ok()?;
    }
    Some(())
}
