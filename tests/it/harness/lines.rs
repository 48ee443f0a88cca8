//! Collects the output of a program.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::Notify;

/// The lines that a program has written so far.
#[derive(Clone, Default)]
pub struct Lines {
    written: Arc<Mutex<(Vec<String>, bool)>>,
    more: Arc<Notify>,
}

impl Lines {
    /// Reads an output in the background.
    pub fn of(output: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Self::default();
        let reader = lines.clone();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                reader.written.lock().0.push(line);
                reader.more.notify_waiters();
            }
            reader.written.lock().1 = true;
            reader.more.notify_waiters();
        });
        lines
    }

    /// Waits for a line with this text. `None` if the program ends without one.
    pub async fn wait_for(&self, text: &str) -> Option<String> {
        self.wait_for_many(text, 1).await
    }

    /// Waits until `times` lines (at least one) have this text, and returns the last of them. `None` if the program ends before.
    pub async fn wait_for_many(&self, text: &str, times: usize) -> Option<String> {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            {
                let written = self.written.lock();
                let found = written.0.iter().filter(|line| line.contains(text)).nth(times - 1).cloned();
                if found.is_some() || written.1 {
                    return found;
                }
            }
            more.await;
        }
    }

    /// Waits until the program has closed its output, and returns everything.
    pub(super) async fn all(&self) -> String {
        self.wait_for("\u{0}").await;
        self.text()
    }

    pub fn text(&self) -> String {
        self.written.lock().0.join("\n")
    }
}
