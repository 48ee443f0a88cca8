//! A request whose prompt is built just before it is sent, and again for each retry. So deleted text is not sent, and edited text is sent in its
//! current form.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::{Answer, NoAnswer, Request};
use crate::domain::filter::{Finding, Search};

type BuildPrompt = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Option<Request>> + Send>> + Send + Sync>;

/// A request without a prompt while it is queued, or if it is never sent.
pub struct LazyRequest {
    base: Arc<Request>,
    build_prompt: Option<BuildPrompt>,
    newest: Mutex<Option<Arc<Request>>>,
    /// How often a model found the prompt too long.
    too_long: AtomicU32,
    /// The search for the message that a filter refuses.
    search: Option<Arc<Mutex<Search>>>,
}

/// How often a prompt that is too long is shortened and sent again.
const MOST_SHORTENED: u32 = 3;

impl LazyRequest {
    /// A request that is queued as `base`, which has no prompt. `build_prompt` completes it from the current data. It returns `None` if the answer
    /// is not needed any more, or if the data for the prompt is not available at the moment.
    pub fn later<F>(base: Request, build_prompt: impl Fn() -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Option<Request>> + Send + 'static,
    {
        Self::searching(base, None, build_prompt)
    }

    /// Like [`Self::later`], with a search for the message that a filter refuses. The prompts are built according to the search.
    pub fn searching<F>(
        base: Request,
        search: Option<Arc<Mutex<Search>>>,
        build_prompt: impl Fn() -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Option<Request>> + Send + 'static,
    {
        let build_prompt: BuildPrompt = Box::new(move || Box::pin(build_prompt()));
        let (newest, too_long) = (Mutex::default(), AtomicU32::default());
        Arc::new(Self { base: base.into(), build_prompt: Some(build_prompt), newest, too_long, search })
    }

    /// The search according to which the prompts are built.
    pub const fn search(&self) -> Option<&Arc<Mutex<Search>>> {
        self.search.as_ref()
    }

    /// The result of the search, after the last answer or refusal.
    pub fn finding(&self, result: &Result<Answer, NoAnswer>) -> Option<Finding> {
        let is_answered = match result {
            Ok(_) => true,
            Err(NoAnswer::Filtered { .. }) => false,
            Err(_) => return None,
        };
        self.search.as_ref()?.lock().finding(is_answered)
    }

    /// The request without its prompt.
    pub fn base(&self) -> &Request {
        &self.base
    }

    /// Builds the prompt.
    pub async fn build(&self) -> Option<Arc<Request>> {
        let Some(build_prompt) = &self.build_prompt else { return Some(self.base.clone()) };
        let request = Arc::new(build_prompt().await?);
        *self.newest.lock() = Some(request.clone());
        Some(request)
    }

    /// Whether the next prompt will differ after this failure. It is shorter once the model has reported its limit, or lacks the messages that a
    /// filter may refuse.
    pub fn changes_after(&self, failure: &NoAnswer) -> bool {
        match failure {
            NoAnswer::TooLong { .. } if self.build_prompt.is_some() => {
                self.too_long.fetch_add(1, Ordering::Relaxed) < MOST_SHORTENED
            }
            NoAnswer::Filtered { .. } => self.search.as_ref().is_some_and(|search| search.lock().refused()),
            _ => false,
        }
    }

    /// The request with the prompt that was built last, or without a prompt if none was built.
    pub fn newest(&self) -> Arc<Request> {
        self.newest.lock().as_ref().unwrap_or(&self.base).clone()
    }
}

/// A request with a complete prompt, for prompts without data that can be deleted.
impl From<Request> for LazyRequest {
    fn from(request: Request) -> Self {
        Self { base: request.into(), build_prompt: None, newest: Mutex::default(), too_long: AtomicU32::default(), search: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language_model::{Message, ModelRole};

    #[tokio::test]
    async fn a_prompt_is_built_anew_each_time_and_not_before() {
        let said = Arc::new(Mutex::new("How are you?"));
        let now_said = said.clone();
        let lazy_request = LazyRequest::later(request(""), move || {
            let now_said = *now_said.lock();
            async move { Some(request(now_said)) }
        });
        assert_eq!(lazy_request.newest().user(), "");

        let first = lazy_request.build().await.map(|request| request.user().into_owned());
        *said.lock() = "Who are you?";
        let second = lazy_request.build().await.map(|request| request.user().into_owned());

        assert_eq!((first.as_deref(), second.as_deref()), (Some("How are you?"), Some("Who are you?")));
        assert_eq!(lazy_request.newest().user(), "Who are you?");
    }

    #[tokio::test]
    async fn a_request_that_nobody_needs_any_more_has_no_prompt() {
        let lazy_request = LazyRequest::later(request(""), async || None);

        assert!(lazy_request.build().await.is_none());
        assert_eq!(lazy_request.newest().user(), "");
    }

    fn request(user: &str) -> Request {
        let messages = Message::prompt(String::new(), user.to_owned());
        Request { messages, ..Request::new(ModelRole::Side, "home".into(), 50) }
    }
}
