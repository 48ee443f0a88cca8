//! A fake setup of settings in memory: every trial works.

use parking_lot::Mutex;

use super::*;
use crate::settings::kept::{KEYS, KeptField, is_secret};

#[derive(Default)]
pub struct FakeSettings(Mutex<BTreeMap<String, Value>>);

impl FakeSettings {
    fn view(&self) -> SettingsView {
        let kept = self.0.lock();
        let field = |key: &'static str| {
            let value = kept.get(key).cloned().filter(|value| !value.is_null());
            let (is_set, on_page) = (value.is_some(), value.is_some());
            (key, KeptField { value: value.filter(|_| !is_secret(key)), default: None, is_set, on_page, place: None })
        };
        let fields = KEYS.into_iter().map(field).collect();
        let [speech_languages, memory_languages, problems] = [(); 3].map(|()| Vec::new());
        SettingsView { fields, speech_languages, memory_languages, currency: "USD".to_owned(), problems }
    }
}

#[async_trait]
impl SettingsSetup for FakeSettings {
    async fn settings(&self) -> Result<SettingsView, Refused> {
        Ok(self.view())
    }

    async fn try_out(&self, _: TriedSettings) -> Result<SettingsTrial, Refused> {
        Ok(SettingsTrial { works: true, ..SettingsTrial::default() })
    }

    async fn keep(&self, new: NewSettings) -> Result<SettingsView, Refused> {
        match new.values.keys().find(|key| !KEYS.contains(&key.as_str())) {
            Some(key) => Err(Refused::invalid(key, "is not a setting of the page")),
            None => {
                self.0.lock().extend(new.values);
                Ok(self.view())
            }
        }
    }

    async fn read_again(&self) -> Result<SettingsView, Refused> {
        Ok(self.view())
    }
}
