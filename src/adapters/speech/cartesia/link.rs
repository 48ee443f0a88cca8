//! The connection that all sentences share. It is opened on demand, and closed when it is idle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::making::{Made, Making};
use super::wire::{Failed, Message, cancelling};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::service::Service;
use crate::adapters::speech::MAX_MESSAGE_BYTES;
use crate::adapters::web_socket::{NORMAL_CLOSURE, Received, WebSocket};
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_synthesis::{Piece, Sentence};

const PATH: [&str; 2] = ["tts", "websocket"];
/// The version of the API: the newest documented one.
const VERSION: &str = "2026-03-01";
/// An unused connection is closed after this time. The service closes it after 5 minutes.
const IDLE: Duration = Duration::from_secs(60);
/// If a sentence is cancelled without audio after this time, its connection may be lost without notice, and gets no new
/// sentences.
const SILENT: Duration = Duration::from_secs(2);
/// The maximum number of pieces that wait for the reader of one sentence.
const WAITING: usize = 1_024;

/// Opens connections.
pub(super) struct Opener {
    pub service: Service,
    pub timeout: Duration,
}

/// A connection that is open, or being opened.
#[derive(Clone)]
pub(super) struct Link {
    orders: mpsc::UnboundedSender<Order>,
    /// Whether the connection gets no new sentences.
    is_retired: Arc<AtomicBool>,
    /// [`SILENT`], or the timeout of the service if that is shorter.
    silent: Duration,
}

enum Order {
    Say(Arc<str>, String, Context),
    Cancel(Arc<str>),
}

/// A sentence in progress.
struct Context {
    making: Making,
    pieces: mpsc::Sender<Piece>,
    has_begun: bool,
    end: Arc<OnceLock<End>>,
}

/// How the audio of a sentence ended.
pub(super) enum End {
    /// It is complete.
    All,
    /// The service failed, or refused.
    Failed(NoAnswer),
    /// The connection was lost.
    Lost(NoAnswer),
}

/// The audio of a sentence. Dropping it cancels the synthesis.
pub(super) struct Listening {
    link: Link,
    context: Arc<str>,
    pieces: mpsc::Receiver<Piece>,
    end: Arc<OnceLock<End>>,
    asked: Instant,
    has_begun: bool,
}

impl Link {
    /// Opens a connection in the background.
    pub fn open(opener: Arc<Opener>) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let silent = SILENT.min(opener.timeout);
        tokio::spawn(run(opener, taken));
        Self { orders, is_retired: Arc::default(), silent }
    }

    /// Whether the connection accepts sentences.
    pub fn is_open(&self) -> bool {
        !self.orders.is_closed() && !self.is_retired.load(Ordering::Relaxed)
    }

    /// Requests the audio of a sentence. The request must name this context.
    pub fn say(&self, context: Arc<str>, request: String, sentence: &Sentence) -> Listening {
        let (sender, pieces) = mpsc::channel(WAITING);
        let end = Arc::new(OnceLock::new());
        let making = Making::of(&sentence.text, sentence.speed);
        let of = Context { making, pieces: sender, has_begun: false, end: end.clone() };
        // If the connection has ended, the pieces end without a reason.
        let _ = self.orders.send(Order::Say(context.clone(), request, of));
        Listening { link: self.clone(), context, pieces, end, asked: Instant::now(), has_begun: false }
    }
}

impl Listening {
    /// The next piece, or how the audio ended. `Err(None)` means that the connection ended before it handled the request.
    pub async fn next(&mut self) -> Result<Piece, Option<&End>> {
        let piece = self.pieces.recv().await.ok_or_else(|| self.end.get())?;
        self.has_begun = true;
        Ok(piece)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if !self.has_begun && self.end.get().is_none() && self.asked.elapsed() >= self.link.silent {
            self.link.is_retired.store(true, Ordering::Relaxed);
        }
        let _ = self.link.orders.send(Order::Cancel(self.context.clone()));
    }
}

/// Serves a connection until it is idle for too long, no longer referenced, or lost.
async fn run(opener: Arc<Opener>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let query = [("cartesia_version", VERSION)];
    let mut socket = match opener.service.open_socket(&PATH, &query, MAX_MESSAGE_BYTES, opener.timeout).await {
        Ok(socket) => socket,
        Err(error) => {
            orders.close();
            while let Some(order) = orders.recv().await {
                if let Order::Say(.., context) = order {
                    context.end(End::Failed(error.clone()));
                }
            }
            return;
        }
    };
    let mut contexts = Contexts { opener, of: BTreeMap::new() };
    loop {
        let received = tokio::select! {
            order = orders.recv(), if !socket.is_congested() => {
                match order {
                    Some(Order::Say(name, request, context)) => {
                        socket.send_text(request);
                        contexts.of.insert(name, context);
                    }
                    Some(Order::Cancel(name)) => {
                        if contexts.of.remove(&name).is_some() {
                            socket.send_text(cancelling(&name));
                        }
                    }
                    None => return socket.close(NORMAL_CLOSURE),
                }
                continue;
            }
            received = socket.next() => received,
            () = tokio::time::sleep(IDLE), if contexts.of.is_empty() => {
                orders.close();
                return socket.close(NORMAL_CLOSURE);
            }
        };
        match received {
            Received::Text(text) => {
                if let Err(broken) = contexts.process_message(&text, &mut socket) {
                    let error = contexts.opener.service.failures.in_answer(broken);
                    // A sentence that ends here is requested again on another connection.
                    orders.close();
                    return contexts.end_all(|| End::Failed(error.clone()));
                }
            }
            Received::Closed { code, reason, .. } => {
                let error = contexts.opener.service.failures.closed(code, &reason);
                orders.close();
                return contexts.end_all(|| End::Lost(error.clone()));
            }
            // The protocol has no binary messages.
            Received::Binary(_) | Received::Drained => {}
        }
    }
}

/// The sentences in progress, by the names of their contexts.
struct Contexts {
    opener: Arc<Opener>,
    of: BTreeMap<Arc<str>, Context>,
}

impl Contexts {
    /// Processes a message. An error of one sentence does not affect the others.
    fn process_message(&mut self, text: &str, socket: &mut WebSocket) -> Result<(), Broken> {
        let message: Message<'_> =
            serde_json::from_str(text).map_err(|error| Broken::garbled(error.to_string(), text.as_bytes()))?;
        let name = message.context_id.as_deref().unwrap_or_default();
        let Some((name, mut context)) = self.of.remove_entry(name) else {
            // Messages for unknown contexts were sent before the service handled their cancellation.
            message.error().filter(|_| name.is_empty()).into_iter().for_each(|failed| self.fail_new(&failed));
            return Ok(());
        };
        let failures = &self.opener.service.failures;
        let (pieces, end) = match context.making.process_message(&message) {
            Ok(Made::Pieces(pieces)) => (pieces, None),
            Ok(Made::All(pieces)) => (pieces, Some(End::All)),
            Ok(Made::Failed(failed)) => (Vec::new(), Some(End::Failed(self.opener.failure(&failed)))),
            Err(broken) => {
                socket.send_text(cancelling(&name));
                (Vec::new(), Some(End::Failed(failures.in_answer(broken))))
            }
        };
        context.has_begun |= !pieces.is_empty();
        let is_read = pieces.into_iter().all(|piece| context.pieces.try_send(piece).is_ok());
        if !is_read {
            // The other sentences must not wait for a slow reader.
            socket.send_text(cancelling(&name));
            context.end(End::Failed(failures.in_answer(Broken::Unreadable("audio comes faster than it is taken".to_owned()))));
        } else if let Some(end) = end {
            context.end(end);
        } else {
            self.of.insert(name, context);
        }
        Ok(())
    }

    /// Fails all sentences without audio. An error without a context belongs to a sentence that was requested just now.
    fn fail_new(&mut self, failed: &Failed) {
        let error = self.opener.failure(failed);
        let new: BTreeMap<_, _>;
        (self.of, new) = std::mem::take(&mut self.of).into_iter().partition(|(_, context)| context.has_begun);
        new.into_values().for_each(|context| context.end(End::Failed(error.clone())));
    }

    fn end_all(self, end: impl Fn() -> End) {
        self.of.into_values().for_each(|context| context.end(end()));
    }
}

impl Context {
    /// Reports the end to the reader, which reads the remaining pieces first.
    fn end(self, end: End) {
        let _ = self.end.set(end);
    }
}

impl Opener {
    fn failure(&self, failed: &Failed) -> NoAnswer {
        let failures = &self.service.failures;
        let Failed { status, code, message } = failed;
        let message = if message.is_empty() { code } else { message };
        if code.contains("voice") || matches!(status, Some(400 | 404)) && message.to_lowercase().contains("voice") {
            return failures.unknown_voice(message);
        }
        let status = match &**code {
            "model_not_found" => Some(404),
            _ => *status,
        };
        failures.in_answer(Broken::failed(status, message.clone()))
    }
}
