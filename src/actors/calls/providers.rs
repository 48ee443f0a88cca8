//! The providers of speech recognition and synthesis: selects the provider for each piece of work, and limits its concurrency.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::breaker::{Breaker, BreakerState, Verdict};
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::ports::call_room::SpeechService;
use crate::ports::language_model::NoAnswer;
use crate::ports::speech_recognition::SpeechRecognition;
use crate::ports::speech_synthesis::SpeechSynthesis;
use crate::settings::speech::BUILT_IN;

#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum number of concurrent streams or sentences.
    pub most: usize,
    /// How long a failed provider gets no work, if there is another one.
    pub cool_down: Duration,
    /// The price of its work. `None` if it is free or unknown.
    pub price: Option<UnitPrice>,
}

pub struct Provider<S: ?Sized> {
    service: Arc<S>,
    /// The voice of companions without a voice setting.
    voice: Option<Arc<str>>,
    price: Option<UnitPrice>,
    places: Arc<Semaphore>,
    breaker: Mutex<Breaker>,
    cool_down: Duration,
    /// Until when the provider is not used even as a last resort, because it asked for a pause, refused the key or demands payment.
    rests_until: Mutex<Moment>,
}

impl<S: ?Sized> Provider<S> {
    pub fn new(service: Arc<S>, limits: Limits) -> Arc<Self> {
        Self::with_voice(service, limits, None)
    }

    /// As [`Self::new`], with the voice of companions without a voice setting.
    pub fn with_voice(service: Arc<S>, limits: Limits, voice: Option<Arc<str>>) -> Arc<Self> {
        let Limits { most, cool_down, price } = limits;
        // One failure opens the breaker. A provider that had answered before it failed is tried once more (`Permit::failed`).
        Arc::new(Self {
            service,
            voice,
            price,
            places: Arc::new(Semaphore::new(most)),
            breaker: Mutex::new(Breaker::new(1, cool_down)),
            cool_down,
            rests_until: Mutex::default(),
        })
    }

    /// A free provider without limits.
    pub fn unlimited(service: Arc<S>) -> Arc<Self> {
        Self::new(service, Limits { most: Semaphore::MAX_PERMITS, cool_down: Duration::ZERO, price: None })
    }

    pub fn service(&self) -> &Arc<S> {
        &self.service
    }

    pub fn voice(&self) -> Option<&Arc<str>> {
        self.voice.as_ref()
    }

    pub fn price(&self) -> Option<&UnitPrice> {
        self.price.as_ref()
    }

    fn allows_work(&self, now: Moment) -> bool {
        self.breaker.lock().allows_call(now)
    }

    pub fn fails(&self, now: Moment) -> bool {
        self.breaker.lock().state(now) != BreakerState::Closed
    }

    fn rests(&self, now: Moment) -> bool {
        now < *self.rests_until.lock()
    }

    fn begin(self: &Arc<Self>, now: Moment) -> Option<Permit<S>> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        Some(self.permit(place, now))
    }

    fn permit(self: &Arc<Self>, place: OwnedSemaphorePermit, now: Moment) -> Permit<S> {
        let is_probe = self.breaker.lock().started(now);
        Permit { provider: self.clone(), is_probe, has_worked: false, is_over: false, _place: place }
    }
}

pub type RecognitionProvider = Arc<Provider<dyn SpeechRecognition>>;
pub type VoiceProvider = Arc<Provider<dyn SpeechSynthesis>>;

/// One piece of work of a provider: a stream, or a sentence. Dropping it reports neither success nor failure.
pub struct Permit<S: ?Sized> {
    provider: Arc<Provider<S>>,
    is_probe: bool,
    has_worked: bool,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl<S: ?Sized> Permit<S> {
    pub const fn provider(&self) -> &Arc<Provider<S>> {
        &self.provider
    }

    /// Records that the provider has returned a result. Returns true if the provider had failed before.
    pub fn works(&mut self, now: Moment) -> bool {
        if std::mem::replace(&mut self.has_worked, true) {
            return false;
        }
        let mut breaker = self.provider.breaker.lock();
        let had_failed = breaker.state(now) != BreakerState::Closed;
        breaker.ended(now, std::mem::take(&mut self.is_probe), Verdict::Alive);
        had_failed
    }

    pub const fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// Discards the evidence that the provider works.
    pub const fn distrust(&mut self) {
        self.has_worked = false;
    }

    /// Records a failure. Returns true if the provider now gets no work for a while. Work that was cut after it had returned results may be retried
    /// at once, unless the provider asks for a pause.
    pub fn failed(&mut self, now: Moment, error: &NoAnswer) -> bool {
        self.is_over = true;
        let rest = match error {
            NoAnswer::Overloaded { retry_after, .. } => *retry_after,
            NoAnswer::KeyRejected { .. } | NoAnswer::NoCredit { .. } => Some(self.provider.cool_down),
            _ => None,
        };
        if let Some(rest) = rest {
            *self.provider.rests_until.lock() = now + rest;
        }
        let verdict = match error {
            NoAnswer::Cancelled => Verdict::Unknown,
            NoAnswer::Overloaded { retry_after: Some(pause), .. } => Verdict::Failing(Some(*pause)),
            _ if self.has_worked => Verdict::Unknown,
            _ => Verdict::Failing(None),
        };
        self.provider.breaker.lock().ended(now, std::mem::take(&mut self.is_probe), verdict)
    }
}

impl Permit<dyn SpeechSynthesis> {
    /// Records the failure of a sentence. Returns true if the failure must be logged. A refusal, perhaps of the voice of one companion, says nothing
    /// about other sentences.
    pub fn sentence_failed(&mut self, now: Moment, error: &NoAnswer) -> bool {
        match error {
            NoAnswer::Unsendable { .. } => true,
            NoAnswer::Refused { .. } | NoAnswer::UnknownModel { .. } => {
                self.works(now);
                true
            }
            _ => self.failed(now, error),
        }
    }
}

impl<S: ?Sized> Drop for Permit<S> {
    fn drop(&mut self) {
        if !self.is_over {
            // The verdict is unknown, so the time is not used.
            self.provider.breaker.lock().ended(Moment::ZERO, self.is_probe, Verdict::Unknown);
        }
    }
}

/// The providers of speech recognition, in order of preference. There is at least one.
#[derive(Clone)]
pub struct Recognisers {
    first: RecognitionProvider,
    others: Arc<[RecognitionProvider]>,
}

impl Recognisers {
    pub fn new(first: RecognitionProvider, others: impl IntoIterator<Item = RecognitionProvider>) -> Self {
        Self { first, others: others.into_iter().collect() }
    }

    pub fn all(&self) -> impl Iterator<Item = &RecognitionProvider> {
        [&self.first].into_iter().chain(&*self.others)
    }

    pub fn first(&self) -> &dyn SpeechRecognition {
        &**self.first.service()
    }

    /// Begins a stream at the first provider that works and has capacity. If none works, the last one is tried anyway, because speech cannot wait for
    /// long. It is not tried if it has asked for a pause, refused the key or demands payment. `may_cost` is false if the guild may use only the
    /// built-in provider. `None` if no usable provider has capacity, or if the last one rests.
    pub fn begin(&self, now: Moment, may_cost: bool) -> Option<Permit<dyn SpeechRecognition>> {
        self.begin_at(now, |provider| may_cost || provider.service.provider() == BUILT_IN)
    }

    /// As [`Self::begin`], at a provider that returns words.
    pub fn begin_words(&self, now: Moment) -> Option<Permit<dyn SpeechRecognition>> {
        self.begin_at(now, |provider| provider.service.recognises_words())
    }

    fn begin_at(&self, now: Moment, is_usable: impl Fn(&RecognitionProvider) -> bool) -> Option<Permit<dyn SpeechRecognition>> {
        let usable = || self.all().filter(|provider| is_usable(provider));
        let mut working = usable().filter(|provider| provider.allows_work(now));
        working.find_map(|provider| provider.begin(now)).or_else(|| usable().last().filter(|last| !last.rests(now))?.begin(now))
    }

    /// Whether at least one provider returns words.
    pub fn recognise_words(&self) -> bool {
        self.with_words().next().is_some()
    }

    /// The providers that return words.
    pub fn with_words(&self) -> impl Iterator<Item = &RecognitionProvider> {
        self.all().filter(|provider| provider.service.recognises_words())
    }

    /// Whether at least one provider is not known to fail.
    pub fn works(&self, now: Moment) -> bool {
        self.all().any(|provider| provider.allows_work(now))
    }

    /// Whether no speech is recognised at all: the newest work of every provider that returns words failed. If no provider returns words, all
    /// providers count.
    pub fn fail(&self, now: Moment) -> bool {
        let recognises_words = |provider: &&RecognitionProvider| provider.service.recognises_words();
        let is_any = self.recognise_words();
        self.all().filter(|provider| !is_any || recognises_words(provider)).all(|provider| provider.fails(now))
    }

    /// Whether a stream that began now would use another provider, preferred to this one.
    pub fn prefers_another(&self, to: &RecognitionProvider, now: Moment) -> bool {
        self.all()
            .take_while(|provider| !Arc::ptr_eq(provider, to))
            .any(|provider| provider.allows_work(now) && provider.places.available_permits() > 0)
    }
}

/// The providers of speech synthesis, by the names that companions' files use.
#[derive(Clone)]
pub struct Voices {
    usual: VoiceProvider,
    named: Arc<BTreeMap<Arc<str>, VoiceProvider>>,
}

impl Voices {
    pub fn new(usual: VoiceProvider, named: impl IntoIterator<Item = (Arc<str>, VoiceProvider)>) -> Self {
        Self { usual, named: Arc::new(named.into_iter().collect()) }
    }

    /// The provider of this name, or the default one.
    pub fn of(&self, name: Option<&str>) -> VoiceProvider {
        name.and_then(|name| self.named.get(name)).unwrap_or(&self.usual).clone()
    }
}

impl Provider<dyn SpeechSynthesis> {
    /// Waits for capacity and begins a sentence.
    ///
    /// # Errors
    /// Returns an error if the provider failed a short while ago.
    pub async fn begin_when_free(self: &Arc<Self>, now: impl Fn() -> Moment) -> Result<Permit<dyn SpeechSynthesis>, NoAnswer> {
        self.check_works(now())?;
        let place = self.places.clone().acquire_owned().await.map_err(|_| NoAnswer::Cancelled)?;
        // The provider may have failed during the wait.
        self.check_works(now())?;
        Ok(self.permit(place, now()))
    }

    fn check_works(&self, now: Moment) -> Result<(), NoAnswer> {
        match self.breaker.lock().state(now) {
            BreakerState::Open(until) => Err(NoAnswer::CircuitOpen { endpoint: self.endpoint(), remaining: until.since(now) }),
            BreakerState::Closed | BreakerState::HalfOpen => Ok(()),
        }
    }
}

macro_rules! described {
    ($($service:ident),*) => { $(
        impl Provider<dyn $service> {
            /// The description that people see.
            pub fn description(&self) -> SpeechService {
                SpeechService { provider: self.service.provider(), host: self.service.host() }
            }

            pub fn endpoint(&self) -> Arc<str> {
                self.service.host().unwrap_or_else(|| self.service.provider().into())
            }
        }
    )* };
}

described!(SpeechRecognition, SpeechSynthesis);

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures_util::StreamExt as _;
    use futures_util::stream::{self, BoxStream};
    use tokio::sync::mpsc::{Receiver, Sender};

    use super::*;
    use crate::ports::speech_recognition::{Expectation, Recognised, Sound};
    use crate::ports::speech_synthesis::{Piece, Sentence};

    const COOL_DOWN: Duration = Duration::from_secs(10);

    /// A service that only has a name.
    struct Named(&'static str);

    #[async_trait]
    impl SpeechRecognition for Named {
        fn provider(&self) -> &'static str {
            self.0
        }

        fn host(&self) -> Option<Arc<str>> {
            None
        }

        fn recognises_words(&self) -> bool {
            true
        }

        fn has_partials(&self) -> bool {
            true
        }

        async fn listen(&self, _: Expectation, _: Receiver<Sound>, _: Sender<Recognised>) -> Result<(), NoAnswer> {
            Ok(())
        }
    }

    impl SpeechSynthesis for Named {
        fn provider(&self) -> &'static str {
            self.0
        }

        fn host(&self) -> Option<Arc<str>> {
            None
        }

        fn say(&self, _: Sentence) -> BoxStream<'static, Result<Piece, NoAnswer>> {
            stream::empty().boxed()
        }
    }

    fn at(secs: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(secs)
    }

    fn provider(name: &'static str, most: usize) -> RecognitionProvider {
        Provider::new(Arc::new(Named(name)), Limits { most, cool_down: COOL_DOWN, price: None })
    }

    fn recognisers(names: [&'static str; 2]) -> Recognisers {
        let [first, second] = names.map(|name| provider(name, 1));
        Recognisers::new(first, [second])
    }

    fn name(permit: Option<&Permit<dyn SpeechRecognition>>) -> Option<&'static str> {
        permit.map(|permit| permit.provider().service().provider())
    }

    fn gone() -> NoAnswer {
        NoAnswer::Unreachable { endpoint: "https://ears.example".into(), detail: "it is off".to_owned() }
    }

    #[test]
    fn the_next_one_takes_over_until_the_preferred_one_answers_again() {
        let recognisers = recognisers(["first", "second"]);

        let opened = recognisers.begin(at(1), true).unwrap().failed(at(1), &gone());
        let meanwhile = recognisers.begin(at(2), true).unwrap();
        let substitute = meanwhile.provider().clone();
        assert_eq!((opened, name(Some(&meanwhile))), (true, Some("second")));
        assert!(!recognisers.prefers_another(&substitute, at(2)));

        assert!(recognisers.prefers_another(&substitute, at(11)), "it may be tried again");
        let mut probe = recognisers.begin(at(11), true).unwrap();
        assert_eq!((name(Some(&probe)), probe.works(at(12))), (Some("first"), true));
        drop(probe);
        assert_eq!(name(recognisers.begin(at(12), true).as_ref()), Some("first"));
    }

    #[test]
    fn recognition_fails_once_nobody_recognises_words() {
        let (first, second) = (provider("first", 1), provider("second", 1));
        let deaf: RecognitionProvider = Provider::unlimited(Arc::new(crate::adapters::speech::rehearsed::RehearsedSpeech));
        let recognisers = Recognisers::new(first, [second, deaf]);
        assert!(!recognisers.fail(at(1)));

        recognisers.begin(at(1), true).unwrap().failed(at(1), &gone());
        assert!(!recognisers.fail(at(2)), "the second one takes over");
        recognisers.begin(at(2), true).unwrap().failed(at(2), &gone());
        assert!(recognisers.fail(at(2)), "the last one hears no words");
        assert!(recognisers.fail(at(30)), "nothing is known of them yet");
        recognisers.begin(at(30), true).unwrap().works(at(31));
        assert!(!recognisers.fail(at(31)));
    }

    #[test]
    fn a_stream_that_worked_and_was_cut_is_opened_again_at_once() {
        let recognisers = recognisers(["first", "second"]);
        let mut permit = recognisers.begin(at(1), true).unwrap();
        permit.works(at(2));

        let opened = permit.failed(at(3), &gone());
        drop(permit);

        assert_eq!((opened, name(recognisers.begin(at(3), true).as_ref())), (false, Some("first")));
    }

    #[test]
    fn who_has_no_place_is_passed_over_and_the_last_one_is_always_tried() {
        let recognisers = recognisers(["first", "second"]);
        let first = recognisers.begin(at(1), true).unwrap();
        let mut second = recognisers.begin(at(1), true).unwrap();
        assert_eq!((name(Some(&first)), name(Some(&second))), (Some("first"), Some("second")));
        assert_eq!(name(recognisers.begin(at(1), true).as_ref()), None, "nobody has a place");

        second.failed(at(2), &gone());
        drop(second);
        assert_eq!(name(recognisers.begin(at(2), true).as_ref()), Some("second"), "words do not wait for a pause to end");
    }

    #[test]
    fn what_costs_nothing_is_what_is_built_in() {
        let paid_and_built_in = recognisers(["paid", BUILT_IN]);
        let paid = recognisers(["paid", "other"]);

        assert_eq!(name(paid_and_built_in.begin(at(1), false).as_ref()), Some(BUILT_IN));
        assert_eq!(name(paid.begin(at(1), false).as_ref()), None);
    }

    #[test]
    fn a_provider_that_asks_for_a_pause_gets_it_although_it_worked() {
        let recognisers = recognisers(["first", "second"]);
        let mut permit = recognisers.begin(at(1), true).unwrap();
        permit.works(at(2));

        let endpoint = "https://ears.example".into();
        let full = NoAnswer::Overloaded { endpoint, detail: "429".to_owned(), retry_after: Some(Duration::from_secs(60)) };

        assert!(permit.failed(at(3), &full));
        drop(permit);
        assert_eq!(name(recognisers.begin(at(62), true).as_ref()), Some("second"));
    }

    #[test]
    fn the_only_one_that_asks_for_a_pause_or_refuses_the_key_gets_no_work_meanwhile() {
        let endpoint: Arc<str> = "https://ears.example".into();
        let full = NoAnswer::Overloaded {
            endpoint: endpoint.clone(),
            detail: "429".to_owned(),
            retry_after: Some(Duration::from_secs(60)),
        };
        let rejected = NoAnswer::KeyRejected { endpoint, detail: "401".to_owned() };
        for (error, secs) in [(full, 60), (rejected, COOL_DOWN.as_secs())] {
            let recognisers = Recognisers::new(provider("only", 1), []);

            recognisers.begin(at(1), true).unwrap().failed(at(1), &error);

            assert!(recognisers.begin(at(secs), true).is_none() && !recognisers.works(at(secs)), "{error:?}");
            assert_eq!(name(recognisers.begin(at(1 + secs), true).as_ref()), Some("only"), "{error:?}");
        }
    }

    #[test]
    fn a_probe_that_answered_does_not_end_the_next_one() {
        let provider = provider("first", 3);
        provider.begin(at(1)).unwrap().failed(at(1), &gone());
        let mut probe = provider.begin(at(11)).unwrap();
        probe.works(at(12));
        provider.begin(at(13)).unwrap().failed(at(13), &gone());

        let _next = provider.begin(at(23)).unwrap();
        drop(probe);

        assert!(!provider.allows_work(at(23)), "the next probe is not over");
    }

    fn voice() -> VoiceProvider {
        Provider::new(Arc::new(Named("mouth")), Limits { most: 1, cool_down: COOL_DOWN, price: None })
    }

    #[tokio::test]
    async fn a_sentence_that_is_refused_does_not_silence_other_companions() {
        let (voice, endpoint) = (voice(), Arc::from("https://mouth.example"));
        let refused = NoAnswer::Refused { endpoint, detail: "no such voice".to_owned() };

        let mut permit = voice.begin_when_free(|| at(1)).await.unwrap();
        assert!(permit.sentence_failed(at(1), &refused), "it is logged");
        drop(permit);

        let mut other = voice.begin_when_free(|| at(1)).await.unwrap();
        assert!(other.sentence_failed(at(1), &gone()));
        drop(other);
        assert!(voice.begin_when_free(|| at(2)).await.is_err());
    }

    #[tokio::test]
    async fn who_waited_for_a_place_does_not_begin_at_a_provider_that_failed_meanwhile() {
        let voice = voice();
        let mut first = voice.begin_when_free(|| at(1)).await.unwrap();

        let (second, ()) = tokio::join!(voice.begin_when_free(|| at(1)), async {
            first.sentence_failed(at(1), &gone());
            drop(first);
        });

        assert!(matches!(second.err(), Some(NoAnswer::CircuitOpen { .. })));
    }
}
