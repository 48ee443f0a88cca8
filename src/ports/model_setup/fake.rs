//! A fake setup of models in memory: every connection works.

use parking_lot::Mutex;
use secrecy::ExposeSecret as _;

use super::*;

/// The connected models; `None`: `rehearsal`.
#[derive(Default)]
pub struct FakeModels(Mutex<Option<NewConnection>>);

impl FakeModels {
    fn view(&self) -> ModelsView {
        let connected = self.0.lock().clone();
        let name = |model: &ConnectedModel| model.model.as_str().into();
        let view = |model: Option<Arc<str>>| ModelView {
            provider: if model.is_some() { "models.example".into() } else { "rehearsal".into() },
            timeout_secs: 15.0,
            model: model.unwrap_or_else(|| "rehearsal".into()),
            input_price: None,
            output_price: None,
            cache_read_price: None,
            cache_write_price: None,
            extra_body: Map::new(),
            vision: Vision::Off,
            sees_pictures: false,
            adaptations: Vec::new(),
        };
        let names = |values: &NewValues| values.keys().map(|name| (name.clone(), None)).collect();
        let side = connected.as_ref().map(|one| name(one.side.as_ref().unwrap_or(&one.main)));
        ModelsView {
            source: if connected.is_some() { Source::Page } else { Source::Rehearsal },
            currency: "USD".to_owned(),
            base_url: connected.as_ref().map(|one| one.base_url.clone()),
            has_key: connected.as_ref().and_then(|one| one.api_key.as_ref()).is_some_and(|key| !key.expose_secret().is_empty()),
            has_spare_key: false,
            extra_headers: connected.as_ref().map(|one| names(&one.extra_headers)).unwrap_or_default(),
            extra_query: connected.as_ref().map(|one| names(&one.extra_query)).unwrap_or_default(),
            main: view(connected.as_ref().map(|one| name(&one.main))),
            side: view(side),
            timeout_secs: connected.as_ref().and_then(|one| one.timeout_secs),
            short_decisions: connected.as_ref().is_some_and(|one| one.short_decisions),
            set: BTreeMap::new(),
            troubles: Vec::new(),
        }
    }
}

#[async_trait]
impl ModelSetup for FakeModels {
    async fn models(&self) -> Result<ModelsView, Refused> {
        Ok(self.view())
    }

    async fn names(&self, server: ModelServer) -> Result<Vec<String>, Refused> {
        match server.api_key.is_some_and(|key| key.expose_secret() == "wrong") {
            true => Err(Refused::Invalid { field: "api_key".to_owned(), detail: "was rejected (401)".into() }),
            false => Ok(vec!["large".to_owned(), "small".to_owned()]),
        }
    }

    async fn try_out(&self, connection: NewConnection) -> Result<Trial, Refused> {
        let tried = Tried {
            model: connection.main.model.as_str().into(),
            works: true,
            adaptations: Vec::new(),
            error: None,
            detail: "fine".to_owned(),
            secs: 0.1,
            input_tokens: 1,
            output_tokens: 1,
            cost: None,
        };
        Ok(Trial { decision: tried.clone(), statement: tried })
    }

    async fn connect(&self, connection: NewConnection) -> Result<ModelsView, Refused> {
        *self.0.lock() = Some(connection);
        Ok(self.view())
    }

    async fn disconnect(&self) -> Result<ModelsView, Refused> {
        *self.0.lock() = None;
        Ok(self.view())
    }
}
