//! What is asked, put into words when its turn comes: a prompt is long, and a thousand of them may wait.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Request;

type Words = Box<dyn FnOnce(Request) -> Request + Send>;

/// A question: without its words as long as it waits, or if it is never asked.
pub struct LazyRequest {
    without_words: Request,
    words: Mutex<Option<Words>>,
    worded: OnceLock<Box<Request>>,
}

impl LazyRequest {
    /// What gets its words when its turn comes; until then it is this, which has none.
    pub fn later(without_words: Request, words: impl FnOnce(Request) -> Request + Send + 'static) -> Arc<Self> {
        Arc::new(Self { without_words, words: Mutex::new(Some(Box::new(words))), worded: OnceLock::new() })
    }

    /// Its turn has come: it has its words from now on. One that panics over them stays without.
    pub fn in_words(&self) -> &Request {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(words) = words {
            self.worded.get_or_init(|| Box::new(words(self.without_words.clone())));
        }
        self
    }
}

/// What has its words already.
impl From<Request> for LazyRequest {
    fn from(request: Request) -> Self {
        Self { without_words: request, words: Mutex::default(), worded: OnceLock::new() }
    }
}

impl Deref for LazyRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.worded.get().map_or(&self.without_words, |request| &**request)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::ports::language_model::{Message, ModelRole};

    #[test]
    fn a_question_is_put_into_words_once_when_its_turn_comes() {
        let lazy_request = LazyRequest::later(request(""), |without_words| Request {
            messages: request("How are you?").messages,
            ..without_words
        });
        assert_eq!(lazy_request.user(), "");

        let twice = [lazy_request.in_words().user().into_owned(), lazy_request.in_words().user().into_owned()];

        assert_eq!(twice, ["How are you?", "How are you?"]);
        assert_eq!(lazy_request.user(), "How are you?");
    }

    #[test]
    fn a_question_whose_words_panic_is_one_without_words() {
        let lazy_request = LazyRequest::later(request(""), |_| resume_unwind(Box::new("it cannot be worded")));

        let panicked = catch_unwind(AssertUnwindSafe(|| lazy_request.in_words().user().into_owned()));

        assert!(panicked.is_err());
        assert_eq!((&*lazy_request.user(), &*lazy_request.in_words().user()), ("", ""));
    }

    fn request(user: &str) -> Request {
        let messages = Message::prompt(String::new(), user.to_owned());
        Request { messages, ..Request::new(ModelRole::Side, "home".into(), 50) }
    }
}
