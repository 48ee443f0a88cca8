//! Ports: the traits through which the core uses external systems.

pub mod audio;
pub mod backend;
pub mod call_room;
pub mod chat_platform;
pub mod clock;
pub mod companion_setup;
pub mod gateway;
pub mod inbound_events;
pub mod language_model;
pub mod lease;
pub mod model_setup;
pub mod moderation;
pub mod nodes;
pub mod notes;
pub mod opt_out;
pub mod platform_call;
pub mod rng;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod settings_setup;
pub mod speech_recognition;
pub mod speech_synthesis;
pub mod store;
pub mod tools;
pub mod voice_call;

use tertulia_domain as domain;
use tertulia_settings as settings;
use tertulia_texts as texts;
