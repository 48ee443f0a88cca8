//! A request whose prompt is built only when it is about to be sent: a prompt is long, and a thousand requests may wait in the queue.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::Request;

type BuildPrompt = Box<dyn FnOnce(Request) -> Request + Send>;

/// A request that has no prompt while it waits, or if it is never sent.
pub struct LazyRequest {
    base: Request,
    build_prompt: Mutex<Option<BuildPrompt>>,
    built: OnceLock<Box<Request>>,
}

impl LazyRequest {
    /// A request that is `base` until [`Self::build`] completes it with `build_prompt`.
    pub fn later(base: Request, build_prompt: impl FnOnce(Request) -> Request + Send + 'static) -> Arc<Self> {
        Arc::new(Self { base, build_prompt: Mutex::new(Some(Box::new(build_prompt))), built: OnceLock::new() })
    }

    /// Builds the prompt, on the first call only. If that panics, the request stays without a prompt.
    pub fn build(&self) -> &Request {
        let build_prompt = self.build_prompt.lock().take();
        if let Some(build_prompt) = build_prompt {
            self.built.get_or_init(|| Box::new(build_prompt(self.base.clone())));
        }
        self
    }
}

/// A request whose prompt is complete already.
impl From<Request> for LazyRequest {
    fn from(request: Request) -> Self {
        Self { base: request, build_prompt: Mutex::default(), built: OnceLock::new() }
    }
}

impl Deref for LazyRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.built.get().map_or(&self.base, |request| &**request)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::ports::language_model::{Message, ModelRole};

    #[test]
    fn a_prompt_is_built_once_and_not_before() {
        let lazy_request = LazyRequest::later(request(""), |base| Request { messages: request("How are you?").messages, ..base });
        assert_eq!(lazy_request.user(), "");

        let both = [lazy_request.build().user().into_owned(), lazy_request.build().user().into_owned()];

        assert_eq!(both, ["How are you?", "How are you?"]);
        assert_eq!(lazy_request.user(), "How are you?");
    }

    #[test]
    fn a_request_whose_prompt_panics_stays_without_a_prompt() {
        let lazy_request = LazyRequest::later(request(""), |_| resume_unwind(Box::new("it cannot be built")));

        let panicked = catch_unwind(AssertUnwindSafe(|| lazy_request.build().user().into_owned()));

        assert!(panicked.is_err());
        assert_eq!((&*lazy_request.user(), &*lazy_request.build().user()), ("", ""));
    }

    fn request(user: &str) -> Request {
        let messages = Message::prompt(String::new(), user.to_owned());
        Request { messages, ..Request::new(ModelRole::Side, "home".into(), 50) }
    }
}
