//! What a program writes.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::Notify;

/// Lines that a program has written so far.
#[derive(Clone, Default)]
pub struct Lines {
    written: Arc<Mutex<(Vec<String>, bool)>>,
    more: Arc<Notify>,
}

impl Lines {
    /// Reads them from now on.
    pub fn of(output: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Self::default();
        let reader = lines.clone();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                reader.written.lock().expect("no panic while held").0.push(line);
                reader.more.notify_waiters();
            }
            reader.written.lock().expect("no panic while held").1 = true;
            reader.more.notify_waiters();
        });
        lines
    }

    /// Waits for a line with these words; none if the program ends without one.
    pub async fn wait_for(&self, words: &str) -> Option<String> {
        self.wait_for_many(words, 1).await
    }

    /// Waits until so many lines have these words, at least one; the last of them.
    pub async fn wait_for_many(&self, words: &str, times: usize) -> Option<String> {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            {
                let written = self.written.lock().expect("no panic while held");
                let found = written.0.iter().filter(|line| line.contains(words)).nth(times - 1).cloned();
                if found.is_some() || written.1 {
                    return found;
                }
            }
            more.await;
        }
    }

    /// Everything, once the program has closed its output.
    pub(super) async fn all(&self) -> String {
        self.wait_for("\u{0}").await;
        self.text()
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        self.written.lock().expect("no panic while held").0.join("\n")
    }
}
