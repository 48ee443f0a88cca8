//! What is asked, put into words when its turn comes: a prompt is long, and a thousand of them may wait.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Request;

type Words = Box<dyn FnOnce(Request) -> Request + Send>;

/// A question: without its words as long as it waits, or if it is never asked.
pub struct Wording {
    unworded: Request,
    words: Mutex<Option<Words>>,
    worded: OnceLock<Box<Request>>,
}

impl Wording {
    /// What gets its words when its turn comes; until then it is this, which has none.
    pub fn later(unworded: Request, words: impl FnOnce(Request) -> Request + Send + 'static) -> Arc<Self> {
        Arc::new(Self { unworded, words: Mutex::new(Some(Box::new(words))), worded: OnceLock::new() })
    }

    /// Its turn has come: it has its words from now on. One that panics over them stays without.
    pub fn in_words(&self) -> &Request {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(words) = words {
            self.worded.get_or_init(|| Box::new(words(self.unworded.clone())));
        }
        self
    }
}

/// What has its words already.
impl From<Request> for Wording {
    fn from(request: Request) -> Self {
        Self { unworded: request, words: Mutex::default(), worded: OnceLock::new() }
    }
}

impl Deref for Wording {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.worded.get().map_or(&self.unworded, |request| &**request)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::ports::language_model::{Message, ModelRole};

    #[test]
    fn a_question_is_put_into_words_once_when_its_turn_comes() {
        let wording = Wording::later(request(""), |unworded| Request { messages: request("How are you?").messages, ..unworded });
        assert_eq!(wording.user(), "");

        let twice = [wording.in_words().user().into_owned(), wording.in_words().user().into_owned()];

        assert_eq!(twice, ["How are you?", "How are you?"]);
        assert_eq!(wording.user(), "How are you?");
    }

    #[test]
    fn a_question_whose_words_panic_is_one_without_words() {
        let wording = Wording::later(request(""), |_| resume_unwind(Box::new("it cannot be worded")));

        let panicked = catch_unwind(AssertUnwindSafe(|| wording.in_words().user().into_owned()));

        assert!(panicked.is_err());
        assert_eq!((&*wording.user(), &*wording.in_words().user()), ("", ""));
    }

    fn request(user: &str) -> Request {
        let messages = Message::prompt(String::new(), user.to_owned());
        Request { messages, ..Request::new(ModelRole::Side, "home".into(), 50) }
    }
}
