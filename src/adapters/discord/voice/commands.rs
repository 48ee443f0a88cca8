//! What the connection was told to do and has not done yet. What waits is bounded, and nothing but audio is ever refused.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::server::Server;
use super::speaking::{self, Frame};

/// The most frames that wait to be sent: 30 s.
pub const MOST_WAITING: usize = speaking::MOST_WAITING;

/// Something to do.
pub enum Command {
    /// Say these frames of a reply after what waits.
    Play(u64, Vec<Frame>),
    /// Be quieter, or not any more.
    Duck(bool),
    /// Drop what waits.
    Flush,
    /// Go on at another server.
    Move(Server),
    Leave,
}

/// More frames than there is room for. They come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} frames are more than there is room for", .0.len())]
pub struct Full(pub Vec<Frame>);

#[derive(Default)]
pub struct Commands {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    commands: VecDeque<Command>,
    /// The frames among them.
    frames: usize,
    /// The frames that the connection has.
    frames_taken: usize,
}

impl Commands {
    /// Adds frames of a reply.
    ///
    /// # Errors
    /// Too many wait.
    pub fn play(&self, reply: u64, frames: Vec<Frame>) -> Result<(), Full> {
        let mut waiting = self.waiting.lock();
        if waiting.frames + waiting.frames_taken + frames.len() > MOST_WAITING {
            return Err(Full(frames));
        }
        if !frames.is_empty() {
            waiting.frames += frames.len();
            waiting.commands.push_back(Command::Play(reply, frames));
            drop(waiting);
            self.added.notify_one();
        }
        Ok(())
    }

    /// Adds anything else. It replaces what it makes superfluous.
    pub fn add(&self, command: Command) {
        let mut waiting = self.waiting.lock();
        match &command {
            Command::Play(reply, frames) => {
                debug_assert!(false, "{} frames of reply {reply} did not ask for room", frames.len());
                return;
            }
            Command::Duck(_) => waiting.commands.retain(|command| !matches!(command, Command::Duck(_))),
            Command::Flush => {
                waiting.commands.retain(|command| !matches!(command, Command::Flush | Command::Play(..)));
                waiting.frames = 0;
            }
            Command::Move(_) => waiting.commands.retain(|command| !matches!(command, Command::Move(_))),
            Command::Leave => waiting.commands.retain(|command| !matches!(command, Command::Leave)),
        }
        waiting.commands.push_back(command);
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes all commands as soon as there are some.
    pub async fn take(&self) -> VecDeque<Command> {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.commands.is_empty() {
                    waiting.frames_taken += std::mem::take(&mut waiting.frames);
                    return std::mem::take(&mut waiting.commands);
                }
            }
            self.added.notified().await;
        }
    }

    /// The connection has this many frames now.
    pub fn set_taken(&self, frames: usize) {
        self.waiting.lock().frames_taken = frames;
    }

    /// The frames that wait.
    pub fn frames(&self) -> usize {
        let waiting = self.waiting.lock();
        waiting.frames + waiting.frames_taken
    }
}
